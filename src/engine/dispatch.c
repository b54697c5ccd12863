/* Incoming control frames: one table says in which state and role each is accepted. In a handler last_input is
 * now. */
#include "core/err.h"
#include "core/units.h"
#include "engine/engine_impl.h"

static int on_error(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_error f;
	struct ptcp_err why;
	int r;

	if ((r = wire_error_decode(&f, in, e)) < 0)
		return r;
	outbox_reason(&why, f.code, f.text);
	if (s->o.starter && f.code == -PTCP_EUSAGE) /* the request: another attempt would fail, too */
		why.code = PTCP_EUSAGE;
	s->ended_by_peer = true;
	engine_end(s, &why);
	return 0;
}

static int on_ping(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_ping f;
	int r;

	if ((r = wire_ping_decode(&f, in, e)) < 0)
		return r;
	s->peer_busy = engine_tolerates(s, (enum wire_busy)f.busy, s->last_input) ? (enum wire_busy)f.busy : WIRE_IDLE;
	if (s->peer_busy != WIRE_IDLE) {
		s->last_progress = s->last_input;
		if (s->snd != NULL)
			snd_peer_busy(s->snd, s->last_input);
	}
	return 0;
}

static int on_control_ack(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_control_ack f;
	int r;

	if (s->linger_ns == 0)
		return engine_unexpected(s, WIRE_CONTROL_ACK, e);
	return (r = wire_control_ack_decode(&f, in, e)) < 0 ? r : s->o.ops->control_ack(s->o.arg, f.bytes, e);
}

static int on_load(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_load f;
	int r;

	if ((r = wire_load_decode(&f, in, e)) == 0)
		s->o.ops->load(s->o.arg, &f);
	return r;
}

