/* The way to the other side: connects, checks who answers, and lets a party begin. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/err.h"
#include "lib/client_impl.h"
#include "net/trust.h"
#include "store/fds.h"
#include "store/place.h"

/* Does a pin of the user's name this host, or every host? */
static bool pin_is_for(const struct ptcp_transfer *t, const char *pin, const char **fingerprint)
{
	const char *eq = strrchr(pin, '=');
	char host[SOCK_HOST_BYTES], where[SOCK_HOST_BYTES];
	unsigned port;

	*fingerprint = eq != NULL ? eq + 1 : pin;
	if (eq == NULL)
		return true;
	if ((size_t)(eq - pin) >= sizeof where)
		return false;
	memcpy(where, pin, (size_t)(eq - pin));
	where[eq - pin] = '\0';
	return sock_split(where, host, &port, t->target.port, NULL) == 0 &&
	    strcasecmp(host, t->target.host) == 0 && port == t->target.port;
}

/* 0: trusted; PTCP_EREFUSED: not; t->unknown: ask. */
static int check_host(struct ptcp_transfer *t, const char *fingerprint, struct ptcp_err *e)
{
	const char *pin;
	bool pinned = false;
	size_t i;
	int r;

	for (i = 0; i < t->n_pins; i++) {
		if (!pin_is_for(t, t->pins[i], &pin))
			continue;
		if (strcmp(pin, fingerprint) == 0)
			return 0;
		pinned = true;
	}
	if (pinned)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, not the one given with "
		    "--fingerprint (somebody may be in between; if its key was replaced, give the new one)",
		    t->known_as, fingerprint);
	if ((r = known_hosts_check(t->host.config_dir, t->known_as, fingerprint, e)) < 0)
		return r;
	if (r == KNOWN_SAME)
		return 0;
	if (r == KNOWN_OTHER)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, but known_hosts has another "
		    "(somebody may be in between; if its key was replaced, remove the line from %s/known_hosts)",
		    t->known_as, fingerprint, t->host.config_dir);
	t->unknown = true;
	return err_set(e, PTCP_EREFUSED, "%s: an unknown host with fingerprint %s (compare it with ptcp key "
	    "show there, then give --fingerprint %s, or run this from a terminal)", t->known_as, fingerprint,
	    fingerprint);
}

static int open_flags(const struct ptcp_transfer *t)
{
	const struct ptcp_transfer_opts *o = &t->o;

	return (o->no_verify ? 0 : WIRE_OPEN_VERIFY) | (o->preserve_times ? WIRE_OPEN_TIMES : 0) |
	    (o->preserve_mode ? WIRE_OPEN_MODE : 0) | (o->preserve_links ? WIRE_OPEN_LINKS : 0) |
	    (o->preserve_owner ? WIRE_OPEN_OWNER : 0) | (o->preserve_xattr ? WIRE_OPEN_XATTR : 0) |
	    (o->preserve_setid ? WIRE_OPEN_SETID : 0) | (o->no_resume ? WIRE_OPEN_NO_RESUME : 0) |
	    (o->dry_run ? WIRE_OPEN_DRY_RUN : 0) |
	    (t->sends && (t->n_local > 1 || place_is_contents(t->target.path)) ? WIRE_OPEN_INTO_DIR : 0) |
	    (t->sends && t->n_local == 1 && place_is_contents(t->local[0]) ? WIRE_OPEN_CONTENTS : 0);
}

static uint8_t sync_wanted(enum ptcp_fsync f)
{
	static const uint8_t wire[] = { [PTCP_FSYNC_GROUP] = WIRE_FSYNC_GROUP,
		[PTCP_FSYNC_NONE] = WIRE_FSYNC_NONE, [PTCP_FSYNC_FILE] = WIRE_FSYNC_FILE };

	return wire[f];
}

