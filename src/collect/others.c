#include "collect/others.h"

#include <math.h>
#include <stdlib.h>

#define SEGMENT_BYTES 1448.0

/* ---- Observation ---- */

static const struct others_sample *latest(const struct others *o, size_t back)
{
	return &o->sample[(o->n - 1 - back) % OTHERS_TICKS];
}

/* Means over the last seconds; rtt_s and min_rtt_s of the samples with RTT. low_s: shortest queue. */
static struct others_sample mean_of(const struct others *o, double window_s, double *low_s)
{
	struct others_sample m = { .at_s = 0 };
	const struct others_sample *s;
	double known = 0, free = 0;
	size_t i;

	*low_s = INFINITY;
	for (i = 0; i < o->n && i < OTHERS_TICKS && m.interval_s < window_s - 1e-6; i++) {
		s = latest(o, i);
		m.interval_s += s->interval_s;
		m.rate_bps += s->rate_bps * s->interval_s;
		m.streams += s->streams * s->interval_s;
		m.segments += s->segments;
		m.lost += s->lost;
		if (s->stream_bps > 0) {
			m.stream_bps += s->stream_bps;
			free++;
		}
		if (!(s->rtt_s > 0))
			continue;
		known++;
		m.rtt_s += s->rtt_s;
		m.min_rtt_s += s->min_rtt_s;
		*low_s = fmin(*low_s, s->rtt_s - s->min_rtt_s);
	}
	m.rate_bps /= m.interval_s;
	m.streams /= m.interval_s;
	m.stream_bps /= fmax(free, 1);
	m.rtt_s /= fmax(known, 1);
	m.min_rtt_s /= fmax(known, 1);
	return m;
}

static bool has_queue(const struct others_sample *m)
{
	return m->rtt_s - m->min_rtt_s > fmax(OTHERS_QUEUE_MIN_S, OTHERS_QUEUE_RATIO * m->min_rtt_s);
}

/* Of the samples at hand. */
static bool was_starved(const struct others *o)
{
	size_t i, n = o->n < OTHERS_TICKS ? o->n : OTHERS_TICKS, starved = 0;

	for (i = 0; i < n; i++)
		starved += latest(o, i)->starved;
	return (double)starved > OTHERS_STARVED_RATIO * (double)n;
}

/* Losses without any queue are random. */
static bool is_congested(const struct others *o, double window_s)
{
	double low_s;
	struct others_sample m = mean_of(o, window_s, &low_s);

	if (!(m.rtt_s > 0) || !has_queue(&m) || was_starved(o))
		return false;
	return m.lost > 0 || (o->longest_s > OTHERS_STANDING_S && low_s > OTHERS_STANDING_RATIO * o->longest_s);
}

bool others_are_suspected(const struct others *o, double now_s)
{
	return o->phase == OTHERS_UNKNOWN && o->n >= OTHERS_CONGESTED_TICKS && now_s >= o->until_s &&
	    is_congested(o, OTHERS_CONGESTED_S);
}

static enum others_event begin_test(struct others *o, double now_s)
{
	double low_s;

	o->before = mean_of(o, INFINITY, &low_s);
	o->low_rtt_s = o->before.min_rtt_s + low_s;
	o->phase = OTHERS_TEST;
	o->until_s = now_s + OTHERS_TEST_S;
	o->judged_s = now_s + OTHERS_JUDGED_S;
	o->starved_s = 0;
	return OTHERS_BEGIN_TEST;
}

static double loss_ratio(const struct others_sample *m)
{
	return m->segments > 0 ? m->lost / m->segments : 0;
}

/* Competing flows take the free rate after a while: queue and losses stay. Otherwise both end, a long queue later. */
static enum others_event verdict(const struct others *o, double now_s)
{
	double low_s, any_s;
	struct others_sample queue = mean_of(o, OTHERS_QUEUE_S, &low_s), losses = mean_of(o, OTHERS_LOSSES_S, &any_s);
	bool stands = has_queue(&queue) &&
	    queue.rtt_s - queue.min_rtt_s >= OTHERS_KEPT_QUEUE_RATIO * (o->before.rtt_s - o->before.min_rtt_s);

	if (now_s < o->until_s)
		return now_s >= o->judged_s && !stands && losses.lost == 0 ? OTHERS_NOBODY : OTHERS_NOTHING;
	if (has_queue(&queue) && losses.lost > 0 && loss_ratio(&losses) >= OTHERS_KEPT_LOSS_RATIO *
	    loss_ratio(&o->before))
		return OTHERS_FOUND;
	if (stands && now_s < o->until_s + OTHERS_LONGER_S)
		return OTHERS_NOTHING;
	return stands ? OTHERS_FOUND : OTHERS_NOBODY;
}

static enum others_event add_test(struct others *o, double now_s)
{
	const struct others_sample *s = latest(o, 0);
	enum others_event ev;

	o->starved_s += s->starved ? s->interval_s : 0;
	if (o->starved_s > OTHERS_STARVED_RATIO * OTHERS_TEST_S) /* whatever comes: a test costs rate */
		ev = OTHERS_NOBODY;
	else if ((ev = verdict(o, now_s)) == OTHERS_NOTHING)
		return ev;
	o->phase = ev == OTHERS_FOUND ? OTHERS_SEEN : OTHERS_UNKNOWN;
	o->until_s = now_s + OTHERS_AGAIN_S;
	o->calm_s = 0;
	return ev;
}

