#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "core/name_set.h"

static uint64_t hash_of(uint64_t i) { return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1; }

static void members(void **state)
{
	struct name_set s = { 0 };
	uint64_t i;

	(void)state;
	assert_false(name_set_has(&s, 7));
	for (i = 0; i < 200000; i++) {
		assert_int_equal(name_set_add(&s, hash_of(i), NULL), 0);
		assert_int_equal(name_set_add(&s, hash_of(i / 2), NULL), 0); /* while the table moves, too */
		assert_true(name_set_has(&s, hash_of(i / 3)));
		assert_true(name_set_has(&s, hash_of(i)));
	}
	for (i = 0; i < 400000; i++)
		assert_int_equal(name_set_has(&s, hash_of(i)), i < 200000);
	name_set_fini(&s);
	assert_false(name_set_has(&s, hash_of(1)));
}

static void moved(void **state)
{
	struct name_set a = { 0 }, b = { 0 };
	uint64_t i;

	(void)state;
	for (i = 0; i < 3000; i++) {
		assert_int_equal(name_set_add(&a, hash_of(i), NULL), 0);
		assert_int_equal(name_set_add(&b, hash_of(i + 2000), NULL), 0);
	}
	assert_int_equal(name_set_move(&a, &b, NULL), 0);
	assert_int_equal(a.n, 5000);
	assert_int_equal(b.n, 0);
	for (i = 0; i < 6000; i++)
		assert_int_equal(name_set_has(&a, hash_of(i)), i < 5000);
	name_set_fini(&a);
}

/* A server adds names on its control thread: no addition copies a table of millions. */
static void in_steps(void **state)
{
	struct name_set s = { 0 };
	struct timespec a, b;
	double took, longest = 0, sum = 0;
	uint64_t i;

	(void)state;
	for (i = 0; i < 800000; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		assert_int_equal(name_set_add(&s, hash_of(i), NULL), 0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
		longest = took > longest ? took : longest;
		sum += took;
	}
	if (longest > sum / 100 && longest > 0.02) /* a copy of the last table takes several percent of all */
		fail_msg("one addition took %g s of %g s", longest, sum);
	name_set_fini(&s);
}

static void limited(void **state)
{
	struct memory_budget *budget;
	struct memory_account *a;
	struct name_set s;
	struct ptcp_err e = { 0 };
	uint64_t i = 0;

	(void)state;
	assert_int_equal(memory_budget_new(&budget, 16 << 20, NULL), 0);
	assert_int_equal(memory_account_new(&a, budget, "x", NULL), 0);
	s = (struct name_set){ .memory = a };
	while (name_set_add(&s, hash_of(i), &e) == 0)
		i++;
	assert_int_equal(e.code, PTCP_ENOMEM);
	assert_in_range(i, 100000, 262144);
	assert_true(memory_budget_used(budget) <= 4 << 20);
	assert_true(name_set_has(&s, hash_of(i - 1)));
	name_set_fini(&s);
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(a);
	memory_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members),
		cmocka_unit_test(moved), cmocka_unit_test(in_steps), cmocka_unit_test(limited),
	};

	return cmocka_run_group_tests_name("core/name_set", tests, NULL, NULL);
}
