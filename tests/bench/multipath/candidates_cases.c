#include "bench/multipath/candidates_cases.h"

#include <math.h>
#include <string.h>

#define CHANGE_S 60
#define LATE_S 60 /* limit for short transfers */

static void as_drawn(struct candidates *w, struct rng *r)
{
	(void)w;
	(void)r;
}

static void receiving(struct candidates *w, struct rng *r)
{
	(void)r;
	w->receives = true;
}

static void equal(struct candidates *w, struct rng *r)
{
	size_t i;

	(void)r;
	for (i = 1; i < w->n; i++)
		w->bps[i] = w->bps[0];
}

/* Pairs of candidates share a bottleneck of the better one's bandwidth. */
static void shared(struct candidates *w, struct rng *r)
{
	size_t i;

	(void)r;
	for (i = 0; i < w->n; i++) {
		w->group[i] = (int)(i / 2);
		w->group_bps[i / 2] = fmax(w->bps[i], i % 2 == 0 ? 0 : w->group_bps[i / 2]);
	}
}

static void local_limit(struct candidates *w, struct rng *r)
{
	w->access_bps = candidates_best_bps(w, 0) * (0.3 + 0.7 * rng_uniform(r));
}

static void dead(struct candidates *w, struct rng *r)
{
	size_t gone = (size_t)(rng_uniform(r) * (double)w->n), i;

	for (i = 0; i < w->n / 3 + 1 && w->n > w->places; i++)
		w->bps[(gone + i) % w->n] = -1;
}

/* The best path drops to a tenth. */
static void changing(struct candidates *w, struct rng *r)
{
	size_t i, best = 0;

	(void)r;
	w->change_s = CHANGE_S;
	memcpy(w->later_bps, w->bps, sizeof w->later_bps);
	for (i = 1; i < w->n; i++)
		if (w->bps[i] > w->bps[best])
			best = i;
	w->later_bps[best] = w->bps[best] / 10;
}

static void rate_below(struct candidates *w, struct rng *r)
{
	w->demand_bps = candidates_best_bps(w, 0) * (0.5 + 0.5 * rng_uniform(r));
}

static void rate_beyond(struct candidates *w, struct rng *r)
{
	w->demand_bps = candidates_best_bps(w, 0) * (1 + rng_uniform(r));
}

/* Within 50 % of the truth. */
static void known(struct candidates *w, struct rng *r)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		w->known[i] = w->bps[i] * (0.5 + rng_uniform(r));
}

const struct candidates_case candidates_cases[CANDIDATES_CASES] = {
	{ "4 candidates, 2 paths", 4, 4, 2, 2, as_drawn, 95 },
	{ "3 to 8 candidates, 1 to 3 paths", 3, 8, 1, 3, as_drawn, 94 },
	{ "the same, received", 3, 8, 1, 3, receiving, 95 },
	{ "the same, equal bandwidths", 3, 8, 1, 3, equal, 88 },
	{ "the same, shared bottlenecks", 3, 8, 1, 3, shared, 75 },
	{ "the same, local host limits", 3, 8, 1, 3, local_limit, 94 },
	{ "the same, a third is dead", 3, 8, 1, 3, dead, 90 },
	{ "the same, the best drops to 10 %", 3, 8, 1, 3, changing, 90 },
	{ "the same, --rate below the best", 3, 8, 1, 3, rate_below, 90 },
	{ "the same, --rate beyond the best", 3, 8, 1, 3, rate_beyond, 88 },
	{ "the same, known within 50 %", 3, 8, 1, 3, known, 94 },
	{ "4 candidates, 1 path", 4, 4, 1, 1, as_drawn, 94 },
	{ "16 candidates, 2 paths", 16, 16, 2, 2, as_drawn, 85 },
	{ "all of 4 candidates", 4, 4, 4, 4, as_drawn, 99 },
};

static size_t between(size_t least, size_t most, struct rng *r)
{
	return least + (size_t)(rng_uniform(r) * (double)(most - least + 1));
}

static void add(const struct candidates_case *u, unsigned seconds, struct rng *r, struct candidates_figures *f)
{
	size_t n = between(u->n_min, u->n_max, r), k = between(u->k_min, u->k_max, r);
	static struct candidates_run x;
	struct candidates w;
	double ratio;
	struct rng same, again;
	unsigned from;

	candidates_draw(&w, n, k < n ? k : n, r);
	u->draw(&w, r);
	from = (unsigned)w.change_s + CANDIDATES_AFTER_S;
	same = *r;
	candidates_run(&w, true, from + seconds, r, &x);
	ratio = candidates_mean_bps(&x, from, from + CANDIDATES_MEASURED_S) / candidates_best_bps(&w, from);
	f->percent += 100 * ratio;
	f->good += ratio >= 0.9 ? 100 : 0;
	f->replaced += 60.0 * candidates_replaced(&x, from, from + seconds) / seconds;
	again = same;
	candidates_run(&w, false, CANDIDATES_SHORT_S, &same, &x);
	w.left_bits = CANDIDATES_SHORT_S * candidates_mean_bps(&x, 0, CANDIDATES_SHORT_S);
	candidates_run(&w, true, LATE_S, &again, &x);
	f->short_s += fmin(x.done_s, LATE_S);
}

void candidates_measure(const struct candidates_case *u, unsigned draws, unsigned seconds, struct rng *r,
    struct candidates_figures *out)
{
	unsigned i;

	*out = (struct candidates_figures){ 0 };
	for (i = 0; i < draws; i++)
		add(u, seconds, r, out);
	out->percent /= draws;
	out->good /= draws;
	out->replaced /= draws;
	out->short_s /= draws;
}
