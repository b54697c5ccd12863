/* Receiving half of a stream, on its worker: gathers a chunk of a block in memory, verifies the chunk and then writes
 * it to the file. Corrupt data never reaches a file. A block is reported with its last chunk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/stream_impl.h"
#include "store/store_err.h"

#define BLOCKS_PER_TURN 8u        /* per turn of the loop: fairness between streams */
#define SMALL_PER_TURN 128u
#define DISCARD_BYTES (16u << 10) /* at once: a TLS record */
#define SLOW_WRITE_NS (50 * NS_PER_MS)
#define SLOW_FOR_NS (5 * NS_PER_S)
#define LOCK_RETRY_NS (20 * NS_PER_MS)
#define LOCK_TIMEOUT_NS (5 * NS_PER_S)

struct results_msg {
	struct msg msg;
	struct stream *stream;
	struct stream_results results;
};

/* On the control thread. */
static void run_results(struct msg *m)
{
	struct results_msg *r = (struct results_msg *)(void *)m;

	r->stream->o.ops->received(r->stream->o.arg, r->stream, &r->results);
	free(r);
}

static void post_results(struct stream *s)
{
	struct results_msg *r = s->results;

	if (r == NULL)
		return;
	s->results = NULL;
	r->msg.run = run_results;
	loop_post(s->o.host->control, &r->msg);
}

/* One allocation for up to STREAM_RESULTS blocks of a turn. */
static void add_result(struct stream *s, enum rcv_block_result what, struct digest term, const struct ptcp_err *why)
{
	struct stream_results *r;
	struct ptcp_err nomem;

	if (s->results == NULL && (s->results = calloc(1, sizeof *s->results)) == NULL) {
		err_nomem(&nomem);
		stream_fail(s, &nomem);
		return;
	}
	s->results->stream = s;
	r = &s->results->results;
	r->of[r->n].id = s->block.id;
	r->of[r->n].block = s->chunk.block;
	r->of[r->n].what = what;
	r->of[r->n].term = term;
	if (why != NULL && (r->of[r->n].why = malloc(sizeof *why)) != NULL)
		*r->of[r->n].why = *why;
	if (++r->n == STREAM_RESULTS)
		post_results(s);
}

static bool write_out(struct stream *s);

static void on_lock_timer(void *arg)
{
	struct stream *s = arg;

	if (!s->stopping && s->sink != NULL && write_out(s)) {
		post_results(s);
		chan_pause(s->chan, false);
	}
}

static void on_lock_answer(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lock_query);

	s->querying = false;
	if (s->lock == PART_QUERIED)
		s->lock = s->yields ? PART_YIELDS : PART_FOREIGN;
	stream_io_done(s);
}

/* On the control thread. */
static void run_lock_query(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lock_query);

	s->yields = s->o.ops->locked(s->o.arg, s->locked_dev, s->locked_ino);
	m->run = on_lock_answer;
	loop_post(s->loop, m);
}

/* Another session has locked the part, for example after its connection died unnoticed. Returns true if the stream
 * pauses and retries, false if the wait is over or pointless. */
static bool wait_for_lock(struct stream *s)
{
	struct mono now = mono_now();
	struct ptcp_err e;

	switch (s->lock) {
	case PART_FREE:
		if (s->querying) /* about an earlier block */
			break;
		if (!sink_part_id(s->sink, &s->locked_dev, &s->locked_ino))
			return false;
		s->querying = true;
		s->lock = PART_QUERIED;
		stream_io_begin(s);
		s->lock_query.run = run_lock_query;
		loop_post(s->o.host->control, &s->lock_query);
		break;
	case PART_QUERIED:
	case PART_YIELDS:
		break;
	case PART_FOREIGN:
		s->lock = PART_RETRIED;
		break;
	case PART_RETRIED:
		return false;
	}
	if (s->locked_since.ns == 0)
		s->locked_since = now;
	if (mono_diff_ns(now, s->locked_since) > LOCK_TIMEOUT_NS ||
	    (s->lock_timer == NULL && timer_new(&s->lock_timer, s->loop, on_lock_timer, s, &e) < 0))
		return false;
	chan_pause(s->chan, true);
	timer_set(s->lock_timer, mono_add_ns(now, LOCK_RETRY_NS));
	return true;
}

static void give_buf(struct stream *s)
{
	loop_buffer_give(s->loop, s->buf, false);
	s->buf = NULL;
}

static void drop_sink(struct stream *s)
{
	sink_unref(s->sink);
	s->sink = NULL;
}

static void report_written(struct stream *s)
{
	struct digest term = { 0, 0 };

	if (s->o.verify)
		term = hash_term(s->chunk.block, s->chunk.block_bytes, block_hash_end(&s->sum));
	add_result(s, RCV_BLOCK_WRITTEN, term, NULL);
}

