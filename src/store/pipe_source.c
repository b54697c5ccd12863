#include "store/pipe_source.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/thread.h"
#include "core/units.h"
#include "fs/pipe_io.h"

struct source_slot {
	uint8_t *buf;     /* NULL: no block */
	unsigned readers;
	bool released;    /* the last reader frees the block */
};

struct pipe_source {
	struct pipe_source_opts o;
	struct pipe_io io;
	pthread_t thread;
	bool started, stopping;
	pthread_mutex_t lock;
	pthread_cond_t room;
	void (*changed)(void *arg);
	void *changed_arg;
	struct source_slot *slot;    /* place of block i: i % max_blocks */
	uint32_t first, next; /* blocks from first on are in memory, except released ones; `next` is being read */
	uint32_t tail_bytes;  /* bytes of the block `next`, at the end */
	bool released, ended, failed;
	struct ptcp_err why;
};

int pipe_source_new(struct pipe_source **out, const struct pipe_source_opts *o, struct ptcp_err *e)
{
	struct pipe_source *p = calloc(1, sizeof *p);
	int r;

	assert(o->max_blocks > 1);
	if (p == NULL || (p->slot = calloc(o->max_blocks, sizeof *p->slot)) == NULL) {
		free(p);
		return err_nomem(e);
	}
	if ((r = pipe_io_init(&p->io, o->fd, false, e)) < 0) {
		free(p->slot);
		free(p);
		return r;
	}
	p->o = *o;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->room, NULL);
	*out = p;
	return 0;
}

void pipe_source_free(struct pipe_source *p)
{
	uint32_t i;

	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->room);
	pthread_mutex_unlock(&p->lock);
	pipe_io_stop(&p->io);
	if (p->started)
		pthread_join(p->thread, NULL);
	pipe_io_fini(&p->io);
	for (i = 0; i < p->o.max_blocks; i++)
		free(p->slot[i].buf);
	pthread_cond_destroy(&p->room);
	pthread_mutex_destroy(&p->lock);
	free(p->slot);
	free(p);
}

/* ---- The thread ---- */

static struct source_slot *slot_of(struct pipe_source *p, uint32_t block) { return &p->slot[block % p->o.max_blocks]; }

static void notify(struct pipe_source *p)
{
	if (p->changed != NULL)
		p->changed(p->changed_arg);
}

/* The buffer of the next block, once there is room; NULL: stop. */
static uint8_t *next_buf(struct pipe_source *p, struct ptcp_err *e)
{
	bool stopping;
	uint8_t *buf;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping && p->next - p->first >= p->o.max_blocks)
		pthread_cond_wait(&p->room, &p->lock);
	stopping = p->stopping;
	pthread_mutex_unlock(&p->lock);
	if (stopping) {
		err_set(e, PTCP_ECANCELED, "%s", ptcp_err_text(PTCP_ECANCELED));
		return NULL;
	}
	if ((buf = malloc(p->o.block_bytes)) == NULL)
		err_nomem(e);
	return buf;
}

/* 0: the block is full, or the input has ended within it. */
static int fill(struct pipe_source *p, uint8_t *buf, uint32_t *n, struct ptcp_err *e)
{
	ssize_t got;

	for (*n = 0; *n < p->o.block_bytes; *n += (uint32_t)got) {
		got = pipe_io_read(&p->io, buf + *n, p->o.block_bytes - *n);
		if (got < 0)
			return err_sys(e, err_from_errno(errno), "cannot read the input");
		if (got == 0)
			break;
	}
	return 0;
}

static bool add_block(struct pipe_source *p, uint8_t *buf, uint32_t n)
{
	bool whole = n == p->o.block_bytes;

	pthread_mutex_lock(&p->lock);
	*slot_of(p, p->next) = (struct source_slot){ .buf = buf };
	p->next += whole;
	p->tail_bytes = whole ? 0 : n;
	if (whole)
		notify(p);
	pthread_mutex_unlock(&p->lock);
	return whole;
}

