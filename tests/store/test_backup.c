/* Backups: whatever happens, an old file has its name, or that of a backup. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/excluded.h"
#include "offer.h"
#include "store/backup.h"
#include "store/part.h"

static struct ptcp_err why;
static struct dir *top, *sub; /* "to", and "to/d" in it */
static struct published published;
static struct backup *backup;

static const struct offer fresh = { "a", 20, 1, false };

static int setup(void **state)
{
	int r = fx_tree_setup(state);

	published = (struct published){ .max = 100 };
	fx_mkdir("to");
	fx_mkdir("to/d");
	top = dir_child(fx_root, "to");
	sub = dir_child(top, "d");
	backup = NULL;
	return r;
}

static int teardown(void **state)
{
	backup_free(backup);
	published_fini(&published);
	dir_unref(sub);
	dir_unref(top);
	return fx_tree_teardown(state);
}

#define backup_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void begin(const char *dir, const char *suffix)
{
	const struct backup_opts o = { .dir = dir, .suffix = suffix, .durable = true };

	backup_free(backup);
	assert_int_equal(backup_new(&backup, &o, NULL, NULL), 0);
	backup_begin(backup, top);
}

static int keep(struct dir *d, const char *name)
{
	int at = dir_fd(d, NULL), r;

	assert_true(at >= 0);
	r = backup_keep(backup, d, at, name, &published, &why);
	dir_fd_done(d);
	return r;
}

/* Beside the file, or at its path below a directory. */
static void names(void **state)
{
	static const struct {
		const char *dir, *suffix, *is;
	} cases[] = {
		{ NULL, "~", "to/d/a~" }, { "", ".old", "to/d/a.old" }, { "b", NULL, "to/b/d/a" },
		{ "../b", "", "b/d/a" }, { "../new/b/", ".1", "new/b/d/a.1" }, { "/x/y", NULL, "x/y/d/a" },
		{ "./d", ".1", "to/d/d/a.1" },
	};
	struct stat st;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_text("to/d/a", "old");
		chmod(fx_path("to/d"), 0751);
		begin(cases[i].dir, cases[i].suffix);
		assert_int_equal(keep(sub, "a"), 0);
		fx_holds("to/d/a", "old");
		fx_holds(cases[i].is, "old");
		assert_int_equal(backup_sync(backup, NULL), 0);
		if (cases[i].dir != NULL && cases[i].dir[0] != '\0') {
			char *dir = strdup(cases[i].is);

			*strrchr(dir, '/') = '\0';
			assert_int_equal(stat(fx_path(dir), &st), 0);
			assert_int_equal(st.st_mode & 0777, 0751);
			free(dir);
		}
		assert_int_equal(unlink(fx_path("to/d/a")), 0);
	}
	assert_int_equal(keep(sub, "missing"), 0);
	begin(NULL, NULL);
	assert_null(backup);
	assert_int_equal(backup_keep(NULL, sub, -1, "a", NULL, NULL), 0);
}

/* Up and down a tree: the directories of the backups are those of the files. */
static void directories(void **state)
{
	static const char *const paths[] = { "a", "d/a", "d/x/y/a", "d/x/a", "d/z/a", "b", "d/x/y/z/a", "z/a" };
	char at[100], kept[100];
	struct dir *d, *next;
	const char *c;
	size_t i, n;

	(void)state;
	begin("../kept", NULL);
	for (i = 0; i < sizeof paths / sizeof *paths; i++) {
		d = dir_ref(top);
		for (c = paths[i]; (n = strcspn(c, "/")) < strlen(c); c += n + 1) {
			snprintf(at, sizeof at, "%.*s", (int)n, c);
			next = dir_child(d, at);
			dir_unref(d);
			d = next;
			snprintf(at, sizeof at, "to/%.*s", (int)(c + n - paths[i]), paths[i]);
			mkdir(fx_path(at), 0755);
		}
		snprintf(at, sizeof at, "to/%s", paths[i]);
		fx_text(at, paths[i]);
		assert_int_equal(keep(d, c), 0);
		snprintf(kept, sizeof kept, "kept/%s", paths[i]);
		fx_holds(kept, paths[i]);
		dir_unref(d);
	}
	/* Not of a directory that is no part of the transfer. */
	fx_text("a", "old");
	assert_int_equal(keep(fx_root, "a"), PTCP_EIO);
	assert_non_null(strstr(why.msg, "the destination itself would have to be backed up"));
}

