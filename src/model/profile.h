/* What a transfer has learnt of its path: what each number of streams brought, averaged over the runs that it had,
 * with an error that shrinks with them. */
#ifndef MODEL_PROFILE_H
#define MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/probe.h"

#define PROFILE_MAX 8
/* A short run, whose scatter probe_error_ratio() knows, lasts so long; a level counts as so many at the most. */
#define PROFILE_RUN_S 5.0
#define PROFILE_RUNS_MAX 32.0

/* Begin with all zero. */
struct profile {
	struct probe probe[PROFILE_MAX];
	double runs[PROFILE_MAX]; /* short ones, that each of them is worth */
	bool roomy[PROFILE_MAX];  /* it was windows or buffers that held the streams up there */
	size_t n;
};

/* So many streams brought that in what is worth so many short runs. Where there is no room for another level, the one
 * known worst goes. */
void profile_add(struct profile *l, unsigned streams, double mean_bps, double runs, bool roomy);

/* These levels, at most PROFILE_MAX, and no others: each as it is, worth one run. */
void profile_recall(struct profile *l, const struct probe *p, size_t count);

/* The level with so many streams; n: there is none. */
size_t profile_find(const struct profile *l, unsigned streams);

/* The level with the fewest. There must be one. */
const struct probe *profile_fewest(const struct profile *l);

/* Of the levels with `from` streams or more the one known worst, where those with fewer than `now` count as known so
 * many times as well; NULL: there is none. */
const struct probe *profile_worst(const struct profile *l, unsigned from, unsigned now, double below_worth);

/* The largest level with room for more, and the least above it; NULL: none. Where each of more streams brought less it
 * is the path, or a processor, that holds them up, whatever the sockets wait for. */
const struct probe *profile_room(const struct profile *l, const struct probe **above);

#endif
