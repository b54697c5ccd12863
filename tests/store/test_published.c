/* Files that a transfer does not replace. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offer.h"

static struct published p;

static int setup(void **state)
{
	p = (struct published){ .max = 1000 };
	return fx_tree_setup(state);
}

static int teardown(void **state)
{
	published_fini(&p);
	return fx_tree_teardown(state);
}

static bool has(const char *name, bool before)
{
	struct stat st;
	int at = dir_fd(fx_root, NULL);
	bool yes;

	assert_int_equal(fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	yes = published_has(&p, fx_root, at, name, &st, before);
	dir_fd_done(fx_root);
	return yes;
}

static bool shares(const char *name)
{
	struct stat st;

	assert_int_equal(stat(fx_path(name), &st), 0);
	return published_shares(&p, &st);
}

static void make(const char *name) { fx_write(name, "x", 1); }

static void files(void **state)
{
	(void)state;
	make("a");
	make("b");
	assert_int_equal(mkdir(fx_path("d"), 0700), 0);
	assert_int_equal(symlink("a", fx_path("l")), 0);
	published_add_name(&p, fx_root, "a");
	published_add_name(&p, fx_root, "d");
	published_add_name(&p, fx_root, "l");
	published_add_name(&p, fx_root, "missing");
	published_add_name(NULL, fx_root, "a");
	assert_true(has("a", false) && has("d", false) && has("l", false));
	assert_false(has("b", true));
	assert_int_equal(rename(fx_path("a"), fx_path("c")), 0);
	assert_true(has("c", false));
}

/* Without an entry of the other case, one letter shows that case counts: then a file takes one record. */
static void one_letter(void **state)
{
	(void)state;
	make("b1");
	make("B1");
	make("a1");
	published_add_name(&p, fx_root, "b1");
	assert_int_equal(p.dev, 0);
	assert_int_equal(p.now.n, 2);
	published_add_name(&p, fx_root, "a1");
	assert_int_not_equal(p.dev, 0);
	assert_false(p.ignores_case);
	assert_int_equal(p.now.n, 3);
}

/* Of a file with several names, one may be replaced: another keeps the file. */
static void hard_links(void **state)
{
	(void)state;
	make("a");
	assert_int_equal(link(fx_path("a"), fx_path("z")), 0);
	published_add_name(&p, fx_root, "a");
	assert_false(has("z", false));
	assert_true(shares("z"));
	assert_int_equal(unlink(fx_path("a")), 0);
	assert_false(shares("z"));
	assert_true(has("z", false));
	make("b");
	assert_int_equal(link(fx_path("b"), fx_path("B")), 0); /* no other spelling of b: the directory has both */
	published_add_name(&p, fx_root, "b");
	assert_false(has("B", false));
}

static void sessions(void **state)
{
	(void)state;
	make("a");
	published_add_name(&p, fx_root, "a");
	published_next(&p);
	assert_false(has("a", false));
	assert_true(has("a", true));
	published_next(&p);
	assert_true(has("a", true));
	published_add_name(&p, fx_root, "a");
	assert_true(has("a", false));
}

static void sources(void **state)
{
	(void)state;
	published_add_source(&p, "d/Read\xc3\xa9");
	assert_false(published_source_before(&p, "d/Read\xc3\xa9")); /* the receiver knows */
	published_next(&p);
	assert_true(published_source_before(&p, "d/Read\xc3\xa9"));
	assert_true(published_source_before(&p, "D/rEAD\xc3\x89"));
	assert_false(published_source_before(&p, "Read\xc3\xa9"));
	assert_false(published_source_before(NULL, "d/Read\xc3\xa9"));
}

/* The places that replace a file, or take it for the entry's. */
static void refusals(void **state)
{
	const struct meta m = { .published = &p, .mtime = { 7, 0 } };
	struct store_inode link;
	const struct sink_opts o = { .block_bytes = 10 };
	const struct timespec at[2] = { { 7, 0 }, { 7, 0 } };
	struct sink_existing found = { 0 };
	struct store_file f = { .base = fx_root, .path = "a", .published = &p };
	struct ptcp_err e = { 0 };
	struct stat st;
	struct sink *s;
	int same;

	(void)state;
	make("a");
	assert_int_equal(utimensat(AT_FDCWD, fx_path("a"), at, 0), 0);
	assert_int_equal(stat(fx_path("a"), &st), 0);
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	published_add_name(&p, fx_root, "a");
	for (same = 0; same < 2; same++) {
		s = sink_new(fx_root, "a", same ? 1 : 2, &m, &o);
		assert_int_equal(sink_inspect(s, &found, &e), PTCP_EREFUSED);
		if (same)
			assert_int_equal(sink_refresh(s, &e), PTCP_EREFUSED);
		sink_unref(s);
	}
	assert_int_equal(store_symlink(fx_root, "a", "elsewhere", &m, NULL, &e), PTCP_EREFUSED);
	assert_int_equal(store_make_way(fx_root, "a", &o.rules, &(struct meta){ .published = &p }, &e), PTCP_EREFUSED);
	assert_int_equal(store_hardlink(&f, fx_root, "a", &e), PTCP_EREFUSED);
	assert_false(store_hardlink_same(&f, fx_root, "a"));
	s = sink_new(fx_root, "a", 0, &m, &o);
	assert_int_equal(offer_commit(s, &e), PTCP_EREFUSED);
	sink_discard(s);
	sink_unref(s);
	fx_holds("a", "x");
	s = sink_new(fx_root, "b", 0, &m, &o);
	assert_int_equal(offer_commit(s, &e), 0);
	sink_unref(s);
	assert_true(has("b", false));
	assert_int_equal(store_hardlink(&f, fx_root, "c", &e), 0);
	assert_int_equal(store_hardlink(&f, fx_root, "c", &e), 0);
	assert_int_equal(store_symlink(fx_root, "l", "elsewhere", &m, &link, &e), 0);
	assert_true(has("l", false));
	assert_false(store_symlink_same(fx_root, "l", "elsewhere", &m, true, &link));
}

/* Beyond its limit the set takes each file for published, and none is lost. */
static void full(void **state)
{
	char name[20];
	struct ptcp_err e;
	int i;

	(void)state;
	p.max = 3;
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "file%d", i);
		make(name);
		assert_int_equal(has(name, true), i > 3);
		published_add_name(&p, fx_root, name);
	}
	assert_int_equal(published_refuse(&p, fx_root, "file4", &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "too many files"));
	p.full = false;
	assert_int_equal(published_refuse(&p, fx_root, "file4", &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, "another file of this transfer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files, setup, teardown),
		cmocka_unit_test_setup_teardown(one_letter, setup, teardown),
		cmocka_unit_test_setup_teardown(hard_links, setup, teardown),
		cmocka_unit_test_setup_teardown(sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(sources, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