static void types(void **state)
{
	char target[10];
	struct stat st, kept;

	(void)state;
	begin("../b", NULL);
	assert_int_equal(symlink("nowhere", fx_path("to/l")), 0);
	assert_int_equal(keep(top, "l"), 0);
	assert_int_equal(readlink(fx_path("b/l"), target, sizeof target), 7);
	fx_text("to/h", "two names");
	assert_int_equal(link(fx_path("to/h"), fx_path("to/i")), 0);
	assert_int_equal(keep(top, "h"), 0);
	assert_int_equal(keep(top, "i"), 0);
	assert_int_equal(stat(fx_path("b/h"), &st), 0);
	assert_int_equal(stat(fx_path("b/i"), &kept), 0);
	assert_int_equal(st.st_ino, kept.st_ino);
	/* These contain nothing. */
	assert_int_equal(mkfifo(fx_path("to/p"), 0600), 0);
	assert_int_equal(keep(top, "p"), 0);
	assert_int_equal(keep(top, "d"), 0);
	fx_text("to/.ptcp-0123456789abcdef.part", "");
	assert_int_equal(keep(top, ".ptcp-0123456789abcdef.part"), 0);
	assert_int_equal(fx_count("b"), 3);
	/* What will not be replaced. */
	fx_text("to/mine", "of this transfer");
	published_add_name(&published, top, "mine");
	assert_int_equal(keep(top, "mine"), 0);
	assert_false(fx_exists("b/mine"));
}

static void earlier_backups(void **state)
{
	(void)state;
	begin("../b", NULL);
	fx_mkdir("b");
	fx_text("to/a", "old");
	fx_text("b/a", "older");
	assert_int_equal(keep(top, "a"), 0);
	fx_holds("b/a", "old");
	assert_int_equal(keep(top, "a"), 0); /* as after a run that was killed */
	fx_holds("b/a", "old");
	/* A file where there is to be a directory, and the other way round. */
	fx_text("b/d", "older");
	fx_text("to/d/a", "below");
	assert_int_equal(keep(sub, "a"), 0);
	fx_holds("b/d/a", "below");
	fx_mkdir("b/empty");
	fx_text("to/empty", "old");
	assert_int_equal(keep(top, "empty"), 0);
	fx_holds("b/empty", "old");
	fx_mkdir("b/full");
	fx_text("b/full/x", "older");
	fx_text("to/full", "old");
	assert_int_equal(keep(top, "full"), PTCP_EIO);
	assert_int_equal(why.sys, ENOTEMPTY); /* EISDIR would ask for the directory of the entry to make way */
	fx_holds("b/full/x", "older");
	/* A link there is not followed. */
	assert_int_equal(unlink(fx_path("b/d/a")) + rmdir(fx_path("b/d")), 0);
	fx_mkdir("other");
	assert_int_equal(symlink("../other", fx_path("b/d")), 0);
	begin("../b", NULL);
	assert_int_equal(keep(sub, "a"), 0);
	fx_holds("b/d/a", "below");
	assert_int_equal(fx_count("other"), 0);
}

