/* Lines of ptcp batch: words, quotes and wildcards; reading in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/command_lines.h"

static bool never(void) { return false; }
static bool always(void) { return true; }

/* ---- Words ---- */

static void words_are(const char *line, const char *want)
{
	char got[200] = "";
	struct line_words w;
	struct ptcp_err e;
	size_t i;

	assert_int_equal(line_split(&w, line, &e), 0);
	for (i = 0; i < w.n; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "<%s>", w.word[i]);
	assert_string_equal(got, want);
	assert_null(w.word[w.n]);
	line_words_fini(&w);
}

static void words(void **state)
{
	static const char *const open[] = { "\"", "a 'b", "a \"b\\\"" };
	struct line_words w;
	struct ptcp_err e;
	size_t i;

	(void)state;
	words_are("", "");
	words_are(" \t\r", "");
	words_are("# get x", "");
	words_are("get a#b #c", "<get><a#b><#c>");
	words_are("\tget  a\tb \r", "<get><a><b>");
	words_are("get 'a b'\"c d\"e", "<get><a bc de>");
	words_are("get '' \"\"", "<get><><>");
	words_are("a\\ b \\\"c\\' 'd\"' \"e'\"", "<a b><\"c'><d\"><e'>");
	words_are("* '*' \"?\" \\[x", "<*><\\*><\\?><\\[x>");
	words_are("'\\' \"\\\\\" \\\\ \\", "<\\\\><\\\\><\\\\><\\>");
	words_are("- @ rm x", "<rm><x>");
	for (i = 0; i < sizeof open / sizeof *open; i++) {
		assert_int_equal(line_split(&w, open[i], &e), PTCP_EUSAGE);
		line_words_fini(&w);
	}
	assert_int_equal(line_split(&w, "-rm x", &e), 0);
	assert_true(w.may_fail);
	line_words_fini(&w);
}

/* What a server makes of the pattern, by fnmatch(3) in place of its own function. */
static bool finds(const char *pattern, const char *name)
{
	return strpbrk(pattern, "*?[") == NULL ? strcmp(pattern, name) == 0 : fnmatch(pattern, name, 0) == 0;
}

/* A quoted name stands for itself and for nothing else, here and at a server. */
static void quoted_names(void **state)
{
	static const char letters[] = "ab*?[\\] ";
	char name[6], other[6], line[40];
	struct line_words w;
	struct ptcp_err e;
	char *pattern;
	unsigned round, i, n;

	(void)state;
	srandom(7);
	for (round = 0; round < 20000; round++) {
		n = 1 + (unsigned)random() % 5;
		for (i = 0; i < n; i++) {
			name[i] = letters[(unsigned)random() % (sizeof letters - 1)];
			other[i] = random() % 3 > 0 ? name[i] : letters[(unsigned)random() % (sizeof letters - 1)];
		}
		name[n] = other[n] = '\0';
		snprintf(line, sizeof line, "rm '%s'", name);
		assert_int_equal(line_split(&w, line, &e), 0);
		assert_int_equal(w.n, 2);
		assert_non_null(pattern = line_pattern(w.word[1]));
		if (!finds(pattern, name) || finds(pattern, other) != (strcmp(name, other) == 0))
			print_error("%s: pattern %s, other %s\n", line, pattern, other);
		assert_true(finds(pattern, name));
		assert_int_equal(finds(pattern, other), strcmp(name, other) == 0);
		line_plain(w.word[1]);
		assert_string_equal(w.word[1], name);
		free(pattern);
		line_words_fini(&w);
	}
}

static void patterns(void **state)
{
	struct line_words w;
	struct ptcp_err e;
	char *pattern;

	(void)state;
	assert_int_equal(line_split(&w, "rm 'a*'*", &e), 0);
	assert_non_null(pattern = line_pattern(w.word[1]));
	assert_true(finds(pattern, "a*b"));
	assert_false(finds(pattern, "ab"));
	free(pattern);
	line_words_fini(&w);
}

/* ---- Reading ---- */

/* Writes the text in pieces, so that no write waits for a reader; returns the reading end. */
static void lines_are(const char *text, size_t bytes, const char *const *want, int code)
{
	struct command_lines r = { .stopping = never };
	struct ptcp_err e = { .code = 0 };
	FILE *f = tmpfile();
	const char *line;
	size_t n = 0;

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	rewind(f);
	r.fd = fileno(f);
	while ((line = line_next(&r, &e)) != NULL) {
		assert_non_null(want[n]);
		assert_string_equal(line, want[n++]);
		assert_int_equal(r.number, n);
	}
	assert_null(want[n]);
	assert_int_equal(e.code, code);
	command_lines_fini(&r);
	fclose(f);
}

static void reading(void **state)
{
	char *big = malloc(3 * LINE_MAX_BYTES), *longest = malloc(LINE_MAX_BYTES);

	(void)state;
	assert_non_null(big);
	assert_non_null(longest);
	lines_are("", 0, (const char *const[]){ NULL }, 0);
	lines_are("a\n\nb", 4, (const char *const[]){ "a", "", "b", NULL }, 0);
	lines_are("a\nb\0c\nd\n", 8, (const char *const[]){ "a", NULL }, PTCP_EUSAGE);
	memset(longest, 'x', LINE_MAX_BYTES - 1);
	longest[LINE_MAX_BYTES - 1] = '\0';
	memset(big, 'x', 3 * LINE_MAX_BYTES);
	big[LINE_MAX_BYTES - 1] = big[2 * LINE_MAX_BYTES - 1] = '\n';
	lines_are(big, 2 * LINE_MAX_BYTES, (const char *const[]){ longest, longest, NULL }, 0);
	big[LINE_MAX_BYTES - 1] = 'x';
	lines_are(big, 2 * LINE_MAX_BYTES, (const char *const[]){ NULL }, PTCP_EUSAGE);
	free(longest);
	free(big);
}

/* A line is there as soon as it was written; a signal ends the waiting. */
static void from_a_pipe(void **state)
{
	struct command_lines r = { .stopping = never };
	struct ptcp_err e = { .code = 0 };
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	r.fd = fd[0];
	assert_int_equal(write(fd[1], "one\ntw", 6), 6);
	assert_string_equal(line_next(&r, &e), "one");
	assert_int_equal(write(fd[1], "o\n", 2), 2);
	assert_string_equal(line_next(&r, &e), "two");
	r.stopping = always;
	assert_null(line_next(&r, &e));
	assert_int_equal(e.code, 0);
	command_lines_fini(&r);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(words), cmocka_unit_test(quoted_names),
		cmocka_unit_test(patterns), cmocka_unit_test(reading), cmocka_unit_test(from_a_pipe) };

	return cmocka_run_group_tests_name("input/command_lines", tests, NULL, NULL);
}
