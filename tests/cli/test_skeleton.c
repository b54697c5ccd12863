/* Skeletons of overlays: operands, names, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/skeleton/skeleton.h"

/* The hosts of `operands`, separated by blanks. */
static int make(struct skeleton *s, const char *operands, struct ptcp_err *e)
{
	char *copy = strdup(operands), *rest = copy, *one;
	int r = 0;

	*s = (struct skeleton){ .n = 0 };
	while (r == 0 && (one = strsep(&rest, " ")) != NULL)
		r = skeleton_add(s, one, e);
	free(copy);
	return r < 0 ? r : skeleton_name(s, e);
}

static void names_are(const char *operands, const char *want)
{
	struct skeleton s;
	struct ptcp_err e;
	char names[512] = "";
	size_t i;

	if (make(&s, operands, &e) < 0)
		fail_msg("%s: %s", operands, e.msg);
	for (i = 0; i < s.n; i++)
		strcat(strcat(names, i > 0 ? " " : ""), s.host[i].name);
	assert_string_equal(names, want);
	skeleton_fini(&s);
}

static void shortest_names(void **state)
{
	(void)state;
	names_are("d.example.org s1.example.org:7000 k", "d s1 k");
	names_are("d a.x.org a.y.org/data b.y.org", "d a.x.org a.y.org b");
	names_are("d a.x.org:1 a.x.org:2 a.y.org", "d a.x.org:1 a.x.org:2 a.y.org");
	names_are("10.0.0.1 10.0.0.2:7812 3d.org", "10.0.0.1 10.0.0.2 3d");
	names_are("d [fe80::1]:7811 [fe80::2] fe80::3", "d fe80::1 fe80::2 fe80::3");
	names_are("d [::1]:1 [::1]:2", "d ::1:1 ::1:2");
}

static void refused(void **state)
{
	static const struct { const char *operands, *want; } bad[] = {
		{ "d a b a", "a: named twice" },
		{ "d a:1/x a:1/y", "a:1: named twice" },
		{ "d a:7811/x a/y", "a:7811: named twice" },
		{ "d A a", "A: named twice" },
		{ "d [::1] ::1", "[::1]: named twice" },
		{ "d a:70000/y", "a:70000/y: the port is not a number from 1 to 65535" },
		{ "d a:0", "a:0: the port is not" },
		{ "d a:", "a:: the port is not" },
		{ "d a:7811x", "a:7811x: the port is not" },
		{ "d [::1]:70000", "[::1]:70000: the port is not" },
		{ "d [::1", "[::1: not a host of an overlay" },
		{ "d [::1]7811", "[::1]7811: not a host of an overlay" },
		{ "d user@a", "user@a: not a host of an overlay" },
		{ "d a=rely", "a=rely: not a host of an overlay" },
		{ "d /path", "/path: not a host of an overlay" },
		{ "d a/x\ny", "a/x\\012y: not a host of an overlay" },
		{ "d a/\177", "a/\\177: not a host of an overlay" },
		{ "d =relay", "=relay: not a host of an overlay" },
		{ "d/path a", "d/path: is the destination" },
		{ "d=relay a", "d=relay: is the destination" },
	};
	struct skeleton s;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(make(&s, bad[i].operands, &e), PTCP_EUSAGE);
		if (strncmp(e.msg, bad[i].want, strlen(bad[i].want)) != 0)
			fail_msg("%s: %s", bad[i].operands, e.msg);
		skeleton_fini(&s);
	}
}

static void text_of_hosts(void **state)
{
	struct skeleton s;
	struct ptcp_err e;
	char *text;

	(void)state;
	assert_int_equal(make(&s, "d.x.org ptcp://s.x.org:7000/a\"\\, t.x.org/run7 k.x.org=relay r/x=relay u", &e), 0);
	s.host[2].counted = true;
	s.host[2].bytes = 1234567;
	s.host[3].closed = (struct ptcp_err){ .code = PTCP_EREFUSED, .msg = "relay k: no" };
	s.host[3].closed_to = s.host[1].name;
	s.host[5].failed = (struct ptcp_err){ .code = PTCP_ECONNECT, .msg = "u: {no} route # to host" };
	assert_int_equal(skeleton_text(&text, &s, &e), 0);
	assert_string_equal(text, "destination: d\n"
	    "hosts:\n"
	    "  d: {address: d.x.org}\n"
	    "  s: {address: \"s.x.org:7000\", path: \"/a\\\"\\\\,\"}\n"
	    "  t: {address: t.x.org, path: /run7, data: 1234567} # 1.23 MB\n"
	    "  k: {address: k.x.org, relay: true} # not to s: relay k: no\n"
	    "  r: {address: r, path: /x, relay: true}\n"
	    "  u: {address: u, path: /} # u: {no} route # to host\n"
	    "all: {} # links of all sources and relays; ptcp links --write lists them with their rates\n");
	free(text);
	skeleton_fini(&s);
}

/* Names that begin with a dot, and bytes outside of UTF-8, are in no overlay. */
static void text_is_checked(void **state)
{
	static const char *const bad[] = { "d a/\xff", "d .a" };
	struct skeleton s;
	struct ptcp_err e;
	char *text = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(make(&s, bad[i], &e), 0);
		assert_int_equal(skeleton_text(&text, &s, &e), PTCP_ECONFIG);
		assert_null(text);
		skeleton_fini(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shortest_names),
		cmocka_unit_test(refused),
		cmocka_unit_test(text_of_hosts),
		cmocka_unit_test(text_is_checked),
	};
	return cmocka_run_group_tests_name("cli/skeleton", tests, NULL, NULL);
}
