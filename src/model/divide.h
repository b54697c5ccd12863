/* Dividing a message among paths so that it arrives soonest: all paths end
 * together.
 *
 * Wu, Rao, Iyengar, "Measurement-based transport for message delay
 * minimisation": r_i / EBW_i + d_i = T for all i, sum r_i = r; for two paths
 *     r_1 = EBW_1 r / (EBW_1 + EBW_2) + EBW_1 EBW_2 (d_2 - d_1) / (EBW_1 + EBW_2).
 * Those equations alone give negative parts (in about a quarter of random
 * cases); the paper drops such paths and solves again. We open the paths in the
 * order of their delays, each only while its delay is below the common finish
 * of those before it: the optimum in one pass, since T(paths) falls with each
 * path opened so and would rise with any other. */
#ifndef MODEL_DIVIDE_H
#define MODEL_DIVIDE_H

#include <stddef.h>
#include <stdint.h>

#include <ptcp/err.h>

struct divide_part {
	double rate_bps, delay_s; /* given; a rate of 0 gets nothing */
	uint64_t bytes;           /* result */
};

/* Sets every `bytes` so that they sum to size_bytes exactly (largest remainder),
 * and *finish_s to the exact, continuous finish; with size 0 to the least delay.
 * A path that would get less than a byte may get none: leave it out. `order`
 * has `count` elements of scratch. PTCP_EINFEASIBLE when no path has a rate,
 * PTCP_EUSAGE when a number is negative or not finite. */
int divide_bytes(struct divide_part *parts, size_t *order, size_t count, uint64_t size_bytes,
    double *finish_s, struct ptcp_err *e);

/* Where to spend measurements: Wu, Rao, Iyengar measure noisy links more often,
 * in proportion to the standard deviation of each link's estimate, which for a
 * fixed total makes the sum of the estimates' variances least (Neyman 1934). */

/* Divides `total` measurements among `links`: first `least` to each, as far as
 * they go (in the array's order); the rest in proportion to sd[], rounded by
 * largest remainder. counts[] sums to exactly `total` (0 links: nothing). An
 * sd that is not a finite number, or negative, is unknown and counts as the
 * largest known one. When all are 0 or unknown, all get alike. `scratch` has
 * `links` elements. */
void measurement_budget_allocate(unsigned *counts, const double *sd, double *scratch, size_t links,
    unsigned total, unsigned least);

#endif
