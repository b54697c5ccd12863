/* The stream that yields, at a simulated bottleneck: a queue that the stream and other flows fill, drop-tail. Others
 * are CUBIC-like: each loses 30 % at a loss, and returns to its old rate within seconds, then grows on. */
#include "model/near.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/yield.h"

#define MBIT 1e6
#define TICK_S 0.001
#define SEGMENT_BITS (8 * 1448.0)
#define OTHERS_MAX 10

struct other {
	double rate_bps, before_bps, since_s; /* before: at its last loss */
	bool off;
};

struct link {
	double rate_bps, base_s, queue_s; /* queue_s: the longest */
	double loss_ratio, jitter_s;
	bool delays_acks;
	struct other other[OTHERS_MAX];
	unsigned n;
	/* now: */
	double now_s, backlog_s, sent_bits, delivered_bits, others_bits, lost;
	unsigned random;
};

static double draw(struct link *l)
{
	l->random = l->random * 1103515245u + 12345u;
	return (double)(l->random >> 16 & 0x7fff) / 0x8000;
}

static struct yield y;
static struct link l;

static int setup(void **state)
{
	(void)state;
	y = (struct yield){ .phase = YIELD_START };
	l = (struct link){ .rate_bps = 100 * MBIT, .base_s = 0.058, .queue_s = 0.058, .random = 1 };
	return 0;
}

static void add_others(unsigned n)
{
	l.n = n;
	for (unsigned i = 0; i < n; i++)
		l.other[i] = (struct other){ l.rate_bps / n * (0.7 + 0.05 * i), l.rate_bps / n, i * 0.7, false };
}

/* CUBIC's growth, in rates: the queue lengthens the RTT, and slows windows down alike. */
static double other_bps(const struct other *o)
{
	double k = cbrt(0.3 * o->before_bps / (0.4 * SEGMENT_BITS / l.base_s)), t = o->since_s - k;

	return o->off ? 0 : fmax(o->before_bps + 0.4 * SEGMENT_BITS / l.base_s * t * t * t, SEGMENT_BITS / l.base_s);
}

static void tick(void)
{
	double ours = y.rate_bps, all = ours, room;
	unsigned i;

	for (i = 0; i < l.n; i++) {
		l.other[i].since_s += TICK_S;
		all += l.other[i].rate_bps = other_bps(&l.other[i]) * (l.base_s + 0.0) / (l.base_s + l.backlog_s);
	}
	l.backlog_s += (all / l.rate_bps - 1) * TICK_S;
	room = all > l.rate_bps ? l.rate_bps / all : 1;
	if (l.backlog_s > l.queue_s) {
		l.backlog_s = l.queue_s;
		i = l.n > 0 ? (unsigned)(draw(&l) * l.n) : 0;
		if (l.n > 0 && l.other[i].since_s > l.base_s) {
			l.other[i].before_bps = 0.85 * other_bps(&l.other[i]); /* fast convergence */
			l.other[i].since_s = 0;
		}
		if (draw(&l) < ours / all)
			l.lost++;
	}
	l.backlog_s = fmax(l.backlog_s, 0);
	for (i = 0; i < l.n; i++)
		l.others_bits += l.other[i].rate_bps * room * TICK_S;
	if (draw(&l) < ours * TICK_S / SEGMENT_BITS * l.loss_ratio)
		l.lost++;
	l.delivered_bits += ours * room * TICK_S;
	l.now_s += TICK_S;
}

struct outcome {
	double ours_bps, others_bps;
};

/* The RTT that a step sees is that of one RTT ago. */
static struct outcome pass(double seconds)
{
	double until = l.now_s + seconds, from = l.now_s, ours = l.delivered_bits, others = l.others_bits, at,
	    bits, seen_s, lost;

	while (l.now_s < until) {
		seen_s = l.base_s + l.backlog_s + l.jitter_s * draw(&l);
		if (l.delays_acks)
			seen_s += fmin(2 * SEGMENT_BITS / y.rate_bps, 0.04);
		at = l.now_s;
		bits = l.delivered_bits;
		lost = l.lost;
		while (l.now_s - at < fmax(YIELD_STEP_S, seen_s))
			tick();
		yield_step(&y, &(struct yield_sample){ l.now_s - at, seen_s, l.delays_acks ? l.base_s : 0,
		    (l.delivered_bits - bits) / (l.now_s - at), SEGMENT_BITS, l.lost > lost });
	}
	return (struct outcome){ (l.delivered_bits - ours) / (l.now_s - from),
	    (l.others_bits - others) / (l.now_s - from) };
}

