/* Connects to the server started through ssh: directly, through the port of a service or at a port of its own, else
 * from the server to this host, else through ssh. */
#include <stdio.h>
#include <string.h>

#include "client/ssh_start_impl.h"
#include "conn/start_args.h"
#include "core/err.h"
#include "core/units.h"

#define MODE_NS (5 * NS_PER_S)         /* limit for connecting directly, and back */
#define STAGGER_NS (250 * NS_PER_MS)   /* time between the first address and the second */

/* To the started server, whose fingerprint came through ssh. */
static struct connect_opts connect_opts(const struct ssh_start *f, const char *host, unsigned port,
    uint64_t timeout_ns)
{
	return (struct connect_opts){ .context = f->o.context, .host = host, .port = port, .timeout_ns = timeout_ns,
		.sock = f->o.sock, .alpn = f->o.job ? ALPN_JOB : ALPN_CONTROL, .fingerprint = f->answer.fingerprint };
}

static void stop_attempts(struct ssh_start *f)
{
	unsigned i;

	for (i = 0; i < f->n_attempts; i++) {
		connect_cancel(f->attempt[i].connect);
		f->attempt[i].connect = NULL;
	}
	line_reader_free(f->names_lines);
	child_free(f->names);
	timer_free(f->stagger);
	f->names_lines = NULL;
	f->names = NULL;
	f->stagger = NULL;
}

static void stop_listening(struct ssh_start *f)
{
	listener_free(f->listener);
	f->listener = NULL;
	pending_empty(&f->pending);
}

static void reached(struct ssh_start *f, enum ssh_start_mode mode, struct chan *c, struct connect *spare,
    const char *address, bool shared)
{
	static const char *const how[] = { "own-port", "reverse", "ssh" };

	log_at(&f->o.context->log, LOG_INFO, "ssh", "event=connected through=%s address=%s",
	    shared ? "shared-port" : how[mode], address);
	f->state = REACHED;
	stop_attempts(f);
	timer_set(f->timer, MONO_NEVER);
	f->o.ops->reached(f->o.arg, mode, c, spare, address, shared ? f->answer.label : NULL);
}

/* ---- Through ssh ---- */

static void on_pipe_connected(void *arg, const struct connect_result *r)
{
	struct ssh_start *f = arg;

	f->pipe = NULL;
	if (r->chan == NULL)
		ssh_start_fail(f, &r->why);
	else
		reached(f, SSH_START_PIPE, r->chan, NULL, r->address, false);
}

static void pipe_begin(struct ssh_start *f)
{
	stop_listening(f);
	f->state = PIPE;
	timer_set(f->timer, mono_add_ns(mono_now(), f->o.sock.timeout_ns));
	line_reader_send(f->lines, "pipe");
}

static void pipe_open(struct ssh_start *f)
{
	struct connect_opts o = connect_opts(f, f->name, 0, f->o.sock.timeout_ns);
	struct ptcp_err why;
	int fd = line_reader_take_fd(f->lines);

	o.hint = "see the output of ssh, and run the same command again";
	o.done = on_pipe_connected;
	o.arg = f;
	f->lines = NULL;
	if (connect_over(&f->pipe, &fd, &o, &why) < 0)
		ssh_start_fail(f, &why);
}

/* ---- From the server ---- */

static int on_control(void *arg, struct inbound *g, struct ptcp_err *e)
{
	struct ssh_start *f = arg;

	if (f->state != BACK || strcmp(chan_fingerprint(g->chan), f->answer.fingerprint) != 0)
		return err_set(e, PTCP_EREFUSED, "no session: not the server that was started, or too late");
	admission_session(f->pending.admission, g->from, true);
	reached(f, SSH_START_BACK, inbound_take_chan(g), NULL, g->address, false);
	return 0;
}

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e)
{
	struct ssh_start *f = arg;
	struct session *sess = f->o.ops->session(f->o.arg);

	if (session_join(sess, g->chan, j) != SESSION_JOIN_VALID)
		return err_set(e, PTCP_EREFUSED, "no such session or stream");
	*plaintext = session_cipher(sess) == PTCP_CIPHER_NONE;
	return 0;
}

static void on_stream(void *arg, struct chan *c, const struct wire_join *j)
{
	struct ssh_start *f = arg;
	struct session *sess = f->o.ops->session(f->o.arg);

	if (sess != NULL)
		session_add_stream(sess, j->stream, c);
	else
		chan_free(c);
}

static const struct inbound_ops inbound_ops = { .control = on_control, .join = on_join, .stream = on_stream };

static void on_accepted(void *arg, int *fd, const char *address)
{
	struct ssh_start *f = arg;

	pending_take(&f->pending, fd, address, false);
}

/* For one session, of the started server. */
int ssh_connect_init(struct ssh_start *f, struct ptcp_err *e)
{
	struct pending_opts o = { .context = f->o.context, .timeout_ns = f->o.sock.timeout_ns,
		.waiting = 2 * PTCP_STREAMS_MAX, .sessions = 1, .streams = PTCP_STREAMS_MAX,
		.ops = &inbound_ops, .arg = f };

	return pending_init(&f->pending, &o, e);
}

static void back_begin(struct ssh_start *f)
{
	char local[SSH_HELLO_ADDRESSES][SOCK_HOST_BYTES], text[LINE_READER_BYTES] = "";
	unsigned i, n;
	struct ptcp_err why;
	size_t used = 0;

	stop_attempts(f);
	f->state = BACK;
	if (listener_new(&f->listener, f->o.context->control, f->o.sock.family == 4 ? "0.0.0.0:0" : ":0", 0,
	    on_accepted, f, &why) < 0) {
		pipe_begin(f);
		return;
	}
	n = sock_local(local, SSH_HELLO_ADDRESSES);
	for (i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " %s", local[i]);
	timer_set(f->timer, mono_add_ns(mono_now(), MODE_NS));
	log_at(&f->o.context->log, LOG_INFO, "ssh", "event=reverse-offered port=%u", listener_port(f->listener));
	line_reader_send(f->lines, "back %u%s", listener_port(f->listener), text);
}

