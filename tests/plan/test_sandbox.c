/* A run ends well whatever happens in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glpk.h>
#include <string.h>
#include <unistd.h>

#include "plan/sandbox.h"

static void says_nothing(struct sandbox *run, void *arg)
{
	(void)run;
	*(int *)arg = 1;
}

static void fails(struct sandbox *run, void *arg)
{
	(void)arg;
	sandbox_alloc(run, 1000, 1000);
	sandbox_fail(run, PTCP_EINFEASIBLE, "because %d", 7);
}

static void misuses_glpk(struct sandbox *run, void *arg)
{
	(void)run;
	(void)arg;
	glp_set_col_bnds(glp_create_prob(), 77, GLP_FX, 0, 0);
}

static void allocates(struct sandbox *run, void *arg)
{
	size_t *n = arg;

	for (;; ++*n)
		memset(sandbox_alloc(run, 1 << 10, 1 << 10), 1, 1 << 20);
}

static void lets_glpk_allocate(struct sandbox *run, void *arg)
{
	glp_prob *p = glp_create_prob();

	(void)run;
	(void)arg;
	for (;;)
		glp_add_rows(p, 1000000);
}

static void releases(struct sandbox *run, void *arg)
{
	int i;

	for (i = 0; i < 1000; i++) {
		size_t mark = sandbox_mark(run);

		memset(sandbox_alloc(run, 1, 1 << 20), 1, 1 << 20);
		sandbox_release(run, mark);
	}
	*(int *)arg = 1;
}

static void overflows(struct sandbox *run, void *arg)
{
	(void)arg;
	sandbox_alloc(run, SIZE_MAX / 4, 8);
}

static void ends_well(void **state)
{
	struct ptcp_err e;
	int done = 0;
	size_t n = 0;

	(void)state;
	assert_int_equal(sandbox_start(says_nothing, &done, 1 << 20, 1, &e), 0);
	assert_int_equal(done, 1);
	assert_int_equal(sandbox_start(fails, NULL, 1 << 24, 1, &e), PTCP_EINFEASIBLE);
	assert_string_equal(e.msg, "because 7");
	assert_int_equal(sandbox_start(fails, NULL, 1 << 24, 1, NULL), PTCP_EINFEASIBLE);
	assert_int_equal(sandbox_start(allocates, &n, 32 << 20, 1, &e), PTCP_ENOMEM);
	assert_int_equal(n, 32);
	done = 0;
	assert_int_equal(sandbox_start(releases, &done, 2 << 20, 1, &e), 0);
	assert_int_equal(done, 1);
	assert_int_equal(sandbox_start(overflows, NULL, 2 << 20, 1, &e), PTCP_ENOMEM);
}

/* GLPK's abort() is an error of ours, and it prints nothing. */
static void glpk_does_not_abort(void **state)
{
	int pipes[2], out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), r1, r2;
	struct ptcp_err e1, e2;
	char buf[100];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDOUT_FILENO);
	dup2(pipes[1], STDERR_FILENO);
	r1 = sandbox_start(misuses_glpk, NULL, 1 << 24, 1, &e1);
	r2 = sandbox_start(lets_glpk_allocate, NULL, 8 << 20, 1, &e2);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(pipes[1]);
	close(out);
	close(err);
	assert_int_equal(read(pipes[0], buf, sizeof buf), 0);
	close(pipes[0]);
	assert_int_equal(r1, PTCP_ERANGE);
	assert_non_null(strstr(e1.msg, "column number out of range"));
	assert_int_equal(r2, PTCP_ENOMEM);
	/* The caller's own GLPK, in this thread, was never touched. */
	assert_int_equal(glp_term_out(GLP_ON), GLP_ON);
	glp_free_env();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_well),
		cmocka_unit_test(glpk_does_not_abort),
	};
	return cmocka_run_group_tests_name("plan/sandbox", tests, NULL, NULL);
}
