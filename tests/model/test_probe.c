#include "model/near.h"

#include <string.h>

#include "model/probe.h"
#include "model/rng.h"

/* Slow start doubles until it overshoots, then the rate is what it is. */
static void slow_start_is_left_out(void **state)
{
	struct steady s = { .n = 0 };
	struct steady_result r;
	double rate = 1e6;
	size_t i;

	(void)state;
	for (i = 0; i < 60; i++) {
		steady_add(&s, i < 10 ? rate : 100e6);
		rate *= 1.6;
	}
	assert_int_equal(steady_result(&r, &s), 0);
	assert_in_range(r.skipped, 10, 20);
	assert_near(r.mean_bps, 100e6, 1e-12);
	assert_near(r.error_bps, 0, 0);
}

/* What has settled from the start is used from the start. */
static void nothing_is_left_out_for_nothing(void **state)
{
	struct steady s = { .n = 0 };
	struct steady_result r;
	size_t i;

	(void)state;
	for (i = 0; i < 36; i++)
		steady_add(&s, 5e6);
	assert_int_equal(steady_result(&r, &s), 0);
	assert_int_equal(r.skipped, 0);
	assert_near(r.mean_bps, 5e6, 1e-15);
}

/* The error is the one that many repetitions show, with intervals that depend on each other. */
static void error_is_as_claimed(void **state)
{
	struct rng g = { 11 };
	double sum = 0, squares = 0, claimed = 0, x;
	struct steady_result r;
	size_t i, k;

	(void)state;
	for (k = 0; k < 400; k++) {
		struct steady s = { .n = 0 };

		for (i = 0, x = 0; i < 60; i++) {
			x = 0.5 * x + rng_uniform(&g) - 0.5;
			steady_add(&s, 10 + x);
		}
		assert_int_equal(steady_result(&r, &s), 0);
		sum += r.mean_bps;
		squares += r.mean_bps * r.mean_bps;
		claimed += r.error_bps * r.error_bps;
	}
	assert_near(sum / 400, 10, 0.01);
	assert_near(sqrt(claimed / 400), sqrt(squares / 400 - sum / 400 * sum / 400), 0.35);
}

static void too_little_to_say(void **state)
{
	struct steady s = { .n = 0 };
	struct steady_result r = { .skipped = 77 };
	size_t i;

	(void)state;
	assert_int_equal(steady_result(&r, &s), -1);
	for (i = 0; i < 2 * STEADY_BATCHES - 1; i++) {
		steady_add(&s, 1);
		assert_int_equal(steady_result(&r, &s), -1);
	}
	assert_int_equal(r.skipped, 77);
	steady_add(&s, 1);
	assert_int_equal(steady_result(&r, &s), 0);
	s = (struct steady){ .n = 0 };
	for (i = 0; i < 2 * STEADY_MAX; i++)
		steady_add(&s, 0);
	assert_int_equal(steady_result(&r, &s), -1); /* nothing came */
}

/* ---- probe ---- */

static void what_is_assumed_of_one_run(void **state)
{
	struct probe p = { 1, 10, 0 };

	(void)state;
	assert_near(probe_error_ratio(&p), 0.1 * pow(8, 0.6), 1e-12);
	p.streams = 8;
	assert_near(probe_error_ratio(&p), 0.1, 0);
	p.error_bps = 0.5;
	assert_near(probe_error_ratio(&p), 0.05, 1e-12);
}

static void what_a_group_shows_that_grew(void **state)
{
	struct probe before = { 4, 40, 2 }, after = { 15, 60, 3 }, given[] = { { 4, 6.6, 0 }, { 15, 35.5, 0 } };

	(void)state;
	probe_grew(&before, &after, 0.7); /* who joined got more: they overtook */
	assert_near(before.error_bps, 2, 1e-12);
	assert_near(after.error_bps, 3, 1e-12);
	probe_grew(&before, &after, exp(0.4));
	assert_near(before.error_bps, 40 * hypot(0.05, 0.2), 1e-12);
	assert_near(after.error_bps, 60 * hypot(0.05, 0.2), 1e-12);
	/* more than in proportion: the first tells little */
	probe_grew(&given[0], &given[1], 1);
	assert_true(given[0].error_bps > given[0].throughput_bps);
	assert_near(given[1].error_bps, 3.55, 1e-12);
}

