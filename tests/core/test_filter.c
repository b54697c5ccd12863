/* Rules that leave files out. tests/trees/rules compares them with those of rsync. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/filter.h"

static bool sent(const struct filter *f, const char *path, bool is_dir)
{
	return filter_includes(f, NULL, FILTER_SENDER, path, 0, 0, is_dir, false);
}

static void first_rule_wins(void **state)
{
	struct filter *f;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_true(sent(f, "anything", false));
	assert_int_equal(filter_add_pattern(f, true, "keep.o", NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "*.o", NULL), 0);
	assert_int_equal(filter_add_pattern(f, true, "x.o", NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "cache/", NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "[", &e), PTCP_EUSAGE);
	assert_true(sent(f, "a/keep.o", false));
	assert_false(sent(f, "x.o", false));
	assert_true(sent(f, "x.c", false));
	assert_false(sent(f, "a/cache", true));
	assert_true(sent(f, "a/cache", false));
	for (unsigned i = 4; i < FILTER_RULES_MAX; i++)
		assert_int_equal(filter_add_pattern(f, false, "y", NULL), 0);
	assert_int_equal(filter_add_pattern(f, false, "y", &e), PTCP_EUSAGE);
	filter_free(f);
	filter_free(NULL);
}

/* Each kind of rule x each form of a pattern: what it decides for the sender, for deletion, and for deletion in a
 * directory that is being removed. */
static void kinds(void **state)
{
	static const struct {
		const char *kind, *short_kind;
		bool include, negated;
		unsigned sides;
		bool perishable;
	} kind[] = {
		{ "exclude", "-", false, false, 3, false }, { "include", "+", true, false, 3, false },
		{ "hide", "H", false, false, 1, false }, { "show", "S", true, false, 1, false },
		{ "protect", "P", false, false, 2, false }, { "risk", "R", true, false, 2, false },
		{ "exclude,s", "-s", false, false, 1, false }, { "include,r", "+r", true, false, 2, false },
		{ "exclude,p", "-p", false, false, 3, true }, { "exclude,!", "-!", false, true, 3, false },
		{ "protect,p", "P,p", false, false, 2, true }, { "include,s!", "+!s", true, true, 1, false },
	};
	static const struct {
		const char *pattern;
		bool file, dir; /* matches a/b.o, as a file, as a directory */
	} form[] = {
		{ "b.o", true, true }, { "/b.o", false, false }, { "/a/b.o", true, true }, { "b.o/", false, true },
		{ "a/**", true, true }, { "**/b.o", true, true }, { "a/b.o/***", false, true },
		{ "[[:alpha:]].o", true, true },
		{ "[!b].o", false, false }, { "/*/b?o", true, true }, { "b", false, false },
	};
	unsigned k, i, brief, c, side, dir, removed;
	char line[100];
	struct filter *f;
	bool out;

	(void)state;
	for (k = 0; k < sizeof kind / sizeof *kind; k++)
		for (i = 0; i < sizeof form / sizeof *form; i++)
			for (brief = 0; brief < 2; brief++) {
				snprintf(line, sizeof line, "%s%c%s", brief ? kind[k].short_kind : kind[k].kind,
				    brief ? '_' : ' ', form[i].pattern);
				assert_int_equal(filter_new(&f, NULL, NULL), 0);
				assert_int_equal(filter_add(f, line, NULL), 0);
				assert_int_equal(filter_add_pattern(f, !kind[k].include, "*", NULL), 0); /* else */
				for (c = 0; c < 8; c++) {
					side = 1 + (c & 1);
					dir = c >> 1 & 1;
					removed = c >> 2;
					out = (kind[k].sides & side) != 0 && !(kind[k].perishable && removed) &&
					    (dir ? form[i].dir : form[i].file) != kind[k].negated;
					assert_int_equal(filter_includes(f, NULL, side, "a/b.o", 0, 2, dir, removed),
					    out ? kind[k].include : !kind[k].include);
				}
				filter_free(f);
			}
}

