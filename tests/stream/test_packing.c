/* Compression of chunks, and the choice of the level. */
#include "stream/packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "model/rng.h"
#include "wire/frame.h"

#define CHUNK WIRE_CHUNK_BYTES
#define GUARD 64

static struct packing *p;
static uint8_t *data, *before; /* a chunk and its guard, in the heap for the sanitizers */

static int setup(void **state)
{
	(void)state;
	data = malloc(CHUNK + GUARD);
	before = malloc(CHUNK + GUARD);
	assert_non_null(data);
	assert_non_null(before);
	assert_int_equal(packing_new(&p, 2, NULL, NULL), 0);
	packing_set(p, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	packing_free(p);
	free(data);
	free(before);
	return 0;
}

#define packing_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Content of `random` parts in 256: the smaller, the better it shrinks. */
static void fill(struct rng *r, uint32_t n, unsigned random)
{
	uint32_t i;

	for (i = 0; i < CHUNK + GUARD; i++)
		data[i] = i < n && rng_next(r) % 256 < random ? (uint8_t)rng_next(r) : (uint8_t)(i / 100);
	memcpy(before, data, CHUNK + GUARD);
}

/* Lengths and contents of every kind come back as they were; nothing beyond them is touched. */
static void there_and_back(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 255, 256, 257, 1000, 4096, 65536, CHUNK - 1, CHUNK };
	struct rng r = { 1 };
	unsigned i, random, packed_ones = 0;
	uint32_t packed;
	uint64_t from = 0, to = 0;

	(void)state;
	for (i = 0; i < 400; i++) {
		const uint32_t n = i < 100 ? lengths[i % 10] : 1 + (uint32_t)(rng_next(&r) % CHUNK);

		random = i % 5 * 64;
		packing_set(p, (uint8_t)(1 + i % 19 % 9));
		fill(&r, n, random);
		packed = packing_pack(p, NULL, data, n);
		assert_in_range(packed, 0, n - 1);
		assert_memory_equal(data + n, before + n, CHUNK + GUARD - n);
		if (packed == 0) {
			assert_memory_equal(data, before, n);
			continue;
		}
		packed_ones++;
		from += n;
		to += packed;
		memset(data + packed, 0xaa, n - packed);
		assert_int_equal(packing_unpack(NULL, data, packed, n), 0);
		assert_memory_equal(data, before, CHUNK + GUARD);
	}
	assert_in_range(packed_ones, 150, 399);
	assert_int_equal(packing_counts(p).from_bytes, from);
	assert_int_equal(packing_counts(p).to_bytes, to);
}

static void off(void **state)
{
	struct rng r = { 1 };

	(void)state;
	fill(&r, CHUNK, 0);
	packing_set(p, 0);
	assert_int_equal(packing_pack(p, NULL, data, CHUNK), 0);
	assert_int_equal(packing_pack(NULL, NULL, data, CHUNK), 0);
	assert_memory_equal(data, before, CHUNK);
}

/* Fills `data` and the copy with n bytes of the form, and bytes that must stay. */
static void load(const uint8_t *form, uint32_t n)
{
	memset(before, 0x5a, CHUNK + GUARD);
	memcpy(before, form, n);
	memcpy(data, before, CHUNK + GUARD);
}

/* Forms that are damaged, cut off, or of another number of bytes: refused, unless the damage is in the content
 * alone; and never is a byte written beyond the n of the block. */
static void wrong_forms(void **state)
{
	static uint8_t form[CHUNK];
	struct rng r = { 7 };
	uint32_t n, packed;
	unsigned i;
	int status;

	(void)state;
	for (i = 0; i < 4000; i++) {
		n = 400 + (uint32_t)(rng_next(&r) % 5000);
		fill(&r, n, 40);
		packed = packing_pack(p, NULL, data, n);
		assert_in_range(packed, 30, n - 1);
		memcpy(form, data, packed);
		switch (i % 4) {
		case 0: form[rng_next(&r) % packed] ^= (uint8_t)(1 + rng_next(&r) % 255); break;
		case 1: packed = 1 + (uint32_t)(rng_next(&r) % (packed - 1)); break;
		case 2: n += rng_next(&r) % 2 != 0 ? 1 : n / 3; break;
		default: n -= (n - packed) / 2; break;
		}
		load(form, packed);
		status = packing_unpack(p, data, packed, n);
		assert_true(status == PTCP_EVERIFY || (status == 0 && i % 4 == 0));
		assert_memory_equal(data + n, before + n, CHUNK + GUARD - n);
	}
}