/* 90 % of an idle link, whatever its rate, RTT and queue. */
static void fills_an_idle_link(void **state)
{
	static const struct { double mbps, base_s, queue_s; } links[] = {
		{ 100, 0.058, 0.058 }, { 100, 0.058, 0.003 }, { 10, 0.02, 0.2 }, { 1000, 0.1, 0.01 }, { 20, 0.2, 0.05 },
		    { 300, 0.008, 0.02 },
	};
	size_t i;

	for (i = 0; i < sizeof links / sizeof *links; i++) {
		setup(state);
		l.rate_bps = links[i].mbps * MBIT;
		l.base_s = links[i].base_s;
		l.queue_s = links[i].queue_s;
		pass(10);
		struct outcome r = pass(60);
		printf("# %g Mbit/s, %g ms, %g ms of queue: %.1f %%\n", links[i].mbps, l.base_s * 1e3, l.queue_s * 1e3,
		    100 * r.ours_bps / l.rate_bps);
		assert_true(r.ours_bps >= 0.9 * l.rate_bps);
	}
}

static void jitter_is_no_queue(void **state)
{
	(void)state;
	l.jitter_s = 0.001;
	pass(10);
	assert_true(pass(60).ours_bps >= 0.9 * l.rate_bps);
}

/* Seen on a link of 20 Mbit/s: 40 ms at the least rate, for good. */
static void a_delayed_acknowledgment_is_no_queue(void **state)
{
	(void)state;
	l.delays_acks = true;
	l.rate_bps = 20 * MBIT;
	l.base_s = 0.034;
	y = (struct yield){ .phase = YIELD_WAIT, .hold_s = YIELD_HOLD_MIN_S, .base_s = l.base_s,
		.rate_bps = YIELD_LEAST_SEGMENTS * SEGMENT_BITS / l.base_s };
	pass(10);
	assert_true(pass(60).ours_bps >= 0.9 * l.rate_bps);
}

static void random_loss_is_no_queue(void **state)
{
	(void)state;
	l.loss_ratio = 1e-3;
	pass(10);
	assert_true(pass(60).ours_bps >= 0.9 * l.rate_bps);
}

/* Others lose at most 3 % of what they have without us. */
static void yields_to_others(void **state)
{
	static const struct { unsigned n; double queue_s; } cases[] = { { 1, 0.058 }, { 2, 0.058 }, { 5, 0.058 },
		{ 10, 0.058 }, { 5, 0.2 },
		{ 2, 0.01 }, { 5, 0.01 } };
	double without;
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		setup(state);
		l.queue_s = cases[i].queue_s;
		add_others(cases[i].n);
		y.rate_bps = 0;
		for (l.now_s = 0; l.now_s < 90;) { /* nobody yields yet */
			tick();
			if (l.now_s < 30)
				l.others_bits = 0;
		}
		without = l.others_bits / 60;
		pass(20);
		struct outcome r = pass(60);
		printf("# %u others, %g ms of queue: %.1f Mbit/s without, %.1f with, ours %.1f\n",
		    cases[i].n, l.queue_s * 1e3, without / MBIT, r.others_bps / MBIT, r.ours_bps / MBIT);
		assert_true(r.others_bps >= 0.97 * without);
	}
}

static void leaves_when_others_come(void **state)
{
	unsigned i;

	(void)state;
	assert_true(pass(30).ours_bps >= 0.8 * l.rate_bps);
	add_others(5);
	for (i = 0; i < 5; i++)
		l.other[i].before_bps = 0.15 * l.rate_bps;
	pass(10);
	assert_true(pass(30).ours_bps <= 0.05 * l.rate_bps);
	for (i = 0; i < 5; i++)
		l.other[i].off = true;
	pass(YIELD_HOLD_MAX_S + 5); /* once they have gone for the hold time */
	assert_true(pass(30).ours_bps >= 0.9 * l.rate_bps);
}

/* A burst delays itself in the first steps: a low rate that seemed to fill the path is soon left behind. */
static void a_wrong_start_is_overcome(void **state)
{
	(void)state;
	for (int i = 0; i < 14; i++)
		yield_step(&y, &(struct yield_sample){ 0.06, 0.058 + 0.02 * (i > 2), 0.058, 1.5 * MBIT,
		    SEGMENT_BITS, false });
	assert_int_equal(y.phase, YIELD_WAIT);
	pass(10);
	assert_true(pass(30).ours_bps >= 0.9 * l.rate_bps);
}

static void knows_nothing_without_an_rtt(void **state)
{
	(void)state;
	yield_step(&y, &(struct yield_sample){ 0.1, 0, 0, 0, SEGMENT_BITS, false });
	assert_true(y.rate_bps <= 0);
	yield_step(&y, &(struct yield_sample){ 0.1, 0.1, 0.05, 0, SEGMENT_BITS, false });
	assert_near(y.base_s, 0.05, 1e-9);
	assert_true(y.rate_bps >= YIELD_LEAST_SEGMENTS * SEGMENT_BITS / 0.05);
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(fills_an_idle_link), test(jitter_is_no_queue),
		test(a_delayed_acknowledgment_is_no_queue), test(random_loss_is_no_queue), test(yields_to_others),
		test(leaves_when_others_come),
		test(a_wrong_start_is_overcome), test(knows_nothing_without_an_rtt),
	};

	return cmocka_run_group_tests_name("model/yield", tests, NULL, NULL);
}
