/* Each system call of a receive and of a send fails once, with each error that a disk, a quota or a
 * forbidding file system has.
 * against: failure */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "offer.h"
#include "store/source.h"

static const int errors[] = { ENOSPC, EDQUOT, EIO, EMFILE, EROFS, EACCES };
#define ERRORS (sizeof errors / sizeof *errors)

enum { ONE, EMPTY, RESUMED, SPARSE, REPLACED, SAME, FILES };

/* What is received; below d/, which is made or not. */
static const struct offer files[FILES] = {
	[ONE] = { "one", 100, 1, false },
	[EMPTY] = { "empty", 0, 1, false },
	[RESUMED] = { "resumed", 5 * OFFER_BLOCK + 7, 1, false },
	[SPARSE] = { "sparse", 4 * OFFER_BLOCK, 1, true },
	[REPLACED] = { "replaced", 3 * OFFER_BLOCK, 1, false },
	[SAME] = { "same", 2 * OFFER_BLOCK, 1, false },
};
static struct offer replaced_before;

static const struct meta meta = { .set_mode = true, .set_mtime = true, .mode = 0755,
	.mtime = { 1000, 1 } };

/* ---- Receiving ---- */

static int write_one(struct dir *d, const struct offer *o, struct store_item *end,
    struct ptcp_err *e)
{
	bool have[OFFER_BLOCKS], same;
	int r;

	if ((end->sink = offer_sink(d, o)) == NULL)
		return err_nomem(e);
	end->why = e;
	if ((r = offer_resume(end->sink, o, have, &same, e)) < 0)
		return r;
	if (same) {
		sink_unref(end->sink);
		end->sink = NULL;
		end->dir = d;
		return 0;
	}
	if ((r = offer_rest(end->sink, o, have, e)) < 0)
		return r;
	return sink_sync(end->sink, e);
}

static int end_group(struct store_item *of, unsigned n, struct dir *d, struct ptcp_err *e)
{
	unsigned i;

	store_complete(of, n, STORE_SYNC_GROUP);
	for (i = 0; i < n; i++)
		if (of[i].result < 0)
			return of[i].result;
	return store_dir_finish(d, &meta, e);
}

/* The first failure ends it, as a session would: what can be kept is. */
static int receive_into(struct dir *root, struct ptcp_err *e)
{
	struct store_item of[FILES + 1] = { 0 };
	struct dir *d = dir_child(root, "d");
	int i, r;

	r = store_mkdir(root, "d", &meta, NULL, e);
	for (i = 0; i < FILES && r == 0; i++)
		r = write_one(d, &files[i], &of[i], e);
	if (r == 0)
		r = store_symlink(d, "link", "target", &meta, NULL, e);
	of[FILES] = (struct store_item){ .dir = d, .why = e };
	if (r == 0)
		r = end_group(of, FILES + 1, d, e);
	for (i = 0; i < FILES; i++) {
		if (of[i].sink != NULL && r < 0)
			sink_keep(of[i].sink);
		sink_unref(of[i].sink);
	}
	dir_unref(d);
	return r;
}

/* The nth call fails (0: none). */
static int receive(int nth, int sys, struct ptcp_err *e)
{
	struct tree *t;
	struct dir *root;
	int r;

	fx_heal();
	assert_int_equal(tree_open(&t, fx_path("to"), &fx_sys, NULL), 0);
	root = tree_root(t);
	if (nth > 0)
		fx_fail_nth(nth, sys);
	r = receive_into(root, e);
	dir_unref(root);
	tree_unref(t);
	return r;
}

static const char *in_d(const char *name)
{
	static char path[100];

	snprintf(path, sizeof path, "to/d/%s", name);
	return path;
}

/* What an earlier run left, and what was there before. */
static void before_it(void)
{
	struct tree *t;
	struct dir *root, *d;
	struct sink *s;
	uint32_t i;
	int k;

	assert_int_equal(tree_open(&t, fx_path("to"), &sys_real, NULL), 0);
	root = tree_root(t);
	d = dir_child(root, "d");
	assert_int_equal(store_mkdir(root, "d", NULL, NULL, NULL), 0);
	for (k = 0; k < 2; k++) {
		s = offer_sink(d, k == 0 ? &files[SAME] : &replaced_before);
		assert_int_equal(offer_rest(s, k == 0 ? &files[SAME] : &replaced_before,
		    (bool[OFFER_BLOCKS]){ false }, NULL), 0);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
	}
	s = offer_sink(d, &files[RESUMED]);
	for (i = 1; i < 4; i++)
		assert_int_equal(offer_write(s, &files[RESUMED], i, NULL), 0);
	sink_keep(s);
	sink_unref(s);
	dir_unref(d);
	dir_unref(root);
	tree_unref(t);
}

static void remove_all(void)
{
	int i;

	for (i = 0; i < FILES; i++)
		remove(fx_path(in_d(files[i].name)));
	remove(fx_path(in_d("link")));
	assert_int_equal(remove(fx_path("to/d")), 0); /* so nothing else was left */
}

