#include "model/drawn_path.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define RUN_S 120.0
#define WINDOW_S 60
#define SHORT_S 20
#define STEP_S STREAM_CONTROL_SAMPLE_S
#define STEPS 1200
#define SEGMENT_BITS (8.0 * 1448)

/* ---- Paths ---- */

static double between(struct rng *r, double from, double until)
{
	return from * pow(until / from, rng_uniform(r));
}

struct drawn draw_path(uint64_t seed)
{
	struct rng r = { seed * 7919 };
	struct drawn p = { .capacity_bps = between(&r, 5e6, 300e6), .rtt_s = between(&r, 0.005, 0.25) };
	double bdp_s = p.rtt_s, least_s = 25 * SEGMENT_BITS / p.capacity_bps;

	p.queue_s = between(&r, fmin(least_s, 2 * bdp_s), fmax(least_s, 2 * bdp_s));
	p.others = rng_uniform(&r) < 0.3 ? 0 : floor(between(&r, 1, 21));
	p.loss_ratio = rng_uniform(&r) < 0.5 ? 0 : between(&r, 1e-4, 5e-3);
	p.window_bytes = rng_uniform(&r) < 0.8 ? 0 : between(&r, 16e3, 256e3);
	return p;
}

/* RFC 9438: CUBIC, and not less than Reno. */
static double lossy_bps(const struct drawn *p)
{
	double reno = 1.22 / sqrt(p->loss_ratio), cubic = 1.054 * pow(p->rtt_s / p->loss_ratio, 0.75);

	return p->loss_ratio > 0 ? fmax(reno, cubic) * SEGMENT_BITS / p->rtt_s : INFINITY;
}

double drawn_windowed_bps(const struct drawn *p)
{
	return p->window_bytes > 0 ? 8 * p->window_bytes / p->rtt_s : INFINITY;
}

/* Alone, a queue shorter than the bandwidth-delay product leaves the link idle after losses. */
static double fills(const struct drawn *p, double n)
{
	return n / (n + 1.3 * pow(fmax(0, 1 - p->queue_s / p->rtt_s), 2));
}

/* each_bps: what random loss leaves each stream */
static double brings_at(const struct drawn *p, double n, double each_bps)
{
	double share = p->others > 0 ? p->capacity_bps / (n + p->others) : p->capacity_bps * fills(p, n) / n;

	return n * fmin(share, fmin(each_bps, drawn_windowed_bps(p)));
}

double drawn_brings(const struct drawn *p, double n) { return brings_at(p, n, lossy_bps(p)); }

double drawn_leaves(const struct drawn *p, double n)
{
	return fmin(p->capacity_bps - drawn_brings(p, n), p->others * lossy_bps(p));
}

double drawn_impact(const struct drawn *p, double n)
{
	return p->others > 0 ? 1 - drawn_leaves(p, n) / drawn_leaves(p, 1) : 0;
}

static double load(const struct drawn *p, double n)
{
	return (drawn_brings(p, n) + (p->others > 0 ? drawn_leaves(p, n) : 0)) / p->capacity_bps;
}

static bool is_full(const struct drawn *p, double n) { return load(p, n) > 0.93; }

/* Of the longest queue, at a time of a uniform distribution; only a link that carries all it can has a queue all the
 * time. */
static double queued(const struct drawn *p, double n, double at)
{
	return !is_full(p, n) ? 0.02 * at : load(p, n) < 0.99 ? at : 0.5 + 0.5 * at;
}

double drawn_best_bps(const struct drawn *p)
{
	double best = 0;
	unsigned n;

	for (n = 1; n <= DRAWN_STREAMS_MOST; n++)
		if (drawn_impact(p, n) <= DRAWN_BUDGET + 1e-9)
			best = fmax(best, drawn_brings(p, n));
	return best;
}

/* ---- Streams ---- */

#define BACK_OFF 0.3 /* of a window, RFC 9438 */

/* Slow start ends with the first loss, far above the rate that streams keep; each loss brings them nearer to it. */
static void fall(struct drawn_world *w, unsigned n)
{
	const struct drawn *p = w->p;
	double first_bps, kept_bps = lossy_bps(p), step;

	if (p->loss_ratio <= 0) {
		w->each_bps = INFINITY;
		return;
	}
	first_bps = fmax(fmin(SEGMENT_BITS / (2 * p->loss_ratio * p->rtt_s), p->capacity_bps / n), kept_bps);
	if (n > w->started)
		w->each_bps = (w->started * w->each_bps + (n - w->started) * first_bps) / n;
	w->started = n;
	step = BACK_OFF * p->loss_ratio / SEGMENT_BITS * (kept_bps * kept_bps - w->each_bps * w->each_bps) * STEP_S;
	w->each_bps = fmax(w->each_bps + step, kept_bps);
}

