#include "net/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/clock.h"
#include "core/text.h"

#define RECORD_BYTES 16384

int tls_error(struct ptcp_err *e, int code, const char *what)
{
	unsigned long n = ERR_get_error();
	const char *why = ERR_reason_error_string(n);

	ERR_clear_error();
	return err_set(e, code, "%s: %s", what, why != NULL ? why : "unknown OpenSSL error");
}

/* Accepts any certificate: callers check the fingerprint after the handshake. */
static int accept_any(int ok, X509_STORE_CTX *ctx)
{
	(void)ok;
	(void)ctx;
	return 1;
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
    const unsigned char *in, unsigned in_n, void *arg)
{
	static const char *const known[] = { ALPN_CONTROL, ALPN_DATA, ALPN_ROUTE, ALPN_GRANT, ALPN_JOB,
		ALPN_MOVER };
	unsigned i, k;

	(void)ssl;
	(void)arg;
	for (i = 0; i < in_n && in[i] < in_n - i; i += 1u + in[i])
		for (k = 0; k < sizeof known / sizeof *known; k++)
			if (in[i] == strlen(known[k]) && memcmp(in + i + 1, known[k], in[i]) == 0) {
				*out = in + i + 1;
				*out_n = in[i];
				return SSL_TLSEXT_ERR_OK;
			}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Without the extension OpenSSL does not call select_alpn(). */
static int require_alpn(SSL *ssl, int *alert, void *arg)
{
	const unsigned char *p;
	size_t n;

	(void)arg;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n) == 1)
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

static const struct {
	const char *name, *suite;
	const EVP_CIPHER *(*evp)(void);
} ciphers_known[PTCP_CIPHERS] = {
	[PTCP_CIPHER_AES128GCM] = { "aes128gcm", "TLS_AES_128_GCM_SHA256", EVP_aes_128_gcm },
	[PTCP_CIPHER_AES256GCM] = { "aes256gcm", "TLS_AES_256_GCM_SHA384", EVP_aes_256_gcm },
	[PTCP_CIPHER_CHACHA20] = { "chacha20", "TLS_CHACHA20_POLY1305_SHA256", EVP_chacha20_poly1305 },
	[PTCP_CIPHER_NONE] = { "none", NULL, NULL },
};

const char *tls_suite(enum ptcp_cipher c) { return ciphers_known[c].suite; }

static void suites_text(char out[160], unsigned ciphers)
{
	static const enum ptcp_cipher order[] = { PTCP_CIPHER_AES128GCM, PTCP_CIPHER_CHACHA20, PTCP_CIPHER_AES256GCM };
	size_t i;

	out[0] = '\0';
	for (i = 0; i < sizeof order / sizeof *order; i++) {
		if ((ciphers & 1u << order[i]) == 0)
			continue;
		if (out[0] != '\0')
			strcat(out, ":");
		strcat(out, tls_suite(order[i]));
	}
}

int tls_new(SSL_CTX **out, const struct identity *id, bool server, unsigned ciphers, struct ptcp_err *e)
{
	SSL_CTX *c = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	char suites[160];

	suites_text(suites, ciphers);
	if (suites[0] == '\0') {
		SSL_CTX_free(c);
		return err_set(e, PTCP_ECONFIG, "no TLS cipher is allowed, but the control connection needs one (add "
		    "aes128gcm)");
	}
	if (c == NULL || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(c, suites) || !SSL_CTX_use_certificate(c, id->cert) ||
	    !SSL_CTX_use_PrivateKey(c, id->key) || !SSL_CTX_set1_sigalgs_list(c, "ed25519") ||
	    !SSL_CTX_set1_groups_list(c, "X25519:P-256") || !SSL_CTX_set_num_tickets(c, 0)) {
		SSL_CTX_free(c);
		return tls_error(e, PTCP_ECONFIG, "cannot set up TLS");
	}
	SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_max_cert_list(c, 4096);
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_any);
	if (server) {
		SSL_CTX_set_client_hello_cb(c, require_alpn, NULL);
		SSL_CTX_set_alpn_select_cb(c, select_alpn, NULL);
	}
	*out = c;
	return 0;
}

int tls_export(SSL *ssl, uint8_t out[32], struct ptcp_err *e)
{
	static const char label[] = "EXPORTER-ptcp-join";

	if (SSL_export_keying_material(ssl, out, 32, label, strlen(label), NULL, 0, 0) != 1)
		return tls_error(e, PTCP_EPROTO, "exporting key material");
	return 0;
}

int tls_join_mac(uint8_t out[32], const uint8_t key[32], const uint8_t exporter[32],
    const uint8_t session[16], uint16_t stream)
{
	uint8_t text[32 + 16 + 2];
	unsigned n = 32;
	bool made;

	memcpy(text, exporter, 32);
	memcpy(text + 32, session, 16);
	put_u16(text + 48, stream);
	made = HMAC(EVP_sha256(), key, 32, text, sizeof text, out, &n) != NULL && n == 32;
	OPENSSL_cleanse(text, sizeof text);
	return made ? 0 : PTCP_ENOMEM;
}

