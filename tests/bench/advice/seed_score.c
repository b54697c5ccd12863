#include "bench/advice/seed_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantile.h"

static void add(struct samples *s, double x)
{
	if (!isnan(x) && s->n < SEED_SAMPLES_MAX)
		s->x[s->n++] = x;
}

static void count(struct share *s, bool yes)
{
	s->yes += yes;
	s->all++;
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double samples_quantile(struct samples *s, double q)
{
	qsort(s->x, s->n, sizeof *s->x, ascending);
	return s->n > 0 ? quantile(s->x, s->n, q) : NAN;
}

double share_percent(const struct share *s)
{
	return s->all > 0 ? 100.0 * s->yes / s->all : NAN;
}

/* ---- Advice ---- */

static void add_impact(struct seed_score *s, const struct seed_case *c, const struct seed_answer *a)
{
	double impact = seed_impact(c, a->streams, a->congestion);
	bool broken = impact > a->budget_ratio + SEED_BROKEN_RATIO;

	if (c->others > 0 && isnan(impact))
		return;
	if (c->others > 0) {
		count(&s->broken, broken);
		if (a->streams > 1)
			add(&s->impact, fabs(a->impact_ratio - impact));
		if (a->streams > 1 && !isnan(a->impact_low_ratio))
			count(&s->impact_inside, impact >= a->impact_low_ratio && impact <= a->impact_high_ratio);
	}
	if (a->confident)
		count(&s->confident_broken, broken);
}

static void add_answer(struct seed_score *s, const struct seed_case *c, const struct seed_answer *a)
{
	double ours, others, best = seed_best_mbps(c, a->congestion, a->budget_ratio);

	s->answers++;
	s->failed += a->failed;
	s->disturbed += a->disturbed;
	count(&s->confident, a->confident);
	if (a->failed)
		return;
	add(&s->probing_s, a->seconds);
	if (!seed_truth_at(c, a->streams, a->congestion, &ours, &others) || ours <= 0) {
		s->unknown++;
		return;
	}
	add(&s->throughput, fabs(a->mbps / ours - 1));
	add(&s->share, fmin(ours / best, 1));
	if (!isnan(a->low_mbps))
		count(&s->throughput_inside, ours >= a->low_mbps && ours <= a->high_mbps);
	add_impact(s, c, a);
}

/* All predictions; those of one answer, since the budget does not change them. */
static void add_curve(struct seed_score *s, const struct seed_case *c, const struct seed_answer *a)
{
	size_t i;

	for (i = 0; i < c->truths; i++) {
		const struct seed_truth *t = &c->truth[i];
		const struct seed_point *p = &a->curve[t->streams - 1];
		double impact = seed_impact(c, t->streams, t->congestion);

		if (t->streams == 0 || t->streams > a->n_curve || strcmp(t->congestion, a->congestion) != 0)
			continue;
		add(&s->curve, fabs(p->mbps / truth_ours_mbps(t) - 1));
		if (!isnan(p->low_mbps))
			count(&s->curve_inside, truth_ours_mbps(t) >= p->low_mbps &&
			    truth_ours_mbps(t) <= p->high_mbps);
		if (t->streams == 1 || isnan(impact))
			continue;
		add(&s->curve_impact, fabs(p->impact_ratio - impact));
		if (!isnan(p->impact_low_ratio))
			count(&s->curve_impact_inside, impact >= p->impact_low_ratio && impact <= p->impact_high_ratio);
	}
}

/* ---- Transfers ---- */

static double mean_of(const double *x, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

/* Largest impact over any period of SEED_WINDOW_S, or over the whole shorter transfer. */
static double largest_impact(const struct seed_auto *t, double alone_mbps)
{
	size_t window = t->seconds < SEED_WINDOW_S ? t->seconds : SEED_WINDOW_S, i;
	double least = INFINITY;

	for (i = 0; i + window <= t->seconds; i++)
		least = fmin(least, mean_of(t->others_mbps + i, window));
	return 1 - least / alone_mbps;
}

/* What the other flows lose in the worst run of a truth, compared with all runs: they vary by themselves. */
static double worst_run(const struct seed_truth *t)
{
	double least = INFINITY;
	size_t i;

	for (i = 0; i < t->runs; i++)
		least = fmin(least, t->others_mbps[i]);
	return 1 - least / truth_others_mbps(t);
}

static double truth_or_nan(const struct seed_case *c, unsigned streams)
{
	const struct seed_truth *t = seed_truth_of(c, streams, c->congestion);

	return t != NULL ? truth_ours_mbps(t) : NAN;
}

/* What 32 streams deliver, or the best number if fewer fill the link. */
static double most_alone(const struct seed_case *c)
{
	double most = truth_or_nan(c, 32);

	return isnan(most) ? seed_best_mbps(c, c->congestion, INFINITY) : most;
}

/* Whether one stream is held by the receive window: it delivers less than half of the rate. */
static bool is_windowed(const struct seed_case *c)
{
	return c->window_bytes > 0 && c->window_bytes * 8e-3 / c->rtt_ms < c->rate_mbps / 2;
}

/* A transfer whose other flows end after half of the time. */
static void add_change(struct seed_score *s, const struct seed_case *c, const struct seed_auto *t)
{
	size_t from = t->seconds / 2 + SEED_AGAIN_S;

	if (from < t->seconds && c->alone_mbps > 0)
		add(&s->again, mean_of(t->ours_mbps + from, t->seconds - from) / c->alone_mbps);
}

static void add_transfer(struct seed_score *s, const struct seed_case *c, const struct seed_auto *t)
{
	const struct seed_truth *one = seed_truth_of(c, 1, c->congestion);
	double ours = mean_of(t->ours_mbps, t->seconds), best = seed_best_mbps(c, c->congestion, t->budget_ratio);
	double largest;

	s->transfers++;
	s->transfers_failed += t->failed;
	if (t->changes) {
		add_change(s, c, t);
		return;
	}
	if (one == NULL || isnan(best))
		return;
	add(&s->best, ours / best);
	if (seed_best_mbps(c, c->congestion, INFINITY) <= SEED_NO_GAIN * truth_ours_mbps(one))
		add(&s->no_gain, ours / truth_ours_mbps(one));
	if (c->others == 0 && c->loss_percent > 0)
		add(&s->lossy_alone, ours / most_alone(c));
	if (is_windowed(c))
		add(&s->windowed, ours / best);
	if (c->others > 0 && truth_others_mbps(one) > 0) {
		largest = largest_impact(t, truth_others_mbps(one));
		add(&s->excess, largest - t->budget_ratio);
		add(&s->varies, worst_run(one));
		count(&s->within, largest <= t->budget_ratio + SEED_BROKEN_RATIO);
	}
}

/* ---- Truth ---- */

static void add_scatter(struct seed_score *s, const struct seed_case *c, const struct seed_truth *t)
{
	const struct seed_truth *one = seed_truth_of(c, 1, t->congestion);
	size_t i;

	if (t->runs < 2 || t->streams == 0)
		return;
	for (i = 0; i < t->runs; i++) {
		add(t->streams <= 2 ? &s->scatter_few : &s->scatter_many,
		    fabs(t->ours_mbps[i] / truth_ours_mbps(t) - 1));
		if (c->others > 0 && one != NULL && t->streams > 1)
			add(&s->scatter_impact,
			    fabs(t->others_mbps[i] - truth_others_mbps(t)) / truth_others_mbps(one));
	}
}

void seed_score_add(struct seed_score *s, const struct seed_case *c)
{
	unsigned failed = s->failed;
	size_t i;

	s->paths++;
	for (i = 0; i < c->answers; i++)
		add_answer(s, c, &c->answer[i]);
	s->unanswered += s->failed - failed == c->answers;
	if (c->answers > 0 && !c->answer[0].failed)
		add_curve(s, c, &c->answer[0]);
	for (i = 0; i < c->transfers; i++)
		add_transfer(s, c, &c->transfer[i]);
	for (i = 0; i < c->truths; i++)
		add_scatter(s, c, &c->truth[i]);
}
