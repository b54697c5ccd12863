/* Choice of paths for a source, and with a demand a rate for each path: trials, reselection and ratectl.h combined,
 * driven by observed throughput.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via TCP".
 * The first paths may be drawn in proportion to bandwidths known in advance. For a few intervals the paths share the
 * demand freely (the paper's maxmin start); then the rate controller takes over. An unsatisfied source reselects.
 * Differences:
 *   - a source without a demand is never satisfied, and its paths have no rates;
 *   - before the first reselection each candidate is tried, beside the fastest so far (1-reselection by turns, or
 *     of more paths for many candidates): chance would need many reselections where bandwidths differ much. The
 *     fastest stay; the highest throughput counts, since candidates may share bottlenecks. A drop of a path repeats
 *     the trials, with growing pauses while these confirm the paths;
 *   - a dead path is replaced at once, with or without a demand;
 *   - 1-reselection takes the fastest candidate known, if much faster than the slowest path; with growing
 *     pauses, so that equal paths stay;
 *   - k-reselection follows an unsatisfied 1-reselection after a pause, with uniform chances, because known
 *     throughput was observed in other combinations; the best combination is restored, and the pauses grow, to limit
 *     the cost of a demand beyond all candidates;
 *   - each path's rate is at least 1 % of the demand, to deliver data in transit. */
#ifndef MODEL_MULTIPATH_H
#define MODEL_MULTIPATH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/parameters.h"
#include "model/ratectl.h"
#include "model/rng.h"

/* ---- Reselection ----
 *
 * Draws k of the candidate relays for a source, and replaces them.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng: k paths uniformly at random, or in proportion to their
 * available bandwidth; an unsatisfied source replaces its worst path (1-reselection) or all paths
 * (k-reselection). The paper leaves two cases open: here 1-reselection never draws the replaced path again,
 * and without a candidate all paths stay. */

enum reselect_paths { RESELECT_WORST, RESELECT_ALL };

/* Draws k different indices of 0..candidates-1 one after the other, with chances in proportion to weight[]
 * (at least 0; NULL: equal; candidates of weight 0 last). k <= candidates. */
void choose_paths(size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r);

/* Reselects in place. RESELECT_WORST replaces the path with the smallest observed_bps[0..k-1]. Returns the
 * number of changed elements of chosen[]. */
size_t reselect_paths(size_t *chosen, size_t k, enum reselect_paths how, const double *observed_bps,
    const double *weight, size_t candidates, struct rng *r);

struct multipath {
	struct ratectl_opts opts;
	struct rng rng;
	size_t candidates, places;
	size_t place[RATECTL_PATHS_MAX];      /* candidate in each place (path in use) */
	double rate_bps[RATECTL_PATHS_MAX];   /* rate limit of each place; 0: unlimited */
	double known_bps[RATECTL_PATHS_MAX];  /* observed throughput of a candidate; negative: not tried */
	double peak_bps[RATECTL_PATHS_MAX];   /* highest in the trials: in the best company */
	double prior_bps[RATECTL_PATHS_MAX];  /* bandwidth known in advance; 0: unknown */
	unsigned measured[RATECTL_PATHS_MAX]; /* intervals with a throughput, by place */
	double last_bps[RATECTL_PATHS_MAX];   /* throughput of each place in the last interval */
	bool growing[RATECTL_PATHS_MAX];      /* new path that still accelerates */
	double demand_bps;
	bool trying;                          /* trials are not over */
	size_t at_once;                       /* number of paths on trial at a time */
	bool tried_before;                    /* with the paths of before: */
	size_t tried_from[RATECTL_PATHS_MAX];
	unsigned since_trials, pause;         /* intervals */
	unsigned started;                     /* intervals of free sharing */
	double start_bps[RATECTL_PATHS_MAX];  /* mean of the intervals of free sharing */
	unsigned unmet;                       /* consecutive intervals below the demand */
	unsigned settled, wait;               /* intervals with these paths, and needed before a replacement */
	unsigned rested, rest;                /* unsatisfied intervals since the last redraw, and needed for the next */
	double usual_bps[RATECTL_PATHS_MAX];  /* long-term throughput of the settled paths, by place */
	unsigned low;                         /* consecutive intervals with a path far below that */
	double level_bps;                     /* total throughput of these paths, moving average */
	size_t best[RATECTL_PATHS_MAX];       /* paths with the highest total throughput, and */
	double best_bps;                      /* the total; 0: unknown */
	struct ratectl control;               /* valid after the start */
	const char *reason;                   /* reason of the last replacement; static */
};

/* Uses MIMD, since AIAD's steps of 1 % take minutes with intervals of a second, and a delta of 5 %, since
 * whole blocks make observed rates uneven. Places hold different candidates, 1 <= places <= candidates <=
 * RATECTL_PATHS_MAX. prior_bps: by candidate; NULL: unknown. */
void multipath_init(struct multipath *r, size_t candidates, const size_t *place, size_t places,
    const double *prior_bps, uint64_t seed);

struct multipath_sample {
	double demand_bps;                    /* 0: no demand, no rate control */
	double observed_bps[RATECTL_PATHS_MAX];   /* arrived, by place */
	bool settling[RATECTL_PATHS_MAX];     /* the path is too new: observed_bps has no meaning */
	bool down[RATECTL_PATHS_MAX];         /* dead path */
	bool starved;                         /* application-limited: the observed rates have no meaning */
	bool ending;                          /* too little data is left for a replacement to pay off */
};
/* Ends one interval. Updates rate_bps and place; returns the changed places as bits. */
unsigned multipath_step(struct multipath *r, const struct multipath_sample *x);
/* Throughput that a new path must exceed to remain in use; 0: unknown. */
double multipath_rival_bps(const struct multipath *r);

#endif
