/* Other flows at a bottleneck: recognized in a simulated bottleneck, and the budget that they are left, compared with
 * the shares that all flows have there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/others.h"

#define TICK_S 0.25
#define RTT_S 0.04
#define SEGMENT_BITS (8 * 1448.0)

/* Our streams and those of others have equal shares; ours send at most `limit_bps` in all. */
static struct world {
	double capacity_bps, others, streams, limit_bps;
	double queue_s, buffer_s;    /* now, and the longest */
	double backlog_bits;         /* in the buffers of our senders, beyond the limit */
	double loss_ratio;           /* on the way, beside those of the queue */
	double lost;                 /* parts of segments */
	double starved_ratio;        /* of the time: this host has no processor, and queues at any rate */
	bool growing;                /* streams below the limit of their rates that do not have their share yet */
	double now_s;
	struct others o;
	double level_bps;            /* our rate before the test */
} w;

static void begin(double capacity_bps, double others, double streams)
{
	w = (struct world){ .capacity_bps = capacity_bps, .others = others, .streams = streams, .limit_bps = INFINITY,
		.buffer_s = 0.05 };
}

static double rate_bps(void)
{
	double share = w.capacity_bps * w.streams / (w.streams + w.others);

	return w.backlog_bits > 0 || w.limit_bps >= share ? share : w.limit_bps;
}

/* With others the queue is never short. Alone it grows and drains by the difference of the rates. */
static void fill_queue(double bps)
{
	bool full = w.others > 0 || bps >= w.capacity_bps;

	if (w.others > 0 || w.starved_ratio > 0)
		w.queue_s = w.buffer_s * (0.55 + 0.45 * fmod(w.now_s, 1));
	else if (full)
		w.queue_s = fmin(w.queue_s + 0.5 * TICK_S, w.buffer_s);
	else
		w.queue_s = fmax(0, w.queue_s - TICK_S * (1 - bps / w.capacity_bps));
}

/* The loss at which each flow has its share (Reno), during the half of the time in which the queue overflows. */
static double overflow_ratio(void)
{
	double share = w.others > 0 ? (w.capacity_bps - rate_bps()) / w.others : w.capacity_bps / w.streams;
	double root = 1.22 * SEGMENT_BITS / ((RTT_S + 0.75 * w.buffer_s) * share);

	return fmin(2 * root * root, 0.5);
}

static enum others_event tick(bool may_test)
{
	double bps = rate_bps(), segments = bps * TICK_S / SEGMENT_BITS;
	bool overflows = w.queue_s >= 0.775 * w.buffer_s && (w.others > 0 || bps >= w.capacity_bps);
	struct others_sample s = { .at_s = w.now_s += TICK_S, .interval_s = TICK_S, .rate_bps = bps,
		.streams = w.streams,
		.stream_bps = bps < w.limit_bps || w.growing ? bps / w.streams : 0, .min_rtt_s = RTT_S,
		.segments = segments, .starved = fmod(w.now_s, 5) < 5 * w.starved_ratio };
	enum others_event ev;

	fill_queue(bps);
	s.rtt_s = RTT_S + w.queue_s;
	w.lost += segments * ((overflows ? overflow_ratio() : 0) + w.loss_ratio);
	s.lost = floor(w.lost);
	w.lost -= s.lost;
	w.backlog_bits = isinf(w.limit_bps) ? 0.5 * bps : fmax(0, w.backlog_bits - TICK_S * (bps - w.limit_bps));
	ev = others_add(&w.o, &s, may_test);
	if (ev == OTHERS_BEGIN_TEST) {
		w.level_bps = bps;
		w.limit_bps = OTHERS_TEST_RATIO * bps;
	} else if (ev == OTHERS_FOUND || ev == OTHERS_NOBODY) {
		w.limit_bps = INFINITY;
	}
	return ev;
}

/* The first of the events within the time, or NOTHING. */
static enum others_event wait_for(double seconds, unsigned events)
{
	double until_s = w.now_s + seconds;
	enum others_event ev;

	while (w.now_s < until_s)
		if ((events >> (ev = tick(true)) & 1) != 0)
			return ev;
	return OTHERS_NOTHING;
}

#define ANY_RESULT (1u << OTHERS_FOUND | 1u << OTHERS_NOBODY)

/* ---- Recognition ---- */

