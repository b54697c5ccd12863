/* What is late is made up for, and spare paths help while it is too much for the others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collect/late.h"

#define GIVEN 8e6 /* bit/s: a megabyte a second */

static void who_is_on_time_keeps_to_the_plan(void **state)
{
	struct late l = { 0 };

	(void)state;
	late_see(&l, 0, GIVEN, 0.5 * GIVEN);
	assert_true(l.more_bps == 0 && !l.spares);
	late_see(&l, -5e6, GIVEN, GIVEN);
	assert_true(l.more_bps == 0 && !l.spares);
	late_see(&l, 5e6, 0, 0); /* nothing is planned for it now */
	assert_false(l.spares);
}

/* With what it may have beyond the plan a source is on time again within ten seconds, if it gets it. */
static void what_is_late_is_made_up_for(void **state)
{
	struct late l = { 0 };
	double behind = 2e6;
	int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		late_see(&l, behind, GIVEN, GIVEN);
		assert_true(l.more_bps > 0);
		behind -= l.more_bps / 8 * 0.25;
	}
	assert_true(behind > 0 && behind < 0.3e6);
}

/* A second is too much; and once they help they go on, until it is as far ahead as its own paths fall short. */
static void spares_come_when_needed_and_stay(void **state)
{
	struct late l = { 0 };

	(void)state;
	late_see(&l, 0.9e6, GIVEN, 0.5 * GIVEN);
	assert_false(l.spares);
	late_see(&l, 1.1e6, GIVEN, 0.5 * GIVEN);
	assert_true(l.spares && l.more_bps > 0.5 * GIVEN);
	late_see(&l, 0, GIVEN, 0.5 * GIVEN);
	assert_true(l.spares && l.more_bps == 0.5 * GIVEN);
	late_see(&l, -0.2e6, GIVEN, 0.5 * GIVEN);
	assert_true(l.spares && l.more_bps < 0.5 * GIVEN);
	late_see(&l, -0.2e6, GIVEN, 0.9 * GIVEN);
	assert_true(!l.spares && l.more_bps == 0);
	late_see(&l, 0.5e6, GIVEN, 0.5 * GIVEN);
	assert_false(l.spares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_on_time_keeps_to_the_plan),
		cmocka_unit_test(what_is_late_is_made_up_for),
		cmocka_unit_test(spares_come_when_needed_and_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
