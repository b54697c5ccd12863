/* Choice of paths for a source with a demand, and a rate for each path: reselection and ratectl.h combined,
 * driven by observed throughput.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via TCP".
 * For a few intervals the paths share the demand freely (the paper's maxmin start); then the rate
 * controller takes over. An unsatisfied source reselects. Differences:
 *   - a dead path is replaced at once, with or without a demand;
 *   - 1-reselection excludes candidates known to be slower than the path to replace; known candidates have chances in
 *     proportion to their throughput, unknown ones their mean; without a candidate all paths stay;
 *   - k-reselection follows an unsatisfied 1-reselection, with uniform chances, because known throughput was observed in
 *     other combinations; the best combination is restored, and the pauses grow, to limit the cost of a demand beyond
 *     all candidates;
 *   - each path's rate is at least 1 % of the demand, to deliver data in transit. */
#ifndef MODEL_MULTIPATH_H
#define MODEL_MULTIPATH_H

#include <stdbool.h>
#include <stddef.h>

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

#define MULTIPATH_START 2      /* intervals of free sharing */
#define MULTIPATH_PATIENCE 10  /* intervals below the demand until the source counts as unsatisfied */
#define MULTIPATH_MET_RATIO 0.95
/* Number of unsatisfied periods without a better single candidate until all paths are redrawn; doubles each
 * time, up to the maximum. */
#define MULTIPATH_REST 3
#define MULTIPATH_REST_MAX 32

struct multipath {
	struct ratectl_opts opts;
	struct rng rng;
	size_t candidates, places;
	size_t place[RATECTL_PATHS_MAX];      /* candidate in each place (path in use) */
	double rate_bps[RATECTL_PATHS_MAX];   /* rate limit of each place; 0: unlimited */
	double known_bps[RATECTL_PATHS_MAX];  /* observed throughput of a candidate; negative: unknown */
	double demand_bps;
	unsigned started;                     /* intervals of free sharing */
	double start_bps[RATECTL_PATHS_MAX];  /* sum over the intervals of free sharing */
	unsigned unmet;                       /* consecutive intervals below the demand */
	unsigned rested, rest; /* unsatisfied periods since the last redraw, and needed for the next */
	size_t best[RATECTL_PATHS_MAX];       /* places with the highest total throughput, and */
	double best_bps;                      /* the total */
	struct ratectl control;               /* valid after the start */
	const char *reason;                   /* of the last replacement; static */
};

/* Uses MIMD, since AIAD's steps of 1 % take minutes with intervals of a second, and a delta of 5 %, since
 * whole blocks make observed rates uneven. Places hold different candidates, 1 <= places <= candidates <=
 * RATECTL_PATHS_MAX. */
void multipath_init(struct multipath *r, size_t candidates, const size_t *place, size_t places, uint64_t seed);

struct multipath_sample {
	double demand_bps;                    /* 0: no demand, no rate control */
	double observed_bps[RATECTL_PATHS_MAX];   /* arrived, by place */
	bool down[RATECTL_PATHS_MAX];         /* dead path */
	bool starved;                         /* application-limited: the observed rates have no meaning */
};
/* Ends one interval. Updates rate_bps and place; returns the changed places as bits. */
unsigned multipath_step(struct multipath *r, const struct multipath_sample *x);

#endif
