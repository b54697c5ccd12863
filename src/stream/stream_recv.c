/* Receiving half of a stream, on its worker: gathers a chunk of a block in memory, verifies it, and writes it to the
 * file. Corrupt data never reaches a file. A write that is expected to be fast is made on the worker, others on I/O
 * threads while the stream receives further chunks. A block is reported with its last chunk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "core/thread.h"
#include "core/units.h"
#include "stream/stream_impl.h"
#include "wire/block.h"

#define BLOCKS_PER_TURN 8u        /* per turn of the loop: fairness between streams */
#define SMALL_PER_TURN 128u
#define DISCARD_BYTES (16u << 10) /* at once: a TLS record */
#define WATCHED_WRITES 16
#define SLOW_WRITE_NS NS_PER_MS /* the disk, not the page cache, delays a write of 256 KiB for longer */
#define LOCK_RETRY_NS (20 * NS_PER_MS)
#define LOCK_TIMEOUT_NS (5 * NS_PER_S)
enum { LATE_RETRY_MS = 50, LATE_MS = 5000 }; /* delay of new files on a shared file system */

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

/* Gives memory back unless the stream has data. */
static void release(struct stream *s)
{
	if (!s->drained || s->sink != NULL || s->writes.n > 0)
		return;
	give_buf(s);
	stream_memory_give(s);
}

/* ---- Results ---- */

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

static void results_post(struct stream *s)
{
	struct results_msg *r = s->results;

	if (r == NULL)
		return;
	s->results = NULL;
	r->msg.run = run_results;
	loop_post(s->o.context->control, &r->msg);
}

/* One allocation for up to STREAM_RESULTS blocks of a turn. `hash` of a block that was written, else 0. */
static void result_add(struct stream *s, uint64_t id, uint32_t block, enum rcv_block_result what, struct digest term,
    uint64_t hash, uint32_t omitted_bytes, const struct ptcp_err *why)
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
	r->of[r->n].id = id;
	r->of[r->n].block = block;
	r->of[r->n].what = what;
	r->of[r->n].term = term;
	r->of[r->n].hash = hash;
	r->of[r->n].omitted_bytes = omitted_bytes;
	if (why != NULL && (r->of[r->n].why = malloc(sizeof *why)) != NULL)
		*r->of[r->n].why = *why;
	if (++r->n == STREAM_RESULTS)
		results_post(s);
}

/* ---- A part that another session has locked ---- */

static bool run_write(struct stream *s, struct stream_write *w);
static void resume(struct stream *s);

static void on_lock_timer(void *arg)
{
	struct stream *s = arg;
	struct stream_write *w = s->lock.write;

	s->lock.write = NULL;
	if (!s->stopping && w != NULL && run_write(s, w))
		resume(s);
}

static void on_lock_answer(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lock.query);

	s->lock.querying = false;
	if (s->lock.state == PART_QUERIED)
		s->lock.state = s->lock.holder == PART_OF_OTHERS ? PART_FOREIGN :
		    s->lock.holder == PART_OF_LIVING ? PART_LIVES : PART_FREE; /* query again */
	stream_io_done(s);
}

/* On the control thread. */
static void run_lock_query(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lock.query);

	s->lock.holder = s->o.ops->locked(s->o.arg, s->lock.dev, s->lock.ino, s->lock.since, s->lock.alone);
	m->run = on_lock_answer;
	mailbox_post(s->box, m);
}

/* Another session has locked the part, for example after its connection died unnoticed. Returns true if the stream
 * pauses and retries, false if the wait is over or pointless. */
