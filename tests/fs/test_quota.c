/* Quotas: what is taken and given back, compared with a count of the files; and that nobody gets past the limit. */
#include "fs/quota.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/fixture.h"
#include "store/leftover.h"
#include "store/manage.h"
#include "store/sink.h"
#include "store/walk.h"

#define LIMIT (256u * QUOTA_GRAIN)
#define BLOCK (4u * QUOTA_GRAIN)

static const struct meta plain = { .set_mtime = true, .mtime = { 1000, 7 } };
static struct usage *usage;
static struct ptcp_err why;
static uint8_t data[LIMIT];

static uint64_t counted(void)
{
	uint64_t bytes = QUOTA_GRAIN;
	struct walk_entry w;
	struct walk *all;

	assert_int_equal(walk_new(&all, NULL, NULL), 0);
	assert_int_equal(walk_add(all, fx_root, NULL, NULL), 0);
	while (walk_next(all, &w, NULL) > 0) {
		bytes += w.type == WALK_DIR_END ? 0 : usage_of_entry(w.format, w.disk_bytes, w.nlink);
		walk_entry_fini(&w);
	}
	walk_free(all);
	return bytes;
}

static void recount(void)
{
	usage_count_begin(usage);
	usage_count_end(usage, counted());
}

static int setup(void **state)
{
	memset(data, 'x', sizeof data);
	if (fx_tree_setup(state) != 0 || (usage = usage_new()) == NULL)
		return -1;
	recount();
	return tree_set_quota(fx_tree, usage, LIMIT, NULL);
}

static int teardown(void **state)
{
	usage_unref(usage);
	return fx_tree_teardown(state);
}

#define quota_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void agrees(void) { assert_int_equal(usage_bytes(usage), counted()); }
static uint64_t left(void) { return LIMIT - usage_bytes(usage); }

static struct sink *offer_in(struct dir *in, const char *name, uint64_t bytes)
{
	const struct sink_opts o = { .block_bytes = BLOCK, .has_version = true, .version = "v" };
	struct sink *s = sink_new(in, name, bytes, &plain, &o);

	assert_non_null(s);
	return s;
}

static struct sink *offer(const char *name, uint64_t bytes, bool sparse, bool unsized)
{
	const struct sink_opts o = { .block_bytes = BLOCK, .has_version = true, .version = "v", .sparse = sparse,
		.unsized = unsized };
	struct sink *s = sink_new(fx_root, name, bytes, &plain, &o);

	assert_non_null(s);
	return s;
}

static int complete(struct sink *s)
{
	struct store_item item = { .sink = s, .why = &why };

	store_complete(&item, 1, STORE_SYNC_NONE);
	return item.result;
}

static int write_blocks(struct sink *s, uint64_t from, uint64_t to, uint64_t size)
{
	uint64_t at, n;
	int r = 0;

	for (at = from; at < to && r == 0; at += n) {
		n = size - at < BLOCK ? size - at : BLOCK;
		r = sink_write(s, data, n, at, 1, &why);
	}
	return r;
}

/* As a session does it. */
static int add(const char *name, uint64_t bytes)
{
	struct sink *s = offer(name, bytes, false, false);
	struct sink_existing found = { 0 };
	int r = sink_inspect(s, &found, &why);

	free(found.claimed);
	if (r == 0 && (r = sink_reserve(s, &why)) == 0 && (r = write_blocks(s, 0, bytes, bytes)) == 0)
		r = complete(s);
	if (r < 0)
		sink_discard(s);
	sink_unref(s);
	return r;
}

static void files(void **state)
{
	(void)state;
	assert_int_equal(add("empty", 0), 0);
	assert_int_equal(add("one", 1), 0);
	assert_int_equal(add("more", 3 * BLOCK + 1), 0);
	agrees();
	assert_int_equal(add("more", BLOCK), 0); /* replaced by a smaller, */
	agrees();
	assert_int_equal(add("more", 9 * BLOCK), 0); /* and by a larger */
	agrees();
}

