/* Sending half of a stream, on its worker: reads a job, hashes the data while it is in the cache, lays the frames out
 * in one buffer, which the channel encrypts and sends. A block larger than the buffer is sent chunk by chunk. Data that
 * is neither hashed nor encrypted goes from the page cache to the socket. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "fs/fs_err.h"
#include "stream/stream_impl.h"
#include "wire/block.h"

#define FRAME_BYTES (WIRE_BLOCK_HEAD_BYTES + WIRE_BLOCK_END_BYTES)
#define SENDFILE_BYTES (64u << 10) /* less is copied: three system calls cost as much */
#define LEAD_BYTES (DIRECT_IO_BYTES - WIRE_BLOCK_HEAD_BYTES) /* unused: so the data of the first frame is aligned */
#define BUF_BYTES (LEAD_BYTES + SND_JOB_BYTES + SND_JOB_EXTENTS * FRAME_BYTES)

static_assert(SND_JOB_BYTES >= WIRE_CHUNK_BYTES && WIRE_CHUNK_BYTES == HASH_CHUNK_BYTES &&
    WIRE_BLOCK_MAX == HASH_CHUNKS_MAX * HASH_CHUNK_BYTES, "a chunk fits the buffer and its block the hash");
static_assert(BUF_BYTES <= LOOP_BUFFER_BYTES, "a job fits a buffer of the loop");
static_assert(LOOP_BUFFER_ALIGN % DIRECT_IO_BYTES == 0, "data at the start of a buffer is aligned");

static void extent_failed(struct stream_job *job, unsigned i, const struct ptcp_err *why)
{
	char path[DIR_PATH_TEXT_BYTES];

	job->failed[i] = true;
	if ((job->why[i] = malloc(sizeof *why)) != NULL)
		fs_err_strip(job->why[i], why, source_path_text(job->source[i], path, sizeof path));
}

static uint32_t omitted_bytes(const struct snd_extent *x)
{
	return x->omit == 0 ? 0 : x->length - wire_patch_bytes(x->length, x->omit);
}

/* Leaves pieces of the block's data out, and compresses the rest. */
static void patch(struct stream_job *job, unsigned i, struct wire_block *b, uint8_t *data, uint64_t omit)
{
	uint32_t n = wire_patch_gather(data, b->length_bytes, omit), packed = 0;

	if (n > 0)
		packed = packing_pack(job->stream->o.packing, job->source[i], data, n);
	n = packed > 0 ? packed : n;
	put_u64(data + n, omit);
	b->patch = true;
	b->packed_bytes = n + WIRE_OMIT_BYTES;
}

/* Completes the frame around the n bytes of data at p + WIRE_BLOCK_HEAD_BYTES, from extent_read on. Returns its
 * length. */
static size_t finish_frame(struct stream_job *job, unsigned i, uint8_t *p, uint32_t n, bool verify)
{
	const struct snd_extent *x = &job->job.extent[i];
	uint8_t *data = p + WIRE_BLOCK_HEAD_BYTES;
	uint64_t content = verify ? hash_content(data, n) : 0;
	struct wire_block b = { .id = x->id, .offset = x->offset + job->extent_read, .length_bytes = n };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	if (x->omit != 0)
		patch(job, i, &b, data, x->omit);
	else
		b.packed_bytes = packing_pack(job->stream->o.packing, job->source[i], data, n);
	job->saved_bytes += n - omitted_bytes(x) - (wire_block_data_bytes(&b) - (b.patch ? WIRE_OMIT_BYTES : 0));
	wire_block_encode(p, &b);
	if (verify) {
		end.check = hash_check(p + WIRE_HEADER_BYTES, content);
		block_hash_add(&job->sum, content);
		if (job->extent_read + n == x->length)
			job->term[i] = hash_term(x->block, x->length, block_hash_end(&job->sum));
	}
	wire_block_end_encode(data + wire_block_data_bytes(&b), &end);
	return wire_block_data_bytes(&b) + FRAME_BYTES;
}

