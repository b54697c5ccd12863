/* against: unrequested */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "store/part.h"
#include "store/sink.h"

static const struct meta full = { .set_mode = true, .set_mtime = true, .mode = 07751,
	.mtime = { 1000, 1 } };
static const struct meta plain;

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
	mode_t mask = dir_umask(fx_root);
	struct ptcp_err e;
	struct dir *d;

	(void)state;
	assert_int_equal(store_mkdir(fx_root, "plain", &plain, NULL, NULL), 0);
	assert_int_equal(store_mkdir(fx_root, "none", NULL, NULL, NULL), 0);
	assert_int_equal(look("plain").st_mode & 07777, (plain.mode | 0700) & ~mask);
	assert_int_equal(look("none").st_mode & 07777, 0777 & ~mask);
	/* Private from the first moment, and writable until it is finished. */
	assert_int_equal(store_mkdir(fx_root, "d", &private, NULL, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0700);
	d = dir_child(fx_root, "d");
	assert_int_equal(store_mkdir(d, "\xff\n", &full, NULL, NULL), 0);
	assert_int_equal(store_dir_finish(d, &private, NULL), 0);
	assert_int_equal(look("d").st_mode & 07777, 0500);
	/* Once more, as a second transfer finds it. */
	assert_int_equal(store_mkdir(fx_root, "d", &private, NULL, NULL), 0);
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
	/* Of another user. */
	d = dir_child(fx_root, "d");
	fx_fail_always(FX_fchmodat, EPERM);
	assert_int_equal(store_dir_finish(d, &private, &e), 1);
	assert_string_equal(e.msg, "d: the mode is 3751 instead of 3500: Operation not permitted");
	assert_int_equal(store_dir_finish(d, &full, &e), 0);
	fx_heal();
	dir_unref(d);
	/* In the way. */
	fx_text("file", "x");
	assert_int_equal(symlink("plain", fx_path("link")), 0);
	assert_int_equal(store_mkdir(fx_root, "file", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EEXIST);
	assert_int_equal(store_mkdir(fx_root, "link", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EEXIST);
	is_link("link", "plain");
}

/* As the daemon is root here, what an ordinary user meets is played: a directory
 * that can be searched but not read. */
static void finish_unreadable(void **state)
{
	struct dir *d = dir_child(fx_root, "d");

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
	assert_int_equal(store_symlink(fx_root, "l", "../../etc/passwd", &full, NULL, NULL), 0);
	is_link("l", "../../etc/passwd");
	assert_int_equal(look("l").st_mtim.tv_sec, 1000);
	assert_int_equal(store_symlink(fx_root, "l", "-\xff\n", &plain, NULL, NULL), 0);
	is_link("l", "-\xff\n");
	memset(target, 'x', 4000);
	target[4000] = '\0';
	for (int i = 200; i < 4000; i += 200)
		target[i] = '/';
	assert_int_equal(store_symlink(fx_root, "l", target, &plain, NULL, NULL), 0);
	is_link("l", target);
	/* A file is replaced; a full directory is not; a leftover makes way. */
	fx_text("f", "x");
	assert_int_equal(store_symlink(fx_root, "f", "t", &plain, NULL, NULL), 0);
	is_link("f", "t");
	fx_mkdir("d");
	fx_mkdir("d/below");
	assert_int_equal(store_symlink(fx_root, "d", "t", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	fx_text(part, "x");
	assert_int_equal(store_symlink(fx_root, "l", "t", &full, NULL, NULL), 0);
	is_link("l", "t");
	assert_int_equal(fx_count(""), 3);
	fx_mkdir(part);
	assert_int_equal(store_symlink(fx_root, "l", "u", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	is_link("l", "t");
	assert_int_equal(store_symlink(fx_root, "x", "", &full, NULL, &e), PTCP_EIO);
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
	assert_int_equal(store_symlink(fx_root, "l", "t", &full, NULL, NULL), 0);
	is_link("l", "t");
	rob = 1000; /* for ever: we give up */
	assert_int_equal(store_symlink(fx_root, "l", "u", &full, NULL, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	is_link("l", "t");
}

/* ---- Hard links ---- */

static void same_inode(const char *a, const char *b)
{
	assert_true(look(a).st_ino == look(b).st_ino && look(a).st_nlink >= 2);
}

static int link_to(struct dir *base, const char *path, struct dir *parent, const char *name, struct ptcp_err *e)
{
	struct store_file f = { .base = base, .path = path };
	char *below = base == fx_root ? strdup(path) : dir_path_below(base, fx_root, path);
	struct stat st = look(below);

	free(below);
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	return store_hardlink(&f, parent, name, e);
}

static void hardlinks(void **state)
{
	struct dir *d = dir_child(fx_root, "d");
	char part[PART_NAME_BYTES];

	(void)state;
	fx_mkdir("d");
	fx_mkdir("d/e");
	fx_text("d/e/one", "1");
	assert_int_equal(link_to(fx_root, "d/e/one", fx_root, "two", NULL), 0);
	same_inode("d/e/one", "two");
	assert_int_equal(link_to(fx_root, "d/e/one", fx_root, "two", NULL), 0); /* a second run */
	assert_int_equal(look("two").st_nlink, 2);
	assert_int_equal(link_to(fx_root, "two", d, "\xff\n", NULL), 0);
	assert_int_equal(link_to(d, "e/one", fx_root, "four", NULL), 0);
	assert_int_equal(look("two").st_nlink, 4);
	/* Files and links are replaced, a leftover makes way. */
	fx_text("old", "old");
	assert_int_equal(symlink("old", fx_path("soft")), 0);
	fx_text(part_name(part, "old", PART_LINK_SUFFIX), "x");
	assert_int_equal(link_to(fx_root, "two", fx_root, "old", NULL), 0);
	assert_int_equal(link_to(fx_root, "two", fx_root, "soft", NULL), 0);
	same_inode("two", "old");
	same_inode("two", "soft");
	assert_int_equal(fx_count(""), 5);
	dir_unref(d);
}

/* A local user replaces the received file, or its directory: the file in its place gets no further name. */
/* The symbolic link itself gets a second name, whatever it leads to, unless it was replaced. */
static void hardlink_of_a_link(void **state)
{
	struct store_inode made = { 0 }, found = { 0 };
	struct store_file f = { .base = fx_root, .path = "l" };
	struct ptcp_err e;

	(void)state;
	fx_text("file", "x");
	assert_int_equal(store_symlink(fx_root, "l", "file", &full, &made, NULL), 0);
	assert_true(made.ino == look("l").st_ino && made.dev == look("l").st_dev);
	f.dev = made.dev;
	f.ino = made.ino;
	assert_int_equal(store_hardlink(&f, fx_root, "m", NULL), 0);
	is_link("m", "file");
	assert_true(look("m").st_ino == made.ino && look("file").st_nlink == 1);
	assert_true(store_hardlink_same(&f, fx_root, "m"));
	assert_false(store_symlink_same(fx_root, "m", "elsewhere", &full, true, &found) || found.ino != 0);
	assert_true(store_symlink_same(fx_root, "m", "file", &full, true, &found) && found.ino == made.ino);
	assert_int_equal(store_symlink(fx_root, "l", "other", &full, NULL, NULL), 0);
	assert_int_equal(store_hardlink(&f, fx_root, "n", &e), PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
}

static void hardlinks_refused(void **state)
{
	struct dir *base = dir_child(fx_root, "base");
	struct store_file f = { .base = base, .path = "d/f" };
	struct ptcp_err e;
	struct stat st;

	(void)state;
	fx_mkdir("base");
	fx_mkdir("base/d");
	fx_mkdir("base/occupied");
	fx_mkdir("base/occupied/below");
	fx_text("base/d/f", "x");
	fx_text("f", "secret");
	st = look("base/d/f");
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	/* A directory, FIFO or device that has the name stays. */
	assert_int_equal(mkfifo(fx_path("base/p"), 0600), 0);
	assert_int_equal(store_hardlink(&f, base, "occupied", &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	assert_int_equal(store_hardlink(&f, base, "p", &e), PTCP_EIO);
	assert_int_equal(look("base/d/f").st_nlink, 1);

	assert_int_equal(rename(fx_path("base/d/f"), fx_path("base/d/kept")), 0);
	assert_int_equal(store_hardlink(&f, base, "new", &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(link(fx_path("f"), fx_path("base/d/f")), 0);
	assert_int_equal(store_hardlink(&f, base, "new", &e), PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	assert_int_equal(unlink(fx_path("base/d/f")), 0);
	assert_int_equal(symlink("kept", fx_path("base/d/f")), 0);
	assert_int_equal(store_hardlink(&f, base, "new", &e), PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	assert_int_equal(rename(fx_path("base/d"), fx_path("moved")), 0);
	assert_int_equal(symlink("../moved", fx_path("base/d")), 0);
	assert_true(store_hardlink(&f, base, "new", &e) < 0);
	assert_false(fx_exists("base/new"));
	assert_int_equal(look("f").st_nlink, 1);
	dir_unref(base);
}

static void swap_target(enum fx_call call)
{
	if (call != FX_linkat || rob-- <= 0)
		return;
	assert_int_equal(unlink(fx_path("one")), 0);
	assert_int_equal(link(fx_path("secret"), fx_path("one")), 0);
}

/* The same just before the link is made, after the check of the target. */
static void hardlink_swapped(void **state)
{
	struct ptcp_err e;

	(void)state;
	fx_text("one", "1");
	fx_text("secret", "s");
	fx_before(swap_target);
	rob = 1;
	assert_int_equal(link_to(fx_root, "one", fx_root, "two", &e), PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	assert_int_equal(fx_count(""), 2);
	assert_int_equal(look("secret").st_nlink, 2);
}

static int attempt(int what, struct ptcp_err *e)
{
	struct dir *d = dir_child(fx_root, "d");
	int r = 0;

	switch (what) {
	case 0: r = store_mkdir(d, "new", &full, NULL, e); break;
	case 1: r = store_mkdir(d, "old", &full, NULL, e); break;
	case 2: r = store_dir_finish(d, &full, e); break;
	case 3: r = store_symlink(d, "l", "t", &full, NULL, e); break;
	case 4: r = link_to(d, "old/f", d, "l", e); break;
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
	fx_text("d/old/f", "x");
	for (w = 0; w < 3; w++) {
		for (what = 0; what < 5; what++) {
			for (n = 1;; n++) {
				remove(fx_path("d/new"));
				remove(fx_path("d/l"));
				chmod(fx_path("d/old"), what == 1 ? 0 : 0755);
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
					assert_true(what < 3 || !fx_exists("d/l"));
				}
				fx_heal();
				assert_int_equal(attempt(what, NULL), 0);
			}
			assert_int_equal(r, 0);
			assert_true(n > 4);
			assert_int_equal(fx_count("d"), 1 + (what == 0 || what >= 3));
		}
	}
}

/* ---- An entry of another type in the way ---- */

enum { IN_FILE, IN_LINK, IN_FIFO, IN_SOCKET, IN_DEVICE, IN_EMPTY, IN_FULL, IN_WAY };

/* False: this user may not make a device. */
static bool put_in_way(int what, const char *name)
{
	switch (what) {
	case IN_FILE: fx_text(name, "x"); break;
	case IN_LINK: assert_int_equal(symlink("away", fx_path(name)), 0); break;
	case IN_FIFO: assert_int_equal(mkfifo(fx_path(name), 0600), 0); break;
	case IN_SOCKET: assert_int_equal(mknod(fx_path(name), S_IFSOCK | 0600, 0), 0); break;
	case IN_DEVICE: return mknod(fx_path(name), S_IFCHR | 0600, makedev(1, 3)) == 0;
	case IN_EMPTY: fx_mkdir(name); break;
	case IN_FULL: fx_mkdir(name); fx_text("n/below", "x"); break;
	}
	return true;
}

static int bring(mode_t type, const struct store_rules *rules, const struct store_file *f)
{
	struct ptcp_err e = { 0 };
	int r;

	if (type == S_IFLNK)
		return store_symlink(fx_root, "n", "t", &plain, NULL, &e);
	if (type == S_IFREG)
		return store_hardlink(f, fx_root, "n", &e);
	r = store_mkdir(fx_root, "n", &plain, NULL, &e);
	if (r < 0 && e.sys == EEXIST && (r = store_make_way(fx_root, "n", rules, &plain, &e)) == 0)
		r = store_mkdir(fx_root, "n", &plain, NULL, &e);
	return r;
}

/* What is in the way goes, or stays as it was; what a link leads to stays. */
static void makes_way(void **state)
{
	static const struct {
		mode_t type;
		const char *goes; /* by IN_WAY: + or - */
	} offered[] = { { S_IFDIR, "++++-++" }, { S_IFLNK, "++---+-" }, { S_IFREG, "++---+-" } };
	static const struct store_rules rules[] = { { 0 }, { .flags = RULE_UPDATE | RULE_SIZE_ONLY },
		{ .write_once = true },
		{ .flags = RULE_IGNORE_EXISTING } };
	struct store_file f = { .base = fx_root, .path = "f" };
	struct stat was;
	size_t i, r;
	int what;
	bool goes;

	(void)state;
	fx_mkdir("away");
	fx_text("away/kept", "x");
	fx_text("f", "x");
	f.dev = look("f").st_dev;
	f.ino = look("f").st_ino;
	for (i = 0; i < sizeof offered / sizeof *offered; i++)
		for (r = 0; r < (offered[i].type == S_IFDIR ? 4 : 1); r++)
			for (what = 0; what < IN_WAY; what++) {
				if (!put_in_way(what, "n"))
					continue;
				was = look("n");
				goes = offered[i].goes[what] == '+' && (r < 2 || what >= IN_EMPTY);
				assert_int_equal(bring(offered[i].type, &rules[r], &f), goes ? 0 : PTCP_EIO);
				assert_int_equal(look("n").st_mode & S_IFMT,
				    goes ? offered[i].type : was.st_mode & S_IFMT);
				assert_true(goes || look("n").st_ino == was.st_ino);
				if (what == IN_FULL)
					assert_int_equal(unlink(fx_path("n/below")), 0);
				assert_int_equal(remove(fx_path("n")), 0);
				assert_int_equal(fx_count(""), 2);
				fx_holds("away/kept", "x");
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(directories), fx_tree_test(finish_unreadable), fx_tree_test(links),
		fx_tree_test(link_robbed), fx_tree_test(hardlinks), fx_tree_test(hardlink_of_a_link),
		fx_tree_test(hardlinks_refused), fx_tree_test(hardlink_swapped), fx_tree_test(faults),
		fx_tree_test(makes_way),
	};
	return cmocka_run_group_tests_name("store/entry", tests, NULL, NULL);
}
