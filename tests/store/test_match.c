/* Blocks of the source that are here in another version: in an old part, or in the file that is to be replaced. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bitmap.h"
#include "offer.h"
#include "store/hash.h"
#include "store/part.h"

#define N 21u /* blocks of the file, the last of which is short */

static const struct offer big = { "big", 20 * OFFER_BLOCK + 100, 1, false };
static const struct offer sparse = { "big", 20 * OFFER_BLOCK + 100, 1, true };

static void hashes(const struct offer *o, struct block_sum sum[N])
{
	uint8_t buf[OFFER_BLOCK];
	uint32_t i, n;

	for (i = 0; i < N; i++) {
		n = offer_block(o, i, buf);
		sum[i] = (struct block_sum){ hash_content(buf, n), 0 };
	}
}

/* The complete file, of another time and with these blocks changed: an earlier version. */
static void old_file(const struct offer *o, uint32_t changed)
{
	static const struct timespec then[2] = { { 5, 0 }, { 5, 0 } };
	static uint8_t all[N * OFFER_BLOCK];
	uint32_t i;

	for (i = 0; i < N; i++) {
		offer_block(o, i, all + i * OFFER_BLOCK);
		if (changed >> i & 1)
			all[i * OFFER_BLOCK + 7] ^= 0x80;
	}
	fx_write("big", all, (size_t)o->size_bytes);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), then, 0), 0);
}

static bool in_place; /* files are written to */

static struct sink *sink_for(const struct offer *o, uint8_t version)
{
	const struct meta m = { .set_mode = true, .set_mtime = true, .mode = 0644, .mtime = { 1000 + version, 5 } };
	struct sink_opts opts = offer_opts(o);
	struct sink *s;

	opts.matches = opts.delta = true;
	opts.in_place = in_place;
	memset(opts.version, version, sizeof opts.version);
	s = sink_new(fx_root, o->name, o->size_bytes, &m, &opts);
	assert_non_null(s);
	return s;
}

/* Finds candidates, which are claimed as well, and matches them; returns those that are good. */
static uint32_t match(struct sink *s, const struct offer *o, const struct sink_existing *look, struct ptcp_err *e,
    int *r)
{
	struct sink_run runs[SINK_RUNS];
	uint32_t good = 0, told = 0, first, end, i, block;
	struct sink_search none = { 0 };
	uint8_t buf[OFFER_BLOCK];
	struct block_sum sum[N];
	unsigned n;

	hashes(o, sum);
	*r = 0;
	for (first = 0; *r == 0 && (first = bitmap_next(look->candidates, true, first, N)) < N; first = end) {
		end = bitmap_next(look->candidates, false, first, N);
		if ((*r = sink_match(s, first, end - first, end - first, sum + first, &none, runs, &n, e)) < 0)
			break;
		for (i = 0; i < n; i++) {
			struct digest all = { 0, 0 };

			for (block = runs[i].first; block < runs[i].first + runs[i].n; block++) {
				assert_true(block >= first && block < end && !(told >> block & 1));
				told |= 1u << block;
				good |= (uint32_t)runs[i].good << block;
				digest_add(&all, hash_term(block, offer_block(o, block, buf), sum[block].content));
			}
			assert_true(!runs[i].good || digest_equal(all, runs[i].sum));
		}
	}
	if (*r == 0)
		assert_int_equal(told, look->candidates[0] & ((1u << N) - 1));
	return good;
}

static void release(struct sink_existing *look)
{
	free(look->claimed);
	free(look->candidates);
}

