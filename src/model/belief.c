#include <math.h>

#include "model/evidence.h"
#include "model/parameters.h"
#include "model/stats.h"

static double prior(enum evidence_kind k)
{
	const double of[EVIDENCE_KINDS] = { BELIEF_PRIOR_NOBODY, BELIEF_PRIOR_NOBODY_LIMITED, BELIEF_PRIOR_OTHERS,
		BELIEF_PRIOR_OTHERS_LIMITED, BELIEF_PRIOR_ALL_LIMITED };

	return of[k];
}

#define PI 3.14159265358979
#define NEGLIGIBLE 7.0     /* logarithm of the ratio to the largest weight */

#ifdef PARAMETERS_VARY
unsigned belief_without;
#endif

/* ---- Grid ---- */

#define N_CAPACITIES 26
#define N_CONTENDERS 24
#define N_LIMITS 10

/* Over the largest rate seen: from slightly below (a burst may exceed the capacity) to four times. */
static double capacity_ratio(unsigned i)
{
	return exp(-0.04 + 0.045 * i + 0.0008 * i * i);
}

static double contenders(unsigned i, const struct evidence *e)
{
	return (e->growth == EVIDENCE_MODEL ? 0.04 : 0.25) * pow(1.27, i);
}

/* Limit of each stream over the largest rate per stream seen. */
static double limit_ratio(unsigned i)
{
	return exp(-0.15 + 0.1 * i + 0.02 * i * i);
}

/* ---- Likelihoods, as logarithms ---- */

/* The square of a deviation, and its logarithm: a root for each of 10,000 hypotheses took a fifth of a judgment. */
struct variance {
	double square, log;
};

static struct variance variance(double square)
{
	return (struct variance){ square, log(square) };
}

static double square(double sd)
{
	return sd * sd;
}

static double tailed(double off, struct variance v, double tail)
{
	return -(tail + 1) / 2 * log1p(off * off / (v.square * tail)) - v.log / 2;
}

static double unit(double x)
{
	return fmin(fmax(x, 0), 1);
}

#define SEGMENT_BYTES 1448

/* Streams beside competing flows need several cycles to reach a fair share. Logarithm of the share over the mean rate
 * of the level: on 22 paths 0.1 in the median, but 0.3 to 1.5 with windows whose cycles last 4 s and more. */
static double expected_lag(const struct belief_point *p, const struct evidence *e, const struct evidence_level *l,
    double expected_bps)
{
	double cycle;

	if (!BELIEF_HAS(BELIEF_TERM_LAG) || !belief_has_others(p) || p->kind == EVIDENCE_ALL_LIMITED ||
	    e->growth == EVIDENCE_MODEL || l->rtt_s <= 0 || !(l->time_s > 0))
		return 0;
	cycle = evidence_cycle_s(expected_bps / l->probe.streams, l->rtt_s, SEGMENT_BYTES, e->growth);
	return fmin(fmax(BELIEF_LAG_SLOPE * (cycle - BELIEF_LAG_FROM_S) / l->time_s, 0), BELIEF_LAG_MOST);
}

/* The longest queue of the evidence, or 0 if it cannot be distinguished from noise. */
static double longest_queue_s(const struct evidence *e)
{
	double queue_s = e->peak_rtt_s - e->base_rtt_s;

	return e->base_rtt_s > 0 && queue_s > 0.02 * e->base_rtt_s && queue_s > 0.0005 ? queue_s : 0;
}

/* The RTT of streams that have converged: a queue that our streams filled while they fell from slow start is empty
 * afterwards, unless the link is full. */
static double converged_rtt_s(const struct belief_point *p, const struct evidence *e, const struct evidence_level *l)
{
	bool fills = p->kind == EVIDENCE_OTHERS || p->kind == EVIDENCE_OTHERS_LIMITED;

	return l->rtt_s <= 0 || e->base_rtt_s <= 0 ? 0 :
	    e->base_rtt_s + (fills ? 1 : belief_point_fullness(p, l->probe.streams)) * (l->rtt_s - e->base_rtt_s);
}

