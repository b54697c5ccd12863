/* Receiving half of a stream, on its worker: gathers a chunk of a block in memory and verifies the chunk;
 * write.c writes it to the file. Corrupt data never reaches a file. */
#include <stdlib.h>

#include "core/err.h"
#include "stream/stream_impl.h"
#include "wire/block.h"

#define BLOCKS_PER_TURN 8u        /* per turn of the loop: fairness between streams */
#define SMALL_PER_TURN 128u
#define DISCARD_BYTES (16u << 10) /* at once: a TLS record */

static void give_buf(struct stream *s)
{
	stream_memory_give_buf(s, s->buf);
	s->buf = NULL;
}

static void drop_sink(struct stream *s)
{
	sink_unref(s->sink);
	s->sink = NULL;
}

/* The chunks of a block arrive in order, without other frames in between. */
static bool take_chunk(struct stream *s)
{
	const struct wire_chunk *c = &s->chunk;

	if (c->index == 0) {
		s->id = s->block.id;
		s->state = BLOCK_GOOD;
		s->sum.n = 0;
		s->next_chunk = 0;
		s->block_index = c->block;
	} else if (s->state == BLOCK_NONE || s->id != s->block.id || s->block_index != c->block ||
	    s->next_chunk != c->index) {
		return false;
	}
	s->next_chunk++;
	return true;
}

/* ---- Data of a file that is not open ---- */

static void on_answer(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, ask.query);

	s->ask.asking = false;
	s->ask.answered = true;
	if (!s->stopping)
		chan_pause(s->chan, false);
	stream_io_done(s);
}

/* On the control thread. */
static void run_query(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, ask.query);

	s->o.ops->unknown(s->o.arg, s, s->block.id);
}

void stream_known(struct stream *s)
{
	s->ask.query.run = on_answer;
	mailbox_post(s->box, &s->ask.query);
}

/* True: the stream pauses until the answer. */
static bool ask(struct stream *s)
{
	if (s->o.ops->unknown == NULL || s->ask.answered || !wire_id_ok(s->block.id))
		return false;
	s->ask.asking = true;
	stream_io_begin(s);
	chan_pause(s->chan, true);
	s->ask.query.run = run_query;
	loop_post(s->o.host->control, &s->ask.query);
	return true;
}

/* ---- Chunks ---- */

static int take_head(struct stream *s, struct ptcp_err *e)
{
	int r;

	if ((r = wire_block_decode(&s->block, s->head, e)) < 0)
		return r;
	if (s->received_bytes == 0)
		s->first_at = mono_now();
	s->received_bytes += s->block.length_bytes;
	if (s->o.max_bytes > 0 && s->received_bytes > s->o.max_bytes)
		return err_set(e, PTCP_EREFUSED, "a measurement stream exceeded this host's limit of bytes");
	s->ask.answered = false;
	return 0;
}

/* Looks up the file and makes room for data that is not discarded. 0: the stream pauses. */
static int start_chunk(struct stream *s, struct ptcp_err *e)
{
	bool ok;

	s->sink = open_files_find(s->o.files, &s->block, &s->chunk, &ok);
	if (s->sink == NULL && ok && ask(s))
		return 0;
	if (!ok || (s->sink != NULL && !take_chunk(s)))
		return err_set(e, PTCP_EPROTO, "a block that does not fit its file");
	if (s->sink != NULL && s->state != BLOCK_GOOD) {
		if (s->state == BLOCK_CORRUPT && s->chunk.last)
			stream_result_add(s, s->block.id, s->chunk.block, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, 0, NULL);
		drop_sink(s);
	}
	if (s->sink != NULL && s->buf == NULL && (s->buf = stream_memory_take_buf(s)) == NULL)
		return err_nomem(e);
	return 1;
}

static void corrupt(struct stream *s)
{
	s->state = BLOCK_CORRUPT;
	if (s->chunk.last)
		stream_result_add(s, s->block.id, s->chunk.block, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, 0, NULL);
	drop_sink(s);
}

/* The chunk is complete: verifies and writes it. 1: continue, 0: paused, negative: the peer broke the protocol. */
static int end_chunk(struct stream *s, struct ptcp_err *e)
{
	struct wire_block_end end;
	uint64_t hash;
	int r;

	if ((r = wire_block_end_decode(&end, s->tail, e)) < 0)
		return r;
	if (s->sink != NULL && end.status == WIRE_BLOCK_VOID) {
		s->state = BLOCK_NONE; /* nothing more of this block arrives */
		drop_sink(s);
	}
	if (s->sink != NULL && s->state != BLOCK_GOOD) /* an earlier chunk could not be written meanwhile */
		drop_sink(s);
	if (s->sink == NULL)
		return 1;
	if (s->o.verify || sink_has_journal(s->sink)) {
		hash = hash_content(s->buf, s->block.length_bytes);
		if (s->o.verify && end.check != hash_check(s->head + WIRE_HEADER_BYTES, hash)) {
			corrupt(s);
			return 1;
		}
		block_hash_add(&s->sum, hash);
	}
	return stream_write(s);
}