/* The same together, and the new streams have their part of it: there is nobody else. Not if they got nothing. */
static void nobody_else(void **state)
{
	struct probe before = { 4, 96, 14 }, after = { 15, 97, 10 };

	(void)state;
	probe_grew(&before, &after, 1.5);
	assert_near(before.error_bps, 96 * PROBE_ALONE_RATIO, 1e-12);
	assert_near(after.error_bps, 97 * PROBE_ALONE_RATIO, 1e-12);
	before.error_bps = 14;
	probe_grew(&before, &after, 20);
	assert_true(before.error_bps > 96);
	before = (struct probe){ 4, 80, 12 }; /* one other flow */
	after = (struct probe){ 15, 93.75, 9 };
	probe_grew(&before, &after, 1);
	assert_near(before.error_bps, 12, 1e-12);
	assert_near(after.error_bps, 9, 1e-12);
}

/* How long a level goes on whose rate grows by so much in each second. */
static double lasts(double rise_ratio, double cycle_s, double max_s)
{
	struct steady s = { .n = 0 };
	double t;

	for (t = 0; !probe_is_done(&s, t, cycle_s, max_s); t += 0.1)
		steady_add(&s, 100e6 * (1 + rise_ratio * t));
	return t;
}

static void a_level_ends(void **state)
{
	(void)state;
	assert_near(lasts(0, 0, PROBE_MANY_S), PROBE_MIN_S, 0.05);
	assert_near(lasts(0, 2.2, PROBE_MANY_S), 6.6, 0.02); /* 6 s beside one flow with a large window looked steady */
	assert_near(lasts(0, 6.4, PROBE_MANY_S), PROBE_MANY_S, 0.02);
	assert_near(lasts(0.05, 0, PROBE_MANY_S), PROBE_MANY_S, 0.02);
	assert_near(lasts(0.05, 0, PROBE_LONGEST_S), PROBE_LONGEST_S, 0.02);
	assert_true(PROBE_LONGEST_S / 0.1 <= STEADY_MAX);
}

static void few_streams_are_probed_for_longer(void **state)
{
	(void)state;
	assert_near(probe_max_s(1), 30, 1e-9);
	assert_near(probe_max_s(4), 15, 1e-9);
	assert_near(probe_max_s(15), PROBE_MANY_S, 1e-9);
}

/* Drawn levels and durations: within the time, or PROBE_MIN_S each, and all of the longest if there is time. */
static void levels_share_the_time(void **state)
{
	struct rng r = { 42 };
	unsigned draw;

	(void)state;
	for (draw = 0; draw < 1000; draw++) {
		unsigned n = 1 + (unsigned)(rng_next(&r) % 8), i;
		double longest_s[8], left_s = PROBE_MIN_S * n + 60 * rng_uniform(&r), at_s = 0, all_s = 0;

		for (i = 0; i < n; i++)
			all_s += longest_s[i] = probe_max_s(1 + (unsigned)(rng_next(&r) % 40));
		for (i = 0; i < n; i++) {
			double s = probe_share_s(longest_s + i, n - i, left_s - at_s);

			assert_true(s >= PROBE_MIN_S - 1e-9 && s <= longest_s[i] + 1e-9);
			at_s += s;
			assert_near(probe_share_s(longest_s + i, n - i, INFINITY), longest_s[i], 1e-9);
		}
		if (left_s >= all_s)
			assert_near(at_s, all_s, 1e-9);
		else
			assert_true(at_s <= left_s + 1e-9);
	}
}

/* ---- profile ---- */

static void runs_add_up(void **state)
{
	struct profile l = { .n = 0 };

	(void)state;
	profile_add(&l, 8, 100, 1, false);
	assert_int_equal(l.n, 1);
	assert_near(l.probe[0].error_bps, 10, 1e-12);
	profile_add(&l, 8, 60, 3, true);
	assert_int_equal(l.n, 1);
	assert_near(l.probe[0].throughput_bps, 70, 1e-12);
	assert_near(l.probe[0].error_bps, 7.0 / 2, 1e-12);
	assert_true(l.host_limited[0]); /* what it was last */
	profile_add(&l, 8, 130, PROFILE_RUNS_MAX, false); /* nothing older counts then */
	assert_near(l.probe[0].throughput_bps, 130, 1e-12);
	assert_near(l.runs[0], PROFILE_RUNS_MAX, 0);
	profile_add(&l, 4, 90, 1, false);
	assert_int_equal(profile_find(&l, 4), 1);
	assert_int_equal(profile_find(&l, 5), 2);
	assert_int_equal(profile_fewest(&l)->streams, 4);
}

