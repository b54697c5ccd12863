#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "net/reach.h"

static enum reach of(const char *host)
{
	struct sockaddr_storage sa;

	assert_true(reach_numeric(&sa, host));
	return reach_of((struct sockaddr *)&sa);
}

static void kinds(void **state)
{
	static const struct {
		const char *host;
		enum reach reach;
	} cases[] = {
		{ "0.0.0.0", REACH_NOBODY }, { "0.1.2.3", REACH_NOBODY }, { "224.0.0.1", REACH_NOBODY },
		{ "255.255.255.255", REACH_NOBODY }, { "127.0.0.1", REACH_HOST }, { "127.255.0.9", REACH_HOST },
		{ "169.254.1.1", REACH_LINK }, { "169.253.1.1", REACH_WORLD }, { "10.1.2.3", REACH_SITE },
		{ "172.16.0.1", REACH_SITE }, { "172.31.255.255", REACH_SITE }, { "172.32.0.1", REACH_WORLD },
		{ "172.15.0.1", REACH_WORLD }, { "192.168.7.7", REACH_SITE }, { "192.169.7.7", REACH_WORLD },
		{ "100.64.0.1", REACH_SITE }, { "100.128.0.1", REACH_WORLD }, { "192.0.2.1", REACH_WORLD },
		{ "::", REACH_NOBODY }, { "::1", REACH_HOST }, { "::2", REACH_NOBODY }, { "ff02::1", REACH_NOBODY },
		{ "fe80::1", REACH_LINK }, { "fc00::1", REACH_SITE }, { "fdff::1", REACH_SITE },
		    { "2001:db8::1", REACH_WORLD },
		{ "::ffff:127.0.0.1", REACH_HOST }, { "::ffff:10.0.0.1", REACH_SITE },
		    { "::ffff:192.0.2.1", REACH_WORLD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		if (of(cases[i].host) != cases[i].reach)
			fail_msg("%s: %d", cases[i].host, of(cases[i].host));
}

static void names(void **state)
{
	struct sockaddr_storage sa;

	(void)state;
	assert_false(reach_numeric(&sa, "localhost"));
	assert_false(reach_numeric(&sa, ""));
	assert_false(reach_numeric(&sa, "10.0.0.1:7811"));
}

static void nearest(void **state)
{
	char host[4][SOCK_HOST_BYTES] = { "192.168.1.3", "10.77.0.3", "fd00::3", "10.77.128.3" };

	(void)state;
	assert_string_equal(reach_nearest(host, 4, "10.77.0.2"), "10.77.0.3");
	assert_string_equal(reach_nearest(host, 4, "10.77.200.2"), "10.77.128.3");
	assert_string_equal(reach_nearest(host, 4, "192.168.1.2"), "192.168.1.3");
	assert_string_equal(reach_nearest(host, 4, "fd00::2"), "fd00::3");
	assert_string_equal(reach_nearest(host, 1, "fd00::2"), "192.168.1.3"); /* no other family */
	assert_string_equal(reach_nearest(host, 2, "a name"), "192.168.1.3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds), cmocka_unit_test(names), cmocka_unit_test(nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
