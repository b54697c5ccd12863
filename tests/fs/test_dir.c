/* against: links */
#include "store/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/dir.h"

static struct tree *open_tree(void)
{
	struct tree *t = NULL;

	assert_int_equal(tree_open(&t, fx_path(""), &fx_sys, NULL), 0);
	return t;
}

/* Takes d. Asserts that it opens as the directory at `below`, or fails with `sys`. */
static void opens(struct dir *d, const char *below, int sys)
{
	struct ptcp_err e = { 0 };
	struct stat a, b;
	int fd = dir_fd(d, &e);

	if (sys == 0) {
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &a), 0);
		assert_int_equal(stat(fx_path(below), &b), 0);
		assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
		dir_fd_done(d);
	} else {
		assert_true(fd < 0);
		assert_int_equal(e.code, fd);
		assert_int_equal(e.sys, sys);
		assert_true(strlen(e.msg) > 0);
	}
	dir_unref(d);
}

static void trees(void **state)
{
	struct tree *t = NULL;
	struct dir *d;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(tree_open(&t, "", &fx_sys, &e), PTCP_EUSAGE);
	assert_int_equal(tree_open(&t, fx_path("none"), &fx_sys, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOENT);
	fx_text("file", "x");
	assert_int_equal(tree_open(&t, fx_path("file"), &fx_sys, &e), PTCP_EIO);
	assert_int_equal(e.sys, ENOTDIR);
	assert_null(t);
	/* The operator's own path may be a link. */
	fx_mkdir("real");
	assert_int_equal(symlink("real", fx_path("link")), 0);
	assert_int_equal(tree_open(&t, fx_path("link"), &fx_sys, &e), 0);
	opens(tree_root(t), "real", 0);
	d = tree_root(t);
	assert_ptr_equal(dir_sys(d), &fx_sys);
	dir_unref(d);
	tree_unref(t);
	tree_unref(NULL);
}

/* A directory without read permission is opened O_PATH. */
static void search_only(void **state)
{
	struct tree *t = open_tree();
	struct dir *d = tree_root(t), *c;

	(void)state;
	fx_mkdir("d");
	c = dir_child(d, "d");
	fx_fail_nth(1, EACCES);
	opens(c, "d", 0);
	assert_int_equal(fx_calls_of(FX_openat), 3); /* the tree's, and two */
	dir_unref(d);
	tree_unref(t);
}

static void children(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *a, *b;

	(void)state;
	tree_unref(t); /* the nodes keep it */
	fx_mkdir("a");
	fx_mkdir("a/b");
	fx_mkdir("a/b/-rf\n\xff");
	fx_text("a/file", "x");
	assert_int_equal(symlink("b", fx_path("a/link")), 0);
	a = dir_child(root, "a");
	b = dir_child(a, "b");
	dir_unref(a);
	dir_unref(root);
	opens(dir_child(b, "-rf\n\xff"), "a/b/-rf\n\xff", 0);
	opens(dir_child(b, "none"), NULL, ENOENT);
	opens(dir_child(a, "file"), NULL, ENOTDIR);
	opens(dir_child(a, "link"), NULL, ENOTDIR);
	/* What is not there yet may come later. */
	root = dir_child(b, "late");
	opens(dir_ref(root), NULL, ENOENT);
	fx_mkdir("a/b/late");
	opens(root, "a/b/late", 0);
	dir_unref(b);
}

/* More nodes than DIR_OPEN_MAX, all alive: descriptors stay bounded, and what was
 * closed opens again, through parents that were closed too. */
static void bounded(void **state)
{
	enum { N = 3 * DIR_OPEN_MAX };
	struct tree *t = open_tree();
	struct dir *nodes[N + 1];
	char path[4 * N] = "";
	int i, before = fx_open_fds();

	(void)state;
	nodes[0] = tree_root(t);
	for (i = 1; i <= N; i++) {
		strcat(path, i == 1 ? "d" : "/d");
		fx_mkdir(path);
		nodes[i] = dir_child(nodes[i - 1], "d");
	}
	opens(dir_ref(nodes[N]), path, 0);
	assert_true(fx_open_fds() <= before + DIR_OPEN_MAX);
	path[1] = '\0';
	opens(dir_ref(nodes[1]), path, 0);
	/* Pinned ones stay open however many; then they may go. */
	for (i = 1; i <= N; i++)
		assert_true(dir_fd(nodes[i], NULL) >= 0);
	assert_int_equal(fx_open_fds(), before + N);
	for (i = 1; i <= N; i++)
		dir_fd_done(nodes[i]);
	assert_true(fx_open_fds() <= before + DIR_OPEN_MAX);
	for (i = 0; i <= N; i++)
		dir_unref(nodes[i]);
	assert_int_equal(fx_open_fds(), before);
	tree_unref(t);
}

/* Number of directories opened while `workers` threads are at a distance of 200 levels from each other, and each opens
 * the directory of its level with those above that it looks at: a level's share. */
static int openings(struct dir **node, int levels, int workers)
{
	int i, w, up;

	fx_heal();
	for (i = 0; i < levels; i++)
		for (w = 0; w < workers; w++)
			for (up = 0; up < DIR_IN_PLACE_LEVELS && i - 200 * w - up > 0; up++) {
				assert_true(dir_fd(node[i - 200 * w - up], NULL) >= 0);
				dir_fd_done(node[i - 200 * w - up]);
			}
	return (fx_calls_of(FX_openat) + fx_calls_of(FX_openat2)) / levels;
}

/* However deep a tree is, each level costs as many calls, also where directories far from each other take turns. */
static void deep(void **state)
{
	fx_needs_linux();
	static const int depths[] = { 500, 1000, 2000, 4000 };
	static struct dir *node[4001];
	struct tree *t = open_tree();
	unsigned k;
	int i, fd, n = 0;

	(void)state;
	node[0] = tree_root(t);
	for (k = 0; k < sizeof depths / sizeof *depths; k++) {
		for (; n < depths[k]; n++) {
			assert_true((fd = dir_fd(node[n], NULL)) >= 0);
			assert_int_equal(mkdirat(fd, "d", 0700), 0);
			dir_fd_done(node[n]);
			node[n + 1] = dir_child(node[n], "d");
		}
		assert_in_range(openings(node, n, 1), 0, 3);
		assert_in_range(openings(node, n, 3), 0, 3 * 2 * DIR_IN_PLACE_LEVELS);
	}
	/* Without openat2(), one by one. */
	fx_fail_always(FX_openat2, ENOSYS);
	assert_true(dir_fd(node[n], NULL) >= 0);
	dir_fd_done(node[n]);
	fx_heal();
	for (i = n; i >= 0; i--) {
		if (i > 0) {
			assert_int_equal(unlinkat(dir_fd(node[i - 1], NULL), "d", AT_REMOVEDIR), 0);
			dir_fd_done(node[i - 1]);
		}
		dir_unref(node[i]);
	}
	tree_unref(t);
}

/* Opens enough others to have everything idle closed. */
static void flush_idle(struct dir *root)
{
	struct dir *d[DIR_OPEN_MAX + 2];
	char name[20];
	int i;

	for (i = 0; i < DIR_OPEN_MAX + 2; i++) {
		snprintf(name, sizeof name, "idle%d", i);
		mkdir(fx_path(name), 0755);
		d[i] = dir_child(root, name);
		opens(dir_ref(d[i]), name, 0);
	}
	while (--i >= 0)
		dir_unref(d[i]);
}

/* A directory far above that was replaced, by a link or by another, is found whatever is opened, by its name. */
static void deep_replaced(void **state)
{
	enum { N = 3 * DIR_OPEN_MAX };
	struct tree *t = open_tree();
	struct dir *node[N + 1];
	struct ptcp_err e;
	char path[2 * N + 2] = "";
	int i, how;

	(void)state;
	for (how = 0; how < 2; how++, rename(fx_path("d"), fx_path("first"))) {
		node[0] = tree_root(t);
		for (path[0] = '\0', i = 1; i <= N; i++) {
			strcat(path, i == 1 ? "d" : "/d");
			fx_mkdir(path);
			node[i] = dir_child(node[i - 1], "d");
		}
		opens(dir_ref(node[N]), path, 0);
		flush_idle(node[0]);
		assert_int_equal(rename(fx_path("d/d/d/d"), fx_path(how == 0 ? "gone" : "away")), 0);
		if (how == 0)
			assert_int_equal(symlink(fx_path("gone"), fx_path("d/d/d/d")), 0);
		else
			fx_mkdir("d/d/d/d");
		assert_true(dir_fd(node[N], &e) < 0);
		assert_int_equal(e.sys, how == 0 ? ENOTDIR : ESTALE);
		assert_non_null(strstr(e.msg, "d/d/d/d:"));
		assert_null(strstr(e.msg, "d/d/d/d/d"));
		for (i = 0; i <= N; i++)
			dir_unref(node[i]);
	}
	tree_unref(t);
}

/* Between two uses, with the descriptor closed, somebody puts something else where
 * the directory or its parent was. */
static void swapped(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *p = dir_child(root, "p"), *d = dir_child(p, "d");

	(void)state;
	fx_mkdir("p");
	fx_mkdir("p/d");
	fx_mkdir("outside");
	fx_mkdir("outside/d");
	opens(dir_ref(d), "p/d", 0);
	assert_int_equal(rename(fx_path("p"), fx_path("q")), 0);
	assert_int_equal(symlink("outside", fx_path("p")), 0);
	opens(dir_ref(d), "q/d", 0); /* still open: the same directory */
	flush_idle(root);
	opens(dir_ref(d), NULL, ENOTDIR);
	assert_int_equal(unlink(fx_path("p")), 0);
	assert_int_equal(rename(fx_path("outside"), fx_path("p")), 0);
	opens(dir_ref(d), NULL, ESTALE);
	assert_int_equal(rename(fx_path("p"), fx_path("outside")), 0);
	assert_int_equal(rename(fx_path("q"), fx_path("p")), 0);
	opens(d, "p/d", 0);
	dir_unref(p);
	dir_unref(root);
	tree_unref(t);
}

/* `want` is where it leads, or NULL for a failure with `sys`. */
static void resolves(struct dir *base, const char *path, const char *want, int sys)
{
	struct ptcp_err e = { 0 };
	struct dir *d = NULL;
	int r = dir_resolve(&d, base, path, &e);

	if (want != NULL) {
		assert_int_equal(r, 0);
		opens(d, want, 0);
	} else {
		assert_int_equal(r, sys == EXDEV ? PTCP_EREFUSED : PTCP_EIO);
		assert_int_equal(e.sys, sys);
		assert_null(d);
	}
}

static void lay_out(void)
{
	fx_mkdir("a");
	fx_mkdir("a/b");
	fx_mkdir("a/b/c");
	fx_mkdir("z");
	fx_text("a/file", "x");
	assert_int_equal(symlink("b/c", fx_path("a/in")), 0);
	assert_int_equal(symlink("../z", fx_path("a/up")), 0);
	assert_int_equal(symlink("../..", fx_path("a/out")), 0);
	assert_int_equal(symlink("/", fx_path("a/abs")), 0);
	assert_int_equal(symlink("loop", fx_path("a/loop")), 0);
}

static void resolve_openat2(void **state)
{
	fx_needs_linux();
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *a = dir_child(root, "a"), *d;
	char text[DIR_PATH_TEXT_BYTES];

	(void)state;
	lay_out();
	resolves(root, "", ".", 0);
	resolves(root, "/", ".", 0);
	resolves(root, ".//./", ".", 0);
	resolves(a, "", "a", 0);
	resolves(root, "/a/./b//c/", "a/b/c", 0);
	resolves(root, "a/b/../../z", "z", 0);
	resolves(a, "..", ".", 0);
	resolves(a, "b", "a/b", 0);
	resolves(a, "in", "a/b/c", 0);
	resolves(a, "up", "z", 0);
	resolves(root, "a/up/../a/in", "a/b/c", 0);
	resolves(a, "../..", NULL, EXDEV);
	resolves(root, "..", NULL, EXDEV);
	resolves(a, "out", NULL, EXDEV);
	resolves(a, "abs", NULL, EXDEV);
	resolves(a, "abs/etc", NULL, EXDEV);
	resolves(a, "loop", NULL, ELOOP);
	resolves(a, "none", NULL, ENOENT);
	resolves(a, "file", NULL, ENOTDIR);
	assert_int_equal(dir_resolve(&d, a, "up//../z/", NULL), 0);
	assert_string_equal(dir_path_text(d, "f", text, sizeof text), "a/up/../z/f");
	/* Closed and opened again it is the same one, or refused. */
	flush_idle(root);
	opens(dir_ref(d), "z", 0);
	flush_idle(root);
	assert_int_equal(unlink(fx_path("a/up")), 0);
	assert_int_equal(symlink("b", fx_path("a/up")), 0);
	fx_mkdir("a/z");
	opens(d, NULL, ESTALE);
	dir_unref(a);
	dir_unref(root);
	tree_unref(t);
}

static void resolve_fallback(void **state)
{
	static const int why[] = { ENOSYS, EPERM };
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *a = dir_child(root, "a");
	char name[300];
	int i;

	(void)state;
	lay_out();
	memset(name, 'x', 299);
	name[299] = '\0';
	for (i = 0; i < 2; i++) {
		fx_fail_always(FX_openat2, why[i]);
		resolves(root, "", ".", 0);
		resolves(root, "/a/./b//c/", "a/b/c", 0);
		resolves(a, "b", "a/b", 0);
		resolves(a, "in", NULL, ENOTDIR);
		resolves(a, "out", NULL, ENOTDIR);
		resolves(a, "abs/etc", NULL, ENOTDIR);
		resolves(a, "b/..", "a", 0);
		resolves(a, "b/c/../../../z", "z", 0);
		resolves(a, "..", ".", 0);
		resolves(a, "../..", NULL, EXDEV);
		resolves(a, "none/..", NULL, ENOENT);
		resolves(a, "file/..", NULL, ENOTDIR);
		resolves(a, "in/..", NULL, ENOTDIR);
		resolves(a, "none", NULL, ENOENT);
		resolves(a, "file", NULL, ENOTDIR);
		resolves(a, name, NULL, ENAMETOOLONG);
		assert_true(fx_failed() > 0);
	}
	dir_unref(a);
	dir_unref(root);
	tree_unref(t);
}

/* The path of a directory that openat2() has resolved may have had links, so that its parent is another one. */
static void fallback_from_resolved(void **state)
{
	fx_needs_linux();
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *d;

	(void)state;
	lay_out();
	assert_int_equal(dir_resolve(&d, root, "a/in", NULL), 0);
	fx_fail_always(FX_openat2, EPERM);
	resolves(d, "..", NULL, EXDEV);
	dir_unref(d);
	dir_unref(root);
	tree_unref(t);
}

/* A rename elsewhere makes openat2() give up for the moment; not for ever. */
static void resolve_again(void **state)
{
	fx_needs_linux();
	struct tree *t = open_tree();
	struct dir *root = tree_root(t);

	(void)state;
	lay_out();
	fx_fail_nth(1, EAGAIN);
	resolves(root, "a/b/..", "a", 0);
	assert_int_equal(fx_failed(), 1);
	fx_fail_always(FX_openat2, EAGAIN);
	resolves(root, "a/b/..", NULL, EAGAIN);
	dir_unref(root);
	tree_unref(t);
}

static void path_text(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *a = dir_child(root, "a\n"), *d = a, *next;
	char out[DIR_PATH_TEXT_BYTES], small[16], name[256];
	int i;

	(void)state;
	assert_string_equal(dir_path_text(root, NULL, out, sizeof out), ".");
	assert_string_equal(dir_path_text(root, "x\x1b", out, sizeof out), "x\\033");
	assert_string_equal(dir_path_text(a, NULL, out, sizeof out), "a\\012");
	assert_string_equal(dir_path_text(a, "b", out, sizeof out), "a\\012/b");
	assert_string_equal(dir_path_text(a, "0123456789", small, sizeof small), "../0123456789");
	assert_string_equal(dir_path_text(a, "0123456789abcdef", small, sizeof small),
	    "../0123456789..");
	assert_string_equal(dir_path_text(root, "0123456789abcde", small, sizeof small),
	    "0123456789abcde");
	memset(name, '\1', 255);
	name[255] = '\0';
	for (i = 0; i < 100; i++) {
		next = dir_child(d, name);
		dir_unref(d);
		d = next;
		assert_true(strlen(dir_path_text(d, name, out, sizeof out)) < sizeof out);
		assert_memory_equal(out, "../", 3);
	}
	dir_unref(d);
	dir_unref(root);
	tree_unref(t);
}

static void nowait(void **state)
{
	fx_needs_linux();
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *d = dir_child(root, "d"), *r;
	struct ptcp_err e = { 0 };
	int fd = -7;

	(void)state;
	fx_mkdir("d");
	fx_mkdir("d/s");
	fx_fail_always(FX_openat2, EAGAIN);
	assert_int_equal(dir_fd_cached(d, &fd, &e), STORE_AGAIN);
	assert_int_equal(fd, -7);
	fx_heal();
	assert_int_equal(dir_fd_cached(root, &fd, &e), 0);
	dir_fd_done(root);
	opens(dir_ref(d), "d", 0);
	fx_fail_always(FX_openat2, EAGAIN);
	assert_int_equal(dir_fd_cached(d, &fd, &e), 0); /* open already */
	dir_fd_done(d);
	fx_heal();
	assert_int_equal(dir_resolve(&r, root, "d/s", &e), 0);
	assert_int_equal(dir_fd_cached(r, &fd, &e), 0);
	dir_fd_done(r);
	flush_idle(root);
	assert_int_equal(dir_fd_cached(r, &fd, &e), STORE_AGAIN);
	dir_unref(r);
	/* A kernel without RESOLVE_CACHED just opens, and is not asked twice. */
	fx_heal();
	fx_fail_always(FX_openat2, EINVAL);
	assert_int_equal(dir_fd_cached(d, &fd, &e), 0);
	dir_fd_done(d);
	r = dir_child(d, "s");
	assert_int_equal(dir_fd_cached(r, &fd, &e), 0);
	dir_fd_done(r);
	assert_int_equal(fx_failed(), 1);
	dir_unref(r);
	dir_unref(d);
	dir_unref(root);
	tree_unref(t);
}

/* Each call of opening a path fails in turn: an error, and nothing stays open. */
static void faults(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *a, *b;
	struct ptcp_err e;
	int n, fd;

	(void)state;
	fx_mkdir("a");
	fx_mkdir("a/b");
	for (n = 1;; n++) {
		fx_heal();
		a = dir_child(root, "a");
		b = dir_child(a, "b");
		fx_fail_nth(n, EMFILE);
		fd = dir_fd(b, &e);
		if (fx_failed() == 0)
			break;
		assert_int_equal(fd, PTCP_EIO);
		assert_int_equal(e.sys, EMFILE);
		fd = dir_fd(b, &e); /* healed */
		assert_true(fd >= 0);
		dir_fd_done(b);
		dir_unref(a);
		dir_unref(b);
	}
	dir_fd_done(b);
	dir_unref(a);
	dir_unref(b);
	assert_true(n > 4);
	dir_unref(root);
	tree_unref(t);
}

#define HAMMERED 200

static void *hammer(void *arg)
{
	struct dir **d = arg;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	struct stat st;
	int i, fd;

	for (i = 0; i < 2000; i++) {
		seed = seed * 1103515245 + 12345;
		struct dir *one = dir_ref(d[seed / 65536 % HAMMERED]);
		if ((fd = dir_fd(one, NULL)) < 0 || fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode))
			return "failed";
		dir_fd_done(one);
		dir_unref(one);
	}
	return NULL;
}

