/* Connects over the first path that works, and starts the session. */
#include <stdio.h>
#include <string.h>

#include "client/kept_host.h"
#include "client/task_impl.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/fd_budget.h"

#define PATH_NS (5 * NS_PER_S)

uint32_t task_open_flags(const struct ptcp_task *t)
{
	const struct ptcp_transfer_opts *o = &t->o;
	const struct task_files *f = &t->files;
	uint32_t flags = options_open_flags(o);

	if (f->input == NULL)
		flags &= ~(uint32_t)WIRE_OPEN_PARTIAL;
	return flags | (f->input != NULL ? WIRE_OPEN_FILE : 0) |
	    (f->selection != NULL && !f->sends ? WIRE_OPEN_SELECTED : 0) |
	    (f->sends && (f->n_local > 1 || text_is_contents(t->target.path)) ? WIRE_OPEN_INTO_DIR : 0) |
	    (f->sends && f->n_local == 1 &&
	    (f->selection != NULL || text_is_contents(f->local[0])) ? WIRE_OPEN_CONTENTS : 0);
}

uint8_t task_fsync(const struct ptcp_task *t)
{
	static const uint8_t wire[] = { [PTCP_FSYNC_GROUP] = WIRE_FSYNC_GROUP,
		[PTCP_FSYNC_NONE] = WIRE_FSYNC_NONE, [PTCP_FSYNC_FILE] = WIRE_FSYNC_FILE };

	return wire[t->o.fsync];
}

uint8_t task_congestion(const struct ptcp_task *t)
{
	static const char *const names[] = { [WIRE_CC_AUTO] = "auto", [WIRE_CC_SYSTEM] = "system",
		[WIRE_CC_CUBIC] = "cubic", [WIRE_CC_BBR] = "bbr", [WIRE_CC_RENO] = "reno" };
	uint8_t i = WIRE_CC_RENO;

	while (i > WIRE_CC_AUTO && t->o.congestion != NULL && strcmp(t->o.congestion, names[i]) != 0)
		i--;
	if (t->o.congestion != NULL && i > WIRE_CC_AUTO)
		return i;
	if (task_yields(t) || task_has_deadline(t))
		return WIRE_CC_YIELD;
	/* The kernels of movers that send may permit other ones. */
	if (t->movers != NULL && t->files.sends)
		return WIRE_CC_SYSTEM;
	/* Judged, and changed, only with the number of streams. */
	return t->history.adaptive || (t->prober != NULL && t->prober->judges_streams) ? WIRE_CC_AUTO : WIRE_CC_FAIR;
}

/* Options of connections from this host; the texts belong to the task. */
static struct sock_opts sock_of(const struct ptcp_task *t, uint64_t timeout_ns)
{
	const char *bind = t->o.wire.bind, *dscp = t->o.wire.dscp;
	int family = bind != NULL ? sock_local_family(bind, NULL) : 0;

	return (struct sock_opts){ .family = family > 0 ? family : t->o.family, .timeout_ns = timeout_ns, .local = bind,
		.dscp = dscp != NULL ? (unsigned)sock_dscp(dscp) : task_yields(t) ? SOCK_DSCP_LE : SOCK_DSCP_DF };
}

/* Through ssh, but over paths with relays: the path that ssh takes does not count. */
static bool is_routed(const struct ptcp_task *t)
{
	return t->target.ssh && (t->paths.n > 1 || t->paths.at[0].n_relays > 0);
}

/* As far as the network is concerned: ssh has its own names. */
static const char *target_host(const struct ptcp_task *t) { return is_routed(t) ? t->paths.host : t->target.host; }
static unsigned target_port(const struct ptcp_task *t) { return is_routed(t) ? t->paths.port : t->target.port; }

/* Where direct streams connect to: the address reached, or the name where that was a relay. */
static int direct_address(const struct ptcp_task *t, char host[SOCK_HOST_BYTES], unsigned *port, struct ptcp_err *e)
{
	if (t->paths.at[t->tries.path].n_relays == 0)
		return sock_split(t->peer, host, port, target_port(t), e);
	strcpy(host, target_host(t));
	*port = target_port(t);
	return 0;
}

static const char *task_label(const struct ptcp_task *t) { return t->label[0] != '\0' ? t->label : NULL; }

static unsigned max_of(unsigned a, unsigned b) { return a > b ? a : b; }
static unsigned min_of(unsigned a, unsigned b) { return a < b ? a : b; }

/* Streams can connect to hosts that the server names, and none yields to other flows, which a mover does not. */
static bool reaches_movers(const struct ptcp_task *t, enum ssh_start_mode mode)
{
	return mode == SSH_START_DIRECT && !t->avoids_movers && !t->target.ssh && t->files.input == NULL &&
	    t->prober == NULL && !t->o.dry_run && !task_yields(t) && !task_has_deadline(t);
}