static void malformed(void **state)
{
	static const struct { const char *line; int code; const char *says; } bad[] = {
		{ "", PTCP_EUSAGE, "unknown rule" }, { "x y", PTCP_EUSAGE, "unknown rule" },
		{ "excluded a", PTCP_EUSAGE, "unknown rule" }, { "! a", PTCP_EUSAGE, "no pattern" },
		{ "-", PTCP_EUSAGE, "lacks a pattern" }, { "- ", PTCP_EUSAGE, "lacks a pattern" },
		{ "-q a", PTCP_EUSAGE, "unknown modifier" }, { "Hs a", PTCP_EUSAGE, "unknown modifier" },
		{ "-/ a", PTCP_ENOTYET, "absolute paths" }, { "-x a", PTCP_ENOTYET, "extended attributes" },
		{ "-C", PTCP_ENOTYET, "CVS" }, { ": a/b", PTCP_EUSAGE, "without slashes" },
		{ ": ..", PTCP_EUSAGE, "without slashes" },
		{ ":w a", PTCP_ENOTYET, "words" }, { ". file", PTCP_EUSAGE, "only the command reads files" },
		{ "- [", PTCP_EUSAGE, "[" }, { ":-+ a", PTCP_EUSAGE, "unknown modifier" },
	};
	struct ptcp_err e;
	struct filter *f;
	size_t i;

	(void)state;
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		e.msg[0] = '\0';
		assert_int_equal(filter_add(f, bad[i].line, &e), bad[i].code);
		assert_non_null(strstr(e.msg, bad[i].says));
	}
	for (i = 0; i < 16; i++)
		assert_int_equal(filter_add(f, ": .rules", NULL), 0);
	assert_int_equal(filter_add(f, ": .rules", &e), PTCP_EUSAGE);
	assert_int_equal(filter_add(f, "!", NULL), 0);
	assert_null(filter_file_name(f, 0));
	filter_free(f);
}

static struct filter_scope *file(const struct filter *f, const struct filter_scope *up, size_t at, const char *text)
{
	char *content = strdup(text);
	struct filter_scope *s;

	assert_int_equal(filter_scope_new(&s, f, up, at, NULL), 0);
	assert_int_equal(filter_scope_read(s, 0, content, NULL), 0);
	free(content);
	return s;
}

static bool in(const struct filter *f, const struct filter_scope *s, const char *path, size_t at)
{
	return filter_includes(f, s, FILTER_SENDER, path, 0, at, false, false);
}

/* Rules of files take the place of the rule that names the files; those of the innermost directory come first. */
static void files(void **state)
{
	struct filter_scope *top, *below;
	struct filter *f;

	(void)state;
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_int_equal(filter_add(f, "+ first", NULL), 0);
	assert_int_equal(filter_add(f, ":e /.rules", NULL), 0);
	assert_int_equal(filter_add(f, "- last", NULL), 0);
	assert_string_equal(filter_file_name(f, 0), ".rules");
	assert_null(filter_file_name(f, 1));
	top = file(f, NULL, 0, "# - x\n; - x\n\n- *.o\r\n- /here\n+ last\n- first\n");
	below = file(f, top, 2, "+ keep.o\n- /here");
	assert_true(in(f, below, "d/keep.o", 2) && !in(f, below, "d/other.o", 2) && !in(f, top, "keep.o", 0));
	assert_true(!in(f, top, "here", 0) && !in(f, below, "d/here", 2) && in(f, top, "d/here", 2));
	assert_true(in(f, below, "d/e/here", 4));
	assert_true(in(f, below, "d/last", 2) && in(f, below, "d/first", 2) && !in(f, NULL, "last", 0));
	assert_true(in(f, below, "d/x", 2));
	assert_false(in(f, below, "d/.rules", 2));
	filter_scope_free(below);
	below = file(f, top, 2, "- y\n!\n- z\n");
	assert_true(in(f, below, "d/a.o", 2) && in(f, below, "d/y", 2) && !in(f, below, "d/z", 2));
	filter_scope_free(below);
	filter_scope_free(top);
	filter_free(f);
}

