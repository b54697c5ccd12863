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

/* ---- Places ---- */

static void begin_trials(struct multipath *r, size_t untried)
{
	r->trying = untried > 0;
	r->at_once = (untried + MULTIPATH_TRIALS - 1) / MULTIPATH_TRIALS;
	r->best_bps = 0;
	memcpy(r->peak_bps, r->known_bps, sizeof r->peak_bps);
}

void multipath_init(struct multipath *r, size_t candidates, const size_t *place, size_t places,
    const double *prior_bps, uint64_t seed)
{
	size_t i;

	assert(places >= 1 && places <= candidates && candidates <= RATECTL_PATHS_MAX);
	memset(r, 0, sizeof *r);
	ratectl_opts_init(&r->opts);
	r->opts.beta = 0.1;
	r->opts.delta_ratio = 0.05;
	r->rng.state = seed;
	r->candidates = candidates;
	r->places = places;
	memcpy(r->place, place, places * sizeof *place);
	for (i = 0; i < candidates; i++) {
		r->known_bps[i] = -1;
		r->prior_bps[i] = prior_bps != NULL ? prior_bps[i] : 0;
	}
	begin_trials(r, candidates - places);
	r->rest = MULTIPATH_REST;
	r->pause = MULTIPATH_PAUSE;
	r->wait = MULTIPATH_SETTLED;
}

/* Restarts with free sharing. */
static void restart(struct multipath *r)
{
	r->started = r->unmet = 0;
	memset(r->rate_bps, 0, sizeof r->rate_bps);
	memset(r->start_bps, 0, sizeof r->start_bps);
}

static bool in_use(const struct multipath *r, size_t candidate) { return among(r->place, r->places, candidate); }

static bool same_set(const struct multipath *r, const size_t *set)
{
	size_t i;

	for (i = 0; i < r->places; i++)
		if (!in_use(r, set[i]))
			return false;
	return true;
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

static void use(struct multipath *r, const size_t *set, const char *reason)
{
	size_t before[RATECTL_PATHS_MAX];

	memcpy(before, r->place, sizeof before);
	memcpy(r->place, set, r->places * sizeof *set);
	keep_places(r, before);
	r->reason = reason;
}

/* Resets the state of new paths. Returns their places as bits. */
static unsigned changed_places(struct multipath *r, const size_t *before)
{
	unsigned bits = 0;
	size_t i;

	for (i = 0; i < r->places; i++)
		if (r->place[i] != before[i]) {
			bits |= 1u << i;
			r->measured[i] = 0;
		}
	if (bits != 0) {
		restart(r);
		r->settled = 0;
	}
	return bits;
}

/* The `count` candidates with the highest bps[]; among equals, candidates in use. */
static void fastest(const struct multipath *r, const double *candidate_bps, size_t *set, size_t count)
{
	size_t i, k, best;

	for (k = 0; k < count; k++) {
		for (best = r->candidates, i = 0; i < r->candidates; i++)
			if (!among(set, k, i) && (best == r->candidates || candidate_bps[i] > candidate_bps[best] ||
			    (candidate_bps[i] >= candidate_bps[best] && in_use(r, i) && !in_use(r, best))))
				best = i;
		set[k] = best;
	}
}

/* ---- Observing ---- */

double multipath_rival_bps(const struct multipath *r)
{
	size_t set[RATECTL_PATHS_MAX];

	fastest(r, r->known_bps, set, r->places);
	return fmax(r->known_bps[set[r->places - 1]], 0);
}

/* A path at its rate limit may be capable of more. */
static void observe(struct multipath *r, const struct multipath_sample *x)
{
	double rival_bps = multipath_rival_bps(r);
	size_t i;

	for (i = 0; i < r->places; i++) {
		double *known = &r->known_bps[r->place[i]], bps = x->observed_bps[i];
		bool limited = r->rate_bps[i] > 0 && bps >= (1 - r->opts.delta_ratio) * r->rate_bps[i];

		if (x->down[i])
			*known = 0;
		if (x->settling[i] || x->down[i])
			continue;
		if (r->measured[i] == 0 || ((r->measured[i] < MULTIPATH_SLOW_START || limited) && bps > *known))
			*known = bps;
		else if (!limited)
			*known += MULTIPATH_FAST * (bps - *known);
		r->growing[i] = bps > rival_bps / 2 &&
		    (r->measured[i] == 0 || (r->measured[i] < MULTIPATH_SLOW_START &&
		    bps > MULTIPATH_GROWS * r->last_bps[i]));
		r->last_bps[i] = bps;
		r->measured[i]++;
	}
}

static bool all_measured(const struct multipath *r, const struct multipath_sample *x)
{
	size_t i;

	for (i = 0; i < r->places; i++)
		if ((r->measured[i] == 0 || r->growing[i]) && !x->down[i])
			return false;
	return true;
}

/* ---- Dead paths ---- */

/* Chances of the candidates; 0 for dead ones. */
static void weigh(const struct multipath *r, double *weight)
{
	double sum = 0;
	size_t i, n = 0;

	for (i = 0; i < r->candidates; i++)
		if (r->known_bps[i] > 0) {
			sum += r->known_bps[i];
			n++;
		}
	for (i = 0; i < r->candidates; i++)
		weight[i] = r->known_bps[i] < 0 ? (n > 0 ? sum / (double)n : 1) : r->known_bps[i];
}

static void replace_dead(struct multipath *r, const bool *down, const size_t *before)
{
	double weight[RATECTL_PATHS_MAX], alive[RATECTL_PATHS_MAX];
	size_t i, k;

	for (i = 0; i < r->places; i++) {
		if (!down[i] || r->place[i] != before[i])
			continue;
		r->known_bps[r->place[i]] = 0;
		r->best_bps = 0;
		weigh(r, weight);
		for (k = 0; k < r->places; k++)
			alive[k] = k == i ? 0 : 1;
		if (reselect_paths(r->place, r->places, RESELECT_WORST, alive, weight, r->candidates, &r->rng) > 0)
			r->reason = "the old path delivers no data";
	}
}

/* ---- Trials ---- */

static size_t untried(const struct multipath *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->candidates; i++)
		n += r->known_bps[i] < 0;
	return n;
}

