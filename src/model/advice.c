#include "model/advice.h"

#include <math.h>
#include <string.h>

#include "core/err.h"
#include "model/parameters.h"

enum advice_congestion advice_congestion_by_name(const char *name)
{
	if (name == NULL || *name == '\0')
		return ADVICE_CC_UNKNOWN;
	if (strcmp(name, "reno") == 0)
		return ADVICE_CC_RENO;
	if (strcmp(name, "cubic") == 0)
		return ADVICE_CC_CUBIC;
	if (strncmp(name, "bbr", 3) == 0)
		return ADVICE_CC_BBR;
	return ADVICE_CC_OTHER;
}

void advice_opts_init(struct advice_opts *o)
{
	*o = (struct advice_opts){ FIT_AUTO, 0.10, 0.01, 32, ADVICE_CC_UNKNOWN, 0, true, 1 };
}

const char *advice_limit_name(enum advice_limit l)
{
	switch (l) {
	case ADVICE_BY_IMPACT: return "impact";
	case ADVICE_BY_GAIN: return "gain";
	case ADVICE_BY_MAX: return "max-streams";
	case ADVICE_BY_SATURATED: return "saturated";
	}
	return "?";
}

const char *advice_warning_text(unsigned warnings, size_t i)
{
	static const struct { unsigned bit; const char *text; } all[] = {
#define X(id, bit, text) { id, text },
		ADVICE_WARNING_LIST(X)
#undef X
	};
	size_t k;

	for (k = 0; k < sizeof all / sizeof *all; k++)
		if ((warnings & all[k].bit) && i-- == 0)
			return all[k].text;
	return NULL;
}

/* ---- The search ---- */

/* Tolerance for a budget met exactly. */
#define EXACT 1e-12

static bool keeps_budget(const struct fit *f, const struct advice_opts *o, unsigned n)
{
	return fit_impact_ratio(f, n) <= o->budget_ratio + EXACT;
}

static bool gains(const struct fit *f, const struct advice_opts *o, unsigned n)
{
	return fit_throughput_bps(f, n) >=
	    fit_throughput_bps(f, n - 1) * (1 + o->min_gain_ratio) * (1 - EXACT);
}