static void others_are_found(void **state)
{
	static const double others[] = { 1, 2, 6, 12, 40 }, streams[] = { 1, 4, 10 };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof others / sizeof *others; i++)
		for (k = 0; k < sizeof streams / sizeof *streams; k++) {
			begin(100e6, others[i], streams[k]);
			if (wait_for(16, ANY_RESULT) != OTHERS_FOUND)
				fail_msg("%g streams beside %g others", streams[k], others[i]);
		}
}

/* Alone, queues and losses are our own: a short queue, a long one, and buffers at the senders. */
static void our_own_queue_is_nobody_elses(void **state)
{
	static const double buffer_s[] = { 0.005, 0.05, 0.3, 1 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof buffer_s / sizeof *buffer_s; i++) {
		begin(16e6, 0, 12);
		w.buffer_s = buffer_s[i];
		if (wait_for(20, ANY_RESULT) != OTHERS_NOBODY)
			fail_msg("queue of %g s", buffer_s[i]);
		assert_int_equal(wait_for(15, 1u << OTHERS_BEGIN_TEST), OTHERS_NOTHING); /* not at once again */
		assert_int_equal(wait_for(30, 1u << OTHERS_BEGIN_TEST), OTHERS_BEGIN_TEST);
	}
}

/* Acknowledgments wait for a processor, whatever our rate, and packets are lost meanwhile: nothing is tested, and a
 * test during which that begins finds nobody. */
static void a_starved_host_is_not_others(void **state)
{
	(void)state;
	begin(20e6, 0, 4);
	w.starved_ratio = 1;
	w.loss_ratio = 0.02;
	assert_int_equal(wait_for(60, 1u << OTHERS_BEGIN_TEST), OTHERS_NOTHING);
	begin(20e6, 0, 4);
	assert_int_equal(wait_for(60, 1u << OTHERS_BEGIN_TEST), OTHERS_BEGIN_TEST);
	w.starved_ratio = 0.5;
	w.loss_ratio = 0.02;
	assert_int_equal(wait_for(3, ANY_RESULT), OTHERS_NOBODY); /* and ends early */
	begin(20e6, 4, 4); /* now and then is no excuse */
	w.starved_ratio = 0.1;
	assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
}

/* Paths that keep to their planned rates have neither queue nor losses. */
static void an_empty_link_is_not_tested(void **state)
{
	(void)state;
	begin(100e6, 0, 4);
	w.limit_bps = 90e6;
	assert_int_equal(wait_for(60, ~0u & ~(1u << OTHERS_NOTHING)), OTHERS_NOTHING);
	w.loss_ratio = 0.01; /* random losses */
	assert_int_equal(wait_for(60, ~0u & ~(1u << OTHERS_NOTHING)), OTHERS_NOTHING);
}

static void tests_wait_until_permitted(void **state)
{
	int i;

	(void)state;
	begin(100e6, 6, 4);
	for (i = 0; i < 40; i++)
		assert_int_equal(tick(false), OTHERS_NOTHING);
	assert_int_equal(tick(true), OTHERS_BEGIN_TEST);
}

static void others_that_leave_are_noticed(void **state)
{
	(void)state;
	begin(100e6, 6, 4);
	assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
	w.limit_bps = 20e6;
	assert_int_equal(wait_for(60, 1u << OTHERS_GONE), OTHERS_NOTHING);
	w.others = 0;
	assert_int_equal(wait_for(15, 1u << OTHERS_GONE), OTHERS_GONE);
	w.others = 6; /* and come back */
	w.limit_bps = INFINITY;
	assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
}

/* Without a report of a kernel nothing is known. */
static void without_rtt_nothing_is_tested(void **state)
{
	struct others_sample s = { .interval_s = TICK_S, .rate_bps = 1e7, .streams = 4, .lost = 7, .segments = 100 };
	struct others o = { .n = 0 };

	(void)state;
	for (s.at_s = 0; s.at_s < 60; s.at_s += TICK_S)
		assert_int_equal(others_add(&o, &s, true), OTHERS_NOTHING);
}

/* ---- The budget ---- */

static void direct_shares_until_each_source_is_done(void **state)
{
	static const struct others_point p[] = { { 8e6, 2 }, { 8e6, 0 } };
	static const struct others_source s[] = { { 0, 1e6 }, { 0, 3e6 }, { 1, 2e6 } };
	double t;

	(void)state;
	/* Two sources and two others have a quarter each for 4 s; then one of three has 2 MB left: 6 s. */
	t = others_direct_s(p, 2, s, 3);
	assert_true(fabs(t - 10) < 1e-9);
	assert_true(fabs(others_direct_s(p, 2, s + 2, 1) - 2) < 1e-9);
	assert_true(others_direct_s(p, 2, s, 0) == 0);
	/* A point without sources may take the budget. */
	assert_true(fabs(others_allowed_bps(p, 1, s, 2, t, 0.1) - 0.8e6) < 1e-3);
	/* 4 MB in 10 s, and a tenth of the capacity. */
	assert_true(fabs(others_allowed_bps(p, 0, s, 3, t, 0.1) - (3.2e6 + 0.8e6)) < 1e-3);
	assert_true(others_allowed_bps(p, 0, s, 3, t, 0) < others_allowed_bps(p, 0, s, 3, t, 0.05));
}

