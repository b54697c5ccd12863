#include "collect/played_tasks.h"

#include <math.h>
#include <poll.h>
#include <ptcp/ptcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/collect_impl.h"
#include "collect/fluid.h"

#define EVENTS_S 0.25       /* between two reports of progress */
#define FIRST_NS UINT64_C(1000000000000)

struct ptcp_task {
	size_t source;
	void *arg;
	ptcp_event_fn *event;
	struct fluid_flow *flow[PTCP_PATHS_MAX]; /* NULL before the start */
	int relay[PTCP_PATHS_MAX];  /* -1: direct */
	unsigned streams[PTCP_PATHS_MAX];
	double limit_bps[PTCP_PATHS_MAX], phase_bits[PTCP_PATHS_MAX], min_rtt_s[PTCP_PATHS_MAX];
	size_t n;
	double flows_at_s, event_at_s;
	uint64_t before;            /* bytes of earlier transfers */
	bool canceled;
};

static struct {
	struct fluid fluid;
	struct ptcp_collect *c;
	bool on;
	pthread_t thread;
	double end_s[WORLD_SOURCES];
} played;

void played_begin(const struct world *w)
{
	fluid_begin(&played.fluid, w);
	played.thread = pthread_self();
	played.c = NULL;
	played.on = true;
}

void played_end(void) { played.on = false; }

void played_collection(struct ptcp_collect *c) { played.c = c; }

double played_now_s(void) { return played.fluid.now_s; }

double played_others_bps(void)
{
	return played.fluid.others_s > 0 ? played.fluid.others_bits / played.fluid.others_s : 0;
}

/* ---- Time ---- */

static bool is_played(void) { return played.on && pthread_equal(pthread_self(), played.thread); }

int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (clock != CLOCK_MONOTONIC || !is_played())
		return (int)syscall(SYS_clock_gettime, clock, t);
	ns = FIRST_NS + (uint64_t)llround(played.fluid.now_s * 1e9);
	*t = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

static void await_planner(void)
{
	while (played.c != NULL && played.c->planner != NULL && !planner_thread_is_done(played.c->planner))
		syscall(SYS_poll, NULL, 0, 1);
}

/* Waiting moves the world. No descriptor of a played transfer is ever readable. */
int poll(struct pollfd *fd, nfds_t n, int ms)
{
	double until_s = played.fluid.now_s + ms / 1e3;
	nfds_t i;

	if (!is_played())
		return (int)syscall(SYS_poll, fd, n, ms);
	for (i = 0; i < n; i++)
		fd[i].revents = 0;
	await_planner();
	do
		fluid_step(&played.fluid);
	while (played.fluid.now_s < until_s - FLUID_STEP_S / 2);
	return 0;
}

bool processor_is_starved(struct processor *p, double now_s)
{
	(void)p;
	(void)now_s;
	return false;
}

/* ---- Tasks ---- */

/* "ptcp://192.0.2.N:PORT/.." or "192.0.2.N:PORT": the source N - 1. */
static int host_of(const char *text)
{
	const char *p = strstr(text, "192.0.2.");

	return p != NULL ? atoi(p + strlen("192.0.2.")) - 1 : -1;
}

int ptcp_recv_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *const *from, size_t n,
    const char *to, struct ptcp_err *e)
{
	struct ptcp_task *t = calloc(1, sizeof *t);
	size_t i;

	(void)n;
	(void)to;
	(void)e;
	if (t == NULL)
		return PTCP_ENOMEM;
	t->source = (size_t)host_of(from[0]);
	t->event = o->event;
	t->arg = o->arg;
	t->n = o->n_paths;
	for (i = 0; i < t->n; i++) {
		t->relay[i] = host_of(o->paths[i]);
		t->streams[i] = (unsigned)o->path.shares[i];
		t->limit_bps[i] = t->min_rtt_s[i] = INFINITY;
		t->phase_bits[i] = rng_uniform(&played.fluid.rng) * FLUID_BLOCK_BITS;
	}
	*out = t;
	return 0;
}

int ptcp_transfer_set_path_rate(struct ptcp_task *t, size_t path, uint64_t bps, struct ptcp_err *e)
{
	(void)e;
	t->limit_bps[path] = bps == 0 ? INFINITY : bps == PTCP_PATH_IDLE ? 0 : (double)bps;
	if (t->flow[path] != NULL)
		t->flow[path]->limit_bps = t->limit_bps[path];
	return 0;
}