static int read_all(struct pipe_source *p, struct ptcp_err *e)
{
	char size[UNITS_TEXT_BYTES];
	uint8_t *buf;
	uint32_t n;
	int r;

	do {
		if ((buf = next_buf(p, e)) == NULL)
			return e->code;
		if ((r = fill(p, buf, &n, e)) == 0 && (uint64_t)p->next * p->o.block_bytes + n > p->o.max_bytes)
			r = err_set(e, PTCP_ERANGE, "the input is larger than %s (split it)",
			    units_size_text(size, p->o.max_bytes));
		if (r < 0) {
			free(buf);
			return r;
		}
	} while (add_block(p, buf, n));
	return p->o.ended != NULL ? p->o.ended(p->o.arg, e) : 0;
}

static void *run(void *arg)
{
	struct pipe_source *p = arg;
	struct ptcp_err why = { .code = 0 };
	int r = read_all(p, &why);

	pthread_mutex_lock(&p->lock);
	p->ended = true;
	p->failed = r < 0;
	p->why = why;
	notify(p);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- Its users ---- */

int pipe_source_start(struct pipe_source *p, void (*changed)(void *arg), void *arg, struct ptcp_err *e)
{
	int r = 0;

	pthread_mutex_lock(&p->lock);
	p->changed = changed;
	p->changed_arg = arg;
	if (!p->started && (r = thread_start(&p->thread, run, p, e)) == 0)
		p->started = true;
	pthread_mutex_unlock(&p->lock);
	return r;
}

void pipe_source_detach(struct pipe_source *p)
{
	pthread_mutex_lock(&p->lock);
	p->changed = NULL;
	pthread_mutex_unlock(&p->lock);
}

struct pipe_source_state pipe_source_state(struct pipe_source *p, struct ptcp_err *why)
{
	struct pipe_source_state s;

	pthread_mutex_lock(&p->lock);
	s = (struct pipe_source_state){ .blocks = p->next, .ended = p->ended, .failed = p->failed,
		.waits = !p->ended && p->first == p->next,
		.size_bytes = (uint64_t)p->next * p->o.block_bytes + p->tail_bytes };
	if (p->failed && why != NULL)
		*why = p->why;
	pthread_mutex_unlock(&p->lock);
	return s;
}

int pipe_source_check(struct pipe_source *p, struct ptcp_err *e)
{
	struct ptcp_err why;

	if (!pipe_source_state(p, &why).failed)
		return 0;
	if (e != NULL)
		*e = why;
	return why.code;
}

static void leave(struct pipe_source *p, uint32_t block)
{
	struct source_slot *s = slot_of(p, block);

	if (s->readers > 0 || !s->released)
		return;
	free(s->buf);
	*s = (struct source_slot){ .buf = NULL };
	while (p->first < p->next && slot_of(p, p->first)->buf == NULL)
		p->first++;
	pthread_cond_signal(&p->room);
}

int pipe_source_read(struct pipe_source *p, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e)
{
	uint32_t block = (uint32_t)(off / p->o.block_bytes);
	struct source_slot *s = slot_of(p, block);
	bool there;

	pthread_mutex_lock(&p->lock);
	there = block >= p->first && block - p->first < p->o.max_blocks && s->buf != NULL && !s->released;
	s->readers += there;
	pthread_mutex_unlock(&p->lock);
	if (!there)
		return err_set(e, PTCP_ECHANGED, "the receiver has this part of the input already");
	memcpy(buf, s->buf + off % p->o.block_bytes, n);
	pthread_mutex_lock(&p->lock);
	s->readers--;
	leave(p, block);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

void pipe_source_release(struct pipe_source *p, uint32_t block)
{
	pthread_mutex_lock(&p->lock);
	p->released = true;
	slot_of(p, block)->released = true;
	leave(p, block);
	pthread_mutex_unlock(&p->lock);
}

bool pipe_source_is_whole(struct pipe_source *p)
{
	bool whole;

	pthread_mutex_lock(&p->lock);
	whole = !p->released;
	pthread_mutex_unlock(&p->lock);
	return whole;
}
