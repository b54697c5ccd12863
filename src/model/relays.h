/* Which of the candidate paths a source with a demand uses, and at what rate each: choose.h and ratectl.h joined, driven
 * by what is seen to arrive.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via TCP". For a few
 * intervals the paths share the demand as they come (the maxmin start); then the controller has them. A source that
 * stays unsatisfied reselects. Where we differ:
 *   - a path that is down makes room at once, with a demand or without;
 *   - 1-reselection takes only candidates that are not known to bring less than what they would replace: those known in
 *     proportion to what they brought, others with the mean of these; with none left everything stays;
 *   - no path's rate falls below 1 % of the demand, so that what it holds arrives. */
#ifndef MODEL_RELAYS_H
#define MODEL_RELAYS_H

#include <stdbool.h>

#include "model/choose.h"
#include "model/ratectl.h"

#define RELAYS_START 2      /* intervals of free sharing */
#define RELAYS_PATIENCE 10  /* intervals below the demand, after which it counts as unsatisfied */
#define RELAYS_MET_RATIO 0.95

struct relays {
	struct ratectl_opts opts;
	enum choose_again how;
	struct rng rng;
	size_t candidates, places;
	size_t place[RATECTL_PATHS_MAX];      /* the candidate that each holds */
	double rate_bps[RATECTL_PATHS_MAX];   /* of each place, to keep to; 0: they share freely */
	double known_bps[RATECTL_PATHS_MAX];  /* what a candidate has brought; negative: not known */
	double demand_bps;
	unsigned started;                     /* intervals of free sharing */
	double start_bps[RATECTL_PATHS_MAX];  /* their sum */
	unsigned unmet;                       /* intervals in a row */
	struct ratectl control;               /* once started */
	const char *reason;                   /* of the last replacement; static */
};

/* MIMD, as AIAD's steps of 1 % take minutes where an interval is a second, and a delta of 5 %, as blocks make what is
 * seen uneven; 1-reselection. Places hold a different candidate each, 1 <= places <= candidates <=
 * RATECTL_PATHS_MAX. */
void relays_init(struct relays *r, size_t candidates, const size_t *place, size_t places, uint64_t seed);

struct relays_sample {
	double demand_bps;                    /* 0: none, there is nothing to control */
	double seen_bps[RATECTL_PATHS_MAX];   /* what arrived, by place */
	bool down[RATECTL_PATHS_MAX];         /* nothing could be had through it */
	bool starved;                         /* there was too little to send: what was seen tells nothing */
};
/* One interval is over. Changes rate_bps and place; the places that hold another candidate now, as bits. */
unsigned relays_step(struct relays *r, const struct relays_sample *x);

#endif