static void refused(void **state)
{
	char name[300], path[600];
	struct excluded *x;
	struct tree *tree;
	struct dir *root;

	(void)state;
	/* The backup would replace a file of the transfer. */
	begin(NULL, "~");
	fx_text("to/a", "old");
	fx_text("to/a~", "new");
	published_add_name(&published, top, "a~");
	assert_int_equal(keep(top, "a"), PTCP_EREFUSED);
	assert_non_null(strstr(why.msg, "a backup would replace this file of the same transfer"));
	fx_holds("to/a~", "new");
	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(path, sizeof path, "%s/%s", fx_path("to"), name);
	assert_int_equal(rename(fx_path("to/a"), path), 0);
	assert_int_equal(keep(top, name), PTCP_EIO);
	assert_int_equal(why.sys, ENAMETOOLONG);
	/* The directory is the destination, is not below the root, or no directory. */
	fx_text("to/a", "old");
	begin(".", NULL);
	assert_int_equal(keep(top, "a"), PTCP_EUSAGE);
	begin("../../x", NULL);
	assert_int_equal(keep(top, "a"), PTCP_EREFUSED);
	begin("a", NULL);
	assert_int_equal(keep(top, "a"), PTCP_EIO);
	fx_holds("to/a", "old");
	/* The server's own file has the name. */
	fx_text("to/a~", "secret");
	assert_int_equal(excluded_new(&x, NULL), 0);
	fx_mkdir("conf");
	assert_int_equal(rename(fx_path("to/a~"), fx_path("conf/key")), 0);
	assert_int_equal(link(fx_path("conf/key"), fx_path("to/b~")), 0);
	assert_int_equal(excluded_add(x, fx_path("conf"), NULL), 0);
	assert_int_equal(tree_open(&tree, fx_path("to"), &sys_real, NULL), 0);
	assert_int_equal(tree_exclude(tree, x, NULL), 0);
	root = tree_root(tree);
	fx_text("to/b", "old");
	backup_free(backup);
	assert_int_equal(backup_new(&backup, &(struct backup_opts){ .suffix = "~" }, NULL, NULL), 0);
	backup_begin(backup, root);
	assert_int_equal(keep(root, "b"), PTCP_EREFUSED);
	fx_holds("to/b~", "secret");
	assert_int_equal(keep(root, "b~"), 0);
	assert_false(fx_exists("to/b~~"));
	backup_free(backup);
	backup = NULL;
	dir_unref(root);
	tree_unref(tree);
}

/* The user's own directory may be anywhere, and its links are followed. */
static void own(void **state)
{
	struct tree *tree;
	struct dir *root;

	(void)state;
	fx_mkdir("disk");
	assert_int_equal(symlink("disk", fx_path("way")), 0);
	fx_text("to/a", "old");
	assert_int_equal(tree_open(&tree, fx_path("to"), &sys_real, NULL), 0);
	root = tree_root(tree);
	assert_int_equal(backup_new(&backup, &(struct backup_opts){ .dir = "../way/b", .own = true }, NULL, NULL), 0);
	backup_begin(backup, root);
	assert_int_equal(keep(root, "a"), 0);
	fx_holds("disk/b/a", "old");
	backup_free(backup);
	backup = NULL;
	dir_unref(root);
	tree_unref(tree);
}

