#include "core/err.h"
#include "session/session_impl.h"

#define RTT_MAX_S 5.0 /* longest RTT that prolongs the wait for a silent peer */

void control_init(struct session *sess, const struct session_opts *o, uint64_t quiet_ns)
{
	sess->control = (struct control){ .chan = o->control, .quiet_ns = quiet_ns, .return_by = MONO_NEVER };
	control_replay_init(&sess->control.replay, o->connects && o->open != NULL, o->path,
	    o->paths != NULL ? o->paths->n : 1, mono_now());
	sess->control.replay.retained.memory = o->memory;
}

static struct control_replay_session replay_session(const struct session *sess)
{
	return (struct control_replay_session){ .agreed = engine_linger_ns(sess->engine) > 0, .running = sess->running,
		.failed = sess->end.failed, .over = sess->end.over, .gone = sess->end.gone_posted,
		.receives = sess->receive != NULL,
		.last_input = engine_last_input(sess->engine), .quiet_ns = sess->control.quiet_ns,
		.rtt_ns = sess->control.rtt_ns };
}

bool control_is_up(const struct session *sess) { return sess->control.replay.state == CONTROL_UP; }

bool control_may_resume(const struct session *sess)
{
	struct control_replay_session s = replay_session(sess);

	return control_replay_possible(&sess->control.replay, &s);
}

bool control_wants_successor(const struct session *sess)
{
	struct control_replay_session s = replay_session(sess);

	return control_replay_wants(&sess->control.replay, &s);
}

int session_control_fd(const struct session *sess)
{
	return sess->control.chan != NULL ? chan_fd(sess->control.chan) : -1;
}

/* ---- Frames ---- */

/* Retransmits first; returns how many of the n new bytes were written. */
static size_t write_bytes(struct session *sess, const uint8_t *bytes, size_t n)
{
	struct control_replay *r = &sess->control.replay;
	struct span again;
	size_t done;

	if (engine_linger_ns(sess->engine) == 0)
		return n > 0 ? chan_write(sess->control.chan, bytes, n) : 0;
	while ((again = control_replay_unsent(r)).n > 0) {
		if ((done = chan_write(sess->control.chan, again.p, again.n)) == 0)
			return 0;
		control_replay_resent(r, done);
	}
	if ((n = control_replay_room(r, n)) == 0)
		return 0;
	done = chan_write(sess->control.chan, bytes, n);
	control_replay_sent(r, bytes, done);
	return done;
}

/* True: the outbox is empty. */
static bool write_outbox(struct session *sess)
{
	struct buf *b = &engine_outbox(sess->engine)->b;
	size_t n;

	do
		engine_sent(sess->engine, n = write_bytes(sess, buf_head(b), buf_len(b)));
	while (n > 0 && buf_len(b) > 0);
	return buf_len(b) == 0;
}

void control_flush(struct session *sess)
{
	if (sess->control.chan == NULL)
		return;
	do
		if ((sess->control.mux == NULL || mux_is_between(sess->control.mux)) &&
		    (!write_outbox(sess) || sess->end.over))
			break;
	while (sess->control.mux != NULL && mux_output(sess->control.mux, sess->control.chan));
	chan_flush(sess->control.chan);
}

static void on_mux_control(void *arg, const uint8_t *bytes, size_t n)
{
	struct session *sess = arg;

	engine_input(sess->engine, bytes, n, mono_now());
}

static void on_mux_pump(void *arg)
{
	struct session *sess = arg;

	if (sess->control.chan != NULL && !sess->end.over && mux_has_pending(sess->control.mux))
		mux_input(sess->control.mux, sess->control.chan);
	session_pump(sess);
}

const struct mux_ops control_mux_ops = { on_mux_control, on_mux_pump };

static void on_readable(void *arg)
{
	struct session *sess = arg;
	struct outbox *acks;
	uint8_t bytes[16384];
	size_t n, total = 0;

	if (sess->control.mux != NULL && !sess->end.over) {
		mux_input(sess->control.mux, sess->control.chan);
		engine_input(sess->engine, bytes, 0, mono_now()); /* blocks are a sign of life, too */
	} else {
		while (total < 8 * sizeof bytes && (n = chan_read(sess->control.chan, bytes, sizeof bytes)) > 0) {
			total += n;
			acks = engine_linger_ns(sess->engine) > 0 && sess->running ? engine_outbox(sess->engine) : NULL;
			control_replay_received(&sess->control.replay, n, acks);
			engine_input(sess->engine, bytes, n, mono_now());
		}
	}
	session_pump(sess);
}

