/* Effective bandwidth and minimum delay of a link from timed messages.
 *
 * Wu, Rao, Iyengar, "Measurement-based transport for message delay minimisation": messages of several
 * sizes, each sent several times; least squares of delay on size,
 *     delay = 8 size / EBW + d_min.
 * Differences: meaningless fits have a name and no number; if the intercept is not positive, the slope is
 * fitted again through the substitute delay, since both were estimated together.
 *
 * Hoeffding's inequality, regress_messages_bound(), replaces the paper's distribution-free bound on the
 * number of measurements (its equation 8): sizes are fixed by us, hence the slope is a weighted sum of
 * independent delays. */
#ifndef MODEL_REGRESS_H
#define MODEL_REGRESS_H

#include <ptcp/err.h>
#include <stddef.h>

enum regress_result {
	REGRESS_OK,
	REGRESS_ONE_SIZE,      /* fewer than two different sizes: no fit */
	REGRESS_NO_SLOPE,      /* delay does not grow with size: no EBW */
	/* d_min_s <= 0: EBW is valid, d_min is not; call regress_through() with a small message's RTT */
	REGRESS_NO_INTERCEPT,
};

/* "ok", "one-size", "no-slope", "no-intercept" */
const char *regress_result_name(enum regress_result r);

/* Meaningless values are NAN: both estimates with ONE_SIZE, EBW with NO_SLOPE, errors without more
 * measurements than coefficients. */
struct regress {
	enum regress_result result;
	size_t count;
	double ebw_bps, ebw_error_bps;     /* value and standard error */
	double d_min_s, d_min_error_s;
	double slope_s, slope_error_s;     /* s per byte, any sign */
	double r2_ratio;                   /* explained variance; NAN if all delays are equal */
	double size_squares;               /* bytes^2: sum about the mean size, or about 0 */
	double spread_s;                   /* max minus min residual */
};

/* PTCP_EUSAGE for a size or delay negative or not finite; *out is then unchanged. out->result names every
 * other outcome. */
int regress_delay(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, struct ptcp_err *e);

/* The same with a given intercept; d_min_error_s is then NAN, and a single size suffices unless 0. */
int regress_through(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, double d_min_s, struct ptcp_err *e);

/* Number of measurements of the same sizes that keeps the slope within `share_ratio` of its mean with
 * probability 1 - `risk_ratio`, for any distribution of delays whose residuals stay within the observed
 * spread:
 *     P(|slope - its mean| >= t) <= 2 exp(-2 t^2 n v / spread^2), v the mean of size_squares
 * (Hoeffding 1963). NAN without a slope, or without more measurements than coefficients. */
double regress_messages_bound(const struct regress *r, double share_ratio, double risk_ratio);

#endif
