/* Effective bandwidth and minimum delay of a link from timed messages.
 *
 * Wu, Rao, Iyengar, "Measurement-based transport for message delay
 * minimisation": messages of several sizes, each sent several times; least
 * squares of delay on size,
 *     delay = 8 size / EBW + d_min.
 * Where we differ: fits that mean nothing have a name and no number; when the
 * intercept is not positive, the slope is fitted again through the delay that
 * replaces it, since the two were estimated together.
 *
 * In place of the paper's distribution-free bound on the number of measurements
 * (its equation 8) stands Hoeffding's inequality, regress_needs(): sizes are
 * chosen here, so that the slope is a weighted sum of independent delays. */
#ifndef MODEL_REGRESS_H
#define MODEL_REGRESS_H

#include <stddef.h>

#include <ptcp/err.h>

enum regress_result {
	REGRESS_OK,
	REGRESS_ONE_SIZE,      /* fewer than two different sizes: nothing is fitted */
	REGRESS_NO_SLOPE,      /* larger messages did not take longer: no EBW */
	REGRESS_NO_INTERCEPT,  /* d_min_s <= 0: EBW stands, d_min does not; take a small
				  message's round trip and call regress_through() */
};

/* "ok", "one-size", "no-slope", "no-intercept" */
const char *regress_result_name(enum regress_result r);

/* What has no meaning is NAN: both estimates with ONE_SIZE, EBW with NO_SLOPE,
 * errors with no more measurements than coefficients. */
struct regress {
	enum regress_result result;
	size_t count;
	double ebw_bps, ebw_error_bps;     /* and one standard error */
	double d_min_s, d_min_error_s;
	double slope_s, slope_error_s;     /* seconds a byte, whatever its sign */
	double r2_ratio;                   /* variance explained; NAN if all delays are equal */
	double size_squares;               /* bytes squared: sum over measurements, about their mean size or 0 */
	double spread_s;                   /* from the least to the largest distance of a delay from the line */
};

/* PTCP_EUSAGE when a size or delay is negative or not finite; *out is then
 * untouched. Every other outcome is named in out->result. */
int regress_delay(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, struct ptcp_err *e);

/* The same with the intercept given. d_min_error_s is then NAN, and one size is
 * enough, if it is not 0. */
int regress_through(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, double d_min_s, struct ptcp_err *e);

/* How many measurements, of sizes as these were, keep the slope within `share_ratio` of itself with a probability
 * of 1 - `risk_ratio`, whatever the distribution of delays, if none strays further than these did:
 *     P(|slope - its mean| >= t) <= 2 exp(-2 t^2 n v / spread^2), v the mean of size_squares
 * (Hoeffding 1963). NAN where there is no slope, or were no more measurements than coefficients. */
double regress_needs(const struct regress *r, double share_ratio, double risk_ratio);

#endif
