/* Statistics of measured rates: arrays, rounds of `ptcp measure`, moving averages, change detection. Values
 * may have any one unit; all must be finite. */
#ifndef MODEL_STATS_H
#define MODEL_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "model/parameters.h"

struct stats {
	size_t count;
	double mean, min, max; /* 0 without values */
	double sd;             /* standard deviation with the divisor count - 1; 0 below two values */
};

void stats_of(struct stats *out, const double *x, size_t count);

/* Ascending, in place. */
void stats_sort(double *x, size_t count);

/* Jain's fairness index (sum x)^2 / (count sum x^2), in [1/count, 1] for values of at least 0; 1 without
 * values or if all are 0. */
double stats_jain(const double *x, size_t count);

struct clusters {
	int count;              /* 1 or 2: the verdict; the other fields describe the best split */
	size_t slow;            /* size of the lower group */
	double slow_mean, fast_mean;
	double explained_ratio; /* 1 - variance within the groups / variance */
	/* difference of means in pooled deviations (count - 2); INFINITY when those are 0 */
	double separation;
};

/* Whether streams fall into a slow and a fast group. The split is the exact 2-means. Two groups need at
 * least STATS_CLUSTER_MIN values, each group at least 15 % of them, explained_ratio >= 0.82 + 0.8 / count,
 * separation >= 4.5 and means at least 1.25 apart in ratio. Sorts `x` in place. */
void stats_clusters(struct clusters *out, double *x, size_t count);

#define STATS_CLUSTER_MIN 10

/* The smallest level whose mean no larger level exceeds by 5 % or more; 0 for the largest level, i.e. the
 * aggregate was still rising. `streams` ascending. */
unsigned stats_saturates_at(const unsigned *streams, const double *mean_bps, size_t levels);

/* ---- Rounds of one stream count ----
 *
 * `ptcp measure` starts n streams together, each with the same number of bytes, in repeated rounds (Chunghan
 * Lee, Abe, Hirotsu, Umemura, "Recent Empirical Evaluation of Aggregate Throughput using Parallel Transfers").
 * Memory is independent of the number of rounds. */

#define LEVEL_STREAMS_MAX 128
#define LEVELS_MAX 64

/* One stream of a round; times in seconds from a common origin. */
struct level_run {
	double start_s, end_s;
	uint64_t bytes;
};

/* Moments of values that are not stored. Zero-initialize. */
struct moments {
	unsigned n;
	double mean, min, max;
	double squares; /* sum of squared deviations from the mean */
};

/* Standard deviation (n - 1); 0 below two values. */
double moments_sd(const struct moments *m);

/* All rounds with one stream count; zero-initialize all but `streams` (1 to LEVEL_STREAMS_MAX). */
struct level {
	unsigned streams;
	unsigned rounds, failed;   /* all rounds, and failed rounds */
	unsigned split;            /* rounds with a slow and a fast group of streams */
	struct moments round_bps;  /* rates of successful rounds */
	struct moments stream_bps; /* rates of all their streams */
	double fairness;           /* mean of Jain's index over rounds */
};

/* Adds a successful round. Writes each stream's rate (its bytes over its own time) into stream_bps and
 * returns the round's rate: all bytes over last end minus first start. Every run must have a positive
 * duration. */
double level_add(struct level *l, const struct level_run *run, double *stream_bps);

/* Adds a round with a missing or short stream. */
void level_add_failed(struct level *l);

/* 2 if the streams fell into two groups in most rounds (see stats_clusters()), else 1. */
int level_clusters(const struct level *l);

/* stats_saturates_at() over the levels with a successful round, at most LEVELS_MAX, ascending by
 * streams. */
unsigned levels_saturate_at(const struct level *l, size_t levels);

/* ---- Exponentially weighted moving average ----
 *
 * Each value enters with `weight`, and the weight of older values decays. The error is the error of a
 * weighted mean of independent values. */

/* Zero-initialize. */
struct ewma {
	unsigned n;       /* values so far */
	double mean;
	double variance;  /* weighted, about the mean */
	double squares;   /* sum of squared weights; the weights sum to 1 */
};

/* `weight` in (0, 1]; the first 1 / weight values have equal weights. */
void ewma_add(struct ewma *s, double value, double weight);
/* Standard deviation of the values; NAN below two. */
double ewma_sd(const struct ewma *s);
/* Standard error of the mean; NAN below two values. */
double ewma_error(const struct ewma *s);

/* ---- Change detection ----
 *
 * CUSUM: detects a lasting deviation of throughput from its prediction, by a two-sided cumulative sum of
 * ln(measured / predicted) (Page, "Continuous Inspection Schemes", 1954), over time instead of samples. */

struct cusum {
	double slack, limit_s;  /* ln(1 + drift_ratio), hold_s x slack */
	double above, below;
};

/* Deviations up to a factor of (1 + drift_ratio) never count; a lasting deviation of its square is reported
 * after hold_s, larger ones sooner. Both positive. */
void cusum_init(struct cusum *w, double drift_ratio, double hold_s);

/* Adds `measured_bps` over interval_s, with predicted_bps (positive) expected. One interval counts as a
 * factor of at most CUSUM_FACTOR_MAX, to tolerate a single stall. Returns 1 for a lasting rate above the
 * prediction, -1 below, else 0; a report resets the sums. */
int cusum_add(struct cusum *w, double measured_bps, double predicted_bps, double interval_s);

#endif