struct task_streams task_streams(const struct ptcp_task *t, enum ssh_start_mode mode)
{
	struct task_streams n = { .fixed = t->o.streams > 0, .reaches_movers = reaches_movers(t, mode) };
	unsigned most;

	n.adaptive = !n.fixed && !t->o.dry_run && mode != SSH_START_PIPE && t->paths.n == 1 && !t->paths.spools &&
	    t->o.rate == NULL && atomic_load(&t->path_rates.bps[0]) == 0;
	/* Without movers; each path has at least one stream. */
	n.few = max_of(task_yields(t) ? 1 : min_of(ADVICE_START, task_max_streams(t)), t->paths.n_places);
	/* how many join is not known yet */
	most = n.fixed || t->movers == NULL ? task_max_streams(t) : PTCP_STREAMS_MAX;
	n.requested = task_yields(t) || !(n.fixed || n.adaptive || n.reaches_movers || t->movers != NULL) ? n.few :
	    max_of(most, t->paths.n_places);
	return n;
}

uint8_t task_compress(const struct ptcp_task *t)
{
	return t->o.wire.compress == PTCP_COMPRESS_AUTO ? WIRE_COMPRESS_AUTO : (uint8_t)t->o.wire.compress;
}

static int new_session(struct ptcp_task *t, enum ssh_start_mode mode, struct chan *control, struct connect *spare,
    struct ptcp_err *e)
{
	const struct task_streams n = task_streams(t, mode);
	struct wire_open open = {
		.role = t->files.sends ? WIRE_ACCEPTOR_RECEIVES : WIRE_ACCEPTOR_SENDS, .cipher = (uint8_t)t->o.cipher,
		.fsync = task_fsync(t),
		.flags = task_open_flags(t) | (t->paths.spools ? WIRE_OPEN_SPOOLED : 0) |
		    (n.reaches_movers ? WIRE_OPEN_MOVERS : 0),
		.n_paths = t->files.n_open_paths,
		.streams = (uint16_t)min_of(n.requested, fd_budget_connections()),
		.wait_ms = wait_ms(t), .max_delete = t->o.delete_extra && t->prober == NULL ? t->o.older.max_delete : 0,
		.modify_window_s = t->prober == NULL ? t->o.older.modify_window_s : 0,
		.paths = { t->files.open_paths, t->files.open_paths_bytes },
		.stripe = (uint32_t)(t->o.mover.stripe_bytes / WIRE_STRIPE_BYTES),
		.compress = t->prober == NULL ? task_compress(t) : 0,
		.preserve = t->prober == NULL ? options_preserve(&t->o) : 0
	};
	char address[SOCK_HOST_BYTES] = "";
	struct session_opts o = {
		.context = &t->context, .control = control, .spare = spare, .connects = mode == SSH_START_DIRECT,
		.one_channel = mode == SSH_START_PIPE, .once = t->o.remote.launch != NULL || is_routed(t),
		.address = address,
		.label = task_label(t), .name = t->target.ssh ? NULL : t->target.host, /* ssh has aliases */
		.paths = &t->paths, .path = t->tries.path, .route_session = t->route_session,
		.sock = sock_of(t, task_timeout_ns(t)),
		.open = &open, .max_streams = PTCP_STREAMS_MAX,
		.timeout_ns = task_timeout_ns(t), .ops = &task_session_ops, .arg = t,
		.linger_ns = t->prober != NULL || t->o.dry_run ? 0 : (uint64_t)(t->o.retry_for_s * 1e9),
		.movers = t->movers, .streams = n.fixed || n.adaptive ? 0 : n.few, .fixed_streams = n.fixed,
		.direct_io = t->o.direct_io, .map = t->files.map
	};
	int r;

	t->history.adaptive = n.adaptive && t->prober == NULL;
	open.congestion = task_congestion(t);
	limits_put(t, &open);
	if (t->prober != NULL) {
		open.role = t->prober->receives ? WIRE_ACCEPTOR_GENERATES : WIRE_ACCEPTOR_DISCARDS;
		open.flags = 0;
	}
	if (o.connects && (r = direct_address(t, address, &o.port, e)) < 0) {
		connect_cancel(spare);
		chan_free(control);
		return r;
	}
	return session_new(&t->session, &o, e);
}

