/* A plan on a host without GLPK. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "plan/sandbox.h"

void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");

	(void)file;
	memcpy(&real, &found, sizeof found);
	return real("libnone.so", mode);
}

static void never(struct sandbox *run, void *arg)
{
	(void)run;
	(void)arg;
	fail_msg("planned without GLPK");
}

static void is_told(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(sandbox_start(never, NULL, SANDBOX_MEMORY_BYTES, 1, &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "cannot load the solver GLPK: libnone.so: "));
	assert_int_equal(sandbox_start(never, NULL, SANDBOX_MEMORY_BYTES, 1, &e), PTCP_ECONFIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(is_told) };

	return cmocka_run_group_tests_name("plan/no_glpk", tests, NULL, NULL);
}