/* The time in which the window of a flow of this rate doubles. */
static double cycle_s(const struct drawn *p, double bps, double n)
{
	double rtt_s = p->rtt_s + (is_full(p, n) ? p->queue_s : 0), segments = bps * rtt_s / SEGMENT_BITS;

	return fmin(segments / 2 * rtt_s, cbrt(0.75 * segments));
}

/* Flows that ours have displaced lose at once what ours gain, and grow again by cycles of their windows. */
static void recover(struct drawn_world *w)
{
	const struct drawn *p = w->p;
	double share_bps = drawn_leaves(p, w->n);

	if (share_bps <= w->others_bps)
		w->others_bps = share_bps;
	else
		w->others_bps += (share_bps - w->others_bps) * (1 - exp(-STEP_S / cycle_s(p,
		    share_bps / p->others, w->n)));
}

/* Joining streams reach their share within a cycle of their windows. */
static void advance(struct drawn_world *w, unsigned n)
{
	const struct drawn *p = w->p;
	double tau_s, keep = exp(-STEP_S / 2);

	tau_s = n < w->n ? 0.3 : p->others > 0 && is_full(p, n) ? fmax(cycle_s(p, drawn_brings(p, n) / n, n), 0.5) :
	    0.5;

	fall(w, n);
	w->n += (n - w->n) * (1 - exp(-STEP_S / tau_s));
	if (p->others > 0)
		recover(w);
	w->noise = keep * w->noise + sqrt(1 - keep * keep) * (rng_uniform(&w->r) - 0.5) * sqrt(12);
}

static struct stream_control_sample observe(struct drawn_world *w, unsigned n)
{
	const struct drawn *p = w->p;
	double sd = p->others == 0 || !is_full(p, n) ? 0.03 : n >= 8 ? 0.1 : 0.1 * pow(8.0 / n, 0.6);
	double bps = fmin(brings_at(p, w->n, w->each_bps) * exp(sd * w->noise - sd * sd / 2), p->capacity_bps);
	double segments = bps * STEP_S / SEGMENT_BITS, at = rng_uniform(&w->r);
	double rtt_s = p->rtt_s + p->queue_s * queued(p, w->n, at);
	double congestion = 1.22 * SEGMENT_BITS / (rtt_s * bps / n), loss = p->loss_ratio, events;
	bool windowed = drawn_brings(p, n) > 0.95 * n * drawn_windowed_bps(p);

	if (is_full(p, w->n) && !windowed)
		loss = fmin(fmax(loss, congestion * congestion), 0.3);
	events = fmin(loss * segments, n * fmax(STEP_S / rtt_s, 0.1));
	return (struct stream_control_sample){ STEP_S, bps, true, false, windowed,
		{ STEP_S, bps * STEP_S / 8, segments, loss * segments, rtt_s,
		    p->rtt_s + (is_full(p, n) && p->others > 0 ? 0.3 * p->queue_s : 0), n * STEP_S,
		    windowed ? n * STEP_S : 0, events }, 0 };
}

void drawn_begin(struct drawn_world *w, const struct drawn *p, uint64_t seed)
{
	*w = (struct drawn_world){ .p = p, .r = { seed }, .others_bps = drawn_leaves(p, 1) };
}

struct stream_control_sample drawn_step(struct drawn_world *w, unsigned n)
{
	advance(w, n);
	return observe(w, n);
}

/* ---- Advice ---- */

/* One level of n streams; the streams of the level before continue. */
static void observe_level(struct drawn_world *w, unsigned n, double most_s, struct steady *settle,
    struct evidence_watch *watch, struct evidence *e)
{
	double at_s = 0;

	settle->n = watch->n = 0;
	do {
		struct stream_control_sample x = drawn_step(w, n);

		at_s += STEP_S;
		steady_add(settle, x.rate_bps);
		evidence_watch_add(watch, e, &x.kernel);
	} while (!probe_is_done(settle, at_s, evidence_watch_cycle_s(watch, e, n), most_s));
}

