#include "model/near.h"

#include "model/rng.h"
#include "model/steady.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_start_is_left_out),
		cmocka_unit_test(nothing_is_left_out_for_nothing),
		cmocka_unit_test(error_is_as_claimed),
		cmocka_unit_test(too_little_to_say),
	};
	return cmocka_run_group_tests_name("model/settle", tests, NULL, NULL);
}
