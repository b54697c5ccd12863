/* Command lines taken apart. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/shell_words.h"

/* The words of a text, each in <>; "!" for a quote that is left open. */
static const char *words(const char *text)
{
	static char out[200];
	char room[100], *to = room, *word;
	bool ok = true;

	out[0] = '\0';
	while ((word = shell_words_next(&text, &to, &ok)) != NULL)
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
	while (shell_words_next(&p, &to, &ok) != NULL)
		n++;
	assert_int_equal(n, 3);
	assert_true(to <= room + strlen("a b c") + 2);
}

static void marks_are_filled(void **state)
{
	char out[16];

	(void)state;
	assert_true(shell_words_fill(out, sizeof out, "ssh {h} -l {h}", "{h}", "a"));
	assert_string_equal(out, "ssh a -l a");
	assert_true(shell_words_fill(out, sizeof out, "{h}{h}x", "{h}", "{h}"));
	assert_string_equal(out, "{h}{h}x");
	assert_true(shell_words_fill(out, sizeof out, "{h} {", "{h}", ""));
	assert_string_equal(out, " {");
	assert_true(shell_words_fill(out, sizeof out, "", "{h}", "a"));
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
			assert_true(shell_words_fill(out, cap, texts[i], "{h}", "abc") == (cap > 8));
			assert_int_equal(out[cap], '#');
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_quotes),
		cmocka_unit_test(words_fit),
		cmocka_unit_test(marks_are_filled),
		cmocka_unit_test(marks_need_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