static int on_warning(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_warning n;
	int r;

	if ((r = wire_warning_decode(&n, in, e)) < 0)
		return r;
	if (n.kind == WIRE_WARNING_FAILED && s->snd != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected WARNING of a failure from the receiver");
	if (n.kind == WIRE_WARNING_FAILED)
		s->warned_failures++;
	s->o.ops->warning(s->o.arg, &n);
	return 0;
}

/* The counts of both ends must agree. */
static int on_end(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_end end;
	int r;

	if ((r = wire_end_decode(&end, in, e)) < 0)
		return r;
	if (s->rcv != NULL && !rcv_idle(s->rcv))
		return engine_unexpected(s, WIRE_END, e);
	if (end.files != engine_files(s) || end.failed < engine_failed(s) ||
	    (s->snd != NULL && end.failed != engine_failed(s)))
		return err_set(e, PTCP_EPROTO, "the peer's count of files differs");
	if (s->state == RUNNING) { /* the first END: send it back */
		s->end = end;
		if (s->rcv != NULL && s->o.ops->finish != NULL && !s->o.ops->finish(s->o.arg)) {
			engine_set_state(s, CLOSING, "END");
			return 0;
		}
		OUTBOX_PUT(&s->out, end, END, &end);
	}
	engine_end(s, NULL);
	return 0;
}

static int on_leftovers(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_leftovers f;
	int r;

	if (s->leftovers_received)
		return engine_unexpected(s, WIRE_LEFTOVERS, e);
	if ((r = wire_leftovers_decode(&f, in, e)) < 0)
		return r;
	s->leftovers_received = true;
	s->o.ops->leftovers(s->o.arg, &f);
	return 0;
}

static int on_deleted(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_deleted f;
	int r;

	if (s->n_deleted++ == s->open.max_delete) /* 0 without WIRE_OPEN_DELETE */
		return engine_unexpected(s, WIRE_DELETED, e);
	if ((r = wire_deleted_decode(&f, in, e)) == 0)
		s->o.ops->deleted(s->o.arg, &f);
	return r;
}

/* Limited in number: each costs a pass over all streams. */
static int on_endpoint(struct engine *s, struct span in, struct ptcp_err *e)
{
	uint64_t seconds = mono_diff_ns(s->last_input, s->running_since) / NS_PER_S;
	struct wire_endpoint f;
	int r;

	if ((s->open.flags & WIRE_OPEN_MOVERS) == 0)
		return engine_unexpected(s, WIRE_ENDPOINT, e);
	if (++s->n_endpoints > ENGINE_RATES + ENGINE_RATES_PER_S * seconds)
		return err_set(e, PTCP_EPROTO, "too many ENDPOINT frames");
	if ((r = wire_endpoint_decode(&f, in, e)) == 0)
		s->o.ops->endpoint(s->o.arg, &f);
	return r;
}

static int on_set_streams(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_set_streams u;
	int r;

	if ((r = wire_set_streams_decode(&u, in, e)) == 0)
		s->o.ops->set_streams(s->o.arg, &u);
	return r;
}

static int on_tcp_report(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_tcp_report f;
	int r;

	if ((r = wire_tcp_report_decode(&f, in, e)) == 0)
		s->o.ops->tcp_report(s->o.arg, &f);
	return r;
}

/* Limited in number: each costs a pass over all streams. */
static int on_rate(struct engine *s, struct span in, struct ptcp_err *e)
{
	uint64_t seconds = mono_diff_ns(s->last_input, s->running_since) / NS_PER_S;
	struct wire_rate f;
	int r;

	if (++s->n_rates > ENGINE_RATES + ENGINE_RATES_PER_S * seconds)
		return err_set(e, PTCP_EPROTO, "too many RATE frames");
	if ((r = wire_rate_decode(&f, in, e)) == 0)
		s->o.ops->rate(s->o.arg, &f);
	return r;
}

static int on_select(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_select f;
	int r;

	if ((s->open.flags & WIRE_OPEN_SELECTED) == 0 || s->selected)
		return engine_unexpected(s, WIRE_SELECT, e);
	if ((r = wire_select_decode(&f, in, e)) < 0)
		return r;
	s->selected = f.final;
	return s->o.ops->select(s->o.arg, &f, e);
}

static int on_ack(struct engine *s, struct span in, struct ptcp_err *e)
{
	return snd_on_ack(s->snd, in, s->last_input, e);
}

/* States, as a set. */
#define IN(state) (1u << (state))
#define AFTER_HELLO (IN(OPENING) | IN(AWAIT_OPEN) | IN(AUTHORIZING) | AGREED)
#define AGREED (IN(RUNNING) | IN(CLOSING))

/* Roles, as a set: starter or acceptor of a session with that role in OPEN (0 at an acceptor before OPEN). */
#define STARTS(role) (1u << 2 * (role))
#define ACCEPTS(role) (2u << 2 * (role))
enum {
	ANY = 0x3ff,
	STARTER = 0x155,
	ACCEPTOR = 0x2aa,
	SENDER = STARTS(WIRE_ACCEPTOR_RECEIVES) | ACCEPTS(WIRE_ACCEPTOR_SENDS),
	RECEIVER = STARTS(WIRE_ACCEPTOR_SENDS) | ACCEPTS(WIRE_ACCEPTOR_RECEIVES),
	MEASURING_STARTER = STARTS(WIRE_ACCEPTOR_DISCARDS) | STARTS(WIRE_ACCEPTOR_GENERATES),
	MEASURING_ACCEPTOR = ACCEPTS(WIRE_ACCEPTOR_DISCARDS) | ACCEPTS(WIRE_ACCEPTOR_GENERATES)
};

#define ENGINE(f) f, NULL, NULL
#define SND(f) NULL, f, NULL
#define RCV(f) NULL, NULL, f

/* Any pair of a state and a role without a row is a violation. */
static const struct rule {
	uint8_t type;
	bool progress;    /* of the session: resets its time-out */
	uint16_t states, roles;
	/* One of: */
	int (*handle)(struct engine *s, struct span in, struct ptcp_err *e);
	int (*snd)(struct snd *s, struct span in, struct ptcp_err *e);
	int (*rcv)(struct rcv *r, struct span in, struct ptcp_err *e);
} rules[] = {
	{ WIRE_ERROR, false, IN(HELLO) | AFTER_HELLO, ANY, ENGINE(on_error) },
	{ WIRE_PING, false, IN(HELLO) | AFTER_HELLO, ANY, ENGINE(on_ping) },
	{ WIRE_CONTROL_ACK, false, AFTER_HELLO, ANY, ENGINE(on_control_ack) },
	{ WIRE_LOAD, false, AFTER_HELLO, STARTER, ENGINE(on_load) },
	{ WIRE_HELLO, true, IN(HELLO), ANY, ENGINE(engine_on_hello) },
	{ WIRE_OPEN, true, IN(AWAIT_OPEN), ACCEPTOR, ENGINE(engine_on_open) },
	{ WIRE_WAITING, true, IN(OPENING), STARTER, ENGINE(engine_on_waiting) },
	{ WIRE_OPENED, true, IN(OPENING), STARTER, ENGINE(engine_on_opened) },
	{ WIRE_SET_STREAMS, false, AGREED, ACCEPTOR, ENGINE(on_set_streams) },
	{ WIRE_TCP_REPORT, false, AGREED, STARTS(WIRE_ACCEPTOR_SENDS) | STARTS(WIRE_ACCEPTOR_GENERATES),
	    ENGINE(on_tcp_report) },
	{ WIRE_RATE, false, AGREED, ACCEPTS(WIRE_ACCEPTOR_SENDS), ENGINE(on_rate) },
	{ WIRE_SELECT, true, IN(RUNNING), ACCEPTS(WIRE_ACCEPTOR_SENDS), ENGINE(on_select) },
	{ WIRE_WARNING, false, AGREED, SENDER | RECEIVER, ENGINE(on_warning) },
	{ WIRE_LEFTOVERS, false, AGREED, STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE(on_leftovers) },
	{ WIRE_ENDPOINT, false, AGREED, STARTS(WIRE_ACCEPTOR_SENDS) | STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE(on_endpoint) },
	{ WIRE_DELETED, true, IN(CLOSING), STARTS(WIRE_ACCEPTOR_RECEIVES), ENGINE(on_deleted) },
	{ WIRE_END, true, IN(RUNNING), RECEIVER | MEASURING_ACCEPTOR, ENGINE(on_end) },
	{ WIRE_END, true, IN(CLOSING), SENDER | MEASURING_STARTER, ENGINE(on_end) },
	{ WIRE_ANSWER, true, IN(RUNNING), SENDER, SND(snd_on_answer) },
	{ WIRE_NEED, true, IN(RUNNING), SENDER, SND(snd_on_need) },
	{ WIRE_HAVE, true, IN(RUNNING), SENDER, SND(snd_on_have) },
	{ WIRE_ACK, true, IN(RUNNING), SENDER, ENGINE(on_ack) },
	{ WIRE_DONE, true, IN(RUNNING), SENDER, SND(snd_on_done) },
	{ WIRE_FAIL, true, IN(RUNNING), SENDER, SND(snd_on_fail) },
	{ WIRE_ENTRY, false, IN(AUTHORIZING), ACCEPTS(WIRE_ACCEPTOR_RECEIVES), ENGINE(engine_on_early_entry) },
	{ WIRE_ENTRY, true, IN(RUNNING), RECEIVER, RCV(rcv_on_entry) },
	{ WIRE_FILE_END, true, IN(RUNNING), RECEIVER, RCV(rcv_on_file_end) },
	{ WIRE_SIZE, true, IN(RUNNING), RECEIVER, RCV(rcv_on_size) },
	{ WIRE_HOLE, true, IN(RUNNING), RECEIVER, RCV(rcv_on_hole) },
	{ WIRE_FAIL, true, IN(RUNNING), RECEIVER, RCV(rcv_on_fail) },
	{ WIRE_TOTALS, true, IN(RUNNING), RECEIVER, RCV(rcv_on_totals) }
};

static int take(struct engine *s, unsigned type, struct span in, struct ptcp_err *e)
{
	unsigned role = s->o.starter ? STARTS(s->open.role) : ACCEPTS(s->open.role);
	const struct rule *f = rules, *end = rules + sizeof rules / sizeof *rules;

	while (f < end && (f->type != type || (f->states & IN(s->state)) == 0 || (f->roles & role) == 0))
		f++;
	if (f == end)
		return engine_unexpected(s, type, e);
	if (f->progress)
		engine_progress(s, s->last_input);
	if (f->handle != NULL)
		return f->handle(s, in, e);
	return f->snd != NULL ? f->snd(s->snd, in, e) : f->rcv(s->rcv, in, e);
}

void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now)
{
	struct ptcp_err e;
	struct frame f;
	int r;

	if (engine_over(s))
		return;
	engine_heard(s, now);
	r = frame_reader_add(&s->in, p, n, &e);
	while (r >= 0 && !engine_over(s) && (r = frame_reader_next(&s->in, &f, &e)) > 0)
		r = take(s, f.type, f.payload, &e);
	if (r < 0)
		engine_fail(s, &e);
	if (!engine_over(s))
		engine_tick(s, now);
}
