#include "model/evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/stats.h"

/* ---- Observation ---- */

/* What has arrived in the last `over_s` seconds, per second; 0: the level is shorter. */
static double latest_bytes(const struct evidence_watch *w, double over_s)
{
	double bytes = 0, time_s = 0;
	size_t i = w->n;

	while (i > 0 && time_s < over_s * (1 - 1e-6)) {
		bytes += w->sample[--i].delivered_bytes;
		time_s += w->sample[i].interval_s;
	}
	return time_s >= over_s * (1 - 1e-6) ? bytes / time_s : 0;
}

void evidence_watch_add(struct evidence_watch *w, struct evidence *e, const struct evidence_sample *s)
{
	double least_s;

	if (w->n == STEADY_MAX)
		return;
	w->sample[w->n++] = *s;
	e->burst_bps = fmax(e->burst_bps, 8 * latest_bytes(w, EVIDENCE_BURST_S));
	e->second_bytes = fmax(e->second_bytes, latest_bytes(w, 1));
	if (!(s->rtt_s > 0))
		return;
	e->peak_rtt_s = fmax(e->peak_rtt_s, s->rtt_s);
	least_s = s->min_rtt_s > 0 ? fmin(s->min_rtt_s, s->rtt_s) : s->rtt_s;
	if (!(e->base_rtt_s > 0) || least_s < e->base_rtt_s)
		e->base_rtt_s = least_s;
}

double loss_events_of(struct loss_events *l, double lost_segments, double rtt_s, double interval_s)
{
	double events;

	l->since_s += interval_s;
	if (lost_segments <= 0 || l->since_s < rtt_s)
		return 0;
	events = rtt_s > 0 ? fmax(floor(interval_s / rtt_s), 1) : lost_segments;
	l->since_s = 0;
	return fmin(lost_segments, events);
}

double evidence_cycle_s(double stream_bps, double rtt_s, double segment_bytes, enum evidence_growth growth)
{
	double segments = stream_bps * rtt_s / (8 * segment_bytes), reno_s = segments / 2 * rtt_s;
	double cube = (1 - EVIDENCE_CUBIC_BETA) / EVIDENCE_CUBIC_C * segments;

	return growth == EVIDENCE_RENO || reno_s * reno_s * reno_s < cube ? reno_s : cbrt(cube);
}

double evidence_watch_cycle_s(const struct evidence_watch *w, const struct evidence *e, unsigned streams)
{
	double bytes = 0, segments = 0, time_s = 0;
	size_t i;

	for (i = 0; i < w->n; i++) {
		bytes += w->sample[i].delivered_bytes;
		segments += w->sample[i].sent_segments;
		time_s += w->sample[i].interval_s;
	}
	return bytes > 0 && segments > 0 ?
	    evidence_cycle_s(8 * bytes / time_s / streams, e->base_rtt_s, bytes / segments, EVIDENCE_CUBIC) : 0;
}

/* Duration of a level whose rate scatters as probe_error_ratio() says: the rate of a longer one scatters less. */
#define SCATTER_S PROBE_MANY_S

static double cubic_factor(void)
{
	const double beta = EVIDENCE_CUBIC_BETA;

	return sqrt(sqrt(EVIDENCE_CUBIC_C * (3 + beta) / (4 * (1 - beta))));
}

/* Mean window in segments: RFC 9438, section 5.1, with the power 3/4, and the Reno-friendly region as RFC 5348
 * has it. */
static double response(double loss_ratio, double rtt_s, enum evidence_growth growth)
{
	double reno = sqrt(1.5 / loss_ratio), root = sqrt(rtt_s / loss_ratio);

	return growth == EVIDENCE_RENO ? reno : fmax(reno, cubic_factor() * root * sqrt(root));
}

double evidence_stream_bps(double loss_ratio, double rtt_s, double segment_bytes, enum evidence_growth growth)
{
	return response(loss_ratio, rtt_s, growth) / rtt_s * 8 * segment_bytes;
}

double evidence_loss_ratio(double stream_bps, double rtt_s, double segment_bytes, enum evidence_growth growth)
{
	double window = stream_bps * rtt_s / (8 * segment_bytes), reno = 1.5 / (window * window),
	    ratio = cubic_factor() / window;

	return growth == EVIDENCE_RENO ? reno : fmax(reno, rtt_s * ratio * cbrt(ratio));
}

double evidence_loss_bps(const struct evidence_level *l, double rtt_s, enum evidence_growth growth)
{
	if (growth == EVIDENCE_MODEL || l->loss_events < EVIDENCE_LOSS_EVENTS_MIN ||
	    l->loss_ratio > EVIDENCE_LOSS_RATIO_MAX || rtt_s <= 0 || l->window_ratio > EVIDENCE_LIMITED_MAX)
		return 0;
	return l->probe.streams * evidence_stream_bps(l->loss_events / l->segments, rtt_s, l->segment_bytes, growth);
}

