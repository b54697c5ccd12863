/* Sending half of a stream, on its worker: reads a job, hashes the data while it is in the cache, lays the frames out
 * in one buffer, which the channel encrypts and sends. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "session/stream_impl.h"
#include "store/hash.h"
#include "store/store_err.h"

#define FRAME_BYTES (WIRE_BLOCK_HEAD_BYTES + WIRE_BLOCK_END_BYTES)

static void extent_failed(struct stream_job *job, unsigned i, const struct ptcp_err *why)
{
	char path[DIR_PATH_TEXT_BYTES];

	job->failed[i] = true;
	if ((job->why[i] = malloc(sizeof *why)) != NULL)
		store_err_strip(job->why[i], why, source_path_text(job->source[i], path, sizeof path));
}

/* Encodes the frame around the data at p + WIRE_BLOCK_HEAD_BYTES. */
static void finish_frame(struct stream_job *job, unsigned i, uint8_t *p, bool verify)
{
	const struct snd_extent *x = &job->job.extent[i];
	struct wire_block b = { x->id, x->offset, x->length };
	struct wire_block_end end = { WIRE_BLOCK_GOOD, 0 };
	uint64_t content;

	wire_block_encode(p, &b);
	if (verify) {
		content = hash_content(p + WIRE_BLOCK_HEAD_BYTES, x->length);
		end.check = hash_check(p + WIRE_HEADER_BYTES, content);
		job->term[i] = hash_term(x->block, x->length, content);
	}
	wire_block_end_encode(p + WIRE_BLOCK_HEAD_BYTES + x->length, &end);
}

/* Reads from extent n_read on. STORE_AGAIN: the next read would block. An extent that cannot be read leaves no
 * frame. */
static int read_extents(struct stream_job *job, bool verify, bool wait)
{
	struct ptcp_err why;
	unsigned i;
	int r;

	for (i = job->n_read; i < job->job.n; i++) {
		const struct snd_extent *x = &job->job.extent[i];
		uint8_t *p = job->buf + job->fill;

		r = source_read(job->source[i], p + WIRE_BLOCK_HEAD_BYTES, x->length, x->offset, wait, &why);
		if (r == STORE_AGAIN)
			return r;
		if (r < 0) {
			extent_failed(job, i, &why);
		} else {
			finish_frame(job, i, p, verify);
			job->fill += x->length + FRAME_BYTES;
		}
		job->n_read = i + 1;
	}
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
	loop_post(job->stream->loop, &job->msg);
}

/* Returns true if all data of the job is in its buffer; otherwise an I/O thread reads the rest. */
static bool job_read(struct stream *s, struct stream_job *job)
{
	if (job->reading)
		return false;
	if (job->n_read == job->job.n || read_extents(job, s->o.verify, false) == 0)
		return true;
	job->reading = true;
	job->io.run = read_on_disk;
	s->n_io++;
	atomic_fetch_add(&s->on_disk, 1);
	io_submit(s->o.host->io, &job->io);
	return false;
}

/* False: the channel is full or a rate limit applies; writable() or the timer of the limit resumes. */
static bool write_job(struct stream *s, struct stream_job *job)
{
	size_t allowed, n;

	while (s->written < job->fill) {
		if ((allowed = stream_allowance(s, job->fill - s->written)) == 0) {
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

void stream_send_writable(void *arg)
{
	struct stream *s = arg;
	struct stream_job *job;

	while ((job = s->first) != NULL && job_read(s, job)) {
		if (!write_job(s, job))
			return;
		if ((s->first = job->next) == NULL)
			s->last = &s->first;
		s->written = 0;
		job->msg.run = stream_job_sent;
		loop_post(s->o.host->control, &job->msg);
	}
	/* While the first job waits for the disk, start reading the rest of the queue. */
	for (job = s->first != NULL ? s->first->next : NULL; job != NULL; job = job->next)
		job_read(s, job);
	chan_flush(s->chan);
}

void stream_send_queue(struct msg *m)
{
	struct stream_job *job = CONTAINER_OF(m, struct stream_job, msg);
	struct stream *s = job->stream;
	struct ptcp_err why;
	size_t need = 0;
	unsigned i;

	if (s->stopping || s->lost_posted)
		return; /* the engine sends the blocks on another stream */
	job->n_read = 0;
	job->fill = 0;
	job->next = NULL;
	memset(job->failed, 0, sizeof job->failed);
	for (i = 0; i < job->job.n; i++)
		need += job->job.extent[i].length + FRAME_BYTES;
	if (need > job->buf_bytes) {
		free(job->buf);
		job->buf = malloc(need);
		job->buf_bytes = job->buf != NULL ? need : 0;
	}
	if (job->buf == NULL) {
		err_nomem(&why);
		for (i = 0; i < job->job.n; i++)
			extent_failed(job, i, &why);
		job->n_read = job->job.n;
	}
	*s->last = job;
	s->last = &job->next;
	if (s->first == job)
		stream_send_writable(s);
}
