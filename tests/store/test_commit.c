/* against: links */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offer.h"
#include "store/part.h"

#define MOST 30

static const struct offer big = { "big", 6 * OFFER_BLOCK, 1, false };

static struct store_item of[MOST];
static struct ptcp_err why[MOST];

static const char *name_of(unsigned i)
{
	static char name[4][20];

	snprintf(name[i % 4], sizeof name[0], "f%u", i);
	return name[i % 4];
}

/* n files of one block, written. */
static void begin(unsigned n)
{
	struct offer o = { NULL, 100, 1, false };
	unsigned i;

	memset(of, 0, sizeof of);
	memset(why, 0, sizeof why);
	for (i = 0; i < n; i++) {
		o.name = name_of(i);
		of[i].sink = offer_sink(fx_root, &o);
		of[i].why = &why[i];
		assert_int_equal(offer_write(of[i].sink, &o, 0, NULL), 0);
	}
	fx_heal();
}

static void end(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		sink_discard(of[i].sink);
		sink_unref(of[i].sink);
	}
	for (i = 0; i < n; i++)
		remove(fx_path(name_of(i)));
	assert_int_equal(fx_count(""), 0);
	fx_heal();
}

static unsigned failed(unsigned n)
{
	unsigned i, bad = 0;

	for (i = 0; i < n; i++) {
		assert_int_equal(of[i].result == 0, fx_exists(name_of(i)));
		if (of[i].result != 0) {
			assert_int_equal(why[i].code, of[i].result);
			assert_memory_equal(why[i].msg, name_of(i), strlen(name_of(i)));
			bad++;
		}
	}
	return bad;
}

static enum fx_call seen[4000];
static int n_seen;

static void note(enum fx_call call)
{
	if (n_seen < 4000)
		seen[n_seen++] = call;
}

static int first_of(enum fx_call call)
{
	int i;

	for (i = 0; i < n_seen && seen[i] != call; i++)
		;
	return i;
}

static int last_of(enum fx_call call)
{
	int i;

	for (i = n_seen - 1; i >= 0 && seen[i] != call; i--)
		;
	return i;
}

/* Each step is done for all before the next is begun. */
static void steps(void **state)
{
	static const unsigned sizes[] = { 1, 8, 9, 30 };
	unsigned i, n;

	(void)state;
	for (i = 0; i < 4; i++) {
		n = sizes[i];
		begin(n);
		n_seen = 0;
		fx_before(note);
		store_complete(of, n, STORE_SYNC_GROUP);
		fx_before(NULL);
		assert_int_equal(failed(n), 0);
		assert_int_equal(fx_calls_of(FX_fsync), n > 8 ? 1 : n + 1);
		assert_int_equal(fx_calls_of(FX_syncfs), n > 8);
		if (n > 8) {
			assert_true(last_of(FX_fchmod) < first_of(FX_syncfs));
			assert_true(first_of(FX_syncfs) < first_of(FX_renameat));
		} else {
			assert_true(last_of(FX_fchmod) < first_of(FX_fsync));
			assert_true(first_of(FX_fsync) < first_of(FX_renameat));
		}
		assert_true(last_of(FX_renameat) < last_of(FX_fsync)); /* the directory */
		end(n);
		begin(n);
		store_complete(of, n, STORE_SYNC_FILE);
		assert_int_equal(failed(n), 0);
		assert_int_equal(fx_calls_of(FX_fsync), 2 * n);
		end(n);
		begin(n);
		store_complete(of, n, STORE_SYNC_NONE);
		assert_int_equal(failed(n), 0);
		assert_int_equal(fx_calls_of(FX_fsync) + fx_calls_of(FX_syncfs), 0);
		end(n);
	}
}

