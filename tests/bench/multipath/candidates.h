/* A simulated transfer over K of n candidate paths, driven by engine/path_select: connections take round trips, TCP
 * starts slowly, throughput is noisy, whole blocks are acknowledged, and a replaced path loses its incomplete
 * blocks. */
#ifndef BENCH_MULTIPATH_CANDIDATES_H
#define BENCH_MULTIPATH_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/ratectl.h"
#include "model/rng.h"

#define CANDIDATES_S_MAX 600 /* of a run */

struct candidates {
	size_t n, places;
	double bps[RATECTL_PATHS_MAX];      /* negative: no connection succeeds */
	double rtt_s[RATECTL_PATHS_MAX];
	int group[RATECTL_PATHS_MAX];       /* of candidates with a shared bottleneck; -1: none */
	double group_bps[RATECTL_PATHS_MAX];
	double access_bps;                  /* of the local host */
	double demand_bps;                  /* --rate; 0: none */
	double noise;                       /* throughput varies by +- this ratio, each 200 ms */
	double known[RATECTL_PATHS_MAX];    /* bandwidths known in advance; all 0: none */
	unsigned streams;
	double left_bits;                   /* size of the data; 0: endless. A run goes on after the end */
	bool receives;                      /* the local host receives the data */
	/* At this time the bandwidths become those of `later`; 0: never. */
	double change_s;
	double later_bps[RATECTL_PATHS_MAX];
};

/* n independent candidates of 5 to 100 Mbit/s and 20 to 200 ms. */
void candidates_draw(struct candidates *w, size_t n, size_t places, struct rng *r);

/* The highest throughput of any `places` candidates, at a time. */
double candidates_best_bps(const struct candidates *w, double at_s);

struct candidates_run {
	unsigned seconds;
	double done_s;                      /* when left_bits had arrived; INFINITY: not yet */
	double bps[CANDIDATES_S_MAX];       /* goodput by second */
	unsigned replaced[CANDIDATES_S_MAX]; /* paths replaced, by second */
};

/* Selects, or (selects false) keeps the first choice. */
void candidates_run(const struct candidates *w, bool selects, unsigned seconds, struct rng *r,
    struct candidates_run *out);

/* Means over seconds `from` to `to` - 1. */
double candidates_mean_bps(const struct candidates_run *x, unsigned from, unsigned to);
unsigned candidates_replaced(const struct candidates_run *x, unsigned from, unsigned to);

#endif
