#include "model/level_stats.h"

#include <math.h>
#include <string.h>

#include "model/stats.h"

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

/* Two groups? Of a copy, since the order of the streams is kept. */
static unsigned is_split(const double *stream_bps, size_t n)
{
	double sorted[LEVEL_STREAMS_MAX];
	struct clusters c;

	memcpy(sorted, stream_bps, n * sizeof *sorted);
	stats_clusters(&c, sorted, n);
	return c.count == 2;
}

/* The mean of so many values after one more. */
static double averaged(double mean, double value, unsigned count)
{
	return mean + (value - mean) / count;
}

double level_add(struct level *l, const struct level_run *run, double *stream_bps)
{
	double rate = rates_of(run, l->streams, stream_bps), before = l->mean_bps;
	unsigned good = ++l->rounds - l->failed;
	struct stats s;

	stats_of(&s, stream_bps, l->streams);
	/* Welford, "Note on a method for calculating corrected sums of squares", 1962 */
	l->mean_bps = averaged(before, rate, good);
	l->squares += (rate - before) * (rate - l->mean_bps);
	l->min_bps = good > 1 ? fmin(l->min_bps, rate) : rate;
	l->max_bps = fmax(l->max_bps, rate);
	l->per_stream_mean_bps = averaged(l->per_stream_mean_bps, s.mean, good);
	l->fairness = averaged(l->fairness, stats_jain(stream_bps, l->streams), good);
	l->split += is_split(stream_bps, l->streams);
	return rate;
}

void level_add_failed(struct level *l)
{
	l->rounds++;
	l->failed++;
}

double level_sd_bps(const struct level *l)
{
	unsigned good = l->rounds - l->failed;

	return good > 1 ? sqrt(l->squares / (good - 1)) : 0;
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
		mean_bps[n++] = l[i].mean_bps;
	}
	return stats_saturates_at(streams, mean_bps, n);
}
