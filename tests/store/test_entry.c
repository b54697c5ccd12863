#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/part.h"
#include "store/sink.h"

static struct tree *tree;
static struct dir *root;
static const struct meta full = { .set_mode = true, .set_mtime = true, .mode = 07751,
	.mtime = { 1000, 1 } };
static const struct meta plain;

static int setup(void **state)
{
	if (fx_setup(state) != 0 || tree_open(&tree, fx_path(""), &fx_sys, NULL) != 0)
		return -1;
	root = tree_root(tree);
	return 0;
}

static int teardown(void **state)
{
	dir_unref(root);
	tree_unref(tree);
	return fx_teardown(state);
}

#define entry_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct stat look(const char *below)
{
	struct stat st;

	assert_int_equal(lstat(fx_path(below), &st), 0);
	return st;
}

static void is_link(const char *below, const char *target)
{
	char text[5000];
	ssize_t n = readlink(fx_path(below), text, sizeof text);

	assert_int_equal(n, strlen(target));
	assert_memory_equal(text, target, strlen(target));
}

static void directories(void **state)
{
	const struct meta private = { .set_mode = true, .mode = 0500 };
	mode_t mask = dir_umask(root);
	struct ptcp_err e;
	struct dir *d;

	(void)state;
	assert_int_equal(store_mkdir(root, "plain", &plain, NULL, NULL), 0);
	assert_int_equal(store_mkdir(root, "none", NULL, NULL, NULL), 0);
	assert_int_equal(look("plain").st_mode & 07777, 0777 & ~mask);
	assert_int_equal(look("none").st_mode & 07777, 0777 & ~mask);
	/* Private from the first moment, and writable until it is finished. */
	assert_int_equal(store_mkdir(root, "d", &private, NULL, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0700);
	d = dir_child(root, "d");
	assert_int_equal(store_mkdir(d, "\xff\n", &full, NULL, NULL), 0);
	assert_int_equal(store_dir_finish(d, &private, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0500);
	/* Once more, as a second transfer finds it. */
	assert_int_equal(store_mkdir(root, "d", &private, NULL, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0700);
	assert_int_equal(store_dir_finish(d, &full, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0751);
	assert_int_equal(look("d").st_mtim.tv_sec, 1000);
	assert_int_equal(look("d").st_mtim.tv_nsec, 1);
	/* The receiver's own sticky and setgid bits stay. */
	assert_int_equal(chmod(fx_path("d"), 03777), 0);
	assert_int_equal(store_dir_finish(d, &full, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 03751);
	assert_int_equal(store_dir_finish(d, &plain, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 03751);
	dir_unref(d);
	/* In the way. */
	fx_text("file", "x");
	assert_int_equal(symlink("plain", fx_path("link")), 0);
	assert_int_equal(store_mkdir(root, "file", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EEXIST);
	assert_int_equal(store_mkdir(root, "link", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EEXIST);
	is_link("link", "plain");
}

/* As the daemon is root here, what an ordinary user meets is played: a directory
 * that can be searched but not read. */
static void finish_unreadable(void **state)
{
	struct dir *d = dir_child(root, "d");

	(void)state;
	fx_mkdir("d");
	fx_fail_nth(1, EACCES);
	assert_int_equal(store_dir_finish(d, &full, NULL), 0);
	assert_int_equal(fx_failed(), 1);
	assert_int_equal(look("d").st_mode & 07777, 0751);
	assert_int_equal(look("d").st_mtim.tv_sec, 1000);
	dir_unref(d);
}

static void links(void **state)
{
	char target[4001], part[PART_NAME_BYTES];
	struct ptcp_err e;

	(void)state;
	part_name(part, "l", PART_LINK_SUFFIX);
	assert_int_equal(store_symlink(root, "l", "../../etc/passwd", &full, NULL), 0);
	is_link("l", "../../etc/passwd");
	assert_int_equal(look("l").st_mtim.tv_sec, 1000);
	assert_int_equal(store_symlink(root, "l", "-\xff\n", &plain, NULL), 0);
	is_link("l", "-\xff\n");
	memset(target, 'x', 4000);
	target[4000] = '\0';
	for (int i = 200; i < 4000; i += 200)
		target[i] = '/';
	assert_int_equal(store_symlink(root, "l", target, &plain, NULL), 0);
	is_link("l", target);
	/* A file is replaced; a directory is not; a leftover makes way. */
	fx_text("f", "x");
	assert_int_equal(store_symlink(root, "f", "t", &plain, NULL), 0);
	is_link("f", "t");
	fx_mkdir("d");
	assert_int_equal(store_symlink(root, "d", "t", &full, &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	fx_text(part, "x");
	assert_int_equal(store_symlink(root, "l", "t", &full, NULL), 0);
	is_link("l", "t");
	assert_int_equal(fx_count(""), 3);
	fx_mkdir(part);
	assert_int_equal(store_symlink(root, "l", "u", &full, &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	is_link("l", "t");
	assert_int_equal(store_symlink(root, "x", "", &full, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
}

/* A transfer of the same link takes our unfinished one away just before we would
 * have renamed it. */
static int rob;

static void robber(enum fx_call call)
{
	char part[PART_NAME_BYTES];

	if (call != FX_renameat || rob-- <= 0)
		return;
	assert_int_equal(unlink(fx_path(part_name(part, "l", PART_LINK_SUFFIX))), 0);
}

static void link_robbed(void **state)
{
	struct ptcp_err e;

	(void)state;
	fx_before(robber);
	rob = 2;
	assert_int_equal(store_symlink(root, "l", "t", &full, NULL), 0);
	is_link("l", "t");
	rob = 1000; /* for ever: we give up */
	assert_int_equal(store_symlink(root, "l", "u", &full, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	is_link("l", "t");
}

static int attempt(int what, struct ptcp_err *e)
{
	struct dir *d = dir_child(root, "d");
	int r = 0;

	switch (what) {
	case 0: r = store_mkdir(d, "new", &full, NULL, e); break;
	case 1: r = store_mkdir(d, "old", &full, NULL, e); break;
	case 2: r = store_dir_finish(d, &full, e); break;
	case 3: r = store_symlink(d, "l", "t", &full, e); break;
	}
	dir_unref(d);
	return r;
}

static void faults(void **state)
{
	static const int why[] = { EIO, ENOSPC, EMFILE };
	struct ptcp_err e;
	int n, w, what, r, fds = fx_open_fds();

	(void)state;
	fx_mkdir("d");
	fx_mkdir("d/old");
	for (w = 0; w < 3; w++) {
		for (what = 0; what < 4; what++) {
			for (n = 1;; n++) {
				remove(fx_path("d/new"));
				remove(fx_path("d/l"));
				chmod(fx_path("d/old"), 0);
				chmod(fx_path("d"), 0777);
				fx_heal();
				fx_fail_nth(n, why[w]);
				r = attempt(what, &e);
				assert_int_equal(fx_open_fds(), fds);
				if (fx_failed() == 0)
					break;
				if (r != 0) {
					assert_int_equal(e.sys, why[w]);
					assert_int_equal(r, why[w] == ENOSPC ? PTCP_ENOSPC : PTCP_EIO);
					assert_true(what != 3 || !fx_exists("d/l"));
				}
				fx_heal();
				assert_int_equal(attempt(what, NULL), 0);
			}
			assert_int_equal(r, 0);
			assert_true(n > 4);
			assert_int_equal(fx_count("d"), 1 + (what == 0 || what == 3));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		entry_test(directories), entry_test(finish_unreadable), entry_test(links),
		entry_test(link_robbed), entry_test(faults),
	};
	return cmocka_run_group_tests_name("store/entry", tests, NULL, NULL);
}
