#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/expand.h"

static int open_below(void *arg, const char *path, struct dir **out, struct ptcp_err *e)
{
	return dir_resolve(out, arg, path, e);
}

/* The matches, each with a space behind it, or the error's sentence. In steps of `names`. */
static const char *expand(const char *pattern, unsigned names)
{
	static char text[4000];
	struct ptcp_err why = { 0 };
	struct expand *x;
	size_t i;
	int r;

	assert_int_equal(expand_new(&x, pattern, open_below, fx_root, NULL, NULL), 0);
	while ((r = expand_step(x, names, &why)) > 0)
		;
	text[0] = '\0';
	for (i = 0; r == 0 && i < expand_n(x); i++)
		sprintf(text + strlen(text), "%s ", expand_path(x, i));
	if (r < 0)
		strcpy(text, why.msg);
	expand_free(x);
	return text;
}

static void tree(void)
{
	fx_mkdir("a");
	fx_mkdir("a/b");
	fx_mkdir("a/b/c");
	fx_mkdir("z");
	fx_mkdir(".d");
	fx_text("a/x.h5", "");
	fx_text("a/y.h5", "");
	fx_text("a/.h.h5", "");
	fx_text("a/b/x.h5", "");
	fx_text("a/b/c/z.h5", "");
	fx_text("z/x.h5", "");
	fx_text(".d/x.h5", "");
	fx_text("a/.ptcp-0123456789abcdef.part", "");
	assert_int_equal(symlink("a", fx_path("link")), 0);
	assert_int_equal(symlink("/etc", fx_path("out")), 0);
}

static void matches(void **state)
{
	static const struct { const char *pattern, *want; } cases[] = {
		{ "a", "a " }, { "none", "none " }, { "", " " }, { "/", "/ " }, { "~", "~ " },
		{ "*", "a link out z " }, { "/*", "/a /link /out /z " }, { "*/", "a/ link/ z/ " },
		{ "a/*.h5", "a/x.h5 a/y.h5 " }, { "a/?.h5", "a/x.h5 a/y.h5 " }, { "a/[!x]*.h5", "a/y.h5 " },
		{ "*/x.h5", "a/x.h5 link/x.h5 z/x.h5 " }, { "*/*/*.h5", "a/b/x.h5 link/b/x.h5 " },
		{ "[az]/b//x.h5", "a/b/x.h5 " }, { ".*", ".d " }, { "a/.*", "a/.h.h5 " },
		    { "*/.h*", "a/.h.h5 link/.h.h5 " },
		{ "**/x.h5", "a/b/x.h5 a/x.h5 z/x.h5 " }, { "a/**", "a/b a/b/c a/b/c/z.h5 a/b/x.h5 a/x.h5 a/y.h5 " },
		{ "a/**/", "a/b/ a/b/c/ " }, { "a/**/c/*", "a/b/c/z.h5 " }, { "a/b**z.h5", "a/b/c/z.h5 " },
		{ "out/*", "no name matches the pattern" }, { "a/*.x", "no name matches the pattern" },
		{ "../*", "no name matches the pattern" }, { "a/[", "a/[ " },
		    { "a/x.h5/*", "no name matches the pattern" },
		{ "a/../*", "a/../a a/../link a/../out a/../z " }, { "*/..", "a/.. link/.. z/.. " },
		{ "a/.ptcp*", "no name matches the pattern" },
	};
	size_t i;
	unsigned names;

	(void)state;
	fx_needs_linux();
	tree();
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (names = 1; names <= 1000; names *= 10)
			if (strcmp(expand(cases[i].pattern, names), cases[i].want) != 0)
				fail_msg("%s in steps of %u: %s", cases[i].pattern, names,
				    expand(cases[i].pattern, names));
}

