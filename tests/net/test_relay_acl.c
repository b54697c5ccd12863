/* Where a relay may connect to: what is listed, and no special address unless it is listed as one. */
#include "fixture.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "net/relay_acl.h"

static struct relay_acl *list;

static void lists(const char *text)
{
	struct ptcp_err e;

	if (relay_acl_add(&list, text, 7811, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
}

static void forget(void)
{
	relay_acl_free(list);
	list = NULL;
}

/* Of the host `name`, which has this address. */
static bool permits(const char *name, const char *address, unsigned port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *ai;
	bool ok;

	assert_int_equal(getaddrinfo(address, NULL, &hints, &ai), 0);
	ok = relay_acl_permit(list, name, port, ai->ai_addr);
	freeaddrinfo(ai);
	return ok;
}

static void addresses_and_ports(void **state)
{
	(void)state;
	assert_false(permits("192.0.2.1", "192.0.2.1", 7811)); /* nothing is listed */
	lists("192.0.2.1");
	lists("198.51.100.0/24:80");
	lists("203.0.113.7:*");
	lists("[2001:db8::/32]:9");
	lists("2001:db9::1");
	assert_true(permits("192.0.2.1", "192.0.2.1", 7811));
	assert_true(permits("any.name", "192.0.2.1", 7811));
	assert_false(permits("192.0.2.1", "192.0.2.1", 7812));
	assert_false(permits("192.0.2.2", "192.0.2.2", 7811));
	assert_true(permits("x", "198.51.100.255", 80));
	assert_false(permits("x", "198.51.101.0", 80));
	assert_false(permits("x", "198.51.100.255", 7811));
	assert_true(permits("x", "203.0.113.7", 1));
	assert_true(permits("x", "203.0.113.7", 65535));
	assert_true(permits("x", "2001:db8:ffff::1", 9));
	assert_false(permits("x", "2001:db8:ffff::1", 7811));
	assert_true(permits("x", "2001:db9::1", 7811));
	assert_false(permits("x", "2001:db9::2", 7811));
	forget();
}

/* Lists everything there is, and nothing that is special. */
static void everything_is_not_special(void **state)
{
	static const char *const no[] = { "127.0.0.1", "127.255.0.1", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1",
		"172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:0.0.0.0", "::127.0.0.1", "fe80::1", "fc00::1",
		"fd12::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:1::1" };
	static const char *const yes[] = { "192.0.2.1", "172.32.0.1", "11.0.0.1", "126.0.0.1", "2a00::1", "2001:db8::1",
		"::ffff:192.0.2.1" };
	size_t i;

	(void)state;
	lists("0.0.0.0/0:*");
	lists("[::/0]:*");
	for (i = 0; i < sizeof no / sizeof *no; i++)
		if (permits(no[i], no[i], 7811))
			fail_msg("%s is permitted", no[i]);
	for (i = 0; i < sizeof yes / sizeof *yes; i++)
		if (!permits(yes[i], yes[i], 7811))
			fail_msg("%s is not permitted", yes[i]);
	forget();
}

static void special_ones_listed(void **state)
{
	(void)state;
	lists("10.0.0.0/8");
	lists("127.0.0.1");
	lists("8.0.0.0/6"); /* has 10.0.0.0/8 in it, and others */
	lists("[fd12::/16]");
	assert_true(permits("x", "10.200.0.1", 7811));
	assert_true(permits("x", "::ffff:10.200.0.1", 7811)); /* the same address */
	assert_true(permits("x", "127.0.0.1", 7811));
	assert_true(permits("x", "::ffff:127.0.0.1", 7811));
	assert_false(permits("x", "127.0.0.2", 7811));
	assert_false(permits("x", "::1", 7811));
	assert_true(permits("x", "9.0.0.1", 7811));
	assert_true(permits("x", "fd12::1", 7811));
	assert_false(permits("x", "fd13::1", 7811));
	forget();
	lists("8.0.0.0/6");
	assert_false(permits("x", "10.200.0.1", 7811));
	forget();
}

/* What a name means may change; what it may mean does not. */
static void names(void **state)
{
	(void)state;
	lists("localhost:99");
	lists("elsewhere.invalid:*");
	assert_true(permits("localhost", "127.0.0.1", 99));
	assert_true(permits("LocalHost.", "127.0.0.1", 99));
	assert_false(permits("localhost", "127.0.0.1", 100));
	assert_false(permits("localhost", "10.0.0.1", 99));       /* it had no such address when it was listed */
	assert_true(permits("localhost", "192.0.2.1", 99));
	assert_false(permits("127.0.0.1", "127.0.0.1", 99));      /* the name is listed, not the address */
	assert_false(permits("local", "192.0.2.1", 99));
	assert_true(permits("elsewhere.invalid", "192.0.2.1", 1));
	assert_false(permits("elsewhere.invalid", "127.0.0.1", 1));
	assert_false(permits("elsewhere.invalid", "::ffff:127.0.0.1", 1));
	forget();
}

static void what_cannot_be_listed(void **state)
{
	static const char *const bad[] = { "", ":80", "host:", "host:0", "host:65536", "host:1x", "host:**", "10.0.0.0/33",
		"10.0.0.1/8", "10.0.0.0/", "10.0.0.0/8/8", "[::1", "[::1]x", "::/129", "fe80::1%lo", "host/8", "*", "*:80",
		"10.0.0", "1.2.3.4.5", "[]:80", "10.0.0.0/-1", "10.0.0.0/0008" };
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (relay_acl_add(&list, bad[i], 7811, &e) != PTCP_EUSAGE)
			fail_msg("%s is taken", bad[i]);
		assert_non_null(strstr(e.msg, "--relay-to"));
	}
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(addresses_and_ports),
		nf_test(everything_is_not_special),
		nf_test(special_ones_listed),
		nf_test(names),
		nf_test(what_cannot_be_listed),
	};

	return cmocka_run_group_tests_name("net/next_hops", tests, NULL, NULL);
}
