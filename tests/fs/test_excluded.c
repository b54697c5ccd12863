/* against: access */
#include "store/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/excluded.h"
#include "store/sink.h"
#include "store/walk.h"

static struct tree *tree;

/* The fixture's root, with these directories excluded; to be released by end(). */
static struct dir *begin(const char *a, const char *b)
{
	struct excluded *x;

	assert_int_equal(excluded_new(&x, NULL), 0);
	assert_int_equal(excluded_add(x, fx_path(a), NULL), 0);
	if (b != NULL)
		assert_int_equal(excluded_add(x, fx_path(b), NULL), 0);
	assert_int_equal(tree_open(&tree, fx_path("."), &sys_real, NULL), 0);
	assert_int_equal(tree_exclude(tree, x, NULL), 0);
	return tree_root(tree);
}

static void end(struct dir *root)
{
	dir_unref(root);
	tree_unref(tree);
}

static void refused(struct dir *root, const char *path, bool want)
{
	struct dir *d = NULL;
	struct ptcp_err e;
	int r = dir_resolve(&d, root, path, &e);

	if (r != (want ? PTCP_EREFUSED : 0))
		fail_msg("%s: %d", path, r);
	if (want)
		assert_non_null(strstr(e.msg, EXCLUDED_WHY));
	dir_unref(d);
}

/* By every path, by names that change, and in what lies beneath. */
static void directories(void **state)
{
	struct dir *root, *home, *conf;
	struct ptcp_err e;

	(void)state;
	fx_needs_linux();
	fx_mkdir("home");
	fx_mkdir("home/conf");
	fx_mkdir("home/conf/deep");
	fx_mkdir("home/conf/deep/er");
	fx_mkdir("home/other");
	assert_int_equal(symlink("home/conf/deep", fx_path("in")), 0);
	assert_int_equal(symlink("../conf/../conf", fx_path("home/other/to")), 0);
	root = begin("home/conf", "missing");
	refused(root, "home/conf", true);
	refused(root, "home/conf/deep", true);
	refused(root, "home/conf/deep/er", true);
	fx_mkdir("home/conf/deep/late");
	refused(root, "home/conf/deep/late", true);
	refused(root, "home/other/../conf", true);
	refused(root, "home/other/to", true);
	refused(root, "in", true);
	refused(root, "in/er", true);
	refused(root, "home/other", false);
	refused(root, "home/conf/..", false);
	refused(root, "", false);
	home = dir_child(root, "home");
	conf = dir_child(home, "conf");
	assert_int_equal(dir_fd(conf, &e), PTCP_EREFUSED);
	dir_unref(conf);
	/* An existing directory is not even made writable. */
	assert_int_equal(chmod(fx_path("home/conf"), 0500), 0);
	assert_int_equal(store_mkdir(home, "conf", NULL, NULL, &e), PTCP_EREFUSED);
	assert_int_equal(chmod(fx_path("home/conf"), 0700), 0);
	dir_unref(home);
	assert_int_equal(rename(fx_path("home"), fx_path("moved")), 0);
	refused(root, "moved/conf/deep", true);
	refused(root, "moved/other", false);
	end(root);
}

