#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/manage.h"
#include "store/walk.h"

#define PART ".ptcp-0123456789abcdef.part"

static struct ptcp_err why;

/* A node below the root; to be released. */
static struct dir *node(const char *path)
{
	struct dir *d;

	assert_int_equal(dir_resolve(&d, fx_root, path, NULL), 0);
	return d;
}

static void makes(void **state)
{
	(void)state;
	assert_int_equal(manage_mkdir(fx_root, "d", false, &why), 0);
	assert_int_equal(manage_mkdir(fx_root, "d", false, &why), PTCP_EIO);
	assert_int_equal(why.sys, EEXIST);
	assert_int_equal(manage_mkdir(fx_root, "d", true, &why), 0);
	fx_text("f", "");
	assert_int_equal(manage_mkdir(fx_root, "f", true, &why), PTCP_EIO);
	assert_int_equal(manage_mkdir(fx_root, PART, true, &why), PTCP_EREFUSED);
	assert_int_equal(fx_count("."), 2);
}

static void removes(void **state)
{
	struct dir *d;

	(void)state;
	fx_mkdir("d");
	fx_text("d/f", "x");
	fx_text("d/" PART, "x");
	assert_int_equal(symlink("d", fx_path("link")), 0);
	assert_int_equal(manage_remove(fx_root, "link", &why), 0);
	assert_true(fx_exists("d/f"));
	assert_int_equal(manage_remove(fx_root, "d", &why), PTCP_EIO);
	assert_int_equal(why.sys, EISDIR);
	assert_int_equal(manage_remove(fx_root, "none", &why), PTCP_EIO);
	assert_int_equal(why.sys, ENOENT);
	d = dir_child(fx_root, "d");
	assert_int_equal(manage_remove(d, PART, &why), PTCP_EREFUSED);
	assert_true(fx_exists("d/" PART));
	assert_int_equal(manage_rmdir(d, &why), PTCP_EIO);
	assert_int_equal(why.sys, ENOTEMPTY);
	assert_int_equal(manage_clear(d, PART, &why), 0);
	assert_int_equal(manage_remove(d, "f", &why), 0);
	assert_int_equal(manage_rmdir(d, &why), 0);
	dir_unref(d);
	assert_int_equal(fx_count("."), 0);
}

static void renames(void **state)
{
	struct dir *d;

	(void)state;
	fx_mkdir("d");
	fx_text("a", "a");
	fx_text("d/b", "b");
	d = node("d");
	assert_int_equal(manage_rename(fx_root, "a", d, "b", false, &why), PTCP_EIO);
	assert_int_equal(why.sys, EEXIST);
	fx_holds("d/b", "b");
	assert_int_equal(manage_rename(fx_root, "a", d, "b", true, &why), 0);
	fx_holds("d/b", "a");
	assert_int_equal(manage_rename(d, "b", fx_root, PART, true, &why), PTCP_EREFUSED);
	assert_int_equal(manage_rename(fx_root, "d", d, "d", true, &why), PTCP_EIO);
	assert_non_null(strstr(why.msg, "below itself"));
	assert_int_equal(manage_rename(fx_root, "none", d, "x", true, &why), PTCP_EIO);
	assert_int_equal(why.sys, ENOENT);
	fx_text(PART, "x");
	assert_int_equal(manage_rename(fx_root, PART, d, "x", true, &why), PTCP_EREFUSED);
	dir_unref(d);
}

/* A file system without RENAME_NOREPLACE: the target is examined instead. */
static int no_flags;

static void refuse_flags(enum fx_call call)
{
	if (call == FX_renameat2 && no_flags-- > 0)
		fx_fail_nth(0, EINVAL); /* this call */
}

static void renames_without_flags(void **state)
{
	(void)state;
	fx_text("a", "a");
	fx_text("b", "b");
	no_flags = 1;
	fx_before(refuse_flags);
	assert_int_equal(manage_rename(fx_root, "a", fx_root, "b", false, &why), PTCP_EIO);
	fx_holds("b", "b");
	no_flags = 1;
	assert_int_equal(manage_rename(fx_root, "a", fx_root, "c", false, &why), 0);
	assert_true(fx_failed() > 0);
	fx_before(NULL);
	fx_holds("c", "a");
}

/* Neither an excluded directory, nor one above it, nor a link on the way to it is touched. */
static void excluded_ones(void **state)
{
	struct excluded *x;
	struct tree *tree;
	struct dir *root, *d;

	(void)state;
	fx_mkdir("home");
	fx_mkdir("home/conf");
	fx_mkdir("home/conf/ptcp");
	fx_mkdir("other");
	assert_int_equal(symlink("home/conf", fx_path("way")), 0);
	assert_int_equal(excluded_new(&x, NULL), 0);
	assert_int_equal(excluded_add(x, fx_path("way/ptcp"), NULL), 0);
	assert_int_equal(tree_open(&tree, fx_path("."), &sys_real, NULL), 0);
	assert_int_equal(tree_exclude(tree, x, NULL), 0);
	root = tree_root(tree);
	assert_int_equal(manage_rename(root, "home", root, "x", false, &why), PTCP_EREFUSED);
	assert_int_equal(manage_rename(root, "way", root, "x", false, &why), PTCP_EREFUSED);
	assert_int_equal(manage_remove(root, "way", &why), PTCP_EREFUSED);
	assert_int_equal(manage_rename(root, "other", root, "way", true, &why), PTCP_EREFUSED);
	assert_int_equal(dir_resolve(&d, root, "home/conf", NULL), 0);
	assert_int_equal(manage_rename(d, "ptcp", root, "x", false, &why), PTCP_EREFUSED);
	assert_int_equal(manage_rename(root, "other", d, "ptcp", true, &why), PTCP_EREFUSED);
	dir_unref(d);
	assert_int_equal(dir_resolve(&d, root, "home", NULL), 0);
	assert_int_equal(manage_rename(d, "conf", root, "x", false, &why), PTCP_EREFUSED);
	dir_unref(d);
	assert_int_equal(manage_rename(root, "other", root, "x", false, &why), 0);
	assert_true(fx_exists("home/conf/ptcp") && fx_exists("way"));
	dir_unref(root);
	tree_unref(tree);
}

/* A flat walk reports directories and does not enter them. */
static void flat_walk(void **state)
{
	struct walk_entry w;
	struct walk *walk;
	unsigned n = 0;

	(void)state;
	fx_mkdir("d");
	fx_text("d/f", "xyz");
	assert_int_equal(mkfifo(fx_path("fifo"), 0600), 0);
	assert_int_equal(walk_new(&walk, NULL), 0);
	walk_flat(walk);
	assert_int_equal(walk_add(walk, fx_root, NULL, NULL), 0);
	while (walk_next(walk, &w, NULL) > 0) {
		assert_int_equal(w.format, strcmp(w.name, "d") == 0 ? S_IFDIR : S_IFIFO);
		walk_entry_fini(&w);
		n++;
	}
	assert_int_equal(n, 2);
	walk_free(walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(makes),
		fx_tree_test(removes),
		fx_tree_test(renames),
		fx_tree_test(renames_without_flags),
		fx_tree_test(excluded_ones),
		fx_tree_test(flat_walk),
	};

	return cmocka_run_group_tests_name("store/manage", tests, NULL, NULL);
}
