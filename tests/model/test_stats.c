#include "model/near.h"

#include <string.h>

#include "draw.h"
#include "model/rng.h"
#include "model/stats.h"
#include "quantile.h"

static void moments(void **state)
{
	const double x[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct stats s;

	(void)state;
	stats_of(&s, x, 8);
	assert_int_equal(s.count, 8);
	assert_near(s.mean, 5, 1e-15);
	assert_near(s.min, 2, 0);
	assert_near(s.max, 9, 0);
	assert_near(s.sd, sqrt(32.0 / 7), 1e-15);
	stats_of(&s, x, 1);
	assert_near(s.mean, 2, 0);
	assert_near(s.sd, 0, 0);
	stats_of(&s, x, 0);
	assert_near(s.mean, 0, 0);
}

static void quantiles(void **state)
{
	double x[] = { 5, 1, 3, 2, 4 };

	(void)state;
	stats_sort(x, 5);
	assert_near(quantile(x, 5, 0), 1, 0);
	assert_near(quantile(x, 5, 0.5), 3, 0);
	assert_near(quantile(x, 5, 0.9), 4.6, 1e-15);
	assert_near(quantile(x, 5, 1), 5, 0);
	assert_near(quantile(x, 1, 0.7), 1, 0);
}

static void fairness(void **state)
{
	const double equal[] = { 3, 3, 3, 3 }, one[] = { 8, 0, 0, 0 }, none[] = { 0, 0 };
	const double two_to_one[] = { 2, 1 };

	(void)state;
	assert_near(stats_jain(equal, 4), 1, 1e-15);
	assert_near(stats_jain(one, 4), 0.25, 1e-15);
	assert_near(stats_jain(two_to_one, 2), 0.9, 1e-15);
	assert_near(stats_jain(none, 2), 1, 0);
	assert_near(stats_jain(none, 0), 1, 0);
}

static double normal(struct rng *r)
{
	return sqrt(-2 * log(1 - rng_uniform(r))) * cos(2 * 3.14159265358979 * rng_uniform(r));
}

/* Least within-group scatter over all ways to give each value to a group. */
static double least_within(const double *x, size_t n)
{
	double best = INFINITY;
	unsigned set;
	size_t i;

	for (set = 0; set < 1u << n; set++) {
		double sum[2] = { 0 }, squares[2] = { 0 };
		double count[2] = { 0 };
		double within = 0;

		for (i = 0; i < n; i++) {
			int g = set >> i & 1;

			count[g]++;
			sum[g] += x[i];
			squares[g] += x[i] * x[i];
		}
		for (i = 0; i < 2; i++)
			if (count[i] > 0)
				within += squares[i] - sum[i] * sum[i] / count[i];
		best = fmin(best, within);
	}
	return best;
}

static void two_means_is_exact(void **state)
{
	struct rng r = { 3 };
	struct clusters c;
	struct stats s;
	double x[10];
	int round;
	size_t i, n;

	(void)state;
	for (round = 0; round < 300; round++) {
		n = 2 + rng_below(&r, 9);
		for (i = 0; i < n; i++)
			x[i] = round % 3 ? rng_uniform(&r) * 100 : rng_below(&r, 4);
		stats_of(&s, x, n);
		stats_clusters(&c, x, n);
		if (s.sd == 0)
			continue;
		assert_near(c.explained_ratio,
		    1 - least_within(x, n) / (s.sd * s.sd * (double)(n - 1)), 1e-9);
	}
}

static void cluster_verdicts(void **state)
{
	double x[40];
	struct clusters c;
	struct rng r = { 11 };
	int round, two;
	size_t i;

	(void)state;
	for (i = 0; i < 10; i++)
		x[i] = i < 5 ? 10 + 0.1 * (double)i : 20 + 0.1 * (double)i;
	stats_clusters(&c, x, 10);
	assert_int_equal(c.count, 2);
	assert_int_equal(c.slow, 5);
	assert_near(c.slow_mean, 10.2, 1e-12);
	assert_near(c.fast_mean, 20.7, 1e-12);
	stats_clusters(&c, x, 9); /* too few streams */
	assert_int_equal(c.count, 1);
	for (i = 0; i < 10; i++)
		x[i] = i < 1 ? 10 : 20 + 0.01 * (double)i;
	stats_clusters(&c, x, 10); /* one straggler is no group */
	assert_int_equal(c.count, 1);
	for (i = 0; i < 10; i++)
		x[i] = i < 5 ? 100 : 120;
	stats_clusters(&c, x, 10); /* well apart, but only 1.2 times as fast */
	assert_true(isinf(c.separation));
	assert_int_equal(c.count, 1);
	for (i = 0; i < 10; i++)
		x[i] = 7;
	stats_clusters(&c, x, 10);
	assert_int_equal(c.count, 1);
	for (two = 0, round = 0; round < 1000; round++) {
		for (i = 0; i < 40; i++)
			x[i] = 50 + 15 * normal(&r);
		stats_clusters(&c, x, 40);
		two += c.count == 2;
	}
	assert_int_equal(two, 0); /* one normal group is never called two */
	for (two = 0, round = 0; round < 1000; round++) {
		for (i = 0; i < 40; i++)
			x[i] = (i < 12 ? 20 : 60) + 4 * normal(&r);
		stats_clusters(&c, x, 40);
		two += c.count == 2 && c.slow == 12;
	}
	assert_true(two > 990);
}

/* `slow` values about 10 and the rest about 10 + apart, each group half 1 below and
 * half 1 above. */
static int verdict(size_t slow, double apart)
{
	struct clusters c;
	double x[40];
	size_t i;

	for (i = 0; i < 40; i++)
		x[i] = (i < slow ? 10 : 10 + apart) + (i % 2 ? 1 : -1);
	stats_clusters(&c, x, 40);
	return c.count;
}

/* Halves: explained is at the bound of 0.84 with means 4.58 apart, the separation
 * of 4.5 pooled deviations with 4.62. A fifth: 4.7 apart explain only 0.78. */
static void cluster_bounds(void **state)
{
	(void)state;
	assert_int_equal(verdict(20, 4.60), 1);
	assert_int_equal(verdict(20, 4.64), 2);
	assert_int_equal(verdict(8, 4.7), 1);
	assert_int_equal(verdict(8, 6), 2);
}

static void saturation(void **state)
{
	const unsigned n[] = { 10, 20, 30, 40, 50 };
	const double near_ten[] = { 100, 103, 104.9, 99, 101 };
	const double up_to_thirty[] = { 40, 70, 100, 98, 102 };
	const double rising[] = { 10, 20, 30, 40, 50 };
	const double late[] = { 100, 104, 100, 100, 105 };

	(void)state;
	assert_int_equal(stats_saturates_at(n, near_ten, 5), 10);
	assert_int_equal(stats_saturates_at(n, up_to_thirty, 5), 30);
	assert_int_equal(stats_saturates_at(n, rising, 5), 0);
	assert_int_equal(stats_saturates_at(n, late, 5), 20);
	assert_int_equal(stats_saturates_at(n, rising, 1), 0);
	assert_int_equal(stats_saturates_at(n, rising, 0), 0);
}

/* ---- level_stats ---- */

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
	assert_near(l.round_bps.mean, 3.2e6, 1e-12);
	assert_near(l.round_bps.min, 3.2e6, 1e-12);
	assert_near(l.round_bps.max, 3.2e6, 1e-12);
	assert_near(l.stream_bps.mean, 3e6, 1e-12);
	assert_near(l.stream_bps.min, 2e6, 1e-12);
	assert_near(l.stream_bps.max, 4e6, 1e-12);
	assert_near(moments_sd(&l.stream_bps), 1e6 * sqrt(2), 1e-12);
	assert_near(l.fairness, 36.0 / 40, 1e-12);
	assert_near(moments_sd(&l.round_bps), 0, 0);
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
	assert_near(l.round_bps.mean, s.mean, 1e-12);
	assert_near(l.round_bps.min, s.min, 0);
	assert_near(l.round_bps.max, s.max, 0);
	assert_near(moments_sd(&l.round_bps), s.sd, 1e-9);
	stats_of(&per, each, 5 * n);
	assert_near(l.stream_bps.mean, per.mean, 1e-12);
	assert_near(l.stream_bps.min, per.min, 0);
	assert_near(l.stream_bps.max, per.max, 0);
	assert_near(moments_sd(&l.stream_bps), per.sd, 1e-9);
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
		{ .streams = 10, .rounds = 3, .round_bps.mean = 50 },
		{ .streams = 20, .rounds = 3, .failed = 3 },
		{ .streams = 30, .rounds = 3, .failed = 1, .round_bps.mean = 52 },
	};

	(void)state;
	assert_int_equal(levels_saturate_at(l, 3), 10);
	l[2].round_bps.mean = 60;
	assert_int_equal(levels_saturate_at(l, 3), 0);
	assert_int_equal(levels_saturate_at(l + 1, 1), 0);
	assert_int_equal(level_clusters(&l[1]), 1);
	assert_near(moments_sd(&l[1].round_bps), 0, 0);
}

