#include "model/ratectl.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define ROUNDING 1e-9
#define CHANCE_MIN 0.001 /* min rate, in even shares */

void ratectl_opts_init(struct ratectl_opts *o)
{
	*o = (struct ratectl_opts){ 0, 1.1, 2.0, 0.01, 0.03 };
}

static double sum(const double *x, size_t n)
{
	double s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += x[i];
	return s;
}

void ratectl_init(struct ratectl *c, const struct ratectl_opts *o, size_t paths,
    double demand_bps, const double *start_bps)
{
	double total = sum(start_bps, paths);
	size_t i;

	assert(paths >= 1 && paths <= RATECTL_PATHS_MAX && demand_bps > 0);
	memset(c, 0, sizeof *c);
	c->opts = *o;
	c->demand_bps = demand_bps;
	c->paths = paths;
	c->probed = -1;
	for (i = 0; i < paths; i++) {
		c->rate_bps[i] = total > demand_bps ? start_bps[i] * (demand_bps / total) : start_bps[i];
		c->beta[i] = o->beta;
		c->chance[i] = 1 / (double)paths;
	}
}

static void normalize(struct ratectl *c)
{
	double total = sum(c->chance, c->paths), least = CHANCE_MIN / (double)c->paths;
	size_t i;

	for (i = 0; i < c->paths; i++)
		c->chance[i] = fmax(c->chance[i] / total, least);
	total = sum(c->chance, c->paths);
	for (i = 0; i < c->paths; i++)
		c->chance[i] /= total;
}

/* Evaluates the current probe; returns whether the probe failed. */
static bool adjust(struct ratectl *c, const double *observed_bps)
{
	size_t g = (size_t)c->probed;
	bool failed = observed_bps[g] < c->rate_bps[g] * (1 - c->opts.delta_ratio) - ROUNDING * c->demand_bps;

	if (failed) {
		memcpy(c->rate_bps, c->kept_bps, sizeof c->rate_bps);
		c->chance[g] /= 2;
		c->beta[g] /= c->opts.gamma;
	} else {
		c->chance[g] = fmin(2 * c->chance[g], 1);
		c->beta[g] *= c->opts.alpha;
	}
	normalize(c);
	return failed;
}

/* A random path other than `except` (SIZE_MAX: any). */
static size_t draw(const struct ratectl *c, size_t except, double u)
{
	double left = u * (1 - (except < c->paths ? c->chance[except] : 0));
	size_t i, last = 0;

	for (i = 0; i < c->paths; i++) {
		if (i == except)
			continue;
		last = i;
		if (left < c->chance[i])
			break;
		left -= c->chance[i];
	}
	return last;
}

static void probe(struct ratectl *c, size_t g)
{
	double eps = c->opts.eps_ratio * c->demand_bps, old = c->rate_bps[g];
	double y = old * (1 + c->beta[g]) + eps, others, room;
	size_t i;

	memcpy(c->kept_bps, c->rate_bps, sizeof c->kept_bps);
	if (y > c->demand_bps) {
		y = c->demand_bps;
		c->beta[g] = old > 0 ? fmax((y - eps) / old - 1, 0) : 0;
	}
	c->rate_bps[g] = y;
	others = sum(c->rate_bps, c->paths) - y;
	room = c->demand_bps - y;
	if (others > room)
		for (i = 0; i < c->paths; i++)
			if (i != g)
				c->rate_bps[i] *= room / others;
	c->probed = (int)g;
}

void ratectl_step(struct ratectl *c, const double *observed_bps, double u)
{
	size_t except = c->paths;

	if (c->probed >= 0 && adjust(c, observed_bps) && c->paths > 1)
		except = (size_t)c->probed;
	probe(c, draw(c, except, u));
}
