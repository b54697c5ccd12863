/* Summing up the rounds of `measure`. */
#include <string.h>

#include "model/level_stats.h"
#include "model/rng.h"
#include "model/stats.h"
#include "near.h"

/* Two streams of 1 MB each, from 10 s to 12 s and from 11 s to 15 s: 16 Mbit in 5 s. */
static void one_round_by_hand(void **state)
{
	const struct level_run run[] = { { 10, 12, 1000000 }, { 11, 15, 1000000 } };
	struct level l = { .streams = 2 };
	double rates[2];

	(void)state;
	assert_near(level_add(&l, run, rates), 3.2e6, 1e-12);
	assert_near(rates[0], 4e6, 1e-12);
	assert_near(rates[1], 2e6, 1e-12);
	assert_int_equal(l.rounds, 1);
	assert_int_equal(l.failed, 0);
	assert_near(l.mean_bps, 3.2e6, 1e-12);
	assert_near(l.min_bps, 3.2e6, 1e-12);
	assert_near(l.max_bps, 3.2e6, 1e-12);
	assert_near(l.per_stream_mean_bps, 3e6, 1e-12);
	assert_near(l.fairness, 36.0 / 40, 1e-12);
	assert_near(level_sd_bps(&l), 0, 0);
	assert_int_equal(level_clusters(&l), 1);
}

/* Round after round it says what an array of all of them would. */
static void equals_the_array(void **state)
{
	struct rng r = { 7 };
	struct level l = { .streams = 5 };
	struct level_run run[5];
	double all[200], fair[200], each[1000], rates[5];
	struct stats s, per;
	size_t i, k, n = 0;

	(void)state;
	for (i = 0; i < 200; i++) {
		if (i % 7 == 3) {
			level_add_failed(&l);
			continue;
		}
		for (k = 0; k < 5; k++)
			run[k] = (struct level_run){ rng_uniform(&r), 2 + rng_uniform(&r), 1000000 + k };
		all[n] = level_add(&l, run, rates);
		fair[n] = stats_jain(rates, 5);
		memcpy(each + 5 * n++, rates, sizeof rates);
	}
	stats_of(&s, all, n);
	assert_int_equal(l.rounds, 200);
	assert_int_equal(l.failed, 200 - n);
	assert_near(l.mean_bps, s.mean, 1e-12);
	assert_near(l.min_bps, s.min, 0);
	assert_near(l.max_bps, s.max, 0);
	assert_near(level_sd_bps(&l), s.sd, 1e-9);
	stats_of(&per, each, 5 * n);
	assert_near(l.per_stream_mean_bps, per.mean, 1e-12);
	stats_of(&per, fair, n);
	assert_near(l.fairness, per.mean, 1e-12);
}

/* Ten streams, three of them at a third of the others' rate, in most rounds or not. */
static void two_groups_in_most_rounds(void **state)
{
	struct level l = { .streams = 10 };
	struct level_run even[10], split[10];
	double rates[10];
	size_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		even[i] = (struct level_run){ 0, 1, 1000000 + 1000 * i };
		split[i] = (struct level_run){ 0, i % 3 == 1 ? 3 : 1, 1000000 + 1000 * i };
	}
	level_add(&l, split, rates);
	assert_near(rates[1], 8e6 * 1.001 / 3, 1e-12); /* in the streams' order */
	assert_int_equal(level_clusters(&l), 2);
	level_add(&l, even, rates);
	assert_int_equal(level_clusters(&l), 1);
	level_add(&l, split, rates);
	assert_int_equal(level_clusters(&l), 2);
	level_add_failed(&l);
	assert_int_equal(level_clusters(&l), 2);
}

static void failed_levels_do_not_saturate(void **state)
{
	struct level l[] = {
		{ .streams = 10, .rounds = 3, .mean_bps = 50 },
		{ .streams = 20, .rounds = 3, .failed = 3 },
		{ .streams = 30, .rounds = 3, .failed = 1, .mean_bps = 52 },
	};

	(void)state;
	assert_int_equal(levels_saturate_at(l, 3), 10);
	l[2].mean_bps = 60;
	assert_int_equal(levels_saturate_at(l, 3), 0);
	assert_int_equal(levels_saturate_at(l + 1, 1), 0);
	assert_int_equal(level_clusters(&l[1]), 1);
	assert_near(level_sd_bps(&l[1]), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_round_by_hand),
		cmocka_unit_test(equals_the_array),
		cmocka_unit_test(two_groups_in_most_rounds),
		cmocka_unit_test(failed_levels_do_not_saturate),
	};
	return cmocka_run_group_tests_name("model/level", tests, NULL, NULL);
}
