/* Predictions of a hypothesis and of the mixture: quantiles of throughput and impact (evidence.h). */
#include <math.h>

#include "model/evidence.h"
#include "model/parameters.h"

/* ---- One hypothesis ---- */

/* The smooth minimum of share and limit, (x^-6 + y^-6)^(-1/6), in half of the time that roots take. */
static double smooth_min(double x, double y)
{
	double ratio = x / y, square = ratio * ratio;

	return x * exp2(-log2(1 + square * square * square) / 6);
}

double belief_point_bps(const struct belief_point *p, double streams)
{
	double share_bps = p->capacity_bps * streams / (streams + p->contenders);

	return isinf(p->limit_bps) ? share_bps : smooth_min(share_bps, streams * p->limit_bps);
}

bool belief_has_others(const struct belief_point *p)
{
	return p->kind != EVIDENCE_NOBODY && p->kind != EVIDENCE_NOBODY_LIMITED;
}

/* Rate of each flow if random loss limits all. */
static double each_bps(const struct belief_point *p, double streams)
{
	return smooth_min(p->capacity_bps / (streams + p->contenders), p->limit_bps);
}

/* Part of the capacity that is used, unless competing flows use the rest. */
static double load(const struct belief_point *p, double streams)
{
	return p->kind == EVIDENCE_ALL_LIMITED ? each_bps(p, streams) * (streams + p->contenders) / p->capacity_bps :
	    belief_point_bps(p, streams) / p->capacity_bps;
}

/* Competing flows get what our streams leave, or as much as each of our streams. */
static double left_bps(const struct belief_point *p, double streams)
{
	return p->kind == EVIDENCE_ALL_LIMITED ? each_bps(p, streams) :
	    p->capacity_bps - (streams > 0 ? belief_point_bps(p, streams) : 0);
}

double belief_point_impact(const struct belief_point *p, double streams)
{
	return belief_has_others(p) ? 1 - left_bps(p, streams) / left_bps(p, 1) : 0;
}

double belief_point_fullness(const struct belief_point *p, double streams)
{
	return fmin(fmax((load(p, streams) - PREDICT_EMPTY_LINK) / (PREDICT_FULL_LINK - PREDICT_EMPTY_LINK), 0), 1);
}

/* Random loss or windows may limit one competing flow as they limit each of our streams. The flow then leaves no trace
 * while the link is not full. Probability of such a flow if the hypothesis supposes an idle path, 0 if the fewest
 * streams already fill the link; and the hypothesis with the flow. */
static double belief_unseen_ratio(const struct belief *b, const struct belief_point *p)
{
	return p->kind == EVIDENCE_NOBODY_LIMITED ? PREDICT_UNSEEN * (1 - belief_point_fullness(p, b->fewest_streams)) :
	    0;
}

static struct belief_point belief_beside_unseen(const struct belief_point *p)
{
	struct belief_point beside = *p;

	beside.kind = EVIDENCE_ALL_LIMITED;
	beside.contenders = 1;
	return beside;
}

double belief_full_ratio(const struct belief *b)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < b->n; i++)
		sum += b->point[i].weight * belief_point_fullness(&b->point[i], b->most_streams);
	return sum;
}

double belief_none_ratio(const struct belief *b)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < b->n; i++)
		if (!belief_has_others(&b->point[i]))
			sum += b->point[i].weight * (1 - belief_unseen_ratio(b, &b->point[i])) *
			    belief_point_fullness(&b->point[i], b->most_streams);
	return sum;
}

/* ---- The mixture ---- */

#define BINS 256

/* Quantiles of weighted values in [from, until], from a histogram. */
struct histogram {
	double from, until, weight[BINS];
};

static void histogram_add(struct histogram *h, double x, double weight)
{
	double at = (x - h->from) / (h->until - h->from) * BINS;
	size_t bin = at > 0 ? (size_t)at : 0;

	h->weight[bin < BINS ? bin : BINS - 1] += weight;
}