/* As many directories as files: the names go by one call, too. Where it fails each is asked. */
static void many_directories(void **state)
{
	struct offer o = { "f", 100, 1, false };
	struct dir *d[12];
	unsigned i, way;

	(void)state;
	for (way = 0; way < 2; way++) {
		memset(of, 0, sizeof of);
		for (i = 0; i < 12; i++) {
			assert_int_equal(store_mkdir(fx_root, name_of(i), NULL, NULL, NULL), 0);
			d[i] = dir_child(fx_root, name_of(i));
			of[i].sink = offer_sink(d[i], &o);
			assert_int_equal(offer_write(of[i].sink, &o, 0, NULL), 0);
		}
		fx_heal();
		if (way == 1)
			fx_fail_always(FX_syncfs, EIO);
		store_complete(of, 12, STORE_SYNC_GROUP);
		assert_int_equal(fx_calls_of(FX_syncfs), 2);
		assert_int_equal(fx_calls_of(FX_fsync), way == 0 ? 0 : 12 + 12 + 1);
		for (i = 0; i < 12; i++) {
			assert_int_equal(of[i].result, 0);
			sink_unref(of[i].sink);
			dir_unref(d[i]);
		}
	}
}

/* One file's failure is its own, whichever call it was. */
static void one_fails(void **state)
{
	static const unsigned sizes[] = { 5, 12 };
	unsigned i, n, bad;
	int nth;

	(void)state;
	for (i = 0; i < 2; i++) {
		n = sizes[i];
		for (nth = 1;; nth++) {
			begin(n);
			fx_fail_nth(nth, EIO);
			store_complete(of, n, STORE_SYNC_GROUP);
			if (fx_failed() == 0) {
				end(n);
				break;
			}
			/* Of all calls only the directory's sync is everybody's. */
			for (bad = 0; bad < n && of[bad].result != 0; bad++)
				;
			if (bad != n)
				assert_true(failed(n) <= 1);
			end(n);
		}
		assert_true(nth > (int)n * 5);
	}
}

/* What cannot be made durable gets no final name, then or later, and its journal forgets it. */
static void data_lost(void **state)
{
	static const enum fx_call how[] = { FX_fsync, FX_fdatasync, FX_close };
	struct store_item one = { .why = &why[0] };
	bool have[OFFER_BLOCKS], same;
	struct sink *s;
	uint32_t i;
	int h;

	(void)state;
	for (h = 0; h < 3; h++) {
		s = offer_sink(fx_root, &big);
		one.sink = s;
		for (i = 0; i < 3; i++)
			assert_int_equal(offer_write(s, &big, i, NULL), 0);
		assert_int_equal(sink_sync(s, NULL), 0);
		for (; i < 6; i++)
			assert_int_equal(offer_write(s, &big, i, NULL), 0);
		fx_fail_always(how[h], EIO);
		if (how[h] == FX_fdatasync) {
			assert_int_equal(sink_sync(s, &why[0]), PTCP_EIO);
			fx_heal();
			assert_int_equal(offer_write(s, &big, 0, &why[0]), PTCP_EIO);
			assert_int_equal(sink_sync(s, NULL), 0); /* there is nothing to sync any more */
		} else {
			store_complete(&one, 1, STORE_SYNC_GROUP);
			assert_int_equal(one.result, PTCP_EIO);
		}
		assert_string_equal(why[0].msg, "big: cannot sync: Input/output error "
		    "(check the disk and the kernel's log)");
		fx_heal(); /* the kernel tells it once */
		store_complete(&one, 1, STORE_SYNC_GROUP);
		assert_int_equal(one.result, PTCP_EIO);
		assert_false(fx_exists("big"));
		sink_keep(s);
		sink_unref(s);
		s = offer_sink(fx_root, &big);
		assert_int_equal(offer_resume(s, &big, have, &same, NULL), 3);
		assert_true(have[0] && have[1] && have[2]);
		sink_discard(s);
		sink_unref(s);
		assert_int_equal(fx_count(""), 0);
	}
	/* Nothing had been durable: nothing is kept. */
	s = offer_sink(fx_root, &big);
	assert_int_equal(offer_write(s, &big, 0, NULL), 0);
	fx_fail_always(FX_fdatasync, ENOSPC);
	assert_int_equal(sink_sync(s, NULL), PTCP_ENOSPC);
	sink_keep(s);
	sink_unref(s);
	assert_int_equal(fx_count(""), 0);
}

