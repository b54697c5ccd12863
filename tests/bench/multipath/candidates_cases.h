/* Cases of the selection among candidates, each with random draws (candidates.h). */
#ifndef BENCH_MULTIPATH_CANDIDATES_CASES_H
#define BENCH_MULTIPATH_CANDIDATES_CASES_H

#include "bench/multipath/candidates.h"

#define CANDIDATES_AFTER_S 20    /* the mark counts from here, or from so long after a change, */
#define CANDIDATES_MEASURED_S 10 /* on the mean of this time */
#define CANDIDATES_SHORT_S 10    /* length of a short transfer */
#define CANDIDATES_CASES 14

struct candidates_case {
	const char *name;
	size_t n_min, n_max, k_min, k_max; /* numbers of candidates and of paths in use */
	void (*draw)(struct candidates *w, struct rng *r);
	double mark; /* min percentage of draws with 90 % of the best paths */
};

extern const struct candidates_case candidates_cases[CANDIDATES_CASES];

/* Means over the draws. */
struct candidates_figures {
	double percent;     /* of the throughput of the best paths */
	double good;        /* percentage of draws with at least 90 % */
	double replaced;    /* paths a minute, after that */
	double short_s;     /* duration of transfers that would take CANDIDATES_SHORT_S with the first choice */
};

/* seconds: length of the runs after CANDIDATES_AFTER_S, at least CANDIDATES_MEASURED_S. */
void candidates_measure(const struct candidates_case *u, unsigned draws, unsigned seconds, struct rng *r,
    struct candidates_figures *out);

#endif
