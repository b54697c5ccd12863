#include "model/near.h"

#include "model/profile.h"

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
	assert_true(l.roomy[0]); /* what it was last */
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
	assert_null(profile_worst(&l, 1, 1, 1));
	for (n = 1; n <= PROFILE_MAX; n++)
		profile_add(&l, n, 10 * n, n == 3 ? 1 : 2, false);
	assert_int_equal(profile_worst(&l, 1, 1, 1)->streams, 3);
	assert_int_equal(profile_worst(&l, 1, 4, 3)->streams, 4); /* fewer than 4 count thrice */
	assert_int_equal(profile_worst(&l, 6, 1, 1)->streams, 6);
	assert_null(profile_worst(&l, 9, 1, 1));
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
	assert_null(profile_room(&l, &above));
	profile_add(&l, 4, 40, 1, true);
	profile_add(&l, 30, 150, 1, true);
	profile_add(&l, 12, 110, 1, true);
	assert_int_equal(profile_room(&l, &above)->streams, 12);
	assert_int_equal(above->streams, 30);
	profile_add(&l, 30, 300, PROFILE_RUNS_MAX, true);
	assert_int_equal(profile_room(&l, &above)->streams, 30);
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
	assert_false(l.roomy[0] || l.runs[0] != 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_add_up),
		cmocka_unit_test(the_worst_known_goes),
		cmocka_unit_test(where_there_is_room),
		cmocka_unit_test(recalled),
	};
	return cmocka_run_group_tests_name("model/learnt", tests, NULL, NULL);
}
