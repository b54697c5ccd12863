/* From a few probes, how aggregate throughput grows with the number of streams.
 *
 * Lu, Qiao, Dinda, Bustamante, "Modeling and Taming Parallel TCP on the WAN":
 * the rate of a TCP stream goes as 1 / (RTT sqrt(loss)), so that with n streams
 *     BW(n) = n / sqrt(q(n)),   q(n) = a n^2 + b       (partial quadratic)
 * and its rivals
 *     q(n) = a n^2 + b n + c                            (full quadratic)
 *     q(n) = a n + b                                    (linear)
 * and ours, exact where a full link is shared equally between n streams and m
 * others (a = 1/capacity, b = m/capacity):
 *     BW(n) = n / (a n + b)                             (fair share)
 * In all of them y(n) = n / BW(n) is what the others' rates are inversely
 * proportional to, hence impact(n) = 1 - y(1) / y(n).
 *
 * Where we differ: the paper solves for two probes. We take two or more, by
 * least squares of the relative error, each probe weighted by what is known of
 * its scatter; two probes give the paper's a and b. And what is used has no
 * negative coefficient (see struct fit), so that BW never falls, impact never
 * falls and the marginal gain never rises with n, for each of the four. */
#ifndef MODEL_FIT_H
#define MODEL_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include <ptcp/err.h>

#include "model/probe.h"

#define FIT_PROBES_MAX 64
#define FIT_TERMS_MAX 3

/* See fit_probes_beside(); tests/bench/advice/README.md says what they bring. */
#define FIT_USUAL_OTHERS 5.0
#define FIT_USUAL_DOUBT 1.0

/* enum, name on the command line and in JSON */
#define FIT_MODEL_LIST(X)                                                      \
	X(FIT_AUTO, "auto")                                                    \
	X(FIT_PARTIAL_QUADRATIC, "partial-quadratic")                          \
	X(FIT_FAIR_SHARE, "fair-share")                                        \
	X(FIT_QUADRATIC, "quadratic")                                          \
	X(FIT_LINEAR, "linear")

enum fit_model {
#define X(id, name) id,
	FIT_MODEL_LIST(X)
#undef X
};

const char *fit_model_name(enum fit_model m);

/* The model called `name`; 0, or -1 for no such name, *out then untouched. */
int fit_model_by_name(enum fit_model *out, const char *name);

enum fit_flag {
	FIT_NO_CONGESTION = 1, /* a <= 0: n streams brought n times one or more */
	FIT_FALLS = 2,         /* b < 0: more streams brought less */
	FIT_CLOSE_LEVELS = 4,  /* most < 3 x fewest streams: noise is amplified */
};

/* Coefficients a, b (and c) in that order, BW in bit/s.
 *   raw    the least-squares solution, whatever its signs
 *   used   with a <= 0: a = 0 and b the best constant; with b < 0 in the models
 *          of two terms: b = 0 and a from the probe with the fewest streams
 *          (where the answer then lies); else the best solution without a
 *          negative coefficient. A term below 1e-9 of y(n) at the most streams
 *          probed counts as zero. */
struct fit {
	enum fit_model model;
	double raw[FIT_TERMS_MAX], used[FIT_TERMS_MAX];
	unsigned flags;         /* enum fit_flag */
	double usual_others;    /* counted as one more observation; 0: none was */
	unsigned fewest, most;  /* streams probed */
	double misfit;          /* sum of (error / deviation)^2 over the probes */
	double worst_ratio;     /* largest |BW(n) / measured - 1| at a probe */
};

/* Fit one model, or with FIT_AUTO the one that evidence favours:
 *   - with probes at two levels nothing in them can tell: fair share, which on
 *     Linux (Reno, CUBIC, BBR) had about two thirds of the partial quadratic's
 *     error and a third of its broken budgets in ns-2;
 *   - with more levels a rival is taken if its misfit + 2 x terms is less than
 *     fair share's by more than 2 (Akaike's criterion, and a head start for the
 *     model with the better record). A model that has as many terms as there
 *     are levels is never taken: it fits anything. Nor is the linear one, which has
 *     no reading: by it throughput grows without end, and y(0) means nothing.
 * Fails with PTCP_EUSAGE, giving no number, when a probe has no streams or a
 * rate that is zero, negative or not finite, or when there are fewer different
 * levels than the model has terms. Needs count <= FIT_PROBES_MAX. */
int fit_probes(struct fit *out, enum fit_model m, const struct probe *p, size_t count, struct ptcp_err *e);

/* The same for short probes of one's own: where it comes to fair share, and more streams did not
 * bring less, what is usual counts as one more observation: that there are `others` (positive)
 * other flows, b = others a, with a deviation of FIT_USUAL_DOUBT times what y(1) then is. Probes
 * with small errors outvote it; it keeps those that scatter from finding no others or hundreds.
 * `raw` is without it. */
int fit_probes_beside(struct fit *out, enum fit_model m, double others, const struct probe *p,
    size_t count, struct ptcp_err *e);

/* The model that `like` has come to, fitted to other probes in the same way, with its
 * usual_others. */
int fit_again(struct fit *out, const struct fit *like, const struct probe *p, size_t count,
    struct ptcp_err *e);

/* For any n >= 1. */
double fit_throughput_bps(const struct fit *f, double streams);

/* Share taken from each other flow, relative to one stream of ours; in [0, 1). */
double fit_impact_ratio(const struct fit *f, double streams);

/* The same relative to no transfer: 1 - y(0) / y(n), an extrapolation. With fair
 * share it is n / (n + m). At least fit_impact_ratio(). It supposes that our
 * streams are as aggressive as the others': not so for BBR beside CUBIC. */
double fit_impact_total_ratio(const struct fit *f, double streams);

#endif
