/* Division of a total: of a message among paths, of measurements among links, of capacity among flows.
 *
 * Message: all paths finish together. Wu, Rao, Iyengar, "Measurement-based transport for message delay
 * minimisation": r_i / EBW_i + d_i = T for all i, sum r_i = r; for two paths
 *     r_1 = EBW_1 r / (EBW_1 + EBW_2) + EBW_1 EBW_2 (d_2 - d_1) / (EBW_1 + EBW_2).
 * The equations alone give negative parts in about a quarter of random cases; the paper drops such paths
 * and solves again. We add paths in the order of their delays, each only if its delay is below the common
 * finish of the previous paths. One pass finds the optimum: T falls with each path added by this rule, and
 * would rise with any further path. */
#ifndef MODEL_DIVIDE_H
#define MODEL_DIVIDE_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct divide_part {
	double rate_bps, delay_s; /* input; a rate of 0 gets no bytes */
	uint64_t bytes;           /* result */
};

/* Sets every `bytes`, which sum to size_bytes exactly (largest remainder), and *finish_s to the exact,
 * continuous finish; with size 0 to the smallest delay. A path entitled to less than a byte may get 0.
 * `order` is scratch for `count` elements. PTCP_EINFEASIBLE without any path with a rate, PTCP_EUSAGE for a
 * number negative or not finite. */
int divide_bytes(struct divide_part *parts, size_t *order, size_t count, uint64_t size_bytes,
    double *finish_s, struct ptcp_err *e);

/* Measurements: Wu, Rao, Iyengar measure noisy links more often, in proportion to the standard deviation of
 * each link's estimate, which for a fixed total minimizes the sum of the estimates' variances (Neyman
 * 1934). */

/* Divides `total` measurements among `links`: first `min` to each in the array's order while the total
 * lasts; the rest in proportion to sd[], rounded by largest remainder. counts[] sums to `total` (without
 * links: no effect). An sd negative or not finite is unknown and counts as the largest known. If all are 0
 * or unknown, all links get the same. `scratch` has `links` elements. */
void divide_measurements(unsigned *counts, const double *sd, double *scratch, size_t links,
    unsigned total, unsigned least);

/* Capacity: weighted max-min fairness by progressive filling. */
struct divide_flow {
	const size_t *limit; /* crossed limits; twice in the list: crossed twice */
	size_t n_limits;
	double weight;       /* at least 0; a flow of weight 0 gets no rate */
	double rate;         /* result, in the unit of the limits */
	bool grows;          /* scratch */
};

/* Sets each rate to weight x level. All levels rise together from `from`, each until a limit of its flow is
 * used up, at most to `to`. Limits may be INFINITY; flows over a limit exceeded at `from` stay there.
 * `rest` and `load` are scratch, n_limits elements each. */
void divide_fairly(struct divide_flow *f, size_t n, const double *limit, size_t n_limits, double from, double to,
    double *rest, double *load);

#endif
