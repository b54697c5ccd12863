#include "model/near.h"

#include <string.h>

#include "model/reselect.h"

static void different(const size_t *chosen, size_t k, size_t candidates)
{
	size_t i, j;

	for (i = 0; i < k; i++) {
		assert_true(chosen[i] < candidates);
		for (j = 0; j < i; j++)
			assert_int_not_equal(chosen[i], chosen[j]);
	}
}

static void chances(void **state)
{
	const double weight[] = { 1, 2, 3, 4, 0 };
	struct rng r = { 1 };
	unsigned uniform[5] = { 0 }, first[5] = { 0 }, second_of_zero[5] = { 0 };
	size_t chosen[5];
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		choose_paths(chosen, 2, NULL, 5, &r);
		different(chosen, 2, 5);
		uniform[chosen[0]]++;
		uniform[chosen[1]]++;
		choose_paths(chosen, 2, weight, 5, &r);
		different(chosen, 2, 5);
		first[chosen[0]]++;
		if (chosen[0] == 0)
			second_of_zero[chosen[1]]++;
	}
	for (i = 0; i < 5; i++)
		assert_near(uniform[i], 40000, 0.02);
	for (i = 0; i < 4; i++)
		assert_near(first[i], 10000 * weight[i], 0.05);
	assert_int_equal(first[4], 0);
	assert_near((double)second_of_zero[3] / first[0], 4.0 / 9, 0.05);
	choose_paths(chosen, 5, weight, 5, &r);
	different(chosen, 5, 5);
	assert_int_equal(chosen[4], 4); /* no bandwidth: last */
}

static void reselection(void **state)
{
	const double seen[] = { 5, 1, 3 };
	struct rng r = { 2 };
	size_t chosen[3], old[3], changed, i;
	unsigned came[8] = { 0 };
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		choose_paths(chosen, 3, NULL, 8, &r);
		memcpy(old, chosen, sizeof old);
		assert_int_equal(reselect_paths(chosen, 3, RESELECT_WORST, seen, NULL, 8, &r), 1);
		different(chosen, 3, 8);
		assert_int_equal(chosen[0], old[0]);
		assert_int_equal(chosen[2], old[2]);
		assert_int_not_equal(chosen[1], old[1]);
		came[chosen[1]]++;
		memcpy(old, chosen, sizeof old);
		changed = reselect_paths(chosen, 3, RESELECT_ALL, seen, NULL, 8, &r);
		different(chosen, 3, 8);
		for (i = 0; i < 3; i++)
			changed -= chosen[i] != old[i];
		assert_int_equal(changed, 0);
	}
	for (i = 0; i < 8; i++)
		assert_near(came[i], 625, 0.2);
	choose_paths(chosen, 3, NULL, 3, &r);
	memcpy(old, chosen, sizeof old);
	assert_int_equal(reselect_paths(chosen, 3, RESELECT_WORST, seen, NULL, 3, &r), 0);
	assert_memory_equal(chosen, old, sizeof old);
	choose_paths(chosen, 1, NULL, 1, &r);
	assert_int_equal(reselect_paths(chosen, 1, RESELECT_WORST, seen, NULL, 1, &r), 0);
	assert_int_equal(reselect_paths(chosen, 1, RESELECT_ALL, seen, NULL, 1, &r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chances),
		cmocka_unit_test(reselection),
	};
	return cmocka_run_group_tests_name("model/choose", tests, NULL, NULL);
}