/* A file system without times: the file is complete, with a warning. */
static void cannot_set_times(void **state)
{
	static const int cannot[] = { EPERM, EOPNOTSUPP, ENOSYS, EIO };
	const struct meta m = { .set_mtime = true, .mtime = { 1000, 0 } };
	struct store_item one = { .why = &why[0] };
	struct dir *d;
	int i;

	(void)state;
	assert_int_equal(store_mkdir(fx_root, "d", NULL, NULL, NULL), 0);
	d = dir_child(fx_root, "d");
	for (i = 0; i < 4; i++) {
		one.sink = sink_new(fx_root, "new", 0, &m, NULL);
		fx_fail_always(FX_futimens, cannot[i]);
		fx_fail_always(FX_utimensat, cannot[i]);
		store_complete(&one, 1, STORE_SYNC_NONE);
		assert_int_equal(one.result, i < 3 ? 0 : PTCP_EIO);
		assert_int_equal(store_dir_finish(d, &m, &why[1]), i < 3 ? 1 : PTCP_EIO);
		if (i < 3)
			assert_true(one.attr_dropped);
		assert_non_null(strstr(why[0].msg, "cannot set the modification time"));
		assert_non_null(strstr(why[1].msg, "cannot set the modification time"));
		sink_discard(one.sink);
		sink_unref(one.sink);
		fx_heal();
	}
	dir_unref(d);
}

/* A file system without such calls is not a broken disk; one that was remounted read-only is. */
static void cannot_sync(void **state)
{
	static const int cannot[] = { EINVAL, EOPNOTSUPP, ENOSYS, EROFS, EBADF };
	struct store_item one = { .why = &why[0] };
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		one.sink = offer_sink(fx_root, &big);
		assert_int_equal(offer_rest(one.sink, &big, (bool[OFFER_BLOCKS]){ false }, NULL), 0);
		fx_fail_always(FX_fdatasync, i < 3 ? cannot[i] : 0);
		fx_fail_always(FX_fsync, i < 3 ? cannot[i] : 0);
		assert_int_equal(sink_sync(one.sink, NULL), 0);
		fx_fail_always(FX_fsync, cannot[i]);
		store_complete(&one, 1, STORE_SYNC_GROUP);
		assert_int_equal(one.result, i < 3 ? 0 : PTCP_EIO);
		sink_discard(one.sink);
		sink_unref(one.sink);
		fx_heal();
		assert_int_equal(fx_exists("big"), i < 3);
		remove(fx_path("big"));
	}
}

/* A directory that may be written but not read is open by O_PATH, which cannot be synced. */
static void not_readable(void **state)
{
	struct dir *d = dir_child(fx_root, "d");
	struct store_item one = { .dir = d };

	(void)state;
	assert_int_equal(store_mkdir(fx_root, "d", NULL, NULL, NULL), 0);
	dir_changed(d);
	fx_fail_always(FX_fsync, EBADF);
	store_complete(&one, 1, STORE_SYNC_GROUP);
	assert_int_equal(one.result, 0);
	dir_unref(d);
}

/* The name may be lost: the file has failed, and its journal stays for the part that may come back. */
static void name_lost(void **state)
{
	struct store_item one = { .why = &why[0] };
	char journal[PART_NAME_BYTES];

	(void)state;
	fx_needs_linux();
	one.sink = offer_sink(fx_root, &big);
	assert_int_equal(offer_rest(one.sink, &big, (bool[OFFER_BLOCKS]){ false }, NULL), 0);
	fx_heal();
	fx_fail_nth(9, EIO); /* mode times, which file system, dup close fsync, is it ours, rename fsync */
	store_complete(&one, 1, STORE_SYNC_GROUP);
	if (one.result == 0 || !fx_exists("big")) {
		assert_int_equal(fx_failed(), 1);
		fail_msg("call 9 is not the directory's sync: %s", one.result < 0 ? why[0].msg : "-");
	}
	assert_string_equal(why[0].msg, ".: cannot sync the directory: Input/output "
	    "error (check the disk and the kernel's log)");
	offer_holds("big", &big);
	assert_true(fx_exists(part_name(journal, "big", PART_JOURNAL_SUFFIX)));
	sink_discard(one.sink);
	sink_unref(one.sink);
	offer_holds("big", &big);
}

