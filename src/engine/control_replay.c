#include "engine/control_replay.h"

#include <string.h>

#include "core/err.h"

void control_replay_init(struct control_replay *r, bool opens, unsigned path, unsigned n_paths, struct mono now)
{
	*r = (struct control_replay){ .opens = opens, .path = path, .n_paths = n_paths, .since = now };
}

void control_replay_fini(struct control_replay *r)
{
	buf_fini(&r->retained);
}

/* The receiver sends the last frame: a sender in its end state has received everything. */
bool control_replay_possible(const struct control_replay *r, const struct control_replay_session *s)
{
	return s->agreed && s->running && !s->failed && !s->gone && !r->ended && (!s->over || s->receives);
}

/* ---- Bytes ---- */

struct span control_replay_unsent(const struct control_replay *r)
{
	if (r->resend == 0)
		return (struct span){ NULL, 0 };
	return (struct span){ buf_head(&r->retained) + (buf_len(&r->retained) - r->resend), r->resend };
}

void control_replay_resent(struct control_replay *r, size_t n)
{
	r->resend -= n;
}

size_t control_replay_room(struct control_replay *r, size_t n)
{
	size_t free_bytes = CONTROL_REPLAY_MAX_BYTES - buf_len(&r->retained);

	if (r->resend > 0)
		return 0;
	if (n > free_bytes)
		n = free_bytes;
	return n > 0 && buf_reserve(&r->retained, n, NULL) != NULL ? n : 0;
}

void control_replay_sent(struct control_replay *r, const uint8_t *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(r->retained.data + r->retained.end, p, n); /* reserved by control_replay_room() */
	buf_added(&r->retained, n);
}

void control_replay_received(struct control_replay *r, size_t n, struct outbox *out)
{
	struct wire_control_ack f;

	r->received += n;
	if (out == NULL || r->received - r->reported < CONTROL_REPLAY_ACK_BYTES)
		return;
	f.bytes = r->reported = r->received;
	OUTBOX_PUT(out, control_ack, CONTROL_ACK, &f);
}

int control_replay_acked(struct control_replay *r, uint64_t bytes, struct ptcp_err *e)
{
	if (bytes - r->acked > buf_len(&r->retained) - r->resend) /* fewer than before: the difference wraps around */
		return err_set(e, PTCP_EPROTO, "the peer acknowledged control bytes that were not sent");
	buf_consume(&r->retained, (size_t)(bytes - r->acked));
	r->acked = bytes;
	return 0;
}

/* ---- Connections ---- */

static void next_path(struct control_replay *r)
{
	if (r->opens)
		r->path = (r->path + 1) % r->n_paths;
}

void control_replay_lost(struct control_replay *r)
{
	r->state = CONTROL_LOST;
	next_path(r);
}

void control_replay_dropped(struct control_replay *r)
{
	r->state = CONTROL_LOST;
}

void control_replay_end(struct control_replay *r)
{
	r->ended = true;
}

size_t control_replay_begin(struct control_replay *r, uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES], struct mono now)
{
	struct wire_control_ack f = { r->received };

	r->state = CONTROL_RESUMING;
	r->since = now;
	r->got = 0;
	r->reported = r->received;
	return wire_control_ack_encode(frame, &f);
}

size_t control_replay_missing(const struct control_replay *r)
{
	return sizeof r->frame - r->got;
}

enum control_replay_answer control_replay_answer(struct control_replay *r, const uint8_t *p, size_t n,
    struct mono now, struct ptcp_err *e)
{
	struct wire_header h;
	struct wire_control_ack f;

	memcpy(r->frame + r->got, p, n);
	r->got += n;
	if (r->got < sizeof r->frame)
		return CONTROL_ANSWER_PARTIAL;
	if (wire_header_decode(&h, r->frame, e) < 0 || h.type != WIRE_CONTROL_ACK ||
	    h.length != sizeof r->frame - WIRE_HEADER_BYTES ||
	    wire_control_ack_decode(&f, (struct span){ r->frame + WIRE_HEADER_BYTES, h.length }, e) < 0) {
		r->state = CONTROL_LOST;
		return CONTROL_ANSWER_WRONG;
	}
	r->state = CONTROL_UP;
	r->since = now;
	r->n_refusals = 0;
	r->resend = 0; /* the old connection may have delivered bytes marked for retransmission */
	if (control_replay_acked(r, f.bytes, e) < 0)
		return CONTROL_ANSWER_VIOLATION;
	r->resend = buf_len(&r->retained);
	return CONTROL_ANSWER_RESUMED;
}

/* ---- Time ---- */

/* Deadline for a sign of life on the connection. */
static struct mono dead_at(const struct control_replay *r, const struct control_replay_session *s)
{
	uint64_t limit_ns = s->quiet_ns + CONTROL_REPLAY_RTTS * s->rtt_ns;

	switch (r->state) {
	case CONTROL_UP:
		return mono_add_ns(s->last_input.ns > r->since.ns ? s->last_input : r->since, limit_ns);
	case CONTROL_RESUMING:
		return mono_add_ns(r->since, limit_ns);
	case CONTROL_LOST:
		break;
	}
	return MONO_NEVER;
}

bool control_replay_tick(struct control_replay *r, const struct control_replay_session *s, struct mono now)
{
	if (control_replay_deadline(r, s).ns > now.ns)
		return false;
	control_replay_lost(r);
	return true;
}

bool control_replay_wants(const struct control_replay *r, const struct control_replay_session *s)
{
	return r->opens && r->state == CONTROL_LOST && control_replay_possible(r, s);
}

int control_replay_failed(struct control_replay *r, const struct ptcp_err *why, bool over, bool path_over,
    struct ptcp_err *e)
{
	next_path(r);
	r->n_refusals = path_over ? r->n_refusals + 1 : 0;
	if (r->n_refusals >= r->n_paths && path_over) {
		r->ended = true;
		return err_set(e, PTCP_EREFUSED, "control connection lost, and cannot be made again: %s", why->msg);
	}
	if (!over)
		return 0;
	r->ended = true;
	return err_set(e, PTCP_EPEER, "control connection lost, and the peer has ended the session: %s "
	    "(run the same command again)",
	    why->msg);
}

struct mono control_replay_deadline(const struct control_replay *r, const struct control_replay_session *s)
{
	return r->opens && control_replay_possible(r, s) ? dead_at(r, s) : MONO_NEVER;
}