/* The rest of an extent cannot be read: after its first chunk the receiver must be told. */
static void end_extent(struct stream_job *job, unsigned i, uint8_t *p, uint32_t n)
{
	const struct snd_extent *x = &job->job.extent[i];
	struct wire_block b = { .id = x->id, .offset = x->offset + job->extent_read, .length_bytes = n };
	struct wire_block_end end = { WIRE_BLOCK_VOID, 0 };

	if (job->extent_read == 0)
		return;
	memset(p + wire_block_encode(p, &b), 0, n);
	wire_block_end_encode(p + WIRE_BLOCK_HEAD_BYTES + n, &end);
	job->fill += n + FRAME_BYTES;
}

/* A chunk of extent n_read is laid out. */
static void chunk_done(struct stream_job *job, uint32_t n)
{
	job->extent_read += n;
	if (job->extent_read == job->job.extent[job->n_read].length) {
		job->n_read++;
		job->extent_read = 0;
		job->sum.n = 0;
	}
}

/* Lays out the next chunk of extent n_read without its data. */
static void leave_out(struct stream_job *job, uint32_t n)
{
	const struct snd_extent *x = &job->job.extent[job->n_read];
	struct wire_block b = { .id = x->id, .offset = x->offset + job->extent_read, .length_bytes = n };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	job->unread.extent = job->n_read;
	job->unread.offset = b.offset;
	job->unread.left = n;
	job->unread.at = job->fill + wire_block_encode(job->buf + job->fill, &b);
	job->fill = job->unread.at + wire_block_end_encode(job->buf + job->unread.at, &end);
	chunk_done(job, n);
}

/* Reads the data that is still to be sent, when it cannot be sent from the file. STORE_AGAIN: the read would block. */
static int read_rest(struct stream_job *job, bool wait)
{
	struct wire_block_end end = { WIRE_BLOCK_VOID, 0 };
	uint32_t n = job->unread.left;
	uint8_t *p = job->buf + job->unread.at;
	struct ptcp_err why;
	int r;

	if ((r = source_read(job->source[job->unread.extent], p, n, job->unread.offset, wait, &why)) == STORE_AGAIN)
		return r;
	if (r < 0) {
		extent_failed(job, job->unread.extent, &why);
		memset(p, 0, n);
		if (job->n_read == job->unread.extent)
			chunk_done(job, job->job.extent[job->n_read].length - job->extent_read);
	} else {
		end.status = WIRE_BLOCK_GOOD;
	}
	wire_block_end_encode(p + n, &end);
	job->fill = job->unread.at + n + WIRE_BLOCK_END_BYTES;
	job->unread.left = 0;
	job->ready = true;
	return 0;
}

/* Reads the next chunk of extent n_read. STORE_AGAIN: the read would block. */
static int read_chunk(struct stream_job *job, uint32_t n, bool verify, bool wait)
{
	unsigned i = job->n_read;
	const struct snd_extent *x = &job->job.extent[i];
	uint8_t *p = job->buf + job->fill;
	struct ptcp_err why;
	int r;

	r = source_read(job->source[i], p + WIRE_BLOCK_HEAD_BYTES, n, x->offset + job->extent_read, wait, &why);
	if (r == STORE_AGAIN)
		return r;
	if (r < 0) {
		extent_failed(job, i, &why);
		end_extent(job, i, p, n);
		n = x->length - job->extent_read;
	} else {
		job->fill += finish_frame(job, i, p, n, verify);
	}
	chunk_done(job, n);
	return 0;
}

/* The next chunk of extent n_read can be sent from its file. */
static bool by_sendfile(const struct stream_job *job, uint32_t n)
{
	const struct stream *s = job->stream;

	return n >= SENDFILE_BYTES && job->job.extent[job->n_read].omit == 0 && !s->o.verify &&
	    chan_is_raw(s->chan) && packing_level(s->o.packing) == 0 &&
	    source_in_memory(job->source[job->n_read], n, job->job.extent[job->n_read].offset + job->extent_read);
}

