#include "model/regress.h"

#include <math.h>

#include "core/err.h"

const char *regress_result_name(enum regress_result r)
{
	switch (r) {
	case REGRESS_OK: return "ok";
	case REGRESS_ONE_SIZE: return "one-size";
	case REGRESS_NO_SLOPE: return "no-slope";
	case REGRESS_NO_INTERCEPT: return "no-intercept";
	}
	return "?";
}

/* Sums of squares and products about the point (size, delay) on the line: the means, or (0, d_min). */
struct regress_moments {
	double size, delay;
	double ss, sd, dd;
};

static void about(struct regress_moments *m, const double *size, const double *delay, size_t count)
{
	size_t i;

	m->ss = m->sd = m->dd = 0;
	for (i = 0; i < count; i++) {
		double s = size[i] - m->size, d = delay[i] - m->delay;

		m->ss += s * s;
		m->sd += s * d;
		m->dd += d * d;
	}
}

static int regress_check(const double *size, const double *delay, size_t count, struct ptcp_err *e)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!(size[i] >= 0 && isfinite(size[i]) && delay[i] >= 0 && isfinite(delay[i])))
			return err_set(e, PTCP_EUSAGE,
			    "measurement %zu: %g bytes in %g s (both must be numbers from 0 on)",
			    i + 1, size[i], delay[i]);
	return 0;
}

static struct regress nothing(size_t count)
{
	return (struct regress){ REGRESS_ONE_SIZE, count, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
}

/* Computes the slope and derived values; returns the variance of the residuals. */
static double slope(struct regress *r, const struct regress_moments *m, size_t free)
{
	double left, variance = NAN;

	r->slope_s = m->sd / m->ss;
	left = fmax(m->dd - r->slope_s * m->sd, 0);
	if (free > 0) {
		variance = left / (double)free;
		r->slope_error_s = sqrt(variance / m->ss);
	}
	if (m->dd > 0)
		r->r2_ratio = 1 - left / m->dd;
	if (!(r->slope_s > 0)) {
		r->result = REGRESS_NO_SLOPE;
		return variance;
	}
	r->result = REGRESS_OK;
	r->ebw_bps = 8 / r->slope_s;
	r->ebw_error_bps = r->ebw_bps * r->slope_error_s / r->slope_s;
	return variance;
}

/* Spread of the residuals. */
static void spread(struct regress *r, const struct regress_moments *m, const double *size, const double *delay)
{
	double least = INFINITY, largest = -INFINITY, off;
	size_t i;

	for (i = 0; i < r->count; i++) {
		off = delay[i] - m->delay - r->slope_s * (size[i] - m->size);
		least = fmin(least, off);
		largest = fmax(largest, off);
	}
	r->size_squares = m->ss;
	r->spread_s = largest - least;
}

int regress_delay(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, struct ptcp_err *e)
{
	struct regress r = nothing(count);
	struct regress_moments m = { 0 };
	double n = (double)count, variance;
	size_t i;
	int err;

	if ((err = regress_check(size_bytes, delay_s, count, e)) < 0)
		return err;
	for (i = 1; i < count && size_bytes[i] == size_bytes[0]; i++)
		;
	if (i >= count) {
		*out = r;
		return 0;
	}
	for (i = 0; i < count; i++) {
		m.size += size_bytes[i] / n;
		m.delay += delay_s[i] / n;
	}
	about(&m, size_bytes, delay_s, count);
	variance = slope(&r, &m, count - 2);
	spread(&r, &m, size_bytes, delay_s);
	r.d_min_s = m.delay - r.slope_s * m.size;
	r.d_min_error_s = sqrt(variance * (1 / n + m.size * m.size / m.ss));
	if (r.result == REGRESS_OK && !(r.d_min_s > 0))
		r.result = REGRESS_NO_INTERCEPT;
	*out = r;
	return 0;
}

int regress_through(struct regress *out, const double *size_bytes, const double *delay_s,
    size_t count, double d_min_s, struct ptcp_err *e)
{
	struct regress r = nothing(count);
	struct regress_moments m = { 0, d_min_s, 0, 0, 0 };
	int err;

	if ((err = regress_check(size_bytes, delay_s, count, e)) < 0)
		return err;
	if (!(d_min_s >= 0) || !isfinite(d_min_s))
		return err_set(e, PTCP_EUSAGE, "minimum delay of %g s (must be a number from 0 on)", d_min_s);
	about(&m, size_bytes, delay_s, count);
	if (m.ss > 0) {
		slope(&r, &m, count - 1);
		spread(&r, &m, size_bytes, delay_s);
		r.d_min_s = d_min_s;
	}
	*out = r;
	return 0;
}

double regress_messages_bound(const struct regress *r, double share_ratio, double risk_ratio)
{
	double t = share_ratio * r->slope_s, v = r->size_squares / (double)r->count;

	if (!(r->slope_s > 0) || !isfinite(r->slope_error_s))
		return NAN;
	return fmax(1, ceil(r->spread_s * r->spread_s * log(2 / risk_ratio) / (2 * t * t * v)));
}
