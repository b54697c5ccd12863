/* The way to the other side: connects over the first path that works, and lets a party begin. */
#include <stdio.h>
#include <string.h>

#include "client/client_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "store/destination.h"
#include "store/fd_budget.h"

#define PATH_NS (5 * NS_PER_S)

uint32_t client_open_flags(const struct ptcp_transfer *t)
{
	const struct ptcp_transfer_opts *o = &t->o;
	int flags =
	    (o->no_verify ? 0 : WIRE_OPEN_VERIFY) | (o->preserve_times ? WIRE_OPEN_TIMES : 0) |
	    (o->preserve_mode ? WIRE_OPEN_MODE : 0) | (o->preserve_links ? WIRE_OPEN_LINKS : 0) |
	    (o->preserve_owner ? WIRE_OPEN_OWNER : 0) | (o->preserve_xattr ? WIRE_OPEN_XATTR : 0) |
	    (o->preserve_setid ? WIRE_OPEN_SETID : 0) | (o->no_resume ? WIRE_OPEN_NO_RESUME : 0) |
	    (o->dry_run ? WIRE_OPEN_DRY_RUN : 0) |
	    (t->sends && (t->n_local > 1 || destination_is_contents(t->target.path)) ? WIRE_OPEN_INTO_DIR : 0) |
	    (t->sends && t->n_local == 1 && destination_is_contents(t->local[0]) ? WIRE_OPEN_CONTENTS : 0);

	return (uint32_t)flags;
}

uint8_t client_fsync(const struct ptcp_transfer *t)
{
	static const uint8_t wire[] = { [PTCP_FSYNC_GROUP] = WIRE_FSYNC_GROUP,
		[PTCP_FSYNC_NONE] = WIRE_FSYNC_NONE, [PTCP_FSYNC_FILE] = WIRE_FSYNC_FILE };

	return wire[t->o.fsync];
}

/* Each path has at least one. */
static unsigned streams_wanted(const struct ptcp_transfer *t, unsigned n)
{
	return n > t->ways.n_places ? n : t->ways.n_places;
}

/* Where direct streams go: to the address that has been reached, or anew to the name. */
static int direct_address(const struct ptcp_transfer *t, char host[SOCK_HOST_BYTES], unsigned *port, struct ptcp_err *e)
{
	if (t->ways.at[t->path].n_relays == 0)
		return sock_split(t->peer, host, port, t->target.port, e);
	strcpy(host, t->target.host);
	*port = t->target.port;
	return 0;
}

/* On the control connection t->chan, which is taken. `way`: how it came about. */
static int start_party(struct ptcp_transfer *t, enum ssh_start_way way, struct ptcp_err *e)
{
	unsigned most = fd_budget_connections(), wanted = streams_wanted(t, client_streams(t));
	unsigned streams = wanted < most ? wanted : most, few = streams_wanted(t, ADVICE_START);
	bool chosen = t->o.streams == 0;
	/* The controller assumes a single path, and that observed throughput is the path's: not so at a rate limit. */
	bool adaptive = chosen && !t->o.dry_run && way != SSH_START_PIPE && t->ways.n == 1 && !t->ways.held &&
	    t->o.rate == NULL && atomic_load(&t->path_bps[0]) == 0;
	struct wire_open open = {
		.role = t->sends ? WIRE_ACCEPTOR_RECEIVES : WIRE_ACCEPTOR_SENDS, .cipher = (uint8_t)t->o.cipher,
		.fsync = client_fsync(t),
		.flags = client_open_flags(t) | (t->ways.held ? WIRE_OPEN_SPOOLED : 0),
		.n_paths = t->n_paths,
		.streams = (uint16_t)(chosen && !adaptive && few < streams ? few : streams),
		.paths = { t->paths, t->paths_bytes }
	};
	char address[SOCK_HOST_BYTES] = "";
	struct session_opts o = {
		.host = &t->host, .control = t->chan, .connects = way == SSH_START_DIRECT,
		.one_channel = way == SSH_START_PIPE, .once = t->launch != NULL, .address = address, .paths = &t->ways, .path = t->path,
		.sock = { t->o.family, client_timeout_ns(t), t->congestion },
		.open = &open, .max_streams = PTCP_STREAMS_MAX,
		.timeout_ns = client_timeout_ns(t), .ops = &client_party_ops, .arg = t
	};
	int r;

	client_name_path(t);
	t->adaptive = adaptive;
	if (t->prober != NULL) {
		open.role = t->prober->receives ? WIRE_ACCEPTOR_GENERATES : WIRE_ACCEPTOR_DISCARDS;
		open.flags = 0;
	}
	t->chan = NULL;
	if (o.connects && (r = direct_address(t, address, &o.port, e)) < 0) {
		chan_free(o.control);
		return r;
	}
	if ((r = session_new(&t->session, &o, e)) < 0)
		return r;
	atomic_store(&t->paced, true); /* another attempt may have heard of it */
	client_pace(t);
	return 0;
}

