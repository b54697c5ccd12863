/* Errors of advice and of transfers with --streams auto, compared with the truth of random paths. */
#ifndef BENCH_ADVICE_SEED_SCORE_H
#define BENCH_ADVICE_SEED_SCORE_H

#include "bench/advice/records.h"

#define SEED_SAMPLES_MAX 4096
#define SEED_BROKEN_RATIO 0.05 /* a budget counts as broken if the impact exceeds it by more */
#define SEED_WINDOW_S 60       /* the budget of a transfer holds over any period of this length */
#define SEED_AGAIN_S 20        /* time to adapt after a change of the other flows */
#define SEED_NO_GAIN 1.03      /* more streams do not help if the best number has less than this factor over one */

struct samples {
	double x[SEED_SAMPLES_MAX];
	size_t n;
};

struct share {
	unsigned yes, all;
};

struct seed_score {
	unsigned paths, answers, failed, disturbed, unknown; /* unknown: no truth of the answer */
	unsigned unanswered; /* paths without an answer, or with failed ones only */
	struct samples throughput;     /* |predicted / true - 1| */
	struct samples impact;         /* |predicted - true|, beside other flows, more than one stream */
	struct samples curve, curve_impact; /* the same errors at each measured number of streams,
	                                       not only at the answer */
	struct share curve_inside, curve_impact_inside;
	struct samples share;          /* true goodput of the answer over that of the best number in
	                                  the budget, at most 1 */
	struct share broken;           /* of the answers beside other flows */
	struct share confident, confident_broken;
	struct share throughput_inside, impact_inside; /* true values in the ranges of the answer */
	struct samples probing_s;
	unsigned transfers, transfers_failed;
	struct samples best;           /* auto over the best measured number within the budget */
	struct samples no_gain;        /* auto over one stream, where more streams do not help */
	struct samples lossy_alone;    /* auto over 32 streams: random loss, no other flows */
	struct samples windowed;       /* auto over the best number where the receive window limits */
	struct samples excess;         /* largest impact over SEED_WINDOW_S - budget */
	struct samples varies;         /* loss of the others in the worst run of one stream, compared with their mean */
	struct share within;           /* auto: no period more than SEED_BROKEN_RATIO above the budget */
	struct samples again;          /* auto from SEED_AGAIN_S after the end of all other flows over the best alone */
	struct samples scatter_few, scatter_many; /* |run / mean - 1| of truth with 1 or 2, and more streams */
	struct samples scatter_impact; /* |impact of a run - impact of the means| */
};

/* Adds all of a path. */
void seed_score_add(struct seed_score *s, const struct seed_case *c);

/* The q-quantile; NAN without samples. Sorts. */
double samples_quantile(struct samples *s, double q);
/* Per cent; NAN without any. */
double share_percent(const struct share *s);

#endif
