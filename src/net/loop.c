#include "net/loop_uv.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/thread.h"
#include "core/units.h"

/* A stream in its turn uses at most two of each size; reads and writes on I/O threads, several small ones. */
#define SPARE_BUFFERS 2u
#define SPARE_SMALL_BUFFERS 8u

struct loop {
	uv_loop_t uv;
	uv_async_t wake;
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;
	pthread_mutex_t mutex;
	struct msg *first, **last; /* under mutex */
	void (*woken)(void *arg);
	void *woken_arg;
	struct spare {
		void *of[SPARE_SMALL_BUFFERS];
		unsigned n;
	} spare[2]; /* buffers, large ones second */
};

uv_loop_t *loop_uv(struct loop *l) { return &l->uv; }

/* Takes all messages at once: messages posted meanwhile wait for the next turn. */
static void deliver(struct loop *l)
{
	struct msg *m, *next;

	pthread_mutex_lock(&l->mutex);
	m = l->first;
	l->first = NULL;
	l->last = &l->first;
	pthread_mutex_unlock(&l->mutex);
	for (; m != NULL; m = next) {
		next = m->next;
		m->run(m);
	}
}

static void on_wake(uv_async_t *a)
{
	struct loop *l = a->data;

	deliver(l);
	if (l->woken != NULL)
		l->woken(l->woken_arg);
	if (atomic_load(&l->stop))
		uv_stop(&l->uv);
}

void loop_on_wake(struct loop *l, void (*fn)(void *arg), void *arg)
{
	l->woken = fn;
	l->woken_arg = arg;
}

void loop_wake(struct loop *l) { uv_async_send(&l->wake); }

int loop_new(struct loop **out, struct ptcp_err *e)
{
	struct loop *l = calloc(1, sizeof *l);
	int r;

	if (l == NULL)
		return err_nomem(e);
	if ((r = uv_loop_init(&l->uv)) == 0) {
		uv_loop_configure(&l->uv, UV_METRICS_IDLE_TIME); /* cannot fail */
		if ((r = uv_async_init(&l->uv, &l->wake, on_wake)) < 0)
			uv_loop_close(&l->uv);
	}
	if (r < 0) {
		free(l);
		return err_set(e, PTCP_EIO, "creating an event loop: %s", uv_strerror(r));
	}
	l->wake.data = l;
	l->last = &l->first;
	atomic_init(&l->stop, false);
	pthread_mutex_init(&l->mutex, NULL);
	*out = l;
	return 0;
}

void loop_run(struct loop *l)
{
	while (!atomic_load(&l->stop))
		uv_run(&l->uv, UV_RUN_DEFAULT);
	deliver(l); /* messages posted before the stop, even if uv_run() returned first */
}

void loop_run_once(struct loop *l, bool wait)
{
	uv_run(&l->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
	if (atomic_load(&l->stop))
		deliver(l);
}

uint64_t loop_idle_ns(struct loop *l) { return uv_metrics_idle_time(&l->uv); }
int loop_fd(const struct loop *l) { return uv_backend_fd(&l->uv); }

int loop_timeout_ms(struct loop *l)
{
	uv_update_time(&l->uv);
	return uv_backend_timeout(&l->uv);
}

static void *thread_main(void *arg)
{
	loop_run(arg);
	return NULL;
}

int loop_start_thread(struct loop *l, struct ptcp_err *e)
{
	int r = thread_start(&l->thread, thread_main, l, e);

	l->has_thread = r == 0;
	return r;
}

void loop_stop(struct loop *l)
{
	atomic_store(&l->stop, true);
	uv_async_send(&l->wake);
}

void loop_reset(struct loop *l) { atomic_store(&l->stop, false); }

void loop_post(struct loop *l, struct msg *m)
{
	bool first;

	m->next = NULL;
	pthread_mutex_lock(&l->mutex);
	first = l->first == NULL;
	*l->last = m;
	l->last = &m->next;
	pthread_mutex_unlock(&l->mutex);
	if (first)
		uv_async_send(&l->wake);
}

static void free_spare(struct spare *s, unsigned keep)
{
	while (s->n > keep)
		free(s->of[--s->n]);
}

void loop_free(struct loop *l)
{
	unsigned i;
	int r;

	if (l == NULL)
		return;
	loop_stop(l);
	if (l->has_thread)
		pthread_join(l->thread, NULL);
	while (l->first != NULL)
		deliver(l); /* including messages posted by their callbacks */
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	r = uv_loop_close(&l->uv);
	assert(r == 0); /* else an object on the loop was not freed */
	(void)r;
	for (i = 0; i < 2; i++)
		free_spare(&l->spare[i], 0);
	pthread_mutex_destroy(&l->mutex);
	free(l);
}

/* ---- Buffers ---- */

void *loop_buffer_take(struct loop *l, bool large)
{
	struct spare *s = &l->spare[large];

	return s->n > 0 ? s->of[--s->n] :
	    aligned_alloc(LOOP_BUFFER_ALIGN, large ? LOOP_LARGE_BUFFER_BYTES : LOOP_BUFFER_BYTES);
}

void loop_buffer_give(struct loop *l, void *p, bool large)
{
	struct spare *s = l != NULL ? &l->spare[large] : NULL;

	if (s != NULL && p != NULL && s->n < (large ? SPARE_BUFFERS : SPARE_SMALL_BUFFERS))
		s->of[s->n++] = p;
	else
		free(p);
}

void loop_buffers_trim(struct loop *l) { free_spare(&l->spare[false], SPARE_BUFFERS); }

/* ---- Timers ---- */

struct timer {
	uv_timer_t uv;
	void (*fire)(void *arg);
	void *arg;
	struct mono at; /* MONO_NEVER: not set */
};

static void on_loop_timer(uv_timer_t *h)
{
	struct timer *t = h->data;

	if (mono_now().ns < t->at.ns) { /* libuv counts in whole milliseconds */
		uv_timer_start(h, on_loop_timer, 1, 0);
		return;
	}
	t->at = MONO_NEVER;
	t->fire(t->arg);
}

int timer_new(struct timer **out, struct loop *l, void (*fire)(void *arg), void *arg, struct ptcp_err *e)
{
	struct timer *t = calloc(1, sizeof *t);

	if (t == NULL)
		return err_nomem(e);
	uv_timer_init(&l->uv, &t->uv); /* cannot fail */
	t->uv.data = t;
	t->fire = fire;
	t->arg = arg;
	t->at = MONO_NEVER;
	*out = t;
	return 0;
}

void timer_set(struct timer *t, struct mono at)
{
	uint64_t ms;

	if (at.ns == t->at.ns)
		return;
	t->at = at;
	if (at.ns == MONO_NEVER.ns) {
		uv_timer_stop(&t->uv);
		return;
	}
	ms = (mono_diff_ns(at, mono_now()) + NS_PER_MS - 1) / NS_PER_MS;
	uv_update_time(t->uv.loop);
	/* Not 0: libuv would poll no descriptor while timers keep setting themselves to 0. */
	uv_timer_start(&t->uv, on_loop_timer, ms > 0 ? ms : 1, 0);
}

static void on_timer_closed(uv_handle_t *h) { free(h->data); }

void timer_free(struct timer *t)
{
	if (t != NULL)
		uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}