static void on_writable(void *arg)
{
	session_pump(arg);
}

/* `why`: of the loss, or of the last attempt. */
static void report_attempt(const struct session *sess, const char *why)
{
	struct mono now = mono_now();
	unsigned n = sess->slot[SLOT_CONTROL].retries;

	if (control_wants_successor(sess) && sess->o.ops->reconnecting != NULL)
		sess->o.ops->reconnecting(sess->o.arg, n + 1, mono_diff_ns(sess->slot[SLOT_CONTROL].retry_at, now),
		    why);
}

bool control_take_lost(struct session *sess, struct mtu_lost *out)
{
	bool lost = sess->control.lost;

	*out = sess->control.lost_conn;
	sess->control.lost = false;
	return lost;
}

static void outage(struct session *sess, bool begins)
{
	if (sess->payload != NULL && sess->payload->outage != NULL)
		sess->payload->outage(sess, begins);
}

/* The control connection, which is open still or was closed by the peer. */
static void note_lost(struct session *sess, const char *why)
{
	struct tcpinfo i;

	if (sess->control.chan != NULL && tcpinfo_read(&i, chan_fd(sess->control.chan)) == 0) {
		sess->control.lost = true;
		sess->control.lost_conn = (struct mtu_lost){ i.acked_bytes + i.received_bytes, MTU_SILENT_S };
	}
	outage(sess, true);
	log_at(&sess->o.context->log, LOG_INFO, "session", "event=control-lost why=\"%s\"", why);
}

/* An acceptor waits for the time-out: the connection was closed, probably with the client. A starter that should try
 * for less than the time-out ends earlier. */
static void limit_loss(struct session *sess, const char *why)
{
	uint64_t limit_ns = sess->o.timeout_ns;

	err_set(&sess->control.why, PTCP_ECONNECT, "%s", why);
	if (sess->control.replay.opens) {
		if (sess->o.linger_ns >= limit_ns)
			return;
		limit_ns = sess->o.linger_ns;
	}
	if (sess->control.return_by.ns == MONO_NEVER.ns)
		sess->control.return_by = mono_add_ns(mono_now(), limit_ns);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct session *sess = arg;
	struct ptcp_err cut;

	err_set(&cut, PTCP_EPEER,
	    "control connection: %s (run the same command again when the other host can be reached)",
	    why != NULL ? why->msg : "the peer closed it");
	if (why == NULL)
		control_replay_end(&sess->control.replay);
	if (control_may_resume(sess)) {
		note_lost(sess, why->msg);
		control_replay_lost(&sess->control.replay);
		limit_loss(sess, why->msg);
		report_attempt(sess, why->msg);
	} else {
		engine_closed(sess->engine, &cut);
	}
	chan_free(sess->control.chan); /* `why` is the channel's */
	sess->control.chan = NULL;
	session_pump(sess);
}

const struct chan_ops control_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };

int control_on_ack(void *arg, uint64_t bytes, struct ptcp_err *e)
{
	return control_replay_acked(&((struct session *)arg)->control.replay, bytes, e);
}

/* ---- The successor ---- */

static void drop_successor(struct session *sess)
{
	chan_free(sess->control.successor);
	sess->control.successor = NULL;
	control_replay_dropped(&sess->control.replay);
}

/* Makes the successor the control connection; `violation`: only to send the reason for the failure. */
static void adopt(struct session *sess, const struct ptcp_err *violation)
{
	struct chan *c = sess->control.successor;
	struct ptcp_err why;

	sess->control.successor = NULL;
	if (chan_attach(c, sess->o.context->control, &control_ops, sess, &why) < 0) {
		chan_free(c);
		engine_fail(sess->engine, &why);
		return;
	}
	sess->control.chan = c;
	if (violation != NULL) {
		engine_fail(sess->engine, violation);
		return;
	}
	log_at(&sess->o.context->log, LOG_INFO, "session", "event=control-resumed resent_bytes=%zu",
	    sess->control.replay.resend);
	slot_retry_at(&sess->slot[SLOT_CONTROL], (struct mono){ 0 });
	sess->control.rtt_ns = 0;
	sess->control.return_by = MONO_NEVER;
	sess->control.resumed = mono_now();
	if (!sess->end.over)
		outage(sess, false);
}

