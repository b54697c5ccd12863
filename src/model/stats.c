#include "model/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sorted.h"

void stats_of(struct stats *out, const double *x, size_t count)
{
	double sum = 0, squares = 0;
	size_t i;

	memset(out, 0, sizeof *out);
	out->count = count;
	if (count == 0)
		return;
	out->min = out->max = x[0];
	for (i = 0; i < count; i++) {
		sum += x[i];
		out->min = fmin(out->min, x[i]);
		out->max = fmax(out->max, x[i]);
	}
	out->mean = sum / (double)count;
	for (i = 0; i < count; i++)
		squares += (x[i] - out->mean) * (x[i] - out->mean);
	if (count > 1)
		out->sd = sqrt(squares / (double)(count - 1));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void stats_sort(double *x, size_t count)
{
	sort_array(x, count, sizeof *x, by_value);
}

double stats_jain(const double *x, size_t count)
{
	double sum = 0, squares = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares > 0 ? sum * sum / ((double)count * squares) : 1;
}

/* Sum of squared differences from the mean. */
static double scatter(const double *x, size_t count, double *mean)
{
	double sum = 0;
	size_t i;

	*mean = 0;
	for (i = 0; i < count; i++)
		*mean += x[i] / (double)count;
	for (i = 0; i < count; i++)
		sum += (x[i] - *mean) * (x[i] - *mean);
	return sum;
}

/* The cut of a sorted array that maximizes the explained variance: with s the sum of the first i deviations
 * from the mean, the largest s^2 count / (i (count - i)). */
static size_t best_cut(const double *x, size_t count, double mean)
{
	double s = 0, gain, best = -1;
	size_t i, cut = 1;

	for (i = 1; i < count; i++) {
		s += x[i - 1] - mean;
		gain = s * s / ((double)i * (double)(count - i));
		if (gain > best) {
			best = gain;
			cut = i;
		}
	}
	return cut;
}

void stats_clusters(struct clusters *out, double *x, size_t count)
{
	double n = (double)count, total, within, mean, smaller;

	memset(out, 0, sizeof *out);
	out->count = 1;
	if (count < 2)
		return;
	stats_sort(x, count);
	total = scatter(x, count, &mean);
	out->slow = best_cut(x, count, mean);
	within = scatter(x, out->slow, &out->slow_mean) +
	    scatter(x + out->slow, count - out->slow, &out->fast_mean);
	if (!(total > 0))
		return;
	out->explained_ratio = 1 - within / total;
	out->separation = within > 0 && count > 2 ?
	    (out->fast_mean - out->slow_mean) / sqrt(within / (n - 2)) : INFINITY;
	smaller = (double)(out->slow < count - out->slow ? out->slow : count - out->slow);
	if (count >= STATS_CLUSTER_MIN && smaller >= 0.15 * n &&
	    out->explained_ratio >= 0.82 + 0.8 / n && out->separation >= 4.5 &&
	    out->fast_mean >= 1.25 * out->slow_mean)
		out->count = 2;
}

unsigned stats_saturates_at(const unsigned *streams, const double *mean_bps, size_t levels)
{
	size_t i, j;

	for (i = 0; i + 1 < levels; i++) {
		for (j = i + 1; j < levels; j++)
			if (mean_bps[j] >= 1.05 * mean_bps[i])
				break;
		if (j == levels)
			return streams[i];
	}
	return 0;
}

/* ---- Rounds ---- */

static double rates_of(const struct level_run *run, size_t n, double *stream_bps)
{
	double first = INFINITY, last = -INFINITY, bytes = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		first = fmin(first, run[i].start_s);
		last = fmax(last, run[i].end_s);
		bytes += (double)run[i].bytes;
		stream_bps[i] = (double)run[i].bytes * 8 / (run[i].end_s - run[i].start_s);
	}
	return bytes * 8 / (last - first);
}

/* Sorts a copy, to keep the order of the streams. */
static unsigned is_split(const double *stream_bps, size_t n)
{
	double sorted[LEVEL_STREAMS_MAX];
	struct clusters c;

	memcpy(sorted, stream_bps, n * sizeof *sorted);
	stats_clusters(&c, sorted, n);
	return c.count == 2;
}

/* Running mean after the count-th value. */
static double averaged(double mean, double value, unsigned count)
{
	return mean + (value - mean) / count;
}

/* Welford, "Note on a method for calculating corrected sums of squares", 1962. */
static void moments_add(struct moments *m, double value)
{
	double before = m->mean;

	m->min = m->n > 0 ? fmin(m->min, value) : value;
	m->max = m->n > 0 ? fmax(m->max, value) : value;
	m->mean = averaged(before, value, ++m->n);
	m->squares += (value - before) * (value - m->mean);
}

double moments_sd(const struct moments *m)
{
	return m->n > 1 ? sqrt(m->squares / (m->n - 1)) : 0;
}

double level_add(struct level *l, const struct level_run *run, double *stream_bps)
{
	double rate = rates_of(run, l->streams, stream_bps);
	unsigned i;

	l->rounds++;
	moments_add(&l->round_bps, rate);
	for (i = 0; i < l->streams; i++)
		moments_add(&l->stream_bps, stream_bps[i]);
	l->fairness = averaged(l->fairness, stats_jain(stream_bps, l->streams), l->round_bps.n);
	l->split += is_split(stream_bps, l->streams);
	return rate;
}

void level_add_failed(struct level *l)
{
	l->rounds++;
	l->failed++;
}

int level_clusters(const struct level *l)
{
	return 2 * l->split > l->rounds - l->failed ? 2 : 1;
}

unsigned levels_saturate_at(const struct level *l, size_t levels)
{
	unsigned streams[LEVELS_MAX];
	double mean_bps[LEVELS_MAX];
	size_t i, n = 0;

	for (i = 0; i < levels; i++) {
		if (l[i].rounds == l[i].failed)
			continue;
		streams[n] = l[i].streams;
		mean_bps[n++] = l[i].round_bps.mean;
	}
	return stats_saturates_at(streams, mean_bps, n);
}

/* ---- Moving average ---- */

void ewma_add(struct ewma *s, double value, double weight)
{
	double w = fmax(weight, 1.0 / ++s->n), off = value - s->mean;

	s->mean += w * off;
	s->variance = (1 - w) * (s->variance + w * off * off);
	s->squares = (1 - w) * (1 - w) * s->squares + w * w;
}

double ewma_sd(const struct ewma *s)
{
	/* Unbiased variance: divided by 1 - squares. */
	return s->n < 2 || !(s->squares < 1) ? NAN : sqrt(s->variance / (1 - s->squares));
}

double ewma_error(const struct ewma *s)
{
	return ewma_sd(s) * sqrt(s->squares);
}

/* ---- Change detection ---- */

void cusum_init(struct cusum *w, double drift_ratio, double hold_s)
{
	*w = (struct cusum){ log1p(drift_ratio), hold_s * log1p(drift_ratio), 0, 0 };
}

int cusum_add(struct cusum *w, double measured_bps, double predicted_bps, double interval_s)
{
	double ratio = measured_bps / predicted_bps, off;

	off = log(fmin(fmax(ratio, 1 / CUSUM_FACTOR_MAX), CUSUM_FACTOR_MAX));
	w->above = fmax(0, w->above + interval_s * (off - w->slack));
	w->below = fmax(0, w->below + interval_s * (-off - w->slack));
	if (w->above < w->limit_s * (1 - 1e-9) && w->below < w->limit_s * (1 - 1e-9))
		return 0;
	off = w->above - w->below;
	w->above = w->below = 0;
	return off > 0 ? 1 : -1;
}
