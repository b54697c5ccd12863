/* Links of overlay texts changed in place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/edit.h"
#include "draw.h"

#define HEAD "destination: D\nhosts: {D: {}, S: {}, K: {relay: true}} # d\xc3\xa9part\n"

static char *edit(const char *text, const struct conf_change *c, size_t n, int want)
{
	struct ptcp_err e;
	size_t bytes;
	char *out = NULL, *whole;
	int r = conf_overlay_edit(&out, &bytes, text, strlen(text), "o.yaml", c, n, &e);

	if (r != want)
		fail_msg("%d: %s\n%s", r, r < 0 ? e.msg : "", text);
	if (r < 0) {
		assert_null(out);
		return NULL;
	}
	whole = strndup(out, bytes);
	assert_int_equal(strlen(whole), bytes);
	free(out);
	return whole;
}

static void becomes(const char *before, const struct conf_change *c, size_t n, const char *after)
{
	char *got = edit(before, c, n, 0);

	assert_string_equal(got, after);
	free(got);
}

static void replaced(void **state)
{
	static const struct conf_change c[] = { { 1, "47.6Mbit/s", "40.1ms" }, { 0, "1Gbit/s", "" } };

	(void)state;
	becomes(HEAD "links:\n"
	    "  - {from: S,   to: D, rate: 400Mbit/s , delay: 20ms} # \xe2\x82\xac\n"
	    "  - to: K   # by night\n"
	    "    delay:    \"5ms\"\n"
	    "    rate:   1   # slow\n\n"
	    "    from: S\n"
	    "deadline: 2h", c, 2,
	    HEAD "links:\n"
	    "  - {from: S,   to: D, rate: 1Gbit/s , delay: 20ms} # \xe2\x82\xac\n"
	    "  - to: K   # by night\n"
	    "    delay:    40.1ms\n"
	    "    rate:   47.6Mbit/s   # slow\n\n"
	    "    from: S\n"
	    "deadline: 2h");
}

static void added(void **state)
{
	static const struct conf_change c[] = { { 0, "5Mbit/s", "1ms" }, { 1, "6Mbit/s", "2ms" },
		{ 2, "7Mbit/s", "3ms" } };

	(void)state;
	becomes("\xef\xbb\xbf" HEAD "links:\n"
	    "- {from: S, to: D} # a\n"
	    "-   from: S\n"
	    "    to: K # b\n"
	    "\n"
	    "- {to: D, from: K,\n"
	    "   }\n", c, 3,
	    "\xef\xbb\xbf" HEAD "links:\n"
	    "- {from: S, to: D, rate: 5Mbit/s, delay: 1ms} # a\n"
	    "-   from: S\n"
	    "    to: K # b\n"
	    "    rate: 6Mbit/s\n"
	    "    delay: 2ms\n"
	    "\n"
	    "- {to: D, from: K, rate: 7Mbit/s, delay: 3ms,\n"
	    "   }\n");
	/* The end of the text, and lines as Windows ends them. */
	becomes(HEAD "links:\n  - from: S\n    to: D", c, 1,
	    HEAD "links:\n  - from: S\n    to: D\n    rate: 5Mbit/s\n    delay: 1ms\n");
	becomes(HEAD "links:\r\n  - from: S\r\n    to: D\r\n# end\r\n", c, 1,
	    HEAD "links:\r\n  - from: S\r\n    to: D\r\n    rate: 5Mbit/s\r\n    delay: 1ms\r\n# end\r\n");
}

#define PAIRS "destination: D\nhosts: {D: {}, S: {path: /}, \"K:1\": {path: /, relay: true}}\nall: {rate: 1Gbit/s} # " \
	"pairs\n"

