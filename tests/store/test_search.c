/* Blocks and pieces that are in an old file at other offsets: any edits of any files, with a plain search as the
 * oracle. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/bitmap.h"
#include "model/rng.h"
#include "offer.h"
#include "store/hash.h"

#define BLOCK HASH_CHUNK_BYTES
#define PIECE HASH_PIECE_BYTES
#define BLOCKS_MAX 64u
#define FILE_MAX (BLOCKS_MAX * BLOCK)

struct bytes {
	uint8_t *p;
	size_t n;
};

static struct bytes bytes_new(size_t n)
{
	struct bytes b = { malloc(FILE_MAX), n };

	assert_non_null(b.p);
	return b;
}

static void fill(struct rng *r, uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)rng_next(r);
}

static size_t below(struct rng *r, size_t n) { return n == 0 ? 0 : (size_t)(rng_next(r) % n); }

/* Inserts, removes, replaces or moves some bytes. */
static void edit(struct rng *r, struct bytes *b)
{
	size_t at = below(r, b->n), n = 1 + below(r, below(r, 4) == 0 ? 300000 : 50), from;
	unsigned what = (unsigned)below(r, 4);

	if (what == 0 && b->n + n <= FILE_MAX) {
		memmove(b->p + at + n, b->p + at, b->n - at);
		fill(r, b->p + at, n);
		b->n += n;
		return;
	}
	n = n < b->n - at ? n : b->n - at;
	if (what == 1 && b->n - n > BLOCK) {
		memmove(b->p + at, b->p + at + n, b->n - at - n);
		b->n -= n;
	} else if (what == 2) {
		fill(r, b->p + at, n);
	} else {
		from = below(r, b->n - n + 1);
		memmove(b->p + at, b->p + from, n);
	}
}

static uint32_t count_of(size_t n, uint32_t unit) { return (uint32_t)((n + unit - 1) / unit); }

static void sums_of(const struct bytes *b, uint32_t unit, struct block_sum *sum)
{
	size_t at, n;

	for (at = 0; at < b->n; at += unit) {
		n = b->n - at < unit ? b->n - at : unit;
		*sum++ = (struct block_sum){ .content = hash_content(b->p + at, n),
			.head = n >= HASH_HEAD_BYTES ? hash_head(b->p + at) : 0 };
	}
}

static ssize_t read_bytes(void *arg, void *buf, size_t n, uint64_t off)
{
	const struct bytes *b = arg;
	size_t got = off >= b->n ? 0 : b->n - off < n ? b->n - (size_t)off : n;

	memcpy(buf, b->p + off, got);
	return (ssize_t)got;
}

/* ---- Heads ---- */

static void heads_roll(void **state)
{
	const uint32_t leave = hash_head_leave();
	struct rng r = { 3 };
	uint8_t p[4096];
	uint32_t head, i;

	(void)state;
	fill(&r, p, sizeof p);
	head = hash_head(p);
	for (i = 1; i + HASH_HEAD_BYTES <= sizeof p; i++) {
		head = hash_head_roll(head, p[i - 1], p[i - 1 + HASH_HEAD_BYTES], leave);
		assert_int_equal(head, hash_head(p + i));
	}
	memset(p, 0, sizeof p);
	assert_int_equal(hash_head(p), 0); /* pages of zeros are not looked for */
	p[HASH_HEAD_BYTES - 1] = 7;
	assert_int_equal(hash_head(p), 7);
	p[HASH_HEAD_BYTES - 2] = 2;
	assert_int_equal(hash_head(p), 2 * HASH_HEAD_FACTOR + 7);
}

/* ---- The search ---- */

/* Another unit that was found lies over that place. */
static bool overlaps(const uint64_t *found, uint32_t n, uint32_t unit, uint64_t off)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (found[i] != SEARCH_NOWHERE && found[i] < off + unit && off < found[i] + unit)
			return true;
	return false;
}

/* Each unit that is somewhere is found, unless another one is there, and is where it was found. */
static void everything_is_found(void **state)
{
	static struct block_sum sum[FILE_MAX / PIECE];
	static uint64_t found[FILE_MAX / PIECE];
	unsigned seed;

	(void)state;
	for (seed = 1; seed <= 30; seed++) {
		struct rng r = { seed };
		struct bytes old = bytes_new(2 * BLOCK + below(&r, 6 * BLOCK)), new = bytes_new(old.n);
		uint32_t unit = seed % 2 ? PIECE : BLOCK, i, n, n_found = 0;
		struct search s = { .unit = sum, .unit_bytes = unit, .read = read_bytes, .arg = &old };
		uint64_t scanned;

		fill(&r, old.p, old.n);
		memcpy(new.p, old.p, old.n);
		for (i = 0; i < seed % 8; i++)
			edit(&r, &new);
		sums_of(&new, unit, sum);
		s.n = count_of(new.n, unit);
		s.last_bytes = new.n % unit > 0 ? (uint32_t)(new.n % unit) : unit;
		memset(found, 0xff, s.n * sizeof *found);
		assert_int_equal(search_file(&s, 0, old.n, found, &scanned, NULL), 0);
		assert_true(scanned <= old.n);
		for (i = 0; i < s.n; i++) {
			n = i == s.n - 1 ? s.last_bytes : unit;
			if (found[i] != SEARCH_NOWHERE) {
				assert_true(found[i] <= old.n && n <= old.n - found[i]);
				assert_memory_equal(old.p + found[i], new.p + (size_t)i * unit, n);
				n_found++;
			} else if (i + 1 < s.n) {
				const uint8_t *there = memmem(old.p, old.n, new.p + (size_t)i * unit, n);

				assert_true(there == NULL || overlaps(found, s.n, unit, (uint64_t)(there - old.p)));
			}
		}
		assert_true(seed % 8 > 3 || n_found > 0);
		free(old.p);
		free(new.p);
	}
}

