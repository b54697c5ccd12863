/* against: strangers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/log.h"

static struct mono at(uint64_t seconds) { return (struct mono){ (1000 + seconds) * NS_PER_S }; }

/* Lines written of `n` within that second; *left_out: those reported as refused. */
static unsigned written(struct log_limit *l, uint64_t second, unsigned n, unsigned *left_out)
{
	unsigned lines = 0, left;

	for (*left_out = 0; n > 0; n--) {
		lines += log_limit_allows(l, at(second), &left);
		*left_out += left;
	}
	return lines;
}

static void limits_lines_of_a_minute(void **state)
{
	struct log_limit l = { .n = 0 };
	unsigned left;

	(void)state;
	assert_int_equal(written(&l, 0, 10, &left), 10);
	assert_int_equal(written(&l, 59, 1000, &left), LOG_LIMIT_LINES - 10);
	assert_int_equal(left, 0);
	assert_int_equal(written(&l, 60, 1, &left), 1);
	assert_int_equal(left, 950 + 0);
	assert_int_equal(written(&l, 61, 1000, &left), LOG_LIMIT_LINES - 1);
	assert_int_equal(left, 0);
	assert_int_equal(written(&l, 4000, 5, &left), 5);
	assert_int_equal(left, 941);
	assert_int_equal(written(&l, 5000, 5, &left), 5);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(limits_lines_of_a_minute) };

	return cmocka_run_group_tests_name("core/log", tests, NULL, NULL);
}
