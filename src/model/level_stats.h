/* What `measure` keeps of its rounds: n streams started together, each with so many
 * bytes, over and over (Lee, Abe, Hirotsu, Umemura, "Recent Empirical Evaluation of
 * Aggregate Throughput using Parallel Transfers"). Memory does not grow with rounds. */
#ifndef MODEL_LEVEL_STATS_H
#define MODEL_LEVEL_STATS_H

#include <stddef.h>
#include <stdint.h>

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

#endif
