#include "collect/others.h"

#include <math.h>
#include <stdlib.h>

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
		m.sent_bps += s->sent_bps * s->interval_s;
		m.hidden_bps += s->hidden_bps * s->interval_s;
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
	m.sent_bps /= m.interval_s;
	m.hidden_bps /= m.interval_s;
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

/* Losses without any queue are random, unless our streams have less than their rate limits permit: competing flows
 * that were there before us hide their queue in the smallest RTT. */
static bool is_congested(const struct others *o, double window_s)
{
	double low_s;
	struct others_sample m = mean_of(o, window_s, &low_s);

	if (!(m.rtt_s > 0) || was_starved(o))
		return false;
	if (!has_queue(&m))
		return m.lost > 0 && m.stream_bps > 0;
	return m.lost > 0 || (o->longest_s > OTHERS_STANDING_S && low_s > OTHERS_STANDING_RATIO * o->longest_s);
}

bool others_are_suspected(const struct others *o, double now_s)
{
	return o->phase == OTHERS_UNKNOWN && o->n >= OTHERS_CONGESTED_TICKS && now_s >= o->until_s &&
	    is_congested(o, OTHERS_CONGESTED_S);
}

static void set_part(struct others *o, double now_s, bool holds)
{
	o->holds = holds;
	o->fallen = o->drained = holds;
	o->since_s = now_s;
	o->until_s = now_s + (holds ? OTHERS_HOLD_S : OTHERS_DRAIN_MAX_S);
}

static enum others_event begin_test(struct others *o, double now_s)
{
	double low_s;

	o->before = mean_of(o, INFINITY, &low_s);
	o->low_rtt_s = o->before.min_rtt_s + low_s;
	o->before.sent_bps = mean_of(o, OTHERS_CONGESTED_S, &low_s).sent_bps; /* rates still grow */
	o->phase = OTHERS_TEST;
	o->rounds = 0;
	o->starved_s = 0;
	o->level = 1;
	set_part(o, now_s, false);
	return OTHERS_LIMIT;
}

bool others_join(struct others *o, double now_s)
{
	double low_s;
	struct others_sample m;

	if (o->phase != OTHERS_UNKNOWN || o->n < OTHERS_CONGESTED_TICKS / 2)
		return false;
	m = mean_of(o, OTHERS_QUEUE_S, &low_s);
	if (m.rtt_s > 0 && !has_queue(&m) && m.lost == 0 && !(m.stream_bps > 0))
		return false;
	begin_test(o, now_s);
	return true;
}

double others_test_ratio(const struct others *o, bool reported)
{
	return o->level * (o->holds && reported ? OTHERS_HOLD_RATIO : OTHERS_TEST_RATIO);
}

double others_full_bps(const struct others *o)
{
	return o->level * fmax(o->before.rate_bps, o->before.sent_bps + o->before.hidden_bps);
}

static double loss_ratio(const struct others_sample *m)
{
	return m->segments > 0 ? m->lost / m->segments : 0;
}

/* What the latest seconds of a part of the test show. */
struct test_look {
	bool stands;     /* the queue, or losses with a queue */
	bool loses;
	bool whole;      /* the queue is as long as before the test */
	bool has_rate;   /* our flows have the rate of the test */
	bool has_fallen; /* our flows have no more */
};

static struct test_look look(const struct others *o, double window_s)
{
	double low_s;
	struct others_sample m = mean_of(o, window_s, &low_s), b = o->before;
	double due_bps = others_test_ratio(o, true) * b.sent_bps;
	bool loses = m.lost > 0 && loss_ratio(&m) >= OTHERS_KEPT_LOSS_RATIO * loss_ratio(&b);

	return (struct test_look){
		.stands = has_queue(&m) && ((has_queue(&b) &&
		    m.rtt_s - m.min_rtt_s >= OTHERS_KEPT_QUEUE_RATIO * (b.rtt_s - b.min_rtt_s)) || loses),
		.loses = loses,
		.whole = m.rtt_s - m.min_rtt_s >= OTHERS_WHOLE_RATIO * (b.rtt_s - b.min_rtt_s),
		.has_rate = m.sent_bps >= (o->holds ? OTHERS_REGAINED_RATIO : OTHERS_HAS_RATIO) * due_bps,
		.has_fallen = m.sent_bps <= (1 + OTHERS_FALLEN_RATIO) * due_bps };
}

/* Our flows have less than the test lets them have, and the queue stands: the bottleneck became slower. */
static enum others_event begin_again(struct others *o, double now_s)
{
	double low_s;