/* ---- ewma ---- */

/* By hand: 10, 20 and 40 of weight a half: means 10, 15, 27.5; the weights are 1/4, 1/4 and 1/2, their squares sum to
 * 3/8, and the variance about the mean is 17.5^2 / 4 + 7.5^2 / 4 + 12.5^2 / 2. */
static void by_hand(void **state)
{
	struct ewma s = { 0 };

	(void)state;
	ewma_add(&s, 10, 0.5);
	assert_near(s.mean, 10, 1e-12);
	assert_true(isnan(ewma_error(&s)));
	ewma_add(&s, 20, 0.5);
	assert_near(s.mean, 15, 1e-12);
	assert_near(ewma_error(&s), 5, 1e-12);
	ewma_add(&s, 40, 0.5);
	assert_near(s.mean, 27.5, 1e-12);
	assert_near(s.squares, 0.375, 1e-12);
	assert_near(s.variance, 168.75, 1e-12);
	assert_near(ewma_error(&s), sqrt(168.75 / 0.625 * 0.375), 1e-12);
}

/* The first are a plain mean with its plain standard error. */
static void first_ones_count_alike(void **state)
{
	struct ewma s = { 0 };

	(void)state;
	ewma_add(&s, 3, 0.1);
	ewma_add(&s, 5, 0.1);
	ewma_add(&s, 10, 0.1);
	assert_near(s.mean, 6, 1e-12);
	assert_near(ewma_error(&s), sqrt(26.0 / 2 / 3), 1e-12);
}