static uint64_t arrived(const struct ptcp_task *t)
{
	const struct fluid *f = &played.fluid;
	double bits = 8 * f->w->source[t->source].bytes - f->left_bits[t->source];
	size_t i;

	for (i = 0; i < t->n; i++)
		bits -= t->flow[i] != NULL ? t->flow[i]->buffer_bits : 0;
	return (uint64_t)fmax(0, bits / 8);
}

int ptcp_task_start(struct ptcp_task *t, struct ptcp_err *e)
{
	(void)e;
	t->before = arrived(t);
	t->flows_at_s = played.fluid.now_s + played.fluid.w->source[t->source].start_s;
	return 0;
}

static void start_flows(struct ptcp_task *t)
{
	const struct world *w = played.fluid.w;
	size_t i;

	for (i = 0; i < t->n; i++) {
		t->flow[i] = fluid_add(&played.fluid, w->source[t->relay[i] >= 0 ? t->relay[i] : (int)t->source].point,
		    (int)t->source, t->relay[i], t->streams[i]);
		t->flow[i]->limit_bps = t->limit_bps[i];
	}
}

/* Blocks arrive whole. */
static uint64_t blocks(const struct ptcp_task *t, size_t path)
{
	double each = t->flow[path]->delivered_bits / t->streams[path], bits = 0;
	unsigned i;

	for (i = 0; i < t->streams[path]; i++)
		bits += floor(each / FLUID_BLOCK_BITS + fmod(t->phase_bits[path] / FLUID_BLOCK_BITS +
		    (double)i / t->streams[path], 1)) * FLUID_BLOCK_BITS;
	return (uint64_t)(bits / 8);
}

static void show(const struct ptcp_task *t, struct ptcp_progress *p)
{
	*p = (struct ptcp_progress){ .bytes = arrived(t), .total_known = true, .total_files = 1,
		.total_bytes = (uint64_t)played.fluid.w->source[t->source].bytes, .resumed_bytes = t->before };
	p->wire_bytes = p->bytes - t->before;
}

static void report(struct ptcp_task *t, enum ptcp_event_type type)
{
	struct ptcp_path path[PTCP_PATHS_MAX] = { { .bytes = 0 } };
	struct ptcp_event ev = { .type = type, .paths = path, .n_paths = t->n };
	double rtt_s;
	size_t i;

	show(t, &ev.progress);
	for (i = 0; i < t->n && t->flow[i] != NULL; i++) {
		path[i] = (struct ptcp_path){ .bytes = blocks(t, i), .streams = t->streams[i],
			.segments = (uint64_t)t->flow[i]->segments, .retransmits = (uint64_t)t->flow[i]->lost };
		if (!(t->flow[i]->segments > 0))
			continue;
		rtt_s = fluid_rtt_s(&played.fluid, t->flow[i]) + 0.0005 * rng_uniform(&played.fluid.rng);
		t->min_rtt_s[i] = fmin(t->min_rtt_s[i], rtt_s);
		path[i].rtt_s = rtt_s;
		path[i].min_rtt_s = t->min_rtt_s[i];
	}
	t->event_at_s = played.fluid.now_s + EVENTS_S;
	t->event(t->arg, &ev);
}

int ptcp_task_fd(const struct ptcp_task *t)
{
	(void)t;
	return -1;
}

int ptcp_task_timeout_ms(const struct ptcp_task *t)
{
	double at_s = t->canceled ? 0 : t->flow[0] == NULL ? t->flows_at_s : t->event_at_s;

	return (int)ceil(fmax(0, at_s - played.fluid.now_s) * 1e3);
}

int ptcp_task_step(struct ptcp_task *t, struct ptcp_err *e)
{
	double all = played.fluid.w->source[t->source].bytes;

	(void)e;
	if (t->canceled)
		return PTCP_ECANCELED;
	if (played.fluid.now_s < t->flows_at_s)
		return 1;
	if (t->flow[0] == NULL) {
		start_flows(t);
		report(t, PTCP_EVENT_START);
	}
	report(t, PTCP_EVENT_PROGRESS);
	return (double)arrived(t) < all - 1;
}

void ptcp_task_cancel(struct ptcp_task *t) { t->canceled = true; }

void ptcp_task_free(struct ptcp_task *t)
{
	size_t i;

	for (i = 0; t != NULL && i < t->n; i++)
		if (t->flow[i] != NULL)
			fluid_remove(&played.fluid, t->flow[i]);
	free(t);
}

void ptcp_transfer_result(const struct ptcp_task *t, struct ptcp_result *r)
{
	show(t, &r->progress);
	r->progress.file_bytes = r->progress.bytes;
}
