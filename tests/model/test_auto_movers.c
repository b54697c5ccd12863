/* The controller of a striped transfer, whose streams are spread over the hosts of several movers, on sites that are
 * formulas: hosts with a rate each, behind a shared link with or without other flows. A transfer with movers is
 * compared with one without. */
#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/rng.h"
#include "model/stream_control.h"

#define MBIT 1e6
#define STEP_S STREAM_CONTROL_SAMPLE_S
#define SEGMENT_BITS (8.0 * 1448)
#define STREAMS_MOST 32
#define BUDGET 0.10

/* ---- Sites ---- */

struct site {
	unsigned movers;
	double host_bps;          /* of each mover's host */
	double shared_bps;        /* of the link behind all of them, */
	double others;            /* with so many other flows */
	double stream_bps;        /* of each stream at most, by random loss; 0: none */
	double rtt_s, host_queue_s, shared_queue_s;
};

/* Streams of host j, of n in all. */
static unsigned streams_at(const struct site *s, unsigned j, unsigned n)
{
	return n / s->movers + (j < n % s->movers);
}

static double at_host(const struct site *s, unsigned j, unsigned n, double share_bps)
{
	double each = s->stream_bps > 0 ? fmin(share_bps, s->stream_bps) : share_bps;

	return fmin(s->host_bps, streams_at(s, j, n) * each);
}

static double all_hosts(const struct site *s, unsigned n, double share_bps)
{
	double sum = 0;
	unsigned j;

	for (j = 0; j < s->movers; j++)
		sum += at_host(s, j, n, share_bps);
	return sum;
}

