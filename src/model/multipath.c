#include "model/multipath.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static bool among(const size_t *chosen, size_t k, size_t candidate)
{
	size_t i;

	for (i = 0; i < k; i++)
		if (chosen[i] == candidate)
			return true;
	return false;
}

/* An index not among the k chosen; needs k < candidates. */
static size_t draw(const size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r)
{
	double total = 0, left, w;
	size_t i, last = candidates, count = 0;

	for (i = 0; i < candidates; i++)
		if (!among(chosen, k, i)) {
			total += weight != NULL ? weight[i] : 1;
			count++;
		}
	left = rng_uniform(r) * (total > 0 ? total : (double)count);
	for (i = 0; i < candidates; i++) {
		w = weight != NULL && total > 0 ? weight[i] : 1;
		if (w == 0 || among(chosen, k, i))
			continue;
		last = i;
		if (left < w)
			break;
		left -= w;
	}
	return last;
}

void choose_paths(size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r)
{
	size_t i;

	assert(k <= candidates);
	for (i = 0; i < k; i++)
		chosen[i] = draw(chosen, i, weight, candidates, r);
}

size_t reselect_paths(size_t *chosen, size_t k, enum reselect_paths how, const double *observed_bps,
    const double *weight, size_t candidates, struct rng *r)
{
	size_t i, old, worst = 0, changed = 0;

	assert(k <= candidates);
	if (how == RESELECT_WORST && k == candidates)
		return 0;
	if (how == RESELECT_WORST) {
		for (i = 1; i < k; i++)
			if (observed_bps[i] < observed_bps[worst])
				worst = i;
		chosen[worst] = draw(chosen, k, weight, candidates, r);
		return 1;
	}
	for (i = 0; i < k; i++) {
		old = chosen[i];
		chosen[i] = draw(chosen, i, weight, candidates, r);
		changed += chosen[i] != old;
	}
	return changed;
}

/* ---- Control ---- */

#define BETTER 1.05       /* throughput factor required of a known candidate */
#define MIN_RATIO 0.01

static void forget_candidates(struct multipath *r)
{
	size_t i;

	for (i = 0; i < r->candidates; i++)
		r->known_bps[i] = -1;
}

void multipath_init(struct multipath *r, size_t candidates, const size_t *place, size_t places, uint64_t seed)
{
	assert(places >= 1 && places <= candidates && candidates <= RATECTL_PATHS_MAX);
	memset(r, 0, sizeof *r);
	ratectl_opts_init(&r->opts);
	r->opts.beta = 0.1;
	r->opts.delta_ratio = 0.05;
	r->rng.state = seed;
	r->candidates = candidates;
	r->places = places;
	memcpy(r->place, place, places * sizeof *place);
	r->rest = MULTIPATH_REST;
	forget_candidates(r);
}

/* Restarts with free sharing. */
static void restart(struct multipath *r)
{
	r->started = r->unmet = 0;
	memset(r->rate_bps, 0, sizeof r->rate_bps);
	memset(r->start_bps, 0, sizeof r->start_bps);
}

/* Chances of the candidates; 0 for throughput up to `min_bps`. */
static void weigh(const struct multipath *r, double least, double *weight)
{
	double sum = 0;
	size_t i, n = 0;

	for (i = 0; i < r->candidates; i++)
		if (r->known_bps[i] > 0) {
			sum += r->known_bps[i];
			n++;
		}
	for (i = 0; i < r->candidates; i++)
		weight[i] = r->known_bps[i] < 0 ? (n > 0 ? sum / (double)n : 1) : r->known_bps[i] > least ? r->known_bps[i] : 0;
}

static unsigned changed_places(const struct multipath *r, const size_t *before)
{
	unsigned bits = 0;
	size_t i;

	for (i = 0; i < r->places; i++)
		if (r->place[i] != before[i])
			bits |= 1u << i;
	return bits;
}

static void replace_dead(struct multipath *r, const bool *down)
{
	double weight[RATECTL_PATHS_MAX], alive[RATECTL_PATHS_MAX];
	size_t i, k;

	for (i = 0; i < r->places; i++) {
		if (!down[i])
			continue;
		r->known_bps[r->place[i]] = 0;
		weigh(r, 0, weight);
		for (k = 0; k < r->places; k++)
			alive[k] = k == i ? 0 : 1;
		if (reselect_paths(r->place, r->places, RESELECT_WORST, alive, weight, r->candidates, &r->rng) > 0)
			r->reason = "the old path delivers no data";
	}
}

