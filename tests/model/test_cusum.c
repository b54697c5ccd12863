#include "model/near.h"

#include "model/cusum.h"
#include "model/rng.h"

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
		cmocka_unit_test(lasting_deviations),
		cmocka_unit_test(scatter_and_stalls),
	};
	return cmocka_run_group_tests_name("model/watch", tests, NULL, NULL);
}
