/* What a plan leaves free. A plan of least makespan has no more than one source or bottleneck that is busy to its end:
 * all others are given just what makes them end with it. They may as well be early: who has ended cannot be late, and
 * leaves its share to others. Pure. */
#ifndef COLLECT_SPARE_H
#define COLLECT_SPARE_H

#include <stdbool.h>
#include <stddef.h>

struct spare_flow {
	const size_t *limit; /* what it crosses */
	size_t n_limits;
	double bps;          /* what the plan gives it; 0: nothing, and it gets nothing */
	bool grows;          /* scratch */
};

#define SPARE_MAX 1e9 /* times what the plan gives: an end where nothing is limited, and none to what is */

/* Raises flows all by the same factor, until each crosses a limit that is used up. left_bps and load_bps are scratch,
 * of each limit. */
void spare_flows(struct spare_flow *f, size_t n, const double *limit_bps, size_t n_limits, double *left_bps,
    double *load_bps);

#endif
