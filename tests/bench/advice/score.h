/* How good answers are, held against the truth. */
#ifndef BENCH_ADVICE_SCORE_H
#define BENCH_ADVICE_SCORE_H

#include "bench/advice/cases.h"
#include "model/advice.h"

#define SCORE_MAX 8192
#define SCORE_BROKEN_RATIO 0.05 /* a budget missed by more than that counts as broken */

struct sample {
	double x[SCORE_MAX];
	size_t n;
};

/* Of a set of answers. A case is a path, what was seen of it, and a budget. */
struct score {
	struct sample throughput;   /* |predicted / true - 1| at every number of streams measured */
	struct sample signed_error; /* the same with its sign, and for which number of streams */
	struct sample streams;
	struct sample impact;       /* |predicted - true|, where there are cross flows and n > 1 */
	struct sample impact_same;  /* of that, where both ours and theirs are Reno or CUBIC */
	struct sample share;        /* throughput of the answer over that of the best n that keeps the
				       budget, both as measured; at most 1 */
	struct sample excess;       /* true impact - budget */
	size_t cases, broken;
};

/* Adds what `fit` predicts. */
void score_curve(struct score *s, const struct path_case *c, const struct fit *fit);

/* Adds the answer `streams` to a budget. */
void score_answer(struct score *s, const struct path_case *c, unsigned streams, double budget_ratio);

/* The q-quantile; NAN if there is none. */
double sample_quantile(const struct sample *s, double q);

/* Correlation of the signed throughput error with the number of streams. */
double score_correlation(const struct score *s);

#endif