/* On the control connection t->chan, which is taken. `way`: how it came about. */
static int start_party(struct ptcp_transfer *t, enum far_way way, struct ptcp_err *e)
{
	unsigned most = fds_connections(), wanted = client_streams(t);
	unsigned streams = wanted < most ? wanted : most, few = streams < STEER_START ? streams : STEER_START;
	bool chosen = t->o.streams == 0, steered = chosen && !t->o.dry_run && way != FAR_PIPE;
	struct wire_open open = {
		.role = t->sends ? WIRE_YOU_RECEIVE : WIRE_YOU_SEND, .cipher = (uint8_t)t->o.cipher,
		.fsync = sync_wanted(t->o.fsync),
		.flags = (uint32_t)open_flags(t) | (steered ? WIRE_OPEN_STEERED : 0), .n_paths = t->n_paths,
		.streams = (uint16_t)(chosen && !steered ? few : streams),
		.paths = { t->paths, t->paths_bytes }
	};
	char address[SOCK_HOST_BYTES] = "";
	struct party_opts o = {
		.host = &t->host, .control = t->chan, .connects = way == FAR_DIRECT,
		.one_channel = way == FAR_PIPE, .address = address,
		.sock = { t->o.family, client_timeout_ns(t), t->congestion },
		.open = &open, .max_streams = PTCP_STREAMS_MAX,
		.fixed_streams = (uint16_t)few,
		.timeout_ns = client_timeout_ns(t), .ops = &client_party_ops, .arg = t
	};
	int r;

	client_name_path(t);
	if (t->prober != NULL) {
		open.role = t->prober->receives ? WIRE_YOU_FLOOD : WIRE_YOU_DROP;
		open.flags = WIRE_OPEN_STEERED;
	}
	t->chan = NULL;
	if (o.connects && (r = sock_split(t->peer, address, &o.port, t->target.port, e)) < 0) {
		chan_free(o.control);
		return r;
	}
	return party_new(&t->party, &o, e);
}

static void on_opened(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	strcpy(t->fingerprint, chan_fingerprint(t->chan));
	timer_set(t->timer, MONO_NEVER);
	if (check_host(t, t->fingerprint, &why) < 0) {
		client_finish(t, &why);
	} else if (start_party(t, FAR_DIRECT, &why) < 0) {
		client_finish(t, &why);
	}
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
	client_finish(t, &why);
}

static const struct chan_ops chan_ops = { on_opened, on_nothing, on_nothing, on_closed };

static void on_dialled(void *arg, int fd, const char *address, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct chan_opts o = { .fd = fd, .alpn = ALPN_CONTROL, .ops = &chan_ops, .arg = t };
	struct ptcp_err why;

	t->dial = NULL;
	if (fd < 0) {
		client_finish(t, cause);
		return;
	}
	strcpy(t->peer, address);
	timer_set(t->timer, mono_add_ns(mono_now(), client_timeout_ns(t)));
	if (chan_new(&t->chan, t->host.control, t->host.client, &o, &why) < 0)
		client_finish(t, &why);
}

static void on_timer(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	if (t->party != NULL) {
		client_show_progress(t);
		return;
	}
	err_set(&why, PTCP_ECONNECT, "connecting to %s: no TLS handshake within %.3g s (is it a ptcp daemon?)",
	    t->known_as, t->o.timeout_s);
	client_finish(t, &why);
}

/* ---- Through ssh ---- */

static void on_reached(void *arg, enum far_way way, struct chan *c, const char *address)
{
	struct ptcp_transfer *t = arg;
	char text[2 * sizeof t->known_as + 200];
	struct ptcp_err why;

	t->chan = c;
	if (way == FAR_PIPE && t->prober != NULL) {
		err_set(&why, PTCP_ECONNECT, "%s: no TCP connection could be made to it, nor from it to here, and through ssh "
		    "there is one stream only (open a port there to this host)", t->known_as);
		client_finish(t, &why);
		return;
	}
	strcpy(t->fingerprint, chan_fingerprint(c));
	snprintf(t->peer, sizeof t->peer, "%s", address);
	if (way == FAR_PIPE) {
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

static struct party *party_of(void *arg)
{
	struct ptcp_transfer *t = arg;

	return t->party;
}

static const struct far_ops far_ops = { on_reached, on_far_failed, party_of };

static int connect_through_ssh(struct ptcp_transfer *t, const struct sock_opts *so, struct ptcp_err *e)
{
	struct far_opts o = { .host = &t->host, .target = &t->target, .ssh = t->ssh,
		.remote_ptcp = t->remote_ptcp, .remote_port = t->o.remote_port, .sock = *so,
		.ops = &far_ops, .arg = t };

	return far_new(&t->far, &o, e);
}

int client_connect(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct sock_opts so = { t->o.family, client_timeout_ns(t), t->congestion };
	int r;

	if ((r = timer_new(&t->timer, t->loop, on_timer, t, e)) < 0)
		return r;
	if (t->target.ssh)
		return connect_through_ssh(t, &so, e);
	return dial_start(&t->dial, t->loop, t->target.host, t->target.port, &so, on_dialled, t, e);
}

void client_disconnect(struct ptcp_transfer *t)
{
	far_free(t->far);
	t->far = NULL;
	dial_cancel(t->dial);
	t->dial = NULL;
	chan_free(t->chan);
	t->chan = NULL;
	timer_free(t->timer);
	t->timer = NULL;
}