/* Of each flow that nothing but the shared link limits. */
static double share(const struct site *s, unsigned n)
{
	double low = 0, high = s->shared_bps, middle;
	unsigned i;

	for (i = 0; i < 60; i++) {
		middle = (low + high) / 2;
		if (all_hosts(s, n, middle) + s->others * middle < s->shared_bps)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static double brings(const struct site *s, unsigned n) { return all_hosts(s, n, share(s, n)); }
static double impact(const struct site *s, unsigned n) { return s->others > 0 ? 1 - share(s, n) / share(s, 1) : 0; }

static bool is_shared_full(const struct site *s, unsigned n)
{
	return s->others > 0 || brings(s, n) > 0.99 * s->shared_bps;
}

static unsigned best(const struct site *s)
{
	unsigned n, most = 1;

	for (n = 1; n <= STREAMS_MOST; n++)
		if (impact(s, n) <= BUDGET + 1e-9 && brings(s, n) > brings(s, most) * (1 + 1e-9))
			most = n;
	return most;
}

/* ---- A transfer ---- */

struct transfer {
	struct site site;
	struct rng rng;
	struct stream_control control;
	double rate_bps, noise;
	double bits, over_s, s;   /* over_s: impact x time beyond the budget */
	double low_bps, second_bits, second_s; /* lowest rate of one second since settle_s, */
	double settle_s;          /* the last change of the site */
	unsigned changes, most;
};

static double queue_s(const struct site *s, unsigned n)
{
	double sum = 0;
	unsigned j, k = 0;

	for (j = 0; j < s->movers; j++)
		if (streams_at(s, j, n) > 0) {
			sum += at_host(s, j, n, share(s, n)) > 0.99 * s->host_bps ? s->host_queue_s : 0;
			k++;
		}
	return sum / k + (is_shared_full(s, n) ? s->shared_queue_s : 0);
}

static struct stream_control_sample observe(struct transfer *t, unsigned n)
{
	const struct site *s = &t->site;
	double sd = is_shared_full(s, n) && s->others > 0 ? 0.1 * pow(8.0 / fmin(n, 8), 0.6) : 0.02,
	    keep = exp(-STEP_S / 2);
	double queue = queue_s(s, n), at = rng_uniform(&t->rng), bps, segments, rtt_s, loss, events;

	t->noise = keep * t->noise + sqrt(1 - keep * keep) * (rng_uniform(&t->rng) - 0.5) * sqrt(12);
	t->rate_bps += (brings(s, n) - t->rate_bps) * (1 - exp(-STEP_S / 0.3));
	bps = fmin(t->rate_bps * exp(sd * t->noise - sd * sd / 2), fmin(s->shared_bps, s->movers * s->host_bps));
	segments = bps * STEP_S / SEGMENT_BITS;
	rtt_s = s->rtt_s + queue * (0.5 + 0.5 * at) + 0.02 * s->rtt_s * at;
	loss = queue > 0 ? fmin(pow(1.22 * SEGMENT_BITS / (rtt_s * bps / n), 2), 0.3) :
	    s->stream_bps > 0 ? evidence_loss_ratio(s->stream_bps, s->rtt_s, SEGMENT_BITS / 8, EVIDENCE_CUBIC) : 0;
	events = fmin(loss * segments, n * fmax(STEP_S / rtt_s, 0.1));
	return (struct stream_control_sample){ STEP_S, bps, true, false, false,
		{ STEP_S, bps * STEP_S / 8, segments, loss * segments, rtt_s,
		    s->rtt_s + (s->others > 0 && is_shared_full(s, n) ? 0.3 * s->shared_queue_s : 0), n * STEP_S,
		    0, events }, 0 };
}

static void begin(struct transfer *t, const struct site *s, uint64_t seed)
{
	struct stream_control_opts o;

	*t = (struct transfer){ .site = *s, .rng = { seed }, .settle_s = 1.5, .low_bps = INFINITY };
	stream_control_opts_init(&o);
	o.budget_ratio = BUDGET;
	o.congestion = ADVICE_CC_CUBIC;
	o.movers = s->movers;
	o.max_streams = s->movers > STREAMS_MOST / STREAM_LEVELS_APART ? STREAM_LEVELS_APART * s->movers : STREAMS_MOST;
	stream_control_init(&t->control, &o);
}

static void pass(struct transfer *t, double seconds)
{
	double until = t->s + seconds;
	struct stream_control_sample x;

	for (; t->s < until - STEP_S / 2; t->s += STEP_S) {
		unsigned n = t->control.streams;

		x = observe(t, n);
		t->bits += x.rate_bps * STEP_S;
		t->over_s += (impact(&t->site, n) - BUDGET) * STEP_S;
		t->most = n > t->most ? n : t->most;
		if (t->s >= t->settle_s) {
			t->second_bits += x.rate_bps * STEP_S;
			t->second_s += STEP_S;
		}
		if (t->second_s > 1 - STEP_S / 2) {
			t->low_bps = fmin(t->low_bps, t->second_bits / t->second_s);
			t->second_bits = t->second_s = 0;
		}
		t->changes += stream_control_add(&t->control, &x);
		if (getenv("V") && (x.interval_s != STEP_S || (unsigned)(t->s * 10 + 0.5) % 20 == 0))
			printf("#> %5.1f s: %2u streams, target %2u, phase %d, others %d, %.0f Mbit/s, impact %.0f %%: "
			    "%s\n", t->s, n,
			    t->control.target, (int)t->control.phase, (int)t->control.advice.others, x.rate_bps / MBIT,
			    100 * impact(&t->site, n), t->control.reason);
	}
}

/* A mover joins or is lost: returns whether the controller probes from scratch. */
static bool change(struct transfer *t, unsigned movers)
{
	t->site.movers = movers;
	t->settle_s = t->s + 1.5;
	t->low_bps = INFINITY;
	t->second_bits = t->second_s = 0;
	return stream_control_movers(&t->control, movers);
}

/* ---- Hosts that are bottlenecks ---- */

static const struct site limited = { 4, 100 * MBIT, 10000 * MBIT, 0, 0, 0.0008, 0.024, 0.002 };

/* No host idles at first, and later at most for the one level that tells whether the hosts are the limit. */
static void every_host_is_used(void **state)
{
	static const unsigned movers[] = { 1, 2, 3, 4, 6, 8, 16, 32 };
	size_t i;
	uint64_t seed;

	(void)state;
	for (i = 0; i < sizeof movers / sizeof *movers; i++)
		for (seed = 1; seed <= 5; seed++) {
			struct site s = limited;
			struct transfer t;
			double early_bps, all_bps;

			s.movers = movers[i];
			all_bps = s.movers * s.host_bps;
			begin(&t, &s, seed);
			pass(&t, 10);
			early_bps = t.low_bps;
			pass(&t, 110);
			if (seed == 1)
				printf("#> %2u hosts of 100 Mbit/s: %4.0f Mbit/s, at first %4.0f in the slowest "
				    "second, ends with %u streams\n",
				    s.movers, t.bits / 120 / MBIT, early_bps / MBIT, t.control.streams);
			assert_true(early_bps > 0.92 * all_bps);
			assert_true(t.bits > 0.94 * 120 * all_bps);
			assert_true(t.control.streams >= s.movers);
		}
}

/* The same on a long path, of which a stream fills a part. */
static void hosts_with_several_streams(void **state)
{
	struct site s = { 4, 100 * MBIT, 10000 * MBIT, 0, 30 * MBIT, 0.05, 0.02, 0.002 };
	struct transfer t;

	(void)state;
	begin(&t, &s, 1);
	pass(&t, 120);
	assert_in_range(t.control.streams, 12, 32);
	assert_true(t.bits > 0.85 * 120 * 400 * MBIT);
}

static void movers_join_and_are_lost(void **state)
{
	struct site s = limited;
	struct transfer t;

	(void)state;
	s.movers = 2;
	begin(&t, &s, 1);
	pass(&t, 40);
	change(&t, 8);
	pass(&t, 40);
	assert_true(t.low_bps > 0.92 * 800 * MBIT);
	change(&t, 5);
	pass(&t, 40);
	assert_true(t.low_bps > 0.92 * 500 * MBIT);
	assert_int_equal(t.control.o.movers, 5);
}

/* ---- A shared link with other flows ---- */

struct outcome { double bps, first, later; }; /* mean impact beyond the budget: of the first minute, and later */

#define SEEDS 2

static struct outcome beside(const struct site *site, unsigned movers)
{
	struct outcome o = { 0 };
	struct site s = *site;
	struct transfer t;
	uint64_t seed;

	s.movers = movers;
	for (seed = 1; seed <= SEEDS; seed++) {
		begin(&t, &s, seed);
		pass(&t, 60);
		o.first += t.over_s / 60 / SEEDS;
		t.over_s = t.bits = 0;
		pass(&t, 240);
		o.later += t.over_s / 240 / SEEDS;
		o.bps += t.bits / 240 / SEEDS;
	}
	printf("#> %u movers, %3.0f others: %5.1f Mbit/s, best %5.1f with %u streams; %+.0f points in the first "
	    "minute, then %+.0f\n", movers, s.others, o.bps / MBIT, brings(&s, best(&s)) / MBIT, best(&s),
	    100 * o.first, 100 * o.later);
	return o;
}

/* Movers change nothing on a link that all streams share. */
static void the_budget_decides(void **state)
{
	static const struct site sites[] = {
		{ 0, 1000 * MBIT, 100 * MBIT, 1, 0, 0.02, 0.005, 0.04 },
		{ 0, 1000 * MBIT, 100 * MBIT, 2, 0, 0.02, 0.005, 0.04 },
		{ 0, 1000 * MBIT, 100 * MBIT, 5, 0, 0.02, 0.005, 0.04 },
		{ 0, 1000 * MBIT, 100 * MBIT, 15, 0, 0.02, 0.005, 0.04 },
		{ 0, 1000 * MBIT, 1000 * MBIT, 40, 0, 0.02, 0.005, 0.04 },
	};
	static const unsigned movers[] = { 2, 4, 8 };
	double delivered[3] = { 0 }; /* over that without movers, on average */
	struct outcome one, o;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof sites / sizeof *sites; i++) {
		one = beside(&sites[i], 1);
		for (k = 0; k < sizeof movers / sizeof *movers; k++) {
			o = beside(&sites[i], movers[k]);
			assert_true(o.first <= fmax(one.first, 0) + 0.08); /* their first levels have more streams */
			assert_true(o.later <= 0.02);
			delivered[k] += o.bps / one.bps / (sizeof sites / sizeof *sites);
		}
	}
	for (k = 0; k < sizeof movers / sizeof *movers; k++)
		assert_true(delivered[k] >= 0.7);
}

/* With fewer streams than movers the number of movers changes nothing. */
static void few_streams_stay(void **state)
{
	struct site s = { 4, 1000 * MBIT, 100 * MBIT, 5, 0, 0.02, 0.005, 0.04 };
	struct transfer t;
	unsigned n;

	(void)state;
	begin(&t, &s, 1);
	pass(&t, 90);
	while (t.control.phase != STREAM_CONTROL_HOLDING || t.control.streams != t.control.target)
		pass(&t, 1);
	n = t.control.streams;
	assert_in_range(n, 1, 3);
	assert_false(change(&t, 6));
	assert_int_equal(t.control.streams, n);
	assert_int_equal(t.control.phase, STREAM_CONTROL_HOLDING);
	assert_true(change(&t, 1)); /* one host may limit them */
	assert_int_equal(t.control.phase, STREAM_CONTROL_PROBING);
	assert_false(t.control.advised);
	assert_true(t.control.spent.second_s > 0 || t.control.spent.second > 0);
}

/* ---- Levels ---- */

static void levels(unsigned movers, unsigned most, bool bbr, unsigned first, unsigned second)
{
	unsigned n[STREAM_LEVELS];

	stream_levels_first(n, movers, most, bbr);
	assert_int_equal(n[0], first);
	assert_int_equal(n[1], second);
}

static void first_levels(void **state)
{
	(void)state;
	levels(1, 32, false, 4, 15);
	levels(0, 32, false, 4, 15);
	levels(1, 10, false, 4, 10);
	levels(1, 4, false, 4, 1);
	levels(1, 3, false, 3, 1);
	levels(1, 32, true, 1, 4);
	levels(2, 32, false, 4, 16);
	levels(3, 32, false, 6, 18);
	levels(4, 32, false, 4, 16);
	levels(8, 32, false, 8, 24);
	levels(16, 32, false, 16, 32);
	levels(32, 32, false, 32, 8);
	levels(40, 32, false, 32, 8);
	levels(40, 128, false, 40, 120);
	levels(8, 32, true, 8, 2); /* one stream would fill one host of eight */
	levels(2, 32, true, 4, 1);
}

static void whole_rounds(void **state)
{
	(void)state;
	assert_int_equal(stream_levels_round(1, 4, 32), 4);
	assert_int_equal(stream_levels_round(4, 4, 32), 4);
	assert_int_equal(stream_levels_round(5, 4, 32), 8);
	assert_int_equal(stream_levels_round(5, 0, 32), 5);
	assert_int_equal(stream_levels_round(31, 5, 32), 32);
	assert_int_equal(stream_levels_round(1, 40, 32), 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_levels), cmocka_unit_test(whole_rounds), cmocka_unit_test(every_host_is_used),
		cmocka_unit_test(hosts_with_several_streams), cmocka_unit_test(movers_join_and_are_lost),
		cmocka_unit_test(the_budget_decides), cmocka_unit_test(few_streams_stay),
	};
	return cmocka_run_group_tests_name("model/auto_movers", tests, NULL, NULL);
}