/* `prefix` counts with its NUL. */
static int derive_key(uint8_t out[32], const uint8_t key[32], const char *prefix, const char *fingerprint)
{
	size_t prefix_n = strlen(prefix) + 1;
	uint8_t text[32 + 32];
	unsigned n = 32;

	memcpy(text, prefix, prefix_n);
	identity_digest(text + prefix_n, fingerprint);
	return HMAC(EVP_sha256(), key, 32, text, prefix_n + 32, out, &n) != NULL && n == 32 ? 0 : PTCP_ENOMEM;
}

int tls_mover_key(uint8_t out[32], const uint8_t key[32], const char *fingerprint)
{
	return derive_key(out, key, "ptcp mover v1", fingerprint);
}

int tls_server_mover_key(uint8_t out[32], const uint8_t key[32], const char *fingerprint)
{
	return derive_key(out, key, "ptcp server mover v1", fingerprint);
}

int tls_share_key(char key[TLS_SHARE_KEY_BYTES], struct ptcp_err *e)
{
	uint8_t random[32];
	int r;

	if ((r = tls_random(random, sizeof random, e)) < 0)
		return r;
	text_hex(key, random, sizeof random);
	OPENSSL_cleanse(random, sizeof random);
	return 0;
}

/* 128 bits of SHA-256 over "ptcp share v1", a zero byte, and the key's text. */
int tls_share_label(char label[TLS_SHARE_LABEL_BYTES], const char *key, struct ptcp_err *e)
{
	static const char purpose[] = "ptcp share v1";
	uint8_t text[sizeof purpose + TLS_SHARE_KEY_BYTES], hash[32];
	size_t n = strlen(key);

	if (n >= TLS_SHARE_KEY_BYTES)
		return err_set(e, PTCP_EPROTO, "a malformed key of a shared port");
	memcpy(text, purpose, sizeof purpose);
	memcpy(text + sizeof purpose, key, n);
	if (EVP_Digest(text, sizeof purpose + n, hash, NULL, EVP_sha256(), NULL) != 1)
		return tls_error(e, PTCP_ENOMEM, "hashing");
	text_hex(label, hash, 16);
	return 0;
}

bool tls_mac_equal(const uint8_t a[32], const uint8_t b[32])
{
	return CRYPTO_memcmp(a, b, 32) == 0;
}

int tls_random(uint8_t *out, size_t n, struct ptcp_err *e)
{
	if (RAND_bytes(out, (int)n) != 1)
		return tls_error(e, PTCP_ENOMEM, "generating random numbers");
	return 0;
}

int tls_digest(char out[TLS_DIGEST_BYTES], const void *data, size_t n, struct ptcp_err *e)
{
	uint8_t hash[32];

	if (EVP_Digest(data, n, hash, NULL, EVP_sha256(), NULL) != 1)
		return tls_error(e, PTCP_ENOMEM, "hashing");
	text_hex(out, hash, sizeof hash);
	return 0;
}

static bool encrypt(EVP_CIPHER_CTX *x, uint8_t *record)
{
	static const uint8_t nonce[12];
	uint8_t tag[16];
	int n;

	return EVP_EncryptInit_ex(x, NULL, NULL, NULL, nonce) == 1 &&
	    EVP_EncryptUpdate(x, record, &n, record, RECORD_BYTES) == 1 &&
	    EVP_EncryptFinal_ex(x, record, &n) == 1 &&
	    EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) == 1;
}

int tls_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e)
{
	static const uint8_t key[32];
	EVP_CIPHER_CTX *x;
	uint8_t record[RECORD_BYTES];
	struct mono start;
	double took = 0, bytes = 0;
	int i, r = 0;

	if ((unsigned)c >= PTCP_CIPHER_NONE)
		return err_set(e, PTCP_EUSAGE, "not a TLS cipher");
	memset(record, 0x5a, sizeof record);
	if ((x = EVP_CIPHER_CTX_new()) == NULL || EVP_EncryptInit_ex(x, ciphers_known[c].evp(), NULL, key, NULL) != 1 ||
	    !encrypt(x, record)) /* the first record is slower */
		r = err_nomem(e);
	for (start = mono_now(); r == 0 && took < seconds; took = (double)mono_diff_ns(mono_now(), start) / 1e9)
		for (i = 0; i < 64 && r == 0; i++) {
			r = encrypt(x, record) ? 0 : err_nomem(e);
			bytes += RECORD_BYTES;
		}
	EVP_CIPHER_CTX_free(x);
	if (r == 0)
		*bps = bytes * 8 / took;
	return r;
}

const char *ptcp_openssl_version(void) { return OpenSSL_version(OPENSSL_VERSION_STRING); }

const char *ptcp_cipher_name(enum ptcp_cipher c)
{
	return (unsigned)c < PTCP_CIPHERS ? ciphers_known[c].name : NULL;
}

bool ptcp_cipher_parse(const char *name, enum ptcp_cipher *out)
{
	unsigned i;

	for (i = 0; i < PTCP_CIPHERS; i++)
		if (strcmp(name, ciphers_known[i].name) == 0) {
			*out = (enum ptcp_cipher)i;
			return true;
		}
	return false;
}