/* Logarithm of the windows over those that the losses explain, if clearly larger: the streams still fall from slow
 * start. */
static double fall(const struct evidence_level *l, double lost_bps, double rtt_s)
{
	double over = lost_bps > 0 ? log(l->probe.throughput_bps * l->rtt_s / (lost_bps * rtt_s)) : 0;

	return BELIEF_HAS(BELIEF_TERM_FALL) && over > BELIEF_FALLING ? over : 0;
}

/* Deviation of a rate from its expectation, as logarithm. What falling streams will have is less, down to what their
 * losses explain. */
static double off_curve(const struct evidence_level *l, double expected_bps, double lost_bps, double rtt_s)
{
	double off = log(l->probe.throughput_bps / expected_bps);

	return off > 0 ? fmax(off - fall(l, lost_bps, rtt_s), 0) : off;
}

/* The rate of the level or, if its streams still fall, of their losses. */
static double settled_bps(const struct evidence_level *l, const struct evidence *e)
{
	double rtt_s = e->base_rtt_s, lost_bps = evidence_loss_bps(l, rtt_s, e->growth);

	return fall(l, lost_bps, rtt_s) > 0 ? fmin(lost_bps, l->probe.throughput_bps) : l->probe.throughput_bps;
}

/* 1: the queue hardly ever emptied after the start of the level, and the link was full; 0: the queue may have
 * emptied. */
static double kept_full(const struct evidence_level *l, const struct evidence *e)
{
	double longest_s = longest_queue_s(e), low_s = l->low_rtt_s - e->base_rtt_s;

	return !BELIEF_HAS(BELIEF_TERM_KEPT) || l->low_rtt_s <= 0 || longest_s == 0 || low_s < BELIEF_BURST_QUEUE_S ||
	    e->growth == EVIDENCE_MODEL ? 0 :
	    unit(low_s / longest_s / BELIEF_KEPT_QUEUE_FROM - 1);
}

/* Facts of a level that no hypothesis changes. */
struct level_errors {
	struct variance alone, beside; /* variances of the rate, on an idle path and beside competing flows */
	struct variance lost;          /* variance of the rate from losses */
	double full;                   /* kept_full() */
	double most;                   /* no hypothesis has more from the rates of this level and the following ones */
};

static void errors_of(struct level_errors *out, const struct evidence *e)
{
	double most = 0;
	size_t i;

	for (i = e->n; i-- > 0;) {
		const struct evidence_level *l = &e->level[i];
		double error = square(probe_error_ratio(&l->probe));

		out[i].alone = variance(error +
		    square(e->growth == EVIDENCE_MODEL ? BELIEF_MODEL_SD : BELIEF_ALONE_SD));
		out[i].beside = e->growth == EVIDENCE_MODEL ? out[i].alone :
		    variance(error + square(BELIEF_SCATTER_PART * fmin(l->lag_ratio, BELIEF_LAG_MAX)) +
		    square(BELIEF_CURVE_SD));
		out[i].lost = variance(square(BELIEF_LOSS_RATE_SD) +
		    (l->loss_events > 0 ? square(BELIEF_EVENTS_SD) / l->loss_events : 0));
		out[i].full = kept_full(l, e);
		most += fmax(-out[i].alone.log / 2, -out[i].beside.log / 2) + fmax(0, -out[i].lost.log / 2);
		out[i].most = most;
	}
}

/* On an idle path, a link that was full carried our segments only. */
static double of_full_link(const struct belief_point *p, const struct evidence_level *l, struct variance alone)
{
	double carried_bps = l->probe.throughput_bps / (1 - fmin(fmax(l->loss_ratio, 0), 0.5));

	return tailed(log(carried_bps / p->capacity_bps), alone, BELIEF_TAIL_ALONE);
}