/* Largest n in 1..max for which `holds`; `holds` is monotone and true for 1. */
static unsigned largest(const struct fit *f, const struct advice_opts *o,
    bool (*holds)(const struct fit *, const struct advice_opts *, unsigned))
{
	unsigned lo = 1, hi = o->max_streams, mid;

	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		if (holds(f, o, mid))
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

unsigned advice_search(const struct fit *f, const struct advice_opts *o, enum advice_limit *limited_by)
{
	unsigned by_impact, by_gain;

	if (f->flags & FIT_FALLS) {
		*limited_by = ADVICE_BY_SATURATED;
		return 1;
	}
	by_impact = largest(f, o, keeps_budget);
	by_gain = largest(f, o, gains);
	if (by_impact >= o->max_streams && by_gain >= o->max_streams) {
		*limited_by = ADVICE_BY_MAX;
		return o->max_streams;
	}
	if (by_impact < by_gain) {
		*limited_by = ADVICE_BY_IMPACT;
		return by_impact;
	}
	if (fit_throughput_bps(f, by_gain + 1) <= fit_throughput_bps(f, by_gain) * (1 + EXACT))
		*limited_by = ADVICE_BY_SATURATED;
	else
		*limited_by = by_impact == by_gain ? ADVICE_BY_IMPACT : ADVICE_BY_GAIN;
	return by_gain;
}

/* ---- Confidence ---- */

/* Half of the difference between one observation raised and lowered by one deviation. */
struct swing {
	double rate, impact; /* values at the answer; rate as logarithm */
	double share;        /* logarithm of the share per stream: 1 / (1 + others) with fair share */
};

/* Repeats fit and search with one observation moved to one side. */
static int swing_add(struct advice *a, const struct fit *like, const struct probe *moved, size_t count,
    const struct advice_opts *o, int side, struct swing *s, struct ptcp_err *e)
{
	enum advice_limit by;
	struct fit f;
	unsigned n;
	int r = fit_like(&f, like, moved, count, e);

	if (r < 0)
		return r;
	n = advice_search(&f, o, &by);
	if (n < a->streams_low)
		a->streams_low = n;
	if (n > a->streams_high)
		a->streams_high = n;
	s->rate += side * log(fit_throughput_bps(&f, a->streams)) / 2;
	s->impact += side * fit_impact_ratio(&f, a->streams) / 2;
	s->share += side * log(fit_throughput_bps(&f, 1) / fit_throughput_bps(&f, ADVICE_STREAMS_MAX)) / 2;
	return 0;
}

/* Propagates one deviation of each probe, and of the prior, through fit and search; the observations are
 * independent, so the effects add as squares. *noisiest is the stream count of the probe with the largest
 * effect. */
static int spread(struct advice *a, const struct probe *p, size_t count,
    const struct advice_opts *o, unsigned *noisiest, struct ptcp_err *e)
{
	struct probe moved[FIT_PROBES_MAX];
	struct fit like = a->fit;
	double rate_var = 0, impact_var = 0, share_var = 0, weight, most = -1;
	size_t i;
	int side, r;

	a->streams_low = a->streams_high = a->streams;
	memcpy(moved, p, count * sizeof *p);
	for (i = 0; i < count + (like.prior_others > 0); i++) {
		struct swing s = { 0 };

		for (side = -1; side <= 1; side += 2) {
			double factor = exp(side * (i < count ? probe_error_ratio(&p[i]) : FIT_PRIOR_SD));

			if (i < count) {
				moved[i].throughput_bps = p[i].throughput_bps * factor;
				moved[i].error_bps = p[i].error_bps * factor;
			} else {
				like.prior_others = a->fit.prior_others * factor;
			}
			if ((r = swing_add(a, &like, moved, count, o, side, &s, e)) < 0)
				return r;
		}
		rate_var += s.rate * s.rate;
		impact_var += s.impact * s.impact;
		share_var += s.share * s.share;
		if (i == count)
			break;
		moved[i] = p[i];
		weight = pow(s.rate / ADVICE_THROUGHPUT_SD_RATIO, 2) + pow(s.share / ADVICE_SHARE_SD_RATIO, 2);
		if (weight > most) {
			most = weight;
			*noisiest = p[i].streams;
		}
	}
	a->throughput_sd_ratio = sqrt(rate_var);
	a->impact_sd_ratio = sqrt(impact_var);
	a->share_sd_ratio = sqrt(share_var);
	return 0;
}

/* Warns if the other model with a physical reading fits the probes as well and predicts otherwise at the
 * answer. Not used with a prior: fair share then has the better record, and the rival nearly always
 * differs. */
static int compare_rival(struct advice *a, const struct probe *p, size_t count, struct ptcp_err *e)
{
	struct fit f;
	double rate;
	int r;

	r = fit_probes(&f, a->fit.model == FIT_FAIR_SHARE ? FIT_PARTIAL_QUADRATIC : FIT_FAIR_SHARE,
	    p, count, e);
	if (r < 0)
		return r;
	rate = fit_throughput_bps(&f, a->streams) / a->throughput_bps;
	if (f.misfit < a->fit.misfit + 2 && (fabs(log(rate)) > ADVICE_RIVAL_RATE ||
	     fabs(fit_impact_ratio(&f, a->streams) - a->impact_ratio) > ADVICE_RIVAL_IMPACT))
		a->warnings |= ADVICE_WARN_RIVAL;
	return 0;
}

static bool off_curve(const struct fit *f, const struct probe *p, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		double miss = fit_throughput_bps(f, p[i].streams) / p[i].throughput_bps - 1;

		if (fabs(miss) > 0.15 && fabs(miss) > 2 * probe_error_ratio(&p[i]))
			return true;
	}
	return false;
}

/* Whether the fall of throughput from the fewest to the most streams is within the errors of both
 * probes. */
static bool falls_by_scatter(const struct probe *p, size_t count)
{
	const struct probe *lo = p, *hi = p;
	size_t i;

	for (i = 1; i < count; i++) {
		lo = p[i].streams < lo->streams ? &p[i] : lo;
		hi = p[i].streams > hi->streams ? &p[i] : hi;
	}
	return lo->error_bps > 0 && hi->error_bps > 0 &&
	    lo->throughput_bps - hi->throughput_bps <= hypot(lo->error_bps, hi->error_bps);
}

static void warn(struct advice *a, const struct probe *p, size_t count, const struct advice_opts *o)
{
	if (a->fit.flags & FIT_NO_CONGESTION)
		a->warnings |= ADVICE_WARN_NO_CONGESTION;
	if ((a->fit.flags & FIT_FALLS) && !falls_by_scatter(p, count))
		a->warnings |= ADVICE_WARN_FALLS;
	if (a->fit.flags & FIT_CLOSE_LEVELS)
		a->warnings |= ADVICE_WARN_CLOSE_LEVELS;
	if (a->streams * ADVICE_FAR_BELOW < a->fit.fewest || a->streams > a->fit.most * ADVICE_FAR_ABOVE)
		a->warnings |= ADVICE_WARN_OUTSIDE;
	if (a->throughput_sd_ratio > ADVICE_THROUGHPUT_SD_RATIO || a->share_sd_ratio > ADVICE_SHARE_SD_RATIO)
		a->warnings |= ADVICE_WARN_NOISY;
	if (off_curve(&a->fit, p, count))
		a->warnings |= ADVICE_WARN_MISFIT;
	if (o->congestion == ADVICE_CC_BBR) {
		a->warnings |= ADVICE_WARN_BBR;
		a->congestion_advice = "cubic";
	}
	if (o->congestion == ADVICE_CC_OTHER)
		a->warnings |= ADVICE_WARN_CONGESTION;
}

