/* Incoming control frames: one table says in which state and role each is accepted. In a handler
 * conn.last_input is now. */
#include "core/err.h"
#include "core/units.h"
#include "engine/engine_impl.h"

static int on_error(struct engine *s, const struct wire_error *f, struct ptcp_err *e)
{
	struct ptcp_err why;

	(void)e;
	outbox_reason(&why, &f->why);
	if (s->o.starter && f->why.code == -PTCP_EUSAGE) /* the request: another attempt would fail, too */
		why.code = PTCP_EUSAGE;
	s->ended_by_peer = true;
	engine_end(s, &why);
	return 0;
}

static int on_ping(struct engine *s, const struct wire_ping *f, struct ptcp_err *e)
{
	(void)e;
	s->peer_busy = engine_tolerates(s, (enum wire_busy)f->busy, s->conn.last_input) ? (enum wire_busy)f->busy : WIRE_IDLE;
	if (s->peer_busy != WIRE_IDLE) {
		s->conn.last_progress = s->conn.last_input;
		if (s->snd != NULL)
			snd_peer_busy(s->snd, s->conn.last_input);
	}
	return 0;
}

static int on_control_ack(struct engine *s, const struct wire_control_ack *f, struct ptcp_err *e)
{
	if (s->linger_ns == 0)
		return frame_conn_unexpected(&s->conn, WIRE_CONTROL_ACK, e);
	return s->o.ops->control_ack(s->o.arg, f->bytes, e);
}

static int on_load(struct engine *s, const struct wire_load *f, struct ptcp_err *e)
{
	(void)e;
	s->o.ops->load(s->o.arg, f);
	return 0;
}

