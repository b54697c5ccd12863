/* The sending half of a stream that probes, on its worker: blocks of no entry, as fast as they go. */
#include <string.h>

#include "core/err.h"
#include "session/stream_impl.h"

#define TURN_BYTES (1u << 20) /* so that one stream does not starve the others */
#define NO_ENTRY (1u << 16)   /* an id that is well-formed; nothing has it in such a session */

static size_t frame_bytes(const struct flood *f)
{
	return WIRE_BLOCK_HEAD_BYTES + f->block.length_bytes + WIRE_BLOCK_END_BYTES;
}

static void start_frame(struct flood *f)
{
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	f->block = (struct wire_block){ NO_ENTRY, 0,
		f->left < STREAM_FLOOD_BLOCK ? (uint32_t)f->left : STREAM_FLOOD_BLOCK };
	wire_block_encode(f->head, &f->block);
	wire_block_end_encode(f->tail, &end);
}

/* The rest of the head, the data or the tail, whichever is next. */
static size_t next_piece(const struct stream *s, const uint8_t **p)
{
	const struct flood *f = &s->flood;
	size_t data_end = WIRE_BLOCK_HEAD_BYTES + f->block.length_bytes;

	if (f->at < WIRE_BLOCK_HEAD_BYTES) {
		*p = f->head + f->at;
		return WIRE_BLOCK_HEAD_BYTES - f->at;
	}
	if (f->at < data_end) {
		*p = s->o.flood_data + (f->at - WIRE_BLOCK_HEAD_BYTES);
		return data_end - f->at;
	}
	*p = f->tail + (f->at - data_end);
	return frame_bytes(f) - f->at;
}

/* False: the channel takes no more now, or the rate forbids it. */
static bool write_frame(struct stream *s)
{
	struct flood *f = &s->flood;
	const uint8_t *p;
	size_t leave, done;

	while (f->at < frame_bytes(f)) {
		if ((leave = stream_leave(s, next_piece(s, &p))) == 0) {
			chan_flush(s->chan);
			return false;
		}
		done = chan_write(s->chan, p, leave);
		stream_took(s, done);
		f->at += done;
		if (done < leave)
			return false;
	}
	f->left -= f->block.length_bytes;
	return true;
}

static void flood(struct stream *s);

static void on_again(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, flood.again);

	s->flood.posted = false;
	if (s->stopping)
		stream_try_gone(s);
	else
		flood(s);
}

static void flood(struct stream *s)
{
	struct flood *f = &s->flood;
	size_t turn = 0;

	while (f->left > 0 && turn < TURN_BYTES) {
		if (f->at == 0)
			start_frame(f);
		if (!write_frame(s))
			return; /* writable() or the rate's timer goes on */
		turn += f->block.length_bytes;
		f->at = 0;
	}
	if (f->left == 0 && s->o.flood_open) {
		chan_flush(s->chan);
	} else if (f->left == 0) {
		chan_shutdown(s->chan);
	} else if (!f->posted) {
		f->posted = true;
		f->again.run = on_again;
		loop_post(s->loop, &f->again);
	}
}

void stream_flood_start(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, flood.start);

	if (s->stopping || s->told_lost)
		return;
	s->flood.from = mono_now();
	s->flood.left += s->flood.more;
	s->flood.more = 0;
	atomic_fetch_add(&s->flood.taken, 1);
	flood(s);
}

void stream_flood_writable(void *arg)
{
	struct stream *s = arg;

	if (s->flood.from.ns > 0)
		flood(s);
}

void stream_flood_closed(void *arg, const struct ptcp_err *why)
{
	struct stream *s = arg;
	struct ptcp_err closed;

	s->flood.until = mono_now();
	s->flood.whole = s->flood.from.ns > 0 && s->flood.left == 0;
	if (why == NULL) {
		err_set(&closed, PTCP_EPEER, "the peer closed the connection");
		why = &closed;
	}
	stream_fail(s, why);
}
