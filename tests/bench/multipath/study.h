/* The published study of rate control over several paths: sources that know
 * nothing of each other send through relays they share. Wang, Wei, Kurose,
 * Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via
 * TCP". Rates are in units of the mean demand. */
#ifndef BENCH_MULTIPATH_STUDY_H
#define BENCH_MULTIPATH_STUDY_H

#include <stdbool.h>
#include <stddef.h>

#include "model/multipath.h"
#include "model/ratectl.h"
#include "model/rng.h"

#define STUDY_MAX 128 /* sources, relays */

/* How a relay that is asked for more than it has divides it. Max-min fair, as TCP
 * flows at one bottleneck: who asks for less than a fair share does not feel that
 * the relay is full. In proportion to what is asked: everybody feels it, which is
 * what the paper's theorem 1 needs. */
enum study_sharing { STUDY_MAXMIN, STUDY_PROPORTIONAL };

struct study {
	enum study_sharing sharing;
	size_t sources, relays, k; /* k paths a source, one relay each */
	double capacity[STUDY_MAX], demand[STUDY_MAX];
	size_t relay[STUDY_MAX][RATECTL_PATHS_MAX];
	double seen[STUDY_MAX][RATECTL_PATHS_MAX]; /* what arrived in the last interval */
	struct ratectl control[STUDY_MAX];
};

/* 100 sources and relays; relay j has 1 / (j+1)^skew of f x total demand.
 * `spread` 0: equal demands; else uniform in 1 -+ spread. Shared max-min fairly; paths are not
 * chosen. */
void study_init(struct study *s, size_t k, double skew, double f, double spread, struct rng *r);

/* Every source takes k relays: uniformly, or in proportion to the capacities,
 * which each source misjudges by up to +-error. */
void study_choose(struct study *s, bool proportional, double error, struct rng *r);

/* All controllers anew, from the maxmin start: all paths rise together until
 * their relay is full or their source has its demand. */
void study_start(struct study *s, const struct ratectl_opts *o);

/* One interval of every source: returns what arrives in all, in
 * seen[][] by path. */
double study_interval(struct study *s, struct rng *r);

/* The most that can arrive, by linear programme. */
double study_optimum(const struct study *s);

struct study_outcome {
	double optimum, reached;  /* mean of the last intervals */
	size_t converged;         /* intervals until within 2 % of `reached` for good */
};

#define STUDY_INTERVALS 400
#define STUDY_LAST 100

void study_run(struct study *s, const struct ratectl_opts *o, struct rng *r,
    struct study_outcome *out);

/* Reselection: run, let every source that is short of its demand by more than
 * 5 % reselect, and again, until none is. Returns how many times sources
 * reselected, or `most` when some were still short then. */
unsigned study_reselect(struct study *s, const struct ratectl_opts *o, enum reselect_paths how,
    bool proportional, unsigned most, struct rng *r);

#define STUDY_RESELECT_INTERVALS 60
#define STUDY_RESELECT_LAST 20

#endif
