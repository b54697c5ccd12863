/* Advice from the mixture of hypotheses (evidence.h), and the ranges of all advice. */
#include <math.h>
#include <stdlib.h>

#include "core/err.h"
#include "model/advice.h"
#include "model/congestion_judge.h"
#include "model/parameters.h"

const char *advice_others_name(enum advice_others o)
{
	return o == ADVICE_OTHERS_NONE ? "none seen" : o == ADVICE_OTHERS_SOME ? "some" : "unknown";
}

/* ---- Ranges ---- */

void advice_set_ranges(struct advice *a)
{
	double factor = exp(ADVICE_RANGE_SD * a->throughput_sd_ratio), off = ADVICE_RANGE_SD * a->impact_sd_ratio;

	a->throughput_low_bps = a->throughput_bps / factor;
	a->throughput_high_bps = a->throughput_bps * factor;
	a->impact_low_ratio = fmax(a->impact_ratio - off, 0);
	a->impact_high_ratio = fmin(a->impact_ratio + off, 1);
}

bool advice_is_narrow(const struct advice *a)
{
	return a->throughput_high_bps <= ADVICE_RANGE_RATIO * a->throughput_low_bps &&
	    a->impact_high_ratio - a->impact_low_ratio <= ADVICE_RANGE_IMPACT;
}

void advice_at(const struct advice *a, unsigned streams, struct advice_point *out)
{
	double bps;

	if (a->measured && streams > a->n_curve)
		streams = a->n_curve;
	if (streams <= a->n_curve) {
		*out = a->curve[streams - 1];
		return;
	}
	bps = fit_throughput_bps(&a->fit, streams);
	*out = (struct advice_point){ bps, bps, bps, .impact_ratio = fit_impact_ratio(&a->fit, streams),
		.impact_total_ratio = fit_impact_total_ratio(&a->fit, streams) };
	out->impact_low_ratio = out->impact_high_ratio = out->impact_ratio;
}

/* ---- The answer ---- */

static void draw_curve(struct advice *a, const struct belief *b, const struct advice_opts *o)
{
	struct belief_prediction p;
	unsigned n;

	a->n_curve = o->max_streams < ADVICE_CURVE_MAX ? o->max_streams + 1 : ADVICE_CURVE_MAX;
	for (n = 1; n <= a->n_curve; n++) {
		belief_predict(&p, b, n, o->base_streams, o->unseen_flow);
		a->curve[n - 1] = (struct advice_point){ p.throughput_bps.middle, p.throughput_bps.low,
		    p.throughput_bps.high,
			p.mean_impact_ratio, p.impact_ratio.low, p.impact_ratio.high,
			p.total_impact_ratio, p.mean_bps };
	}
}

/* On a path that seems idle, the range is that of the flow that the options suppose: the expected impact keeps the
 * budget. */
static bool keeps_budget(const struct advice *a, const struct advice_opts *o, unsigned streams, double budget_ratio)
{
	const struct advice_point *p = &a->curve[streams - 1];

	return p->impact_ratio <= budget_ratio && (p->impact_high_ratio <= budget_ratio + ADVICE_OVER_BUDGET ||
	    (o->unseen_flow && a->seems_idle));
}

/* Most streams with a gain, each over the stream before, up to the resolution of the predictions. */
static unsigned most_with_gain(const struct advice *a, const struct advice_opts *o, unsigned max)
{
	unsigned n = 1;

	while (n < max && a->curve[n - 1].mean_bps < ADVICE_RESOLUTION * a->curve[max - 1].mean_bps &&
	    a->curve[n].mean_bps >= a->curve[n - 1].mean_bps * (1 + o->min_gain_ratio))
		n++;
	return n;
}

unsigned advice_for_budget(const struct advice *a, const struct advice_opts *o, double budget_ratio,
    enum advice_limit *limited_by)
{
	unsigned max = o->max_streams < a->n_curve ? o->max_streams : a->n_curve, by_gain, n;
	struct advice_opts with = *o;

	if (max == 0) {
		with.budget_ratio = budget_ratio;
		return advice_search(&a->fit, &with, limited_by);
	}
	by_gain = most_with_gain(a, o, max);
	for (n = 1; n < by_gain && keeps_budget(a, o, n + 1, budget_ratio); n++)
		;
	if (n < by_gain)
		*limited_by = ADVICE_BY_IMPACT;
	else if (n == max)
		*limited_by = ADVICE_BY_MAX;
	else
		*limited_by = a->curve[n - 1].mean_bps >= ADVICE_RESOLUTION * a->curve[max - 1].mean_bps ?
		    ADVICE_BY_SATURATED : ADVICE_BY_GAIN;
	return n;
}

unsigned advice_fastest(const struct advice *a, unsigned max_streams, struct advice_point *out)
{
	enum advice_limit limited_by;
	struct advice_opts o;
	unsigned n;

	advice_opts_init(&o);
	o.max_streams = max_streams;
	n = advice_for_budget(a, &o, 1, &limited_by);
	advice_at(a, n, out);
	return n;
}

static void take_answer(struct advice *a, const struct advice_opts *o)
{
	const struct advice_point *p;

	a->streams = advice_for_budget(a, o, o->budget_ratio, &a->limited_by);
	p = &a->curve[a->streams - 1];
	a->throughput_bps = p->throughput_bps;
	a->throughput_low_bps = p->throughput_low_bps;
	a->throughput_high_bps = p->throughput_high_bps;
	a->impact_ratio = p->impact_ratio;
	a->impact_low_ratio = p->impact_low_ratio;
	a->impact_high_ratio = p->impact_high_ratio;
	a->impact_total_ratio = p->impact_total_ratio;
	a->streams_low = a->streams_high = a->streams;
	a->throughput_sd_ratio = log(p->throughput_high_bps / p->throughput_low_bps) / (2 * ADVICE_RANGE_SD);
	a->impact_sd_ratio = (p->impact_high_ratio - p->impact_low_ratio) / (2 * ADVICE_RANGE_SD);
}

