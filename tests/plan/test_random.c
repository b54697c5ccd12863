/* Random overlays; `make check-long` does the same with many more. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compare.h"

static struct inst in;

static void try(uint64_t first, int count, int lo, int hi, enum compare_depth depth,
    enum compare_slots slots)
{
	struct compare_count c = { 0 };
	char what[COMPARE_WHAT_BYTES];
	int i;

	for (i = 0; i < count; i++) {
		struct inst_kind kind = inst_draw(first + (uint64_t)i, lo, hi);

		inst_make(&in, &kind, first + (uint64_t)i);
		if (compare(&in, depth, slots, NULL, &c, what) < 0)
			fail_msg("seed %llu: %s", (unsigned long long)first + (uint64_t)i, what);
	}
	/* Overlays that are all infeasible, or nothing compared, would prove little. */
	assert_true(c.planned >= 2 * count);
	assert_true(depth == COMPARE_VERIFY || c.compared > count);
}

static void every_plan_is_verified(void **state)
{
	(void)state;
	try(100000, 200, 5, 14, COMPARE_VERIFY, COMPARE_SINGLE);
	try(150000, 60, 15, 40, COMPARE_VERIFY, COMPARE_SINGLE);
}

/* A window that ends shortly after a slot began once made a link carry a few
 * millionths too much. */
static void short_periods(void **state)
{
	static const uint64_t seeds[] = { 1003305, 1005209, 1007699 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof seeds / sizeof *seeds; i++)
		try(seeds[i], 1, 5, 40, COMPARE_VERIFY, COMPARE_SINGLE);
}

/* Slots may carry so little that each alone looks like a rounding error. */
static void many_slots_lose_nothing(void **state)
{
	(void)state;
	try(2001668, 40, 5, 10, COMPARE_VERIFY, COMPARE_MANY);
}

static void plans_are_optimal(void **state)
{
	(void)state;
	try(200000, 50, 5, 10, COMPARE_ALL, COMPARE_SINGLE);
}

static void plans_of_stages_are_optimal(void **state)
{
	(void)state;
	try(300000, 15, 5, 8, COMPARE_ALL, COMPARE_STAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_is_verified),
		cmocka_unit_test(short_periods),
		cmocka_unit_test(many_slots_lose_nothing),
		cmocka_unit_test(plans_are_optimal),
		cmocka_unit_test(plans_of_stages_are_optimal),
	};
	return cmocka_run_group_tests_name("plan/random", tests, NULL, NULL);
}