static void end_trials(struct multipath *r)
{
	size_t set[RATECTL_PATHS_MAX];
	bool confirmed;

	r->trying = false;
	fastest(r, r->peak_bps, set, r->places);
	use(r, set, "the fastest of the candidates");
	confirmed = r->tried_before && same_set(r, r->tried_from);
	r->pause = !confirmed ? MULTIPATH_PAUSE : 2 * r->pause < MULTIPATH_PAUSE_MAX ? 2 * r->pause :
	    MULTIPATH_PAUSE_MAX;
	r->tried_before = true;
	r->since_trials = 0;
	r->wait = MULTIPATH_SETTLED;
}

/* Tries as few candidates at a time as end the trials in time, beside the fastest known. */
static void try_next(struct multipath *r, double sum_bps)
{
	size_t set[RATECTL_PATHS_MAX], left = untried(r), at_once, i;
	double weight[RATECTL_PATHS_MAX];

	for (i = 0; i < r->places; i++)
		r->peak_bps[r->place[i]] = fmax(r->peak_bps[r->place[i]], r->known_bps[r->place[i]]);
	if (sum_bps > r->best_bps) {
		memcpy(r->best, r->place, sizeof r->best);
		r->best_bps = sum_bps;
	}
	if (left == 0) {
		end_trials(r);
		return;
	}
	at_once = r->at_once < r->places ? r->at_once : r->places;
	at_once = at_once < left ? at_once : left;
	for (i = 0; i < r->candidates; i++)
		weight[i] = r->known_bps[i] >= 0 ? 0 : r->prior_bps[i] > 0 ? r->prior_bps[i] : 1;
	fastest(r, r->peak_bps, set, r->places - at_once);
	for (i = r->places - at_once; i < r->places; i++)
		set[i] = draw(set, i, weight, r->candidates, &r->rng);
	use(r, set, "trying each candidate");
}

static void try_again(struct multipath *r)
{
	size_t i;

	for (i = 0; i < r->candidates; i++)
		if (!in_use(r, i))
			r->known_bps[i] = -1;
	memcpy(r->tried_from, r->place, sizeof r->tried_from);
	begin_trials(r, untried(r));
	try_next(r, 0);
}

/* ---- Reselection ---- */

/* Replaces the slowest path by a candidate that was much faster; in growing intervals, as observations age. */
static bool swap_one(struct multipath *r)
{
	size_t i, worst = 0, best = r->candidates;

	for (i = 1; i < r->places; i++)
		if (r->known_bps[r->place[i]] < r->known_bps[r->place[worst]])
			worst = i;
	for (i = 0; i < r->candidates; i++)
		if (!in_use(r, i) && (best == r->candidates || r->known_bps[i] > r->known_bps[best]))
			best = i;
	if (r->settled < r->wait || r->known_bps[best] <= MULTIPATH_MUCH_BETTER * r->known_bps[r->place[worst]])
		return false;
	r->place[worst] = best;
	r->reason = "higher throughput observed earlier";
	r->wait = 2 * r->wait < MULTIPATH_REST_MAX ? 2 * r->wait : MULTIPATH_REST_MAX;
	return true;
}