static bool was_probed(const struct probe *p, size_t count, unsigned streams)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (p[i].streams == streams)
			return true;
	return false;
}

/* Stream count of the next probe. If the curve fits but the answer lies outside: outwards to the answer, at
 * most three times the range. If the shape is in doubt: at the answer or between the levels. If a probe
 * with very few streams causes most of the uncertainty: between the levels, since repetition hardly
 * improves such a probe. Otherwise the noisiest probe again. */
static unsigned suggest(const struct advice *a, const struct probe *p, size_t count,
    const struct advice_opts *o, unsigned noisiest)
{
	const unsigned no_help = ADVICE_WARN_BBR | ADVICE_WARN_CONGESTION;
	const unsigned shape = ADVICE_WARN_FALLS | ADVICE_WARN_MISFIT;
	const unsigned between = (unsigned)(sqrt((double)a->fit.fewest * a->fit.most) + 0.5);
	unsigned n = noisiest <= ADVICE_FEW_STREAMS ? between : noisiest;

	if ((a->warnings & ~no_help) == 0)
		return 0;
	if (a->warnings & ADVICE_WARN_CLOSE_LEVELS)
		n = a->fit.most < 8 ? 10 : 1;
	else if ((a->warnings & ADVICE_WARN_NO_CONGESTION) ||
	    ((a->warnings & ADVICE_WARN_OUTSIDE) && !(a->warnings & shape)))
		n = a->streams < 3 * a->fit.most ? a->streams : 3 * a->fit.most;
	else if ((a->warnings & (shape | ADVICE_WARN_RIVAL)) &&
	    (was_probed(p, count, a->streams) || a->streams > a->fit.most))
		n = between;
	else if (a->warnings & (shape | ADVICE_WARN_RIVAL))
		n = a->streams;
	if (was_probed(p, count, n))
		n = noisiest;
	return n < o->max_streams ? n : o->max_streams;
}

static int advice_check(const struct advice_opts *o, struct ptcp_err *e)
{
	if (!(o->budget_ratio >= 0 && o->budget_ratio <= 1))
		return err_set(e, PTCP_EUSAGE, "impact budget %g %%: must be 0 to 100",
		    o->budget_ratio * 100);
	if (!(o->min_gain_ratio >= 0) || !isfinite(o->min_gain_ratio))
		return err_set(e, PTCP_EUSAGE, "minimum gain %g %%: must not be negative",
		    o->min_gain_ratio * 100);
	if (o->max_streams < 1 || o->max_streams > ADVICE_STREAMS_MAX)
		return err_set(e, PTCP_EUSAGE, "maximum of %u streams: must be 1 to %u",
		    o->max_streams, ADVICE_STREAMS_MAX);
	return 0;
}

int advice_from_probes(struct advice *out, const struct probe *p, size_t count,
    const struct advice_opts *o, struct ptcp_err *e)
{
	struct advice a = { .budget_ratio = o->budget_ratio };
	unsigned noisiest = 0;
	int r;

	if ((r = advice_check(o, e)) < 0 ||
	    (r = fit_probes_prior(&a.fit, o->model, o->prior_others, p, count, e)) < 0)
		return r;
	a.streams = advice_search(&a.fit, o, &a.limited_by);
	a.throughput_bps = fit_throughput_bps(&a.fit, a.streams);
	a.impact_ratio = fit_impact_ratio(&a.fit, a.streams);
	a.impact_total_ratio = fit_impact_total_ratio(&a.fit, a.streams);
	if ((r = spread(&a, p, count, o, &noisiest, e)) < 0 ||
	    (a.fit.prior_others == 0 && (r = compare_rival(&a, p, count, e)) < 0))
		return r;
	warn(&a, p, count, o);
	advice_set_ranges(&a);
	a.confident = a.warnings == 0 && advice_is_narrow(&a);
	a.next_probe = suggest(&a, p, count, o, noisiest);
	*out = a;
	return 0;
}