/* Moves candidates in use before and after to their previous places. */
static void keep_places(struct multipath *r, const size_t *before)
{
	size_t i, k;

	for (i = 0; i < r->places; i++)
		for (k = 0; k < r->places; k++)
			if (k != i && r->place[k] == before[i]) {
				r->place[k] = r->place[i];
				r->place[i] = before[i];
			}
}

/* No single candidate is better: restores the best combination, or, if it is in use, redraws all after a
 * pause, since throughput depends on the combination. */
static void reselect_all(struct multipath *r, double sum_bps)
{
	size_t before[RATECTL_PATHS_MAX];

	memcpy(before, r->place, sizeof before);
	if (sum_bps * BETTER < r->best_bps) {
		memcpy(r->place, r->best, sizeof before);
		r->reason = "higher throughput with the new path";
		r->best_bps = 0;
	} else {
		memcpy(r->best, r->place, sizeof before);
		r->best_bps = sum_bps;
		if (++r->rested < r->rest)
			return;
		r->rested = 0;
		r->rest = 2 * r->rest < MULTIPATH_REST_MAX ? 2 * r->rest : MULTIPATH_REST_MAX;
		reselect_paths(r->place, r->places, RESELECT_ALL, NULL, NULL, r->candidates, &r->rng);
		forget_candidates(r);
		r->reason = "the demand is not met, and no single other path is better";
	}
	keep_places(r, before);
}

static void reselect(struct multipath *r, const double *observed_bps)
{
	double weight[RATECTL_PATHS_MAX], worst = observed_bps[0], sum = 0;
	bool any = false;
	size_t i;

	r->unmet = 0;
	for (i = 0; i < r->places; i++) {
		worst = fmin(worst, observed_bps[i]);
		sum += observed_bps[i];
	}
	weigh(r, BETTER * worst, weight);
	for (i = 0; i < r->candidates; i++)
		any |= !among(r->place, r->places, i) && weight[i] > 0;
	if (any && reselect_paths(r->place, r->places, RESELECT_WORST, observed_bps, weight, r->candidates, &r->rng) > 0)
		r->reason = "the demand is not met";
	else if (r->candidates > r->places)
		reselect_all(r, sum);
}

static void set_rates(struct multipath *r)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < r->places; i++) {
		r->rate_bps[i] = fmax(r->control.rate_bps[i], MIN_RATIO * r->demand_bps);
		sum += r->rate_bps[i];
	}
	for (i = 0; i < r->places && sum > r->demand_bps; i++)
		r->rate_bps[i] *= r->demand_bps / sum;
}

static void control(struct multipath *r, const double *observed_bps)
{
	double sum = 0;
	size_t i;

	if (r->started < MULTIPATH_START) {
		for (i = 0; i < r->places; i++)
			r->start_bps[i] += observed_bps[i] / MULTIPATH_START;
		if (++r->started == MULTIPATH_START)
			ratectl_init(&r->control, &r->opts, r->places, r->demand_bps, r->start_bps);
	}
	if (r->started == MULTIPATH_START) {
		ratectl_step(&r->control, observed_bps, rng_uniform(&r->rng));
		set_rates(r);
	}
	for (i = 0; i < r->places; i++)
		sum += observed_bps[i];
	r->unmet = sum < MULTIPATH_MET_RATIO * r->demand_bps ? r->unmet + 1 : 0;
}

unsigned multipath_step(struct multipath *r, const struct multipath_sample *x)
{
	size_t before[RATECTL_PATHS_MAX], i;
	unsigned bits;

	memcpy(before, r->place, sizeof before);
	if (x->demand_bps != r->demand_bps || x->starved)
		restart(r);
	r->demand_bps = x->demand_bps;
	if (!x->starved) {
		for (i = 0; i < r->places; i++)
			r->known_bps[r->place[i]] = x->observed_bps[i];
		if (x->demand_bps > 0)
			control(r, x->observed_bps);
		if (r->unmet >= MULTIPATH_PATIENCE)
			reselect(r, x->observed_bps);
	}
	replace_dead(r, x->down);
	if ((bits = changed_places(r, before)) != 0)
		restart(r);
	return bits;
}