static void threads(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t), *d[HAMMERED];
	pthread_t th[4];
	char name[60];
	void *bad;
	int i;

	(void)state;
	for (i = 0; i < HAMMERED; i++) {
		snprintf(name, sizeof name, "%d", i % 20);
		d[i] = i < 20 ? dir_child(root, name) : dir_child(d[i - 20], name);
		dir_path_text(d[i], NULL, name, sizeof name);
		fx_mkdir(name);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&th[i], NULL, hammer, d), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(th[i], &bad);
		assert_null(bad);
	}
	for (i = 0; i < HAMMERED; i++)
		dir_unref(d[i]);
	dir_unref(root);
	tree_unref(t);
}

static void knows_umask(void **state)
{
	mode_t old = umask(027);
	struct tree *t = open_tree();
	struct dir *root = tree_root(t);

	(void)state;
	umask(old);
	assert_int_equal(dir_umask(root), 027);
	dir_unref(root);
	tree_unref(t);
}

static void notes(void **state)
{
	struct tree *t = open_tree();
	struct dir *root = tree_root(t);

	(void)state;
	assert_int_equal(dir_fs_hint(root, 0), 0);
	assert_int_equal(dir_fs_hint(root, 77), 0);
	dir_set_fs_hint(root, 77, 2);
	assert_int_equal(dir_fs_hint(root, 77), 2);
	assert_int_equal(dir_fs_hint(root, 76), 0);
	dir_set_fs_hint(root, UINT64_MAX, 1); /* cannot be kept, nor taken for another */
	assert_int_equal(dir_fs_hint(root, UINT64_MAX), 0);
	assert_int_equal(dir_fs_hint(root, UINT64_MAX >> 2), 0);
	dir_unref(root);
	tree_unref(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_test(trees), fx_test(search_only), fx_test(children), fx_test(bounded),
		fx_test(deep), fx_test(deep_replaced),
		fx_test(swapped), fx_test(resolve_openat2), fx_test(resolve_fallback),
		fx_test(fallback_from_resolved),
		fx_test(resolve_again), fx_test(path_text), fx_test(nowait), fx_test(faults),
		fx_test(threads), fx_test(knows_umask), fx_test(notes),
	};
	return cmocka_run_group_tests_name("fs/dir", tests, NULL, NULL);
}
