/* Which of the candidate paths a source with a demand uses, and at what rate each: reselect.h and ratectl.h joined, driven
 * by what is seen to arrive.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via TCP". For a few
 * intervals the paths share the demand as they come (the maxmin start); then the controller has them. A source that
 * stays unsatisfied reselects. Where we differ:
 *   - a path that is down makes room at once, with a demand or without;
 *   - 1-reselection takes only candidates that are not known to bring less than what they would replace: those known in
 *     proportion to what they brought, others with the mean of these; with none left everything stays;
 *   - k-reselection follows where 1-reselection rests unsatisfied, uniform, as what candidates have brought was in other
 *     company; what has brought most is gone back to, and rests between become longer, so that a demand that nobody can
 *     meet costs little;
 *   - no path's rate falls below 1 % of the demand, so that what it holds arrives. */
#ifndef MODEL_MULTIPATH_H
#define MODEL_MULTIPATH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/ratectl.h"
#include "model/rng.h"

/* Which k of the candidate relays a source uses, and which it gives up.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath
 * data transfer via TCP": k paths uniformly at random, or in proportion to their
 * available bandwidth; a source that stays unsatisfied replaces its worst path
 * (1-reselection) or all of them (k-reselection). Where we differ: what the paper
 * leaves open, 1-reselection never takes back the path it gives up, and with no
 * candidate left nothing changes. */

enum reselect_paths { RESELECT_WORST, RESELECT_ALL };

/* k different indices of 0..candidates-1, drawn one after the other with chances
 * in proportion to weight[] (not negative; NULL: all alike; those of weight 0
 * last). k <= candidates. */
void choose_paths(size_t *chosen, size_t k, const double *weight, size_t candidates, struct rng *r);

/* Reselects in place. With RESELECT_WORST the path with the least of seen_bps[0..k-1]
 * makes room. Returns how many places of chosen[] hold another candidate now. */
size_t reselect_paths(size_t *chosen, size_t k, enum reselect_paths how, const double *seen_bps,
    const double *weight, size_t candidates, struct rng *r);

#define MULTIPATH_START 2      /* intervals of free sharing */
#define MULTIPATH_PATIENCE 10  /* intervals below the demand, after which it counts as unsatisfied */
#define MULTIPATH_MET_RATIO 0.95
/* Of so many intervals below the demand, with none of the others better alone, before all are drawn anew; twice as many
 * each time, up to the most. */
#define MULTIPATH_REST 3
#define MULTIPATH_REST_MAX 32

struct multipath {
	struct ratectl_opts opts;
	struct rng rng;
	size_t candidates, places;
	size_t place[RATECTL_PATHS_MAX];      /* the candidate that each holds */
	double rate_bps[RATECTL_PATHS_MAX];   /* of each place, to keep to; 0: they share freely */
	double known_bps[RATECTL_PATHS_MAX];  /* what a candidate has brought; negative: not known */
	double demand_bps;
	unsigned started;                     /* intervals of free sharing */
	double start_bps[RATECTL_PATHS_MAX];  /* their sum */
	unsigned unmet;                       /* intervals in a row */
	unsigned rested, rest;                /* so many times MULTIPATH_PATIENCE of them at rest, of so many */
	size_t best[RATECTL_PATHS_MAX];       /* the places that brought most at rest, */
	double best_bps;                      /* and how much */
	struct ratectl control;               /* once started */
	const char *reason;                   /* of the last replacement; static */
};

/* MIMD, as AIAD's steps of 1 % take minutes where an interval is a second, and a delta of 5 %, as blocks make what is
 * seen uneven. Places hold a different candidate each, 1 <= places <= candidates <=
 * RATECTL_PATHS_MAX. */
void multipath_init(struct multipath *r, size_t candidates, const size_t *place, size_t places, uint64_t seed);

struct multipath_sample {
	double demand_bps;                    /* 0: none, there is nothing to control */
	double seen_bps[RATECTL_PATHS_MAX];   /* what arrived, by place */
	bool down[RATECTL_PATHS_MAX];         /* nothing could be had through it */
	bool starved;                         /* there was too little to send: what was seen tells nothing */
};
/* One interval is over. Changes rate_bps and place; the places that hold another candidate now, as bits. */
unsigned multipath_step(struct multipath *r, const struct multipath_sample *x);

#endif