/* A form of few bytes that stands for many, alone or behind others, and forms without content. */
static void bombs(void **state)
{
	enum { MANY = 64 * CHUNK };
	uint8_t *zeros = calloc(1, MANY), *form = malloc(CHUNK);
	const size_t bomb = ZSTD_compress(form, CHUNK, zeros, MANY, 1);
	struct rng r = { 5 };
	const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4 };
	size_t whole;

	(void)state;
	assert_false(ZSTD_isError(bomb));
	assert_true(bomb < CHUNK / 2);
	load(form, (uint32_t)bomb);
	assert_int_equal(packing_unpack(p, data, (uint32_t)bomb, CHUNK), PTCP_EVERIFY);
	assert_memory_equal(data + CHUNK, before + CHUNK, GUARD);
	load(skippable, sizeof skippable);
	assert_int_equal(packing_unpack(p, data, sizeof skippable, 1000), PTCP_EVERIFY);
	/* Two of half a chunk fill a chunk, three do not fit. */
	whole = ZSTD_compress(form, CHUNK, zeros, CHUNK / 2, 1);
	memcpy(form + whole, form, whole);
	memcpy(form + 2 * whole, form, whole);
	load(form, (uint32_t)(3 * whole));
	assert_int_equal(packing_unpack(p, data, (uint32_t)(3 * whole), CHUNK), PTCP_EVERIFY);
	assert_memory_equal(data + CHUNK, before + CHUNK, GUARD);
	load(form, (uint32_t)(2 * whole));
	assert_int_equal(packing_unpack(p, data, (uint32_t)(2 * whole), CHUNK), 0);
	assert_memory_equal(data, zeros, CHUNK);
	/* The length of a form is below that of its content. */
	load(form, 600);
	assert_int_equal(packing_unpack(p, data, 600, 600), PTCP_EVERIFY);
	assert_int_equal(packing_unpack(p, data, 100, CHUNK + 1), PTCP_EVERIFY);
	/* Valid forms: one that is longer than its content, and one of more than a chunk. */
	fill(&r, 600, 256);
	whole = ZSTD_compress(form, CHUNK, data, 600, 1);
	assert_in_range(whole, 601, 700);
	load(form, (uint32_t)whole);
	assert_int_equal(packing_unpack(p, data, (uint32_t)whole, 600), PTCP_EVERIFY);
	whole = ZSTD_compress(form, CHUNK, zeros, CHUNK + 1, 1);
	load(form, (uint32_t)whole);
	assert_int_equal(packing_unpack(p, data, (uint32_t)whole, CHUNK + 1), PTCP_EVERIFY);
	free(zeros);
	free(form);
}

/* Chunks of a file that does not shrink are tried rarely; those of another file, and those behind one that shrinks, at
 * once. */
static void tries(void **state)
{
	struct rng r = { 3 };
	const int random_file = 0, text_file = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < 200; i++) {
		fill(&r, CHUNK, 256);
		assert_int_equal(packing_pack(p, &random_file, data, CHUNK), 0);
	}
	for (i = 0; i < 33; i++) { /* at the latest after the pause */
		fill(&r, CHUNK, 10);
		if (packing_pack(p, &random_file, data, CHUNK) > 0)
			break;
	}
	assert_in_range(i, 1, 32);
	fill(&r, CHUNK, 10);
	assert_true(packing_pack(p, &random_file, data, CHUNK) > 0);
	for (i = 0; i < 20; i++) {
		fill(&r, CHUNK, 256);
		assert_int_equal(packing_pack(p, &random_file, data, CHUNK), 0);
	}
	fill(&r, CHUNK, 10);
	assert_true(packing_pack(p, &text_file, data, CHUNK) > 0);
}

