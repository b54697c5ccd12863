#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "store/hash.h"

/* The values XXH3 is published with, so that a peer of any build agrees. */
static void golden(void **state)
{
	static const uint8_t header[24] = { 1, 2, 3, [23] = 24 };
	struct digest d;

	(void)state;
	assert_true(hash_content("", 0) == 0x2d06800538d394c2);
	assert_true(hash_content("abc", 3) == 0x78af5f94892f3950);
	assert_true(hash_check(header, 5) == 0x228ad565fb1e41e9);
	d = hash_term(1, 2, 3);
	assert_true(d.hi == 0xdc27f564cb94b787 && d.lo == 0xf49c7e2208c3199d);
}

/* What the processor's own code computes is what the plain code computes. */
static void fast_is_plain(void **state)
{
	enum { BIG = 1 << 20 };
	uint8_t *p = malloc(BIG + 64);
	uint32_t x = 1;
	size_t i, n;

	(void)state;
	assert_non_null(p);
	for (i = 0; i < BIG + 64; i++)
		p[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	for (n = 0; n < 5000; n++)
		assert_true(hash_content(p + n % 64, n) == hash_content_plain(p + n % 64, n));
	for (n = 5000; n <= BIG; n = n * 3 / 2 + 1)
		assert_true(hash_content(p + n % 64, n) == hash_content_plain(p + n % 64, n));
	free(p);
}

static uint64_t hash_chunks(const uint64_t *of, unsigned n)
{
	struct block_hash h = { 0 };
	unsigned i;

	for (i = 0; i < n; i++)
		block_hash_add(&h, of[i]);
	assert_int_equal(h.n, n);
	return block_hash_end(&h);
}

/* The hash of a block: its chunk's, or of the chunks' hashes in order. */
static void blocks_of_chunks(void **state)
{
	static const uint64_t of[HASH_CHUNKS_MAX] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint64_t swapped[2] = { 2, 1 };
	uint8_t be[8 * HASH_CHUNKS_MAX] = { 0 };
	unsigned i, k;

	(void)state;
	assert_true(hash_chunks(of, 1) == 1);
	assert_true(hash_chunks(swapped, 2) != hash_chunks(of, 2));
	for (i = 0; i < HASH_CHUNKS_MAX; i++)
		be[8 * i + 7] = (uint8_t)of[i];
	for (i = 2; i <= HASH_CHUNKS_MAX; i++) {
		assert_true(hash_chunks(of, i) == hash_content(be, 8 * (size_t)i));
		for (k = 2; k < i; k++)
			assert_true(hash_chunks(of, i) != hash_chunks(of, k));
	}
}

static void every_bit_counts(void **state)
{
	uint8_t header[24] = { 0 };
	uint64_t want = hash_check(header, 7);
	struct digest t = hash_term(0, 1, 2);
	int i;

	(void)state;
	for (i = 0; i < 24 * 8; i++) {
		header[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_true(hash_check(header, 7) != want);
		header[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (i = 0; i < 64; i++) {
		assert_true(hash_check(header, 7 ^ 1ull << i) != want);
		assert_false(digest_equal(hash_term(1ull << i, 1, 2), t));
		assert_false(digest_equal(hash_term(0, 1 ^ 1ull << i, 2), t));
		assert_false(digest_equal(hash_term(0, 1, 2 ^ 1ull << i), t));
	}
}

static void digest_in_any_order(void **state)
{
	struct digest up = { 0 }, down = { 0 }, carry = { 1, UINT64_MAX };
	uint64_t i;

	(void)state;
	for (i = 0; i < 1000; i++)
		digest_add(&up, hash_term(i, 4096, i * i));
	for (i = 1000; i-- > 0;)
		digest_add(&down, hash_term(i, 4096, i * i));
	assert_true(digest_equal(up, down));
	digest_add(&down, hash_term(0, 4096, 0));
	assert_false(digest_equal(up, down));
	digest_add(&carry, (struct digest){ UINT64_MAX, 2 });
	assert_true(digest_equal(carry, (struct digest){ 1, 1 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(fast_is_plain),
		cmocka_unit_test(blocks_of_chunks),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(digest_in_any_order),
	};
	return cmocka_run_group_tests_name("store/hash", tests, NULL, NULL);
}
