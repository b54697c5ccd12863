/* Statistics of measured rates: what `measure` reports of its rounds (Lee, Abe,
 * Hirotsu, Umemura, "Recent Empirical Evaluation of Aggregate Throughput using
 * Parallel Transfers") and what the other modules need. Values may be in any
 * one unit; all must be finite. */
#ifndef MODEL_STATS_H
#define MODEL_STATS_H

#include <stddef.h>
#include <stdint.h>

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

/* What `measure` keeps of its rounds: n streams started together, each with so many
 * bytes, over and over (Lee, Abe, Hirotsu, Umemura, "Recent Empirical Evaluation of
 * Aggregate Throughput using Parallel Transfers"). Memory does not grow with rounds. */

#define LEVEL_STREAMS_MAX 128
#define LEVELS_MAX 64

/* One stream of a round; times in seconds from any one moment. */
struct level_run {
	double start_s, end_s;
	uint64_t bytes;
};

/* All rounds with one number of streams; begin with all but `streams`
 * (1 to LEVEL_STREAMS_MAX) zero. */
struct level {
	unsigned streams;
	unsigned rounds, failed;  /* all, and those set aside */
	unsigned split;           /* rounds whose streams fell into a slow and a fast group */
	double mean_bps, min_bps, max_bps; /* of the rounds that did not fail */
	double squares;           /* of differences from the mean, summed */
	double per_stream_mean_bps;
	double fairness;          /* Jain's index, averaged over rounds */
};

/* A round that went well. Writes each stream's rate (its bytes over its own time) into
 * stream_bps and returns the round's: all bytes over last end minus first start. Every run
 * must have taken time. */
double level_add(struct level *l, const struct level_run *run, double *stream_bps);

/* A round with a stream that is missing or short. */
void level_add_failed(struct level *l);

/* Standard deviation with n - 1 of the rounds' rates; 0 below two. */
double level_sd_bps(const struct level *l);

/* 2 if in most rounds the streams fell into two groups (see stats_clusters()), else 1. */
int level_clusters(const struct level *l);

/* stats_saturates_at() over the levels that have a round, at most LEVELS_MAX,
 * ascending by streams. */
unsigned levels_saturate_at(const struct level *l, size_t levels);

/* An estimate that follows what is measured again and again: each value counts `weight` times as much as all before
 * it together count less, so that old ones fade. Its error is that of a weighted mean of values that are independent. */

/* Begin with all zero. */
struct ewma {
	unsigned n;       /* values so far */
	double mean;
	double variance;  /* weighted, about the mean */
	double squares;   /* sum of the squares of the weights, which sum to 1 */
};

/* `weight` in (0, 1]; until there are 1 / weight values all count alike. */
void ewma_add(struct ewma *s, double value, double weight);
/* One standard error of the mean; NAN below two values. */
double ewma_error(const struct ewma *s);

/* Whether what n streams bring has left the prediction for long enough to fit
 * again: a cumulative sum of ln(measured / predicted) either way (Page,
 * "Continuous Inspection Schemes", 1954), over time instead of samples. */

struct cusum {
	double slack, limit_s;  /* ln(1 + drift_ratio), hold_s x slack */
	double above, below;
};

/* A deviation of up to a factor of (1 + drift_ratio) never counts; a lasting one of
 * its square is reported after hold_s, larger ones sooner. Both positive. */
void cusum_init(struct cusum *w, double drift_ratio, double hold_s);

/* `measured_bps` over interval_s where predicted_bps (positive) was expected. One
 * interval counts as a factor of CUSUM_FACTOR_MAX at most, so that a single stall is
 * no change. Returns 1 when the path brings more than predicted for long enough, -1
 * when less, else 0; after a report it begins anew. */
int cusum_add(struct cusum *w, double measured_bps, double predicted_bps, double interval_s);

#define CUSUM_FACTOR_MAX 4.0

#endif
