#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/selection.h"

#define MIB (UINT64_C(1) << 20)

static struct memory_budget *budget;
static struct memory_account *account;
static struct selection *s;

static int setup(void **state)
{
	(void)state;
	return memory_budget_new(&budget, 64 * MIB, NULL) < 0 || memory_account_new(&account, budget, "x", NULL) < 0 ||
	    selection_new(&s, account, NULL) < 0;
}

static int teardown(void **state)
{
	uint64_t used;

	(void)state;
	selection_free(s);
	used = memory_budget_used(budget);
	memory_account_free(account);
	memory_budget_free(budget);
	return used != 0;
}

static void add(const char *path) { assert_int_equal(selection_add(s, path, strlen(path), NULL), 0); }

/* What the process takes for the paths is what the account has; a path takes what remains of it, however it is
 * written. */
static void memory_of_paths(void **state)
{
	char path[4097] = "a", name[16];
	unsigned i;

	(void)state;
	for (i = 1; i < 4096; i += 2)
		memcpy(path + i, "/.", 2);
	path[4095] = '\0';
	for (i = 0; i < 10000; i++)
		add(path);
	assert_int_equal(selection_bytes(s), 20000);
	assert_in_range(memory_budget_used(budget), 60000, 128 << 10);
	for (i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "%08x", i * 2654435761u);
		add(name);
	}
	assert_in_range(memory_budget_used(budget), 1300000, 2 * MIB);
	assert_int_equal(selection_sort(s, NULL), 0);
	assert_int_equal(selection_n(s), 100001);
	for (i = 1; i < 100001; i++)
		assert_true(strcmp(selection_path(s, i - 1), selection_path(s, i)) < 0);
}

static void everything(void **state)
{
	struct selection_part all;
	unsigned i;

	(void)state;
	add("a/b");
	assert_true(selection_begin(s, &all));
	for (i = 0; i < 1000000; i++)
		add(i % 2 ? "./././" : "later");
	assert_int_equal(memory_budget_used(budget), 0);
	assert_int_equal(selection_sort(s, NULL), 0);
	assert_int_equal(selection_n(s), 1);
	assert_string_equal(selection_path(s, 0), "");
	assert_false(selection_begin(s, &all));
}

static void refused_beyond_the_budget(void **state)
{
	struct ptcp_err e = { 0 };
	char path[1000];
	unsigned n = 0;

	(void)state;
	memset(path, 'd', sizeof path);
	for (unsigned i = 200; i < sizeof path; i += 200)
		path[i] = '/';
	while (selection_add(s, path, sizeof path, &e) == 0)
		n++;
	assert_int_equal(e.code, PTCP_ENOMEM);
	assert_non_null(strstr(e.msg, "--max-memory"));
	assert_in_range(n, 4000, 16000); /* a quarter of 64 MiB, with both buffers while one grows */
	assert_int_equal(selection_n(s), n);
	assert_true(memory_budget_used(budget) <= 16 * MIB);
	assert_memory_equal(selection_path(s, n - 1), path, sizeof path); /* the refused path has changed nothing */
}

#define selection_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		selection_test(memory_of_paths), selection_test(everything), selection_test(refused_beyond_the_budget),
	};

	return cmocka_run_group_tests_name("core/selection", tests, NULL, NULL);
}