static bool wait_for_lock(struct stream *s, struct stream_write *w)
{
	struct mono now = mono_now();
	struct ptcp_err e;

	if (s->lock.since.ns == 0)
		s->lock.since = now;
	switch (s->lock.state) {
	case PART_FREE:
		if (s->lock.querying) /* about an earlier block */
			break;
		if (!sink_part_id(w->sink, &s->lock.dev, &s->lock.ino))
			return false;
		s->lock.querying = true;
		s->lock.alone = sink_may_be_alone(w->sink);
		s->lock.state = PART_QUERIED;
		stream_io_begin(s);
		s->lock.query.run = run_lock_query;
		loop_post(s->o.context->control, &s->lock.query);
		break;
	case PART_QUERIED:
		break;
	case PART_LIVES:
		sink_part_alone(w->sink);
		s->lock.state = PART_FREE;
		break;
	case PART_FOREIGN:
		s->lock.state = PART_RETRIED;
		break;
	case PART_RETRIED:
		return false;
	}
	if (mono_diff_ns(now, s->lock.since) > LOCK_TIMEOUT_NS ||
	    (s->lock.timer == NULL && timer_new(&s->lock.timer, s->loop, on_lock_timer, s, &e) < 0))
		return false;
	s->lock.write = w;
	chan_pause(s->chan, true);
	timer_set(s->lock.timer, mono_add_ns(now, LOCK_RETRY_NS));
	return true;
}

/* ---- Writes ---- */

static void write_free(struct stream *s, struct stream_write *w)
{
	sink_unref(w->sink);
	w->sink = NULL;
	if (s->buf == NULL)
		s->buf = w->buf;
	else
		stream_memory_give_buf(s, w->buf);
	w->buf = NULL;
	s->writes.n--;
	s->writes.alone = false; /* set by the only write */
}

static void report_failed(struct stream *s, const struct stream_write *w)
{
	struct ptcp_err bare;

	if (s->id == w->block.id && s->block_index == w->chunk.block && s->state == BLOCK_GOOD)
		s->state = BLOCK_FAILED; /* further chunks are discarded */
	sink_err_at(&bare, &w->why, w->sink, s->o.users);
	/* A full disk ends the transfer: the error is reported without a path, so the message keeps its path. */
	result_add(s, w->block.id, w->chunk.block, RCV_BLOCK_FAILED, (struct digest){ 0, 0 }, 0, 0,
	    w->why.code == PTCP_ENOSPC ? &w->why : &bare);
}

/* Returns true when the chunk is done, false to retry the write later. */
static bool write_ended(struct stream *s, struct stream_write *w)
{
	struct digest term = { 0, 0 };

	if (w->result < 0 && w->why.sys == EWOULDBLOCK && s->writes.alone && !s->stopping && wait_for_lock(s, w))
		return false;
	if (s->writes.alone) {
		s->lock.since.ns = 0;
		s->lock.state = PART_FREE;
	}
	if (w->result < 0) {
		report_failed(s, w);
	} else if (w->chunk.last) {
		if (s->o.verify)
			term = hash_term(w->chunk.block, w->chunk.block_bytes, w->hash);
		result_add(s, w->block.id, w->chunk.block, RCV_BLOCK_WRITTEN, term, w->hash, w->omitted_bytes, NULL);
	}
	write_free(s, w);
	return true;
}

/* On the worker or an I/O thread. Decides where the session's next write is made. A write that only lacked a processor
 * is not slow: else a busy host would go on writing with threads, which compete for the processors. The count of waits
 * costs a system call, so only the writes that follow a long one are watched. */
static void write_chunk(struct stream_write *w)
{
	struct open_files *files = w->stream->o.files;
	const struct wire_block *b = &w->block;
	unsigned watched = atomic_load_explicit(&files->watched, memory_order_relaxed);
	uint64_t waits = watched > 0 ? thread_waits() : 0;
	struct mono start = mono_now();
	bool was_long, was_slow;

	w->result = w->chunk.last ? sink_write(w->sink, w->buf, b->length_bytes, b->offset, w->hash, &w->why) :
	    sink_write_chunk(w->sink, w->buf, b->length_bytes, b->offset, &w->why);
	was_long = mono_diff_ns(mono_now(), start) > SLOW_WRITE_NS;
	was_slow = was_long && watched > 0 && thread_waits() != waits;
	if (was_long || watched > 0)
		atomic_store_explicit(&files->watched, was_long ? WATCHED_WRITES : watched - 1, memory_order_relaxed);
	if (atomic_load_explicit(&files->slow, memory_order_relaxed) != was_slow)
		atomic_store_explicit(&files->slow, was_slow, memory_order_relaxed);
}