/* The old content, the new one, or no file: nothing between. */
static void nothing_half(void)
{
	static uint8_t back[OFFER_BLOCKS * OFFER_BLOCK];
	long n;
	int i;

	for (i = 0; i < FILES; i++) {
		n = fx_read(in_d(files[i].name), back, sizeof back);
		if (n < 0)
			assert_true(i != SAME && i != REPLACED);
		else if (!offer_is(&files[i], back, (size_t)n))
			assert_true(i == REPLACED && offer_is(&replaced_before, back, (size_t)n));
	}
}

static void all_there(void)
{
	int i;

	for (i = 0; i < FILES; i++)
		offer_holds(in_d(files[i].name), &files[i]);
	assert_true(fx_exists(in_d("link")));
}

static void fair_sentence(int r, const struct ptcp_err *e, int sys)
{
	assert_int_equal(e->code, r);
	assert_int_equal(e->sys, sys);
	assert_int_equal(r, sys == ENOSPC || sys == EDQUOT ? PTCP_ENOSPC : PTCP_EIO);
	assert_non_null(strstr(e->msg, ": "));
	assert_non_null(strstr(e->msg, strerror(sys)));
	assert_non_null(strchr(e->msg, '(')); /* what to do */
	assert_null(strchr(e->msg, '\n'));
}

static void receiving(void **state)
{
	struct ptcp_err e;
	unsigned k;
	int n, r, fds;

	(void)state;
	replaced_before = files[REPLACED];
	replaced_before.version = 9;
	fx_mkdir("to");
	fds = fx_open_fds();
	for (k = 0; k < ERRORS; k++) {
		for (n = 1;; n++) {
			before_it();
			memset(&e, 0, sizeof e);
			r = receive(n, errors[k], &e);
			assert_int_equal(fx_open_fds(), fds);
			if (fx_failed() == 0)
				break;
			nothing_half();
			if (r < 0)
				fair_sentence(r, &e, errors[k]);
			else
				all_there();
			assert_int_equal(receive(0, 0, &e), 0);
			all_there();
			/* A journal that could not be removed then, too. */
			assert_int_equal(fx_count("to/d"), FILES + 1);
			remove_all();
		}
		assert_int_equal(r, 0);
		all_there();
		remove_all();
		assert_true(n > 120);
	}
}

/* ---- Sending ---- */

static int read_file(struct walk_entry *entry, struct ptcp_err *e)
{
	uint8_t buf[OFFER_BLOCK];
	struct source *s = source_new(entry);
	uint64_t size, at, n;
	int r = 0;

	assert_non_null(s);
	size = source_size_bytes(s);
	for (at = 0; (at < size || at == 0) && r == 0; at += n > 0 ? n : 1) {
		n = size - at < sizeof buf ? size - at : sizeof buf;
		if ((r = source_read(s, buf, (size_t)n, at, false, e)) == STORE_AGAIN)
			r = source_read(s, buf, (size_t)n, at, true, e);
	}
	if (r == 0)
		r = source_check(s, e);
	source_unref(s);
	return r;
}

/* How many files were sent whole; what failed is told in a sentence each. */
static int send_all(struct dir *root, int *failed)
{
	struct walk_entry entry = { 0 };
	struct ptcp_err e;
	struct walk *w;
	int files_sent = 0, r;

	*failed = 0;
	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	assert_int_equal(walk_add(w, root, "from", NULL), 0);
	while ((r = walk_next(w, &entry, NULL)) == 1) {
		if (entry.type == WALK_FAILED) {
			assert_true(strlen(entry.why) > 0);
			++*failed;
		} else if (entry.type == WALK_FILE) {
			memset(&e, 0, sizeof e);
			if ((r = read_file(&entry, &e)) == 0) {
				files_sent++;
			} else {
				assert_true(r == PTCP_EIO || r == PTCP_ENOSPC || r == PTCP_ECHANGED);
				assert_non_null(strstr(e.msg, ": "));
				++*failed;
			}
			continue;
		}
		walk_entry_fini(&entry);
	}
	assert_int_equal(r, 0);
	walk_free(w);
	return files_sent;
}

static void sending(void **state)
{
	static uint8_t content[3 * OFFER_BLOCK];
	struct dir *root;
	struct tree *t;
	int n, sent, failed, fds;
	unsigned k;

	(void)state;
	fx_mkdir("from");
	fx_mkdir("from/deep");
	fx_write("from/a", content, sizeof content);
	fx_write("from/deep/b", content, 100);
	fx_write("from/deep/empty", content, 0);
	assert_int_equal(symlink("a", fx_path("from/link")), 0);
	for (k = 0; k < ERRORS; k++) {
		for (n = 1;; n++) {
			fds = fx_open_fds();
			fx_heal();
			fx_fail_nth(n, errors[k]);
			if (tree_open(&t, fx_path(""), &fx_sys, NULL) == 0) {
				root = tree_root(t);
				sent = send_all(root, &failed);
				if (sent < 3)
					assert_true(failed > 0);
				dir_unref(root);
				tree_unref(t);
			}
			assert_int_equal(fx_open_fds(), fds);
			if (fx_failed() == 0)
				break;
		}
		assert_int_equal(sent, 3);
		assert_int_equal(failed, 0);
		assert_true(n > 30);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { fx_test(receiving), fx_test(sending) };

	fx_in_memory();
	return cmocka_run_group_tests_name("store/faults", tests, NULL, NULL);
}
