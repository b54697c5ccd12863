/* Where to spend measurements: Wu, Rao, Iyengar measure noisy links more often,
 * in proportion to the standard deviation of each link's estimate, which for a
 * fixed total makes the sum of the estimates' variances least (Neyman 1934). */
#ifndef MODEL_MEASUREMENT_BUDGET_H
#define MODEL_MEASUREMENT_BUDGET_H

#include <stddef.h>

/* Divides `total` measurements among `links`: first `least` to each, as far as
 * they go (in the array's order); the rest in proportion to sd[], rounded by
 * largest remainder. counts[] sums to exactly `total` (0 links: nothing). An
 * sd that is not a finite number, or negative, is unknown and counts as the
 * largest known one. When all are 0 or unknown, all get alike. `scratch` has
 * `links` elements. */
void measurement_budget_allocate(unsigned *counts, const double *sd, double *scratch, size_t links,
    unsigned total, unsigned least);

#endif
