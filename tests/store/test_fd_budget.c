#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "store/fd_budget.h"

static rlim_t limit(rlim_t n)
{
	struct rlimit r;
	rlim_t was;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	was = r.rlim_cur;
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	return was;
}

/* How many there are to take; all of them are taken then. */
static unsigned take_all(void)
{
	unsigned n = 0;

	while (fd_budget_take(1))
		n++;
	return n;
}

static void leaves_some_free(void **state)
{
	unsigned n;

	(void)state;
	limit(64);
	n = take_all();
	assert_in_range(n, 24, 40);
	assert_false(fd_budget_take(1));
	fd_budget_give(1);
	assert_false(fd_budget_take(2));
	assert_true(fd_budget_take(1));
	fd_budget_give(n);
	assert_int_equal(take_all(), n);
	fd_budget_give(n);
}

static void connections_count(void **state)
{
	unsigned n;

	(void)state;
	limit(64);
	n = take_all();
	fd_budget_give(n);
	fd_budget_count(17);
	assert_int_equal(take_all(), n - 17);
	fd_budget_give(n - 17);
	fd_budget_count((int)n); /* more than there are */
	assert_false(fd_budget_take(1));
	fd_budget_count(-(int)n);
	fd_budget_count(-17);
	assert_int_equal(take_all(), n);
	fd_budget_give(n);
}

static void taken_anyway(void **state)
{
	unsigned n, i;

	(void)state;
	limit(64);
	n = take_all();
	for (i = 0; i < 3; i++) {
		fd_budget_take_unchecked(2);
		assert_false(fd_budget_take(1));
		fd_budget_give(2);
	}
	fd_budget_give(n);
	assert_int_equal(take_all(), n);
	fd_budget_give(n);
}

static void follows_the_limit(void **state)
{
	unsigned few, many;

	(void)state;
	limit(64);
	few = take_all();
	limit(128);
	many = take_all();
	assert_true(many > 0);
	fd_budget_give(few + many);
	limit(16);
	assert_false(fd_budget_take(1));
	assert_int_equal(fd_budget_connections(), 4);
	limit(2);
	assert_int_equal(fd_budget_connections(), 1);
}

static void shares(void **state)
{
	(void)state;
	limit(64);
	assert_int_equal(fd_budget_connections(), 16);
	assert_int_equal(fd_budget_directories(128), 4);
	limit(1024);
	assert_int_equal(fd_budget_directories(128), 64);
	assert_int_equal(fd_budget_directories(32), 32);
}

static void strangers_have_a_part_of_it(void **state)
{
	(void)state;
	limit(64);
	assert_int_equal(fd_budget_unauthenticated(512), 8);
	assert_int_equal(fd_budget_unauthenticated(5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(leaves_some_free), cmocka_unit_test(strangers_have_a_part_of_it),
		cmocka_unit_test(connections_count), cmocka_unit_test(taken_anyway),
		cmocka_unit_test(follows_the_limit), cmocka_unit_test(shares) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
