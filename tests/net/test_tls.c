#include "net/tls.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"

#define ALL (1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM | 1u << PTCP_CIPHER_CHACHA20)

static struct identity ours, theirs;

static int make_identities(void **state)
{
	char dir[sizeof nf_dir + 8];

	if (nf_setup(state) != 0)
		return -1;
	snprintf(dir, sizeof dir, "%s/us", nf_dir);
	if (identity_load(&ours, dir, false, NULL) != 0)
		return -1;
	snprintf(dir, sizeof dir, "%s/them", nf_dir);
	return identity_load(&theirs, dir, false, NULL);
}

static int free_identities(void **state)
{
	identity_fini(&ours);
	identity_fini(&theirs);
	return nf_teardown(state);
}

struct pair {
	SSL_CTX *cc, *sc;
	SSL *client, *server;
};

static struct pair pair_of(unsigned client_ciphers, unsigned server_ciphers)
{
	struct pair p;
	BIO *a, *b;

	assert_int_equal(tls_new(&p.cc, &ours, false, client_ciphers, NULL), 0);
	assert_int_equal(tls_new(&p.sc, &theirs, true, server_ciphers, NULL), 0);
	p.client = SSL_new(p.cc);
	p.server = SSL_new(p.sc);
	SSL_set_connect_state(p.client);
	SSL_set_accept_state(p.server);
	assert_int_equal(BIO_new_bio_pair(&a, 65536, &b, 65536), 1);
	SSL_set_bio(p.client, a, a);
	SSL_set_bio(p.server, b, b);
	return p;
}

static void offer(struct pair *p, const char *alpn)
{
	unsigned char text[64];
	size_t n = strlen(alpn);

	text[0] = (unsigned char)n;
	memcpy(text + 1, alpn, n);
	assert_int_equal(SSL_set_alpn_protos(p->client, text, (unsigned)n + 1), 0);
}

/* Both ends have finished. */
static bool shake(struct pair *p)
{
	int i, c = 0, s = 0;
	char byte;

	for (i = 0; i < 10 && (c != 1 || s != 1); i++) {
		if (c != 1)
			c = SSL_do_handshake(p->client);
		if (s != 1)
			s = SSL_do_handshake(p->server);
	}
	if (c == 1 && s == 1)
		SSL_read(p->client, &byte, 1); /* an alert, or a ticket, if there is one */
	ERR_clear_error();
	return c == 1 && s == 1;
}

static void drop(struct pair *p)
{
	SSL_free(p->client);
	SSL_free(p->server);
	SSL_CTX_free(p->cc);
	SSL_CTX_free(p->sc);
}

static void a_good_pair(void **state)
{
	static const char *const names[] = { ALPN_CONTROL, ALPN_DATA };
	char fp[PTCP_FINGERPRINT_BYTES];
	const unsigned char *alpn;
	struct pair p;
	unsigned n, i;

	(void)state;
	for (i = 0; i < 2; i++) {
		p = pair_of(ALL, ALL);
		offer(&p, names[i]);
		assert_true(shake(&p));
		assert_int_equal(SSL_version(p.client), TLS1_3_VERSION);
		SSL_get0_alpn_selected(p.server, &alpn, &n);
		assert_int_equal(n, strlen(names[i]));
		assert_memory_equal(alpn, names[i], n);
		assert_int_equal(identity_fingerprint(fp, SSL_get0_peer_certificate(p.server), NULL), 0);
		assert_string_equal(fp, ours.fingerprint);
		assert_int_equal(identity_fingerprint(fp, SSL_get0_peer_certificate(p.client), NULL), 0);
		assert_string_equal(fp, theirs.fingerprint);
		assert_string_equal(SSL_get_cipher_name(p.client), "TLS_AES_128_GCM_SHA256");
		assert_false(SSL_session_reused(p.client));
		assert_false(SSL_SESSION_is_resumable(SSL_get0_session(p.client))); /* no tickets */
		drop(&p);
	}
}