/* It comes to where values go, and scatters about it as much as it says. */
static void follows(void **state)
{
	double off = 0, claimed = 0;
	struct rng r = { 4 };
	struct ewma s;
	int round, i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		s = (struct ewma){ 0 };
		for (i = 0; i < 20; i++)
			ewma_add(&s, 100, 0.25);
		for (i = 0; i < 60; i++)
			ewma_add(&s, 50 + 10 * (rng_uniform(&r) - 0.5), 0.25);
		off += (s.mean - 50) * (s.mean - 50) / 2000;
		claimed += ewma_error(&s) * ewma_error(&s) / 2000;
	}
	assert_near(sqrt(off), sqrt(claimed), 0.05);
	assert_in_range((int)(1e3 * sqrt(off)), 500, 2000);
}

/* ---- cusum ---- */

/* Seconds until a report at a constant ratio; 0 if none within an hour. */
static double reported_after(double ratio, double interval_s, int want)
{
	struct cusum w;
	double t;
	int r;

	cusum_init(&w, 0.2, 10);
	for (t = interval_s; t < 3600; t += interval_s) {
		r = cusum_add(&w, 50e6 * ratio, 50e6, interval_s);
		if (r == 0)
			continue;
		assert_int_equal(r, want);
		return t;
	}
	return 0;
}

static void lasting_deviations(void **state)
{
	(void)state;
	assert_near(reported_after(1, 0.5, 0), 0, 0);
	assert_near(reported_after(1.19, 0.5, 0), 0, 0);
	assert_near(reported_after(1 / 1.19, 0.5, 0), 0, 0);
	assert_near(reported_after(1.44, 0.5, 1), 10, 1e-9);
	assert_near(reported_after(1 / 1.44, 0.5, -1), 10, 1e-9);
	assert_near(reported_after(1.44, 2, 1), 10, 1e-9);
	assert_near(reported_after(1.2 * 1.2 * 1.2, 0.5, 1), 5, 1e-9);
	assert_true(reported_after(0, 0.5, -1) >= 1.5);
	assert_near(reported_after(0, 0.5, -1), reported_after(0.25, 0.5, -1), 0);
}

/* Scatter of 15 % about the prediction is none of it, nor is one stall; and a
 * report begins anew. */
static void scatter_and_stalls(void **state)
{
	struct cusum w;
	struct rng r = { 1 };
	int i;

	(void)state;
	cusum_init(&w, 0.2, 10);
	for (i = 0; i < 100000; i++) {
		double noise = 0.3 * sqrt(3) * (rng_uniform(&r) - 0.5);

		assert_int_equal(cusum_add(&w, i % 100 ? 50e6 * (1 + noise) : 0, 50e6, 1), 0);
	}
	for (i = 1; i <= 10; i++)
		assert_int_equal(cusum_add(&w, 72e6, 50e6, 1), i == 10);
	for (i = 1; i <= 10; i++)
		assert_int_equal(cusum_add(&w, 72e6, 50e6, 1), i == 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(fairness),
		cmocka_unit_test(two_means_is_exact),
		cmocka_unit_test(cluster_verdicts),
		cmocka_unit_test(cluster_bounds),
		cmocka_unit_test(saturation),
		cmocka_unit_test(one_round_by_hand),
		cmocka_unit_test(equals_the_array),
		cmocka_unit_test(two_groups_in_most_rounds),
		cmocka_unit_test(failed_levels_do_not_saturate),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(first_ones_count_alike),
		cmocka_unit_test(follows),
		cmocka_unit_test(lasting_deviations),
		cmocka_unit_test(scatter_and_stalls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