/* Other combinations may be better, and candidates may have improved: redraws all paths after a pause. */
static void redraw(struct multipath *r)
{
	size_t before[RATECTL_PATHS_MAX];

	if (++r->rested < r->rest)
		return;
	r->rested = 0;
	r->rest = 2 * r->rest < MULTIPATH_REST_MAX ? 2 * r->rest : MULTIPATH_REST_MAX;
	memcpy(before, r->place, sizeof before);
	reselect_paths(r->place, r->places, RESELECT_ALL, NULL, NULL, r->candidates, &r->rng);
	keep_places(r, before);
	r->reason = "trying other paths together";
}

/* False: other paths had a higher total throughput together, and are restored. */
static bool keep_best(struct multipath *r)
{
	if (same_set(r, r->best) && r->best_bps > 0) {
		r->best_bps += MULTIPATH_SLOW * (r->level_bps - r->best_bps);
		return true;
	}
	if (r->level_bps * MULTIPATH_BETTER < r->best_bps) {
		use(r, r->best, "higher throughput with the new path");
		r->best_bps = 0;
		return false;
	}
	if (r->settled < MULTIPATH_SETTLED)
		return true;
	memcpy(r->best, r->place, sizeof r->best);
	r->best_bps = r->level_bps;
	return true;
}

/* A path delivers much less than before, and not only for a moment. */
static bool has_dropped(struct multipath *r)
{
	bool low = false;
	size_t i;

	for (i = 0; i < r->places; i++) {
		double bps = r->known_bps[r->place[i]];

		r->usual_bps[i] = r->settled == MULTIPATH_SETTLED ? bps :
		    r->usual_bps[i] + MULTIPATH_SLOW * (bps - r->usual_bps[i]);
		low |= bps < MULTIPATH_DROPPED * r->usual_bps[i];
	}
	r->low = low ? r->low + 1 : 0;
	return r->low >= MULTIPATH_SETTLED;
}

static void reselect(struct multipath *r, double sum_bps)
{
	bool dropped;

	r->since_trials++;
	r->level_bps = r->settled == 0 ? sum_bps : r->level_bps + MULTIPATH_FAST * (sum_bps - r->level_bps);
	r->settled++;
	if (!keep_best(r) || r->settled < MULTIPATH_SETTLED || r->candidates == r->places)
		return;
	dropped = has_dropped(r) && r->since_trials >= r->pause;
	if (r->demand_bps > 0 && r->unmet < (dropped ? MULTIPATH_SETTLED : MULTIPATH_PATIENCE))
		return;
	if (untried(r) > 0 || dropped)
		try_again(r);
	else if (!swap_one(r))
		redraw(r);
}

/* ---- Control ---- */

static void set_rates(struct multipath *r)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < r->places; i++) {
		r->rate_bps[i] = fmax(r->control.rate_bps[i], MULTIPATH_MIN_RATIO * r->demand_bps);
		sum += r->rate_bps[i];
	}
	for (i = 0; i < r->places && sum > r->demand_bps; i++)
		r->rate_bps[i] *= r->demand_bps / sum;
}

static void control(struct multipath *r, const double *observed_bps)
{
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
}

static void decide(struct multipath *r, const struct multipath_sample *x)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < r->places; i++)
		sum += x->observed_bps[i];
	r->unmet = x->demand_bps == 0 || sum < MULTIPATH_MET_RATIO * x->demand_bps ? r->unmet + 1 : 0;
	if (r->trying && r->unmet >= (x->demand_bps > 0 ? 2 : 1)) {
		if (!x->ending)
			try_next(r, sum);
		return;
	}
	if (r->trying && r->unmet > 0)
		return;
	r->trying = false;
	if (x->demand_bps > 0)
		control(r, x->observed_bps);
	if (!x->ending)
		reselect(r, sum);
}

unsigned multipath_step(struct multipath *r, const struct multipath_sample *x)
{
	size_t before[RATECTL_PATHS_MAX];

	memcpy(before, r->place, sizeof before);
	if (x->demand_bps != r->demand_bps || x->starved)
		restart(r);
	r->demand_bps = x->demand_bps;
	if (!x->starved) {
		observe(r, x);
		if (all_measured(r, x))
			decide(r, x);
	}
	replace_dead(r, x->down, before);
	return changed_places(r, before);
}
