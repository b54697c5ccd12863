#include "model/near.h"

#include "model/probe.h"

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

static void runs_make_a_probe(void **state)
{
	const double runs[] = { 8, 12, 10, 10 };
	struct probe p, q;
	double prior;

	(void)state;
	probe_of_runs(&p, 8, runs, 1);
	assert_near(p.throughput_bps, 8, 0);
	assert_near(p.error_bps, 0.8, 1e-12); /* as assumed of one run */
	probe_of_runs(&p, 8, runs, 4);
	assert_near(p.throughput_bps, 10, 1e-15);
	assert_near(p.error_bps, sqrt((2 * 1 + 8) / 5.0 / 4), 1e-12);
	probe_of_runs(&q, 1, runs, 4);
	prior = 10 * 0.1 * pow(8, 0.6);
	assert_near(q.error_bps, sqrt((2 * prior * prior + 8) / 5 / 4), 1e-12);
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
static double lasts(double rise_ratio)
{
	struct steady s = { .n = 0 };
	double t;

	for (t = 0; !probe_told(&s, t); t += 0.1)
		steady_add(&s, 100e6 * (1 + rise_ratio * t));
	return t;
}

static void a_level_ends(void **state)
{
	(void)state;
	assert_near(lasts(0), PROBE_LEAST_S, 0.05);
	assert_near(lasts(0.05), PROBE_MOST_S, 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_assumed_of_one_run),
		cmocka_unit_test(runs_make_a_probe),
		cmocka_unit_test(what_a_group_shows_that_grew),
		cmocka_unit_test(nobody_else),
		cmocka_unit_test(a_level_ends),
	};
	return cmocka_run_group_tests_name("model/probe", tests, NULL, NULL);
}
