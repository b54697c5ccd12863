#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "core/clock.h"
#include "core/units.h"

static void goes_on(void **state)
{
	struct timespec ms = { 0, 2 * (long)NS_PER_MS };
	struct mono a = mono_now(), b;

	(void)state;
	nanosleep(&ms, NULL);
	b = mono_now();
	assert_true(mono_diff_ns(b, a) >= 2 * NS_PER_MS);
	assert_true(mono_diff_ns(b, a) < 60 * NS_PER_S);
	assert_int_equal(mono_diff_ns(a, b), 0);
}

static void saturates(void **state)
{
	struct mono t = { 5 };

	(void)state;
	assert_int_equal(mono_add_ns(t, 7).ns, 12);
	assert_int_equal(mono_add_ns(t, UINT64_MAX - 5).ns, UINT64_MAX);
	assert_int_equal(mono_add_ns(t, UINT64_MAX).ns, MONO_NEVER.ns);
	assert_int_equal(mono_add_ns(MONO_NEVER, 1).ns, MONO_NEVER.ns);
	assert_int_equal(mono_diff_ns(MONO_NEVER, t), UINT64_MAX - 5);
	assert_int_equal(mono_min(t, MONO_NEVER).ns, 5);
	assert_int_equal(mono_min(MONO_NEVER, t).ns, 5);
}

static void backs_off(void **state)
{
	(void)state;
	assert_int_equal(backoff_ns(100, 0, 3, 0), 75);
	assert_int_equal(backoff_ns(100, 0, 3, 255), 125);
	assert_int_equal(backoff_ns(100, 2, 3, 0), 300);
	assert_int_equal(backoff_ns(100, 3, 3, 255), 1000);
	assert_int_equal(backoff_ns(100, 70, 3, 255), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(goes_on), cmocka_unit_test(saturates),
		cmocka_unit_test(backs_off) };
	return cmocka_run_group_tests_name("core/clock", tests, NULL, NULL);
}
