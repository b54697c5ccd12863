/* Rates over several paths that others share, without knowing the network.
 *
 * Wang, Wei, Kurose, Towsley, Pattipati, Guo, Peng, "Application-layer multipath
 * data transfer via TCP": every control interval (about 10 RTT) a source probes
 * one path g with more, looks at what arrives, and keeps or takes back the step:
 *     failed (x_g / y_g < 1 - delta): y_g back, p_g / 2, beta_g / gamma, another
 *                                     path next;   else p_g * 2, beta_g * alpha
 *     probe: g drawn by p, y_g = min(y_g (1 + beta_g) + eps, demand), the other
 *            paths scaled down so that the sum of y stays within the demand
 * beta 0 is additive increase and decrease (AIAD), beta 0.1 multiplicative (MIMD).
 *
 * Where the printed algorithm is silent or wrong:
 *   - a failed probe restores the rate kept before it; (y - eps) / (1 + beta) is
 *     another one when the demand had capped the step;
 *   - x is compared with y (1 - delta) less a tolerance for rounding;
 *   - with one path, that one is probed again after a failure;
 *   - no path's probability falls below 0.1 % of an even share, or all of it could
 *     sit on the path that failed. */
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
	double delta_ratio; /* 0.03; 0 where rates are exact */
};

void ratectl_opts_init(struct ratectl_opts *o);

struct ratectl {
	struct ratectl_opts opts;
	double demand_bps;
	size_t paths;
	int probed;                           /* path, or -1 before the first step */
	double rate_bps[RATECTL_PATHS_MAX];   /* y: to send at from now on */
	double kept_bps[RATECTL_PATHS_MAX];   /* y before the probe under way */
	double beta[RATECTL_PATHS_MAX];
	double chance[RATECTL_PATHS_MAX];     /* p, sums to 1 */
};

/* 1 <= paths <= RATECTL_PATHS_MAX, demand_bps > 0. start_bps: what the paths carry by
 * now; what it has above the demand is scaled away. */
void ratectl_init(struct ratectl *c, const struct ratectl_opts *o, size_t paths,
    double demand_bps, const double *start_bps);

/* One interval: seen_bps[j] arrived on path j at the rates in rate_bps (only the
 * probed path's is read; none the first time), which change to those for the next. `u` is uniform in [0, 1). The rates are never
 * negative and sum to the demand at most. */
void ratectl_step(struct ratectl *c, const double *seen_bps, double u);

#endif
