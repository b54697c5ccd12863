/* Every allocation of the store fails once. Linked with --wrap for each function
 * below; what a failure leaks is found by the address sanitizer. */
#include "fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/io.h"
#include "fs/xattr.h"
#include "offer.h"
#include "store/owner.h"
#include "store/sink.h"
#include "store/source.h"

static atomic_int armed, countdown, hit;

static int fails(void)
{
	if (!atomic_load(&armed) || atomic_fetch_sub(&countdown, 1) != 1)
		return 0;
	atomic_store(&hit, 1);
	errno = ENOMEM;
	return 1;
}

#define WRAP(name, type, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params { return fails() ? NULL : __real_##name args; }

WRAP(malloc, void *, (size_t n), (n))
WRAP(calloc, void *, (size_t n, size_t m), (n, m))
WRAP(realloc, void *, (void *p, size_t n), (p, n))
WRAP(strdup, char *, (const char *s), (s))
WRAP(strndup, char *, (const char *s, size_t n), (s, n))

static struct dir *root;
static const struct meta full = { .set_mode = true, .set_mtime = true, .mode = 0755,
	.mtime = { 1000, 1 } };

static int a_tree(void)
{
	struct tree *t;
	int r = tree_open(&t, fx_path(""), &fx_sys, NULL);

	if (r == 0)
		tree_unref(t);
	return r;
}

static int resolving(void)
{
	struct dir *base = dir_child(root, "a"), *d;
	int r = base == NULL ? PTCP_ENOMEM : dir_resolve(&d, base, "b/c", NULL);

	if (r == 0)
		dir_unref(d);
	dir_unref(base);
	return r;
}

static int resolving_plainly(void)
{
	int r;

	fx_fail_always(FX_openat2, ENOSYS);
	r = resolving();
	fx_heal();
	return r;
}

/* A file of what is listed, sent; NULL without memory is passed on as a code. */
static int send_one(struct walk_entry *e)
{
	struct source *s = source_new(e);
	char text[1];
	int r;

	if (s == NULL) {
		assert_non_null(e->name); /* still the caller's */
		walk_entry_fini(e);
		return PTCP_ENOMEM;
	}
	r = source_read(s, text, 1, 0, true, NULL);
	source_unref(s);
	return r;
}

static int walking(void)
{
	struct walk_entry e;
	struct walk *w = NULL;
	int r, n = 0;

	if ((r = walk_new(&w, NULL, NULL)) != 0)
		return r;
	if ((r = walk_add(w, root, "a", NULL)) == 0 && (r = walk_add(w, root, NULL, NULL)) == 0 &&
	    (r = walk_add(w, root, "none", NULL)) == 0) {
		while ((r = walk_next(w, &e, NULL)) == 1) {
			n++;
			if (e.type == WALK_FILE) {
				if ((r = send_one(&e)) != 0)
					break;
			} else {
				walk_entry_fini(&e);
			}
		}
	}
	walk_free(w);
	if (r == 0)
		assert_int_equal(n, 2 * 10 + 1);
	return r;
}

static int filtering(void)
{
	struct filter *f = NULL;
	struct walk_entry e;
	struct walk *w = NULL;
	int r, n = 0;

	if ((r = filter_new(&f, NULL, NULL)) == 0 && (r = filter_add_pattern(f, false, "*.o", NULL)) == 0 &&
	    (r = walk_new(&w, NULL, NULL)) == 0) {
		walk_filter(w, f, false);
		if ((r = walk_add(w, root, "deep", NULL)) == 0)
			while ((r = walk_next(w, &e, NULL)) == 1) {
				n++;
				walk_entry_fini(&e);
			}
	}
	walk_free(w);
	filter_free(f);
	if (r == 0)
		assert_int_equal(n, 2 * 71 + 1);
	return r;
}

/* A file's digest, its attributes (played: a file system may have none) and its owner. */
static ssize_t one_name(int fd, char *names, size_t n)
{
	(void)fd;
	if (n > 0)
		memcpy(names, "user.a", 7);
	return 7;
}

static ssize_t one_value(int fd, const char *name, void *value, size_t n)
{
	(void)fd, (void)name;
	assert_true(n > 5000);
	memset(value, 'v', 5000);
	return 5000;
}

static int describing(void)
{
	struct walk_entry e = { .type = WALK_FILE, .dir = dir_child(root, "a"), .name = strdup("f") };
	struct source *s = e.dir != NULL && e.name != NULL ? source_new(&e) : NULL;
	struct xattrs x = XATTRS_INIT;
	struct owners *o = NULL;
	struct file_digest sum;
	int r = PTCP_ENOMEM;

	if (s != NULL) {
		sum = (struct file_digest){ .block_bytes = 1000, .holes = NULL };
		/* An invented entry: that it changed is found after its buffer was had. */
		if ((r = file_digest_next(&sum, s, NULL)) == PTCP_ECHANGED &&
		    (r = xattrs_read(&x, root, "f", XATTR_USER, NULL)) == 0 && x.n == 1)
			r = owners_new(&o, &owner_db_real, NULL, NULL);
	}
	source_unref(s);
	walk_entry_fini(&e);
	xattrs_fini(&x);
	owners_free(o);
	return r;
}