/* Directories that were made are synced in their parents, up to one that was there; each once. */
static void new_directories(void **state)
{
	struct dir *d = dir_child(fx_root, "d"), *e = dir_child(d, "e");
	struct store_item two[2] = { { .dir = e }, { .dir = e } };
	bool made;

	(void)state;
	assert_int_equal(store_mkdir(fx_root, "d", NULL, &made, NULL), 0);
	assert_true(made);
	assert_int_equal(store_mkdir(fx_root, "d", NULL, &made, NULL), 0);
	assert_false(made);
	assert_int_equal(store_mkdir(d, "e", NULL, &made, NULL), 0);
	assert_int_equal(store_symlink(e, "l", "x", &(struct meta){ 0 }, NULL, NULL), 0);
	fx_heal();
	store_complete(two, 2, STORE_SYNC_GROUP);
	assert_int_equal(two[0].result | two[1].result, 0);
	assert_int_equal(fx_calls_of(FX_fsync), 3); /* e, d and the root */
	store_complete(two, 2, STORE_SYNC_GROUP);
	assert_int_equal(fx_calls_of(FX_fsync), 3);
	assert_int_equal(store_dir_finish(e, &(struct meta){ .set_mtime = true }, NULL), 0);
	fx_fail_nth(1, EIO);
	store_complete(two, 2, STORE_SYNC_GROUP);
	assert_int_equal(two[0].result, PTCP_EIO);
	assert_int_equal(two[1].result, PTCP_EIO); /* the kernel tells it once, of both */
	store_complete(two, 2, STORE_SYNC_GROUP);
	assert_int_equal(two[0].result | two[1].result, 0);
	dir_unref(e);
	dir_unref(d);
}

/* Periodic syncing: the part, the journal, and their names once. */
static void periodic(void **state)
{
	struct sink *s = offer_sink(fx_root, &big);

	(void)state;
	assert_int_equal(sink_sync(s, NULL), 0);
	assert_int_equal(offer_write(s, &big, 0, NULL), 0);
	fx_heal();
	assert_int_equal(sink_sync(s, NULL), 0);
	assert_int_equal(sink_sync(s, NULL), 0);
	assert_int_equal(fx_calls_of(FX_fdatasync), 4);
	assert_int_equal(fx_calls_of(FX_fsync), 1);
	sink_discard(s);
	sink_unref(s);
}

/* Completes one file in `in`, a path, while its directory is moved to "away"; `again`: another directory takes the
 * place. */
static int moved(struct dir *d, const char *in, const char *move, bool again, struct ptcp_err *e)
{
	struct offer o = { "f", 100, 1, false };
	struct store_item item = { .sink = offer_sink(d, &o), .why = e };
	char path[100];

	assert_int_equal(offer_write(item.sink, &o, 0, NULL), 0);
	if (move != NULL)
		assert_int_equal(rename(fx_path(move), fx_path("away")), 0);
	if (again)
		assert_int_equal(mkdir(fx_path(move), 0700), 0);
	store_complete(&item, 1, STORE_SYNC_GROUP);
	sink_unref(item.sink);
	snprintf(path, sizeof path, "%s/f", in);
	assert_int_equal(fx_exists(path), item.result == 0);
	return item.result;
}

/* The files of a directory that was moved away are not where they were requested. */
static void directory_moved(void **state)
{
	static const struct { const char *move; bool again; const char *says; } cases[] = {
		{ NULL, false, NULL }, { "a/b", false, "a/b: the directory was moved" },
		{ "a/b", true, "a/b: the directory was moved" }, { "a", false, "a: the directory was moved" },
		{ "a", true, "a: the directory was moved" },
	};
	struct dir *a, *d;
	struct ptcp_err e;
	unsigned i, how;
	int r;

	(void)state;
	for (i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		how = i / 2;
		fx_mkdir("a");
		fx_mkdir("a/b");
		if (i % 2 == 0) { /* a directory of the transfer, and one that the user named */
			a = dir_child(fx_root, "a");
			d = dir_child(a, "b");
			dir_unref(a);
		} else {
			assert_int_equal(dir_resolve(&d, fx_root, "a/b", NULL), 0);
		}
		r = moved(d, "a/b", cases[how].move, cases[how].again, &e);
		dir_unref(d);
		assert_int_equal(r, cases[how].says == NULL ? 0 : PTCP_EIO);
		if (r != 0)
			assert_int_equal(e.sys, ESTALE);
		if (r != 0 && i % 2 == 0 && strncmp(e.msg, cases[how].says, strlen(cases[how].says)) != 0)
			fail_msg("%s", e.msg);
		remove(fx_path("away/b/f"));
		remove(fx_path("away/f"));
		remove(fx_path("away/b"));
		remove(fx_path("away"));
		remove(fx_path("a/b/f"));
		remove(fx_path("a/b"));
		remove(fx_path("a"));
		assert_int_equal(fx_count(""), 0);
	}
}