static void alpn_unknown_or_none(void **state)
{
	static const char *const names[] = { "h2", "ptcp/2", "ptcp/1x", "ptcp/", "ptcp-route/2", "PTCP/1" };
	struct pair p;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		p = pair_of(ALL, ALL);
		offer(&p, names[i]);
		assert_false(shake(&p));
		drop(&p);
	}
	p = pair_of(ALL, ALL); /* no ALPN at all */
	SSL_do_handshake(p.client);
	SSL_do_handshake(p.server);
	ERR_clear_error();
	assert_true(SSL_do_handshake(p.client) != 1);
	assert_int_equal(ERR_GET_REASON(ERR_get_error()), SSL_AD_REASON_OFFSET + TLS1_AD_NO_APPLICATION_PROTOCOL);
	ERR_clear_error();
	drop(&p);
	p = pair_of(ALL, ALL); /* one of several is known */
	SSL_set_alpn_protos(p.client, (const unsigned char *)"\x02h2\x06ptcp/1", 10);
	assert_true(shake(&p));
	drop(&p);
}

static void older_tls(void **state)
{
	struct pair p = pair_of(ALL, ALL);

	(void)state;
	SSL_set_min_proto_version(p.client, TLS1_2_VERSION);
	SSL_set_max_proto_version(p.client, TLS1_2_VERSION);
	offer(&p, ALPN_CONTROL);
	assert_false(shake(&p));
	drop(&p);
	p = pair_of(ALL, ALL);
	SSL_set_min_proto_version(p.server, TLS1_2_VERSION);
	SSL_set_max_proto_version(p.server, TLS1_2_VERSION);
	offer(&p, ALPN_CONTROL);
	assert_false(shake(&p));
	drop(&p);
}

static void ciphers(void **state)
{
	static const struct {
		unsigned client, server;
		const char *name;
	} cases[] = {
		{ ALL, 1u << PTCP_CIPHER_CHACHA20, "TLS_CHACHA20_POLY1305_SHA256" },
		{ 1u << PTCP_CIPHER_AES256GCM, ALL, "TLS_AES_256_GCM_SHA384" },
		{ 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_NONE, ALL, "TLS_AES_128_GCM_SHA256" },
		{ 1u << PTCP_CIPHER_AES128GCM, 1u << PTCP_CIPHER_CHACHA20, NULL },
	};
	struct ptcp_err e;
	struct pair p;
	SSL_CTX *c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		p = pair_of(cases[i].client, cases[i].server);
		offer(&p, ALPN_CONTROL);
		assert_int_equal(shake(&p), cases[i].name != NULL);
		if (cases[i].name != NULL)
			assert_string_equal(SSL_get_cipher_name(p.server), cases[i].name);
		drop(&p);
	}
	assert_int_equal(tls_new(&c, &ours, true, 1u << PTCP_CIPHER_NONE, &e), PTCP_ECONFIG);
	assert_int_equal(tls_new(&c, &ours, true, 0, &e), PTCP_ECONFIG);
}

/* A certificate with another kind of key, or none. */
static void other_certificates(void **state)
{
	static const char *const kinds[] = { NULL, "RSA", "EC", "ED448" };
	struct pair p;
	EVP_PKEY *key;
	X509 *x;
	int i, side;

	(void)state;
	for (i = 0; i < 4; i++)
		for (side = 0; side < 2; side++) {
			SSL *bad;

			p = pair_of(ALL, ALL);
			bad = side == 0 ? p.client : p.server;
			offer(&p, ALPN_CONTROL);
			SSL_certs_clear(bad);
			if (i > 0) {
				key = i == 1 ? EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048) :
				    i == 2 ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256") :
				    EVP_PKEY_Q_keygen(NULL, NULL, kinds[i]);
				x = X509_new();
				X509_set_version(x, 2);
				X509_set_pubkey(x, key);
				X509_gmtime_adj(X509_getm_notBefore(x), 0);
				X509_gmtime_adj(X509_getm_notAfter(x), 1000);
				X509_sign(x, key, i == 3 ? NULL : EVP_sha256());
				SSL_set1_sigalgs_list(bad, "rsa_pss_rsae_sha256:ecdsa_secp256r1_sha256:ed448:ed25519");
				assert_int_equal(SSL_use_certificate(bad, x), 1);
				assert_int_equal(SSL_use_PrivateKey(bad, key), 1);
				X509_free(x);
				EVP_PKEY_free(key);
			}
			assert_false(shake(&p));
			drop(&p);
		}
}