/* Where there are others, a path that does not answer is left soon. */
static uint64_t patience_ns(const struct ptcp_transfer *t)
{
	uint64_t all = client_timeout_ns(t);

	return t->ways.n > 1 && all > PATH_NS ? PATH_NS : all;
}

static int try_path(struct ptcp_transfer *t, struct ptcp_err *e);

/* It leads nowhere. The next is tried; when none is left, what was wrong with the first is told. */
static void path_failed(struct ptcp_transfer *t, const struct ptcp_err *why)
{
	char text[sizeof why->msg + TEXT_NAME_BYTES + 20];
	struct ptcp_err next;

	if (t->unknown && t->o.trust != NULL) {
		client_finish(t, why);
		return;
	}
	if (t->n_tried++ == 0)
		t->path_why = *why;
	route_cancel(t->way);
	t->way = NULL;
	chan_free(t->chan);
	t->chan = NULL;
	if (t->ways.n > 1) {
		snprintf(text, sizeof text, "path %.*s: %s", TEXT_NAME_BYTES, paths_name(&t->ways, t->path),
		    why->msg);
		client_warn(t, text);
	}
	if (t->n_tried == t->ways.n) {
		client_finish(t, &t->path_why);
		return;
	}
	t->path = (t->path + 1) % t->ways.n;
	if (try_path(t, &next) < 0)
		client_finish(t, &next);
}

static void on_opened(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	strcpy(t->fingerprint, chan_fingerprint(t->chan));
	timer_set(t->timer, MONO_NEVER);
	if (client_trust(t, t->target.host, t->target.port, false, t->fingerprint, &why) < 0)
		path_failed(t, &why);
	else if (t->third != NULL)
		remote_job_opened(t);
	else if (start_party(t, SSH_START_DIRECT, &why) < 0)
		client_finish(t, &why);
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	err_set(&why, PTCP_ECONNECT, "connecting to %s: %s (is it a ptcp daemon?)", t->known_as,
	    cause != NULL ? cause->msg : "it closed the connection");
	path_failed(t, &why);
}

static const struct chan_ops chan_ops = { on_opened, on_nothing, on_nothing, on_closed };

static void on_arrived(void *arg, int fd, const char *address, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct chan_opts o = { .fd = fd, .alpn = t->third != NULL ? ALPN_JOB : ALPN_CONTROL,
		.ops = &chan_ops, .arg = t };
	struct ptcp_err why;

	t->way = NULL;
	if (fd < 0) {
		path_failed(t, cause);
		return;
	}
	strcpy(t->peer, address);
	timer_set(t->timer, mono_add_ns(mono_now(), patience_ns(t)));
	if (chan_new(&t->chan, t->host.control, t->host.client, &o, &why) < 0)
		client_finish(t, &why);
}

static void on_timer(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	if (t->session != NULL) {
		client_show_progress(t);
		return;
	}
	if (t->third != NULL && remote_job_waits(t->third)) {
		remote_job_silent(t);
		return;
	}
	err_set(&why, PTCP_ECONNECT, "connecting to %s: no TLS handshake within %.3g s (is it a ptcp daemon?)",
	    t->known_as, (double)patience_ns(t) / 1e9);
	path_failed(t, &why);
}