/* A complete file keeps no journal where its directory is now. */
static void journal_of_moved(void **state)
{
	struct store_item one = { .why = &why[0] };
	struct dir *d = dir_child(fx_root, "d");
	char journal[PART_NAME_BYTES], path[PART_NAME_BYTES + 10];

	(void)state;
	fx_mkdir("d");
	one.sink = offer_sink(d, &big);
	assert_int_equal(offer_rest(one.sink, &big, (bool[OFFER_BLOCKS]){ false }, NULL), 0);
	assert_int_equal(sink_sync(one.sink, NULL), 0);
	snprintf(path, sizeof path, "d/%s", part_name(journal, "big", PART_JOURNAL_SUFFIX));
	assert_true(fx_exists(path));
	assert_int_equal(rename(fx_path("d"), fx_path("away")), 0);
	store_complete(&one, 1, STORE_SYNC_GROUP);
	assert_int_equal(one.result, PTCP_EIO);
	assert_int_equal(why[0].sys, ESTALE);
	sink_unref(one.sink);
	dir_unref(d);
	assert_true(fx_exists("away/big"));
	assert_int_equal(fx_count("away"), 1);
}

/* The root, by the path that the user gave: moved, replaced, or reached by a link that leads elsewhere now. */
static void root_moved(void **state)
{
	struct dir *root, *d;
	struct tree *t;
	struct ptcp_err e;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		fx_mkdir("top");
		fx_mkdir("top/d");
		assert_int_equal(symlink("top", fx_path("link")), 0);
		assert_int_equal(tree_open(&t, fx_path(i == 3 ? "link" : "top"), &fx_sys, NULL), 0);
		root = tree_root(t);
		d = dir_child(root, "d");
		assert_int_equal(dir_fd(d, NULL) >= 0, 1);
		dir_fd_done(d);
		assert_int_equal(dir_in_place(d, dir_check_new(d), &e), 0);
		assert_int_equal(dir_in_place(root, dir_check_new(root), &e), 0);
		if (i == 3)
			assert_int_equal(unlink(fx_path("link")), 0);
		else
			assert_int_equal(rename(fx_path("top"), fx_path("away")), 0);
		if (i == 1)
			fx_mkdir("top");
		if (i >= 2)
			assert_int_equal(symlink(i == 2 ? "none" : ".", fx_path(i == 2 ? "top" : "link")), 0);
		assert_int_equal(dir_in_place(root, dir_check_new(root), &e), PTCP_EIO);
		assert_int_equal(e.sys, ESTALE);
		assert_int_equal(dir_in_place(d, dir_check_new(d), &e), PTCP_EIO);
		assert_int_equal(e.sys, ESTALE);
		dir_unref(d);
		dir_unref(root);
		tree_unref(t);
		remove(fx_path("link"));
		remove(fx_path("away/d"));
		remove(fx_path("away"));
		remove(fx_path("top/d"));
		remove(fx_path("top"));
		assert_int_equal(fx_count(""), 0);
	}
}

/* A finished directory, too, and with the names of directories above replaced by links. */
static void directory_replaced_by_link(void **state)
{
	struct dir *d = dir_child(fx_root, "d");
	const struct meta m = { .set_mode = true, .mode = 0755 };
	struct store_item item = { .dir = d };
	struct ptcp_err e;

	(void)state;
	item.why = &e;
	fx_mkdir("d");
	assert_int_equal(store_dir_finish(d, &m, NULL), 0);
	store_complete(&item, 1, STORE_SYNC_GROUP);
	assert_int_equal(item.result, 0);
	assert_int_equal(rename(fx_path("d"), fx_path("away")), 0);
	assert_int_equal(symlink("away", fx_path("d")), 0);
	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	item.finished = true;
	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	dir_unref(d);
}