/* On the control connection, which is taken, as is the spare data connection. */
static void start_session(struct ptcp_task *t, enum ssh_start_mode mode, struct chan *control, struct connect *spare)
{
	struct ptcp_err why;

	if (t->over) { /* canceled in this turn of the loop */
		connect_cancel(spare);
		chan_free(control);
		return;
	}
	if (t->movers != NULL && mode != SSH_START_DIRECT) {
		chan_free(control);
		err_set(&why, PTCP_ECONNECT, "%s: movers cannot connect to the server there, as this host cannot (open "
		    "a port there, and name it with --remote-port)", t->known_as);
		task_finish(t, &why);
		return;
	}
	strcpy(t->fingerprint, chan_fingerprint(control));
	task_name_path(t, chan_fd(control));
	if (new_session(t, mode, control, spare, &why) < 0) {
		task_finish(t, &why);
		return;
	}
	if (task_add_early(t, t->session, &why) < 0) {
		session_cancel(t->session, &why);
		return;
	}
	session_offer_early(t->session);
	atomic_store(&t->path_rates.changed, true); /* path rates that were set before, or in an earlier attempt */
	task_pace(t);
}

static int try_path(struct ptcp_task *t, struct ptcp_err *e);

static void set_target_port(struct ptcp_task *t, unsigned port)
{
	t->paths.port = port;
	if (t->target.ssh)
		return;
	t->target.port = port;
	remote_name(&t->target, t->known_as, sizeof t->known_as);
}

/* The shared port of a launched server did not lead to it: begins again with the server's own port. */
static void try_own_port(struct ptcp_task *t)
{
	struct ptcp_err e;

	log_at(&t->context.log, LOG_INFO, "ssh", "event=shared-port-failed why=\"%s\"", t->tries.why.msg);
	set_target_port(t, t->own_port);
	t->own_port = 0;
	t->label[0] = '\0';
	if (task_dial(t, &e) < 0)
		task_finish(t, &e);
}

/* Tries the next path; after the last one, the first path's error is the outcome. */
static void path_failed(struct ptcp_task *t, const struct connect_result *r)
{
	const struct ptcp_err *why = &r->why;
	struct ptcp_err next;

	if (t->trust.unknown && t->o.trust != NULL) {
		task_finish(t, why);
		return;
	}
	if (path_tries_failed(&t->tries, r->cause == CONNECT_SLOW, why) && t->paths.n > 1)
		task_path_failed(t, t->tries.path, r->hop, why->msg);
	if (path_tries_all(&t->tries) && t->own_port != 0) {
		try_own_port(t);
	} else if (path_tries_next(&t->tries)) {
		if (try_path(t, &next) < 0)
			task_finish(t, &next);
	} else if (r->cause != CONNECT_CLOSED || /* the host is there, and may be busy */
	    !wait_pause(t, t->wait.until_closed, t->tries.why.msg)) {
		task_finish(t, &t->tries.why);
	}
}

static void take_job_chan(struct ptcp_task *t, struct chan *c)
{
	t->chan = c;
	strcpy(t->fingerprint, chan_fingerprint(c));
	t->job_ops->opened(t);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct ptcp_task *t = arg;

	t->connect = NULL;
	if (r->chan == NULL) {
		path_failed(t, r);
		return;
	}
	strcpy(t->peer, r->address);
	if (is_routed(t))
		log_at(&t->context.log, LOG_INFO, "ssh", "event=connected through=%s address=%s via=%s",
		    task_label(t) != NULL ? "shared-port" : "own-port", r->address,
		    paths_name(&t->paths, t->tries.path));
	if (t->remote_job == NULL) {
		start_session(t, SSH_START_DIRECT, r->chan, r->spare);
		return;
	}
	take_job_chan(t, r->chan);
}

/* Transfers of files use a data connection at once. */
static const enum ptcp_cipher *task_spare(const struct ptcp_task *t)
{
	return t->remote_job == NULL && t->prober == NULL && !t->o.dry_run && t->movers == NULL ? &t->o.cipher : NULL;
}

static int try_path(struct ptcp_task *t, struct ptcp_err *e)
{
	/* Less time for a path without an answer where alternatives are left. */
	uint64_t all_ns = task_timeout_ns(t);
	uint64_t timeout_ns = t->paths.n > 1 && !t->tries.patient && all_ns > PATH_NS ? PATH_NS : all_ns;
	const struct path *p = &t->paths.at[t->tries.path];
	struct connect_opts o = { .context = &t->context, .host = target_host(t), .port = target_port(t),
		.relay = p->relay,
		.n_relays = p->n_relays, .route_session = t->route_session, .route_control = t->route_session != 0,
		.timeout_ns = timeout_ns, .sock = sock_of(t, timeout_ns),
		.alpn = t->remote_job != NULL ? ALPN_JOB : ALPN_CONTROL, .label = task_label(t),
		.spare = task_spare(t), .check = task_trust, .done = on_connected, .arg = t };

	return connect_start(&t->connect, &o, e);
}

int task_dial(struct ptcp_task *t, struct ptcp_err *e)
{
	uint8_t random[8];
	int r;

	if ((r = tls_random(random, sizeof random, e)) < 0)
		return r;
	t->route_session = t->remote_job == NULL ? get_u64(random) | 1 : 0;
	timer_set(t->timer, MONO_NEVER);
	path_tries_begin(&t->tries, (unsigned)t->paths.place[0], t->paths.n);
	return try_path(t, e);
}