/* A normal distribution around x, by quantiles. */
static void spread(struct histogram *h, double x, double sd, double weight)
{
	static const double quantile[] = { -1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645 };
	size_t i;

	for (i = 0; i < sizeof quantile / sizeof *quantile; i++)
		histogram_add(h, x + sd * quantile[i], weight / (sizeof quantile / sizeof *quantile));
}

/* Linear within a bin, but the first, which has the values without any impact. */
static double histogram_quantile(const struct histogram *h, double part)
{
	double below = 0;
	size_t i;

	for (i = 0; i < BINS - 1 && below + h->weight[i] < part; i++)
		below += h->weight[i];
	if (i == 0)
		return h->from;
	return h->from + (h->until - h->from) / BINS * ((double)i +
	    fmin(fmax((part - below) / fmax(h->weight[i], 1e-12), 0), 1));
}

static struct belief_range range_of(const struct histogram *h)
{
	return (struct belief_range){ histogram_quantile(h, 0.1), histogram_quantile(h, 0.5),
	    histogram_quantile(h, 0.9) };
}

static void add_impact(struct histogram *h, double taken, bool varies, double weight)
{
	if (varies)
		spread(h, taken, PREDICT_FUTURE_IMPACT_SD * sqrt(taken), weight);
	else
		histogram_add(h, taken, weight);
}

/* Adds the impact of streams that leave competing flows this rate, compared with `base` streams. */
static void add_taken(struct belief_prediction *out, struct histogram *impact, const struct belief_point *p,
    double left, double streams, double base, double weight)
{
	double taken = streams > base ? 1 - left / left_bps(p, base) : 0;

	add_impact(impact, taken, streams > base, weight);
	out->mean_impact_ratio += weight * taken;
	out->total_impact_ratio += weight * (1 - left / left_bps(p, 0));
}

void belief_predict(struct belief_prediction *out, const struct belief *b, double streams, double base,
    bool unseen_flow)
{
	struct histogram rate = { .from = INFINITY, .until = -INFINITY }, impact = { .from = 0, .until = 1 };
	double bps[BELIEF_POINTS_MAX], x[BELIEF_POINTS_MAX]; /* x: logarithms */
	struct belief_range logs;
	size_t i;

	*out = (struct belief_prediction){ .mean_impact_ratio = 0 };
	for (i = 0; i < b->n; i++) {
		double sd = belief_has_others(&b->point[i]) ? 2 * PREDICT_FUTURE_SD : 2 * PREDICT_FUTURE_ALONE_SD;

		bps[i] = belief_point_bps(&b->point[i], streams);
		x[i] = log(bps[i]);
		rate.from = fmin(rate.from, x[i] - sd);
		rate.until = fmax(rate.until, x[i] + sd + 1e-9);
	}
	for (i = 0; i < b->n; i++) {
		const struct belief_point *p = &b->point[i];
		bool others = belief_has_others(p);
		double unseen = unseen_flow ? belief_unseen_ratio(b, p) * p->weight : 0;
		struct belief_point beside;

		spread(&rate, x[i], others ? PREDICT_FUTURE_SD : PREDICT_FUTURE_ALONE_SD, p->weight);
		out->mean_bps += p->weight * x[i];
		if (others)
			add_taken(out, &impact, p, p->kind == EVIDENCE_ALL_LIMITED ? each_bps(p, streams) :
			    p->capacity_bps - bps[i], streams, base, p->weight);
		else
			add_impact(&impact, 0, false, p->weight - unseen);
		if (unseen > 0) {
			beside = belief_beside_unseen(p);
			add_taken(out, &impact, &beside, each_bps(&beside, streams), streams, base, unseen);
		}
	}
	logs = range_of(&rate);
	out->mean_bps = exp(fmin(fmax(out->mean_bps, logs.low), logs.high));
	out->throughput_bps = (struct belief_range){ exp(logs.low), exp(logs.middle), exp(logs.high) };
	out->impact_ratio = range_of(&impact);
}
