#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/err.h"

static void every_code_has_a_name(void **state)
{
	int code;

	(void)state;
	for (code = PTCP_ENOMEM; code >= PTCP_ESUPERSEDED; code--) {
		assert_memory_equal(ptcp_err_name(code), "PTCP_E", 6);
		assert_string_not_equal(ptcp_err_text(code), "unknown error");
	}
	assert_string_equal(ptcp_err_name(PTCP_ENOSPC), "PTCP_ENOSPC");
	assert_string_equal(ptcp_err_name(0), "PTCP_?");
	assert_string_equal(ptcp_err_text(-1000), "unknown error");
}

static void fills(void **state)
{
	struct ptcp_err e;

	(void)state;
	memset(&e, 0x55, sizeof e);
	assert_int_equal(err_set(&e, PTCP_EUSAGE, "%s: %d", "x", 5), PTCP_EUSAGE);
	assert_int_equal(e.code, PTCP_EUSAGE);
	assert_int_equal(e.sys, 0);
	assert_string_equal(e.msg, "x: 5");

	errno = ENOENT;
	assert_int_equal(err_sys(&e, PTCP_EIO, "opening %s", "f"), PTCP_EIO);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(e.sys, ENOENT);
	assert_string_equal(e.msg, "opening f: No such file or directory");

	assert_int_equal(err_while(&e, PTCP_EIO, "file %d", 3), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	assert_string_equal(e.msg, "file 3: opening f: No such file or directory");

	assert_int_equal(err_nomem(&e), PTCP_ENOMEM);
	assert_string_equal(e.msg, ptcp_err_text(PTCP_ENOMEM));
}

static void without_a_struct(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, PTCP_EIO, "x"), PTCP_EIO);
	assert_int_equal(err_sys(NULL, PTCP_EIO, "x"), PTCP_EIO);
	assert_int_equal(err_while(NULL, PTCP_EIO, "x"), PTCP_EIO);
	assert_int_equal(err_nomem(NULL), PTCP_ENOMEM);
}

/* Sentences that are too long are cut, and nothing behind the struct is touched. */
static void long_ones_are_cut(void **state)
{
	struct { struct ptcp_err e; char guard; } g = { .guard = 'G' };
	char text[2 * sizeof g.e.msg];
	int i;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	err_set(&g.e, PTCP_EIO, "%s", text);
	assert_int_equal(strlen(g.e.msg), sizeof g.e.msg - 1);
	errno = EIO;
	err_sys(&g.e, PTCP_EIO, "%s", text);
	assert_int_equal(strlen(g.e.msg), sizeof g.e.msg - 1);
	for (i = 0; i < 300; i++)
		err_while(&g.e, PTCP_EIO, "again");
	assert_int_equal(strlen(g.e.msg), sizeof g.e.msg - 1);
	assert_int_equal(g.guard, 'G');
}

static void from_errno(void **state)
{
	(void)state;
	assert_int_equal(err_from_errno(ENOSPC), PTCP_ENOSPC);
	assert_int_equal(err_from_errno(EDQUOT), PTCP_ENOSPC);
	assert_int_equal(err_from_errno(ENOMEM), PTCP_ENOMEM);
	assert_int_equal(err_from_errno(EACCES), PTCP_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_name),
		cmocka_unit_test(fills),
		cmocka_unit_test(without_a_struct),
		cmocka_unit_test(long_ones_are_cut),
		cmocka_unit_test(from_errno),
	};
	return cmocka_run_group_tests_name("core/err", tests, NULL, NULL);
}