#define LEVELS 200

/* A tree of many levels takes a few calls a level: with a link in each directory, all in one group, and with the
 * directories finished one by one, from the bottom. */
static void deep(void **state)
{
	struct store_item item[LEVELS] = { 0 };
	const struct meta m = { .set_mode = true, .mode = 0755 };
	struct dir *d[LEVELS + 1] = { fx_root };
	int i;

	(void)state;
	for (i = 0; i < LEVELS; i++) {
		assert_int_equal(store_mkdir(d[i], "d", &m, NULL, NULL), 0);
		assert_non_null(d[i + 1] = dir_child(d[i], "d"));
		assert_int_equal(store_symlink(d[i + 1], "l", "x", &m, NULL, NULL), 0);
		item[i].dir = d[i + 1];
	}
	fx_heal();
	store_complete(item, LEVELS, STORE_SYNC_NONE);
	for (i = LEVELS; i-- > 0;) {
		assert_int_equal(item[i].result, 0);
		item[i].finished = true;
		assert_int_equal(store_dir_finish(d[i + 1], &m, NULL), 0);
		store_complete(&item[i], 1, STORE_SYNC_NONE);
		assert_int_equal(item[i].result, 0);
	}
	assert_in_range(fx_calls_of(FX_fstatat), 2 * LEVELS, 3 * LEVELS);
	for (i = LEVELS; i > 0; i--)
		dir_unref(d[i]);
}

/* So does one whose files are complete one by one: a directory far above that is moved shows when it is finished. */
static void deep_one_by_one(void **state)
{
	struct store_item item = { 0 };
	const struct meta m = { .set_mode = true, .mode = 0755 };
	struct dir *d[LEVELS + 1] = { fx_root };
	struct ptcp_err e = { 0 };
	int i, far = LEVELS - DIR_IN_PLACE_LEVELS - 1;

	(void)state;
	item.why = &e;
	fx_heal();
	for (i = 0; i < LEVELS; i++) {
		assert_int_equal(store_mkdir(d[i], "d", &m, NULL, NULL), 0);
		assert_non_null(d[i + 1] = dir_child(d[i], "d"));
		assert_int_equal(store_symlink(d[i + 1], "l", "x", &m, NULL, NULL), 0);
		item.dir = d[i + 1];
		store_complete(&item, 1, STORE_SYNC_NONE);
		assert_int_equal(item.result, 0);
	}
	assert_in_range(fx_calls_of(FX_openat), LEVELS, 3 * LEVELS);
	assert_true(fx_calls_of(FX_fstatat) <= (DIR_IN_PLACE_LEVELS + 3) * LEVELS);
	assert_int_equal(renameat(dir_fd(d[far], NULL), "d", dir_fd(fx_root, NULL), "away"), 0);
	dir_fd_done(d[far]);
	dir_fd_done(fx_root);
	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, 0);
	for (i = LEVELS; i > 0; i--) {
		item = (struct store_item){ .dir = d[i], .finished = true, .why = &e };
		store_complete(&item, 1, STORE_SYNC_NONE);
		assert_int_equal(item.result, i == far + 1 ? PTCP_EIO : 0);
		assert_true(item.result == 0 || e.sys == ESTALE);
		dir_unref(d[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(steps), fx_tree_test(many_directories), fx_tree_test(one_fails),
		fx_tree_test(data_lost),
		fx_tree_test(cannot_sync), fx_tree_test(not_readable), fx_tree_test(name_lost),
		fx_tree_test(cannot_set_times), fx_tree_test(not_readable), fx_tree_test(name_lost),
		fx_tree_test(new_directories),
		fx_tree_test(periodic), fx_tree_test(directory_moved), fx_tree_test(journal_of_moved),
		fx_tree_test(root_moved), fx_tree_test(directory_replaced_by_link), fx_tree_test(deep),
		fx_tree_test(deep_one_by_one),
	};
	return cmocka_run_group_tests_name("store/commit", tests, NULL, NULL);
}
