#include "model/recalled.h"

#include <math.h>

#include "model/history.h"
#include "model/parameters.h"

static double told_sd(const struct advice_point *told)
{
	return log(told->throughput_high_bps / told->throughput_low_bps) / (2 * ADVICE_RANGE_SD);
}

/* Of the rate over a few seconds, slow start included. */
static double check_sd(const struct probe *check)
{
	return hypot(probe_error_ratio(check), HISTORY_CHECK_SD);
}

bool recalled_agrees(const struct advice_point *told, const struct probe *check)
{
	return fabs(log(check->throughput_bps / told->throughput_bps)) <=
	    HISTORY_CHECK_MOST * hypot(told_sd(told), check_sd(check));
}

void recalled_of(struct recalled *r, const struct advice_point *told, const struct probe *check, double age_s)
{
	double before = hypot(told_sd(told), log(history_doubt(age_s)) / ADVICE_RANGE_SD), now = check_sd(check);
	double weight = before * before / (before * before + now * now);

	r->factor = pow(check->throughput_bps / told->throughput_bps, weight);
	r->sd = before * now / hypot(before, now);
	r->others_ratio = 1 - exp(-fmax(age_s, 0) / HISTORY_OTHERS_S);
	r->streams = check->streams;
}

/* ---- Impact ---- */

static double normal(double x) { return erfc(-x / sqrt(2)) / 2; }

/* The impact is as told, or any that the streams can have: none, or few, if the flows have left or many have come. */
struct doubted {
	double middle, sd_below, sd_above;
	double most, others_ratio;
};

static double probability_below(const struct doubted *d, double x)
{
	double sd = x < d->middle ? d->sd_below : d->sd_above;
	double as_told = sd > 0 ? normal((x - d->middle) / sd) : x >= d->middle;

	return (1 - d->others_ratio) * as_told + d->others_ratio * (d->most > 0 ? sqrt(fmin(x / d->most, 1)) : 1);
}

static double quantile_of(const struct doubted *d, double q)
{
	double low = 0, high = 1;
	unsigned i;

	for (i = 0; i < 40; i++)
		*(probability_below(d, (low + high) / 2) < q ? &low : &high) = (low + high) / 2;
	return high;
}

void recalled_point(const struct recalled *r, struct advice_point *p, unsigned streams)
{
	struct doubted d = { p->impact_ratio, fmax(p->impact_ratio - p->impact_low_ratio, 0) / ADVICE_RANGE_SD,
		fmax(p->impact_high_ratio - p->impact_ratio, 0) / ADVICE_RANGE_SD, 1 - 1.0 / streams, r->others_ratio };
	double sd = streams == r->streams ? r->sd : hypot(told_sd(p), r->sd);

	p->throughput_bps *= r->factor;
	p->mean_bps *= r->factor;
	p->throughput_low_bps = p->throughput_bps / exp(ADVICE_RANGE_SD * sd);
	p->throughput_high_bps = p->throughput_bps * exp(ADVICE_RANGE_SD * sd);
	if (isnan(p->impact_ratio))
		return;
	p->impact_low_ratio = fmin(p->impact_low_ratio, quantile_of(&d, 0.1));
	p->impact_high_ratio = fmax(p->impact_high_ratio, quantile_of(&d, 0.9));
}