/* Reads one part of the frame. False: the part is incomplete; more data or the timer of a rate limit resumes. */
static bool gather(struct stream *s, uint8_t *to, size_t n)
{
	size_t allowed, got;

	while (s->got < n) {
		if ((allowed = stream_allowance(s, n - s->got)) == 0) {
			chan_pause(s->chan, true);
			return false;
		}
		got = chan_read(s->chan, to + s->got, allowed);
		stream_charge(s, got);
		s->got += got;
		if (got < allowed) {
			s->drained = true;
			return false;
		}
	}
	s->got = 0;
	return true;
}

/* As gather(), of data without a destination. */
static bool discard(struct stream *s, size_t n)
{
	uint8_t scratch[DISCARD_BYTES];
	size_t allowed, got;

	while (s->got < n) {
		if ((allowed = stream_allowance(s, n - s->got < sizeof scratch ? n - s->got : sizeof scratch)) == 0) {
			chan_pause(s->chan, true);
			return false;
		}
		got = chan_read(s->chan, scratch, allowed);
		stream_charge(s, got);
		s->got += got;
		if (got < allowed) {
			s->drained = true;
			return false;
		}
	}
	s->got = 0;
	return true;
}

/* Between two frames: while others wait for memory, the stream reads no further ahead, and gives way as soon as it
 * has no data in buffers. */
static bool next_turn(struct stream *s)
{
	bool wanted = memory_wanted(&s->memory.claim);

	chan_read_ahead(s->chan, !wanted);
	if (!wanted || !s->memory.worked || chan_holds_input(s->chan))
		return stream_write_room(s);
	if (s->writes.n > 0) {
		chan_pause(s->chan, true);
		return false;
	}
	give_buf(s);
	return stream_memory_turn(s);
}

/* 1: continue, 0: stop for now, negative: the peer broke the protocol. */
static int step(struct stream *s, unsigned *blocks, unsigned *small, struct ptcp_err *e)
{
	int r;

	switch (s->phase) {
	case PHASE_HEAD:
		if (s->got == 0 && !next_turn(s))
			return 0;
		if (!gather(s, s->head, sizeof s->head))
			return 0;
		if ((r = take_head(s, e)) < 0)
			return r;
		s->phase = PHASE_FILE;
		return 1;
	case PHASE_FILE:
		if ((r = start_chunk(s, e)) <= 0)
			return r;
		s->phase = PHASE_BODY;
		return 1;
	case PHASE_BODY:
		if (!(s->sink != NULL ? gather(s, s->buf, s->block.length_bytes) : discard(s, s->block.length_bytes)))
			return 0;
		s->phase = PHASE_END;
		return 1;
	case PHASE_END:
		if (!gather(s, s->tail, sizeof s->tail))
			return 0;
		s->phase = PHASE_HEAD;
		stream_memory_used(s);
		if ((r = end_chunk(s, e)) <= 0)
			return r;
		if (s->block.length_bytes >= WIRE_CHUNK_BYTES / 2)
			++*blocks;
		return ++*small < SMALL_PER_TURN && *blocks < BLOCKS_PER_TURN;
	}
	return 0;
}

void stream_recv_readable(void *arg)
{
	struct stream *s = arg;
	unsigned blocks = 0, small = 0;
	struct ptcp_err why;
	int r;

	if (s->lost_posted || !stream_memory_take(s))
		return;
	if (s->ask.asking || stream_write_waits(s)) {
		chan_pause(s->chan, true);
		return;
	}
	s->drained = false;
	while ((r = step(s, &blocks, &small, &why)) > 0)
		;
	stream_results_post(s);
	if (r < 0) {
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	} else {
		stream_recv_release(s);
	}
}

void stream_recv_release(struct stream *s)
{
	if (!s->drained || s->sink != NULL || s->writes.n > 0)
		return;
	give_buf(s);
	stream_memory_give(s);
}

void stream_recv_fini(struct stream *s)
{
	stream_write_fini(s);
	sink_unref(s->sink);
	free(s->buf);
}