/* Without hard links the file is renamed, and to another file system it is copied. */
static void other_file_systems(void **state)
{
	const struct timespec ts[2] = { { .tv_sec = 5 }, { .tv_sec = 7, .tv_nsec = 9 } };
	struct stat st;
	char value[4];

	(void)state;
	fx_needs_linux();
	fx_mkdir("b");
	fx_text("b/a", "older");
	fx_text("to/a", "old");
	begin("../b", NULL);
	fx_fail_always(FX_linkat, EPERM);
	assert_int_equal(keep(top, "a"), 1);
	assert_false(fx_exists("to/a"));
	fx_holds("b/a", "old");
	fx_text("to/a", "copied");
	chmod(fx_path("to/a"), 0640);
	utimensat(AT_FDCWD, fx_path("to/a"), ts, 0);
	setxattr(fx_path("to/a"), "user.x", "yes", 3, 0);
	assert_int_equal(symlink("x", fx_path("to/l")), 0);
	fx_heal();
	fx_fail_always(FX_linkat, EXDEV);
	assert_int_equal(keep(top, "a"), 0);
	assert_int_equal(keep(top, "l"), 0);
	fx_holds("to/a", "copied");
	fx_holds("b/a", "copied");
	assert_int_equal(stat(fx_path("b/a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_true(st.st_mtim.tv_sec == 7 && st.st_mtim.tv_nsec == 9 && st.st_nlink == 1);
	if (getxattr(fx_path("to/a"), "user.x", value, sizeof value) == 3)
		assert_int_equal(getxattr(fx_path("b/a"), "user.x", value, sizeof value), 3);
	assert_int_equal(lstat(fx_path("b/l"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(fx_count("b"), 2);
	fx_heal();
}

static bool holds(const char *path, const char *text)
{
	char now[100] = "";
	struct stat st;

	return lstat(fx_path(path), &st) == 0 && S_ISREG(st.st_mode) &&
	    fx_read(path, now, sizeof now - 1) == (long)strlen(text) && strcmp(now, text) == 0;
}

/* Replaces a file, makes a link in place of another, and a directory in place of a third. */
static void replace(void)
{
	const struct meta m = { .published = &published, .backup = backup };
	const struct store_rules rules = { .flags = 0 };
	struct sink_opts opts = offer_opts(&fresh);
	struct sink *s = sink_new(top, "a", fresh.size_bytes, &m, &opts);

	if (offer_write(s, &fresh, 0, NULL) == 0)
		offer_commit(s, NULL);
	sink_discard(s);
	sink_unref(s);
	store_symlink(top, "l", "to", &m, NULL, NULL);
	if (store_make_way(top, "w", &rules, &m, NULL) == 0)
		store_mkdir(top, "w", &m, NULL, NULL);
}

static const char *const old[] = { "a", "l", "w" };

/* Each old file has a name, and its backup replaces no backup before it is complete. */
static void check_old(int nth)
{
	char at[20], kept[20];
	size_t i;

	for (i = 0; i < sizeof old / sizeof *old; i++) {
		snprintf(at, sizeof at, "to/%s", old[i]);
		snprintf(kept, sizeof kept, "b/%s", old[i]);
		if (!holds(at, old[i]) && !holds(kept, old[i]))
			fail_msg("call %d: %s is lost", nth, old[i]);
		if (!holds(kept, "older") && !holds(kept, old[i]))
			fail_msg("call %d: the backup of %s is lost", nth, old[i]);
	}
}

static void again(void)
{
	char at[20];
	size_t i;

	fx_heal();
	published_fini(&published);
	published = (struct published){ .max = 100 };
	mkdir(fx_path("b"), 0755);
	for (i = 0; i < sizeof old / sizeof *old; i++) {
		snprintf(at, sizeof at, "to/%s", old[i]);
		rmdir(fx_path(at));
		unlink(fx_path(at));
		fx_text(at, old[i]);
		snprintf(at, sizeof at, "b/%s", old[i]);
		unlink(fx_path(at));
		fx_text(at, "older");
	}
	begin("../b", NULL);
}

static int last;

static void die_at_last(enum fx_call call)
{
	(void)call;
	if (last-- == 0)
		_exit(9);
}

static int status_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Killed before any of its system calls. */
static void killed(enum fx_call fails, int sys)
{
	int n, status;
	pid_t child;

	for (n = 0, status = 1; status != 0; n++) {
		again();
		if ((child = fork()) == 0) {
			if (sys != 0)
				fx_fail_always(fails, sys);
			last = n;
			fx_before(die_at_last);
			replace();
			_exit(0);
		}
		status = status_of(child);
		assert_true(status == 0 || WEXITSTATUS(status) == 9);
		check_old(n);
	}
	assert_true(n > 30);
	assert_true(holds("b/a", "a") && holds("b/l", "l") && holds("b/w", "w"));
	/* The next run completes what was begun. */
	replace();
	assert_int_equal(fx_count("b"), 3);
}

static void killed_anywhere(void **state)
{
	(void)state;
	killed(0, 0);
	killed(FX_linkat, EPERM);
	killed(FX_linkat, EXDEV);
}

/* Any call fails. */
static void faults(void **state)
{
	static const int errors[] = { EIO, ENOSPC };
	size_t e;
	int n;

	(void)state;
	for (e = 0; e < 2; e++)
		for (n = 1;; n++) {
			again();
			fx_heal();
			fx_fail_nth(n, errors[e]);
			replace();
			if (fx_failed() == 0)
				break;
			fx_heal();
			check_old(n);
		}
}

static void spared(void **state)
{
	struct stat st;

	(void)state;
	begin(NULL, ".bak");
	assert_true(backup_is_beside(backup));
	assert_true(backup_spares(backup, "a.bak", 0, 0) && backup_spares(backup, ".bak", 0, 0));
	assert_false(backup_spares(backup, "a.bak2", 0, 0) || backup_spares(backup, "bak", 0, 0));
	fx_mkdir("to/b");
	begin("b", ".bak");
	assert_false(backup_is_beside(backup) || backup_is_beside(NULL));
	assert_int_equal(stat(fx_path("to/b"), &st), 0);
	assert_true(backup_spares(backup, "b", st.st_dev, st.st_ino));
	assert_false(backup_spares(backup, "a.bak", st.st_dev, st.st_ino + 1) || backup_spares(NULL, "b", 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		backup_test(names), backup_test(directories), backup_test(types), backup_test(earlier_backups),
		backup_test(refused), backup_test(own), backup_test(other_file_systems), backup_test(killed_anywhere),
		backup_test(faults), backup_test(spared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
