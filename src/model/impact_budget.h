/* Impact spent over the last minute: the budget of a transfer holds for the mean, probes included. */
#ifndef MODEL_IMPACT_BUDGET_H
#define MODEL_IMPACT_BUDGET_H

#include <stdbool.h>

#include "model/advice.h"
#include "model/parameters.h"

#define IMPACT_BUDGET_S 60 /* seconds over which the budget holds */

/* Stream counts of the last minute. Their impact follows from the latest advice, because the first levels have no
 * advice yet. Zero-initialize. */
struct impact_budget {
	double streams[IMPACT_BUDGET_S]; /* mean of each of the last seconds, a ring; 0: no transfer yet */
	double second_s;                 /* part of the current second */
	unsigned second;
	double recovery_s;               /* time constant of the recovery of competing flows; 0: at once */
};

/* Adds seconds with `streams` streams. */
void impact_budget_pass(struct impact_budget *b, unsigned streams, double seconds);
/* Whether the minute can afford the impact of `streams` streams for `seconds`. */
bool impact_budget_affords(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds);
/* The most streams up to `streams` that it can afford; at least 1. */
unsigned impact_budget_most(const struct impact_budget *b, const struct advice *a, double budget_ratio,
    unsigned streams, double seconds);

#endif
