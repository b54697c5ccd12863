/* How many streams: the largest number that keeps an impact budget and whose
 * last stream still brings enough.
 *
 * Lu, Qiao, Dinda, Bustamante, "Modeling and Taming Parallel TCP on the WAN":
 *     answer = largest n in 1..max with impact(n) <= budget
 *              and BW(n) / BW(n-1) - 1 >= min gain
 * by binary search; fit.h says why both conditions are monotone. With a, b >= 0
 * the partial quadratic's budget alone allows, in closed form,
 *     floor(sqrt(((a + b) / (1 - budget)^2 - b) / a)).
 *
 * Ours: how sure the answer is. One deviation of every probe, and of what is usual, is
 * carried through fit and search; of probes that were given the rival model is asked too. What
 * speaks against the answer is named, and without such a reason confidence is high. The bounds
 * are those by which, of answers from short probes in laboratories, half count as sure with
 * throughput within 15 % in the median and 35 % in nine cases of ten, impact within 12 points,
 * and few budgets broken (tests/bench/advice/README.md).
 *
 * An impact against no transfer above the budget makes confidence low too. With
 * fair share that is every answer that the budget limits: n/(n+m) is above
 * n/(n+1+m), which is above the budget or n+1 streams would be the answer. */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include <ptcp/err.h>

#include "model/fit.h"

/* Numbers of streams to probe with where nobody names any; the first one also what a transfer begins with, and
 * stays at when it is too short to probe. Few would take too long to tell (one or two scatter by up to 70 %), many
 * would break the budget by much, and the further apart they are the more they tell of the others. */
#define ADVICE_START 4u
#define ADVICE_LEVELS { ADVICE_START, 15u }

/* At the most, by the probes' errors: one deviation of the throughput at the answer, and of the share of the path that
 * one stream gets, which tells how many others there are. The share and not the impact at the answer: that is never far
 * off where the budget is small and always where it is large, however many others there are. */
#define ADVICE_THROUGHPUT_SD_RATIO 0.40
#define ADVICE_SHARE_SD_RATIO 0.73
/* As good as between the probes is an answer down to a fourth of the fewest streams probed and
 * up to twice the most. */
#define ADVICE_FAR_BELOW 4
#define ADVICE_FAR_ABOVE 2
#define ADVICE_STREAMS_MAX 100000u

/* The congestion control of our sockets. */
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
	double budget_ratio;       /* 0.10; 0..1 */
	double min_gain_ratio;     /* 0.01; not negative */
	unsigned max_streams;      /* 32; 1..ADVICE_STREAMS_MAX */
	enum advice_congestion congestion; /* ADVICE_CC_UNKNOWN */
	double usual_others;       /* 0: none; for short probes of one's own FIT_USUAL_OTHERS; see
				      fit_probes_beside() */
};

void advice_opts_init(struct advice_opts *o);

enum advice_limit {
	ADVICE_BY_IMPACT,    /* one stream more would break the budget */
	ADVICE_BY_GAIN,      /* one stream more would bring too little */
	ADVICE_BY_MAX,       /* max_streams allows no more */
	ADVICE_BY_SATURATED, /* more streams bring nothing, or less */
};

/* "impact", "gain", "max-streams", "saturated" */
const char *advice_limit_name(enum advice_limit l);

/* Bit, and what is told to the user. Any of them makes confidence low. The last one is for who sees the streams to set. */
#define ADVICE_WARNING_LIST(X)                                                 \
	X(ADVICE_WARN_NO_CONGESTION, 1, "the probes saw no congestion: the limit is the maximum or the gain rule") \
	X(ADVICE_WARN_FALLS, 2, "more streams brought less throughput")        \
	X(ADVICE_WARN_CLOSE_LEVELS, 4, "the probed numbers of streams lie close together: noise is amplified") \
	X(ADVICE_WARN_OUTSIDE, 8, "the answer lies far outside the probed range")  \
	X(ADVICE_WARN_NOISY, 16, "the probes scatter too much to settle the answer") \
	X(ADVICE_WARN_MISFIT, 32, "the probes do not lie on the model's curve") \
	X(ADVICE_WARN_RIVAL, 64, "another model that fits as well predicts otherwise") \
	X(ADVICE_WARN_TOTAL, 128, "the impact against no transfer exceeds the budget") \
	X(ADVICE_WARN_BBR, 256, "BBR streams take more from others than the model can see") \
	X(ADVICE_WARN_CONGESTION, 512, "no model is known to hold for this congestion control") \
	X(ADVICE_WARN_HELD, 1024, "windows or buffers, not the path, held the streams up for a part of the time")

enum advice_warning {
#define X(id, bit, text) id = bit,
	ADVICE_WARNING_LIST(X)
#undef X
};

struct advice {
	unsigned streams;
	double throughput_bps;         /* predicted for them, as the next three */
	double impact_ratio;           /* against one stream of ours */
	double impact_total_ratio;     /* against no transfer; see fit.h */
	double budget_ratio;
	enum advice_limit limited_by;
	bool confident;
	unsigned warnings;             /* enum advice_warning */
	double throughput_sd_ratio;    /* one deviation, from the probes' errors, */
	double impact_sd_ratio;        /* at the answer */
	double share_sd_ratio;         /* of the share of the path that one stream gets */
	unsigned streams_low, streams_high; /* answers with one probe off by one deviation */
	const char *congestion_advice; /* gentler congestion control to use, or NULL */
	unsigned next_probe;           /* streams of a further probe that would help
					  most to settle the answer, or 0 */
	struct fit fit;
};

/* Fails as fit_probes() does, and with PTCP_EUSAGE for options out of range. */
int advice_from_probes(struct advice *out, const struct probe *p, size_t count,
    const struct advice_opts *o, struct ptcp_err *e);

/* The search alone, on a curve that is already known. */
unsigned advice_search(const struct fit *f, const struct advice_opts *o, enum advice_limit *limited_by);

/* The text of the i-th of these warnings, from 0; NULL after the last. */
const char *advice_warning_text(unsigned warnings, size_t i);

#endif
