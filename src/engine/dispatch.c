/* What the peer says, frame by frame. */
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
	engine_end(s, &why);
	return 0;
}

static int on_ping(struct engine *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_ping f;
	int r;

	if ((r = wire_ping_decode(&f, in, e)) < 0)
		return r;
	s->peer_busy = engine_is_excuse(s, (enum wire_busy)f.busy, now) ? (enum wire_busy)f.busy : WIRE_IDLE;
	if (s->peer_busy != WIRE_IDLE) {
		s->last_progress = now;
		if (s->snd != NULL)
			snd_excuse(s->snd, now);
	}
	return 0;
}

static int on_heard(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_control_ack f;
	int r;

	if (s->state == HELLO || !s->returns)
		return engine_unexpected(s, WIRE_CONTROL_ACK, e);
	return (r = wire_control_ack_decode(&f, in, e)) < 0 ? r : s->o.ops->heard(s->o.arg, f.bytes, e);
}

/* No sign of progress. */
static int on_load(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_load f;
	int r;

	if (s->state == HELLO || !s->o.starter)
		return engine_unexpected(s, WIRE_LOAD, e);
	if ((r = wire_load_decode(&f, in, e)) == 0)
		s->o.ops->load(s->o.arg, &f);
	return r;
}

static int on_note(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_warning n;
	int r;

	if ((r = wire_warning_decode(&n, in, e)) < 0)
		return r;
	if (n.kind == WIRE_WARNING_FAILED && s->snd != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected NOTE of a failure from the receiver");
	if (n.kind == WIRE_WARNING_FAILED)
		s->noted_failures++;
	s->o.ops->note(s->o.arg, &n);
	return 0;
}

/* Both ends must have come to the same. */
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
	if (s->state == RUNNING) { /* the sender's, which gets it back */
		s->end = end;
		OUTBOX_PUT(&s->out, end, END, &end);
	}
	engine_end(s, NULL);
	return 0;
}

static int on_use(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_set_streams u;
	int r;

	if ((r = wire_set_streams_decode(&u, in, e)) < 0)
		return r;
	s->o.ops->use(s->o.arg, &u);
	return 0;
}

static int on_seen(struct engine *s, struct span in, struct ptcp_err *e)
{
	struct wire_tcp_report f;
	int r;

	if ((r = wire_tcp_report_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->seen(s->o.arg, &f);
	return 0;
}

/* Each makes us look at all streams. */
static int on_rate(struct engine *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_rate f;
	int r;

	if (++s->n_rates > ENGINE_RATES + ENGINE_RATES_PER_S * (mono_diff_ns(now, s->running_since) / NS_PER_S))
		return err_set(e, PTCP_EPROTO, "too many RATE frames");
	if ((r = wire_rate_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->rate(s->o.arg, &f);
	return 0;
}

/* Whether the acceptor sends. */
static bool gives(const struct engine *s)
{
	return s->open.role == WIRE_ACCEPTOR_SENDS || s->open.role == WIRE_ACCEPTOR_GENERATES;
}

static int running_frame(struct engine *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_SET_STREAMS && !s->o.starter)
		return on_use(s, in, e);
	if (type == WIRE_TCP_REPORT && s->o.starter && gives(s))
		return on_seen(s, in, e);
	if (type == WIRE_RATE && s->snd != NULL && !s->o.starter)
		return on_rate(s, in, now, e);
	if (type == WIRE_WARNING)
		return on_note(s, in, e);
	if (s->snd != NULL)
		return type == WIRE_END && s->state == ENDING ? on_end(s, in, e) :
		    snd_frame(s->snd, type, in, now, e);
	if (s->rcv == NULL)
		return type == WIRE_END && (s->state == ENDING) == s->o.starter ? on_end(s, in, e) :
		    engine_unexpected(s, type, e);
	return type == WIRE_END ? on_end(s, in, e) : rcv_frame(s->rcv, type, in, e);
}

/* Talk brings nothing on, however much there is of it. */
static bool brings(unsigned type)
{
	return type != WIRE_SET_STREAMS && type != WIRE_TCP_REPORT && type != WIRE_RATE && type != WIRE_WARNING;
}

static int frame(struct engine *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_ERROR)
		return on_error(s, in, e);
	if (type == WIRE_PING)
		return on_ping(s, in, now, e);
	if (type == WIRE_CONTROL_ACK)
		return on_heard(s, in, e);
	if (type == WIRE_LOAD)
		return on_load(s, in, e);
	if (brings(type))
		engine_progress(s, now);
	switch (s->state) {
	case HELLO:
		return type == WIRE_HELLO ? engine_on_hello(s, in, e) : engine_unexpected(s, type, e);
	case OPENING:
		return type == WIRE_OPENED ? engine_on_opened(s, in, e) : engine_unexpected(s, type, e);
	case ASKED:
		return type == WIRE_OPEN ? engine_on_open(s, in, e) : engine_unexpected(s, type, e);
	case RUNNING:
	case ENDING:
		return running_frame(s, type, in, now, e);
	case JUDGING:
	case ENDED:
	case FAILED:
		break;
	}
	return engine_unexpected(s, type, e);
}

void engine_input(struct engine *s, const uint8_t *p, size_t n, struct mono now)
{
	struct ptcp_err e;
	struct frame f;
	int r;

	if (engine_over(s))
		return;
	s->last_heard = now;
	r = frame_reader_add(&s->in, p, n, &e);
	while (r >= 0 && !engine_over(s) && (r = frame_reader_next(&s->in, &f, &e)) > 0)
		r = frame(s, f.type, f.payload, now, &e);
	if (r < 0)
		engine_fail(s, &e);
	if (!engine_over(s))
		engine_tick(s, now);
}
