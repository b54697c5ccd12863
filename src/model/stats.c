#include "model/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	if (count > 1)
		qsort(x, count, sizeof *x, by_value);
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

/* Where to cut a sorted array so that the groups' means explain most: with s
 * the sum of the first i deviations from the mean, that is the largest
 * s^2 count / (i (count - i)). */
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
