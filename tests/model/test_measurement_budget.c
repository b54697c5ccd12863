#include "model/near.h"

#include "model/measurement_budget.h"
#include "draw.h"

static void in_proportion(void **state)
{
	const double sd[] = { 1, 2, 3, 4 }, thirds[] = { 1, 1, 1 };
	unsigned n[4];
	double scratch[4];

	(void)state;
	measurement_budget_allocate(n, sd, scratch, 4, 100, 0);
	assert_int_equal(n[0], 10);
	assert_int_equal(n[1], 20);
	assert_int_equal(n[2], 30);
	assert_int_equal(n[3], 40);
	measurement_budget_allocate(n, sd, scratch, 4, 108, 2);
	assert_int_equal(n[0], 12);
	assert_int_equal(n[3], 42);
	measurement_budget_allocate(n, thirds, scratch, 3, 10, 0);
	assert_int_equal(n[0] + n[1] + n[2], 10);
	assert_true(n[0] >= 3 && n[1] >= 3 && n[2] >= 3);
	measurement_budget_allocate(n, thirds, scratch, 3, 2, 5); /* the minimum, as far as it goes */
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1] + n[2], 0);
	measurement_budget_allocate(n, thirds, scratch, 0, 10, 1);
}

static void unknown_errors(void **state)
{
	const double sd[] = { NAN, 1, 3, INFINITY, -1 }, zero[] = { 0, 0, 0 };
	unsigned n[5];
	double scratch[5];

	(void)state;
	measurement_budget_allocate(n, sd, scratch, 5, 130, 0);
	assert_int_equal(n[0], 30);
	assert_int_equal(n[1], 10);
	assert_int_equal(n[2], 30);
	assert_int_equal(n[3], 30);
	assert_int_equal(n[4], 30);
	measurement_budget_allocate(n, zero, scratch, 3, 9, 0);
	assert_int_equal(n[0], 3);
	assert_int_equal(n[2], 3);
}

static double variance(const unsigned *n, const double *sd, size_t links)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < links; i++)
		sum += sd[i] * sd[i] / n[i];
	return sum;
}

/* Sums to the total, and no even split does better. */
static void sums_and_beats_even(void **state)
{
	struct rng r = { 1 };
	unsigned n[12], even[12], sum;
	double sd[12], scratch[12];
	size_t i, links;
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		links = 1 + rng_below(&r, 12);
		for (i = 0; i < links; i++)
			sd[i] = pow(10, 4 * rng_uniform(&r));
		measurement_budget_allocate(n, sd, scratch, links, rng_below(&r, 3000), 0);
		measurement_budget_allocate(n, sd, scratch, links, (unsigned)links * 1000, 1);
		for (sum = 0, i = 0; i < links; i++) {
			sum += n[i];
			even[i] = 1000;
			assert_true(n[i] >= 1);
		}
		assert_int_equal(sum, links * 1000);
		assert_true(variance(n, sd, links) <= variance(even, sd, links) * 1.001);
	}
	for (round = 0; round < 5000; round++) {
		unsigned total = rng_below(&r, 100);

		links = 1 + rng_below(&r, 12);
		for (i = 0; i < links; i++)
			sd[i] = rng_uniform(&r);
		measurement_budget_allocate(n, sd, scratch, links, total, rng_below(&r, 4));
		for (sum = 0, i = 0; i < links; i++)
			sum += n[i];
		assert_int_equal(sum, total);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_proportion),
		cmocka_unit_test(unknown_errors),
		cmocka_unit_test(sums_and_beats_even),
	};
	return cmocka_run_group_tests_name("model/budget", tests, NULL, NULL);
}
