#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/glob.h"

/* A path that ends with '/' is a directory. */
static bool matches(const char *pattern, const char *path)
{
	size_t n = strlen(path);
	bool is_dir = n > 0 && path[n - 1] == '/', r;
	char *name = strndup(path, is_dir ? n - 1 : n);
	struct ptcp_err e;
	struct glob *g;

	assert_non_null(name);
	if (glob_new(&g, pattern, &e) != 0)
		fail_msg("%s: %s", pattern, e.msg);
	r = glob_match(g, name, is_dir);
	glob_free(g);
	free(name);
	return r;
}

static void table(void **state)
{
	static const struct { const char *pattern; const char *yes[5]; const char *no[5]; } t[] = {
		/* the last component, at any depth */
		{ "a", { "a", "a/", "x/a", "x/y/a" }, { "ab", "ba", "a/x", "A" } },
		{ "*", { "a", "x/a", ".hidden", "x/" } , { NULL } },
		{ "*.o", { "a.o", "x/a.o", ".o" }, { "a.o/x", "a.oo", "a" } },
		{ "a*b*c", { "abc", "aXbYc", "abbcc", "x/abc" }, { "ab/c", "acb", "abcd" } },
		{ "?", { "a", "x/b" }, { "ab" } },
		{ "??", { "ab", "\xc3\xa4" }, { "a", "abc" } },
		/* classes */
		{ "[abc]", { "a", "c", "x/b" }, { "d", "ab" } },
		{ "[a-c]x", { "ax", "cx" }, { "dx", "-x", "x" } },
		{ "[!a-c]", { "d", "-", "!" }, { "a", "c" } },
		{ "[^a]", { "b", "^" }, { "a" } },
		{ "[]a]", { "]", "a" }, { "b" } },
		{ "[!]a]", { "b", "!" }, { "]", "a" } },
		{ "[a-]", { "a", "-" }, { "b" } },
		{ "[-a]", { "a", "-" }, { "b" } },
		{ "[\\]x]", { "]", "x" }, { "\\" } },
		{ "[a\\-c]", { "a", "-", "c" }, { "b" } },
		{ "[!-~]", { "!", "a/b" }, { "-", "~" } },
		{ "[\x80-\xff]", { "\x80", "\xff" }, { "a" } },
		{ "x[.-0]y", { "x.y", "x0y" }, { "x/y" } },
		{ "x[!a]y", { "xby" }, { "x/y", "xay" } },
		{ "[^a-]]", { "b]" }, { "a]", "-]", "b" } },
		/* escapes */
		{ "\\*", { "*" }, { "a", "\\*" } },
		{ "\\[a]", { "[a]" }, { "a" } },
		{ "a\\b", { "a\\b" }, { "ab" } }, { "a\\b*", { "ab" }, { "a\\b" } },
		{ "[[:digit:][:upper:]_]x", { "1x", "Ax", "_x" }, { "ax", ":x" } },
		{ "[![:space:]]", { "a" }, { " ", "\t" } },
		{ "[\\\\]", { "\\" }, { "\\\\" } },
		/* at the top only */
		{ "/a", { "a", "a/" }, { "x/a", "a/b" } },
		{ "/*.c", { "x.c" }, { "x/x.c" } },
		{ "/a/*", { "a/b", "a/b/" }, { "a", "x/a/b", "a/b/c" } },
		{ "/a/**", { "a/b", "a/b/c" }, { "a", "x/a/b" } },
		/* the end of the path */
		{ "a/b", { "a/b", "x/a/b" }, { "xa/b", "a/bc", "a/b/c", "a/x/b" } },
		{ "a*/b", { "a/b", "ax/b", "x/ay/b" }, { "a/x/b" } },
		{ "*/b", { "a/b", "x/a/b" }, { "b" } },
		{ "/*/b", { "a/b" }, { "b", "x/a/b" } },
		{ "a?b", { "axb" }, { "a/b" } },
		/* any depth */
		{ "a**b", { "ab", "a/b", "a/x/y/b", "x/a/y/b" }, { "a", "xa/b" } },
		{ "**b", { "b", "ab", "a/b", "a/xb" }, { "a/bc" } },
		{ "**/b", { "b", "a/b", "x/a/b" }, { "ab", "a/xb" } },
		{ "/**/b", { "a/b", "x/a/b" }, { "b" } },
		{ "a/**/b", { "a/x/b", "a/x/y/b", "z/a/x/b" }, { "a/b" } },
		{ "**", { "a", "a/b" }, { NULL } },
		{ "a**", { "a", "ax", "a/b", "x/a/b" }, { "xa" } },
		{ "*/**/*", { "a/b/c", "a/b/c/d" }, { "a/b" } },
		{ "a/*b/**/c", { "a/b/x/c", "a/xb/y/z/c" }, { "a/x/b/c", "a/b/c" } },
		/* directories only */
		{ "a/", { "a/", "x/a/" }, { "a", "x/a", "a/b/" } },
		{ "/a/", { "a/" }, { "a", "x/a/" } },
		{ "*/", { "a/", "x/a/" }, { "a", "x/a" } },
		{ "a/b/", { "a/b/", "x/a/b/" }, { "a/b" } },
		/* a directory and all in it */
		{ "a/***", { "a/", "a/b", "a/b/c", "x/a/", "x/a/b" }, { "a", "ab" } },
		{ "/a/***", { "a/", "a/b/" }, { "a", "x/a/", "x/a/b" } },
		{ "***", { "a", "a/b" }, { NULL } },
		/* odd, and fine */
		{ " ", { " " }, { "" } },
		{ "a\nb", { "a\nb" }, { "ab" } },
		{ "]", { "]" }, { "[" } },
		{ "-", { "-", "x/-" }, { "" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		for (size_t k = 0; k < 5; k++) {
			if (t[i].yes[k] != NULL && !matches(t[i].pattern, t[i].yes[k]))
				fail_msg("%s should match %s", t[i].pattern, t[i].yes[k]);
			if (t[i].no[k] != NULL && matches(t[i].pattern, t[i].no[k]))
				fail_msg("%s should not match %s", t[i].pattern, t[i].no[k]);
		}
}

static void malformed(void **state)
{
	static const char *const bad[] = {
		"", "/", "//", "[", "a[", "[]", "[!", "[!]", "[^]", "[a", "[a-", "a[b-c", "*\\", "a?\\",
		"[\\", "[a\\]", "[a-\\", "[z-a]", "[[:alphb:]]", "[a[:x", "a*\\/",
	};
	struct ptcp_err e;
	struct glob *g = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e = (struct ptcp_err){ 0 };
		assert_int_equal(glob_new(&g, bad[i], &e), PTCP_EUSAGE);
		assert_null(g);
		if (strchr(e.msg, '(') == NULL)
			fail_msg("%s: does not say what to do: %s", bad[i], e.msg);
	}
}

static void longest(void **state)
{
	char pattern[GLOB_PATTERN_MAX + 2], path[2 * GLOB_PATTERN_MAX];
	struct glob *g;
	size_t n;

	(void)state;
	/* every length: positions lie in one word and the next */
	for (n = 1; n <= GLOB_PATTERN_MAX; n++) {
		memset(pattern, 'a', n);
		pattern[n] = '\0';
		assert_true(matches(pattern, pattern));
		assert_false(matches(pattern, pattern + 1));
		pattern[n - 1] = '*';
		memset(path, 'a', n + 5);
		path[n + 5] = '\0';
		assert_true(matches(pattern, path));
		assert_true(matches(pattern, path + 6));
		if (n > 1)
			assert_false(matches(pattern, path + 7));
	}
	memset(pattern, 'a', GLOB_PATTERN_MAX + 1);
	pattern[GLOB_PATTERN_MAX + 1] = '\0';
	assert_int_equal(glob_new(&g, pattern, NULL), PTCP_EUSAGE);
}

static uint32_t seed = 42;

static unsigned below(unsigned n)
{
	return (seed = seed * 1664525 + 1013904223) / 65536 % n;
}

/* Tokens on which fnmatch(3) and we agree: no "**", no '/' in classes. */
static void random_pattern(char *out, unsigned tokens)
{
	static const char *const token[] = {
		"a", "b", "a", "b", "/", "?", "*", "[ab]", "[!a]", "[a-c]", "\\b", "\\*", "[]a]", "[^b-]",
	};
	const char *t;

	*out = '\0';
	while (tokens-- > 0) {
		t = token[below(sizeof token / sizeof *token)];
		if (*t == '*' && out[0] != '\0' && out[strlen(out) - 1] == '*')
			t = "a";
		strcat(out, t);
	}
}

static void random_path(char *out, unsigned n)
{
	while (n-- > 0)
		*out++ = "aabbc*]-/"[below(9)];
	*out = '\0';
}

static bool fn(const char *pattern, const char *path)
{
	return fnmatch(pattern, path, FNM_PATHNAME | (strpbrk(pattern, "*?[") == NULL ? FNM_NOESCAPE : 0)) == 0;
}

/* Without a '/' it is about the last component, else about the path or what follows one of its '/'. */
static bool fn_tail(const char *pattern, const char *path)
{
	bool is_path = strchr(pattern, '/') != NULL;
	const char *p = path;

	if (!is_path)
		return fn(pattern, strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
	while (!fn(pattern, p))
		if ((p = strchr(p, '/')) == NULL || *++p == '\0')
			return false;
	return true;
}

static void like_fnmatch(void **state)
{
	char pattern[200], anchored[201], path[60];
	unsigned i, hits = 0;

	(void)state;
	for (i = 0; i < 300000; i++) {
		random_pattern(pattern, 1 + below(6));
		random_path(path, 1 + below(8));
		if (pattern[0] == '/' || pattern[strlen(pattern) - 1] == '/' || path[strlen(path) - 1] == '/')
			continue;
		snprintf(anchored, sizeof anchored, "/%s", pattern);
		hits += fn_tail(pattern, path);
		if (matches(anchored, path) != fn(pattern, path))
			fail_msg("%s and %s: fnmatch says %d", anchored, path, fn(pattern, path));
		if (matches(pattern, path) != fn_tail(pattern, path))
			fail_msg("%s and %s: fnmatch says %d", pattern, path, fn_tail(pattern, path));
	}
	if (hits < 10000) /* it was a comparison of misses */
		fail_msg("only %u matches", hits);
}

/* What makes a backtracking matcher take for ever takes as long as anything else. */
static void bounded(void **state)
{
	static char pattern[GLOB_PATTERN_MAX + 1], path[500001];
	clock_t start = clock();
	struct glob *g;
	size_t i;

	(void)state;
	for (i = 0; i < GLOB_PATTERN_MAX - 3; i += 3)
		memcpy(pattern + i, "**a", 3);
	pattern[i] = 'b';
	memset(path, 'a', sizeof path - 1);
	for (i = 200; i < sizeof path - 1; i += 200)
		path[i] = '/';
	assert_int_equal(glob_new(&g, pattern, NULL), 0);
	assert_false(glob_match(g, path, false));
	path[sizeof path - 2] = 'b';
	assert_true(glob_match(g, path, false));
	glob_free(g);
	/* twice 500,000 steps of 16 words each: some 10 ms each */
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
}

/* Whatever a peer writes is refused or matched, and means the same twice. */
static void any_bytes(void **state)
{
	static const char likely[] = "[]!^-\\*?/ab:";
	char pattern[80], path[40];
	unsigned i, k, n, fine = 0;
	struct ptcp_err e;
	struct glob *g;
	bool once;

	(void)state;
	for (i = 0; i < 200000; i++) {
		n = below(sizeof pattern);
		for (k = 0; k < n; k++)
			pattern[k] = below(8) > 0 ? likely[below(sizeof likely - 1)] : (char)(1 + below(255));
		pattern[n] = '\0';
		random_path(path, below(sizeof path));
		if (glob_new(&g, pattern, &e) != 0) {
			assert_int_equal(e.code, PTCP_EUSAGE);
			continue;
		}
		fine++;
		once = glob_match(g, path, i % 2);
		assert_int_equal(glob_match(g, path, i % 2), once);
		glob_free(g);
	}
	assert_true(fine > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table), cmocka_unit_test(malformed), cmocka_unit_test(longest),
		cmocka_unit_test(like_fnmatch), cmocka_unit_test(any_bytes), cmocka_unit_test(bounded),
	};
	return cmocka_run_group_tests_name("core/glob", tests, NULL, NULL);
}