static void exporter_and_mac(void **state)
{
	struct pair p = pair_of(ALL, ALL), q = pair_of(ALL, ALL);
	uint8_t a[32], b[32], c[32], m[32], n[32], session[16] = { 1 };

	(void)state;
	assert_true(tls_export(p.client, a, NULL) < 0); /* not before the handshake */
	offer(&p, ALPN_CONTROL);
	offer(&q, ALPN_CONTROL);
	assert_true(shake(&p) && shake(&q));
	assert_int_equal(tls_export(p.client, a, NULL), 0);
	assert_int_equal(tls_export(p.server, b, NULL), 0);
	assert_memory_equal(a, b, 32);
	assert_int_equal(tls_export(q.client, c, NULL), 0);
	assert_memory_not_equal(a, c, 32);
	assert_int_equal(tls_join_mac(m, a, c, session, 1), 0);
	assert_int_equal(tls_join_mac(n, b, c, session, 1), 0);
	assert_true(tls_mac_equal(m, n));
	assert_int_equal(tls_join_mac(n, a, c, session, 2), 0);
	assert_false(tls_mac_equal(m, n));
	assert_int_equal(tls_join_mac(n, c, a, session, 1), 0);
	assert_false(tls_mac_equal(m, n));
	session[15] = 1;
	assert_int_equal(tls_join_mac(n, a, c, session, 1), 0);
	assert_false(tls_mac_equal(m, n));
	drop(&p);
	drop(&q);
}

/* By another implementation (Python's hmac): key 00..1f, exporter 20..3f, session 40..4f, stream 0x1234. */
static void mac_of_known_values(void **state)
{
	static const uint8_t want[32] = {
		0x10, 0x66, 0xd4, 0xce, 0xea, 0x50, 0x58, 0x4c, 0x5d, 0xef, 0xb1, 0x9b, 0xbb, 0x73, 0xb1, 0xdb,
		0xa2, 0x51, 0xb3, 0x44, 0xdf, 0xf9, 0x2e, 0xa0, 0xe2, 0x65, 0x2e, 0xe3, 0x93, 0x48, 0x7e, 0x54
	};
	uint8_t key[32], exporter[32], session[16], mac[32];
	unsigned i;

	(void)state;
	for (i = 0; i < 32; i++) {
		key[i] = (uint8_t)i;
		exporter[i] = (uint8_t)(i + 0x20);
		session[i / 2] = (uint8_t)(i / 2 + 0x40);
	}
	assert_int_equal(tls_join_mac(mac, key, exporter, session, 0x1234), 0);
	assert_memory_equal(mac, want, 32);
	for (i = 0; i < 256; i++) { /* every bit counts */
		mac[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_false(tls_mac_equal(mac, want));
		mac[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	assert_true(tls_mac_equal(mac, want));
}

/* The label of a known key, by another implementation (Python's hashlib). */
static void keys_and_labels_of_shared_ports(void **state)
{
	static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	char label[TLS_SHARE_LABEL_BYTES], a[TLS_SHARE_KEY_BYTES], b[TLS_SHARE_KEY_BYTES];
	char longer[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0";

	(void)state;
	assert_int_equal(tls_share_label(label, key, NULL), 0);
	assert_string_equal(label, "b4ebeb6f8525e129922b913a14a54f36");
	assert_int_equal(tls_share_label(label, longer, NULL), PTCP_EPROTO);
	assert_int_equal(tls_share_key(a, NULL), 0);
	assert_int_equal(tls_share_key(b, NULL), 0);
	assert_string_not_equal(a, b);
	assert_int_equal(strspn(a, "0123456789abcdef"), TLS_SHARE_KEY_BYTES - 1);
}

static void random_bytes(void **state)
{
	uint8_t a[16] = { 0 }, b[16] = { 0 };

	(void)state;
	assert_int_equal(tls_random(a, sizeof a, NULL), 0);
	assert_int_equal(tls_random(b, sizeof b, NULL), 0);
	assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_pair), cmocka_unit_test(alpn_unknown_or_none),
		cmocka_unit_test(older_tls), cmocka_unit_test(ciphers), cmocka_unit_test(other_certificates),
		cmocka_unit_test(exporter_and_mac), cmocka_unit_test(mac_of_known_values),
		cmocka_unit_test(keys_and_labels_of_shared_ports), cmocka_unit_test(random_bytes),
	};
	return cmocka_run_group_tests_name("net/tls", tests, make_identities, free_identities);
}
