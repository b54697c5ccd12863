/* The rows of truth.csv (see the script `truth`), gathered by path. */
#ifndef BENCH_ADVICE_CASES_H
#define BENCH_ADVICE_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/probe.h"

#define CASE_LEVELS_MAX 16  /* numbers of streams with a truth */
#define CASE_STREAMS_MOST 30
#define CASE_SIGHTS_MAX 16
#define CASE_PROBES_MAX 4
#define CASE_SERIES_MAX 256 /* intervals kept of what probes saw */
#define CASE_INTERVAL_S 0.2 /* as INTERVAL in `truth` */

/* What n streams bring after they have converged: means over the runs that the machine did
 * not disturb, of all where it disturbed all. */
struct case_truth {
	unsigned streams, runs;
	bool disturbed;
	double ours_mbps, cross_mbps;
};

/* What probes saw: levels one after the other, each as long as the others. */
struct case_sight {
	unsigned level[CASE_PROBES_MAX];
	size_t levels;
	bool joins;  /* streams of later levels joined those of earlier ones; level[] has their sums */
	double rate_mbps[CASE_SERIES_MAX]; /* of all streams, each CASE_INTERVAL_S */
	double older_mbps[CASE_SERIES_MAX]; /* of the first level's; where others join them */
	size_t n;
	struct limit_times times[CASE_PROBES_MAX]; /* of each level; zero: not recorded */
};

struct path_case {
	char name[64];       /* scenario,queue,cc,cross_cc,m */
	char cc[16], cross_cc[16];
	unsigned scenario;   /* 0: unequal */
	unsigned m;
	double alone_mbps;   /* the cross flows without us */
	struct case_truth truth[CASE_LEVELS_MAX]; /* ascending */
	size_t truths;
	struct case_sight sight[CASE_SIGHTS_MAX];
	size_t sights;
};

/* All paths of a file, allocated; prints what is wrong and returns -1. */
int cases_read(const char *file, struct path_case **out, size_t *count);

/* Whether there is truth from 1 to CASE_STREAMS_MOST. */
bool case_is_whole(const struct path_case *c);

/* Truth for any n from 1, linear between the numbers measured, as with the most above. */
void case_truth_at(const struct path_case *c, double streams, double *ours_mbps, double *cross_mbps);

/* True impact of n streams relative to one; 0 where there are no cross flows. */
double case_impact(const struct path_case *c, double streams);

/* What the best number of streams truly brings that truly keeps a budget. */
double case_best_mbps(const struct path_case *c, double budget_ratio);

#endif
