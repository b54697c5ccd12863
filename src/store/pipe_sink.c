#include "store/pipe_sink.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/thread.h"
#include "fs/pipe_io.h"
#include "store/hash.h"

struct sink_slot {
	uint8_t *buf;       /* NULL: zeros, once complete */
	bool complete;
	uint32_t bytes;
	struct digest term;
};

struct pipe_sink {
	struct pipe_io io;
	uint64_t window_bytes;
	pthread_t thread;
	bool started, stopping;
	pthread_mutex_t lock;
	pthread_cond_t work;
	void (*changed)(void *arg);
	void *changed_arg;
	struct pipe_sink_file file;
	struct sink_slot *slot;          /* place of block i: i % n_slots */
	uint32_t n_slots;
	uint32_t next, written;
	struct digest sum;
	bool failed;
	struct ptcp_err why;
};

int pipe_sink_new(struct pipe_sink **out, int fd, uint64_t window_bytes, struct ptcp_err *e)
{
	struct pipe_sink *p = calloc(1, sizeof *p);
	int r;

	if (p == NULL)
		return err_nomem(e);
	if ((r = pipe_io_init(&p->io, fd, true, e)) < 0) {
		free(p);
		return r;
	}
	p->window_bytes = window_bytes;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	*out = p;
	return 0;
}

void pipe_sink_free(struct pipe_sink *p)
{
	uint32_t i;

	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
	pipe_io_stop(&p->io);
	if (p->started)
		pthread_join(p->thread, NULL);
	pipe_io_fini(&p->io);
	for (i = 0; i < p->n_slots; i++)
		free(p->slot[i].buf);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p->slot);
	free(p);
}

/* ---- The thread ---- */

static struct sink_slot *slot_of(struct pipe_sink *p, uint32_t block) { return &p->slot[block % p->n_slots]; }

static int write_zeros(struct pipe_sink *p, uint32_t n)
{
	static const uint8_t zeros[65536];
	uint32_t step;
	int sys = 0;

	for (; n > 0 && sys == 0; n -= step) {
		step = n < sizeof zeros ? n : (uint32_t)sizeof zeros;
		sys = pipe_io_write(&p->io, zeros, step);
	}
	return sys;
}

static void fail(struct pipe_sink *p, int sys)
{
	p->failed = true;
	if (sys == EPIPE)
		err_set(&p->why, PTCP_EIO, "%s: the program that reads the output has ended", strerror(sys));
	else
		err_set(&p->why, PTCP_EIO, "cannot write the output: %s", strerror(sys));
	p->why.sys = sys;
}