/* ---- Directly ---- */

static void query_names(struct ssh_start *f);
static void attempt_own(struct ssh_start *f);

static void back_if_none(struct ssh_start *f)
{
	unsigned i;

	if (f->state != DIRECT)
		return;
	for (i = 0; i < f->n_attempts; i++)
		if (f->attempt[i].connect != NULL)
			return;
	if (f->deferred_own)
		attempt_own(f);
	else if (!f->queried_names)
		query_names(f);
	else if (f->names_lines == NULL)
		back_begin(f);
}

static void attempt_failed(struct ssh_start *f, bool shared, const char *host, const struct ptcp_err *why)
{
	log_at(&f->o.context->log, LOG_INFO, "ssh", "event=direct-failed through=%s to=%s why=\"%s\"",
	    shared ? "shared-port" : "own-port", host, why->msg);
	back_if_none(f);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct ssh_attempt *a = arg;

	a->connect = NULL;
	if (r->chan == NULL)
		attempt_failed(a->start, a->shared, r->address, &r->why);
	else
		reached(a->start, SSH_START_DIRECT, r->chan, r->spare, r->address, a->shared);
}

static void attempt(struct ssh_start *f, const char *host, bool shared)
{
	struct ssh_attempt *a = &f->attempt[f->n_attempts++];
	struct connect_opts o = connect_opts(f, host, shared ? f->answer.share_port : f->answer.port,
	    f->o.sock.timeout_ns < MODE_NS ? f->o.sock.timeout_ns : MODE_NS);
	struct ptcp_err why;

	a->start = f;
	a->shared = shared;
	o.label = shared ? f->answer.label : NULL;
	o.spare = f->o.spare;
	o.done = on_connected;
	o.arg = a;
	if (connect_start(&a->connect, &o, &why) < 0)
		attempt_failed(f, shared, host, &why);
}

static void attempt_own(struct ssh_start *f)
{
	f->deferred_own = false;
	attempt(f, f->answer.address, false);
}

/* ssh -G prints the configuration for a host; "hostname" is the address ssh connects to. */
static void on_name(void *arg, const char *line)
{
	static const char key[] = "hostname ";
	struct ssh_start *f = arg;

	if (strncmp(line, key, strlen(key)) != 0 || strlen(line + strlen(key)) >= SOCK_HOST_BYTES)
		return;
	line_reader_free(f->names_lines);
	f->names_lines = NULL;
	if (strcmp(line + strlen(key), f->answer.address) == 0) {
		back_if_none(f);
		return;
	}
	if (f->answer.share_port != 0)
		attempt(f, line + strlen(key), true);
	if (f->state == DIRECT)
		attempt(f, line + strlen(key), false);
}

static void on_names_closed(void *arg, bool broken)
{
	struct ssh_start *f = arg;

	(void)broken;
	line_reader_free(f->names_lines);
	f->names_lines = NULL;
	back_if_none(f);
}

static const struct line_reader_ops names_ops = { .line = on_name, .closed = on_names_closed };

static void query_names(struct ssh_start *f)
{
	struct child_opts co = { .quiet = true }; /* the end of its output suffices */
	struct start_args args;
	struct ptcp_err e;
	int fd;

	if (f->queried_names)
		return;
	f->queried_names = true;
	if (ssh_args(&args, f->o.ssh, f->o.target, &f->o.sock, NULL, &e) == 0) {
		co.argv = args.at;
		if (child_start(&f->names, f->o.context->control, &co, &fd, &e) == 0)
			line_reader_new(&f->names_lines, f->o.context->control, &fd, &names_ops, f, &e);
	}
	back_if_none(f);
}

static void on_stagger(void *arg)
{
	struct ssh_start *f = arg;

	if (f->deferred_own)
		attempt_own(f);
	query_names(f);
}

void ssh_connect_begin(struct ssh_start *f)
{
	struct ptcp_err why;
	struct mono now = mono_now();

	if (f->o.job) { /* few bytes */
		pipe_begin(f);
		return;
	}
	f->state = DIRECT;
	timer_set(f->timer, mono_add_ns(now, MODE_NS));
	if (timer_new(&f->stagger, f->o.context->control, on_stagger, f, &why) < 0) {
		ssh_start_fail(f, &why);
		return;
	}
	timer_set(f->stagger, mono_add_ns(now, STAGGER_NS));
	if (f->answer.address[0] == '\0') {
		query_names(f);
		return;
	}
	f->deferred_own = f->answer.share_port != 0;
	attempt(f, f->answer.address, f->deferred_own);
}

/* ---- From one mode to the next ---- */

void ssh_connect_line(struct ssh_start *f, const char *line)
{
	if (f->state == BACK && strcmp(line, "cannot") == 0)
		pipe_begin(f);
	else if (f->state == PIPE && strcmp(line, "pipe") == 0)
		pipe_open(f);
}

void ssh_connect_timeout(struct ssh_start *f)
{
	struct ptcp_err why;

	if (f->state == DIRECT) {
		back_begin(f);
	} else if (f->state == BACK) {
		pipe_begin(f);
	} else if (f->state == PIPE) {
		err_set(&why, PTCP_ETIMEOUT, "%s: no response through ssh (run the same command again)", f->name);
		ssh_start_fail(f, &why);
	}
}

void ssh_connect_end(struct ssh_start *f)
{
	stop_attempts(f);
	stop_listening(f);
	connect_cancel(f->pipe);
}