static void literal_names_win(void **state)
{
	(void)state;
	fx_mkdir("[ab]");
	fx_text("[ab]/x", "");
	fx_mkdir("a");
	fx_text("a/x", "");
	fx_text("a/*", "");
	assert_string_equal(expand("[ab]", 9), "[ab] ");
	assert_string_equal(expand("[ab]/", 9), "[ab]/ ");
	assert_string_equal(expand("[ab]/x", 9), "[ab]/x ");
	assert_string_equal(expand("[ab]/*", 9), "a/* a/x ");
	assert_string_equal(expand("a/*", 9), "a/* ");
	assert_string_equal(expand("\\[ab]/*", 9), "[ab]/x ");
	assert_string_equal(expand("[b]*", 9), "no name matches the pattern");
	assert_string_equal(expand("\\[*", 9), "[ab] ");
}

/* Neither the matches nor the directories to be listed take more memory than the limit. */
static void limits(void **state)
{
	char name[300];
	struct expand *x;
	struct ptcp_err why;
	unsigned i;

	(void)state;
	fx_mkdir("d");
	for (i = 0; i <= EXPAND_MATCHES_MAX; i++) {
		snprintf(name, sizeof name, "d/%u", i);
		fx_text(name, "");
	}
	assert_int_equal(expand_new(&x, "d/*", open_below, fx_root, NULL, NULL), 0);
	while ((i = (unsigned)expand_step(x, 100, &why)) == 1)
		;
	assert_int_equal((int)i, PTCP_EIO);
	assert_int_equal(why.sys, E2BIG);
	assert_non_null(strstr(why.msg, "narrower pattern"));
	expand_free(x);
	assert_int_equal(unlink(fx_path("d/0")), 0);
	assert_int_equal(expand_new(&x, "d/*", open_below, fx_root, NULL, NULL), 0);
	while ((i = (unsigned)expand_step(x, 100, &why)) == 1)
		;
	assert_int_equal((int)i, 0);
	assert_int_equal(expand_n(x), EXPAND_MATCHES_MAX);
	expand_free(x);
	/* abandoned in the middle */
	assert_int_equal(expand_new(&x, "**/*", open_below, fx_root, NULL, NULL), 0);
	assert_int_equal(expand_step(x, 100, &why), 1);
	expand_free(x);
}

static void names_of_matches(void **state)
{
	static const struct { const char *pattern, *name; bool can; } cases[] = {
		{ "a/*.h5", "x.h5", true }, { "a/*.h5", "x.h6", false }, { "a/*.h5", ".x.h5", false },
		    { "*", ".bashrc", false },
		{ "a/.*", ".x", true }, { "*/x", "x", true }, { "*/x", "y", false }, { "a/**", "any", true },
		{ "**", ".any", false }, { "plain", "plain", false }, { "*/[", "[", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		if (expand_can_match(cases[i].pattern, cases[i].name) != cases[i].can)
			fail_msg("%s of %s", cases[i].name, cases[i].pattern);
	assert_true(expand_has_wildcard("a\\\\*") && expand_has_wildcard("[") && !expand_has_wildcard("a\\*\\?b\\"));
}

/* Every system call that can fail, fails once: the result is shorter, or an error, and nothing stays open. */
static void failing_calls(void **state)
{
	int nth, failed = 1;

	(void)state;
	fx_needs_linux();
	tree();
	for (nth = 1; failed > 0; nth++) {
		fx_heal();
		fx_fail_nth(nth, EIO);
		expand("*/*/x.h5", 3);
		failed = fx_failed();
	}
	assert_true(nth > 10);
	fx_heal();
	assert_string_equal(expand("*/*/x.h5", 3), "a/b/x.h5 link/b/x.h5 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(matches),
		fx_tree_test(literal_names_win),
		fx_tree_test(limits),
		fx_tree_test(failing_calls),
		cmocka_unit_test(names_of_matches),
	};

	fx_in_memory();
	return cmocka_run_group_tests_name("store/expand", tests, NULL, NULL);
}
