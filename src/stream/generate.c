/* Sending half of a measurement stream, on its worker: blocks of no entry, without pause. */
#include "stream/stream_impl.h"
#include "wire/block.h"

#define TURN_BYTES (1u << 20) /* per turn of the loop: fairness between streams */
#define NO_ENTRY (1u << 16)   /* a well-formed id of no entry */

static size_t frame_bytes(const struct generator *g)
{
	return WIRE_BLOCK_HEAD_BYTES + g->block.length_bytes + WIRE_BLOCK_END_BYTES;
}

static void start_frame(struct generator *g)
{
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	g->block = (struct wire_block){ NO_ENTRY, 0,
		g->left_bytes < STREAM_GENERATED_BLOCK ? (uint32_t)g->left_bytes : STREAM_GENERATED_BLOCK };
	wire_block_encode(g->head, &g->block);
	wire_block_end_encode(g->tail, &end);
}

/* The unwritten rest of the head, the data or the tail, whichever comes next. */
static size_t next_piece(const struct stream *s, const uint8_t **p)
{
	const struct generator *g = &s->gen;
	size_t data_end = WIRE_BLOCK_HEAD_BYTES + g->block.length_bytes;

	if (g->written < WIRE_BLOCK_HEAD_BYTES) {
		*p = g->head + g->written;
		return WIRE_BLOCK_HEAD_BYTES - g->written;
	}
	if (g->written < data_end) {
		*p = s->o.generate_data + (g->written - WIRE_BLOCK_HEAD_BYTES);
		return data_end - g->written;
	}
	*p = g->tail + (g->written - data_end);
	return frame_bytes(g) - g->written;
}

/* False: the channel is full or a rate limit applies; writable() or the timer of the limit resumes. */
static bool write_frame(struct stream *s)
{
	struct generator *g = &s->gen;
	const uint8_t *p;
	size_t allowed, n;

	while (g->written < frame_bytes(g)) {
		if ((allowed = stream_allowance(s, next_piece(s, &p))) == 0) {
			chan_flush(s->chan);
			return false;
		}
		n = chan_write(s->chan, p, allowed);
		stream_charge(s, n);
		g->written += n;
		if (n < allowed)
			return false;
	}
	g->left_bytes -= g->block.length_bytes;
	return true;
}

static void on_next_turn(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, gen.next_turn);

	s->gen.turn_posted = false;
	if (s->stopping)
		stream_try_gone(s);
	else
		stream_generate_writable(s);
}

void stream_generate_writable(void *arg)
{
	struct stream *s = arg;
	struct generator *g = &s->gen;
	size_t turn = 0;

	if (g->from.ns == 0)
		return; /* not started */
	if (g->left_bytes > 0 && g->written == 0 && s->memory.worked && memory_wanted(&s->memory.claim) && !chan_flushed(s->chan))
		return;
	if (g->left_bytes > 0 && !(g->written == 0 ? stream_memory_turn(s) : stream_memory_take(s)))
		return;
	while (g->left_bytes > 0 && turn < TURN_BYTES) {
		if (g->written == 0)
			start_frame(g);
		if (!write_frame(s))
			return;
		turn += g->block.length_bytes;
		g->written = 0;
		stream_memory_used(s);
	}
	if (g->left_bytes == 0) {
		chan_shutdown(s->chan);
	} else if (!g->turn_posted) {
		g->turn_posted = true;
		g->next_turn.run = on_next_turn;
		mailbox_post(s->box, &g->next_turn);
	}
}

void stream_generate_start(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, gen.start);

	if (s->stopping || s->lost_posted)
		return;
	s->gen.from = mono_now();
	stream_generate_writable(s);
}
