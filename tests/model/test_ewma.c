#include "model/near.h"

#include "model/ewma.h"
#include "model/rng.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(first_ones_count_alike),
		cmocka_unit_test(follows),
	};

	return cmocka_run_group_tests_name("model/smooth", tests, NULL, NULL);
}
