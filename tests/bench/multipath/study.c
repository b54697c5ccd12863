#include "bench/multipath/study.h"

#include <math.h>
#include <string.h>

void study_init(struct study *s, size_t k, double skew, double f, double spread, struct rng *r)
{
	double total = 0, demand = 0;
	size_t i;

	s->sharing = STUDY_MAXMIN;
	s->sources = s->relays = 100;
	s->k = k;
	for (i = 0; i < s->sources; i++) {
		s->demand[i] = 1 + spread * (2 * rng_uniform(r) - 1);
		demand += s->demand[i];
	}
	for (i = 0; i < s->relays; i++) {
		s->capacity[i] = pow((double)(i + 1), -skew);
		total += s->capacity[i];
	}
	for (i = 0; i < s->relays; i++)
		s->capacity[i] *= f * demand / total;
}

struct flow {
	size_t source, path;
	double asks;
};

static size_t flows_of(const struct study *s, size_t relay, struct flow *flows)
{
	size_t i, p, at, n = 0;

	for (i = 0; i < s->sources; i++)
		for (p = 0; p < s->k; p++) {
			double asks = s->control[i].rate_bps[p];

			if (s->relay[i][p] != relay)
				continue;
			for (at = n++; at > 0 && flows[at - 1].asks > asks; at--)
				flows[at] = flows[at - 1];
			flows[at] = (struct flow){ i, p, asks };
		}
	return n;
}

/* Returns what the relay delivers in all. */
static double share_relay(struct study *s, size_t relay)
{
	struct flow flows[STUDY_MAX * RATECTL_PATHS_MAX];
	size_t i, n = flows_of(s, relay, flows);
	double left = s->capacity[relay], asked = 0, gets;

	for (i = 0; i < n; i++)
		asked += flows[i].asks;
	for (i = 0; i < n; i++) {
		if (s->sharing == STUDY_PROPORTIONAL)
			gets = flows[i].asks * fmin(s->capacity[relay] / asked, 1);
		else
			gets = fmin(flows[i].asks, left / (double)(n - i));
		s->seen[flows[i].source][flows[i].path] = gets;
		left -= gets;
	}
	return s->capacity[relay] - left;
}

double study_interval(struct study *s, struct rng *r)
{
	double total = 0;
	size_t i;

	for (i = 0; i < s->sources; i++)
		ratectl_step(&s->control[i], s->seen[i], rng_uniform(r));
	for (i = 0; i < s->relays; i++)
		total += share_relay(s, i);
	return total;
}

/* How far all open paths may rise further before a relay or a demand is met. */
static double rise(const struct study *s, const double *left, const double *want,
    bool (*open)[RATECTL_PATHS_MAX])
{
	double at_relay[STUDY_MAX] = { 0 }, at_source, step = INFINITY;
	size_t i, p;

	for (i = 0; i < s->sources; i++) {
		at_source = 0;
		for (p = 0; p < s->k; p++)
			if (open[i][p]) {
				at_source++;
				at_relay[s->relay[i][p]]++;
			}
		if (at_source > 0)
			step = fmin(step, want[i] / at_source);
	}
	for (i = 0; i < s->relays; i++)
		if (at_relay[i] > 0)
			step = fmin(step, left[i] / at_relay[i]);
	return step;
}

void study_start(struct study *s, const struct ratectl_opts *o)
{
	double left[STUDY_MAX], want[STUDY_MAX], rate[STUDY_MAX][RATECTL_PATHS_MAX] = { { 0 } };
	bool open[STUDY_MAX][RATECTL_PATHS_MAX];
	double step;
	size_t i, p;

	memcpy(left, s->capacity, sizeof left);
	memcpy(want, s->demand, sizeof want);
	memset(open, true, sizeof open);
	while (isfinite(step = rise(s, left, want, open))) {
		for (i = 0; i < s->sources; i++)
			for (p = 0; p < s->k; p++)
				if (open[i][p]) {
					rate[i][p] += step;
					want[i] -= step;
					left[s->relay[i][p]] -= step;
				}
		for (i = 0; i < s->sources; i++)
			for (p = 0; p < s->k; p++)
				if (want[i] < 1e-12 || left[s->relay[i][p]] < 1e-12)
					open[i][p] = false;
	}
	for (i = 0; i < s->sources; i++)
		ratectl_init(&s->control[i], o, s->k, s->demand[i], rate[i]);
}

void study_choose(struct study *s, bool proportional, double error, struct rng *r)
{
	double estimate[STUDY_MAX];
	size_t i, j;

	for (i = 0; i < s->sources; i++) {
		for (j = 0; j < s->relays; j++)
			estimate[j] = s->capacity[j] * (1 + error * (2 * rng_uniform(r) - 1));
		choose_paths(s->relay[i], s->k, proportional ? estimate : NULL, s->relays, r);
	}
}

void study_run(struct study *s, const struct ratectl_opts *o, struct rng *r,
    struct study_outcome *out)
{
	double got[STUDY_INTERVALS];
	size_t i;

	out->optimum = study_optimum(s);
	out->reached = 0;
	study_start(s, o);
	for (i = 0; i < STUDY_INTERVALS; i++) {
		got[i] = study_interval(s, r);
		if (i >= STUDY_INTERVALS - STUDY_LAST)
			out->reached += got[i] / STUDY_LAST;
	}
	for (i = STUDY_INTERVALS; i > 0; i--)
		if (fabs(got[i - 1] / out->reached - 1) > 0.02)
			break;
	out->converged = i;
}

/* Mean of what arrives over the last intervals of a run, by source and path. */
static void run_and_average(struct study *s, const struct ratectl_opts *o, struct rng *r,
    double (*mean)[RATECTL_PATHS_MAX])
{
	size_t i, p, t;

	memset(mean, 0, STUDY_MAX * sizeof *mean);
	study_start(s, o);
	for (t = 0; t < STUDY_RESELECT_INTERVALS; t++) {
		study_interval(s, r);
		if (t < STUDY_RESELECT_INTERVALS - STUDY_RESELECT_LAST)
			continue;
		for (i = 0; i < s->sources; i++)
			for (p = 0; p < s->k; p++)
				mean[i][p] += s->seen[i][p] / STUDY_RESELECT_LAST;
	}
}

unsigned study_reselect(struct study *s, const struct ratectl_opts *o, enum reselect_paths how,
    bool proportional, unsigned most, struct rng *r)
{
	double mean[STUDY_MAX][RATECTL_PATHS_MAX], got;
	unsigned n;
	size_t i, p, short_of;

	for (n = 0; n < most; n++) {
		run_and_average(s, o, r, mean);
		short_of = 0;
		for (i = 0; i < s->sources; i++) {
			for (got = 0, p = 0; p < s->k; p++)
				got += mean[i][p];
			if (got >= 0.95 * s->demand[i])
				continue;
			short_of++;
			reselect_paths(s->relay[i], s->k, how, mean[i],
			    proportional ? s->capacity : NULL, s->relays, r);
		}
		if (short_of == 0)
			break;
	}
	return n;
}
