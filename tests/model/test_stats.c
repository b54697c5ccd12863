#include "model/near.h"

#include <string.h>

#include "draw.h"
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
	};
	return cmocka_run_group_tests_name("model/stats", tests, NULL, NULL);
}
