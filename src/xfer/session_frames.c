/* What the peer says, frame by frame. */
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "xfer/session_impl.h"

static int on_error(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_error f;
	struct ptcp_err why;
	int r;

	if ((r = wire_error_decode(&f, in, e)) < 0)
		return r;
	outbox_reason(&why, f.code, f.text);
	session_end(s, &why);
	return 0;
}

static int on_ping(struct session *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_ping f;
	int r;

	if ((r = wire_ping_decode(&f, in, e)) < 0)
		return r;
	s->peer_busy = session_is_excuse(s, (enum wire_busy)f.busy, now) ? (enum wire_busy)f.busy : WIRE_IDLE;
	if (s->peer_busy != WIRE_IDLE) {
		s->last_progress = now;
		if (s->snd != NULL)
			snd_excuse(s->snd, now);
	}
	return 0;
}

static int on_heard(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_heard f;
	int r;

	if (s->state == HELLO || !s->returns)
		return session_unexpected(s, WIRE_HEARD, e);
	return (r = wire_heard_decode(&f, in, e)) < 0 ? r : s->o.ops->heard(s->o.arg, f.bytes, e);
}

/* No sign of progress. */
static int on_load(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_load f;
	int r;

	if (s->state == HELLO || !s->o.starter)
		return session_unexpected(s, WIRE_LOAD, e);
	if ((r = wire_load_decode(&f, in, e)) == 0)
		s->o.ops->load(s->o.arg, &f);
	return r;
}

static int on_note(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_note n;
	int r;

	if ((r = wire_note_decode(&n, in, e)) < 0)
		return r;
	if (n.kind == WIRE_NOTE_FAILED && s->snd != NULL)
		return err_set(e, PTCP_EPROTO, "unexpected NOTE of a failure from the receiver");
	if (n.kind == WIRE_NOTE_FAILED)
		s->noted_failures++;
	s->o.ops->note(s->o.arg, &n);
	return 0;
}

/* Both ends must have come to the same. */
static int on_end(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_end end;
	int r;

	if ((r = wire_end_decode(&end, in, e)) < 0)
		return r;
	if (s->rcv != NULL && !rcv_idle(s->rcv))
		return session_unexpected(s, WIRE_END, e);
	if (end.files != session_files(s) || end.failed < session_failed(s) ||
	    (s->snd != NULL && end.failed != session_failed(s)))
		return err_set(e, PTCP_EPROTO, "the peer's count of files differs");
	if (s->state == RUNNING) { /* the sender's, which gets it back */
		s->end = end;
		OUTBOX_PUT(&s->out, end, END, &end);
	}
	session_end(s, NULL);
	return 0;
}

static int on_use(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_use u;
	int r;

	if ((r = wire_use_decode(&u, in, e)) < 0)
		return r;
	s->o.ops->use(s->o.arg, &u);
	return 0;
}

static int on_seen(struct session *s, struct span in, struct ptcp_err *e)
{
	struct wire_seen f;
	int r;

	if ((r = wire_seen_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->seen(s->o.arg, &f);
	return 0;
}

/* Each makes us look at all streams. */
static int on_rate(struct session *s, struct span in, struct mono now, struct ptcp_err *e)
{
	struct wire_rate f;
	int r;

	if (++s->n_rates > SESSION_RATES + SESSION_RATES_PER_S * (mono_diff_ns(now, s->running_since) / NS_PER_S))
		return err_set(e, PTCP_EPROTO, "too many RATE frames");
	if ((r = wire_rate_decode(&f, in, e)) < 0)
		return r;
	s->o.ops->rate(s->o.arg, &f);
	return 0;
}

/* Whether the acceptor sends. */
static bool gives(const struct session *s)
{
	return s->open.role == WIRE_YOU_SEND || s->open.role == WIRE_YOU_FLOOD;
}

static int running_frame(struct session *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_USE && session_steered(s) && !s->o.starter)
		return on_use(s, in, e);
	if (type == WIRE_SEEN && session_steered(s) && s->o.starter && gives(s))
		return on_seen(s, in, e);
	if (type == WIRE_RATE && s->peer_rates && s->snd != NULL && !s->o.starter)
		return on_rate(s, in, now, e);
	if (type == WIRE_NOTE)
		return on_note(s, in, e);
	if (s->snd != NULL)
		return type == WIRE_END && s->state == ENDING ? on_end(s, in, e) :
		    snd_frame(s->snd, type, in, now, e);
	if (s->rcv == NULL)
		return type == WIRE_END && (s->state == ENDING) == s->o.starter ? on_end(s, in, e) :
		    session_unexpected(s, type, e);
	return type == WIRE_END ? on_end(s, in, e) : rcv_frame(s->rcv, type, in, e);
}

/* Talk brings nothing on, however much there is of it. */
static bool brings(unsigned type)
{
	return type != WIRE_USE && type != WIRE_SEEN && type != WIRE_RATE && type != WIRE_NOTE;
}

static int frame(struct session *s, unsigned type, struct span in, struct mono now,
    struct ptcp_err *e)
{
	if (type == WIRE_ERROR)
		return on_error(s, in, e);
	if (type == WIRE_PING)
		return on_ping(s, in, now, e);
	if (type == WIRE_HEARD)
		return on_heard(s, in, e);
	if (type == WIRE_LOAD)
		return on_load(s, in, e);
	if (brings(type))
		session_progress(s, now);
	switch (s->state) {
	case HELLO:
		return type == WIRE_HELLO ? session_on_hello(s, in, e) : session_unexpected(s, type, e);
	case OPENING:
		return type == WIRE_OPENED ? session_on_opened(s, in, e) : session_unexpected(s, type, e);
	case ASKED:
		return type == WIRE_OPEN ? session_on_open(s, in, e) : session_unexpected(s, type, e);
	case RUNNING:
	case ENDING:
		return running_frame(s, type, in, now, e);
	case JUDGING:
	case ENDED:
	case FAILED:
		break;
	}
	return session_unexpected(s, type, e);
}

/* 1 when a frame was taken, 0 when more bytes are needed. */
static int next_frame(struct session *s, struct mono now, struct ptcp_err *e)
{
	struct wire_header h;
	struct span in;
	int r;

	if ((r = wire_frame_next(&h, &in, (struct span){ buf_head(&s->in), buf_len(&s->in) }, e)) <= 0)
		return r;
	if (wire_type_known(h.type) && (r = frame(s, h.type, in, now, e)) < 0)
		return r;
	buf_consume(&s->in, WIRE_HEADER_BYTES + h.length);
	return 1;
}

void session_input(struct session *s, const uint8_t *p, size_t n, struct mono now)
{
	struct ptcp_err e;
	uint8_t *room;
	int r = 1;

	if (session_over(s))
		return;
	s->last_heard = now;
	if ((room = buf_reserve(&s->in, n)) == NULL) {
		err_nomem(&e);
		session_fail(s, &e);
		return;
	}
	memcpy(room, p, n);
	buf_added(&s->in, n);
	while (r > 0 && !session_over(s))
		if ((r = next_frame(s, now, &e)) < 0)
			session_fail(s, &e);
	if (!session_over(s))
		session_tick(s, now);
}
