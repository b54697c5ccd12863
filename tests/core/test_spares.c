#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/spares.h"

#define OBJECT_BYTES 100
#define CHARGE_BYTES 150

struct accounted {
	struct memory_budget *budget;
	struct memory_account *account;
	struct spares spares;
};

static void begin(struct accounted *a, uint64_t max_bytes)
{
	assert_int_equal(memory_budget_new(&a->budget, max_bytes, NULL), 0);
	assert_int_equal(memory_account_new(&a->account, a->budget, "client", NULL), 0);
	spares_init(&a->spares, a->account, OBJECT_BYTES, CHARGE_BYTES);
}

static void end(struct accounted *a)
{
	spares_fini(&a->spares);
	assert_int_equal(memory_budget_used(a->budget), 0);
	memory_account_free(a->account);
	memory_budget_free(a->budget);
}

static void an_object_is_taken_zeroed_again(void **state)
{
	static const char zeros[OBJECT_BYTES];
	struct accounted a;
	void *first, *second;

	(void)state;
	begin(&a, 1 << 20);
	first = spares_take(&a.spares, NULL);
	second = spares_take(&a.spares, NULL);
	assert_ptr_not_equal(first, second);
	assert_memory_equal(first, zeros, OBJECT_BYTES);
	memset(first, 0x55, OBJECT_BYTES);
	memset(second, 0x55, OBJECT_BYTES);
	spares_give(&a.spares, first);
	spares_give(&a.spares, second);
	spares_give(&a.spares, NULL);
	assert_int_equal(memory_budget_used(a.budget), SPARES_MAX > 0 ? 2 * CHARGE_BYTES : 0);
	first = spares_take(&a.spares, NULL);
	if (SPARES_MAX > 0)
		assert_ptr_equal(first, second);
	assert_memory_equal(first, zeros, OBJECT_BYTES);
	spares_give(&a.spares, first);
	end(&a);
}

static void as_many_as_fit_are_kept(void **state)
{
	static void *all[2 * SPARES_MAX + 2];
	struct accounted a;
	size_t i, n = sizeof all / sizeof *all;

	(void)state;
	begin(&a, 64 << 20);
	for (i = 0; i < n; i++)
		assert_non_null(all[i] = spares_take(&a.spares, NULL));
	assert_int_equal(memory_budget_used(a.budget), n * CHARGE_BYTES);
	for (i = 0; i < n; i++)
		spares_give(&a.spares, all[i]);
	assert_int_equal(memory_budget_used(a.budget), SPARES_MAX * CHARGE_BYTES);
	end(&a);
}

static void a_limit_refuses(void **state)
{
	struct ptcp_err why;
	struct accounted a;

	(void)state;
	begin(&a, 4 * CHARGE_BYTES - 1); /* a session has a quarter */
	assert_null(spares_take(&a.spares, &why));
	assert_int_equal(why.code, PTCP_ENOMEM);
	end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_taken_zeroed_again),
		cmocka_unit_test(as_many_as_fit_are_kept),
		cmocka_unit_test(a_limit_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