/* A shared file system may show the file of another host late. */
static bool is_late(const struct stream_write *w) { return w->result < 0 && sink_is_late(w->sink, &w->why); }

static void on_written(struct msg *m)
{
	struct stream_write *w = CONTAINER_OF(m, struct stream_write, done);
	struct stream *s = w->stream;

	if (write_ended(s, w))
		resume(s);
	stream_io_done(s);
}

/* On an I/O thread. */
static void write_on_disk(struct io_job *io)
{
	struct stream_write *w = CONTAINER_OF(io, struct stream_write, io);
	const struct mono until = mono_add_ns(mono_now(), LATE_MS * NS_PER_MS);
	const struct timespec pause = { 0, LATE_RETRY_MS * (long)NS_PER_MS };

	write_chunk(w);
	while (is_late(w) && mono_now().ns < until.ns) {
		nanosleep(&pause, NULL);
		write_chunk(w);
	}
	w->done.run = on_written;
	mailbox_post(w->stream->box, &w->done);
}

/* Returns false if the chunk waits for a lock. */
static bool run_write(struct stream *s, struct stream_write *w)
{
	if (!atomic_load_explicit(&s->o.files->slow, memory_order_relaxed) && !sink_is_direct(w->sink)) {
		atomic_store_explicit(&s->waits.writing_since_ns, mono_now().ns, memory_order_relaxed);
		write_chunk(w);
		atomic_store_explicit(&s->waits.writing_since_ns, 0, memory_order_relaxed);
		if (!is_late(w))
			return write_ended(s, w);
	}
	stream_io_begin(s);
	w->io.run = write_on_disk;
	io_submit(s->o.context->io, &w->io);
	return true;
}

/* Whether the complete chunk must not be written before earlier ones: the journal records a block with its last chunk,
 * and the write that opens a part may have to wait for its lock. */
static bool must_wait(const struct stream *s)
{
	return s->writes.n > 0 && (s->writes.alone || !sink_is_open(s->sink) || (s->chunk.index > 0 && s->chunk.last));
}

/* The next write: no other waits while one is free. */
static struct stream_write *free_write(struct stream *s)
{
	unsigned i = 0;

	while (s->writes.of[i].sink != NULL)
		i++;
	return &s->writes.of[i];
}

/* Writes the complete and verified chunk in `buf` to `sink`. False: the chunk waits, and the stream pauses. */
static bool start_write(struct stream *s)
{
	struct stream_write *w;

	if ((s->complete = must_wait(s))) {
		chan_pause(s->chan, true);
		return false;
	}
	w = free_write(s);
	w->stream = s;
	w->block = s->block;
	w->chunk = s->chunk;
	w->hash = s->chunk.last ? block_hash_end(&s->sum) : 0;
	w->omitted_bytes = s->omitted_bytes;
	w->sink = s->sink;
	w->buf = s->buf;
	s->sink = NULL;
	s->buf = NULL;
	s->writes.n++;
	s->writes.alone = !sink_is_open(w->sink);
	return run_write(s, w);
}

/* A write has ended: continues with the complete chunk, or receives on. */
static void resume(struct stream *s)
{
	if (s->complete && !s->stopping) {
		s->complete = must_wait(s);
		if (!s->complete && s->state != BLOCK_GOOD) {
			sink_unref(s->sink);
			s->sink = NULL;
		} else if (s->complete || !start_write(s)) {
			results_post(s);
			return;
		}
	}
	results_post(s);
	if (s->stopping)
		return;
	chan_pause(s->chan, false);
	release(s);
}

/* A complete chunk waits. */
static bool write_waits(const struct stream *s) { return s->complete || s->lock.write != NULL; }

/* Before a chunk: whether a further one may be received, with a buffer if others are being written; else the stream
 * pauses until a write ends. */