static int try_path(struct ptcp_transfer *t, struct ptcp_err *e)
{
	const struct path *p = &t->ways.at[t->path];
	struct route_opts o = { .host = &t->host, .relay = p->relay, .n_relays = p->n_relays, .to = t->target.host,
		.port = t->target.port, .sock = { t->o.family, patience_ns(t), t->congestion },
		.check = client_trust_relay, .done = on_arrived, .arg = t };

	return route_start(&t->way, &o, e);
}

int client_dial(struct ptcp_transfer *t, struct ptcp_err *e)
{
	t->path = (unsigned)t->ways.place[0];
	return try_path(t, e);
}

/* ---- Through ssh, or started by a command ---- */

static void on_reached(void *arg, enum ssh_start_way way, struct chan *c, const char *address)
{
	struct ptcp_transfer *t = arg;
	char text[2 * sizeof t->known_as + 200];
	struct ptcp_err why;

	t->chan = c;
	if (way == SSH_START_PIPE && t->prober != NULL) {
		err_set(&why, PTCP_ECONNECT, "%s: no TCP connection could be made to it, nor from it to here, and through ssh "
		    "there is one stream only (open a port there to this host)", t->known_as);
		client_finish(t, &why);
		return;
	}
	strcpy(t->fingerprint, chan_fingerprint(c));
	snprintf(t->peer, sizeof t->peer, "%s", address);
	if (way == SSH_START_PIPE) {
		snprintf(text, sizeof text, "%s: no TCP connection could be made to it, nor from it to here: all goes "
		    "through ssh, which is slower (open a port there to this host, and name it with --remote-port)",
		    t->known_as);
		client_warn(t, text);
	}
	if (start_party(t, way, &why) < 0)
		client_finish(t, &why);
}

static void on_far_failed(void *arg, const struct ptcp_err *why)
{
	struct ptcp_transfer *t = arg;

	/* ^C on a terminal ends ssh as well: then that is the reason, and on its way here. */
	if (!atomic_load(&t->cancelled))
		client_finish(t, why);
}

static struct session *session_of(void *arg)
{
	struct ptcp_transfer *t = arg;

	return t->session;
}

/* It is like a daemon from now on, but that who it is is known. */
static void on_launched(void *arg, unsigned port, const char *fingerprint)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	strcpy(t->launched, fingerprint);
	t->target.port = t->ways.port = port;
	remote_name(&t->target, t->known_as, sizeof t->known_as);
	if (client_dial(t, &why) < 0)
		client_finish(t, &why);
}

static const struct ssh_start_ops ssh_start_ops = { on_reached, on_far_failed, on_launched, session_of };

static int start_far(struct ptcp_transfer *t, const struct sock_opts *so, struct ptcp_err *e)
{
	struct ssh_start_opts o = { .host = &t->host, .target = &t->target, .ssh = t->ssh,
		.launch = t->launch, .remote_ptcp = t->remote_ptcp, .remote_port = t->o.remote_port, .sock = *so,
		.ops = &ssh_start_ops, .arg = t };

	return ssh_start_new(&t->far, &o, e);
}

int client_connect(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct sock_opts so = { t->o.family, client_timeout_ns(t), t->congestion };
	int r;

	if ((r = timer_new(&t->timer, t->loop, on_timer, t, e)) < 0)
		return r;
	if (t->target.ssh || t->launch != NULL)
		return start_far(t, &so, e);
	if (t->third != NULL)
		remote_job_aim(t);
	return client_dial(t, e);
}

void client_disconnect(struct ptcp_transfer *t)
{
	ssh_start_free(t->far);
	t->far = NULL;
	route_cancel(t->way);
	t->way = NULL;
	chan_free(t->chan);
	t->chan = NULL;
	timer_free(t->timer);
	t->timer = NULL;
}
