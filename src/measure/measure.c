/* Rounds of n streams, started together, with the same number of bytes each. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "core/sorted.h"
#include "measure/prober.h"
#include "model/stats.h"

struct measure {
	struct prober base;
	struct ptcp_measure_opts o;
	struct level level[LEVELS_MAX];  /* ascending by streams */
	size_t n_levels;
	unsigned number;                 /* number of the round, from 0 */
	/* the present round: */
	struct mono started;
	struct level_run run[LEVEL_STREAMS_MAX];
	uint64_t retransmits;
	unsigned n_ended;
	bool failed;
	struct ptcp_err why;
};

_Static_assert(PTCP_LEVELS_MAX == LEVELS_MAX && PTCP_STREAMS_MAX == LEVEL_STREAMS_MAX, "sizes");

static struct measure *of(struct prober *b)
{
	return CONTAINER_OF(b, struct measure, base);
}

/* Levels alternate, so that changes of the network over time affect all levels. */
static struct level *this_level(struct measure *m)
{
	return &m->level[m->number % m->n_levels];
}

static void start_round(struct measure *m)
{
	m->started = mono_now();
	m->n_ended = 0;
	m->retransmits = 0;
	m->failed = false;
	probe_session_level(m->base.session, this_level(m)->streams, m->o.bytes_per_stream);
}

static void on_begun(void *arg)
{
	(void)arg; /* each stream reports its own start */
}

static void on_measure_ended(void *arg, unsigned number, const struct probe_run *run, const struct ptcp_err *why)
{
	struct measure *m = arg;
	struct limit_times unused;

	if (m->failed)
		return;
	if (why != NULL) {
		m->failed = true;
		m->why = *why;
	} else {
		m->run[number] = (struct level_run){ (double)run->from.ns / 1e9, (double)run->until.ns / 1e9,
			m->o.bytes_per_stream };
		m->retransmits += run->retransmits;
		if (m->base.receives)
			probe_session_reported(m->base.session, &unused, &m->retransmits);
	}
	if (m->failed || ++m->n_ended == this_level(m)->streams)
		probe_session_clear(m->base.session);
}

static void report_round(struct measure *m)
{
	double rates[LEVEL_STREAMS_MAX];
	struct ptcp_round r = { .number = m->number + 1, .streams = this_level(m)->streams,
		.congestion = session_congestion(m->base.session) };

	if (m->failed) {
		level_add_failed(this_level(m));
		r.why = m->why.msg;
	} else {
		r.throughput_bps = level_add(this_level(m), m->run, rates);
		r.per_stream_bps = rates;
		r.retransmits = m->retransmits;
	}
	if (m->o.round != NULL)
		m->o.round(m->o.arg, &r);
}

static void on_clear(void *arg)
{
	struct measure *m = arg;

	report_round(m);
	if (++m->number == m->o.rounds * m->n_levels)
		probe_session_finish(m->base.session);
	else
		timer_set(m->base.timer, mono_add_ns(m->started, (uint64_t)(m->o.interval_s * 1e9)));
}

static void on_measure_timer(void *arg)
{
	start_round(arg);
}

static const struct probe_session_ops probe_session_ops = { on_begun, on_measure_ended, on_clear };

static void running(struct prober *b, struct session *sess)
{
	if (prober_begin(b, sess, &probe_session_ops, on_measure_timer, b->max_streams))
		start_round(of(b));
}

static const struct prober_ops ops = { .running = running, .free = prober_free };

size_t measure_levels(const struct prober *b, struct ptcp_level *out, size_t max,
    unsigned *saturates_at)
{
	const struct measure *m = of((struct prober *)(uintptr_t)b);
	size_t i, n = 0;

	*saturates_at = 0;
	if (b == NULL || b->ops != &ops)
		return 0;
	for (i = 0; i < m->n_levels; i++) {
		const struct level *l = &m->level[i];

		if (l->rounds > 0 && n++ < max)
			out[n - 1] = (struct ptcp_level){ l->streams, l->rounds, l->failed, l->round_bps.mean,
				l->round_bps.min, l->round_bps.max, moments_sd(&l->round_bps),
				l->stream_bps.mean, l->fairness,
				level_clusters(l), l->stream_bps.min, l->stream_bps.max, moments_sd(&l->stream_bps) };
	}
	*saturates_at = levels_saturate_at(m->level, m->n_levels);
	return n;
}

void ptcp_measure_opts_init(struct ptcp_measure_opts *o)
{
	*o = (struct ptcp_measure_opts){ .size = sizeof *o, PTCP_OPTIONS_MEASURE(PTCP_NO_ROW, OPTS_INITIAL) };
}

static int by_streams(const void *a, const void *b)
{
	const struct level *x = a, *y = b;

	return (x->streams > y->streams) - (x->streams < y->streams);
}

static int take_opts(struct measure *m, const struct ptcp_measure_opts *o, struct ptcp_err *e)
{
	static const unsigned defaults[] = { 10, 20, 30, 40, 50 };
	const unsigned *level = o->n_streams > 0 ? o->streams : defaults;
	size_t i;
	int r = 0;

	m->n_levels = o->n_streams > 0 ? o->n_streams : sizeof defaults / sizeof *defaults;
	if (m->n_levels > LEVELS_MAX)
		return err_set(e, PTCP_EUSAGE, "streams: more than %d levels (leave some out)", LEVELS_MAX);
	for (i = 0; i < m->n_levels; i++) {
		if (level[i] < 1 || level[i] > PTCP_STREAMS_MAX)
			return err_set(e, PTCP_EUSAGE, "%u streams: must be 1 to %d", level[i], PTCP_STREAMS_MAX);
		m->level[i].streams = level[i];
	}
	sort_array(m->level, m->n_levels, sizeof *m->level, by_streams);
	for (i = 1; i < m->n_levels; i++)
		if (m->level[i].streams == m->level[i - 1].streams)
			return err_set(e, PTCP_EUSAGE, "%u streams: given twice (leave one out)", m->level[i].streams);
	m->base.max_streams = m->level[m->n_levels - 1].streams;
	PTCP_OPTIONS_MEASURE(PTCP_NO_ROW, OPTS_CHECK)
	return r;
}

int measure_new(struct prober **out, const struct ptcp_measure_opts *o, struct ptcp_err *e)
{
	struct measure *m = calloc(1, sizeof *m);
	int r;

	if (m == NULL)
		return err_nomem(e);
	m->base.ops = &ops;
	ptcp_measure_opts_init(&m->o);
	if ((r = opts_copy(&m->o, sizeof m->o, o, "ptcp_measure_opts_init", e)) == 0)
		r = take_opts(m, &m->o, e);
	m->o.streams = NULL;
	m->base.judges_streams = true;
	m->base.receives = m->o.receive;
	if (r < 0) {
		free(m);
		return r;
	}
	*out = &m->base;
	return 0;
}
