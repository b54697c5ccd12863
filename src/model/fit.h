/* Aggregate throughput as a function of the stream count, from a few probes.
 *
 * Lu, Qiao, Dinda, Bustamante, "Modeling and Taming Parallel TCP on the WAN": the rate of a TCP stream is
 * proportional to 1 / (RTT sqrt(loss)), hence with n streams
 *     BW(n) = n / sqrt(q(n)),   q(n) = a n^2 + b       (partial quadratic)
 * and its rivals
 *     q(n) = a n^2 + b n + c                            (full quadratic)
 *     q(n) = a n + b                                    (linear)
 * and our model, exact for a full link shared equally by n streams and m competing flows (a = 1/capacity, b =
 * m/capacity):
 *     BW(n) = n / (a n + b)                             (fair share)
 * In all models the rates of competing flows are inversely proportional to y(n) = n / BW(n), hence impact(n) =
 * 1 - y(1) / y(n).
 *
 * Differences: the paper solves for two probes. We accept two or more, by least squares of the relative
 * error, each probe weighted by its known scatter; two probes give the paper's a and b. Our coefficients in
 * use are never negative (see struct fit); hence for all four models BW never falls, impact never falls and
 * the marginal gain never rises with n. */
#ifndef MODEL_FIT_H
#define MODEL_FIT_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/parameters.h"
#include "model/probe.h"

#define FIT_PROBES_MAX 64
#define FIT_TERMS_MAX 3

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

/* The model called `name`; 0, or -1 for an unknown name, *out then unchanged. */
int fit_model_by_name(enum fit_model *out, const char *name);

enum fit_flag {
	FIT_NO_CONGESTION = 1, /* a <= 0: n streams had n times the throughput of one stream, or more */
	FIT_FALLS = 2,         /* b < 0: more streams had less throughput */
	FIT_CLOSE_LEVELS = 4,  /* most < 3 x fewest streams: amplifies noise */
};

/* Coefficients a, b (and c) in order, BW in bit/s.
 *   raw    the least-squares solution with any signs
 *   used   with a <= 0: a = 0 and b the best constant; with b < 0 in the models
 *          of two terms: b = 0 and a from the probe with the fewest streams
 *          (which is then the answer); else the best solution without a
 *          negative coefficient. A term below 1e-9 of y(n) at the most streams
 *          probed counts as zero. */
struct fit {
	enum fit_model model;
	double raw[FIT_TERMS_MAX], used[FIT_TERMS_MAX];
	unsigned flags;         /* enum fit_flag */
	double prior_others;    /* competing flows of the prior; 0: no prior */
	unsigned fewest, most;  /* streams probed */
	double misfit;          /* sum of (error / deviation)^2 over the probes */
	double worst_ratio;     /* largest |BW(n) / measured - 1| at a probe */
};

/* Fits one model, or with FIT_AUTO the model favored by the evidence:
 *   - probes at two levels cannot discriminate: fair share, which on Linux
 *     (Reno, CUBIC, BBR) had about two thirds of the partial quadratic's error
 *     and a third of its exceeded budgets in ns-2;
 *   - with more levels a rival wins if its misfit + 2 x terms is less than fair
 *     share's by more than 2 (Akaike's criterion, and an advantage for the model
 *     with the better record). Models with as many terms as levels are excluded:
 *     they fit any probes. The linear model is excluded too, having no physical
 *     reading: its throughput grows without bound, and y(0) has no meaning.
 * PTCP_EUSAGE without a result when a probe has no streams or a rate zero, negative or not finite, or with
 * fewer different levels than terms of the model. Needs count <= FIT_PROBES_MAX. */
int fit_probes(struct fit *out, enum fit_model m, const struct probe *p, size_t count, struct ptcp_err *e);

/* The same for ptcp's own short probes, with a prior: if the model is fair share and throughput did not
 * fall, `others` (positive) competing flows count as one more observation, b = others a, with a standard
 * deviation of FIT_PRIOR_SD times the resulting y(1). Probes with small errors outweigh the prior; with
 * noisy probes the prior prevents answers of 0 or hundreds of competing flows. `raw` excludes the prior, unless all
 * probes have one level: the prior then is the second. */
int fit_probes_prior(struct fit *out, enum fit_model m, double others, const struct probe *p,
    size_t count, struct ptcp_err *e);

/* Fits the model and prior of `like` to other probes. */
int fit_like(struct fit *out, const struct fit *like, const struct probe *p, size_t count,
    struct ptcp_err *e);

/* For any n >= 1. */
double fit_throughput_bps(const struct fit *f, double streams);

/* Share lost by each competing flow, relative to one stream of ours; in [0, 1). */
double fit_impact_ratio(const struct fit *f, double streams);

/* The same relative to no transfer: 1 - y(0) / y(n), an extrapolation; with fair share n / (n + m). At
 * least fit_impact_ratio(). Assumes that all flows are equally aggressive, which is false for BBR beside
 * CUBIC. */
double fit_impact_total_ratio(const struct fit *f, double streams);

#endif