/* Complete slots belong to the thread: their content does not change. */
static void *run(void *arg)
{
	struct pipe_sink *p = arg;
	struct sink_slot *s;
	int sys;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping && !p->failed) {
		if (p->written == p->next) {
			pthread_cond_wait(&p->work, &p->lock);
			continue;
		}
		s = slot_of(p, p->written);
		pthread_mutex_unlock(&p->lock);
		sys = s->buf != NULL ? pipe_io_write(&p->io, s->buf, s->bytes) : write_zeros(p, s->bytes);
		free(s->buf);
		pthread_mutex_lock(&p->lock);
		*s = (struct sink_slot){ .buf = NULL };
		if (sys == 0)
			p->written++;
		else
			fail(p, sys);
		if (p->changed != NULL)
			p->changed(p->changed_arg);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- Its users ---- */

/* Senders omit the version of a file of one block. */
static bool same_file(const struct pipe_sink_file *a, const struct pipe_sink_file *b)
{
	if (a->size_bytes != b->size_bytes || a->has_version != b->has_version)
		return false;
	if (a->has_version)
		return memcmp(a->version, b->version, sizeof a->version) == 0;
	return a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns;
}

static int set_file(struct pipe_sink *p, const struct pipe_sink_file *f, struct ptcp_err *e)
{
	uint64_t n = f->block_bytes > 0 ? p->window_bytes / f->block_bytes : 0;
	struct sink_slot *slot;

	n = n < 2 ? 2 : n;
	if ((slot = calloc(n, sizeof *slot)) == NULL)
		return err_nomem(e);
	free(p->slot);
	p->slot = slot;
	p->n_slots = (uint32_t)n;
	p->file = *f;
	return p->started ? 0 : thread_start(&p->thread, run, p, e);
}

/* Blocks beyond the first missing one arrive again. */
static void drop_incomplete(struct pipe_sink *p)
{
	uint32_t block;

	for (block = p->next; block - p->written < p->n_slots; block++) {
		free(slot_of(p, block)->buf);
		*slot_of(p, block) = (struct sink_slot){ .buf = NULL };
	}
}

int pipe_sink_begin(struct pipe_sink *p, const struct pipe_sink_file *f, struct ptcp_err *e)
{
	int r = 0;

	pthread_mutex_lock(&p->lock);
	drop_incomplete(p);
	if (p->next > 0 && !same_file(&p->file, f))
		r = err_set(e, PTCP_ECHANGED, "the source has changed after its beginning was written to the output "
		    "(run the same command again)");
	else if (p->next == 0 && (r = set_file(p, f, e)) == 0)
		p->started = true;
	pthread_mutex_unlock(&p->lock);
	return r;
}

void pipe_sink_attach(struct pipe_sink *p, void (*changed)(void *arg), void *arg)
{
	pthread_mutex_lock(&p->lock);
	p->changed = changed;
	p->changed_arg = arg;
	pthread_mutex_unlock(&p->lock);
}

void pipe_sink_detach(struct pipe_sink *p) { pipe_sink_attach(p, NULL, NULL); }

struct pipe_sink_state pipe_sink_state(struct pipe_sink *p, struct ptcp_err *why)
{
	struct pipe_sink_state s;

	pthread_mutex_lock(&p->lock);
	s = (struct pipe_sink_state){ .taken = p->next, .sum = p->sum, .written = p->written,
		.end = p->written + p->n_slots, .failed = p->failed };
	if (p->failed && why != NULL)
		*why = p->why;
	pthread_mutex_unlock(&p->lock);
	return s;
}

bool pipe_sink_admits(struct pipe_sink *p, uint32_t block)
{
	bool admits;

	pthread_mutex_lock(&p->lock);
	admits = block < p->next || block - p->written < p->n_slots;
	pthread_mutex_unlock(&p->lock);
	return admits;
}

static uint32_t length_of(const struct pipe_sink *p, uint32_t block)
{
	uint64_t left = p->file.size_bytes - (uint64_t)block * p->file.block_bytes;

	return left < p->file.block_bytes ? (uint32_t)left : p->file.block_bytes;
}

static void complete(struct pipe_sink *p, uint32_t block, struct digest term)
{
	struct sink_slot *s = slot_of(p, block);

	s->complete = true;
	s->bytes = length_of(p, block);
	s->term = term;
	while (p->next - p->written < p->n_slots && slot_of(p, p->next)->complete) {
		digest_add(&p->sum, slot_of(p, p->next)->term);
		p->next++;
	}
	pthread_cond_signal(&p->work);
}

/* Two streams may deliver copies of one block, chunk by chunk: both were verified, so the content is the same. */
static int put(struct pipe_sink *p, uint32_t block, uint32_t within, const void *buf, uint32_t n, struct ptcp_err *e)
{
	struct sink_slot *s = slot_of(p, block);

	if (p->failed) {
		*e = p->why;
		return p->why.code;
	}
	if (block - p->written >= p->n_slots || (uint64_t)block * p->file.block_bytes + within + n > p->file.size_bytes)
		return err_set(e, PTCP_EPROTO, "a block beyond the window of the output");
	if (s->buf == NULL && (s->buf = malloc(length_of(p, block))) == NULL)
		return err_nomem(e);
	memcpy(s->buf + within, buf, n);
	return 0;
}

int pipe_sink_put(struct pipe_sink *p, const void *buf, uint32_t n, uint64_t off, bool last, uint64_t hash,
    struct ptcp_err *e)
{
	uint32_t block = (uint32_t)(off / p->file.block_bytes);
	int r = 0;

	pthread_mutex_lock(&p->lock);
	if (block >= p->next && !slot_of(p, block)->complete) {
		r = put(p, block, (uint32_t)(off % p->file.block_bytes), buf, n, e);
		if (r == 0 && last)
			complete(p, block, hash_term(block, length_of(p, block), hash));
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

void pipe_sink_hole(struct pipe_sink *p, uint32_t first, uint32_t count)
{
	uint32_t block;

	pthread_mutex_lock(&p->lock);
	for (block = first; block - first < count && block < p->file.n_blocks; block++)
		if (block >= p->next && block - p->written < p->n_slots && !slot_of(p, block)->complete) {
			free(slot_of(p, block)->buf);
			slot_of(p, block)->buf = NULL;
			complete(p, block, (struct digest){ 0, 0 });
		}
	pthread_mutex_unlock(&p->lock);
}