/* Reads on until the buffer is full or has the rest of the job. STORE_AGAIN: the next read would block. An extent
 * that cannot be read leaves no frame. */
static int read_extents(struct stream_job *job, bool verify, bool wait)
{
	uint32_t n;
	int r;

	if (job->unread.left > 0)
		return read_rest(job, wait);
	while (job->n_read < job->job.n && job->unread.left == 0) {
		n = job->job.extent[job->n_read].length - job->extent_read;
		if (n > WIRE_CHUNK_BYTES)
			n = WIRE_CHUNK_BYTES;
		if (job->fill + n + FRAME_BYTES > BUF_BYTES)
			break;
		if (!wait && by_sendfile(job, n))
			leave_out(job, n);
		else if ((r = read_chunk(job, n, verify, wait)) != 0)
			return r;
	}
	job->ready = true;
	return 0;
}

static void on_read(struct msg *m)
{
	struct stream_job *job = CONTAINER_OF(m, struct stream_job, msg);
	struct stream *s = job->stream;

	job->reading = false;
	if (!s->stopping)
		stream_send_writable(s);
	stream_io_done(s); /* may free the stream */
}

/* On an I/O thread. */
static void read_on_disk(struct io_job *io)
{
	struct stream_job *job = CONTAINER_OF(io, struct stream_job, io);

	read_extents(job, job->stream->o.verify, true);
	job->msg.run = on_read;
	mailbox_post(job->stream->box, &job->msg);
}

/* The job's buffer; for the first job, whose memory is there, always. False: too little memory to read ahead. */
static bool have_buf(struct stream *s, struct stream_job *job)
{
	struct ptcp_err why;

	if (job->buf != NULL || job->ready || (job->buf = stream_memory_take_buf(s)) != NULL)
		return true;
	if (job != s->first)
		return false;
	err_nomem(&why);
	for (; job->n_read < job->job.n; job->n_read++)
		extent_failed(job, job->n_read, &why);
	job->ready = true;
	return true;
}

/* Returns true if the buffer is ready to be sent; otherwise an I/O thread reads. */
static bool job_read(struct stream *s, struct stream_job *job)
{
	if (job->reading || !have_buf(s, job))
		return false;
	if (job->ready || read_extents(job, s->o.verify, false) == 0)
		return true;
	job->reading = true;
	job->io.run = read_on_disk;
	stream_io_begin(s);
	io_submit(s->o.context->io, &job->io);
	return false;
}

/* Writes buf[written..end). False: the channel is full or a rate limit applies; writable() or the timer of the limit
 * resumes. */
static bool write_until(struct stream *s, struct stream_job *job, size_t end)
{
	size_t allowed, n;

	while (s->written < end) {
		if ((allowed = stream_allowance(s, end - s->written)) == 0) {
			chan_flush(s->chan);
			return false;
		}
		n = chan_write(s->chan, job->buf + s->written, allowed);
		stream_charge(s, n);
		s->written += n;
		if (n < allowed)
			return false;
	}
	return true;
}

static ssize_t put_file(void *arg, int sock, size_t n)
{
	struct stream_job *job = arg;
	ssize_t sent = source_send(job->source[job->unread.extent], sock, n, job->unread.offset);

	if (sent > 0) {
		job->unread.offset += (uint64_t)sent;
		job->unread.left -= (uint32_t)sent;
	}
	return sent;
}

/* As write_until(), of the data that is sent from its file; false also if the rest must be read: the job is not
 * ready. */
static bool write_file(struct stream *s, struct stream_job *job)
{
	size_t allowed;
	ssize_t n;

	while (job->unread.left > 0) {
		if ((allowed = stream_allowance(s, job->unread.left)) == 0) {
			chan_flush(s->chan);
			return false;
		}
		if ((n = chan_write_by(s->chan, allowed, put_file, job)) < 0) {
			job->ready = false;
			return false;
		}
		stream_charge(s, (size_t)n);
		if ((size_t)n < allowed)
			return false;
	}
	return true;
}