/* Files without kinds of rules, and those that are not for directories below. */
static void simple_files(void **state)
{
	static const struct { const char *how, *text; bool own; } with[] = {
		{ ":- .l", "a\n- b\n", false }, { ":n- .l", "a\n- b\n", true }, { ":C", "a  - b\n", true },
	};
	struct filter_scope *s;
	struct filter *f;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(filter_new(&f, NULL, NULL), 0);
		assert_int_equal(filter_add(f, with[i].how, NULL), 0);
		s = file(f, NULL, 0, with[i].text);
		assert_false(in(f, s, "a", 0));
		assert_int_equal(in(f, s, "d/a", 2), with[i].own);
		assert_int_equal(in(f, s, "b", 0), i < 2);
		assert_int_equal(in(f, s, "- b", 0), i == 2);
		filter_scope_free(s);
		filter_free(f);
	}
}

static void malformed_files(void **state)
{
	static const struct { const char *rule, *text; } bad[] = {
		{ ": .l", "a\n" }, { ": .l", ": x\n" }, { ": .l", ". x\n" }, { ":s .l", "P x\n" }, { ":- .l", "[\n" },
	};
	struct filter_scope *s;
	struct filter *f;
	struct ptcp_err e;
	char text[20];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(filter_new(&f, NULL, NULL), 0);
		assert_int_equal(filter_add(f, bad[i].rule, NULL), 0);
		assert_int_equal(filter_scope_new(&s, f, NULL, 0, NULL), 0);
		assert_true(filter_scope_read(s, 0, strcpy(text, bad[i].text), &e) < 0);
		filter_scope_free(s);
		filter_free(f);
	}
}

/* Rules of files above the transfer, whose paths begin there; all others know the path below it. */
static void above(void **state)
{
	struct filter_scope *up, *own;
	char of_up[] = "- /t/a\n- b/c\n- t/d\n- x\n", of_own[] = "- /e\n- /t/f\n";
	struct filter *f;

	(void)state;
	assert_int_equal(filter_new(&f, NULL, NULL), 0);
	assert_int_equal(filter_add(f, "- /g", NULL) | filter_add(f, "- t/g", NULL) | filter_add(f, ": /.rules", NULL) |
	    filter_add(f, ": .more", NULL), 0);
	assert_true(filter_file_is_above(f, 0) && !filter_file_is_above(f, 1));
	assert_string_equal(filter_file_name(f, 0), ".rules");
	assert_int_equal(filter_scope_new(&up, f, NULL, 0, NULL) | filter_scope_new(&own, f, up, 2, NULL), 0);
	assert_int_equal(filter_scope_read(up, 0, of_up, NULL) | filter_scope_read(own, 0, of_own, NULL), 0);
#define BELOW(path) filter_includes(f, own, FILTER_SENDER, "t/" path, 2, 2, false, false)
	assert_false(BELOW("a") || BELOW("b/c") || BELOW("x") || BELOW("y/x") || BELOW("e") || BELOW("g"));
	assert_true(BELOW("t") && BELOW("d") && BELOW("f") && BELOW("c") && BELOW("y/a") && BELOW("y/e") &&
	    BELOW("y/g"));
#undef BELOW
	filter_scope_free(own);
	filter_scope_free(up);
	filter_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_rule_wins),
		cmocka_unit_test(kinds),
		cmocka_unit_test(malformed),
		cmocka_unit_test(files),
		cmocka_unit_test(simple_files),
		cmocka_unit_test(malformed_files),
		cmocka_unit_test(above),
	};
	return cmocka_run_group_tests_name("core/filter", tests, NULL, NULL);
}