static void the_limit_is_exact(void **state)
{
	uint64_t room = left();

	(void)state;
	assert_int_equal(add("over", room + 1), PTCP_ENOSPC);
	assert_int_equal(why.sys, EDQUOT);
	assert_string_equal(why.msg, "needs at least 1.05 MB, and 1.04 MB of the quota of 1.05 MB are left (remove "
	    "files there, or have the server's administrator raise the quota)");
	assert_int_equal(fx_count("."), 0);
	agrees();
	assert_true(usage_refused(usage));
	recount();
	assert_false(usage_refused(usage));
	assert_int_equal(add("all", room), 0);
	agrees();
	assert_int_equal(left(), 0);
	assert_int_equal(add("empty", 0), PTCP_ENOSPC);
	assert_int_equal(manage_mkdir(fx_root, "d", false, &why), PTCP_ENOSPC);
	assert_int_equal(store_mkdir(fx_root, "d", NULL, NULL, &why), PTCP_ENOSPC);
	assert_int_equal(store_symlink(fx_root, "l", "x", &plain, NULL, &why), PTCP_ENOSPC);
	assert_int_equal(add("all", room), PTCP_ENOSPC); /* the old file stays until the new file is complete */
	agrees();
	tree_change_quota(fx_tree, 2 * LIMIT);
	assert_int_equal(add("all", room), 0);
	agrees();
}

/* Small files take more space than their bytes: what is needed is never less than what is left. */
static void needed_as_counted(void **state)
{
	const char *const small = "needs at least 19.5 MB, and 1.04 MB of the quota of 1.05 MB are left (";
	struct sink *s = offer("f", LIMIT - 3 * QUOTA_GRAIN, false, false);
	struct quota *q = dir_quota(fx_root);

	(void)state;
	assert_int_equal(quota_err(q, 4760, 23800, &why), PTCP_ENOSPC);
	assert_memory_equal(why.msg, small, strlen(small));
	assert_int_equal(quota_err(q, 1, 12000000, &why), PTCP_ENOSPC);
	assert_memory_equal(why.msg, "needs 12.0 MB, and", 18);
	assert_int_equal(quota_err(q, UINT64_MAX, 1, &why), PTCP_ENOSPC);
	assert_memory_equal(why.msg, "needs at least 184", 18);
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_int_equal(add("two", 2 * QUOTA_GRAIN), 0);
	assert_int_equal(add("small", 1), PTCP_ENOSPC);
	assert_int_equal(quota_err(q, 3, 5, &why), PTCP_ENOSPC); /* a large file, but only small ones remain */
	assert_memory_equal(why.msg, "needs at least 1.05 MB", 22);
	sink_discard(s);
	sink_unref(s);
}

static void interrupted(void **state)
{
	const uint64_t bytes = 20 * BLOCK;
	struct sink_existing found = { 0 };
	struct sink *s = offer("f", bytes, false, false);

	(void)state;
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_int_equal(usage_bytes(usage), QUOTA_GRAIN + bytes);
	assert_int_equal(write_blocks(s, 0, 5 * BLOCK, bytes), 0);
	sink_keep(s);
	sink_unref(s);
	assert_true(usage_bytes(usage) < QUOTA_GRAIN + 6 * BLOCK); /* the part remains, the rest is free */
	recount();
	s = offer("f", bytes, false, false);
	assert_int_equal(sink_inspect(s, &found, &why), 0);
	assert_int_equal(found.found, SINK_PART);
	free(found.claimed);
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_true(usage_bytes(usage) <= 2 * QUOTA_GRAIN + bytes); /* a grain for the journal */
	assert_int_equal(write_blocks(s, 5 * BLOCK, bytes, bytes), 0);
	assert_int_equal(complete(s), 0);
	sink_unref(s);
	assert_true(usage_bytes(usage) >= counted());
	recount();
	agrees();
}

/* From scratch, in place of the part of another version. */
static void restarted(void **state)
{
	const uint64_t bytes = LIMIT - 2 * BLOCK;
	struct sink *s = offer("f", bytes, false, false);
	struct sink_opts o = { .block_bytes = BLOCK, .has_version = true, .version = "w" };
	struct sink_existing found = { 0 };

	(void)state;
	assert_int_equal(write_blocks(s, 0, bytes - BLOCK, bytes), 0);
	sink_keep(s);
	sink_unref(s);
	recount();
	s = sink_new(fx_root, "f", bytes, &plain, &o);
	assert_int_equal(sink_inspect(s, &found, &why), 0);
	assert_int_equal(found.found, SINK_NOTHING);
	assert_int_equal(sink_reserve(s, &why), 0); /* the old part does not stand in its way */
	assert_int_equal(write_blocks(s, 0, bytes, bytes), 0);
	assert_int_equal(complete(s), 0);
	sink_unref(s);
	recount();
	agrees();
}

