/* Who is late may have more, and has it until that is made up for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collect/catch_up.h"

#define GIVEN 8e6 /* bit/s: a megabyte a second */

static void who_is_about_on_time_keeps_to_the_plan(void **state)
{
	(void)state;
	assert_true(catch_up_bps(0, 0, GIVEN, 0.7 * GIVEN) == 0);
	assert_true(catch_up_bps(0, 1e6, GIVEN, 0.85 * GIVEN) == 0);
	assert_true(catch_up_bps(0, 5e6, GIVEN, GIVEN) == 0); /* it began late */
	assert_true(catch_up_bps(0, -5e6, GIVEN, 0.2 * GIVEN) == 0);
	assert_true(catch_up_bps(0, 5e6, 0, 0) == 0); /* nothing is planned for it now */
}

static void who_is_late_may_have_more(void **state)
{
	(void)state;
	assert_true(catch_up_bps(0.1 * GIVEN, 2.5e6, GIVEN, GIVEN) == 0.5 * GIVEN); /* already */
	assert_true(catch_up_bps(0, 0, GIVEN, 0.5 * GIVEN) == 0.5 * GIVEN);
	assert_true(catch_up_bps(0, 1.25e6, GIVEN, 0.75 * GIVEN) == 0.5 * GIVEN);
}

/* Where its own paths fall short by a third for good, and it gets what it may have, it is soon on time, and stays so
 * without being ahead by more than moments. */
static void it_goes_on_until_it_is_on_time(void **state)
{
	double behind = 3e6, more = 0, s;

	(void)state;
	for (s = 0; s < 60; s += 0.25) {
		more = catch_up_bps(more, behind, GIVEN, 0.67 * GIVEN);
		behind += (0.33 * GIVEN - more) / 8 * 0.25;
		assert_true(s < 20 || (behind > -0.4e6 && behind < 0.4e6));
	}
	assert_true(more > 0.3 * GIVEN && more < 0.36 * GIVEN);
	assert_true(catch_up_bps(more, -0.3e6, GIVEN, GIVEN) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_about_on_time_keeps_to_the_plan),
		cmocka_unit_test(who_is_late_may_have_more),
		cmocka_unit_test(it_goes_on_until_it_is_on_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
