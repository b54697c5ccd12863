/* Stream count advice: the largest number of streams within an impact budget whose last stream still adds
 * enough throughput.
 *
 * Lu, Qiao, Dinda, Bustamante, "Modeling and Taming Parallel TCP on the WAN":
 *     answer = largest n in 1..max with impact(n) <= budget
 *              and BW(n) / BW(n-1) - 1 >= min gain
 * by binary search; fit.h explains why both conditions are monotone. With a, b >= 0 the budget alone
 * allows, for the partial quadratic, in closed form
 *     floor(sqrt(((a + b) / (1 - budget)^2 - b) / a)).
 *
 * Our addition is confidence. One standard deviation of every probe, and of the prior, is propagated
 * through fit and search; without a prior the rival model is compared too. Every doubt has a named warning,
 * and confidence is high without warnings. Calibration of the thresholds with short probes in laboratories:
 * half of the answers are confident, with throughput within 15 % in the median and 35 % in nine cases of
 * ten, impact within 12 points, and few budgets exceeded (tests/bench/advice/README.md).
 *
 * The impact relative to no transfer is the price of any transfer: a fact, which the budget does not limit
 * and which says nothing about the certainty of the answer. */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/evidence.h"
#include "model/fit.h"
#include "model/parameters.h"
#include "model/path_limit.h"

/* Default stream counts of the probes of a transfer; the first count also starts the transfer, and remains when the
 * transfer is too short to probe. Smaller counts need longer probes (1 or 2 streams scatter by up to 70 %), larger
 * counts would exceed the budget by far, and distant counts determine the number of competing flows best. */
#define ADVICE_START 4u
#define ADVICE_LEVELS { ADVICE_START, 15u }
/* Default stream counts of the probes of ptcp advise. The rate of one stream is the least certain, and all impact is
 * relative to it. It is probed first: after 15 streams competing flows need longer than a probe to recover, and one
 * stream then has up to four times its later rate. */
#define ADVICE_PROBES { 1u, ADVICE_START, 15u }

/* Normal deviation of the 90 % quantile. */
#define ADVICE_RANGE_SD 1.2816
/* Stream counts with a prediction in struct advice. */
#define ADVICE_CURVE_MAX 128u

#define ADVICE_STREAMS_MAX 100000u

/* Congestion control of our sockets. */
enum advice_congestion {
	ADVICE_CC_UNKNOWN,
	ADVICE_CC_RENO,
	ADVICE_CC_CUBIC,
	ADVICE_CC_BBR,
	ADVICE_CC_OTHER,
};

/* From the kernel's name ("cubic", "bbr2", ..); NULL or "" is unknown. */
enum advice_congestion advice_congestion_by_name(const char *name);

struct advice_opts {
	enum fit_model model;      /* FIT_AUTO */
	double budget_ratio;       /* 0.10; 0 to 1 */
	double min_gain_ratio;     /* 0.01; at least 0 */
	unsigned max_streams;      /* 32; 1 to ADVICE_STREAMS_MAX */
	enum advice_congestion congestion; /* ADVICE_CC_UNKNOWN */
	/* 0: no prior; FIT_PRIOR_OTHERS for ptcp's own short probes, see fit_probes_prior() */
	double prior_others;
	/* true; leaves room for one flow that cannot be seen, see belief_unseen_ratio(). Evidence only. */
	bool unseen_flow;
	unsigned base_streams;     /* 1; impact is relative to this number of streams. Evidence only. */
};

void advice_opts_init(struct advice_opts *o);

enum advice_limit {
	ADVICE_BY_IMPACT,    /* one more stream would exceed the budget */
	ADVICE_BY_GAIN,      /* one more stream would add too little */
	ADVICE_BY_MAX,       /* max_streams */
	ADVICE_BY_SATURATED, /* more streams add no throughput, or lower it */
};

/* "impact", "gain", "max-streams", "saturated" */
const char *advice_limit_name(enum advice_limit l);

/* Name, bit, text for the user. Each warning makes confidence low. The caller that observes the streams
 * sets HOST_LIMITED and HISTORY. */
