#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/resource.h>

#include "fs/fd_budget.h"

static rlim_t limit(rlim_t n)
{
	struct rlimit r;
	rlim_t was;
	unsigned i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	was = r.rlim_cur;
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	for (i = 0; i < FD_BUDGET_FILES_PER_LIMIT; i++) /* until the limit is read again */
		if (fd_budget_take(1))
			fd_budget_give(1);
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
	assert_in_range(n, 8, 12); /* half of the room */
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
	fd_budget_count((int)n + 3);
	assert_int_equal(take_all(), n - 3);
	fd_budget_give(n - 3);
	fd_budget_count(100); /* more than there are */
	assert_false(fd_budget_take(1));
	assert_int_equal(fd_budget_left(), 0);
	assert_false(fd_budget_reserve(1));
	fd_budget_count(-100);
	fd_budget_count(-(int)n - 3);
	assert_int_equal(take_all(), n);
	fd_budget_give(n);
}

/* Reservations have the room that files leave, and files the room that reservations leave. */
static void reservations(void **state)
{
	unsigned room, files;

	(void)state;
	limit(256);
	room = fd_budget_left();
	assert_in_range(room, 128, 192);
	assert_true(fd_budget_reserve(room - 5));
	assert_false(fd_budget_reserve(6));
	assert_int_equal(fd_budget_left(), 5);
	assert_int_equal(take_all(), 5);
	assert_false(fd_budget_reserve(1));
	fd_budget_give(5);
	fd_budget_count(5 - (int)room);
	files = take_all();
	assert_int_equal(files, room / 2);
	assert_int_equal(fd_budget_left(), room - files);
	fd_budget_give(files);
}

/* All shares together, and a few for short moments, stay below the limit. */
static void shares_do_not_overlap(void **state)
{
	unsigned n, directories = 0, inbound = 0;
	const rlim_t limits[] = { 64, 256, 1024, 16384 };
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		limit(limits[i]);
		for (directories = 0; fd_budget_take_directory(); directories++)
			;
		for (inbound = 0; !fd_budget_inbound_full(); inbound++)
			fd_budget_count_inbound(1);
		n = fd_budget_left() + directories + inbound + fd_budget_waiting(UINT32_MAX);
		assert_in_range(n, limits[i] / 2, limits[i] - 20);
		fd_budget_count_inbound(-(int)inbound);
		while (directories-- > 0)
			fd_budget_give_directory();
	}
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
	assert_int_equal(fd_budget_unauthenticated(512), 4);
	assert_int_equal(fd_budget_unauthenticated(3), 3);
	assert_int_equal(fd_budget_waiting(256), 8);
	assert_int_equal(fd_budget_waiting(2), 2);
}

static void a_limit_that_is_too_low_is_named(void **state)
{
	unsigned n, max, named;
	struct ptcp_err e;

	(void)state;
	for (n = 1; n < 64; n++) {
		limit(8);
		assert_false(fd_budget_fits(n));
		assert_int_equal(fd_budget_check(n, &e), PTCP_ECONFIG);
		assert_int_equal(sscanf(e.msg, "open files: the limit of 8 is too low, at least %u are needed", &named),
		    1);
		limit(named - 1);
		assert_int_equal(fd_budget_check(n, NULL), PTCP_ECONFIG);
		for (max = named; max < 400; max++) {
			limit(max);
			assert_int_equal(fd_budget_check(n, NULL), 0);
			assert_true(fd_budget_reserve(n));
			fd_budget_count(-(int)n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(leaves_some_free),
		cmocka_unit_test(strangers_have_a_part_of_it),
		cmocka_unit_test(connections_count), cmocka_unit_test(reservations),
		cmocka_unit_test(shares_do_not_overlap), cmocka_unit_test(taken_anyway),
		cmocka_unit_test(follows_the_limit), cmocka_unit_test(shares),
		cmocka_unit_test(a_limit_that_is_too_low_is_named) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