/* Whoever replaced a link on the path of the configuration would choose the configuration. */
static void links_to_it(void **state)
{
	static const char *const links[] = { "first", "second" };
	const struct meta m = { .set_mode = false };
	struct dir *root;
	struct ptcp_err e;
	struct stat st;
	unsigned i;

	(void)state;
	fx_mkdir("real");
	fx_mkdir("real/conf");
	assert_int_equal(symlink("second", fx_path("first")), 0);
	assert_int_equal(symlink("real", fx_path("second")), 0);
	assert_int_equal(symlink("real", fx_path("third")), 0);
	root = begin("first/conf", NULL);
	for (i = 0; i < 2; i++) {
		assert_int_equal(store_symlink(root, links[i], "elsewhere", &m, NULL, &e), PTCP_EREFUSED);
		assert_non_null(strstr(e.msg, EXCLUDED_WHY));
	}
	assert_int_equal(store_symlink(root, "third", "elsewhere", &m, NULL, &e), 0);
	refused(root, "real/conf", true);
	refused(root, "real", false);
	assert_int_equal(lstat(fx_path("first"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	end(root);
}

/* A root in the directory, at any depth; moved away, or with another directory in its place. */
static void roots(void **state)
{
	static const struct { const char *path; int want; } of[] = {
		{ "conf", PTCP_EREFUSED }, { "conf/deep", PTCP_EREFUSED }, { "conf/deep/er", PTCP_EREFUSED },
		    { "link", PTCP_EREFUSED },
		{ "conf/late", PTCP_EREFUSED }, { "away", PTCP_EREFUSED }, { "away/in", PTCP_EREFUSED },
		    { "other", 0 }, { ".", 0 },
	};
	struct excluded *x;
	struct tree *t;
	struct ptcp_err e;
	unsigned i;
	int fd, r;

	(void)state;
	fx_mkdir("conf");
	fx_mkdir("conf/in");
	fd = open(fx_path("conf"), O_PATH | O_CLOEXEC);
	assert_int_equal(rename(fx_path("conf"), fx_path("away")), 0);
	fx_mkdir("conf");
	fx_mkdir("conf/deep");
	fx_mkdir("conf/deep/er");
	fx_mkdir("other");
	assert_int_equal(symlink("conf/deep", fx_path("link")), 0);
	for (i = 0; i < sizeof of / sizeof *of; i++) {
		assert_int_equal(excluded_new(&x, NULL), 0);
		assert_int_equal(excluded_add(x, fx_path("conf"), NULL), 0);
		assert_int_equal(excluded_add_open(x, fd, NULL), 0);
		fx_mkdir("conf/late");
		assert_int_equal(tree_open(&t, fx_path(of[i].path), &sys_real, NULL), 0);
		if ((r = tree_exclude(t, x, &e)) != of[i].want)
			fail_msg("%s: %d", of[i].path, r);
		tree_unref(t);
		assert_int_equal(rmdir(fx_path("conf/late")), 0);
	}
	close(fd);
}

/* Files of the directory have the same inode under any other name: of a hard link here, as of a bind mount. Neither
 * their content nor their attributes are reached, and none is replaced. */
static void other_names(void **state)
{
	static const char *const files[] = { "key", "list", "target" };
	const struct meta m = { .set_mode = true, .mode = 0640 };
	struct sink_existing found = { 0 };
	struct sink_opts o = { .block_bytes = 1 << 20 };
	struct walk_entry out;
	struct dir *root;
	struct sink *s;
	struct walk *w;
	struct ptcp_err e;
	unsigned i;

	(void)state;
	fx_mkdir("conf");
	fx_mkdir("conf/deep");
	fx_mkdir("data");
	fx_text("conf/key", "secret");
	fx_text("conf/deep/list", "secret");
	fx_text("elsewhere", "secret");
	assert_int_equal(symlink("../elsewhere", fx_path("conf/pointer")), 0);
	assert_int_equal(link(fx_path("conf/key"), fx_path("data/key")), 0);
	assert_int_equal(link(fx_path("conf/deep/list"), fx_path("data/list")), 0);
	assert_int_equal(link(fx_path("elsewhere"), fx_path("data/target")), 0);
	root = begin("conf", NULL);
	for (i = 0; i < 3; i++) {
		struct dir *data = dir_child(root, "data");

		assert_int_equal(walk_new(&w, NULL, NULL), 0);
		assert_int_equal(walk_add(w, data, files[i], NULL), 0);
		assert_true(walk_next(w, &out, NULL) > 0);
		assert_int_equal(out.type, WALK_FAILED);
		assert_int_equal(out.code, PTCP_EREFUSED);
		walk_entry_fini(&out);
		walk_free(w);
		s = sink_new(data, files[i], 6, &m, &o);
		assert_int_equal(sink_inspect(s, &found, &e), PTCP_EREFUSED);
		assert_int_equal(sink_refresh(s, &e), PTCP_EREFUSED);
		assert_int_equal(store_symlink(data, files[i], "x", &m, NULL, &e), PTCP_EREFUSED);
		sink_unref(s);
		dir_unref(data);
	}
	fx_holds("conf/key", "secret");
	fx_holds("data/key", "secret");
	end(root);
}

/* The list of a source leaves the directory out, with a warning; requested itself, it fails. */
static void listing(void **state)
{
	struct walk_entry out;
	struct dir *root;
	struct walk *w;
	unsigned i, skipped = 0, dirs = 0;

	(void)state;
	fx_mkdir("conf");
	fx_text("conf/key", "secret");
	fx_mkdir("data");
	root = begin("conf", NULL);
	for (i = 0; i < 2; i++) {
		assert_int_equal(walk_new(&w, NULL, NULL), 0);
		assert_int_equal(walk_add(w, root, i == 0 ? NULL : "conf", NULL), 0);
		for (skipped = dirs = 0; walk_next(w, &out, NULL) > 0; walk_entry_fini(&out)) {
			skipped += out.type == (i == 0 ? WALK_SKIPPED : WALK_FAILED) &&
			    strstr(out.why, EXCLUDED_WHY) != NULL;
			dirs += out.type == WALK_DIR;
			assert_true(out.type != WALK_FILE);
		}
		assert_int_equal(skipped, 1);
		assert_int_equal(dirs, i == 0);
		walk_free(w);
	}
	end(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(directories), fx_tree_test(links_to_it), fx_tree_test(listing), fx_tree_test(roots),
		fx_tree_test(other_names),
	};
	return cmocka_run_group_tests_name("fs/excluded", tests, NULL, NULL);
}
