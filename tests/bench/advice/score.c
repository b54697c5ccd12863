#include "bench/advice/score.h"

#include <math.h>
#include <string.h>

#include "model/stats.h"
#include "quantile.h"

static void add(struct sample *s, double x)
{
	if (s->n < SCORE_MAX)
		s->x[s->n++] = x;
}

static bool is_loss_based(const char *cc)
{
	return strcmp(cc, "reno") == 0 || strcmp(cc, "cubic") == 0;
}

void score_curve(struct score *s, const struct path_case *c, const struct fit *fit)
{
	size_t i;

	for (i = 0; i < c->truths; i++) {
		unsigned n = c->truth[i].streams;
		double error = fit_throughput_bps(fit, n) / (c->truth[i].ours_mbps * 1e6) - 1, miss;

		add(&s->throughput, fabs(error));
		add(&s->signed_error, error);
		add(&s->streams, n);
		if (n == 1 || c->m == 0)
			continue;
		miss = fabs(fit_impact_ratio(fit, n) - case_impact(c, n));
		add(&s->impact, miss);
		if (is_loss_based(c->cc) && is_loss_based(c->cross_cc))
			add(&s->impact_same, miss);
	}
}

void score_answer(struct score *s, const struct path_case *c, unsigned streams, double budget_ratio)
{
	double got, unused, excess;

	case_truth_at(c, streams, &got, &unused);
	excess = case_impact(c, streams) - budget_ratio;
	add(&s->share, fmin(got / case_best_mbps(c, budget_ratio), 1));
	add(&s->excess, excess);
	s->cases++;
	s->broken += excess > SCORE_BROKEN_RATIO;
}

double sample_quantile(const struct sample *s, double q)
{
	static double sorted[SCORE_MAX];

	if (s->n == 0)
		return NAN;
	memcpy(sorted, s->x, s->n * sizeof *sorted);
	stats_sort(sorted, s->n);
	return quantile(sorted, s->n, q);
}

double score_correlation(const struct score *s)
{
	struct stats n, error;
	double sum = 0;
	size_t i;

	stats_of(&n, s->streams.x, s->streams.n);
	stats_of(&error, s->signed_error.x, s->signed_error.n);
	for (i = 0; i < s->streams.n; i++)
		sum += (s->streams.x[i] - n.mean) * (s->signed_error.x[i] - error.mean);
	return sum / (n.sd * error.sd * (double)(s->streams.n - 1));
}