#define ADVICE_WARNING_LIST(X)                                                 \
	X(ADVICE_WARN_NO_CONGESTION, 1, "the probes saw no congestion: the limit is the maximum or the gain rule") \
	X(ADVICE_WARN_FALLS, 2, "throughput fell with more streams")           \
	X(ADVICE_WARN_CLOSE_LEVELS, 4, "the probed stream counts lie close together: noise is amplified") \
	X(ADVICE_WARN_OUTSIDE, 8, "the answer lies far outside the probed range")  \
	X(ADVICE_WARN_NOISY, 16, "the probes scatter too much to determine the answer") \
	X(ADVICE_WARN_MISFIT, 32, "the probes do not lie on the model's curve") \
	X(ADVICE_WARN_RIVAL, 64, "another model that fits as well predicts otherwise") \
	X(ADVICE_WARN_BBR, 128, "BBR streams slow competing flows down more than the model predicts") \
	X(ADVICE_WARN_CONGESTION, 256, "no model is known for this congestion control") \
	X(ADVICE_WARN_HOST_LIMITED, 512, "windows or buffers, not the path, limited the streams part of the time") \
	X(ADVICE_WARN_UNSEEN, 1024, "competing flows cannot be distinguished from the streams' own losses") \
	X(ADVICE_WARN_HISTORY, 2048, \
	    "the probes are from the path history: competing flows may have come or gone since") \
	X(ADVICE_WARN_PATH, 4096, "a policer that other flows share, not the link, determines the rates")

enum advice_warning {
#define X(id, bit, text) id = bit,
	ADVICE_WARNING_LIST(X)
#undef X
};

/* Whether competing flows share the path. */
enum advice_others { ADVICE_OTHERS_UNKNOWN, ADVICE_OTHERS_NONE, ADVICE_OTHERS_SOME };
/* "unknown", "none seen", "some" */
const char *advice_others_name(enum advice_others o);

/* Prediction; the ranges hold 80 % of the truth. */
struct advice_point {
	double throughput_bps, throughput_low_bps, throughput_high_bps;
	double impact_ratio, impact_low_ratio, impact_high_ratio;
	double impact_total_ratio;
	double mean_bps;  /* geometric mean of the hypotheses' throughput: smooth, for gains */
};

struct advice {
	unsigned streams;
	double throughput_bps;         /* predicted, as the next three fields */
	double impact_ratio;           /* relative to one stream of ours */
	double impact_total_ratio;     /* relative to no transfer; see fit.h */
	double throughput_low_bps, throughput_high_bps; /* ranges that hold 80 % of the truth */
	double impact_low_ratio, impact_high_ratio;
	enum advice_others others;
	bool seems_idle;               /* others, where flows that cannot be seen do not count */
	struct advice_point curve[ADVICE_CURVE_MAX]; /* predictions of the mixture (evidence.h), from 1 stream on */
	unsigned n_curve;              /* 0: none, the fit predicts */
	double budget_ratio;
	enum advice_limit limited_by;
	bool confident;
	unsigned warnings;             /* enum advice_warning */
	double throughput_sd_ratio;    /* standard deviation of the throughput at the answer, */
	double impact_sd_ratio;        /* standard deviation of the impact at the answer, */
	double share_sd_ratio;         /* standard deviation of the share per stream, by the probes' errors */
	unsigned streams_low, streams_high; /* answers with a single probe off by one deviation */
	struct path_limit_found path_limit;
	bool measured;                 /* rates are those of the probes, up to the most streams probed */
	const char *congestion_advice; /* gentler: "cubic"; with random loss on an idle path "bbr"; or NULL */
	unsigned next_probe;           /* stream count of the most useful further probe, or 0 */
	struct fit fit;
};

/* Fails as fit_probes() does, and with PTCP_EUSAGE for options out of range. */
int advice_from_probes(struct advice *out, const struct probe *p, size_t count,
    const struct advice_opts *o, struct ptcp_err *e);

/* The same by the mixture of hypotheses about the path. The fit of the probes is included, but predicts nothing. */
int advice_from_evidence(struct advice *out, const struct evidence *ev, const struct advice_opts *o,
    struct ptcp_err *e);

/* Prediction for a stream count, at least 1. */
void advice_at(const struct advice *a, unsigned streams, struct advice_point *out);
/* Stream count for another budget. */
unsigned advice_for_budget(const struct advice *a, const struct advice_opts *o, double budget_ratio,
    enum advice_limit *limited_by);

/* The fastest number of streams up to a maximum, whatever its impact, with its prediction. */
unsigned advice_fastest(const struct advice *a, unsigned max_streams, struct advice_point *out);

/* For advice_from_probes() and tests: ranges from the deviations of throughput and impact. */
void advice_set_ranges(struct advice *a);
bool advice_is_narrow(const struct advice *a);

/* The search alone, on a known curve. */
unsigned advice_search(const struct fit *f, const struct advice_opts *o, enum advice_limit *limited_by);

/* Text of the i-th warning in `warnings`, from 0; NULL after the last. */
const char *advice_warning_text(unsigned warnings, size_t i);

#endif
