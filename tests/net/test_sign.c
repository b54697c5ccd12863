#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/evp.h>

#include "net/sign.h"

static const uint8_t text[] = "a text that is signed";

static struct identity an_identity(void)
{
	struct identity id;

	assert_int_equal(identity_new(&id, NULL), 0);
	return id;
}

static void signs(void **state)
{
	struct identity id = an_identity(), other = an_identity();
	uint8_t key[SIGN_KEY_BYTES], other_key[SIGN_KEY_BYTES], s[SIGN_BYTES], bent[sizeof text];
	size_t i;

	(void)state;
	assert_int_equal(sign_key(key, &id, NULL), 0);
	assert_int_equal(sign_key(other_key, &other, NULL), 0);
	assert_int_equal(sign_text(s, &id, text, sizeof text, NULL), 0);
	assert_true(sign_is_by(key, text, sizeof text, s));
	assert_false(sign_is_by(other_key, text, sizeof text, s));
	assert_false(sign_is_by(key, text, sizeof text - 1, s));
	for (i = 0; i < sizeof text * 8; i++) {
		memcpy(bent, text, sizeof text);
		bent[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sign_is_by(key, bent, sizeof text, s));
	}
	for (i = 0; i < SIGN_BYTES * 8; i++) {
		s[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(sign_is_by(key, text, sizeof text, s));
		s[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	identity_fini(&id);
	identity_fini(&other);
}

/* RFC 8032, 7.1, test 2 */
static void as_the_rfc_has_it(void **state)
{
	static const uint8_t key[SIGN_KEY_BYTES] = {
		0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
		0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c
	};
	static const uint8_t signature[SIGN_BYTES] = {
		0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f, 0x64, 0x25, 0x40,
		0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f, 0xb3, 0x76, 0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda,
		0x08, 0x5a, 0xc1, 0xe4, 0x3e, 0x15, 0x99, 0x6e, 0x45, 0x8f, 0x36, 0x13, 0xd0, 0xf1, 0x1d, 0x8c,
		0x38, 0x7b, 0x2e, 0xae, 0xb4, 0x30, 0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00
	};

	(void)state;
	assert_true(sign_is_by(key, (const uint8_t *)"\x72", 1, signature));
	assert_false(sign_is_by(key, (const uint8_t *)"\x73", 1, signature));
}

static void keys_and_fingerprints(void **state)
{
	struct identity id = an_identity();
	uint8_t key[SIGN_KEY_BYTES], digest[32];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned i;

	(void)state;
	assert_int_equal(sign_key(key, &id, NULL), 0);
	assert_int_equal(sign_fingerprint(fingerprint, key, NULL), 0);
	assert_string_equal(fingerprint, id.fingerprint);
	sign_digest(digest, id.fingerprint);
	sign_digest_text(fingerprint, digest);
	assert_string_equal(fingerprint, id.fingerprint);
	for (i = 0; i < 256; i++) {
		memset(digest, (int)i, sizeof digest);
		sign_digest_text(fingerprint, digest);
		assert_true(identity_fingerprint_ok(fingerprint));
		memset(digest, 0x5a, sizeof digest);
		sign_digest(digest, fingerprint);
		assert_int_equal(digest[0], i);
		assert_int_equal(digest[31], i);
	}
	identity_fini(&id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs),
		cmocka_unit_test(as_the_rfc_has_it),
		cmocka_unit_test(keys_and_fingerprints),
	};

	return cmocka_run_group_tests_name("net/sign", tests, NULL, NULL);
}