/* Whatever is there, others lose at most 10 points more than under direct. Beside few others the capacity is known too
 * little to be as fast as direct at its best, but nearly so. */
static void the_budget_is_kept(void **state)
{
	static const double others[] = { 2, 4, 8, 16, 32 }, streams[] = { 4, 7, 14 };
	static const struct others_source s[] = { { 0, 20e6 }, { 0, 15e6 }, { 0, 10e6 }, { 0, 25e6 } };
	double direct_s, allowed, loss, before;
	struct others_point judged, truth;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof others / sizeof *others; i++)
		for (k = 0; k < sizeof streams / sizeof *streams; k++) {
			begin(60e6, others[i], streams[k]);
			assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
			assert_int_equal(others_judge(&judged, &w.o), 0);
			truth = (struct others_point){ 60e6, others[i] };
			direct_s = others_direct_s(&judged, 1, s, 4);
			allowed = others_allowed_bps(&judged, 0, s, 4, direct_s, 0.1);
			loss = allowed / truth.capacity_bps;
			before = 70e6 * 8 / others_direct_s(&truth, 1, s, 4) / truth.capacity_bps;
			if (loss > before + 0.11)
				fail_msg("%g streams beside %g others: they lose %.3f instead of %.3f", streams[k],
				    others[i], loss, before);
			/* Many streams beside very few others have almost all: nothing tells how much more a stream of
			 * direct has. */
			if (loss < 0.9 * before && streams[k] <= 4 * others[i])
				fail_msg("%g streams beside %g others: slower than direct, %.3f, %.3f", streams[k],
				    others[i], loss, before);
		}
}

/* Streams whose rates were limited until a moment ago have a small part of their share, although nothing limits them.
 * The others are not many: their losses tell. */
static void growing_streams_are_no_measure_of_others(void **state)
{
	static const struct others_source s[] = { { 0, 20e6 }, { 0, 15e6 }, { 0, 10e6 } };
	const struct others_point truth = { 60e6, 6 };
	double direct = 45e6 * 8 / others_direct_s(&truth, 1, s, 3), allowed;
	struct others_point judged;

	(void)state;
	begin(60e6, 6, 24);
	w.limit_bps = 17e6; /* of 48 */
	w.growing = true;
	assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
	assert_int_equal(others_judge(&judged, &w.o), 0);
	allowed = others_allowed_bps(&judged, 0, s, 3, others_direct_s(&judged, 1, s, 3), 0.1);
	assert_true(allowed >= 0.9 * direct);
	assert_true(allowed <= direct + 0.11 * truth.capacity_bps);
}

/* Until a test is possible, others are suspected; its result settles it for a while. */
static void congestion_is_suspicious(void **state)
{
	int i;

	(void)state;
	begin(60e6, 6, 7);
	assert_false(others_are_suspected(&w.o, w.now_s));
	for (i = 0; i < 12; i++)
		tick(false);
	assert_true(others_are_suspected(&w.o, w.now_s));
	assert_int_equal(wait_for(16, ANY_RESULT), OTHERS_FOUND);
	assert_false(others_are_suspected(&w.o, w.now_s));
	begin(16e6, 0, 12);
	assert_int_equal(wait_for(20, ANY_RESULT), OTHERS_NOBODY);
	assert_false(others_are_suspected(&w.o, w.now_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_found), cmocka_unit_test(our_own_queue_is_nobody_elses),
		cmocka_unit_test(a_starved_host_is_not_others),
		cmocka_unit_test(an_empty_link_is_not_tested), cmocka_unit_test(tests_wait_until_permitted),
		cmocka_unit_test(others_that_leave_are_noticed), cmocka_unit_test(without_rtt_nothing_is_tested),
		cmocka_unit_test(direct_shares_until_each_source_is_done), cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(congestion_is_suspicious),
		cmocka_unit_test(growing_streams_are_no_measure_of_others),
	};

	return cmocka_run_group_tests_name("collect/others", tests, NULL, NULL);
}