/* A client that promises holes, or an end, and sends data without end; or promises data, and sends none. */
static void liars(void **state)
{
	struct sink *s;
	uint64_t at;
	int kind;

	(void)state;
	for (kind = 0; kind < 2; kind++) {
		s = offer("f", UINT64_C(1) << 40, kind == 0, kind == 1);
		assert_int_equal(sink_reserve(s, &why), 0);
		for (at = 0; write_blocks(s, at, at + BLOCK, UINT64_MAX) == 0; at += BLOCK)
			assert_true(at <= LIMIT);
		assert_int_equal(why.code, PTCP_ENOSPC);
		assert_true(at + 2 * BLOCK > LIMIT - QUOTA_GRAIN);
		sink_discard(s);
		sink_unref(s);
		agrees();
	}
	s = offer("f", UINT64_C(1) << 60, false, false);
	assert_int_equal(sink_reserve(s, &why), PTCP_ENOSPC);
	sink_unref(s);
	s = offer("f", left(), false, false);
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_int_equal(left(), 0);
	assert_true(sink_discard_unopened(s));
	sink_unref(s);
	agrees();
}

static void holes(void **state)
{
	const uint64_t bytes = UINT64_C(1) << 34;
	struct sink *s = offer("f", bytes, true, false);
	static const uint8_t zero[BLOCK];

	(void)state;
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_int_equal(write_blocks(s, BLOCK, 2 * BLOCK, bytes), 0);
	assert_int_equal(sink_write(s, zero, BLOCK, 7 * BLOCK, 1, &why), 0);
	assert_int_equal(complete(s), 0);
	sink_unref(s);
	assert_true(usage_bytes(usage) >= counted() && usage_bytes(usage) <= counted() + QUOTA_GRAIN);
}

/* Blocks that a faulty path delivers twice. */
static void twice(void **state)
{
	struct sink *s = offer("f", 2 * BLOCK, false, false);

	(void)state;
	assert_int_equal(sink_reserve(s, &why), 0);
	assert_int_equal(write_blocks(s, 0, 2 * BLOCK, 2 * BLOCK), 0);
	tree_change_quota(fx_tree, usage_bytes(usage));
	assert_int_equal(write_blocks(s, 0, 2 * BLOCK, 2 * BLOCK), 0);
	assert_int_equal(complete(s), 0);
	sink_unref(s);
	agrees();
	s = offer("g", BLOCK * 1000, false, true); /* of unknown size */
	tree_change_quota(fx_tree, LIMIT);
	assert_int_equal(write_blocks(s, 0, 2 * BLOCK, UINT64_MAX), 0);
	assert_int_equal(write_blocks(s, 0, 2 * BLOCK, UINT64_MAX), 0);
	sink_set_size(s, 2 * BLOCK);
	assert_int_equal(complete(s), 0);
	sink_unref(s);
	agrees();
}

static void names(void **state)
{
	const char *const removed[] = { "f", "g", "h", "l" };
	struct store_file f = { .base = fx_root, .path = "f" };
	struct dir *d;
	struct stat st;
	size_t i;

	(void)state;
	assert_int_equal(store_mkdir(fx_root, "d", NULL, NULL, &why), 0);
	assert_int_equal(store_mkdir(fx_root, "d", NULL, NULL, &why), 0);
	assert_int_equal(manage_mkdir(fx_root, "e", false, &why), 0);
	assert_int_equal(manage_mkdir(fx_root, "e", true, &why), 0);
	assert_int_equal(store_symlink(fx_root, "l", "x", &plain, NULL, &why), 0);
	assert_int_equal(store_symlink(fx_root, "l", "y", &plain, NULL, &why), 0);
	agrees();
	assert_int_equal(add("f", 5 * BLOCK), 0);
	assert_int_equal(stat(fx_path("f"), &st), 0);
	f.dev = st.st_dev;
	f.ino = st.st_ino;
	assert_int_equal(store_hardlink(&f, fx_root, "g", &why), 0);
	assert_true(usage_bytes(usage) >= counted());
	recount();
	assert_int_equal(add("h", 3 * BLOCK), 0);
	assert_int_equal(manage_rename(fx_root, "h", fx_root, "h", true, &why), 0); /* to itself */
	agrees();
	assert_int_equal(manage_rename(fx_root, "h", fx_root, "f", true, &why), 0); /* g keeps the data */
	assert_true(usage_bytes(usage) >= counted());
	recount();
	assert_int_equal(manage_rename(fx_root, "f", fx_root, "h", false, &why), 0);
	agrees();
	for (i = 0; i < 4; i++)
		manage_remove(fx_root, removed[i], &why);
	agrees();
	assert_int_equal(dir_resolve(&d, fx_root, "d", NULL), 0);
	dir_unref(d);
	d = dir_child(fx_root, "d");
	assert_int_equal(manage_rmdir(d, &why), 0);
	dir_unref(d);
	agrees();
}

