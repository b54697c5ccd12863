#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/text.h"

static const char *escaped(const char *name)
{
	static char out[TEXT_NAME_BYTES];

	return text_escape(out, sizeof out, name);
}

static void plain_stays(void **state)
{
	static const char *const same[] = {
		"", "a", "a b/c.txt", "-rf", "~", "\xc3\xa4\xc3\xb6", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof same / sizeof *same; i++)
		assert_string_equal(escaped(same[i]), same[i]);
}

static void unsafe_is_octal(void **state)
{
	static const struct { const char *in, *want; } t[] = {
		{ "a\nb", "a\\012b" }, { "\x1b[2J", "\\033[2J" }, { "\x7f", "\\177" },
		{ "a\\b", "a\\\\b" }, { "\xff\xfe", "\\377\\376" },
		{ "\xc3", "\\303" }, { "\xc3x", "\\303x" },               /* cut short */
		{ "\xc0\xaf", "\\300\\257" }, { "\xe0\x80\xaf", "\\340\\200\\257" }, /* overlong */
		{ "\xf0\x80\x80\xaf", "\\360\\200\\200\\257" },
		{ "\xed\xa0\x80", "\\355\\240\\200" },                   /* a surrogate */
		{ "\xf4\x90\x80\x80", "\\364\\220\\200\\200" },           /* past the end */
		{ "\xf5\x80\x80\x80", "\\365\\200\\200\\200" },
		{ "\xc2\x9b", "\\302\\233" },                             /* C1: CSI */
		{ "\xe2\x80\xae", "\\342\\200\\256" },                    /* turns the line around */
		{ "\xef\xbb\xbf", "\\357\\273\\277" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof t / sizeof *t; i++)
		assert_string_equal(escaped(t[i].in), t[i].want);
}

/* Whatever the size, the result fits, ends whole characters, and is cut only if
 * it has to be. */
static void cuts(void **state)
{
	const char *in = "ab\n\xe2\x82\xac\\cdefgh", *whole = "ab\\012\xe2\x82\xac\\\\cdefgh";
	char out[64];
	size_t cap, n;

	(void)state;
	for (cap = 8; cap < 30; cap++) {
		memset(out, 'Z', sizeof out);
		assert_ptr_equal(text_escape(out, cap, in), out);
		n = strlen(out);
		assert_true(n < cap);
		assert_int_equal(out[cap], 'Z');
		if (strlen(whole) < cap) {
			assert_string_equal(out, whole);
		} else {
			assert_string_equal(out + n - 2, "..");
			assert_memory_equal(out, whole, n - 2);
			assert_true((whole[n - 2] & 0xc0) != 0x80);
		}
	}
	assert_string_equal(text_escape(out, 8, "1234567"), "1234567");
	assert_string_equal(text_escape(out, 8, "12345678"), "12345..");
}

static void names(void **state)
{
	char longest[256];

	(void)state;
	memset(longest, 'x', sizeof longest);
	assert_true(text_name_ok("a", 1));
	assert_true(text_name_ok("...", 3));
	assert_true(text_name_ok(".a", 2));
	assert_true(text_name_ok("\n\xff-", 3));
	assert_true(text_name_ok(longest, 255));
	assert_false(text_name_ok(longest, 256));
	assert_false(text_name_ok("", 0));
	assert_false(text_name_ok(".", 1));
	assert_false(text_name_ok("..", 2));
	assert_false(text_name_ok("a/b", 3));
	assert_false(text_name_ok("/", 1));
	assert_false(text_name_ok("a\0b", 3));
	assert_true(text_name_ok("..x", 3));
}

static void hexadecimal(void **state)
{
	const uint8_t all[] = { 0x00, 0x09, 0x0a, 0x7f, 0x80, 0xff };
	char out[2 * sizeof all + 1];

	(void)state;
	text_hex(out, all, sizeof all);
	assert_string_equal(out, "00090a7f80ff");
	text_hex(out, all, 0);
	assert_string_equal(out, "");
}

static void percent(void **state)
{
	static const char *const bad[] = { "%", "%4", "%4g", "%g4", "%00", "a%", "a%0" };
	char out[8];
	size_t i;

	(void)state;
	assert_true(text_percent_decode(out, sizeof out, "a%2Fb%2f%ff"));
	assert_string_equal(out, "a/b/\xff");
	assert_true(text_percent_decode(out, sizeof out, ""));
	assert_string_equal(out, "");
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(text_percent_decode(out, sizeof out, bad[i]));
	assert_true(text_percent_decode(out, sizeof out, "1234567"));
	assert_true(text_percent_decode(out, sizeof out, "123456%37"));
	assert_string_equal(out, "1234567");
	assert_false(text_percent_decode(out, sizeof out, "12345678"));
	assert_false(text_percent_decode(out, sizeof out, "1234567%38"));
}

/* The words of a text, each in <>; "!" for a quote that is left open. */
static const char *words(const char *text)
{
	static char out[200];
	char room[100], *to = room, *word;
	bool ok = true;

	out[0] = '\0';
	while ((word = text_next_word(&text, &to, &ok)) != NULL)
		strcat(strcat(strcat(out, "<"), word), ">");
	return ok ? out : "!";
}

static void words_and_quotes(void **state)
{
	(void)state;
	assert_string_equal(words(""), "");
	assert_string_equal(words(" \t\n "), "");
	assert_string_equal(words("ssh  -p\t22 "), "<ssh><-p><22>");
	assert_string_equal(words("a 'b c' \"d 'e\" f' 'g"), "<a><b c><d 'e><f g>");
	assert_string_equal(words("a\\ b \\' \"\\\"\" '\\'"), "<a b><'><\"><\\>");
	assert_string_equal(words("'' \"\""), "<><>");
	assert_string_equal(words("$HOME `x` ; | *"), "<$HOME><`x`><;><|><*>");
	assert_string_equal(words("a 'b"), "!");
	assert_string_equal(words("a \"b"), "!");
	assert_string_equal(words("a\\"), "<a\\>");
}

/* The longest that there can be: a character each, no more than two bytes beyond the text. */
static void words_fit(void **state)
{
	char room[8], *to = room;
	const char *p = "a b c";
	bool ok;
	int n = 0;

	(void)state;
	while (text_next_word(&p, &to, &ok) != NULL)
		n++;
	assert_int_equal(n, 3);
	assert_true(to <= room + strlen("a b c") + 2);
}

static void marks_are_filled(void **state)
{
	char out[16];

	(void)state;
	assert_true(text_substitute(out, sizeof out, "ssh {h} -l {h}", "{h}", "a"));
	assert_string_equal(out, "ssh a -l a");
	assert_true(text_substitute(out, sizeof out, "{h}{h}x", "{h}", "{h}"));
	assert_string_equal(out, "{h}{h}x");
	assert_true(text_substitute(out, sizeof out, "{h} {", "{h}", ""));
	assert_string_equal(out, " {");
	assert_true(text_substitute(out, sizeof out, "", "{h}", "a"));
	assert_string_equal(out, "");
}

/* To the last byte, wherever the room ends: before, in or behind what stands for a mark. */
static void marks_need_room(void **state)
{
	static const char *const texts[] = { "12345{h}", "{h}12345", "1{h}2345", "12345678" };
	char out[16];
	size_t i, cap;

	(void)state;
	for (i = 0; i < sizeof texts / sizeof *texts; i++)
		for (cap = 1; cap < sizeof out; cap++) {
			memset(out, '#', sizeof out);
			assert_true(text_substitute(out, cap, texts[i], "{h}", "abc") == (cap > 8));
			assert_int_equal(out[cap], '#');
		}
}

static void single_words(void **state)
{
	(void)state;
	assert_true(text_is_word("a"));
	assert_true(text_is_word("!az09~"));
	assert_false(text_is_word(""));
	assert_false(text_is_word("two words"));
	assert_false(text_is_word("line\n"));
	assert_false(text_is_word("\x7f"));
	assert_false(text_is_word("caf\xc3\xa9"));
}

static void folded(const char *a, const char *b, bool same)
{
	char x[40], y[40];
	size_t n = text_fold(x, a), m = text_fold(y, b);

	assert_true(n <= strlen(a) && m <= strlen(b));
	if ((n == m && memcmp(x, y, n) == 0) != same)
		fail_msg("%s and %s", a, b);
}

static void case_is_ignored(void **state)
{
	(void)state;
	folded("a/Bc.Z", "A/bC.z", true);
	folded("a", "b", false);
	folded("[", "{", false);
	folded("\xc3\xa9\xc3\xbe", "\xc3\x89\xc3\x9e", true);         /* Latin */
	folded("\xc3\xb7", "\xc3\x97", false);                          /* signs */
	folded("\xc5\x82\xc5\xbe", "\xc5\x81\xc5\xbd", true);         /* capitals are odd */
	folded("\xc5\x80", "\xc5\x81", false);
	folded("\xce\xb1\xcf\x89", "\xce\x91\xce\xa9", true);         /* Greek */
	folded("\xd1\x8f\xd1\x91", "\xd0\xaf\xd0\x81", true);         /* Cyrillic */
	folded("\xd5\xa1", "\xd4\xb1", true);                           /* Armenian */
	folded("\xe1\xba\xa1", "\xe1\xba\xa0", true);                   /* Vietnamese */
	folded("\xe6\x97\xa5", "\xe6\x9c\xac", false);
	folded("\xc3", "\xe1\xba", false);                              /* no UTF-8 */
	folded("\xff\xc3", "\xff\xc3", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_words),
		cmocka_unit_test(case_is_ignored),
		cmocka_unit_test(plain_stays),
		cmocka_unit_test(unsafe_is_octal),
		cmocka_unit_test(cuts),
		cmocka_unit_test(names),
		cmocka_unit_test(hexadecimal), cmocka_unit_test(percent),
		cmocka_unit_test(words_and_quotes),
		cmocka_unit_test(words_fit),
		cmocka_unit_test(marks_are_filled),
		cmocka_unit_test(marks_need_room),
	};
	return cmocka_run_group_tests_name("core/text", tests, NULL, NULL);
}
