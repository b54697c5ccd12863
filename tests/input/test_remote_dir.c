/* The remote directory of ptcp batch: forms of addresses, "." and "..", percent signs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "input/remote_dir.h"

static void address_is(const char *dir, const char *path, const char *want)
{
	struct remote_dir d;
	struct ptcp_err e;
	char *address;

	assert_int_equal(remote_dir_init(&d, dir, &e), 0);
	assert_non_null(address = remote_dir_address(&d, path));
	assert_string_equal(address, want);
	free(address);
	remote_dir_fini(&d);
}

static void addresses(void **state)
{
	static const char *const cases[][3] = {
		{ "ptcp://h:1/", "a/b", "ptcp://h:1/a/b" }, { "ptcp://h", ".", "ptcp://h/" },
		{ "ptcp://h/d/", "./", "ptcp://h/d/" }, { "ptcp://h/d", "", "ptcp://h/d" },
		{ "ptcp://h/d", "/a//b/./c", "ptcp://h/a/b/c" }, { "ptcp://h/d/e", "../f", "ptcp://h/d/f" },
		{ "ptcp://h/d", "../../../f", "ptcp://h/f" }, { "ptcp://h/a%20b", "50%", "ptcp://h/a%20b/50%25" },
		{ "ptcp://[::1]:5/x", "\n", "ptcp://[::1]:5/x/%0A" }, { "ptcp://h/a", "..x", "ptcp://h/a/..x" },
		{ "ptcp://h/d", "[*]?", "ptcp://h/d/%5B%2A%5D%3F" },
		{ "ssh://u@h:2/~/d", "f", "ssh://u@h:2/~/d/f" }, { "ssh://h", "f", "ssh://h/~/f" },
		{ "ssh://h/srv", "f", "ssh://h/srv/f" }, { "ssh://h/~ann/x", "y", "ssh://h/~ann/x/y" },
		{ "ssh://h/srv/a", "../../../f", "ssh://h/f" }, { "ssh://h/~/a", "../../f", "ssh://h/~/../f" },
		{ "ssh://h/~/a", "/f", "ssh://h/f" },
		{ "ssh://h/~ann", "../../y/", "ssh://h/~ann/y/" }, { "h:~ann", ".", "h:~ann" },
		{ "h:", "f", "h:f" }, { "h:", "./", "h:" }, { "u@h:d", "a b%", "u@h:d/a b%" },
		{ "h:/srv", "..", "h:/" },
		{ "h:d", "../../x", "h:../x" }, { "[::1]:d", "f", "[::1]:d/f" }, { "u@[::1]:d", "/f", "u@[::1]:/f" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		address_is(cases[i][0], cases[i][1], cases[i][2]);
}

static void malformed(void **state)
{
	static const char *const bad[] = { "", "dir", "/dir", "./a:b", "ptcp://h/%zz", "ptcp://h/%00" };
	struct remote_dir d;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(remote_dir_init(&d, bad[i], &e), PTCP_EUSAGE);
		remote_dir_fini(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(addresses), cmocka_unit_test(malformed) };

	return cmocka_run_group_tests_name("input/remote_dir", tests, NULL, NULL);
}