/* What repeats itself begins like everything: the search gives such units up, in linear time, and finds the others. */
static void repetitions_do_not_slow_it_down(void **state)
{
	static struct block_sum sum[SEARCH_UNITS_MAX];
	static uint64_t found[SEARCH_UNITS_MAX];
	struct bytes old = bytes_new(8 * BLOCK), new = bytes_new(8 * BLOCK);
	struct search s = { .unit = sum, .unit_bytes = PIECE, .last_bytes = PIECE, .read = read_bytes, .arg = &old };
	struct rng r = { 5 };
	uint64_t scanned;
	size_t i;

	(void)state;
	for (i = 0; i < old.n; i++)
		old.p[i] = (uint8_t)"abc"[i % 3];
	memcpy(new.p, old.p, old.n);
	for (i = 0; i < new.n; i += PIECE)
		new.p[i + PIECE - 1] = (uint8_t)rng_next(&r); /* all have the same beginning, one of three,
		    and none is there */
	fill(&r, old.p + 3 * BLOCK + 77, PIECE);
	memcpy(new.p + 5 * BLOCK, old.p + 3 * BLOCK + 77, PIECE);
	sums_of(&new, PIECE, sum);
	s.n = count_of(new.n, PIECE);
	memset(found, 0xff, sizeof found);
	assert_int_equal(search_file(&s, 0, old.n, found, &scanned, NULL), 0);
	assert_true(found[5 * BLOCK / PIECE] == 3 * BLOCK + 77);
	free(old.p);
	free(new.p);
}

/* ---- With files ---- */

/* Of one run. */
struct counts {
	uint64_t literal; /* bytes that had to be sent */
	uint32_t good;    /* blocks that were found as a whole */
	uint32_t split;   /* blocks of which pieces were looked for */
};

enum { STEP = 5 }; /* blocks compared at a time */

/* The receiver: matches the blocks, then splits the others, and receives what is left. */
static struct counts receive(const struct bytes *new, uint64_t allowed, bool clones)
{
	static struct block_sum sum[BLOCKS_MAX], piece[FILE_MAX / PIECE];
	const struct meta m = { .set_mode = true, .mode = 0644, .mtime = { 2000, 0 } };
	struct sink_opts opts = { .block_bytes = BLOCK, .has_version = true, .matches = true, .delta = true };
	struct sink *s = sink_new(fx_root, "f", new->n, &m, &opts);
	uint32_t blocks = count_of(new->n, BLOCK), i, k, first, n, at, pieces;
	struct sink_search search = { .allowed_bytes = allowed };
	static uint8_t buf[BLOCK];
	struct sink_run runs[SINK_RUNS];
	struct counts c = { 0, 0, 0 };
	uint64_t has[SINK_SPLIT], of[BLOCKS_MAX] = { 0 };
	bool good[BLOCKS_MAX] = { false };
	struct sink_existing look;
	unsigned n_runs;