static void cleaned(void **state)
{
	struct sink *s = offer("f", 20 * BLOCK, false, false);
	const struct leftover_opts o = { .older_s = 0, .now = { .tv_sec = 4000000000 } };
	struct leftover_totals totals;

	(void)state;
	assert_int_equal(write_blocks(s, 0, 5 * BLOCK, 20 * BLOCK), 0);
	sink_keep(s);
	sink_unref(s);
	recount();
	assert_true(counted() > 5 * BLOCK);
	assert_int_equal(leftovers_clean(fx_root, &o, &totals, &why), 0);
	agrees();
}

/* A count that ends after new files were written, and may have missed them. */
static void counts_meanwhile(void **state)
{
	uint64_t before;

	(void)state;
	assert_int_equal(add("old", BLOCK), 0);
	usage_count_begin(usage);
	before = counted();
	assert_int_equal(add("new", BLOCK), 0);
	assert_int_equal(manage_remove(fx_root, "old", &why), 0);
	usage_count_end(usage, before);
	assert_int_equal(usage_bytes(usage), before + BLOCK);
	recount();
	agrees();
}

/* A second session on the same directory. */
static struct tree *other_session(struct dir **root)
{
	struct tree *t;

	assert_int_equal(tree_open(&t, fx_path(""), &fx_sys, NULL), 0);
	assert_int_equal(tree_set_quota(t, usage, LIMIT, NULL), 0);
	*root = tree_root(t);
	return t;
}

/* A session without a connection: one file has begun, one is complete, the others are only reserved. */
static void a_lost_session_lends(void **state)
{
	struct dir *root;
	struct tree *t = other_session(&root);
	struct sink *gone[4];
	uint64_t room;
	char name[8];
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "g%d", i);
		gone[i] = offer_in(root, name, i == 2 ? 3 * BLOCK : i == 3 ? 40 * BLOCK : 5);
		assert_int_equal(sink_reserve(gone[i], &why), 0);
	}
	assert_int_equal(write_blocks(gone[0], 0, 5, 5), 0);
	assert_int_equal(complete(gone[0]), 0);
	assert_int_equal(write_blocks(gone[1], 0, 5, 5), 0);
	assert_int_equal(write_blocks(gone[2], 0, BLOCK, 3 * BLOCK), 0);
	assert_int_equal(add("f", 30 * BLOCK), PTCP_ENOSPC);
	quota_lend(dir_quota(root));
	quota_lend(dir_quota(root));
	assert_int_equal(usage_bytes(usage), 3 * QUOTA_GRAIN + BLOCK);
	assert_int_equal(add("f", 30 * BLOCK), 0);
	assert_int_equal(quota_reclaim(dir_quota(root), &why), PTCP_ENOSPC);
	assert_int_equal(write_blocks(gone[2], BLOCK, 3 * BLOCK, 3 * BLOCK), 0); /* late data takes its space, */
	assert_int_equal(usage_bytes(usage), 3 * QUOTA_GRAIN + 33 * BLOCK);
	room = left();
	assert_int_equal(add("rest", room), 0);
	assert_int_equal(write_blocks(gone[3], 0, BLOCK, 40 * BLOCK), PTCP_ENOSPC); /* if there is any */
	assert_int_equal(complete(gone[1]), 0);
	assert_int_equal(complete(gone[2]), 0);
	assert_int_equal(usage_bytes(usage), LIMIT);
	for (i = 0; i < 4; i++) {
		sink_discard(gone[i]);
		sink_unref(gone[i]);
	}
	agrees();
	dir_unref(root);
	tree_unref(t);
}

