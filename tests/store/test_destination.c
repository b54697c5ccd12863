#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "store/destination.h"
#include "store/part.h"
#include "store/sink.h"

/* What destination_target() says of `path`: below the root, and as the user's own. */
static void lands(const char *path, int flags, const char *base, const char *rename)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err e;
	struct destination p;

	assert_int_equal(destination_target(&p, fx_tree, path, flags, &e), 0);
	assert_string_equal(dir_path_text(p.base, NULL, text, sizeof text), base);
	assert_string_equal(p.rename, rename);
	assert_null(p.above);
	destination_fini(&p);
	assert_int_equal(destination_target(&p, NULL, fx_path(path), flags, &e), 0);
	assert_string_equal(p.rename, rename);
	assert_null(p.above);
	destination_fini(&p);
}

static void like_cp_r(void **state)
{
	(void)state;
	fx_mkdir("there");
	fx_text("file", "old");
	lands("there", 0, "there", "");
	lands("there/", 0, "there", "");
	lands("new", 0, ".", "new");
	lands("there/new", 0, "there", "new");
	lands("file", 0, ".", "file");
	lands("made", DESTINATION_INTO_DIR, "made", "");
	lands("slash/", 0, "slash", "");
	lands("contents", DESTINATION_CONTENTS, "contents", "");
	assert_int_equal(fx_exists("new"), 0);
}

/* A link that the user names is judged by what it leads to. */
static void links(void **state)
{
	static const char *const to[] = { "file", "missing", "/dev/null", "fifo", "again", "/proc/self/fd/1" };
	struct ptcp_err e;
	struct destination p;
	size_t i;
	int r;

	(void)state;
	fx_text("file", "old");
	assert_int_equal(mkfifo(fx_path("fifo"), 0600), 0);
	assert_int_equal(symlink("fifo", fx_path("again")), 0);
	for (i = 0; i < sizeof to / sizeof *to; i++) {
		assert_int_equal(symlink(to[i], fx_path("link")), 0);
		if ((r = destination_target(&p, NULL, fx_path("link"), 0, &e)) == 0)
			destination_fini(&p);
		else
			assert_non_null(strstr(e.msg, "(write - for standard output)"));
		assert_int_equal(r, i < 2 ? 0 : PTCP_EUSAGE);
		assert_int_equal(remove(fx_path("link")), 0);
	}
}