static void the_worst_known_goes(void **state)
{
	struct profile l = { .n = 0 };
	unsigned n;

	(void)state;
	assert_null(profile_worst(&l, 1, 99, 1, 1));
	for (n = 1; n <= PROFILE_MAX; n++)
		profile_add(&l, n, 10 * n, n == 3 ? 1 : 2, false);
	assert_int_equal(profile_worst(&l, 1, 99, 1, 1)->streams, 3);
	assert_int_equal(profile_worst(&l, 1, 99, 4, 3)->streams, 4); /* fewer than 4 count thrice */
	assert_int_equal(profile_worst(&l, 6, 99, 1, 1)->streams, 6);
	assert_null(profile_worst(&l, 9, 99, 1, 1));
	assert_int_equal(profile_worst(&l, 1, 2, 1, 1)->streams, 1);
	profile_add(&l, 20, 100, 5, false);
	assert_int_equal(l.n, PROFILE_MAX);
	assert_int_equal(profile_find(&l, 3), PROFILE_MAX);
	assert_int_equal(profile_find(&l, 20), 2);
}

/* Each of 12 brought what each of 4 did, and each of 30 less: there is room at 12, and 30 is the next. */
static void where_there_is_room(void **state)
{
	struct profile l = { .n = 0 };
	const struct probe *above;

	(void)state;
	assert_null(profile_host_limited(&l, &above));
	profile_add(&l, 4, 40, 1, true);
	profile_add(&l, 30, 150, 1, true);
	profile_add(&l, 12, 110, 1, true);
	assert_int_equal(profile_host_limited(&l, &above)->streams, 12);
	assert_int_equal(above->streams, 30);
	profile_add(&l, 30, 300, PROFILE_RUNS_MAX, true);
	assert_int_equal(profile_host_limited(&l, &above)->streams, 30);
	assert_null(above);
}

static void recalled(void **state)
{
	const struct probe p[] = { { 4, 40, 3 }, { 12, 60, 5 } };
	struct profile l = { .n = 0 };

	(void)state;
	profile_add(&l, 7, 10, 9, true);
	profile_recall(&l, p, 2);
	assert_int_equal(l.n, 2);
	assert_memory_equal(l.probe, p, sizeof p);
	assert_false(l.host_limited[0] || l.runs[0] != 1);
}

/* ---- sender_limit ---- */

static void what_holds_most(void **state)
{
	(void)state;
	assert_int_equal(limit_of(&(struct limit_times){ 0, 0, 0, 0 }), LIMIT_UNKNOWN);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 0, 0 }), LIMIT_NETWORK);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 3, 3 }), LIMIT_NETWORK);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 6, 1 }), LIMIT_RECEIVE_WINDOW);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 9.9, 1, 6 }), LIMIT_SEND_BUFFER);
	assert_int_equal(limit_of(&(struct limit_times){ 10, 3, 2, 0 }), LIMIT_APPLICATION);
}

static void what_holds_a_part(void **state)
{
	(void)state;
	assert_false(limit_is_partial(&(struct limit_times){ 0, 0, 0, 0 }));
	assert_false(limit_is_partial(&(struct limit_times){ 10, 8, 0.2, 0.1 }));
	assert_true(limit_is_partial(&(struct limit_times){ 10, 8, 0.5, 0 }));
	assert_true(limit_is_partial(&(struct limit_times){ 10, 8, 0, 0.5 }));
}

static void only_what_streams_do_not_cure_has_advice(void **state)
{
	(void)state;
	assert_null(limit_advice(LIMIT_UNKNOWN));
	assert_null(limit_advice(LIMIT_NETWORK));
	assert_non_null(strstr(limit_advice(LIMIT_SEND_BUFFER), "tcp_wmem"));
	assert_non_null(strstr(limit_advice(LIMIT_RECEIVE_WINDOW), "tcp_rmem"));
	assert_non_null(strstr(limit_advice(LIMIT_APPLICATION), "do not help"));
	assert_string_equal(limit_name(LIMIT_NETWORK), "network");
	assert_string_equal(limit_name(LIMIT_RECEIVE_WINDOW), "receive-window");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_start_is_left_out),
		cmocka_unit_test(nothing_is_left_out_for_nothing),
		cmocka_unit_test(error_is_as_claimed),
		cmocka_unit_test(too_little_to_say),
		cmocka_unit_test(what_is_assumed_of_one_run),
		cmocka_unit_test(what_a_group_shows_that_grew),
		cmocka_unit_test(nobody_else),
		cmocka_unit_test(a_level_ends),
		cmocka_unit_test(few_streams_are_probed_for_longer),
		cmocka_unit_test(levels_share_the_time),
		cmocka_unit_test(runs_add_up),
		cmocka_unit_test(the_worst_known_goes),
		cmocka_unit_test(where_there_is_room),
		cmocka_unit_test(recalled),
		cmocka_unit_test(what_holds_most),
		cmocka_unit_test(what_holds_a_part),
		cmocka_unit_test(only_what_streams_do_not_cure_has_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
