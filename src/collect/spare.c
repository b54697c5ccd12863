#include "collect/spare.h"

#include <math.h>
#include <string.h>

#define USED_UP 1e-6 /* of a limit */

/* It has room on all that it crosses. */
static bool has_room(const struct spare_flow *f, const double *limit_bps, const double *left_bps)
{
	size_t i;

	for (i = 0; i < f->n_limits; i++)
		if (isfinite(limit_bps[f->limit[i]]) && !(left_bps[f->limit[i]] > USED_UP * limit_bps[f->limit[i]]))
			return false;
	return true;
}

/* By how much more of what they have all that still grow can grow; 0: none does. */
static double next_step(struct spare_flow *f, size_t n, const double *limit_bps, const double *left_bps,
    double *load_bps, size_t n_limits)
{
	double step = 0;
	size_t i, k;

	memset(load_bps, 0, n_limits * sizeof *load_bps);
	for (i = 0; i < n; i++) {
		f[i].grows = f[i].grows && has_room(&f[i], limit_bps, left_bps);
		if (f[i].grows)
			step = INFINITY;
		for (k = 0; f[i].grows && k < f[i].n_limits; k++)
			load_bps[f[i].limit[k]] += f[i].bps;
	}
	for (i = 0; i < n_limits; i++)
		if (load_bps[i] > 0)
			step = fmin(step, left_bps[i] / load_bps[i]);
	return step;
}

void spare_flows(struct spare_flow *f, size_t n, const double *limit_bps, size_t n_limits, double *left_bps,
    double *load_bps)
{
	double step, by = 1;
	size_t i, k;

	memcpy(left_bps, limit_bps, n_limits * sizeof *left_bps);
	for (i = 0; i < n; i++) {
		f[i].grows = f[i].bps > 0;
		for (k = 0; k < f[i].n_limits; k++)
			left_bps[f[i].limit[k]] -= f[i].bps;
	}
	while (by < SPARE_MAX && (step = next_step(f, n, limit_bps, left_bps, load_bps, n_limits)) > 0) {
		step = fmin(step, SPARE_MAX / by - 1);
		by *= 1 + step;
		for (i = 0; i < n; i++) {
			for (k = 0; f[i].grows && k < f[i].n_limits; k++)
				left_bps[f[i].limit[k]] -= step * f[i].bps;
			f[i].bps *= f[i].grows ? 1 + step : 1;
		}
	}
}
