/* Writes of a receiving stream, and their results: a write that is expected to be fast is made on the worker, others on
 * I/O threads while the stream receives further chunks. A block is reported with its last chunk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/thread.h"
#include "core/units.h"
#include "stream/stream_impl.h"
#include "fs/fs_err.h"
#include "wire/block.h"

#define WATCHED_WRITES 16
#define SLOW_WRITE_NS NS_PER_MS /* the disk, not the page cache, delays a write of 256 KiB for longer */
#define LOCK_RETRY_NS (20 * NS_PER_MS)
#define LOCK_TIMEOUT_NS (5 * NS_PER_S)

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

void stream_results_post(struct stream *s)
{
	struct results_msg *r = s->results;

	if (r == NULL)
		return;
	s->results = NULL;
	r->msg.run = run_results;
	loop_post(s->o.host->control, &r->msg);
}

/* One allocation for up to STREAM_RESULTS blocks of a turn. */
void stream_result_add(struct stream *s, uint64_t id, uint32_t block, enum rcv_block_result what, struct digest term,
    uint64_t hash, const struct ptcp_err *why)
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
	if (why != NULL && (r->of[r->n].why = malloc(sizeof *why)) != NULL)
		*r->of[r->n].why = *why;
	if (++r->n == STREAM_RESULTS)
		stream_results_post(s);
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
		s->lock.state = s->lock.yields ? PART_YIELDS : PART_FOREIGN;
	stream_io_done(s);
}

/* On the control thread. */
static void run_lock_query(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lock.query);

	s->lock.yields = s->o.ops->locked(s->o.arg, s->lock.dev, s->lock.ino);
	m->run = on_lock_answer;
	mailbox_post(s->box, m);
}

/* Another session has locked the part, for example after its connection died unnoticed. Returns true if the stream
 * pauses and retries, false if the wait is over or pointless. */
static bool wait_for_lock(struct stream *s, struct stream_write *w)
{
	struct mono now = mono_now();
	struct ptcp_err e;

	switch (s->lock.state) {
	case PART_FREE:
		if (s->lock.querying) /* about an earlier block */
			break;
		if (!sink_part_id(w->sink, &s->lock.dev, &s->lock.ino))
			return false;
		s->lock.querying = true;
		s->lock.state = PART_QUERIED;
		stream_io_begin(s);
		s->lock.query.run = run_lock_query;
		loop_post(s->o.host->control, &s->lock.query);
		break;
	case PART_QUERIED:
	case PART_YIELDS:
		break;
	case PART_FOREIGN:
		s->lock.state = PART_RETRIED;
		break;
	case PART_RETRIED:
		return false;
	}
	if (s->lock.since.ns == 0)
		s->lock.since = now;
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
	s->writes.alone = false; /* this was the only one, if it is set */
}

static void report_failed(struct stream *s, const struct stream_write *w)
{
	struct ptcp_err bare;

	if (s->id == w->block.id && s->block_index == w->chunk.block && s->state == BLOCK_GOOD)
		s->state = BLOCK_FAILED; /* further chunks are discarded */
	sink_err_at(&bare, &w->why, w->sink, s->o.users);
	/* A full disk ends the transfer: the error is reported without a path, so the message keeps its path. */
	stream_result_add(s, w->block.id, w->chunk.block, RCV_BLOCK_FAILED, (struct digest){ 0, 0 }, 0,
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
		stream_result_add(s, w->block.id, w->chunk.block, RCV_BLOCK_WRITTEN, term, w->hash, NULL);
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

	write_chunk(w);
	w->done.run = on_written;
	mailbox_post(w->stream->box, &w->done);
}

/* Returns false if the chunk waits for a lock. */
static bool run_write(struct stream *s, struct stream_write *w)
{
	if (!atomic_load_explicit(&s->o.files->slow, memory_order_relaxed) && !sink_is_direct(w->sink)) {
		write_chunk(w);
		return write_ended(s, w);
	}
	stream_io_begin(s);
	w->io.run = write_on_disk;
	io_submit(s->o.host->io, &w->io);
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

bool stream_write(struct stream *s)
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
		} else if (s->complete || !stream_write(s)) {
			stream_results_post(s);
			return;
		}
	}
	stream_results_post(s);
	if (s->stopping)
		return;
	chan_pause(s->chan, false);
	stream_recv_release(s);
}

bool stream_write_waits(const struct stream *s) { return s->complete || s->lock.write != NULL; }

bool stream_write_room(struct stream *s)
{
	if (s->writes.n == 0)
		return true;
	if (!s->writes.alone && s->writes.n < STREAM_WRITES &&
	    (s->buf != NULL || (s->buf = stream_memory_take_buf(s)) != NULL))
		return true;
	chan_pause(s->chan, true);
	return false;
}

void stream_write_fini(struct stream *s)
{
	unsigned i;

	for (i = 0; i < STREAM_WRITES; i++) { /* one that waits for a lock */
		sink_unref(s->writes.of[i].sink);
		free(s->writes.of[i].buf);
	}
	free(s->results);
}
