/* Statistics of measured rates: what `measure` reports of its rounds (Lee, Abe,
 * Hirotsu, Umemura, "Recent Empirical Evaluation of Aggregate Throughput using
 * Parallel Transfers") and what the other modules need. Values may be in any
 * one unit; all must be finite. */
#ifndef MODEL_STATS_H
#define MODEL_STATS_H

#include <stddef.h>

struct stats {
	size_t count;
	double mean, min, max; /* 0 when there is no value */
	double sd;             /* with count - 1; 0 below two values */
};

void stats_of(struct stats *out, const double *x, size_t count);

/* Ascending order, in place. */
void stats_sort(double *x, size_t count);

/* Jain's fairness index (sum x)^2 / (count sum x^2), in [1/count, 1] for
 * values that are not negative; 1 when there is no value or all are 0. */
double stats_jain(const double *x, size_t count);

struct clusters {
	int count;              /* 1 or 2: the verdict; the rest describes the best split */
	size_t slow;            /* how many values are in the lower group */
	double slow_mean, fast_mean;
	double explained_ratio; /* 1 - variance within the groups / variance */
	double separation;      /* difference of means in within-group deviations
				   (pooled, count - 2); INFINITY when those are 0 */
};

/* Whether streams fall into a slow and a fast group. The split is the exact
 * 2-means. It counts as two groups only with STATS_CLUSTER_MIN values or more,
 * each group at least 15 % of them, explained_ratio >= 0.82 + 0.8 / count,
 * separation >= 4.5 and means at least 1.25 apart in ratio. Sorts `x` in place. */
void stats_clusters(struct clusters *out, double *x, size_t count);

#define STATS_CLUSTER_MIN 10

/* The smallest level whose mean no larger level exceeds by 5 % or more; 0 when
 * that is the largest, i.e. the aggregate was still rising. `streams` ascending. */
unsigned stats_saturates_at(const unsigned *streams, const double *mean_bps, size_t levels);

#endif