static bool write_room(struct stream *s)
{
	if (s->writes.n == 0)
		return true;
	if (!s->writes.alone && s->writes.n < STREAM_WRITES &&
	    (s->buf != NULL || (s->buf = stream_memory_take_buf(s)) != NULL))
		return true;
	chan_pause(s->chan, true);
	return false;
}

static void writes_fini(struct stream *s)
{
	unsigned i;

	for (i = 0; i < STREAM_WRITES; i++) { /* one that waits for a lock */
		sink_unref(s->writes.of[i].sink);
		free(s->writes.of[i].buf);
	}
	free(s->results);
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
	loop_post(s->o.context->control, &s->ask.query);
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
	s->received_bytes += wire_block_data_bytes(&s->block);
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
			result_add(s, s->block.id, s->chunk.block, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, 0, 0, NULL);
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
		result_add(s, s->block.id, s->chunk.block, RCV_BLOCK_BAD, (struct digest){ 0, 0 }, 0, 0, NULL);
	drop_sink(s);
}

/* Reads the pieces that the frame has left out from the part. */
static int recall(struct stream *s, uint64_t omit)
{
	uint32_t n = s->block.length_bytes, piece, end, at;
	struct ptcp_err ignored;

	for (piece = 0; piece < wire_pieces(n); piece = end) {
		for (end = piece; end < wire_pieces(n) && (omit >> end & 1) != 0; end++)
			;
		at = piece * WIRE_BLOCK_PIECE_BYTES;
		if (end == piece)
			end++;
		else if (sink_recall(s->sink, s->buf + at,
		    end == wire_pieces(n) ? n - at : end * WIRE_BLOCK_PIECE_BYTES - at,
		    s->block.offset + at, &ignored) < 0)
			return PTCP_EVERIFY;
	}
	return 0;
}

/* Restores the data of the chunk from its form in transit. PTCP_EVERIFY: it has another form. */
static int unpack(struct stream *s)
{
	uint32_t packed = s->block.packed_bytes, n = s->block.length_bytes, rest;
	uint64_t omit;
	int r = 0;

	s->omitted_bytes = 0;
	if (!s->block.patch)
		return packed > 0 ? packing_unpack(s->o.packing, s->buf, packed, n) : 0;
	packed -= WIRE_OMIT_BYTES;
	omit = get_u64(s->buf + packed);
	if (omit == 0 || !wire_omit_fits(omit, n))
		return PTCP_EVERIFY;
	rest = wire_patch_bytes(n, omit);
	if (packed < rest)
		r = packing_unpack(s->o.packing, s->buf, packed, rest);
	if (r < 0 || packed > rest)
		return r < 0 ? r : PTCP_EVERIFY;
	s->omitted_bytes = n - rest;
	wire_patch_spread(s->buf, n, omit);
	return recall(s, omit);
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
	if ((r = unpack(s)) == PTCP_ENOMEM)
		return err_nomem(e);
	if (r < 0) {
		corrupt(s);
		return 1;
	}
	if (s->o.verify || sink_has_journal(s->sink)) {
		hash = hash_content(s->buf, s->block.length_bytes);
		if (s->o.verify && end.check != hash_check(s->head + WIRE_HEADER_BYTES, hash)) {
			corrupt(s);
			return 1;
		}
		block_hash_add(&s->sum, hash);
	}
	return start_write(s);
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
		return write_room(s);
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
		if (!(s->sink != NULL ? gather(s, s->buf, wire_block_data_bytes(&s->block)) :
		    discard(s, wire_block_data_bytes(&s->block))))
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
	if (s->ask.asking || write_waits(s)) {
		chan_pause(s->chan, true);
		return;
	}
	s->drained = false;
	while ((r = step(s, &blocks, &small, &why)) > 0)
		;
	results_post(s);
	if (r < 0) {
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	} else {
		release(s);
	}
}

void stream_recv_fini(struct stream *s)
{
	writes_fini(s);
	sink_unref(s->sink);
	free(s->buf);
}