static double of_rate(const struct belief_point *p, const struct evidence *e, const struct evidence_level *l,
    const struct level_errors *r)
{
	bool others = belief_has_others(p);
	double expected_bps = belief_point_bps(p, l->probe.streams), rtt_s = converged_rtt_s(p, e, l);
	double lost_bps = evidence_loss_bps(l, rtt_s, e->growth), lag = expected_lag(p, e, l, expected_bps), sum;

	sum = tailed(off_curve(l, expected_bps, lost_bps, rtt_s) + lag,
	    !others ? r->alone : lag > 0 ? variance(r->beside.square + square(BELIEF_LAG_SD * lag)) : r->beside,
	    others || e->growth == EVIDENCE_MODEL ? BELIEF_TAIL : BELIEF_TAIL_ALONE);
	if (!others && r->full > 0)
		sum = (1 - r->full) * sum + r->full * of_full_link(p, l, r->alone);
	return BELIEF_HAS(BELIEF_TERM_LOSS_RATE) && lost_bps > 0 ?
	    sum + tailed(log(lost_bps / expected_bps), r->lost, BELIEF_TAIL) : sum;
}

/* Infinitely little if it is less than `least`. */
static double of_rates(const struct belief_point *p, const struct evidence *e, const struct level_errors *r,
    double least)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < e->n; i++) {
		if (sum + r[i].most < least)
			return -INFINITY;
		sum += of_rate(p, e, &e->level[i], &r[i]);
	}
	return sum;
}

static unsigned most_streams(const struct evidence *e)
{
	unsigned most = 0;
	size_t i;

	for (i = 0; i < e->n; i++)
		most = e->level[i].probe.streams > most ? e->level[i].probe.streams : most;
	return most;
}

/* Needs at least one level. */
static const struct evidence_level *fewest(const struct evidence *e)
{
	const struct evidence_level *l = &e->level[0];
	size_t i;

	for (i = 1; i < e->n; i++)
		if (e->level[i].probe.streams < l->probe.streams)
			l = &e->level[i];
	return l;
}

/* Limited streams may never fill the link; then the burst only is a lower bound of the capacity. */
static double of_burst(const struct belief_point *p, const struct evidence *e)
{
	double n = most_streams(e), others = belief_has_others(p) ? BELIEF_BURST_SHARE * p->contenders : 0, off, sd;

	if (!(e->burst_bps > 0))
		return 0;
	off = log(e->burst_bps / (p->capacity_bps * n / (n + others)));
	if (off < 0 && !isinf(p->limit_bps))
		return -log(BELIEF_BURST_LIMITED);
	sd = off < 0 ? BELIEF_BURST_SD_BELOW : BELIEF_BURST_SD_ABOVE;
	return -off * off / (2 * sd * sd) - log((BELIEF_BURST_SD_BELOW + BELIEF_BURST_SD_ABOVE) / 2 * sqrt(2 * PI));
}

/* Density of an exponential distribution on [0, 1]; a large mean makes it uniform. */
static double emptiness(double x, double mean)
{
	return fmin(-x / mean - log(mean * (1 - exp(-1 / mean))), BELIEF_EMPTINESS_MAX);
}

/* Competing flows that fill the link keep a queue, unless it is too short for the cycles of their windows, or for
 * bursts: n flows need 1 / sqrt(n) of the buffer of one flow (Appenzeller, Keslassy and McKeown, Sizing Router Buffers,
 * SIGCOMM 2004). */
static double of_standing_queue(const struct belief_point *p, const struct evidence *e, double queue_s)
{
	double sum = 0, buffered, long_enough = unit(queue_s / (2 * BELIEF_BURST_QUEUE_S) - 1), mean;
	size_t i;

	for (i = 0; i < e->n && BELIEF_HAS(BELIEF_TERM_STANDING); i++) {
		if (e->level[i].rtt_s <= 0)
			continue;
		buffered = queue_s / e->base_rtt_s * sqrt(e->level[i].probe.streams + p->contenders);
		mean = (e->level[i].rtt_s - e->base_rtt_s - BELIEF_BURST_QUEUE_S) / queue_s;
		if (mean < BELIEF_STANDING_RATIO)
			sum += long_enough * unit(buffered) * log(BELIEF_STANDING_LESS);
	}
	return sum;
}

/* Competing flows fill the queue to any length. On an idle path, or losses that limit all flows, it is empty unless the
 * link is full. */