/* Links of 'all' are listed once one of them is known, at the end of the list. */
static void pairs_listed(void **state)
{
	static const struct conf_change first = { 0, "5Mbit/s", "1ms" }, last = { 2, "7Mbit/s", "" };

	(void)state;
	becomes(PAIRS, &first, 1, PAIRS "links:\n"
	    "  - {from: S, to: D, rate: 5Mbit/s, delay: 1ms}\n"
	    "  - {from: S, to: \"K:1\"}\n"
	    "  - {from: \"K:1\", to: D}\n");
	becomes(PAIRS "slot: 1s", &last, 1, PAIRS "slot: 1s\nlinks:\n"
	    "  - {from: S, to: D}\n"
	    "  - {from: S, to: \"K:1\"}\n"
	    "  - {from: \"K:1\", to: D, rate: 7Mbit/s}\n");
	becomes("\xef\xbb\xbf" PAIRS "links:\n- from: \"K:1\"\n  to: D # \xe2\x82\xac\n\n# end\nslot: 1s\n", &last, 1,
	    "\xef\xbb\xbf" PAIRS "links:\n- from: \"K:1\"\n  to: D # \xe2\x82\xac\n"
	    "- {from: S, to: D}\n- {from: S, to: \"K:1\", rate: 7Mbit/s}\n\n# end\nslot: 1s\n");
	becomes(PAIRS "links: [{from: \"K:1\", to: D}, ] # one\nslot: 1s\n", &last, 1,
	    PAIRS "links: [{from: \"K:1\", to: D},\n  {from: S, to: D},\n  {from: S, to: \"K:1\", rate: 7Mbit/s}, ] # "
	    "one\nslot: 1s\n");
	becomes(PAIRS "links: [] # none\nslot: 1s\n", &last, 1,
	    PAIRS "links: [\n  {from: S, to: D},\n  {from: S, to: \"K:1\"},\n  {from: \"K:1\", to: D, rate: 7Mbit/s},\n"
	    "] # none\nslot: 1s\n");
	becomes(PAIRS "links: [{from: S, to: D}]\n", &first, 1, /* a listed link only */
	    PAIRS "links: [{from: S, to: D, rate: 5Mbit/s, delay: 1ms}]\n");
}

static void pairs_refused(void **state)
{
	static const struct conf_change c = { 0, "5Mbit/s", "" };

	(void)state;
	edit("{destination: D, hosts: {D: {}, S: {path: /}}, all: {}}\n", &c, 1, PTCP_ECONFIG);
	edit(PAIRS "...\n", &c, 1, PTCP_ECONFIG);
}

static void nothing(void **state)
{
	becomes(HEAD "links: [{from: S, to: D}]\n", NULL, 0, HEAD "links: [{from: S, to: D}]\n");
	(void)state;
}

/* What would change more than was asked for is refused. */
static void refused(void **state)
{
	static const struct conf_change c = { 0, "5Mbit/s", "1ms" }, bad = { 0, "a: b", "" };

	(void)state;
	edit(HEAD "links:\n- {from: S, to: D, rate: &r 1Mbit/s}\n- {from: S, to: K, rate: *r}\n", &c, 1,
	    PTCP_ECONFIG);
	edit(HEAD "links:\n- {from: K, to: D, rate: &r 1}\n- {from: S, to: K, rate: *r}\n",
	    &(struct conf_change){ 1, "5Mbit/s", "" }, 1, PTCP_ECONFIG);
	edit(HEAD "links:\n- {from: S, to: D}\n", &bad, 1, PTCP_ECONFIG);
	edit("links: [", &c, 1, PTCP_ECONFIG);
}

/* ---- Random formatting: all but the scalars stays byte for byte ---- */

struct piece {
	char was[24], is[24];
};

static size_t space(char *p, struct rng *r)
{
	static const char *const some[] = { "", " ", "   ", "\t" };

	return (size_t)sprintf(p, "%s", some[rng_below(r, 3)]);
}

static const char *comment(struct rng *r)
{
	static const char *const some[] = { "", " # 5Mbit/s", " # {rate: 1}", "  # \xe2\x82\xac \xf0\x9f\x9a\x80",
		" #" };

	return some[rng_below(r, 5)];
}

/* Appends to the text before the change, and to the text after the change. */
static void both(char *a, char *b, const char *text)
{
	strcat(a, text);
	strcat(b, text);
}

static void draw_number(char *a, char *b, struct rng *r, const char *unit, char *is)
{
	static const char *const quote[] = { "", "'", "\"" };
	const char *q = quote[rng_below(r, 3)];

	sprintf(a + strlen(a), "%s%u%s%s", q, rng_below(r, 1000), unit, q);
	sprintf(is, "%u.%u%s", rng_below(r, 1000), rng_below(r, 10), unit);
	strcat(b, is);
}