/* ---- Through ssh, or started by a command ---- */

static void on_reached(void *arg, enum ssh_start_mode mode, struct chan *c, struct connect *spare, const char *address,
    const char *label)
{
	struct ptcp_task *t = arg;
	char text[2 * sizeof t->known_as + 200];
	struct ptcp_err why;

	if (mode == SSH_START_PIPE && t->prober != NULL) {
		chan_free(c);
		err_set(&why, PTCP_ECONNECT, "%s: no TCP connection in either direction, and ssh carries one stream "
		    "only (open a port there to this host)", t->known_as);
		task_finish(t, &why);
		return;
	}
	snprintf(t->peer, sizeof t->peer, "%s", address);
	snprintf(t->label, sizeof t->label, "%s", label != NULL ? label : "");
	if (t->remote_job != NULL) {
		take_job_chan(t, c);
		return;
	}
	if (mode == SSH_START_PIPE) {
		snprintf(text, sizeof text, "%s: no TCP connection in either direction: all data goes through ssh, "
		    "which is slower (open a port there to this host, and name it with --remote-port)", t->known_as);
		task_warn(t, text);
	}
	start_session(t, mode, c, spare);
}

static void on_start_failed(void *arg, const struct ptcp_err *why) { task_finish(arg, why); }

static struct session *session_of(void *arg)
{
	struct ptcp_task *t = arg;

	return t->session;
}

/* From now on as with a permanent server, with a known fingerprint. */
static void on_launched(void *arg, const struct ssh_hello_answer *a)
{
	struct ptcp_task *t = arg;
	struct ptcp_err why;

	strcpy(t->trust.launched, a->fingerprint);
	strcpy(t->label, a->label);
	t->own_port = a->share_port != 0 ? a->port : 0;
	set_target_port(t, a->share_port != 0 ? a->share_port : a->port);
	if (t->target.ssh)
		strcpy(t->paths.host, a->address[0] != '\0' ? a->address : t->target.host);
	if (task_dial(t, &why) < 0)
		task_finish(t, &why);
}

static int on_install(void *arg, const char **path, struct ptcp_err *e)
{
	struct ptcp_task *t = arg;

	return t->o.remote.install != NULL ? t->o.remote.install(t->o.arg, t->known_as, path, e) : 0;
}

static const struct ssh_start_ops ssh_start_ops = { on_reached, on_start_failed, on_launched, session_of, on_install };

static void connect_again(struct ptcp_task *t)
{
	struct ptcp_err why;

	t->wait.pausing = false;
	t->trust.n_accepted = 0;
	chan_free(t->chan);
	t->chan = NULL;
	if (t->remote_job != NULL)
		t->job_ops->aim(t);
	if (task_dial(t, &why) < 0)
		task_finish(t, &why);
}

/* To show progress; to connect to a busy server again; or the server that has a job is silent. */
static void on_task_connect_timer(void *arg)
{
	struct ptcp_task *t = arg;

	if (t->wait.pausing)
		connect_again(t);
	else if (t->session != NULL)
		task_show_progress(t);
	else if (t->remote_job != NULL)
		t->job_ops->silent(t);
}

int task_connect(struct ptcp_task *t, struct ptcp_err *e)
{
	struct ssh_start_opts o = { .context = &t->context, .target = &t->target, .ssh = t->o.ssh,
		.launch = t->o.remote.launch, .routed = is_routed(t), .remote_ptcp = t->o.remote.ptcp,
		.remote_port = t->o.remote.port,
		.remote_port_or_any = t->o.remote.port_or_any, .direct_io = t->o.direct_io,
		.job = t->remote_job != NULL,
		.spare = task_spare(t), .sock = sock_of(t, task_timeout_ns(t)),
		.ops = &ssh_start_ops, .arg = t };
	struct chan *kept;
	int r;

	t->label[0] = '\0';
	t->own_port = 0;
	if ((r = timer_new(&t->timer, t->loop, on_task_connect_timer, t, e)) < 0)
		return r;
	if (t->target.ssh || t->o.remote.launch != NULL)
		return ssh_start_new(&t->ssh_start, &o, e);
	if (t->remote_job != NULL) {
		t->job_ops->aim(t);
		if ((kept = host_take(t)) != NULL) {
			take_job_chan(t, kept);
			return 0;
		}
	}
	return task_dial(t, e);
}

void task_disconnect(struct ptcp_task *t)
{
	ssh_start_free(t->ssh_start);
	t->ssh_start = NULL;
	connect_cancel(t->connect);
	t->connect = NULL;
	host_give(t);
	chan_free(t->chan);
	t->chan = NULL;
	timer_free(t->timer);
	t->timer = NULL;
}
