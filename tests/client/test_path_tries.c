/* The order of the paths that a client tries. */
#include "fixture.h"

static struct ptcp_err error(int code)
{
	struct ptcp_err e;

	err_set(&e, code, "error %d", code);
	return e;
}

static bool fails(struct path_tries *p, bool slow, int code)
{
	const struct ptcp_err e = error(code);

	return path_tries_failed(p, slow, &e);
}

/* From the first path on, around, each once. */
static void each_once(void **state)
{
	struct path_tries p;

	(void)state;
	path_tries_begin(&p, 2, 4);
	assert_int_equal(p.path, 2);
	assert_true(fails(&p, false, PTCP_ECONNECT));
	assert_true(path_tries_next(&p));
	assert_int_equal(p.path, 3);
	assert_true(fails(&p, false, PTCP_ECONNECT));
	assert_true(path_tries_next(&p));
	assert_int_equal(p.path, 0);
	assert_true(fails(&p, false, PTCP_ECONNECT));
	assert_false(path_tries_all(&p));
	assert_true(path_tries_next(&p));
	assert_int_equal(p.path, 1);
	assert_true(fails(&p, false, PTCP_ECONNECT));
	assert_true(path_tries_all(&p));
	assert_false(path_tries_next(&p));
	assert_false(p.patient);
}

/* A path without an answer gets a second chance, after all others, and more time; no third one. */
static void slow_ones_again(void **state)
{
	struct path_tries p;

	(void)state;
	path_tries_begin(&p, 1, 3);
	assert_false(fails(&p, true, PTCP_ETIMEOUT));   /* 1 */
	assert_true(path_tries_next(&p));
	assert_true(fails(&p, false, PTCP_ECONNECT));   /* 2 */
	assert_true(path_tries_next(&p));
	assert_false(p.patient);
	assert_false(fails(&p, true, PTCP_ETIMEOUT));   /* 0 */
	assert_true(path_tries_next(&p));
	assert_int_equal(p.path, 0);
	assert_true(p.patient);
	assert_true(fails(&p, true, PTCP_ETIMEOUT));
	assert_true(path_tries_next(&p));
	assert_int_equal(p.path, 1);
	assert_true(fails(&p, true, PTCP_ETIMEOUT));
	assert_false(path_tries_next(&p));
}

/* The only path is patient from the start, and is not tried again. */
static void the_only_path(void **state)
{
	struct path_tries p;

	(void)state;
	path_tries_begin(&p, 0, 1);
	assert_true(fails(&p, true, PTCP_ETIMEOUT));
	assert_true(path_tries_all(&p));
	assert_false(path_tries_next(&p));
}

/* The outcome is the first path's error; but a busy host may be free later. */
static void the_error(void **state)
{
	struct path_tries p;

	(void)state;
	path_tries_begin(&p, 0, 4);
	fails(&p, false, PTCP_ECONNECT);
	assert_int_equal(p.why.code, PTCP_ECONNECT);
	path_tries_next(&p);
	fails(&p, false, PTCP_EREFUSED);
	assert_int_equal(p.why.code, PTCP_ECONNECT);
	path_tries_next(&p);
	fails(&p, false, PTCP_EBUSY);
	assert_int_equal(p.why.code, PTCP_EBUSY);
	assert_string_equal(p.why.msg, error(PTCP_EBUSY).msg);
	path_tries_next(&p);
	fails(&p, false, PTCP_ECONNECT);
	assert_int_equal(p.why.code, PTCP_EBUSY);
	path_tries_begin(&p, 3, 4); /* nothing is left of the earlier attempts */
	assert_int_equal(p.why.code, 0);
	assert_int_equal(p.slow, 0);
	assert_int_equal(p.n_failed, 0);
}

static void as_many_as_possible(void **state)
{
	struct path_tries p;
	unsigned i;

	(void)state;
	path_tries_begin(&p, 0, PTCP_PATHS_MAX);
	for (i = 0; i < PTCP_PATHS_MAX; i++) {
		assert_int_equal(p.path, i);
		assert_false(fails(&p, true, PTCP_ETIMEOUT));
		assert_true(path_tries_next(&p));
	}
	for (i = 0; i < PTCP_PATHS_MAX; i++) {
		assert_int_equal(p.path, i);
		assert_true(fails(&p, true, PTCP_ETIMEOUT));
		assert_int_equal(path_tries_next(&p), i + 1 < PTCP_PATHS_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_once),
		cmocka_unit_test(slow_ones_again),
		cmocka_unit_test(the_only_path),
		cmocka_unit_test(the_error),
		cmocka_unit_test(as_many_as_possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
