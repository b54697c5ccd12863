#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "sums/checksums.h"
#include "sums/sums.h"

static const char *const names[] = {
#define X(NAME, name, bit, bytes) [bit] = name,
	PTCP_DIGESTS(X)
#undef X
};
static const size_t sizes[] = {
#define X(NAME, name, bit, bytes) [bit] = bytes,
	PTCP_DIGESTS(X)
#undef X
};
#define N_DIGESTS (sizeof names / sizeof *names)

static size_t all_of(unsigned digests, const void *p, size_t n, size_t step, uint8_t out[SUMS_BYTES_MAX])
{
	struct sums *s;
	size_t at, part, got;

	assert_int_equal(sums_new(&s, digests, NULL), 0);
	for (at = 0; at < n; at += part) {
		part = n - at < step ? n - at : step;
		sums_add(s, (const uint8_t *)p + at, part);
	}
	got = sums_end(s, out);
	sums_free(s);
	assert_int_equal(got, sums_bytes(digests));
	return got;
}

/* Values of the documents that define the algorithms, and of coreutils and xxhsum. */
static void published(void **state)
{
	static const struct { const char *name, *text, *hex; } rows[] = {
		{ "sha256", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "sha512", "abc", "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
		{ "sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "md5", "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "blake2b", "abc", "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
		    "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923" },
		{ "adler32", "", "00000001" }, { "adler32", "Wikipedia", "11e60398" },
		{ "crc32c", "", "00000000" }, { "crc32c", "123456789", "e3069283" },
		{ "xxh3", "", "2d06800538d394c2" }, { "xxh3", "abc", "78af5f94892f3950" },
	};
	char hex[2 * SUMS_BYTES_MAX + 1];
	uint8_t out[SUMS_BYTES_MAX];
	unsigned seen = 0, bit;
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (bit = 0; strcmp(names[bit], rows[i].name) != 0; bit++)
			assert_true(bit + 1 < N_DIGESTS);
		seen |= 1u << bit;
		n = all_of(1u << bit, rows[i].text, strlen(rows[i].text), 2, out);
		assert_int_equal(n, sizes[bit]);
		text_hex(hex, out, n);
		assert_string_equal(hex, rows[i].hex);
	}
	assert_int_equal(seen, (1u << N_DIGESTS) - 1); /* each algorithm has a value here */
}

/* Each set of digests gives the digests of its members, in whatever pieces the bytes come. */
static void sets_and_pieces(void **state)
{
	static uint8_t data[70000], one[N_DIGESTS][SUMS_BYTES_MAX], out[SUMS_BYTES_MAX];
	unsigned set, bit;
	size_t i, at;

	(void)state;
	srand(1);
	for (i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)rand();
	for (bit = 0; bit < N_DIGESTS; bit++)
		all_of(1u << bit, data, sizeof data, sizeof data, one[bit]);
	for (set = 1; set < 1u << N_DIGESTS; set++) {
		all_of(set, data, sizeof data, 1 + (size_t)rand() % sizeof data, out);
		for (bit = 0, at = 0; bit < N_DIGESTS; bit++)
			if ((set & 1u << bit) != 0) {
				assert_memory_equal(out + at, one[bit], sizes[bit]);
				at += sizes[bit];
			}
	}
	assert_true(sums_bytes((1u << N_DIGESTS) - 1) <= SUMS_BYTES_MAX);
}

static uint32_t crc_bit_by_bit(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;
	int i;

	for (; n > 0; n--, p++)
		for (crc ^= *p, i = 0; i < 8; i++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
	return ~crc;
}

static uint32_t adler_by_definition(const uint8_t *p, size_t n)
{
	uint32_t a = 1, b = 0;

	for (; n > 0; n--, p++) {
		a = (a + *p) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

/* At each alignment, and for runs around those after which Adler-32 is reduced, of the largest bytes as well. */
static void checksums(void **state)
{
	static uint8_t data[4 * 5552 + 16];
	size_t round, from, n, cut;
	uint32_t crc, adler;

	(void)state;
	for (round = 0; round < 400; round++) {
		for (n = 0; n < sizeof data; n++)
			data[n] = round % 4 == 0 ? 0xff : (uint8_t)rand();
		from = round % 9;
		n = round < 100 ? round : round % 3 == 0 ? 5552 * (round % 4) + round % 5 :
		    (size_t)rand() % (sizeof data - 16);
		cut = n > 0 ? (size_t)rand() % n : 0;
		crc = crc_bit_by_bit(data + from, n);
		assert_int_equal(crc32c_add(0, data + from, n), crc);
		assert_int_equal(crc32c_add_plain(0, data + from, n), crc);
		assert_int_equal(crc32c_add(crc32c_add_plain(0, data + from, cut), data + from + cut, n - cut), crc);
		adler = adler_by_definition(data + from, n);
		assert_int_equal(adler32_add(1, data + from, n), adler);
		assert_int_equal(adler32_add(adler32_add(1, data + from, cut), data + from + cut, n - cut), adler);
	}
}

/* Of every set that has the expected digest, its digits are compared, and no others. */
static void expected(void **state)
{
	static const char *const bad[] = { "", ":", "sha256", "sha256:", "md5:00", ":900150983cd24fb0d6963f7d28e17f72",
		"md5:900150983cd24fb0d6963f7d28e17f7", "md5:900150983cd24fb0d6963f7d28e17f720",
		"md5:g00150983cd24fb0d6963f7d28e17f72", "md5,xxh3:900150983cd24fb0d6963f7d28e17f7278af5f94892f3950",
		"md6:900150983cd24fb0d6963f7d28e17f72", "a-name-that-is-longer-than-any:00" };
	uint8_t out[SUMS_BYTES_MAX];
	char hex[2 * SUMS_BYTES_MAX + 1], text[200];
	struct sums_expected x;
	struct ptcp_err e;
	unsigned digests;
	size_t i, at;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(sums_expected_parse(&x, bad[i]));
	assert_true(sums_expected_parse(&x, "md5:900150983CD24FB0D6963F7D28E17F72"));
	assert_int_equal(sums_expected_check_data(&x, "abc", 3, &e), 0);
	assert_int_equal(sums_expected_check_data(&x, "abd", 3, &e), PTCP_EVERIFY);
	for (digests = 1; digests < 1u << N_DIGESTS; digests++) {
		text_hex(hex, out, all_of(digests, "abc", 3, 3, out));
		for (i = 0, at = 0; i < N_DIGESTS; i++) {
			if ((digests & 1u << i) == 0)
				continue;
			snprintf(text, sizeof text, "%s:%.*s", names[i], (int)(2 * sizes[i]), hex + at);
			assert_true(sums_expected_parse(&x, text));
			assert_int_equal(sums_expected_check(&x, digests, hex, &e), 0);
			hex[at + 2 * sizes[i] - 1] ^= 1;
			assert_int_equal(sums_expected_check(&x, digests, hex, &e), PTCP_EVERIFY);
			hex[at + 2 * sizes[i] - 1] ^= 1;
			at += 2 * sizes[i];
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(published), cmocka_unit_test(sets_and_pieces), cmocka_unit_test(checksums),
		cmocka_unit_test(expected),
	};

	return cmocka_run_group_tests_name("sums/sums", tests, NULL, NULL);
}