void drawn_evidence(const struct drawn *p, uint64_t seed, struct evidence *out)
{
	static const unsigned levels[] = ADVICE_PROBES;
	static struct evidence_watch watch;
	static struct steady settle;
	struct steady_result r;
	struct drawn_world w;
	size_t i;

	drawn_begin(&w, p, seed);
	*out = (struct evidence){ .idle_rtt_s = p->rtt_s };
	for (i = 0; i < sizeof levels / sizeof *levels; i++) {
		observe_level(&w, levels[i], probe_max_s(levels[i]), &settle, &watch, out);
		assert(steady_result(&r, &settle) == 0);
		evidence_add_level(out, &watch, levels[i], &r, i > 0);
	}
}

void drawn_probe(const struct drawn *p, uint64_t seed, unsigned n, double seconds, struct probe *out)
{
	static struct evidence_watch watch;
	static struct steady settle;
	struct evidence e = { 0 };
	struct steady_result r;
	struct drawn_world w;

	drawn_begin(&w, p, seed);
	observe_level(&w, n, seconds, &settle, &watch, &e);
	assert(steady_result(&r, &settle) == 0);
	probe_of_steady(out, n, &r);
}

/* ---- A transfer ---- */

/* Part of the streams that deliver: none during an outage, and afterwards more and more of them, since each has doubled
 * the time to its next retransmission. */
static double delivering(const struct drawn *p, double at_s)
{
	double since_s = p->outages_every_s > 0 && at_s >= p->outages_every_s ? fmod(at_s,
	    p->outages_every_s) : INFINITY;

	return since_s >= 2 * p->outage_s ? 1 : fmax(since_s - p->outage_s, 0) / p->outage_s;
}

/* What is lost of the streams' segments is retransmitted as the outage ends. */
static void interrupt(struct stream_control_sample *x, double part, unsigned n)
{
	x->kernel.sent_segments = fmax(part * x->kernel.sent_segments, n);
	x->kernel.lost_segments = part > 0 ? 0.3 * x->kernel.sent_segments : n;
	x->kernel.loss_events = n;
	x->kernel.delivered_bytes *= part;
	x->rate_bps *= part;
}

static void judge_first(struct outcome *out, const struct drawn *p, const struct stream_control *s)
{
	struct advice_point told;

	advice_at(&s->advice, s->answer, &told);
	out->throughput_error = log(told.mean_bps / drawn_brings(p, s->answer));
	out->impact_error = told.impact_ratio - drawn_impact(p, s->answer);
}

struct outcome drawn_transfer(const struct drawn *p, uint64_t seed)
{
	struct drawn_world w;
	static double taken[STEPS];
	struct stream_control_opts o;
	struct stream_control s;
	struct outcome out = { .above = -INFINITY, .above_soon = -INFINITY };
	double sum = 0, soon = 0, part;
	size_t i, window = (size_t)(WINDOW_S / STEP_S + 0.5), brief = (size_t)(SHORT_S / STEP_S + 0.5);

	drawn_begin(&w, p, seed);
	stream_control_opts_init(&o);
	o.budget_ratio = DRAWN_BUDGET;
	o.congestion = ADVICE_CC_CUBIC;
	stream_control_init(&s, &o);
	for (i = 0; i < STEPS; i++) {
		unsigned target = s.target;
		struct stream_control_sample x;

		x = drawn_step(&w, s.streams);
		if ((part = delivering(p, (double)i * STEP_S)) < 1)
			interrupt(&x, part, s.streams);
		out.bps += x.rate_bps / (double)STEPS;
		sum += taken[i] = p->others > 0 ? 1 - w.others_bps / drawn_leaves(p, 1) : 0;
		sum -= i >= window ? taken[i - window] : 0;
		soon += taken[i] - (i >= brief ? taken[i - brief] : 0);
		if (i + 1 >= brief)
			out.above_soon = fmax(out.above_soon, soon / (double)brief - DRAWN_BUDGET);
		if (i + 1 >= window)
			out.above = fmax(out.above, sum / (double)window - DRAWN_BUDGET);
		stream_control_add(&s, &x);
		out.changes += s.target != target;
		out.in_outages += s.target != target && part < 1;
		if (s.phase == STREAM_CONTROL_HOLDING)
			assert(stream_path_tries_one(&s) == (s.saves && strncmp(s.reason, "one stream, ", 12) == 0));
		if (s.answer > 0 && out.first == 0) {
			out.first = s.answer;
			out.unsure = s.advice.others == ADVICE_OTHERS_UNKNOWN;
			judge_first(&out, p, &s);
		}
		if (s.answer > 0 && s.phase == STREAM_CONTROL_PROBING)
			out.again = s.target > out.again ? s.target : out.again;
	}
	out.answer = s.answer;
	return out;
}