static void on_answer(void *arg)
{
	struct session *sess = arg;
	struct control_replay *r = &sess->control.replay;
	uint8_t bytes[WIRE_CONTROL_ACK_MAX_BYTES];
	size_t n = chan_read(sess->control.successor, bytes, control_replay_missing(r));
	struct ptcp_err why;

	switch (control_replay_answer(r, bytes, n, mono_now(), &why)) {
	case CONTROL_ANSWER_PARTIAL:
		return;
	case CONTROL_ANSWER_RESUMED:
		adopt(sess, NULL);
		break;
	case CONTROL_ANSWER_WRONG:
		drop_successor(sess);
		break;
	case CONTROL_ANSWER_VIOLATION:
		adopt(sess, &why);
		break;
	}
	session_pump(sess);
}

static void on_successor_closed(void *arg, const struct ptcp_err *why)
{
	(void)why;
	drop_successor(arg);
	session_pump(arg);
}

static const struct chan_ops successor_ops = { .readable = on_answer, .closed = on_successor_closed };

void control_take(struct session *sess, struct chan *c)
{
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	struct ptcp_err why;

	if (!control_may_resume(sess)) {
		chan_free(c);
		return;
	}
	drop_successor(sess);
	chan_free(sess->control.chan); /* the peer has left it */
	sess->control.chan = NULL;
	if (chan_attach(c, sess->o.context->control, &successor_ops, sess, &why) < 0) {
		chan_free(c);
		return;
	}
	sess->control.successor = c;
	chan_write(c, frame, control_replay_begin(&sess->control.replay, frame, mono_now()));
	chan_flush(c);
	session_pump(sess);
}

void control_failed(struct session *sess, const struct connect_result *r)
{
	/* After its session, an ephemeral server is gone, and has missed no frame. */
	bool over = r->cause == CONNECT_REFUSED || (sess->o.once && sess->end.over);
	/* An address may be another host's by now: if the name is next, the name decides. */
	bool stranger = r->cause == CONNECT_IDENTITY && !sess->slot[SLOT_CONTROL].attempt.by_name;
	bool path_over = stranger || (r->cause == CONNECT_RELAY && r->why.code == PTCP_EREFUSED);
	struct ptcp_err e;

	if (control_replay_failed(&sess->control.replay, &r->why, over, path_over, &e) < 0) {
		engine_fail(sess->engine, &e);
		return;
	}
	err_set(&sess->control.why, PTCP_ECONNECT, "%s", r->why.msg);
	report_attempt(sess, r->why.msg);
}

/* On a slow path, or behind a long queue, silence of a few RTTs is usual. */
static bool rtt_excuses(struct session *sess)
{
	struct chan *c = sess->control.chan != NULL ? sess->control.chan : sess->control.successor;
	uint64_t before_ns = sess->control.rtt_ns;
	struct tcpinfo i;

	if (c == NULL || tcpinfo_read(&i, chan_fd(c)) < 0)
		return false;
	sess->control.rtt_ns = (uint64_t)((i.rtt_s < RTT_MAX_S ? i.rtt_s : RTT_MAX_S) * 1e9);
	return sess->control.rtt_ns > before_ns;
}

/* In LOST. */
static void drop(struct session *sess, const char *why)
{
	note_lost(sess, why);
	if (sess->control.chan != NULL)
		sock_reset_on_close(chan_fd(sess->control.chan));
	if (sess->control.successor != NULL)
		sock_reset_on_close(chan_fd(sess->control.successor));
	chan_free(sess->control.chan);
	chan_free(sess->control.successor);
	sess->control.chan = sess->control.successor = NULL;
	report_attempt(sess, why);
}

void control_stuck(struct session *sess)
{
	control_replay_lost(&sess->control.replay);
	drop(sess, "the control connection is stuck");
}

void control_pump(struct session *sess, struct mono now)
{
	struct control_replay_session s = replay_session(sess);
	struct ptcp_err why;

	if (now.ns >= sess->control.return_by.ns) {
		err_set(&why, PTCP_EPEER, "control connection: the client closed it and did not return");
		engine_closed(sess->engine, sess->control.replay.opens ? &sess->control.why : &why);
		return;
	}
	if (control_replay_deadline(&sess->control.replay, &s).ns <= now.ns && rtt_excuses(sess))
		s = replay_session(sess);
	if (control_replay_tick(&sess->control.replay, &s, now))
		drop(sess, "the control connection is silent");
}

struct mono control_deadline(const struct session *sess)
{
	struct control_replay_session s = replay_session(sess);

	return mono_min(sess->control.return_by, control_replay_deadline(&sess->control.replay, &s));
}

void control_free(struct session *sess)
{
	chan_free(sess->control.chan);
	chan_free(sess->control.successor);
	control_replay_fini(&sess->control.replay);
}
