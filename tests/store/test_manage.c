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

/* A file is removed as it was listed, or not at all. */
static void removes_unchanged(void **state)
{
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	struct manage_stamp was;
	struct walk_entry e;
	struct walk *w;
	int change;

	(void)state;
	for (change = 0; change < 6; change++) {
		unlink(fx_path("f"));
		fx_text("f", "abc");
		if (change >= 4)
			assert_int_equal(link(fx_path("f"), fx_path("g")), 0);
		assert_int_equal(walk_new(&w, NULL, NULL), 0);
		assert_int_equal(walk_add(w, fx_root, "f", NULL), 0);
		assert_int_equal(walk_next(w, &e, NULL), 1);
		was = walk_stamp(&e);
		walk_entry_fini(&e);
		walk_free(w);
		switch (change) {
		case 0: break;
		case 1: fx_text("f", "abcd"); break;
		case 2: /* the same size and time */
			fx_text("f", "abd");
			assert_int_equal(utimensat(AT_FDCWD, fx_path("f"), (struct timespec[2]){ was.mtime, was.mtime },
			    0), 0);
			break;
		case 3: /* another file */
			unlink(fx_path("f"));
			assert_int_equal(symlink("x", fx_path("f")), 0);
			break;
		case 4: assert_int_equal(unlink(fx_path("g")), 0); break;
		case 5: assert_int_equal(utimensat(AT_FDCWD, fx_path("f"), then, 0), 0); break;
		}
		assert_int_equal(manage_remove_unchanged(fx_root, "f", &was, &why), change == 0 ||
		    change == 4 ? 0 : PTCP_ECHANGED);
		assert_int_equal(faccessat(AT_FDCWD, fx_path("f"), F_OK, AT_SYMLINK_NOFOLLOW) == 0,
		    change != 0 && change != 4);
	}
	unlink(fx_path("f"));
	assert_int_equal(manage_remove_unchanged(fx_root, "f", &was, &why), PTCP_EIO);
	assert_int_equal(why.sys, ENOENT);
}

/* A file and its name, or a link. */
static void syncs(void **state)
{
	(void)state;
	fx_text("f", "x");
	assert_int_equal(symlink("f", fx_path("link")), 0);
	fx_heal();
	assert_int_equal(manage_sync(fx_root, "f", &why), 0);
	assert_true(fx_calls_of(FX_fsync) >= 2);
	fx_heal();
	assert_int_equal(manage_sync(fx_root, "link", &why), 0);
	assert_true(fx_calls_of(FX_fsync) >= 1);
	assert_int_equal(manage_sync(fx_root, "none", &why), PTCP_EIO);
	fx_fail_always(FX_fsync, EIO);
	assert_int_equal(manage_sync(fx_root, "f", &why), PTCP_EIO);
	fx_fail_always(FX_fsync, EINVAL); /* a file system that cannot sync */
	assert_int_equal(manage_sync(fx_root, "f", &why), 0);
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
	assert_int_equal(walk_new(&walk, NULL, NULL), 0);
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
		fx_tree_test(removes), fx_tree_test(removes_unchanged), fx_tree_test(syncs),
		fx_tree_test(renames),
		fx_tree_test(renames_without_flags),
		fx_tree_test(excluded_ones),
		fx_tree_test(flat_walk),
	};

	return cmocka_run_group_tests_name("store/manage", tests, NULL, NULL);
}