/* Too deep for a stream each: listings are read whole. */
static int walking_deep(void)
{
	struct walk_entry e;
	struct walk *w;
	int r, n = 0;

	if ((r = walk_new(&w, NULL, NULL)) != 0)
		return r;
	if ((r = walk_add(w, root, "deep", NULL)) == 0)
		while ((r = walk_next(w, &e, NULL)) == 1) {
			n++;
			walk_entry_fini(&e);
		}
	walk_free(w);
	if (r == 0)
		assert_int_equal(n, 2 * 71 + 1);
	return r;
}

static int receiving(void)
{
	struct dir *d = dir_child(root, "a");
	struct sink *s;
	int r;

	if (d == NULL)
		return PTCP_ENOMEM;
	s = sink_new(d, "new", 2, &full, NULL);
	dir_unref(d);
	if (s == NULL)
		return PTCP_ENOMEM;
	if ((r = sink_write(s, "x", 1, 0, 0, NULL)) == 0 && (r = sink_write(s, "y", 1, 1, 0, NULL)) == 0)
		r = offer_commit(s, NULL);
	sink_unref(s);
	unlink(fx_path("a/new"));
	return r;
}

/* A file that an earlier run left in part, and the same once more when it is complete. */
static int resuming(void)
{
	static const struct offer o = { "resumed", 3 * OFFER_BLOCK, 1, false };
	struct sink *s = offer_sink(root, &o);
	bool have[OFFER_BLOCKS], same;
	struct store_item one = { .sink = s };
	int r, i;

	unlink(fx_path("resumed")); /* the last attempt got so far */
	if (s == NULL)
		return PTCP_ENOMEM;
	for (i = 0; i < 2; i++) {
		if ((r = offer_write(s, &o, 1, NULL)) < 0)
			break;
		sink_keep(s);
		sink_unref(s);
		if ((one.sink = s = offer_sink(root, &o)) == NULL)
			return PTCP_ENOMEM;
		if ((r = offer_resume(s, &o, have, &same, NULL)) < 0)
			break;
		assert_int_equal(r, 1);
		if ((r = offer_rest(s, &o, have, NULL)) < 0 || (r = sink_sync(s, NULL)) < 0)
			break;
		store_complete(&one, 1, STORE_SYNC_GROUP);
		assert_int_equal(one.result, 0);
		sink_unref(s);
		if ((s = offer_sink(root, &o)) == NULL)
			return PTCP_ENOMEM;
		if ((r = offer_resume(s, &o, have, &same, NULL)) < 0)
			break;
		assert_true(same);
		unlink(fx_path("resumed"));
		sink_unref(s);
		if ((s = offer_sink(root, &o)) == NULL)
			return PTCP_ENOMEM;
	}
	sink_discard(s);
	sink_unref(s);
	return r;
}

static int linking(void)
{
	struct store_file f = { root, "a/b/c/g", 0, 0, NULL, NULL };
	struct stat st;
	int r;

	assert_int_equal(stat(fx_path(f.path), &st), 0);
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	r = store_hardlink(&f, root, "hard", NULL);

	unlink(fx_path("hard"));
	return r;
}

static int threads(void)
{
	struct io *io;
	int r = io_new(&io, 2, NULL);

	if (r == 0)
		io_free(io);
	return r;
}

static void torture(int (*what)(void), int at_least)
{
	int n, r, fds;

	for (n = 1;; n++) {
		fds = fx_open_fds();
		atomic_store(&hit, 0);
		atomic_store(&countdown, n);
		atomic_store(&armed, 1);
		r = what();
		atomic_store(&armed, 0);
		assert_int_equal(fx_open_fds(), fds);
		if (!atomic_load(&hit))
			break;
		assert_int_equal(r, PTCP_ENOMEM);
	}
	assert_int_equal(r, 0);
	assert_true(n > at_least);
}

static void everything(void **state)
{
	static struct sys played;
	char path[300] = "deep";
	struct tree *t;
	int i;

	(void)state;
	fx_mkdir("a");
	fx_mkdir("a/b");
	fx_mkdir("a/b/c");
	fx_text("a/f", "x");
	fx_text("a/b/c/g", "y");
	assert_int_equal(symlink("f", fx_path("a/l")), 0);
	assert_int_equal(mkfifo(fx_path("a/p"), 0600), 0);
	torture(a_tree, 2);
	assert_int_equal(tree_open(&t, fx_path(""), &fx_sys, NULL), 0);
	root = tree_root(t);
	torture(resolving, 3);
	torture(resolving_plainly, 5);
	torture(walking, 40);
	torture(receiving, 2);
	torture(resuming, 12);
	torture(linking, 3);
	torture(threads, 1);
	for (i = 0; i < 71; i++) {
		fx_mkdir(path);
		strcat(path, "/d");
	}
	path[strlen(path) - 1] = 'f';
	fx_text(path, "x");
	torture(walking_deep, 71 * 3);
	played = sys_real;
	played.flistxattr = one_name;
	played.fgetxattr = one_value;
	dir_unref(root);
	tree_unref(t);
	assert_int_equal(tree_open(&t, fx_path(""), &played, NULL), 0);
	root = tree_root(t);
	fx_text("f", "x");
	torture(describing, 6);
	torture(filtering, 71 * 3);
	dir_unref(root);
	tree_unref(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { fx_test(everything) };
	return cmocka_run_group_tests_name("store/torture", tests, NULL, NULL);
}