/* Returns true when the chunk is done, false to retry the write later. */
static bool write_ended(struct stream *s, int result, const struct ptcp_err *why)
{
	const struct digest none = { 0, 0 };
	char path[DIR_PATH_TEXT_BYTES];
	struct ptcp_err bare;

	if (result < 0 && why->sys == EWOULDBLOCK && !s->stopping && wait_for_lock(s))
		return false;
	s->locked_since.ns = 0;
	s->lock = PART_FREE;
	if (result == 0) {
		if (s->chunk.last)
			report_written(s);
	} else {
		s->state = BLOCK_FAILED;
		store_err_strip(&bare, why, sink_path_text(s->sink, path, sizeof path));
		/* A full disk ends the transfer: the error is reported without a path, so the message keeps its path. */
		add_result(s, RCV_BLOCK_FAILED, none, why->code == PTCP_ENOSPC ? why : &bare);
	}
	drop_sink(s);
	return true;
}

static void on_write_done(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, write_done);

	if (write_ended(s, s->write_result, &s->write_why)) {
		post_results(s);
		if (!s->stopping)
			chan_pause(s->chan, false);
	}
	stream_io_done(s);
}

static int write_chunk(struct stream *s, struct ptcp_err *e)
{
	const struct wire_block *b = &s->block;

	return s->chunk.last ? sink_write(s->sink, s->buf, b->length_bytes, b->offset, block_hash_end(&s->sum), e) :
	    sink_write_chunk(s->sink, s->buf, b->length_bytes, b->offset, e);
}

/* On an I/O thread. */
static void write_on_disk(struct io_job *io)
{
	struct stream *s = CONTAINER_OF(io, struct stream, write_io);

	s->write_result = write_chunk(s, &s->write_why);
	s->write_done.run = on_write_done;
	loop_post(s->loop, &s->write_done);
}

/* Writes into the page cache from the worker. After a slow write, the next writes are made on I/O threads while the
 * stream pauses. Returns false if the stream pauses. */
static bool write_out(struct stream *s)
{
	struct mono start = mono_now(), end;
	struct ptcp_err why;
	int r;

	if (start.ns < s->slow_until.ns) {
		chan_pause(s->chan, true);
		stream_io_begin(s);
		s->write_io.run = write_on_disk;
		io_submit(s->o.host->io, &s->write_io);
		return false;
	}
	r = write_chunk(s, &why);
	end = mono_now();
	if (mono_diff_ns(end, start) > SLOW_WRITE_NS)
		s->slow_until = mono_add_ns(end, SLOW_FOR_NS);
	return write_ended(s, r, &why);
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

/* Decodes the head, looks up the file and makes room for data that is not discarded. */
static int start_chunk(struct stream *s, struct ptcp_err *e)
{
	bool ok;
	int r;

	if ((r = wire_block_decode(&s->block, s->head, e)) < 0)
		return r;
	if (s->received_bytes == 0)
		s->first_at = mono_now();
	s->received_bytes += s->block.length_bytes;
	if (s->o.max_bytes > 0 && s->received_bytes > s->o.max_bytes)
		return err_set(e, PTCP_EREFUSED, "a measurement stream exceeded this host's limit of bytes");
	s->sink = open_files_find(s->o.files, &s->block, &s->chunk, &ok);
	if (!ok || (s->sink != NULL && !take_chunk(s)))
		return err_set(e, PTCP_EPROTO, "a block that does not fit its file");
	if (s->sink != NULL && s->state != BLOCK_GOOD) {
		if (s->state == BLOCK_CORRUPT && s->chunk.last)
			add_result(s, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, NULL);
		drop_sink(s);
	}
	if (s->sink != NULL && s->buf == NULL && (s->buf = loop_buffer_take(s->loop, false)) == NULL)
		return err_nomem(e);
	return 0;
}

static void corrupt(struct stream *s)
{
	s->state = BLOCK_CORRUPT;
	if (s->chunk.last)
		add_result(s, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, NULL);
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
		s->state = BLOCK_NONE; /* of this block nothing more arrives */
		drop_sink(s);
	}
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
	return write_out(s);
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
	bool wanted = memory_wanted(&s->memory);

	chan_read_ahead(s->chan, !wanted);
	if (!wanted || !s->worked || chan_holds_input(s->chan))
		return true;
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
		if ((r = start_chunk(s, e)) < 0)
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
		s->worked = true;
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
	s->drained = false;
	while ((r = step(s, &blocks, &small, &why)) > 0)
		;
	post_results(s);
	if (r < 0) {
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	} else if (s->drained && s->sink == NULL) {
		give_buf(s);
		stream_memory_give(s);
	}
}

void stream_recv_fini(struct stream *s)
{
	sink_unref(s->sink);
	free(s->results);
	free(s->buf);
}