static double of_queue(const struct belief_point *p, const struct evidence *e)
{
	double queue_s = longest_queue_s(e), sum = 0, full, low, mean, rtt_s;
	size_t i;

	if (p->kind == EVIDENCE_OTHERS || p->kind == EVIDENCE_OTHERS_LIMITED)
		return queue_s > 0 ? of_standing_queue(p, e, queue_s) : e->peak_rtt_s > 0 ? log(BELIEF_NO_QUEUE) : 0;
	if (queue_s == 0)
		return 0;
	for (i = 0; i < e->n; i++) {
		rtt_s = converged_rtt_s(p, e, &e->level[i]);
		/* Streams that fall from slow start fill a queue that they will not fill later. */
		if (e->level[i].low_rtt_s <= 0 || fall(&e->level[i], evidence_loss_bps(&e->level[i], rtt_s, e->growth),
		    rtt_s) > 0)
			continue;
		full = belief_point_fullness(p, e->level[i].probe.streams);
		if (full < 1) {
			low = unit((e->level[i].low_rtt_s - e->base_rtt_s) / queue_s);
			mean = unit((e->level[i].rtt_s - e->base_rtt_s - BELIEF_BURST_QUEUE_S) / queue_s);
			/* A short mean queue proves nothing: competing flows may keep it short, too. */
			sum += (1 - full) * (emptiness(low, BELIEF_QUEUE_MEAN) + fmin(emptiness(mean,
			    BELIEF_MEAN_QUEUE_MEAN), 0));
		}
	}
	if (BELIEF_HAS(BELIEF_TERM_IDLE) && e->idle_rtt_s > 0 && belief_point_fullness(p, 0) == 0)
		sum += emptiness(unit((e->idle_rtt_s - e->base_rtt_s) / queue_s), BELIEF_IDLE_MEAN);
	return sum;
}

/* The rate of a stream follows from its loss and RTT, once it has converged, whatever the cause: losses measure the
 * ratio of the rates per stream at two levels even while the rates still change. */
static double of_losses(const struct belief_point *p, const struct evidence *e)
{
	const struct evidence_level *a, *b;
	double sum = 0, lost_a, lost_b, seen, expected;
	size_t i;

	for (i = 1; i < e->n && e->growth != EVIDENCE_MODEL; i++) {
		a = &e->level[i - 1];
		b = &e->level[i];
		if (a->loss_ratio < 0 || b->loss_ratio < 0 || a->rtt_s <= 0 || b->rtt_s <= 0 || !(a->segments > 0) ||
		    !(b->segments > 0) || a->probe.streams == b->probe.streams)
			continue;
		lost_a = a->loss_ratio * a->segments + 0.5;
		lost_b = b->loss_ratio * b->segments + 0.5;
		seen = -BELIEF_LOSS_POWER * log(lost_b / b->segments / (lost_a / a->segments)) -
		    log(b->rtt_s / a->rtt_s);
		expected = log(belief_point_bps(p, b->probe.streams) / b->probe.streams /
		    (belief_point_bps(p, a->probe.streams) / a->probe.streams));
		sum += tailed(seen - expected, variance(square(BELIEF_LOSS_SD) +
		    square(BELIEF_LOSS_POWER) * (1 / lost_a + 1 / lost_b)), BELIEF_TAIL);
	}
	return sum;
}

/* Random loss that limits streams to the supposed rate causes retransmissions at every level, converged or not. */
static double of_missing_losses(const struct belief_point *p, const struct evidence *e)
{
	double sum = 0, rtt_s, lost, expected;
	size_t i;

	if (isinf(p->limit_bps) || e->growth == EVIDENCE_MODEL)
		return 0;
	for (i = 0; i < e->n; i++) {
		const struct evidence_level *l = &e->level[i];

		rtt_s = p->kind == EVIDENCE_OTHERS_LIMITED ? l->rtt_s : e->base_rtt_s;
		lost = l->loss_ratio * l->segments;
		if (l->loss_ratio < 0 || lost >= EVIDENCE_LOSS_EVENTS_MIN || l->window_ratio < 0 ||
		    l->window_ratio > EVIDENCE_LIMITED_MAX || rtt_s <= 0)
			continue;
		expected = BELIEF_LOSSES_PART * fmin(evidence_loss_ratio(p->limit_bps, rtt_s, SEGMENT_BYTES, e->growth),
		    1) * l->segments;
		if (lost < expected) /* Poisson */
			sum -= fmin(expected - lost - (lost > 0 ? lost * log(expected / lost) : 0), BELIEF_MISSING_MAX);
	}
	return sum;
}