static void formatting_is_kept(void **state)
{
	static char a[8192], b[8192];
	static const char *const names[] = { "D", "S", "K", "T" };
	struct rng r = { 11 };
	int round, i, flow;
	char gap[8], *got;

	(void)state;
	for (round = 0; round < 500; round++) {
		struct conf_change c[12];
		size_t n = 0;

		a[0] = b[0] = '\0';
		both(a, b, "destination: D\nhosts: {D: {}, S: {}, K: {}, T: {}}\nlinks:");
		both(a, b, comment(&r));
		both(a, b, "\n");
		for (i = 0; i < 12; i++) {
			bool change = rng_uniform(&r) < 0.7;
			const char *from = names[i / 3], *to = names[(i / 3 + 1 + i % 3) % 4];
			char end[64];

			flow = rng_below(&r, 2);
			space(gap, &r);
			snprintf(end, sizeof end, flow ? ",%s " : "%s\n    ", flow ? gap : comment(&r));
			both(a, b, flow ? "  - {from: " : "  - from: ");
			both(a, b, from);
			both(a, b, end);
			if (change) {
				c[n] = (struct conf_change){ .link = i };
				both(a, b, "rate: ");
				both(a, b, gap);
				draw_number(a, b, &r, rng_below(&r, 2) ? "Mbit/s" : "Gbit/s", c[n].rate);
				both(a, b, end);
				if (rng_below(&r, 2)) {
					both(a, b, "delay: ");
					draw_number(a, b, &r, "ms", c[n].delay);
					both(a, b, end);
				}
				n++;
			}
			both(a, b, "to: ");
			both(a, b, to);
			both(a, b, flow ? "}" : "");
			both(a, b, comment(&r));
			both(a, b, "\n");
		}
		got = edit(a, c, n, 0);
		assert_string_equal(got, b);
		free(got);
	}
}

/* ---- Shared bottlenecks ---- */

#define LINKS "links: [{from: S, to: D, rate: 1}, {from: K, to: D, rate: 2}] # all"
#define SHARED "  - {rate: 5Mbit/s, links: [S>D, K>D]}\n"

static int add_shared(char **out, const char *text, const char *shared)
{
	struct ptcp_err e;
	size_t bytes;
	char *now = NULL;
	int r = conf_overlay_add_shared(&now, &bytes, text, strlen(text), "o.yaml", shared, &e);

	*out = r == 0 ? strndup(now, bytes) : NULL;
	free(now);
	return r;
}

static void shared_added(void **state)
{
	char *got;

	(void)state;
	assert_int_equal(add_shared(&got, HEAD LINKS "\n", SHARED), 0);
	assert_string_equal(got, HEAD LINKS "\nshared:\n" SHARED);
	free(got);
	assert_int_equal(add_shared(&got, HEAD LINKS, SHARED), 0); /* without an end of line */
	assert_string_equal(got, HEAD LINKS "\nshared:\n" SHARED);
	free(got);
}

static void shared_refused(void **state)
{
	static const struct {
		const char *text, *shared;
	} bad[] = {
		{ HEAD LINKS "\nshared:\n" SHARED, SHARED },
		{ "{destination: D, hosts: {D: {}, S: {}}, links: [{from: S, to: D}]}\n",
		    "  - {rate: 1, links: [S>D]}\n" },
		{ HEAD LINKS "\n", "  - {rate: 1, links: [S>K]}\n" },
		{ HEAD LINKS "\n", "  - {rate: 1, links: [S>D]}\ndeadline: 1h\nlinks: []\n" },
		{ HEAD "links: [{from: S, to: X}]\n", SHARED },
	};
	char *got;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(add_shared(&got, bad[i].text, bad[i].shared), PTCP_ECONFIG);
		assert_null(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced),
		cmocka_unit_test(added),
		cmocka_unit_test(pairs_listed),
		cmocka_unit_test(pairs_refused),
		cmocka_unit_test(nothing),
		cmocka_unit_test(refused),
		cmocka_unit_test(formatting_is_kept),
		cmocka_unit_test(shared_added),
		cmocka_unit_test(shared_refused),
	};

	return cmocka_run_group_tests_name("conf/edit", tests, NULL, NULL);
}
