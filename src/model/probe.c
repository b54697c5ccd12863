#include "model/probe.h"

#include <math.h>

#include "model/stats.h"

double probe_error_ratio(const struct probe *p)
{
	if (p->error_bps > 0)
		return p->error_bps / p->throughput_bps;
	return p->streams >= 8 ? 0.1 : 0.1 * pow(8.0 / p->streams, 0.6);
}

void probe_of_runs(struct probe *out, unsigned streams, const double *throughput_bps, size_t runs)
{
	struct stats s;
	double prior;

	stats_of(&s, throughput_bps, runs);
	*out = (struct probe){ streams, s.mean, 0 };
	prior = probe_error_ratio(out) * s.mean;
	out->error_bps = sqrt((2 * prior * prior + s.sd * s.sd * (double)(runs - 1)) /
	    (double)(runs + 1) / (double)runs);
}

void probe_of_settled(struct probe *out, unsigned streams, const struct steady_result *s)
{
	*out = (struct probe){ streams, s->mean_bps, 0 };
	out->error_bps = hypot(s->error_bps, probe_error_ratio(out) * s->mean_bps);
}

/* As measured in laboratories: the error is half of the logarithm of what older streams get over
 * younger ones. That streams bring more each with more of them says that the fewer told nothing. */
#define LAG_ERROR 0.5
#define MORE_EACH_ERROR 4.0

static void widen(struct probe *p, double error_ratio)
{
	p->error_bps = hypot(probe_error_ratio(p), error_ratio) * p->throughput_bps;
}

/* Who joined took half of it at least, from who was there before and nobody else: then there is nobody else, and the
 * rate is the link's. One other flow would have had them bring a sixth more. */
static bool is_alone(const struct probe *before, const struct probe *after, double older_ratio)
{
	return fabs(after->throughput_bps / before->throughput_bps - 1) <= PROBE_ALONE_RATIO &&
	    before->streams * older_ratio <= after->streams - before->streams;
}

void probe_grew(struct probe *before, struct probe *after, double older_ratio)
{
	double lag = older_ratio > 1 ? LAG_ERROR * log(older_ratio) : 0;
	double more = log(after->throughput_bps / after->streams * before->streams / before->throughput_bps);

	if (is_alone(before, after, older_ratio)) {
		before->error_bps = PROBE_ALONE_RATIO * before->throughput_bps;
		after->error_bps = PROBE_ALONE_RATIO * after->throughput_bps;
		return;
	}
	widen(after, lag);
	widen(before, hypot(lag, more > 0 ? MORE_EACH_ERROR * more : 0));
}

bool probe_told(const struct steady *s, double elapsed_s)
{
	struct steady_result r;

	if (elapsed_s >= PROBE_MOST_S)
		return true;
	return elapsed_s >= PROBE_LEAST_S && steady_result(&r, s) == 0 &&
	    r.error_bps <= PROBE_STEADY_RATIO * r.mean_bps;
}
