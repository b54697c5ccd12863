/* Paths that a client selects of a source, as the server receives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/selection.h"
#include "session/send_impl.h"

static struct session s;
static struct send_side side;
static struct ptcp_err e;

static int setup(void **state)
{
	(void)state;
	s.send = &side;
	return selection_new(&side.selection, NULL, NULL);
}

static int teardown(void **state)
{
	(void)state;
	selection_free(side.selection);
	return 0;
}

static int selected(const char *paths, size_t n)
{
	const struct wire_select f = { .paths = { (const uint8_t *)paths, n } };

	return send_select(&s, &f, &e);
}

static void malformed(void **state)
{
	(void)state;
	assert_int_equal(selected("a\0b/c", 6), 0);
	assert_int_equal(selected("a\0../b", 7), PTCP_EPROTO);
	assert_int_equal(selected("", 1), PTCP_EPROTO);
	assert_string_equal(e.msg, "malformed path in a SELECT frame");
}

/* One session cannot have the server keep any number of paths. */
static void too_many(void **state)
{
	char path[4096];
	unsigned i;
	int r;

	(void)state;
	memset(path, '/', sizeof path);
	for (i = 0; i < sizeof path - 1; i += 2)
		path[i] = 'x';
	path[sizeof path - 1] = '\0';
	for (i = 0; (r = selected(path, sizeof path)) == 0; i++)
		assert_true(i <= WIRE_SELECT_MAX_PATHS_BYTES / sizeof path);
	assert_int_equal(r, PTCP_EPROTO);
	assert_string_equal(e.msg, "more than 4 MiB of selected paths");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
