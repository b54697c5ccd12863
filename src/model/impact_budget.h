/* Impact spent over the last minute: the budget of a transfer holds for the mean, probes included. */
#ifndef MODEL_IMPACT_BUDGET_H
#define MODEL_IMPACT_BUDGET_H

#include <stdbool.h>

#include "model/advice.h"

#define IMPACT_BUDGET_S 60
/* Max mean impact above the budget. */
#define IMPACT_BUDGET_OVER_RATIO 0.04

/* Zero-initialize. */
struct impact_budget {
	double spent_s[IMPACT_BUDGET_S]; /* impact x time of each of the last seconds, a ring */
	double second_s;                 /* part of the current second */
	unsigned second;
};

void impact_budget_spend(struct impact_budget *b, double impact_ratio, double seconds);
/* Charges time that has passed, once its impact is known. */
void impact_budget_charge(struct impact_budget *b, double impact_ratio, double seconds);
/* Whether the minute can afford the impact of `streams` streams for `seconds`. */
bool impact_budget_affords(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds);
/* The most streams up to `streams` that it can afford; at least 1. */
unsigned impact_budget_most(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds);

#endif