/* Receives what is not good, and completes the file. */
static void complete(struct sink *s, const struct offer *o, uint32_t good)
{
	bool have[OFFER_BLOCKS] = { false };
	uint32_t i;

	for (i = 0; i < N; i++)
		have[i] = good >> i & 1;
	assert_int_equal(offer_rest(s, o, have, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	offer_holds("big", o);
	assert_int_equal(fx_count(""), 1);
}

#define ALL ((1u << N) - 1)

/* Copied, or cloned; the old file is whole until the end, as its other name shows. */
static void only_what_differs(void **state)
{
	static const uint32_t changed[] = { 0, 1, 1u << 20, 0x1234, ALL };
	static uint8_t was[N * OFFER_BLOCK], is[N * OFFER_BLOCK];
	struct sink_existing look;
	struct sink *s;
	unsigned i, way;
	int r;

	(void)state;
	for (i = 0; i < 2 * sizeof changed / sizeof *changed; i++) {
		way = i % 2;
		atomic_store(&fx_clones, way == 1);
		old_file(&big, changed[i / 2]);
		fx_read("big", was, sizeof was);
		s = sink_for(&big, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_true(look.found == SINK_PART && look.n_claimed == N && !look.in_part);
		assert_null(look.restart_why);
		assert_int_equal(look.claimed[0], ALL);
		assert_int_equal(look.candidates[0], ALL);
		assert_int_equal(match(s, &big, &look, NULL, &r), ALL & ~changed[i / 2]);
		assert_int_equal(r, 0);
		assert_int_equal(fx_read("big", is, sizeof is), big.size_bytes);
		assert_memory_equal(was, is, big.size_bytes);
		release(&look);
		complete(s, &big, ALL & ~changed[i / 2]);
	}
	atomic_store(&fx_clones, false);
}

/* The old file is shorter, or longer. */
static void other_lengths(void **state)
{
	static const struct { long bytes; uint32_t candidates, good; } cases[] = { { 1, 0, 0 }, { OFFER_BLOCK, 1, 1 },
		{ 3 * OFFER_BLOCK - 1, 7, 3 }, { 20 * OFFER_BLOCK + 99, ALL, ALL >> 1 }, { 50 * OFFER_BLOCK, ALL,
		    ALL } };
	struct sink_existing look;
	struct sink *s;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		old_file(&big, 0);
		assert_int_equal(truncate(fx_path("big"), cases[i].bytes), 0);
		s = sink_for(&big, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(look.found, cases[i].candidates != 0 ? SINK_PART : SINK_NOTHING);
		if (cases[i].candidates != 0) {
			assert_int_equal(look.candidates[0], cases[i].candidates);
			assert_int_equal(match(s, &big, &look, NULL, &r), cases[i].good);
		}
		release(&look);
		complete(s, &big, cases[i].good);
	}
}

/* Not without the option, nor without the hashes, nor of what is no file. */
static void not_wanted(void **state)
{
	struct sink_opts opts = offer_opts(&big);
	const struct meta m = { .mtime = { 1001, 5 } };
	struct sink_existing look;
	struct sink *s;
	int i;

	(void)state;
	old_file(&big, 0);
	for (i = 0; i < 3; i++) {
		opts.matches = i != 0;
		opts.delta = i != 1;
		opts.has_version = i != 2;
		s = sink_new(fx_root, "big", big.size_bytes, &m, &opts);
		opts.delta = opts.delta && opts.matches;
		if (i > 0) {
			assert_int_equal(sink_inspect(s, &look, NULL), 0);
			assert_int_equal(look.found, SINK_NOTHING);
		}
		sink_unref(s);
	}
	assert_int_equal(rename(fx_path("big"), fx_path("else")), 0);
	assert_int_equal(symlink("else", fx_path("big")), 0);
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.found, SINK_NOTHING);
	sink_unref(s);
}

/* The name gets another file, a link or nothing meanwhile: what the hashes say counts. */
static void the_old_file_changes(void **state)
{
	struct sink_existing look;
	struct sink *s;
	int way, r;

	(void)state;
	for (way = 0; way < 4; way++) {
		old_file(&big, 0);
		s = sink_for(&big, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		if (way == 0)
			old_file(&big, 0x111);
		else if (way == 1)
			assert_int_equal(truncate(fx_path("big"), 2 * OFFER_BLOCK + 5), 0);
		else
			assert_int_equal(rename(fx_path("big"), fx_path("else")), 0);
		if (way == 3)
			assert_int_equal(symlink("else", fx_path("big")), 0);
		assert_int_equal(match(s, &big, &look, NULL, &r), way == 0 ? ALL & ~0x111u : way == 1 ? 3 : 0);
		assert_int_equal(r, 0);
		release(&look);
		if (way >= 2)
			assert_int_equal(remove(fx_path("else")), 0);
		complete(s, &big, way == 0 ? ALL & ~0x111u : way == 1 ? 3 : 0);
	}
}

/* Cut off in the middle: the next run has the part by its journal, and the old file for the rest. */
static void cut_off(void **state)
{
	struct sink_run runs[SINK_RUNS];
	struct sink_existing look;
	struct sink_search none = { 0 };
	bool good[N] = { false };
	struct block_sum sum[N];
	struct sink *s;
	unsigned n, i;
	int r;

	(void)state;
	old_file(&big, 0x1f0);
	hashes(&big, sum);
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(sink_match(s, 0, 7, 7, sum, &none, runs, &n, NULL), 0);
	assert_int_equal(offer_write(s, &big, 5, NULL), 0);
	release(&look);
	sink_unref(s);
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_int_equal(look.claimed[0], ALL);
	assert_int_equal(look.candidates[0], ALL & ~0x2fu); /* 0 to 3 and 5 are in the part */
	while ((r = sink_verify_next(s, runs, &n, NULL)) >= 0) {
		for (i = 0; i < n; i++)
			good[runs[i].first] = runs[i].good;
		if (r == 0)
			break;
	}
	assert_true(r == 0 && good[0] && good[5]);
	assert_int_equal(match(s, &big, &look, NULL, &r), ALL & ~0x1ffu);
	release(&look);
	complete(s, &big, (ALL & ~0x1ffu) | 0x2f);
}

/* A part of another version, of another size and time: its blocks are looked for in place, then in the old file. */
static void parts_of_another_version(void **state)
{
	struct offer other = big;
	struct sink_existing look;
	uint8_t junk[OFFER_BLOCK] = "junk";
	struct sink *s;
	int r;

	(void)state;
	other.size_bytes += OFFER_BLOCK;
	s = sink_for(&other, 2);
	assert_int_equal(offer_write(s, &big, 0, NULL), 0);
	assert_int_equal(sink_write(s, junk, OFFER_BLOCK, OFFER_BLOCK, hash_content(junk, OFFER_BLOCK), NULL), 0);
	assert_int_equal(offer_write(s, &big, 2, NULL), 0);
	assert_int_equal(sink_write(s, junk, OFFER_BLOCK, 3 * OFFER_BLOCK, hash_content(junk, OFFER_BLOCK), NULL), 0);
	sink_unref(s);
	old_file(&big, 1u << 3 | 1u << 4);
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_true(look.found == SINK_PART && look.in_part && look.restart_why == NULL);
	assert_int_equal(look.candidates[0], ALL);
	assert_int_equal(match(s, &big, &look, NULL, &r), ALL & ~0x18u);
	release(&look);
	sink_unref(s);
	/* Blocks of both versions may be in the part: neither is resumed without the hashes. */
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_true(look.in_part);
	assert_int_equal(match(s, &big, &look, NULL, &r), ALL & ~0x18u);
	release(&look);
	complete(s, &big, ALL & ~0x18u);
}

static off_t allocated(const char *below)
{
	struct stat st;

	assert_int_equal(stat(fx_path(below), &st), 0);
	return st.st_blocks * 512;
}

/* The source has holes where the old file has data: those blocks read as zeros, and holes stay holes. */
static void holes(void **state)
{
	struct sink_existing look;
	uint32_t is_hole = 0, i;
	struct sink *s;
	int way, r;

	(void)state;
	for (i = 0; i < N; i++)
		is_hole |= (uint32_t)offer_hole(&sparse, i) << i;
	for (way = 0; way < 2; way++) {
		atomic_store(&fx_clones, way == 1);
		old_file(&sparse, is_hole & 0xff); /* data in the first of them */
		s = sink_for(&sparse, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(match(s, &sparse, &look, NULL, &r), ALL & ~(is_hole & 0xff));
		release(&look);
		complete(s, &sparse, ALL & ~(is_hole & 0xff)); /* which writes no hole */
		if (way == 0)
			assert_true(allocated("big") <= 14 * (off_t)OFFER_BLOCK);
	}
	atomic_store(&fx_clones, false);
}

/* Every system call fails once: the file is whole in the end, or the failure is told. */
static void calls_fail(void **state)
{
	struct sink_existing look;
	struct ptcp_err e;
	struct sink *s;
	uint32_t good;
	int nth, r, failures = 0, told = 0;
	char part[PART_NAME_BYTES];

	(void)state;
	for (nth = 1;; nth++) {
		atomic_store(&fx_clones, nth % 2 == 0);
		old_file(&big, 0x30);
		s = sink_for(&big, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		fx_heal();
		fx_fail_nth((nth + 1) / 2, EIO);
		good = match(s, &big, &look, &e, &r);
		failures = fx_failed();
		fx_heal();
		release(&look);
		assert_true(r == 0 || (r == PTCP_EIO && e.sys == EIO));
		told += r < 0;
		if (r == 0) {
			assert_int_equal(good & 0x30, 0);
			complete(s, &big, good);
		} else {
			sink_discard(s);
			sink_unref(s);
			/* A part that could not be locked stays. */
			remove(fx_path(part_name(part, "big", PART_SUFFIX)));
			assert_int_equal(fx_count(""), 1); /* the old file */
		}
		if (failures == 0 && nth % 2 == 0)
			break;
	}
	assert_true(nth > 40 && told > 5);
	atomic_store(&fx_clones, false);
}

/* What is compared, and differs, is looked through as well. */
static void after_a_comparison(void **state)
{
	const struct timespec same[2] = { { 1001, 5 }, { 1001, 5 } };
	struct sink_existing look;
	struct digest sum;
	struct sink *s;
	int r;

	(void)state;
	old_file(&big, 0x40);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("big"), same, 0), 0);
	s = sink_for(&big, 1);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_true(look.found == SINK_SAME && look.candidates == NULL);
	while ((r = sink_same_next(s, &sum, NULL)) == 1)
		;
	assert_true(r == 0 && !digest_equal(sum, offer_digest(&big)));
	assert_int_equal(sink_inspect_other(s, &look, NULL), 0);
	assert_true(look.found == SINK_PART && look.candidates[0] == ALL);
	assert_int_equal(match(s, &big, &look, NULL, &r), ALL & ~0x40u);
	release(&look);
	complete(s, &big, ALL & ~0x40u);
}

static ino_t inode(const char *name)
{
	struct stat st;

	assert_int_equal(stat(fx_path(name), &st), 0);
	assert_true(st.st_mode & S_IWUSR);
	return st.st_ino;
}

/* Into the file itself: whatever it had, of whatever length; another name has the same content at any time. */
static void written_in_place(void **state)
{
	static const uint32_t changed[] = { 0, 1, 1u << 20, 0x1234, ALL };
	static const long bytes[] = { 1, OFFER_BLOCK, 3 * OFFER_BLOCK - 1, 20 * OFFER_BLOCK + 99, 0, 50 * OFFER_BLOCK };
	const struct offer *of[] = { &big, &sparse };
	struct sink_existing look;
	uint32_t good, there;
	struct sink *s;
	unsigned i;
	ino_t is;
	int r;

	(void)state;
	in_place = true;
	for (i = 0; i < 2 * 5 * 6; i++) {
		const struct offer *o = of[i % 2];
		long n = bytes[i / 2 % 6] > 0 ? bytes[i / 2 % 6] : (long)o->size_bytes;

		old_file(o, changed[i / 12]);
		assert_int_equal(truncate(fx_path("big"), n), 0);
		is = inode("big");
		assert_int_equal(chmod(fx_path("big"), 0444), 0); /* is ours all the same */
		s = sink_for(o, 1);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		there = n < (long)o->size_bytes ? (1u << n / OFFER_BLOCK) - 1 : ALL;
		good = 0;
		if (there > 0) {
			assert_true(look.found == SINK_PART && look.in_part);
			assert_int_equal(look.candidates[0], there);
			good = match(s, o, &look, NULL, &r);
			assert_int_equal(r, 0);
			assert_int_equal(good, there & ~changed[i / 12]);
		} else {
			assert_int_equal(look.found, SINK_NOTHING);
		}
		release(&look);
		complete(s, o, good);
		assert_int_equal(inode("big"), is);
		assert_int_equal(fx_count(""), 1);
	}
	in_place = false;
}

/* Given up at any moment, and begun anew: what is equal stays. */
static void given_up_in_place(void **state)
{
	uint8_t buf[OFFER_BLOCK];
	struct sink_existing look;
	struct ptcp_err e;
	struct sink *s;
	uint32_t i, n;
	ino_t is;
	int r;

	(void)state;
	in_place = true;
	old_file(&big, ALL);
	is = inode("big");
	for (i = 0; i < N; i++) {
		s = sink_for(&big, (uint8_t)i);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(match(s, &big, &look, NULL, &r), (1u << i) - 1);
		release(&look);
		n = offer_block(&big, i, buf);
		assert_int_equal(sink_write(s, buf, n, (uint64_t)i * OFFER_BLOCK, hash_content(buf, n), NULL), 0);
		if (i % 3 == 0)
			sink_discard(s);
		else if (i % 3 == 1)
			sink_keep(s);
		sink_unref(s);
	}
	assert_int_equal(inode("big"), is);
	offer_holds("big", &big);
	assert_int_equal(fx_count(""), 1);
	s = sink_for(&big, 1); /* another file takes the name meanwhile */
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	release(&look);
	assert_int_equal(rename(fx_path("big"), fx_path("away")), 0);
	fx_text("big", "another");
	assert_int_equal(offer_commit(s, &e), PTCP_EIO);
	assert_int_equal(e.sys, ESTALE);
	sink_discard(s);
	sink_unref(s);
	fx_holds("big", "another");
	in_place = false;
}

/* Another entry takes the name between the inspection and the first write, such as a FIFO or an excluded file. */
static void another_in_place(void **state)
{
	struct sink_existing look;
	struct excluded *x;
	struct tree *tree;
	struct ptcp_err e;
	struct sink *s;
	unsigned i;
	struct dir *was = fx_root;

	(void)state;
	in_place = true;
	fx_mkdir("config");
	fx_text("config/secret", "secret");
	assert_int_equal(excluded_new(&x, NULL), 0);
	assert_int_equal(excluded_add(x, fx_path("config"), NULL), 0);
	assert_int_equal(tree_open(&tree, fx_path(""), &fx_sys, NULL), 0);
	assert_int_equal(tree_exclude(tree, x, NULL), 0);
	fx_root = tree_root(tree);
	for (i = 0; i < 2; i++) {
		const struct meta m = { .mtime = { 1, 2 } };
		struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .in_place = true };

		fx_text("small", "old");
		s = sink_new(fx_root, "small", 3, &m, &opts);
		assert_int_equal(sink_inspect(s, &look, NULL), 0);
		assert_int_equal(unlink(fx_path("small")), 0);
		if (i == 0)
			assert_int_equal(mkfifo(fx_path("small"), 0600), 0);
		else
			assert_int_equal(link(fx_path("config/secret"), fx_path("small")), 0);
		assert_int_equal(sink_write(s, "new", 3, 0, 0, &e), PTCP_EREFUSED);
		sink_discard(s);
		sink_unref(s);
		assert_int_equal(unlink(fx_path("small")), 0);
	}
	fx_holds("config/secret", "secret");
	dir_unref(fx_root);
	tree_unref(tree);
	fx_root = was;
	in_place = false;
}

/* An interrupted transfer has not let go of the file yet: the next one, which asks again, finds its own claim. */
static void locked_in_place(void **state)
{
	struct published published[2] = { { .max = 100 }, { .max = 100 } };
	struct sink_existing look;
	struct sink *s[3];
	struct ptcp_err e;
	unsigned i;

	(void)state;
	fx_text("big", "old");
	for (i = 0; i < 3; i++) { /* the last one is of the transfer of the second */
		const struct meta m = { .mtime = { 1, 2 }, .published = &published[i > 0] };
		struct sink_opts opts = { .block_bytes = OFFER_BLOCK, .in_place = true, .delta = true,
			.has_version = true };

		s[i] = sink_new(fx_root, "big", 2 * OFFER_BLOCK, &m, &opts);
		assert_non_null(s[i]);
	}
	assert_int_equal(sink_inspect(s[0], &look, &e), 0);
	assert_int_equal(sink_inspect(s[1], &look, &e), PTCP_EIO);
	assert_int_equal(e.sys, EWOULDBLOCK);
	sink_keep(s[0]);
	sink_unref(s[0]);
	assert_int_equal(sink_inspect(s[1], &look, &e), 0);
	assert_int_equal(sink_inspect(s[2], &look, &e), PTCP_EREFUSED);
	for (i = 1; i < 3; i++) {
		sink_discard(s[i]);
		sink_unref(s[i]);
		published_fini(&published[i - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(only_what_differs), fx_tree_test(other_lengths), fx_tree_test(not_wanted),
		fx_tree_test(the_old_file_changes), fx_tree_test(cut_off), fx_tree_test(parts_of_another_version),
		fx_tree_test(holes), fx_tree_test(calls_fail), fx_tree_test(after_a_comparison),
		fx_tree_test(written_in_place), fx_tree_test(given_up_in_place), fx_tree_test(another_in_place),
		fx_tree_test(locked_in_place),
	};
	return cmocka_run_group_tests_name("store/match", tests, NULL, NULL);
}
