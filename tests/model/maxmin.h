/* The demand divided over paths as by going round their sockets and writing one unit to each that is writable, where
 * path j takes at most takes_bps[j]. */
#ifndef TESTS_MODEL_MAXMIN_H
#define TESTS_MODEL_MAXMIN_H

#include <math.h>
#include <stddef.h>

static inline void maxmin(double *rate_bps, const double *takes_bps, size_t paths, double demand_bps)
{
	double rest = demand_bps, level = 0, next;
	size_t i, open;

	/* Raise a common level; a path drops out where it takes no more. */
	for (;;) {
		open = 0;
		next = INFINITY;
		for (i = 0; i < paths; i++)
			if (takes_bps[i] > level) {
				open++;
				next = fmin(next, takes_bps[i]);
			}
		if (open == 0)
			break;
		if ((next - level) * (double)open >= rest) {
			level += rest / (double)open;
			break;
		}
		rest -= (next - level) * (double)open;
		level = next;
	}
	for (i = 0; i < paths; i++)
		rate_bps[i] = fmin(takes_bps[i], level);
}

#endif