	atomic_store(&fx_clones, clones);
	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	assert_true(look.found == SINK_PART && look.candidates != NULL);
	sums_of(new, BLOCK, sum);
	sums_of(new, PIECE, piece);
	for (first = 0; first < blocks; first += n) {
		n = blocks - first < STEP ? blocks - first : STEP;
		assert_int_equal(sink_match(s, first, n, blocks - first, sum + first, &search, runs, &n_runs, NULL), 0);
		for (k = 0, at = first; k < n_runs; at += runs[k++].n) {
			assert_int_equal(runs[k].first, at);
			for (i = at; i < at + runs[k].n; i++)
				good[i] = runs[k].good;
			c.good += runs[k].good ? runs[k].n : 0;
			if (runs[k].to == 0)
				continue;
			assert_true(!runs[k].good && allowed > 0);
			assert_int_equal(sink_split(s, at, runs[k].n, piece + at * 64, runs[k].from, runs[k].to, has,
			    &search,
			    NULL), 0);
			memcpy(of + at, has, runs[k].n * sizeof *has);
			c.split += runs[k].n;
		}
		assert_int_equal(at, first + n);
	}
	for (i = 0; i < blocks; i++) {
		n = i == blocks - 1 ? (uint32_t)(new->n - (size_t)i * BLOCK) : BLOCK;
		pieces = count_of(n, PIECE);
		if (good[i])
			continue;
		memcpy(buf, new->p + (size_t)i * BLOCK, n);
		for (k = 0; k < pieces; k++) {
			at = k * PIECE;
			if (of[i] >> k & 1)
				assert_int_equal(sink_recall(s, buf + at, n - at < PIECE ? n - at : PIECE,
				    (uint64_t)i * BLOCK + at, NULL), 0);
			else
				c.literal += n - at < PIECE ? n - at : PIECE;
		}
		assert_true(pieces == 64 || of[i] >> pieces == 0);
		assert_memory_equal(buf, new->p + (size_t)i * BLOCK, n);
		assert_int_equal(sink_write(s, buf, n, (uint64_t)i * BLOCK, hash_content(buf, n), NULL), 0);
	}
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	free(look.claimed);
	free(look.candidates);
	atomic_store(&fx_clones, false);
	return c;
}

static void old_is(const struct bytes *old)
{
	static const struct timespec then[2] = { { 5, 0 }, { 5, 0 } };

	fx_write("f", old->p, old->n);
	assert_int_equal(utimensat(AT_FDCWD, fx_path("f"), then, 0), 0);
}

static void file_is(const struct bytes *b)
{
	uint8_t *is = malloc(FILE_MAX);

	assert_int_equal(fx_read("f", is, FILE_MAX), b->n);
	assert_memory_equal(is, b->p, b->n);
	assert_int_equal(fx_count(""), 1);
	free(is);
}

/* Whatever was edited, the file is right; and edits cost little more than the bytes that they touch. */
static void any_edits(void **state)
{
	unsigned seed, i, n;

	(void)state;
	for (seed = 1; seed <= 24; seed++) {
		struct rng r = { seed };
		struct bytes old = bytes_new(4 * BLOCK + below(&r, 12 * BLOCK)), new = bytes_new(old.n);
		struct counts c;

		fill(&r, old.p, old.n);
		memcpy(new.p, old.p, old.n);
		n = seed % 6;
		for (i = 0; i < n; i++)
			edit(&r, &new);
		old_is(&old);
		c = receive(&new, seed % 4 == 3 ? 0 : UINT64_MAX, seed % 4 == 2);
		file_is(&new);
		if (seed % 4 != 3 && c.literal > n * (300000u + 2 * PIECE) + PIECE)
			fail_msg("seed %u: %llu bytes for %u edits", seed, (unsigned long long)c.literal, n);
		free(old.p);
		free(new.p);
	}
}

/* An insertion moves all that follows: the blocks are found, and two or three pieces are sent. */
static void an_insertion(void **state)
{
	struct bytes old = bytes_new(20 * BLOCK + 1234), new = bytes_new(old.n + 10);
	struct counts c;
	struct rng r = { 1 };

	(void)state;
	fill(&r, old.p, old.n);
	memcpy(new.p, old.p, 5 * BLOCK + 100000);
	memcpy(new.p + 5 * BLOCK + 100000, "0123456789", 10);
	memcpy(new.p + 5 * BLOCK + 100010, old.p + 5 * BLOCK + 100000, old.n - 5 * BLOCK - 100000);
	old_is(&old);
	c = receive(&new, UINT64_MAX, false);
	file_is(&new);
	assert_true(c.good == 20 && c.literal <= 3 * PIECE);
	old_is(&old);
	c = receive(&new, 0, false); /* not allowed: only what did not move is found */
	file_is(&new);
	assert_true(c.good == 5 && c.literal == new.n - 5 * BLOCK);
	free(old.p);
	free(new.p);
}

/* Where the first step finds nothing, later ones look for no pieces, unless the user wants all to be compared. */
static void unrelated(void **state)
{
	static const uint64_t allowed[] = { FILE_MAX * 8, UINT64_MAX };
	struct bytes old = bytes_new(20 * BLOCK), new = bytes_new(old.n);
	struct rng r = { 9 };
	struct counts c;
	unsigned i;

	(void)state;
	fill(&r, old.p, old.n);
	fill(&r, new.p, new.n);
	for (i = 0; i < 2; i++) {
		old_is(&old);
		c = receive(&new, allowed[i], false);
		file_is(&new);
		assert_int_equal(c.literal, new.n);
		assert_int_equal(c.good, 0);
		assert_int_equal(c.split, allowed[i] == UINT64_MAX ? 20 : STEP);
	}
	free(old.p);
	free(new.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(heads_roll), fx_tree_test(everything_is_found),
		fx_tree_test(repetitions_do_not_slow_it_down), fx_tree_test(any_edits), fx_tree_test(an_insertion),
		fx_tree_test(unrelated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