static void a_session_that_returns_reclaims(void **state)
{
	struct dir *root;
	struct tree *t = other_session(&root);
	struct sink *f = offer_in(root, "f", 40 * BLOCK), *empty = offer_in(root, "empty", 0),
	    *late = offer_in(root, "late", BLOCK);
	uint64_t reserved;

	(void)state;
	assert_int_equal(quota_reclaim(dir_quota(root), &why), 0); /* nothing is lent */
	assert_int_equal(sink_reserve(f, &why), 0);
	assert_int_equal(sink_reserve(empty, &why), 0);
	reserved = usage_bytes(usage);
	quota_lend(dir_quota(root));
	assert_int_equal(usage_bytes(usage), QUOTA_GRAIN);
	assert_int_equal(sink_reserve(f, &why), 0);
	assert_int_equal(quota_reclaim(dir_quota(root), &why), 0);
	assert_int_equal(usage_bytes(usage), reserved);
	quota_lend(dir_quota(root));
	assert_int_equal(add("other", left()), 0);
	assert_int_equal(sink_reserve(late, &why), PTCP_ENOSPC);
	assert_int_equal(complete(empty), PTCP_ENOSPC);
	assert_int_equal(quota_reclaim(dir_quota(root), &why), PTCP_ENOSPC);
	assert_int_equal(why.sys, EDQUOT);
	assert_string_equal(why.msg, "needs at least 659 kB, and 0 B of the quota of 1.05 MB are left (remove files "
	    "there, or have the server's administrator raise the quota)");
	assert_int_equal(manage_remove(fx_root, "other", &why), 0);
	assert_int_equal(quota_reclaim(dir_quota(root), &why), 0);
	assert_int_equal(usage_bytes(usage), reserved);
	assert_int_equal(write_blocks(f, 0, 40 * BLOCK, 40 * BLOCK), 0);
	assert_int_equal(complete(f), 0);
	sink_discard(empty);
	sink_unref(empty);
	sink_unref(late);
	sink_unref(f);
	agrees();
	dir_unref(root);
	tree_unref(t);
}

#define RACERS 6
#define ROUNDS 60

static void *race(void *arg)
{
	unsigned id = *(unsigned *)arg, i;
	struct ptcp_err mine;
	char name[32], other[32];
	struct sink *s;
	uint64_t n;
	int r;

	for (i = 0; i < ROUNDS; i++) {
		n = (1 + (id * 7 + i * 3) % 20) * BLOCK;
		snprintf(name, sizeof name, "f%u", i % 3 == 0 ? i % 10 : id * 100 + i % 10); /* some names are shared */
		s = offer(name, n, i % 5 == 0, false);
		if ((r = sink_reserve(s, &mine)) == 0)
			for (r = 0, n /= BLOCK; n > 0 && r == 0; n--)
				r = sink_write(s, data, BLOCK, (n - 1) * BLOCK, 1, &mine);
		if (r == 0) {
			struct store_item item = { .sink = s, .why = &mine };

			store_complete(&item, 1, STORE_SYNC_NONE);
			r = item.result;
		}
		if (r < 0)
			sink_discard(s);
		sink_unref(s);
		snprintf(other, sizeof other, "f%u", (i + id) % 10);
		if (i % 4 == 1)
			manage_remove(fx_root, other, &mine);
		else if (i % 4 == 2)
			manage_rename(fx_root, name, fx_root, other, true, &mine);
	}
	return NULL;
}

static void many_race_for_the_last_bytes(void **state)
{
	unsigned id[RACERS], i;
	pthread_t t[RACERS];
	uint64_t now;

	(void)state;
	for (i = 0; i < RACERS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&t[i], NULL, race, &id[i]), 0);
	}
	for (i = 0; i < 200; i++) {
		assert_true(usage_bytes(usage) <= LIMIT);
		usleep(200);
	}
	for (i = 0; i < RACERS; i++)
		pthread_join(t[i], NULL);
	now = counted();
	assert_true(usage_bytes(usage) <= LIMIT);
	assert_true(now <= usage_bytes(usage)); /* nothing was given back twice */
	assert_true(usage_refused(usage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		quota_test(files), quota_test(the_limit_is_exact), quota_test(needed_as_counted),
		quota_test(interrupted), quota_test(restarted),
		quota_test(liars), quota_test(holes), quota_test(twice), quota_test(names), quota_test(cleaned),
		quota_test(counts_meanwhile), quota_test(a_lost_session_lends),
		quota_test(a_session_that_returns_reclaims), quota_test(many_race_for_the_last_bytes),
	};

	fx_in_memory();
	return cmocka_run_group_tests_name("fs/quota", tests, NULL, NULL);
}