/* ---- Measured rates ---- */

static struct advice_point measured_point(const struct probe *p, size_t count, unsigned n)
{
	double error_ratio, bps = probe_between(p, count, n, &error_ratio);
	double factor = exp(ADVICE_RANGE_SD * hypot(error_ratio, PREDICT_FUTURE_ALONE_SD));

	return (struct advice_point){ .throughput_bps = bps, .throughput_low_bps = bps / factor,
		.throughput_high_bps = bps * factor, .mean_bps = bps };
}

/* Behind a policer that nobody shares, rates follow no share of a link, and nobody loses what the streams gain: the
 * answer is what was measured, without impact. */
static void take_measured(struct advice *a, const struct probe *p, size_t count)
{
	unsigned n, most = 1;
	size_t i;

	for (i = 0; i < count; i++)
		most = p[i].streams > most ? p[i].streams : most;
	a->n_curve = most < a->n_curve ? most : a->n_curve;
	for (n = 1; n <= a->n_curve; n++)
		a->curve[n - 1] = measured_point(p, count, n);
	a->measured = true;
	a->others = ADVICE_OTHERS_NONE;
	a->seems_idle = true;
}

/* Names the limit; what it says about competing flows holds before all that losses and queues say. */
static void name_limit(struct advice *a, const struct evidence *seen, const struct belief *b, const struct probe *p)
{
	path_limit_of(&a->path_limit, seen, b->nobody_ratio);
	if (a->path_limit.limit == PATH_LIMIT_POLICER && a->path_limit.alone)
		take_measured(a, p, seen->n);
}

static void warn(struct advice *a, const struct advice_opts *o, const struct evidence *seen, const struct belief *b)
{
	a->warnings = a->path_limit.limit == PATH_LIMIT_POLICER && !a->path_limit.alone ? ADVICE_WARN_PATH : 0;
	a->congestion_advice = NULL;
	if (a->others == ADVICE_OTHERS_UNKNOWN && (!advice_is_narrow(a) || (a->streams > 1 && !a->seems_idle)))
		a->warnings |= ADVICE_WARN_UNSEEN;
	else if (!advice_is_narrow(a))
		a->warnings |= ADVICE_WARN_NOISY;
	if (o->congestion == ADVICE_CC_BBR && !a->seems_idle) {
		/* What the first stream takes is no part of the impact. */
		if (a->streams > 1)
			a->warnings |= ADVICE_WARN_BBR;
		a->congestion_advice = "cubic";
	}
	if ((o->congestion == ADVICE_CC_CUBIC || o->congestion == ADVICE_CC_RENO) &&
	    congestion_is_random_loss(seen, b, o->max_streams))
		a->congestion_advice = "bbr";
	if (o->congestion == ADVICE_CC_OTHER)
		a->warnings |= ADVICE_WARN_CONGESTION;
	a->confident = a->warnings == 0;
}

static bool was_probed(const struct evidence *ev, unsigned streams)
{
	size_t i;

	for (i = 0; i < ev->n; i++)
		if (ev->level[i].probe.streams == streams)
			return true;
	return false;
}

/* One stream beside competing flows has the least certain rate, and all impact is relative to it. No probe of ours
 * shows a flow that cannot be seen. */
static unsigned next_level(const struct advice *a, const struct evidence *ev)
{
	if (a->confident || (a->seems_idle && a->warnings == ADVICE_WARN_UNSEEN &&
	    a->throughput_high_bps <= ADVICE_RANGE_RATIO * a->throughput_low_bps))
		return 0;
	return !was_probed(ev, 1) ? 1 : !was_probed(ev, a->streams) ? a->streams : 0;
}

static enum evidence_growth growth_of(enum advice_congestion c)
{
	return c == ADVICE_CC_BBR ? EVIDENCE_MODEL : c == ADVICE_CC_RENO ? EVIDENCE_RENO : EVIDENCE_CUBIC;
}

int advice_from_evidence(struct advice *out, const struct evidence *ev, const struct advice_opts *o,
    struct ptcp_err *e)
{
	struct evidence seen = *ev;
	struct probe probes[EVIDENCE_LEVELS_MAX];
	struct belief *b;
	struct advice a;
	size_t i;
	int r;

	for (i = 0; i < ev->n; i++)
		probes[i] = ev->level[i].probe;
	if ((r = advice_from_probes(&a, probes, ev->n, o, e)) < 0)
		return r;
	if ((b = malloc(sizeof *b)) == NULL)
		return err_nomem(e);
	seen.growth = growth_of(o->congestion);
	if (belief_of(b, &seen) == 0) {
		a.seems_idle = b->nobody_ratio >= ADVICE_NOBODY_RATIO;
		a.others = b->nobody_ratio <= ADVICE_SOMEBODY_RATIO ? ADVICE_OTHERS_SOME :
		    a.seems_idle && (!o->unseen_flow || belief_none_ratio(b) >= ADVICE_NONE_RATIO) ?
		    ADVICE_OTHERS_NONE : ADVICE_OTHERS_UNKNOWN;
		draw_curve(&a, b, o);
		name_limit(&a, &seen, b, probes);
		take_answer(&a, o);
		warn(&a, o, &seen, b);
		a.next_probe = next_level(&a, ev);
	}
	free(b);
	*out = a;
	return 0;
}
