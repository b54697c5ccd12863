/* Rate control over several shared paths without knowledge of the network.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath data transfer via TCP": in
 * every control interval (about 10 RTT) a source probes one path g with a higher rate, observes the
 * arriving rate, and keeps or reverts the step:
 *     failed (x_g / y_g < 1 - delta): y_g back, p_g / 2, beta_g / gamma, another
 *                                     path next;   else p_g * 2, beta_g * alpha
 *     probe: g drawn by p, y_g = min(y_g (1 + beta_g) + eps, demand), the other
 *            paths scaled down so that the sum of y stays within the demand
 * beta 0 is additive increase and decrease (AIAD), beta 0.1 multiplicative (MIMD).
 *
 * Corrections and additions to the printed algorithm:
 *   - a failed probe restores the saved rate; (y - eps) / (1 + beta) differs from it
 *     if the demand had capped the step;
 *   - x is compared with y (1 - delta) less a tolerance for rounding;
 *   - a single path is probed again after a failure;
 *   - each path's probability is at least 0.1 % of an even share, otherwise the failed
 *     path could accumulate all of the probability. */
#ifndef MODEL_RATECTL_H
#define MODEL_RATECTL_H

#include <stdbool.h>
#include <stddef.h>

#define RATECTL_PATHS_MAX 16

struct ratectl_opts {
	double beta;        /* 0: AIAD */
	double alpha;       /* 1.1 */
	double gamma;       /* 2.0 */
	double eps_ratio;   /* 0.01: additive step over the demand */
	double delta_ratio; /* 0.03; 0 with exact rates */
};

void ratectl_opts_init(struct ratectl_opts *o);

struct ratectl {
	struct ratectl_opts opts;
	double demand_bps;
	size_t paths;
	int probed;                           /* path, or -1 before the first step */
	double rate_bps[RATECTL_PATHS_MAX];   /* y: sending rates */
	double kept_bps[RATECTL_PATHS_MAX];   /* y before the current probe */
	double beta[RATECTL_PATHS_MAX];
	double chance[RATECTL_PATHS_MAX];     /* p, sums to 1 */
};

/* 1 <= paths <= RATECTL_PATHS_MAX, demand_bps > 0. start_bps: present rates of the paths, scaled down to
 * the demand if above. */
void ratectl_init(struct ratectl *c, const struct ratectl_opts *o, size_t paths,
    double demand_bps, const double *start_bps);

/* Ends one interval, in which observed_bps[j] arrived on path j with the rates in rate_bps (only the probed
 * path's is read; none the first time), and sets the next rates. `u` is uniform in [0, 1). Rates are never
 * negative, and their sum is at most the demand. */
void ratectl_step(struct ratectl *c, const double *observed_bps, double u);

#endif