static bool write_job(struct stream *s, struct stream_job *job)
{
	return (job->unread.left == 0 || (write_until(s, job, job->unread.at) && write_file(s, job))) &&
	    write_until(s, job, job->fill);
}

static void job_sent(struct stream *s, struct stream_job *job)
{
	if ((s->first = job->next) == NULL)
		s->last = &s->first;
	stream_memory_give_buf(s, job->buf);
	job->buf = NULL;
	stream_memory_used(s);
	job->msg.run = stream_job_sent;
	loop_post(s->o.context->control, &job->msg);
}

/* Before a job: while others wait for memory, the stream gives way as soon as it has no data in buffers. */
static bool next_turn(struct stream *s)
{
	if (s->memory.n_bufs > 0 || !s->memory.worked || !memory_wanted(&s->memory.claim))
		return stream_memory_take(s);
	return chan_flushed(s->chan) && stream_memory_turn(s);
}

/* While the first job waits for the disk. In order: a later job must not hold the memory that an earlier one lacks. */
static void read_ahead(struct stream *s)
{
	struct stream_job *job = s->first != NULL ? s->first->next : NULL;

	for (; job != NULL; job = job->next) {
		job_read(s, job);
		if (job->buf == NULL && !job->ready)
			break;
	}
}

void stream_send_writable(void *arg)
{
	struct stream *s = arg;
	struct stream_job *job;

	while ((job = s->first) != NULL) {
		if (!next_turn(s))
			return;
		if (!job_read(s, job))
			break;
		if (!write_job(s, job)) {
			if (job->ready) {
				job->waited = true;
				return;
			}
			continue;
		}
		packing_sent(s->o.packing, s->o.number, job->fill - LEAD_BYTES, job->waited, mono_now());
		job->waited = false;
		s->written = LEAD_BYTES;
		job->ready = false;
		job->fill = LEAD_BYTES;
		if (job->n_read == job->job.n)
			job_sent(s, job);
	}
	read_ahead(s);
	chan_flush(s->chan);
	if (s->first == NULL && s->memory.has && chan_flushed(s->chan))
		stream_memory_give(s);
}

void stream_send_queue(struct msg *m)
{
	struct stream_job *job = CONTAINER_OF(m, struct stream_job, msg);
	struct stream *s = job->stream;

	if (s->stopping || s->lost_posted)
		return; /* the engine sends the blocks on another stream */
	job->n_read = 0;
	job->extent_read = 0;
	job->saved_bytes = 0;
	job->sum.n = 0;
	job->fill = LEAD_BYTES;
	job->unread.left = 0;
	job->ready = job->waited = false;
	job->next = NULL;
	memset(job->failed, 0, sizeof job->failed);
	*s->last = job;
	s->last = &job->next;
	if (s->first == job) {
		s->written = LEAD_BYTES;
		stream_send_writable(s);
	} else if (s->first->reading || (job->job.n > 0 && source_is_direct(job->source[0]))) {
		read_ahead(s);
	}
}

/* ---- Measurement: blocks of no entry, without pause ---- */

#define TURN_BYTES (1u << 20) /* per turn of the loop: fairness between streams */
#define NO_ENTRY (1u << 16)   /* a well-formed id of no entry */

static size_t frame_bytes(const struct generator *g)
{
	return WIRE_BLOCK_HEAD_BYTES + g->block.length_bytes + WIRE_BLOCK_END_BYTES;
}

static void start_frame(struct generator *g)
{
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };

	g->block = (struct wire_block){ .id = NO_ENTRY, .length_bytes =
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
	if (g->left_bytes > 0 && g->written == 0 && s->memory.worked && memory_wanted(&s->memory.claim) &&
	    !chan_flushed(s->chan))
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