/* Compressors are charged to the session; without memory the data stays as it is, and nothing is lost. */
static void memory(void **state)
{
	struct memory_budget *budget;
	struct memory_account *account;
	struct packing *few;
	struct ptcp_err why;
	struct rng r = { 1 };
	uint64_t empty;
	uint8_t level;

	(void)state;
	assert_int_equal(memory_budget_new(&budget, UINT64_C(32) << 20, &why), 0);
	assert_int_equal(memory_account_new(&account, budget, "client", &why), 0);
	memory_account_admit(account, true);
	empty = memory_budget_used(budget);
	assert_int_equal(packing_new(&few, 2, account, &why), 0);
	for (level = 1; level <= 9; level++) {
		packing_set(few, level);
		fill(&r, CHUNK, 10);
		assert_true(packing_pack(few, NULL, data, CHUNK) > 0);
	}
	assert_in_range(memory_budget_used(budget), empty + 1000000, empty + 8000000);
	packing_free(few);
	assert_int_equal(memory_budget_used(budget), empty);
	memory_account_free(account);
	memory_budget_free(budget);

	assert_int_equal(memory_budget_new(&budget, 3 << 20, &why), 0); /* a quarter for a session */
	assert_int_equal(memory_account_new(&account, budget, "client", &why), 0);
	assert_int_equal(packing_new(&few, 2, account, &why), 0);
	packing_set(few, 9);
	fill(&r, CHUNK, 10);
	packing_pack(few, NULL, data, CHUNK);
	assert_in_range(memory_budget_used(budget), 0, 1 << 20);
	packing_free(few);
	assert_int_equal(memory_budget_used(budget), 0);
	memory_account_free(account);
	memory_budget_free(budget);
}

/* With WIRE_COMPRESS_AUTO: off at first on a near path, on for a far one; then as fast as the measured rates demand. */
static void adapts(void **state)
{
	struct mono now = { 1 };
	struct rng r = { 1 };
	unsigned i;

	(void)state;
	packing_set(p, WIRE_COMPRESS_AUTO);
	packing_begin(p, 1e-4);
	assert_int_equal(packing_level(p), 0);
	for (i = 0; i < 3; i++) { /* 1 MB/s, although a stream waits */
		now = mono_add_ns(now, 300 * UINT64_C(1000000));
		packing_sent(p, 0, 300000, true, now);
	}
	assert_in_range(packing_level(p), 1, 9);
	for (i = 0; i < 3; i++) { /* 100 GB/s */
		fill(&r, CHUNK, 10);
		packing_pack(p, NULL, data, CHUNK);
		now = mono_add_ns(now, 300 * UINT64_C(1000000));
		packing_sent(p, 0, UINT64_C(30000000000), true, now);
	}
	assert_int_equal(packing_level(p), 0);
	fill(&r, CHUNK, 10);
	assert_true(packing_pack(p, NULL, data, CHUNK) > 0); /* one chunk is tried, for the next decision */
	fill(&r, CHUNK, 10);
	assert_int_equal(packing_pack(p, NULL, data, CHUNK), 0);
	packing_set(p, WIRE_COMPRESS_AUTO);
	packing_begin(p, 1); /* only the first stream counts */
	assert_int_equal(packing_level(p), 0);
}

static void begins_on_a_far_path(void **state)
{
	(void)state;
	packing_set(p, WIRE_COMPRESS_AUTO);
	packing_begin(p, .02);
	assert_int_equal(packing_level(p), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		packing_test(there_and_back), packing_test(off), packing_test(wrong_forms), packing_test(bombs),
		packing_test(tries), packing_test(memory), packing_test(adapts), packing_test(begins_on_a_far_path)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