	if (o->rounds++ == OTHERS_ROUNDS)
		return OTHERS_UNCLEAR;
	o->level = fmin(o->level, mean_of(o, OTHERS_QUEUE_S, &low_s).sent_bps / o->before.sent_bps);
	set_part(o, now_s, false);
	return OTHERS_LIMIT;
}

/* Whether flows without a report of a kernel have fallen, or are few: relays drain slowly, and blocks tell late. */
static bool has_hidden_fallen(const struct others *o, double now_s)
{
	double low_s;
	const struct others_sample *b = &o->before;

	return b->hidden_bps <= OTHERS_HIDDEN_RATIO * b->rate_bps || (now_s >= o->since_s + OTHERS_HIDDEN_S &&
	    mean_of(o, OTHERS_HIDDEN_S, &low_s).hidden_bps <= OTHERS_HIDDEN_FALLEN * b->hidden_bps);
}

/* Part one: the buffers of our senders, and the queue, drain. Competing flows may grow as fast: losses show that
 * the queue does not drain. */
static enum others_event drain(struct others *o, double now_s, const struct others_peers *peers)
{
	struct test_look x = look(o, OTHERS_QUEUE_S), last = look(o, OTHERS_DRAINED_S);
	bool late = now_s >= o->until_s, whole = o->rounds == 0 && x.whole;

	if (now_s < o->since_s + OTHERS_DRAINED_S)
		return OTHERS_NOTHING;
	o->fallen = last.has_fallen;
	o->drained = !last.stands && last.has_fallen;
	if (o->drained && peers->drained) {
		set_part(o, now_s, true);
		return OTHERS_LIMIT;
	}
	if (now_s >= o->since_s + 2 * OTHERS_QUEUE_S && x.stands && last.stands && (x.loses || (late && whole)) &&
	    x.has_fallen && peers->fallen && has_hidden_fallen(o, now_s))
		return x.has_rate && last.has_rate ? OTHERS_FOUND : begin_again(o, now_s);
	return late ? OTHERS_UNCLEAR : OTHERS_NOTHING;
}

/* Part two: queue and losses stay away, or come back. */
static enum others_event hold(struct others *o, double now_s, const struct others_peers *peers)
{
	struct test_look x = look(o, OTHERS_QUEUE_S), last = look(o, OTHERS_DRAINED_S);

	if (now_s < o->since_s + OTHERS_QUEUE_S)
		return OTHERS_NOTHING;
	if (x.stands && last.stands && x.has_fallen && peers->fallen)
		return x.has_rate && last.has_rate ? OTHERS_FOUND : begin_again(o, now_s);
	return now_s < o->until_s ? OTHERS_NOTHING : x.stands ? OTHERS_UNCLEAR : OTHERS_NOBODY;
}

static enum others_event end_test(struct others *o, double now_s, enum others_event ev)
{
	o->phase = ev == OTHERS_FOUND ? OTHERS_SEEN : OTHERS_UNKNOWN;
	o->until_s = now_s + OTHERS_AGAIN_S;
	o->calm_s = 0;
	return ev;
}

void others_disturb(struct others *o, double now_s)
{
	end_test(o, now_s, OTHERS_UNCLEAR);
}

static enum others_event add_test(struct others *o, double now_s, const struct others_peers *peers)
{
	const struct others_sample *s = latest(o, 0);
	enum others_event ev;

	o->starved_s += s->starved ? s->interval_s : 0;
	if (o->starved_s > OTHERS_STARVED_RATIO * OTHERS_TEST_S) /* whatever comes: a test costs rate */
		return end_test(o, now_s, OTHERS_UNCLEAR);
	if ((ev = o->holds ? hold(o, now_s, peers) : drain(o, now_s, peers)) == OTHERS_FOUND && was_starved(o))
		ev = OTHERS_UNCLEAR;
	return ev == OTHERS_NOTHING || ev == OTHERS_LIMIT ? ev : end_test(o, now_s, ev);
}

enum others_event others_add(struct others *o, const struct others_sample *s, bool may_test,
    const struct others_peers *peers)
{
	double low_s;
	struct others_sample m;

	if (!(s->streams > 0)) {
		o->n = 0; /* what flows again later begins from scratch */
		return o->phase == OTHERS_TEST ? end_test(o, s->at_s, OTHERS_UNCLEAR) : OTHERS_NOTHING;
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
		return add_test(o, s->at_s, peers);
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

	return b->lost > 0 && b->rtt_s > 0 ? evidence_stream_bps(lost / b->segments, b->rtt_s,
	    OTHERS_SEGMENT_BITS / 8, EVIDENCE_RENO) : 0;
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