enum others_event others_add(struct others *o, const struct others_sample *s, bool may_test)
{
	double low_s;
	struct others_sample m;

	if (!(s->streams > 0)) {
		o->n = 0; /* what flows again later begins from scratch */
		return OTHERS_NOTHING;
	}
	o->sample[o->n++ % OTHERS_TICKS] = *s;
	if (s->rtt_s > 0)
		o->longest_s = fmax(o->longest_s, s->rtt_s - s->min_rtt_s);
	if (o->n < OTHERS_SETTLED_TICKS)
		return OTHERS_NOTHING;
	switch (o->phase) {
	case OTHERS_UNKNOWN:
		return may_test && others_are_suspected(o, s->at_s) ? begin_test(o, s->at_s) : OTHERS_NOTHING;
	case OTHERS_TEST:
		return add_test(o, s->at_s);
	case OTHERS_SEEN:
		m = mean_of(o, OTHERS_CONGESTED_S, &low_s);
		o->calm_s = m.lost > 0 || has_queue(&m) || !(m.rtt_s > 0) ? 0 : o->calm_s + s->interval_s;
		if (o->calm_s < OTHERS_GONE_S)
			break;
		o->phase = OTHERS_UNKNOWN;
		o->until_s = s->at_s;
		return OTHERS_GONE;
	}
	return OTHERS_NOTHING;
}

/* ---- Judgment ---- */

/* Rate of a stream by RTT and loss ratio; 0: unknown. */
static double loss_bps(const struct others_sample *b)
{
	double lost = b->lost + OTHERS_LOSS_ERRORS * sqrt(b->lost);

	return b->lost > 0 && b->rtt_s > 0 ? evidence_stream_bps(lost / b->segments, b->rtt_s, SEGMENT_BYTES,
	    EVIDENCE_RENO) : 0;
}

/* Rate of a stream limited by the bottleneck only. Growing streams, and streams with a rate limit until a moment ago,
 * have less than RTT and losses explain. */
static double free_bps(const struct others_sample *b)
{
	double seen_bps = b->stream_bps > 0 ? b->stream_bps : b->rate_bps / b->streams;

	return fmin(fmax(seen_bps, loss_bps(b)), b->rate_bps);
}

int others_judge(struct others_point *out, const struct others *o)
{
	const struct others_sample *b = &o->before;
	double each_bps = free_bps(b), weight = 0;
	unsigned streams = (unsigned)fmax(1, round(b->rate_bps / each_bps));
	struct belief *belief = malloc(sizeof *belief);
	struct evidence e = { .n = 1, .base_rtt_s = b->min_rtt_s, .peak_rtt_s = b->min_rtt_s + o->longest_s };
	size_t i;

	if (belief == NULL)
		return -1;
	e.level[0] = (struct evidence_level){ .probe = { streams, b->rate_bps, OTHERS_LEVEL_ERROR * b->rate_bps },
		.rtt_s = b->rtt_s, .low_rtt_s = o->low_rtt_s, .segments = b->segments, .window_ratio = -1,
		.loss_ratio = b->segments > 0 ? b->lost / b->segments : -1, .time_s = b->interval_s };
	*out = (struct others_point){ 0, 0 };
	if (belief_of(belief, &e) < 0)
		belief->n = 0;
	for (i = 0; i < belief->n; i++) {
		const struct belief_point *p = &belief->point[i];

		if (!belief_has_others(p))
			continue;
		weight += p->weight;
		out->capacity_bps += p->weight * log(p->capacity_bps);
	}
	out->capacity_bps = weight > 0 ? exp(out->capacity_bps / weight) : 2 * b->rate_bps;
	out->contenders = fmax(0, out->capacity_bps - b->rate_bps) / each_bps;
	free(belief);
	return 0;
}

/* ---- The budget ---- */

/* Duration at one point: unfinished sources share the point with the contenders. */
static double point_direct_s(const struct others_point *p, size_t point, const struct others_source *s, size_t n)
{
	double t = 0, sent = 0, next;
	size_t i, left;

	do {
		for (next = INFINITY, left = i = 0; i < n; i++)
			if (s[i].point == point && s[i].bytes > sent) {
				next = fmin(next, s[i].bytes);
				left++;
			}
		if (left > 0) {
			t += (next - sent) * 8 * ((double)left + p->contenders) / p->capacity_bps;
			sent = next;
		}
	} while (left > 0);
	return t;
}

double others_direct_s(const struct others_point *p, size_t n_points, const struct others_source *s, size_t n)
{
	double most = 0;
	size_t i;

	for (i = 0; i < n_points; i++)
		most = fmax(most, point_direct_s(&p[i], i, s, n));
	return most;
}

double others_allowed_bps(const struct others_point *p, size_t point, const struct others_source *s, size_t n,
    double direct_s, double budget_ratio)
{
	double bytes = 0;
	size_t i;

	for (i = 0; i < n; i++)
		bytes += s[i].point == point ? s[i].bytes : 0;
	return (direct_s > 0 ? bytes * 8 / direct_s : 0) + budget_ratio * p[point].capacity_bps;
}