static void refused(void **state)
{
	struct ptcp_err e;
	struct destination p;

	(void)state;
	fx_text("file", "old");
	assert_int_equal(destination_target(&p, fx_tree, "no/where", 0, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(destination_target(&p, fx_tree, "../up", 0, &e), PTCP_EREFUSED);
	assert_int_equal(destination_target(&p, fx_tree, "file/", 0, &e), PTCP_EIO);
	assert_int_equal(destination_target(&p, fx_tree, "file", DESTINATION_INTO_DIR, &e), PTCP_EIO);
	fx_holds("file", "old");
}

static void only_a_file(void **state)
{
	static const char *const directories[] = { "there", "there/", "new/", ".", "" };
	struct ptcp_err e;
	struct destination p;
	size_t i;

	(void)state;
	fx_mkdir("there");
	fx_text("file", "old");
	for (i = 0; i < sizeof directories / sizeof *directories; i++)
		assert_int_equal(destination_target(&p, fx_tree, directories[i], DESTINATION_FILE | DESTINATION_MKPATH,
		    &e), PTCP_EUSAGE);
	assert_int_equal(fx_exists("new"), 0);
	lands("there/f", DESTINATION_FILE, "there", "f");
	lands("file", DESTINATION_FILE, ".", "file");
}

static void absent(const char *path) { assert_int_equal(fx_exists(path), 0); }

static void missing_parents(void **state)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err e;
	struct destination p;

	(void)state;
	lands("a/b/new", DESTINATION_MKPATH, "a/b", "new");
	absent("a/b/new");
	lands("a//./c/.//d/", DESTINATION_MKPATH, "a/c/d", "");
	lands("/x/y", DESTINATION_MKPATH | DESTINATION_CONTENTS, "x/y", "");
	/* without the flag */
	assert_int_equal(destination_target(&p, fx_tree, "no/where", 0, &e), PTCP_EIO);
	assert_non_null(strstr(e.msg, "no: No such file or directory"));
	assert_non_null(strstr(e.msg, "--no-mkpath"));
	absent("no");
	/* in a dry run */
	assert_int_equal(destination_target(&p, fx_tree, "dry/run/new", DESTINATION_MKPATH | DESTINATION_DRY_RUN, &e),
	    0);
	assert_string_equal(dir_path_text(p.base, NULL, text, sizeof text), "dry/run");
	assert_string_equal(p.rename, "new");
	assert_true(p.missing);
	destination_fini(&p);
	absent("dry");
	/* ".." has no meaning behind a missing directory */
	assert_int_equal(destination_target(&p, fx_tree, "no/../where/x", DESTINATION_MKPATH, &e), PTCP_EIO);
	absent("where");
}

/* No directory is made through a link that leaves the root, or in the place of a file or a dangling link. */
static void parents_stay_beneath(void **state)
{
	struct ptcp_err e;
	struct destination p;
	char outside[] = "/tmp/ptcp-outside.XXXXXX";

	(void)state;
	fx_needs_linux();
	assert_non_null(mkdtemp(outside));
	fx_text("file", "old");
	fx_mkdir("in");
	assert_int_equal(symlink("in", fx_path("good")), 0);
	assert_int_equal(symlink(outside, fx_path("out")), 0);
	assert_int_equal(symlink("nowhere", fx_path("dangling")), 0);
	assert_int_equal(destination_target(&p, fx_tree, "out/ptcp-a/b/", DESTINATION_MKPATH, &e), PTCP_EREFUSED);
	assert_int_equal(rmdir(outside), 0); /* it is empty */
	assert_int_equal(destination_target(&p, fx_tree, "../ptcp-a/b/", DESTINATION_MKPATH, &e), PTCP_EREFUSED);
	assert_int_equal(destination_target(&p, fx_tree, "file/a/b", DESTINATION_MKPATH, &e), PTCP_EIO);
	assert_int_equal(destination_target(&p, fx_tree, "dangling/a/b", DESTINATION_MKPATH, &e), PTCP_EIO);
	absent("nowhere");
	fx_holds("file", "old");
	assert_int_equal(destination_target(&p, fx_tree, "good/a/b", DESTINATION_MKPATH, &e), 0);
	destination_fini(&p);
	assert_int_equal(fx_exists("in/a"), 1);
}

static bool marked(const char *name, const char *source)
{
	char got[DESTINATION_NAME_BYTES];

	return destination_marked(fx_root, name, got) && strcmp(got, source) == 0;
}

static void mark(void **state)
{
	char longest[256];

	(void)state;
	memset(longest, 'x', 255);
	longest[255] = '\0';
	assert_int_equal(destination_mark(fx_root, "new", "data", NULL), 0);
	assert_false(marked("new", "data")); /* there is no such directory */
	fx_mkdir("new");
	assert_true(marked("new", "data"));
	assert_false(marked("other", "data"));
	assert_int_equal(destination_mark(fx_root, "new", longest, NULL), 0);
	assert_true(marked("new", longest));
	destination_unmark(fx_root, "new");
	assert_false(marked("new", longest));
	destination_unmark(fx_root, "new");
	assert_int_equal(fx_count(""), 1);
}

static void goes_on(void **state)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct destination p;

	(void)state;
	fx_mkdir("new");
	assert_int_equal(destination_mark(fx_root, "new", "data", NULL), 0);
	assert_int_equal(destination_target(&p, fx_tree, "new", 0, NULL), 0);
	assert_string_equal(dir_path_text(p.base, NULL, text, sizeof text), "new");
	assert_string_equal(dir_path_text(p.above, NULL, text, sizeof text), ".");
	assert_string_equal(p.name, "new");
	assert_string_equal(p.source, "data");
	destination_fini(&p);
	lands("new/", 0, "new", ""); /* into the directory, also into an unfinished one */
	lands("new", DESTINATION_CONTENTS, "new", "");
}

/* Another user has planted a link, or a malformed text, at the name of the mark. */
static void planted(void **state)
{
	char name[PART_NAME_BYTES];

	(void)state;
	fx_mkdir("new");
	part_name(name, "new", PART_DIR_SUFFIX);
	fx_text("elsewhere", "data");
	assert_int_equal(symlink("elsewhere", fx_path(name)), 0);
	assert_false(marked("new", "data"));
	assert_int_equal(destination_mark(fx_root, "new", "mine", NULL), 0);
	fx_holds("elsewhere", "data");
	assert_true(marked("new", "mine"));
	fx_text(name, "");
	assert_false(marked("new", ""));
	fx_text(name, "a/b");
	assert_false(marked("new", "a/b"));
	fx_write(name, "a\0b", 3);
	assert_false(marked("new", "a"));
	assert_true(part_is_own_name(name));
}

/* No call that fails leaves a mark that says something else. */
static void failing(void **state)
{
	struct ptcp_err e;
	int n, r = -1;

	(void)state;
	fx_mkdir("new");
	for (n = 1; r != 0; n++) {
		fx_heal();
		fx_fail_nth(n, EIO);
		r = destination_mark(fx_root, "new", "data", &e);
		assert_true(fx_failed() > 0 || r == 0);
		if (r == 0)
			break;
		assert_true(e.msg[0] != '\0');
		fx_heal();
		assert_false(marked("new", "data"));
	}
	fx_heal();
	assert_true(n > 3);
	assert_true(marked("new", "data"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(like_cp_r), fx_tree_test(links), fx_tree_test(only_a_file), fx_tree_test(missing_parents),
		fx_tree_test(like_cp_r), fx_tree_test(refused), fx_tree_test(only_a_file),
		fx_tree_test(missing_parents),
		fx_tree_test(parents_stay_beneath), fx_tree_test(mark), fx_tree_test(goes_on),
		fx_tree_test(planted), fx_tree_test(failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
