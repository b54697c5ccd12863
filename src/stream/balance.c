#include "stream/balance.h"

#include <stdlib.h>

#include "model/placement.h"
#include "stream/stream_impl.h"

#define INTERVAL_NS (250 * NS_PER_MS)

void stream_move(struct stream *s, unsigned worker)
{
	if (s->stop_posted || atomic_exchange(&s->worker.moving, true))
		return;
	s->worker.to = worker;
	mailbox_post(s->box, &s->worker.move);
}

unsigned stream_worker(const struct stream *s) { return atomic_load(&s->worker.number); }

static unsigned count(const struct balance *b)
{
	const struct list *l;
	unsigned n = 0;

	for (l = b->streams.next; l != &b->streams; l = l->next)
		n++;
	return n;
}

/* Load of each worker since the last time. */
static void measure(struct context *context, double busy_ratio[CONTEXT_WORKERS_MAX])
{
	struct balance *b = &context->balance;
	struct mono now = mono_now();
	double passed_ns = (double)mono_diff_ns(now, b->at) + 1;
	uint64_t idle_ns;
	unsigned i;

	for (i = 0; i < context->n_workers; i++) {
		idle_ns = loop_idle_ns(context->worker[i]);
		busy_ratio[i] = 1 - (double)(idle_ns - b->idle_ns[i]) / passed_ns;
		b->idle_ns[i] = idle_ns;
	}
	b->at = now;
}

/* Fills in the bytes that each stream has moved since the last time. */
static void sample(struct balance *b, struct placement_stream *of, struct stream **which)
{
	struct stream *s;
	uint64_t moved;

	LIST_EACH(&b->streams, s, struct stream, in_balance) {
		moved = atomic_load_explicit(&s->moved, memory_order_relaxed);
		*of++ = (struct placement_stream){ stream_worker(s), moved - s->balanced_bytes };
		s->balanced_bytes = moved;
		*which++ = s;
	}
}

static void rebalance(struct context *context)
{
	unsigned n = count(&context->balance), i, to;
	struct placement_stream *of = calloc(n, sizeof *of);
	struct stream **which = calloc(n, sizeof *which);
	double busy_ratio[CONTEXT_WORKERS_MAX];

	measure(context, busy_ratio);
	if (of != NULL && which != NULL) {
		sample(&context->balance, of, which);
		if (placement_find(busy_ratio, context->n_workers, of, n, &i, &to)) {
			log_at(&context->log, LOG_DEBUG, "stream", "event=moved stream=%u from=%u to=%u busy=%.2f",
			    which[i]->o.number, of[i].worker, to, busy_ratio[of[i].worker]);
			stream_move(which[i], to);
		}
	}
	free(of);
	free(which);
}

static void on_due(void *arg)
{
	struct context *context = arg;

	if (list_empty(&context->balance.streams))
		return;
	rebalance(context);
	timer_set(context->balance.timer, mono_add_ns(mono_now(), INTERVAL_NS));
}

/* Without a timer the streams stay where they are. */
static void balance_start(struct context *context)
{
	double unused[CONTEXT_WORKERS_MAX];

	if (context->n_workers < 2 ||
	    (context->balance.timer == NULL && timer_new(&context->balance.timer, context->control, on_due,
	    context, NULL) < 0))
		return;
	measure(context, unused);
	timer_set(context->balance.timer, mono_add_ns(mono_now(), INTERVAL_NS));
}

/* The worker with the fewest streams. */
static unsigned choose(struct context *context)
{
	unsigned streams[CONTEXT_WORKERS_MAX] = { 0 }, i, best = context->balance.next++ % context->n_workers;
	struct stream *s;

	LIST_EACH(&context->balance.streams, s, struct stream, in_balance)
		streams[stream_worker(s)]++;
	for (i = 0; i < context->n_workers; i++)
		if (streams[i] < streams[best])
			best = i;
	return best;
}

int balance_join(struct stream *s)
{
	struct context *context = s->o.context;
	unsigned worker = choose(context);

	if (mailbox_new(&s->box, context->worker[worker], NULL) < 0)
		return PTCP_ENOMEM;
	s->loop = context->worker[worker];
	atomic_init(&s->worker.number, worker);
	atomic_init(&s->worker.moving, false);
	if (list_empty(&context->balance.streams))
		balance_start(context);
	list_append(&context->balance.streams, &s->in_balance);
	return 0;
}

void balance_leave(struct stream *s)
{
	list_remove(&s->in_balance);
	mailbox_free(s->box);
}