static double of_windows(const struct belief_point *p, const struct evidence *e)
{
	size_t i;

	for (i = 0; i < e->n && isinf(p->limit_bps); i++)
		if (e->level[i].window_ratio > BELIEF_WINDOW_LIMITED)
			return log(BELIEF_UNLIMITED_WINDOW);
	return 0;
}

/* Few competing flows rarely are much weaker than our streams, unless ours ignore losses. */
static double of_contenders(const struct belief_point *p, const struct evidence *e)
{
	double below = belief_has_others(p) ? fmin(log(p->contenders / (e->growth == EVIDENCE_MODEL ? 0.1 : 1)), 0) : 0;

	return -below * below / (2 * BELIEF_WEAK_SD * BELIEF_WEAK_SD);
}

/* On an idle path, few streams leave much of the link unused only if the queue is shorter than their bursts: otherwise
 * each loss means that the link was full, and leaves most of the window. */
static double of_unused(const struct belief_point *p, const struct evidence *e)
{
	double packets = longest_queue_s(e) * p->capacity_bps / (8 * SEGMENT_BYTES), over, weight;

	if (p->kind != EVIDENCE_NOBODY || e->growth == EVIDENCE_MODEL || e->n == 0)
		return 0;
	over = fmax(log(p->contenders / (BELIEF_UNUSED_ALONE * fewest(e)->probe.streams)), 0);
	weight = unit((packets - BELIEF_BURST_PACKETS_MIN) / (BELIEF_BURST_PACKETS - BELIEF_BURST_PACKETS_MIN));
	return -weight * over * over / (2 * BELIEF_UNUSED_SD * BELIEF_UNUSED_SD);
}

static double of_all_but_rates(const struct belief_point *p, const struct evidence *e)
{
	return (BELIEF_HAS(BELIEF_TERM_BURST) ? of_burst(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_QUEUE) ? of_queue(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_LOSSES) ? of_losses(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_MISSING) ? of_missing_losses(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_WINDOWS) ? of_windows(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_CONTENDERS) ? of_contenders(p, e) : 0) +
	    (BELIEF_HAS(BELIEF_TERM_UNUSED) ? of_unused(p, e) : 0);
}

/* No hypothesis has more: a density is largest at its mode, and what is no density is at most 0. */
static double most_of_all_but_rates(const struct evidence *e)
{
	return fmax(0, -log(BELIEF_BURST_LIMITED)) +
	    fmax(0, -log((BELIEF_BURST_SD_BELOW + BELIEF_BURST_SD_ABOVE) / 2 * sqrt(2 * PI))) +
	    (double)(e->n + 1) * fmax(0, BELIEF_EMPTINESS_MAX) + (double)e->n * fmax(0, -log(BELIEF_LOSS_SD));
}

/* ---- All hypotheses ---- */

struct weighing {
	const struct evidence *e;
	struct belief *b;
	double most_bps, most_each_bps; /* largest rate seen, and per stream */
	double best;                    /* largest logarithm of a weight so far */
	double most_but_rates;          /* no hypothesis has more from all but its rates */
	struct level_errors errors[EVIDENCE_LEVELS_MAX];
};

/* Adds the point unless its weight is negligible, as that of most is by their rates alone; drops the lighter half if
 * there is no room. */