/* Without slow start. */
static void summarize(struct evidence_level *l, const struct evidence_watch *w)
{
	double rtt_s[STEADY_MAX], sum_s = 0, lost = 0, bytes = 0, busy_s = 0, window_s = 0;
	size_t i, n = 0;

	l->segments = l->time_s = l->loss_events = 0;
	for (i = 0; i < w->n; i++)
		l->time_s += w->sample[i].interval_s;
	for (i = w->n / 3; i < w->n; i++) {
		const struct evidence_sample *s = &w->sample[i];

		l->segments += s->sent_segments;
		lost += s->lost_segments;
		l->loss_events += s->loss_events;
		bytes += s->delivered_bytes;
		busy_s += s->busy_s;
		window_s += s->window_s;
		if (s->rtt_s > 0)
			sum_s += rtt_s[n++] = s->rtt_s;
	}
	stats_sort(rtt_s, n);
	l->rtt_s = n > 0 ? sum_s / (double)n : -1;
	l->low_rtt_s = n > 0 ? rtt_s[n / 10] : -1;
	l->loss_ratio = l->segments > 0 ? lost / l->segments : -1;
	l->window_ratio = busy_s > 0 ? window_s / busy_s : -1;
	l->segment_bytes = l->segments > 0 ? bytes / l->segments : 0;
}

/* e->n: there is none. */
static size_t evidence_find(const struct evidence *e, unsigned streams)
{
	size_t i;

	for (i = 0; i < e->n && e->level[i].probe.streams != streams; i++)
		;
	return i;
}

void evidence_add_level(struct evidence *e, const struct evidence_watch *w, unsigned streams,
    const struct steady_result *s, double older_ratio)
{
	struct evidence_level l = { .probe = { streams, s->mean_bps,
		fmax(s->error_bps, EVIDENCE_MIN_ERROR * s->mean_bps) } };
	double lag_before, lag;
	size_t i;

	summarize(&l, w);
	l.lag_ratio = probe_error_ratio(&(struct probe){ streams, s->mean_bps, 0 }) * sqrt(fmin(1,
	    SCATTER_S / l.time_s));
	if (older_ratio > 0 && e->n > 0) {
		probe_lag(&e->level[e->n - 1].probe, &l.probe, older_ratio, &lag_before, &lag);
		l.lag_ratio = hypot(l.lag_ratio, lag);
		e->level[e->n - 1].lag_ratio = hypot(e->level[e->n - 1].lag_ratio, lag_before);
	}
	i = evidence_find(e, streams);
	if (i == EVIDENCE_LEVELS_MAX) {
		memmove(e->level, e->level + 1, (EVIDENCE_LEVELS_MAX - 1) * sizeof *e->level);
		i--;
	} else if (i == e->n) {
		e->n++;
	}
	e->level[i] = l;
}

const char *evidence_text(char out[EVIDENCE_TEXT_BYTES], const struct evidence *e, unsigned streams)
{
	size_t at = evidence_find(e, streams);
	const struct evidence_level *l = &e->level[at];

	out[0] = '\0';
	if (at < e->n)
		snprintf(out, EVIDENCE_TEXT_BYTES, "streams=%u rate_bps=%.0f error_bps=%.0f lag_ratio=%.3f rtt_s=%.6f "
		    "low_rtt_s=%.6f loss_ratio=%.6f segments=%.0f window_ratio=%.3f time_s=%.1f loss_events=%.0f "
		    "segment_bytes=%.0f base_rtt_s=%.6f peak_rtt_s=%.6f idle_rtt_s=%.6f burst_bps=%.0f", streams,
		    l->probe.throughput_bps,
		    l->probe.error_bps, l->lag_ratio, l->rtt_s, l->low_rtt_s, l->loss_ratio, l->segments,
		    l->window_ratio, l->time_s,
		    l->loss_events, l->segment_bytes, e->base_rtt_s, e->peak_rtt_s, e->idle_rtt_s, e->burst_bps);
	return out;
}

double evidence_recovery_s(const struct evidence *e)
{
	const struct evidence_level *l = &e->level[0];

	return e->n == 0 || !(l->rtt_s > 0) || !(l->segment_bytes > 0) ? 0 :
	    evidence_cycle_s(l->probe.throughput_bps / l->probe.streams, l->rtt_s, l->segment_bytes, EVIDENCE_CUBIC);
}

void evidence_drop_level(struct evidence *e, unsigned streams)
{
	size_t i = evidence_find(e, streams);

	if (i < e->n)
		memmove(&e->level[i], &e->level[i + 1], (--e->n - i) * sizeof *e->level);
}
