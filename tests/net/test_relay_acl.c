/* Where a relay may connect to: what is listed, and no special address unless it is listed as one.
 * against: splicing */
#include "fixture.h"

#include <stdatomic.h>
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

/* Of the host `name`, which has this address now: `first`, and may tell it by its first answer. */
static bool judge(const char *name, const char *address, unsigned port, bool first)
{
	struct resolve_answer a;
	bool ok;

	assert_true(resolve_number(&a, address, 0));
	ok = relay_acl_permit(list, name, port, first ? a.all : NULL, a.all->ai_addr);
	freeaddrinfo(a.all);
	assert_true(!ok || relay_acl_may_permit(list, name, port)); /* else it would not have been resolved */
	return ok;
}

static bool permits(const char *name, const char *address, unsigned port) { return judge(name, address, port, false); }

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
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:0.0.0.0", "::127.0.0.1",
		"fe80::1", "fc00::1",
		"fd12::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1",
		"2002:7f00:1::", "2001:0:1::1" };
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

/* ---- Names ---- */

static struct loop *loop;
static struct resolver *resolver;
static int error = EAI_AGAIN;  /* of dead.test */
static atomic_uint asked;      /* for dead.test */
static unsigned answered;

/* As one name server: dead.test has no address yet, special.test is 10.1.2.3, gone.test does not exist. */
static int fake(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	if (strcmp(host, "gone.test") == 0)
		return EAI_NONAME;
	if (strcmp(host, "dead.test") == 0) {
		atomic_fetch_add(&asked, 1);
		if (error != 0)
			return error;
	}
	return getaddrinfo("10.1.2.3", service, hints, out);
}

static void on_answer(struct resolve *q, const struct resolve_answer *a)
{
	(void)q;
	(void)a;
	answered++;
}

static bool has_answers(void *arg) { return answered >= *(const unsigned *)arg; }

/* Before the loop has run: shares the list's own lookups of these names, and so is answered after the list. */
static void settle(const char *a, const char *b)
{
	struct resolve q[2] = { { .lookup = NULL }, { .lookup = NULL } };
	struct ptcp_err e;

	answered = 0;
	assert_int_equal(resolve_start(&q[0], resolver, NULL, a, 0, on_answer, &e), 0);
	assert_int_equal(resolve_start(&q[1], resolver, NULL, b, 0, on_answer, &e), 0);
	assert_true(nf_await(loop, has_answers, &(unsigned){ 2 }));
}

static void begin(void)
{
	struct ptcp_err e;

	assert_int_equal(loop_new(&loop, &e), 0);
	assert_int_equal(resolver_new(&resolver, loop, fake, &e), 0);
	assert_int_equal(relay_acl_resolve(list, loop, resolver, NULL, &e), 0);
}

static void end(void)
{
	forget();
	resolver_free(resolver);
	loop_free(loop);
}

/* What a name means may change; what it may mean does not. */
static void names(void **state)
{
	(void)state;
	lists("special.test:99");
	lists("gone.test:*");
	begin();
	assert_false(permits("special.test", "10.1.2.3", 99));    /* not resolved yet */
	settle("special.test", "gone.test");
	assert_true(permits("special.test", "10.1.2.3", 99));
	assert_true(permits("Special.Test.", "10.1.2.3", 99));
	assert_false(permits("special.test", "10.1.2.3", 100));
	assert_false(judge("special.test", "10.0.0.1", 99, true)); /* not in its first answer */
	assert_true(permits("special.test", "192.0.2.1", 99));
	assert_false(permits("10.1.2.3", "10.1.2.3", 99));        /* the name is listed, not the address */
	assert_false(permits("special", "192.0.2.1", 99));
	assert_true(permits("gone.test", "192.0.2.1", 1));
	assert_false(judge("gone.test", "10.1.2.3", 1, true));    /* registered later */
	assert_false(judge("gone.test", "::ffff:127.0.0.1", 1, true));
	end();
}

/* A client's request may bring the first answer. */
static void first_answer_to_a_client(void **state)
{
	(void)state;
	lists("dead.test");
	begin();
	assert_false(permits("dead.test", "10.7.7.7", 7811));
	assert_true(judge("dead.test", "10.7.7.7", 7811, true));
	assert_true(permits("dead.test", "10.7.7.7", 7811));
	assert_false(judge("dead.test", "10.1.2.3", 7811, true));
	end();
}

static bool permits_dead(void *arg) { return permits("dead.test", arg, 7811); }

static bool asks_again(void *arg)
{
	(void)arg;
	return atomic_load(&asked) >= 2;
}

/* The name server of a name comes back. */
static void resolved_again(void **state)
{
	(void)state;
	lists("dead.test");
	error = EAI_AGAIN;
	begin();
	assert_true(nf_await(loop, permits_dead, "192.0.2.1") && nf_await(loop, asks_again, NULL));
	assert_false(permits("dead.test", "10.1.2.3", 7811));
	assert_true(permits("dead.test", "192.0.2.1", 7811));
	error = 0;
	assert_true(nf_await(loop, permits_dead, "10.1.2.3"));
	end();
}

/* Names that no entry permits are not resolved. */
static void without_look_up(void **state)
{
	(void)state;
	assert_false(relay_acl_may_permit(NULL, "a.test", 7811));
	lists("a.test");
	lists("b.test:*");
	lists("10.0.0.0/8:80");
	assert_true(relay_acl_may_permit(list, "A.test.", 7811));
	assert_false(relay_acl_may_permit(list, "a.test", 81));
	assert_false(relay_acl_may_permit(list, "c.test", 7811));
	assert_true(relay_acl_may_permit(list, "b.test", 81));
	assert_true(relay_acl_may_permit(list, "c.test", 80)); /* may have an address of the range */
	forget();
}

static void what_cannot_be_listed(void **state)
{
	static const char *const bad[] = { "", ":80", "host:", "host:0", "host:65536", "host:1x",
		"host:**", "10.0.0.0/33",
		"10.0.0.1/8", "10.0.0.0/", "10.0.0.0/8/8", "[::1", "[::1]x", "::/129", "fe80::1%lo",
		"host/8", "*", "*:80", "10.0.0", "1.2.3.4.5", "[]:80", "10.0.0.0/-1", "10.0.0.0/0008" };
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
		nf_test(first_answer_to_a_client),
		nf_timed_test(resolved_again),
		nf_test(without_look_up),
		nf_test(what_cannot_be_listed),
	};

	return cmocka_run_group_tests_name("net/relay_acl", tests, NULL, NULL);
}