static void belief_add(struct weighing *w, struct belief_point *p, double share)
{
	struct belief *b = w->b;
	double prior_log = log(prior(p->kind) * share), least = w->best - NEGLIGIBLE - w->most_but_rates;
	size_t i, n;

	p->weight = prior_log + of_rates(p, w->e, w->errors, least - prior_log);
	if (p->weight < least)
		return;
	p->weight += of_all_but_rates(p, w->e);
	w->best = fmax(w->best, p->weight);
	if (p->weight < w->best - NEGLIGIBLE)
		return;
	if (b->n == BELIEF_POINTS_MAX) {
		for (i = n = 0; i < b->n; i++)
			if (b->point[i].weight >= w->best - NEGLIGIBLE)
				b->point[n++] = b->point[i];
		b->n = n;
	}
	if (b->n < BELIEF_POINTS_MAX)
		b->point[b->n++] = *p;
}

static void weigh_kind(struct weighing *w, enum evidence_kind kind)
{
	bool limited = kind != EVIDENCE_NOBODY && kind != EVIDENCE_OTHERS;
	unsigned n_contenders = kind == EVIDENCE_NOBODY_LIMITED ? 1 : kind != EVIDENCE_NOBODY ? N_CONTENDERS :
	    w->e->growth == EVIDENCE_MODEL ? 2 : N_CONTENDERS / 2;
	unsigned n_limits = limited ? N_LIMITS : 1, c, h, l;
	struct belief_point p = { .kind = kind };
	double share = 1.0 / N_CAPACITIES / n_contenders / n_limits;

	for (c = 0; c < N_CAPACITIES; c++) {
		p.capacity_bps = w->most_bps * capacity_ratio(c);
		for (h = 0; h < n_contenders; h++) {
			p.contenders = kind == EVIDENCE_NOBODY_LIMITED || (kind == EVIDENCE_NOBODY && h == 0) ?
			    0.01 : contenders(h, w->e);
			for (l = 0; l < n_limits; l++) {
				p.limit_bps = limited ? w->most_each_bps * limit_ratio(l) : INFINITY;
				/* Alone, half of the links are filled by any number of streams. */
				belief_add(w, &p, kind != EVIDENCE_NOBODY ? share :
				    h == 0 ? 0.5 * n_contenders * share :
				    0.5 * n_contenders / (n_contenders - 1) * share);
			}
		}
	}
}

static void normalize(struct weighing *w)
{
	struct belief *b = w->b;
	double sum = 0, others = 0, logs = 0, unseen = 0, most = fmax(most_streams(w->e), 2);
	size_t i, n = 0;

	for (i = 0; i < b->n; i++) {
		b->point[i].weight = exp(b->point[i].weight - w->best);
		if (b->point[i].weight >= exp(-NEGLIGIBLE)) {
			sum += b->point[i].weight;
			b->point[n++] = b->point[i];
		}
	}
	b->n = n;
	for (i = 0; i < n; i++) {
		struct belief_point *p = &b->point[i];

		p->weight /= sum;
		if (belief_has_others(p)) {
			others += p->weight;
			logs += p->weight * log(p->contenders);
		}
		if (belief_point_impact(p, most) < BELIEF_UNSEEN_IMPACT)
			unseen += p->weight;
	}
	b->nobody_ratio = unseen;
	b->fewest_streams = fewest(w->e)->probe.streams;
	b->most_streams = most_streams(w->e);
	b->contenders = others > 0 ? exp(logs / others) : 0;
}

int belief_of(struct belief *out, const struct evidence *e)
{
	struct weighing w = { .e = e, .b = out, .best = -INFINITY, .most_but_rates = most_of_all_but_rates(e) };
	int kind;
	size_t i;

	w.most_bps = e->burst_bps;
	for (i = 0; i < e->n; i++) {
		const struct probe *x = &e->level[i].probe;

		w.most_bps = fmax(w.most_bps, x->throughput_bps);
		w.most_each_bps = fmax(w.most_each_bps, settled_bps(&e->level[i], e) / x->streams);
	}
	if (e->n == 0 || !(w.most_each_bps > 0))
		return -1;
	errors_of(w.errors, e);
	out->n = 0;
	for (kind = 0; kind < EVIDENCE_KINDS; kind++)
		weigh_kind(&w, (enum evidence_kind)kind);
	normalize(&w);
	return 0;
}
