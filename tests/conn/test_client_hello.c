/* The label of a shared port: ClientHellos of OpenSSL, and changed ones.
 * against: local */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn/client_hello.h"

#define LABEL "0123456789abcdef0123456789abcdef"

struct hello {
	uint8_t at[CLIENT_HELLO_MAX_BYTES + 64];
	size_t n;
};

/* What OpenSSL sends first, with that server name (NULL: none). */
static struct hello hello_of(const char *name)
{
	static const unsigned char alpn[] = "\x06ptcp/1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct hello h = { .n = 0 };
	int n;

	assert_int_equal(SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION), 1);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	assert_int_equal(SSL_set_alpn_protos(ssl, alpn, sizeof alpn - 1), 0);
	if (name != NULL)
		assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
	assert_true(SSL_do_handshake(ssl) < 0);
	n = BIO_read(out, h.at, CLIENT_HELLO_MAX_BYTES);
	assert_true(n > 100);
	h.n = (size_t)n;
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return h;
}

static enum client_hello judge(const struct hello *h, char label[CLIENT_HELLO_LABEL_BYTES])
{
	size_t need = 0;

	return client_hello_read(label, &need, h->at, h->n);
}

static void finds_the_label(void **state)
{
	struct hello h = hello_of(LABEL);
	char label[CLIENT_HELLO_LABEL_BYTES] = "";

	(void)state;
	assert_int_equal(judge(&h, label), CLIENT_HELLO_LABEL);
	assert_string_equal(label, LABEL);
	/* bytes that follow do not matter */
	h.at[h.n++] = 0x17;
	assert_int_equal(judge(&h, label), CLIENT_HELLO_LABEL);
}

static void behind_relays(void **state)
{
	struct hello h = hello_of(LABEL);
	char label[CLIENT_HELLO_LABEL_BYTES] = "";

	(void)state;
	memmove(h.at + 1, h.at, h.n++);
	h.at[0] = 0x83;
	assert_int_equal(judge(&h, label), CLIENT_HELLO_LABEL);
	assert_string_equal(label, LABEL);
}

static void other_names(void **state)
{
	static const char *const names[] = { "example.org", "0123456789abcdef0123456789abcde",
		"0123456789abcdef0123456789abcdef0", "0123456789ABCDEF0123456789abcdef",
		"0123456789abcdef0123456789abcdeg" };
	char label[CLIENT_HELLO_LABEL_BYTES];
	struct hello h = hello_of(NULL);
	size_t i;

	(void)state;
	assert_int_equal(judge(&h, label), CLIENT_HELLO_PLAIN);
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		h = hello_of(names[i]);
		assert_int_equal(judge(&h, label), CLIENT_HELLO_PLAIN);
	}
}

/* Whatever part has arrived, exactly the rest is waited for: first the header, then the record. */
static void pieces(void **state)
{
	struct hello h = hello_of(LABEL);
	char label[CLIENT_HELLO_LABEL_BYTES];
	size_t i, need;

	(void)state;
	for (i = 0; i < h.n; i++) {
		need = 0;
		assert_int_equal(client_hello_read(label, &need, h.at, i), CLIENT_HELLO_MORE);
		assert_int_equal(need, i < 5 ? 5 : h.n);
	}
}

/* A record of 16 KiB or 64 KiB is not waited for. */
static void too_long(void **state)
{
	static const unsigned lengths[] = { CLIENT_HELLO_MAX_BYTES - 4, 16384, 65535 };
	char label[CLIENT_HELLO_LABEL_BYTES];
	struct hello h = hello_of(LABEL);
	size_t i, need;

	(void)state;
	for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		h.at[3] = (uint8_t)(lengths[i] >> 8);
		h.at[4] = (uint8_t)lengths[i];
		assert_int_equal(judge(&h, label), CLIENT_HELLO_PLAIN);
	}
	h.at[3] = (CLIENT_HELLO_MAX_BYTES - 5) >> 8;
	h.at[4] = (CLIENT_HELLO_MAX_BYTES - 5) & 0xff;
	assert_int_equal(client_hello_read(label, &need, h.at, h.n), CLIENT_HELLO_MORE);
	assert_int_equal(need, CLIENT_HELLO_MAX_BYTES);
}

static void no_client_hello(void **state)
{
	static const char *const others[] = { "GET / HTTP/1.0\r\n", "SSH-2.0-x\r\n", "\x15\x03\x01\x00\x02\x02\x28",
		"\x83GET /", "\x80\x80" };
	char label[CLIENT_HELLO_LABEL_BYTES];
	size_t i, need;

	(void)state;
	for (i = 0; i < sizeof others / sizeof *others; i++)
		assert_int_equal(client_hello_read(label, &need, (const uint8_t *)others[i], 7), CLIENT_HELLO_PLAIN);
	assert_int_equal(client_hello_read(label, &need, (const uint8_t *)"", 0), CLIENT_HELLO_MORE);
	assert_int_equal(client_hello_read(label, &need, (const uint8_t *)"\x80", 1), CLIENT_HELLO_MORE);
	assert_int_equal(need, 6);
}

/* No length inside leads out of the record: with each byte changed, and with the record cut short at each place (in a
 * buffer of that size, so that a sanitizer sees every byte beyond). */
static void damaged(void **state)
{
	struct hello h = hello_of(LABEL), other;
	char label[CLIENT_HELLO_LABEL_BYTES];
	size_t i, bit, need;
	uint8_t *exact;

	(void)state;
	for (i = 0; i < h.n; i++)
		for (bit = 0; bit < 8; bit++) {
			other = h;
			other.at[i] ^= (uint8_t)(1u << bit);
			if (judge(&other, label) == CLIENT_HELLO_LABEL)
				assert_int_equal(strspn(label, "0123456789abcdef"), 32);
		}
	for (i = 5; i < h.n; i++) {
		exact = malloc(i);
		assert_non_null(exact);
		memcpy(exact, h.at, i);
		exact[3] = (uint8_t)((i - 5) >> 8);
		exact[4] = (uint8_t)(i - 5);
		assert_int_equal(client_hello_read(label, &need, exact, i), CLIENT_HELLO_PLAIN);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_label), cmocka_unit_test(behind_relays), cmocka_unit_test(other_names),
		cmocka_unit_test(pieces), cmocka_unit_test(too_long), cmocka_unit_test(no_client_hello),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