static int on_warning(struct engine *s, const struct wire_warning *n, struct ptcp_err *e)
{
	if (n->kind != WIRE_WARNING_ONLY && s->snd != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected WARNING of a failure from the receiver");
	s->warned_failures += n->kind != WIRE_WARNING_ONLY && outbox_is_failure(-(int)n->why.code);
	s->warned_unplaced |= n->kind == WIRE_WARNING_FAILED;
	s->o.ops->warning(s->o.arg, n);
	return 0;
}

/* The counts of both ends must agree. */
static int check_end(const struct engine *s, const struct wire_end *f, struct ptcp_err *e)
{
	if (s->rcv != NULL && !rcv_idle(s->rcv))
		return frame_conn_unexpected(&s->conn, WIRE_END, e);
	if (f->files != engine_files(s) || f->failed < engine_failed(s) || (s->snd != NULL && f->failed != engine_failed(s)))
		return err_set(e, PTCP_EPROTO, "the peer's count of files differs");
	return 0;
}

/* The sender's END, or that of the end that requested a measurement: send it back. */
static int on_first_end(struct engine *s, const struct wire_end *f, struct ptcp_err *e)
{
	int r;

	if ((r = check_end(s, f, e)) < 0)
		return r;
	s->end = *f;
	if (s->rcv != NULL && s->o.ops->finish != NULL && !s->o.ops->finish(s->o.arg)) {
		if (!engine_over(s)) /* else the session has failed there */
			engine_set_state(s, CLOSING, "END");
		return 0;
	}
	OUTBOX_PUT(&s->conn.out, end, END, f);
	engine_end(s, NULL);
	return 0;
}

static int on_returned_end(struct engine *s, const struct wire_end *f, struct ptcp_err *e)
{
	int r = check_end(s, f, e);

	if (r == 0)
		engine_end(s, NULL);
	return r;
}

static int on_leftovers(struct engine *s, const struct wire_leftovers *f, struct ptcp_err *e)
{
	if (s->leftovers_received)
		return frame_conn_unexpected(&s->conn, WIRE_LEFTOVERS, e);
	s->leftovers_received = true;
	s->o.ops->leftovers(s->o.arg, f);
	return 0;
}

static int on_deleted(struct engine *s, const struct wire_deleted *f, struct ptcp_err *e)
{
	if (s->n_deleted++ == wire_max_delete(&s->open)) /* 0 without WIRE_OPEN_DELETE */
		return frame_conn_unexpected(&s->conn, WIRE_DELETED, e);
	s->o.ops->deleted(s->o.arg, f);
	return 0;
}

/* Limited in number: each costs a pass over all streams. */
static int on_endpoint(struct engine *s, const struct wire_endpoint *f, struct ptcp_err *e)
{
	uint64_t seconds = mono_diff_ns(s->conn.last_input, s->running_since) / NS_PER_S;

	if ((s->open.flags & WIRE_OPEN_MOVERS) == 0)
		return frame_conn_unexpected(&s->conn, WIRE_ENDPOINT, e);
	if (++s->n_endpoints > ENGINE_RATES + ENGINE_RATES_PER_S * seconds)
		return err_set(e, PTCP_EPROTO, "too many ENDPOINT frames");
	s->o.ops->endpoint(s->o.arg, f);
	return 0;
}

static int on_set_streams(struct engine *s, const struct wire_set_streams *u, struct ptcp_err *e)
{
	(void)e;
	s->o.ops->set_streams(s->o.arg, u);
	return 0;
}

static int on_tcp_report(struct engine *s, const struct wire_tcp_report *f, struct ptcp_err *e)
{
	(void)e;
	s->o.ops->tcp_report(s->o.arg, f);
	return 0;
}

/* Limited in number: each costs a pass over all streams. */
static int on_rate(struct engine *s, const struct wire_rate *f, struct ptcp_err *e)
{
	uint64_t seconds = mono_diff_ns(s->conn.last_input, s->running_since) / NS_PER_S;

	if (++s->n_rates > ENGINE_RATES + ENGINE_RATES_PER_S * seconds)
		return err_set(e, PTCP_EPROTO, "too many RATE frames");
	s->o.ops->rate(s->o.arg, f);
	return 0;
}

static int on_select(struct engine *s, const struct wire_select *f, struct ptcp_err *e)
{
	if ((s->open.flags & WIRE_OPEN_SELECTED) == 0 || s->selected)
		return frame_conn_unexpected(&s->conn, WIRE_SELECT, e);
	s->selected = f->final;
	return s->o.ops->select(s->o.arg, f, e);
}

static int on_ack(struct engine *s, const struct wire_ack *f, struct ptcp_err *e)
{
	return snd_on_ack(s->snd, f, s->conn.last_input, e);
}

static int on_entry(struct engine *s, const struct wire_entry *f, struct ptcp_err *e)
{
	return rcv_on_entry(s->rcv, f, e);
}

static int on_early_entry(void *engine, unsigned type, const void *undecoded, struct ptcp_err *e)
{
	struct engine *s = engine;

	(void)type, (void)undecoded;
	return engine_on_early_entry(s, frame_conn_bytes(&s->conn), e);
}

/* States, as a set. */
#define IN(state) (1u << (state))
#define AFTER_HELLO (IN(OPENING) | IN(AWAIT_OPEN) | IN(AUTHORIZING) | AGREED)
#define AGREED (IN(RUNNING) | IN(CLOSING))

/* Roles, as a set: starter or acceptor of a session with that role in OPEN (0 at an acceptor before OPEN). */
#define STARTS(role) (1u << 2 * (role))
#define ACCEPTS(role) (2u << 2 * (role))
enum {
	ANY = 0,
	STARTER = 0x155,
	ACCEPTOR = 0x2aa,
	SENDER = STARTS(WIRE_ACCEPTOR_RECEIVES) | ACCEPTS(WIRE_ACCEPTOR_SENDS),
	RECEIVER = STARTS(WIRE_ACCEPTOR_SENDS) | ACCEPTS(WIRE_ACCEPTOR_RECEIVES),
	MEASURING_STARTER = STARTS(WIRE_ACCEPTOR_DISCARDS) | STARTS(WIRE_ACCEPTOR_GENERATES),
	MEASURING_ACCEPTOR = ACCEPTS(WIRE_ACCEPTOR_DISCARDS) | ACCEPTS(WIRE_ACCEPTOR_GENERATES)
};

/* Whose handler a rule names. */
#define ENGINE ((struct engine *)owner)
#define SND ENGINE->snd
#define RCV ENGINE->rcv

/* Type, whether the frame is progress of the session (resets its time-out), states, roles, handler. */
#define RULES(X) \
	X(ERROR, false, IN(HELLO) | AFTER_HELLO, ANY, ENGINE, on_error) \
	X(PING, false, IN(HELLO) | AFTER_HELLO, ANY, ENGINE, on_ping) \
	X(CONTROL_ACK, false, AFTER_HELLO, ANY, ENGINE, on_control_ack) \
	X(LOAD, false, AFTER_HELLO, STARTER, ENGINE, on_load) \
	X(HELLO, true, IN(HELLO), ANY, ENGINE, engine_on_hello) \
	X(OPEN, true, IN(AWAIT_OPEN), ACCEPTOR, ENGINE, engine_on_open) \
	X(WAITING, true, IN(OPENING), STARTER, ENGINE, engine_on_waiting) \
	X(OPENED, true, IN(OPENING), STARTER, ENGINE, engine_on_opened) \
	X(SET_STREAMS, false, AGREED, ACCEPTOR, ENGINE, on_set_streams) \
	X(TCP_REPORT, false, AGREED, STARTS(WIRE_ACCEPTOR_SENDS) | STARTS(WIRE_ACCEPTOR_GENERATES), ENGINE, on_tcp_report) \
	X(RATE, false, AGREED, ACCEPTS(WIRE_ACCEPTOR_SENDS), ENGINE, on_rate) \
	X(SELECT, true, IN(RUNNING), ACCEPTS(WIRE_ACCEPTOR_SENDS), ENGINE, on_select) \
	X(WARNING, false, AGREED, SENDER | RECEIVER, ENGINE, on_warning) \
	X(LEFTOVERS, false, AGREED, STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE, on_leftovers) \
	X(ENDPOINT, false, AGREED, STARTS(WIRE_ACCEPTOR_SENDS) | STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE, on_endpoint) \
	X(DELETED, true, AGREED, STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE, on_deleted) \
	X(END, true, IN(RUNNING), RECEIVER | MEASURING_ACCEPTOR, ENGINE, on_first_end) \
	X(END, true, IN(CLOSING), SENDER | MEASURING_STARTER, ENGINE, on_returned_end) \
	X(ANSWER, true, IN(RUNNING), SENDER, SND, snd_on_answer) \
	X(NEED, true, IN(RUNNING), SENDER, SND, snd_on_need) \
	X(HAVE, true, IN(RUNNING), SENDER, SND, snd_on_have) \
	X(MATCH, true, IN(RUNNING), SENDER, SND, snd_on_match) \
	X(SPLIT, true, IN(RUNNING), SENDER, SND, snd_on_split) \
	X(PATCH, true, IN(RUNNING), SENDER, SND, snd_on_patch) \
	X(ACK, true, IN(RUNNING), SENDER, ENGINE, on_ack) \
	X(DONE, true, IN(RUNNING), SENDER, SND, snd_on_done) \
	X(FAIL, true, IN(RUNNING), SENDER, SND, snd_on_fail) \
	X(ENTRY, true, IN(RUNNING), RECEIVER, ENGINE, on_entry) \
	X(FILE_END, true, IN(RUNNING), RECEIVER, RCV, rcv_on_file_end) \
	X(SIZE, true, IN(RUNNING), RECEIVER, RCV, rcv_on_size) \
	X(HOLE, true, IN(RUNNING), RECEIVER, RCV, rcv_on_hole) \
	X(HASHES, true, IN(RUNNING), RECEIVER, RCV, rcv_on_hashes) \
	X(PIECES, true, IN(RUNNING), RECEIVER, RCV, rcv_on_pieces) \
	X(FAIL, true, IN(RUNNING), RECEIVER, RCV, rcv_on_fail) \
	X(TOTALS, true, IN(RUNNING), RECEIVER, RCV, rcv_on_totals)

#define TAKE(TYPE, progress, states, roles, whose, handler) \
	static int TYPE##_##handler(void *owner, unsigned type, const void *f, struct ptcp_err *e) \
	{ \
		(void)type; \
		if (progress) \
			engine_advance(ENGINE, ENGINE->conn.last_input); \
		return handler(whose, f, e); \
	}
RULES(TAKE)

#define RULE(TYPE, progress, states, roles, whose, handler) FRAME_RULE(TYPE, states, roles, handler)
static const struct frame_rule rules[] = {
	RULES(RULE)
	{ .type = WIRE_ENTRY, .states = IN(AUTHORIZING), .roles = ACCEPTS(WIRE_ACCEPTOR_RECEIVES), .take = on_early_entry,
	    .undecoded = true }
};

static unsigned state_of(const void *engine) { return ((const struct engine *)engine)->state; }

static uint32_t role_of(const void *engine)
{
	const struct engine *s = engine;

	return s->o.starter ? STARTS(s->open.role) : ACCEPTS(s->open.role);
}

const struct frame_table engine_table = { FRAME_TABLE_RULES(rules), .state_names = engine_state_names,
	.deaf = IN(ENDED) | IN(FAILED), .state = state_of, .role = role_of, .limits = engine_limits, .ping = engine_ping };

void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now)
{
	struct ptcp_err e;

	tape_write_input(s->tape, p, n, now);
	if (engine_over(s))
		return;
	if (frame_conn_input(&s->conn, p, n, now, &e) < 0)
		engine_give_up(s, &e);
	engine_check(s, now);
}
