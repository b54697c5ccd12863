#include "net/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#include "core/byteorder.h"

int tls_error(struct ptcp_err *e, int code, const char *what)
{
	unsigned long n = ERR_get_error();
	const char *why = ERR_reason_error_string(n);

	ERR_clear_error();
	return err_set(e, code, "%s: %s", what, why != NULL ? why : "TLS failed");
}

/* Any certificate: it is the fingerprint that is checked, after the handshake. */
static int accept_any(int ok, X509_STORE_CTX *ctx)
{
	(void)ok;
	(void)ctx;
	return 1;
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
    const unsigned char *in, unsigned in_n, void *arg)
{
	static const char *const known[] = { ALPN_CONTROL, ALPN_DATA, ALPN_ROUTE, ALPN_GRANT, ALPN_JOB };
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

/* Without ALPN select_alpn() is not asked. */
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

static void suites_text(char out[160], unsigned ciphers)
{
	static const struct {
		enum ptcp_cipher cipher;
		const char *name;
	} suites[] = {
		{ PTCP_CIPHER_AES128GCM, "TLS_AES_128_GCM_SHA256" },
		{ PTCP_CIPHER_CHACHA20, "TLS_CHACHA20_POLY1305_SHA256" },
		{ PTCP_CIPHER_AES256GCM, "TLS_AES_256_GCM_SHA384" },
	};
	size_t i;

	out[0] = '\0';
	for (i = 0; i < sizeof suites / sizeof *suites; i++) {
		if ((ciphers & 1u << suites[i].cipher) == 0)
			continue;
		if (out[0] != '\0')
			strcat(out, ":");
		strcat(out, suites[i].name);
	}
}

int tls_new(SSL_CTX **out, const struct identity *id, bool server, unsigned ciphers,
    struct ptcp_err *e)
{
	SSL_CTX *c = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	char suites[160];

	suites_text(suites, ciphers);
	if (suites[0] == '\0') {
		SSL_CTX_free(c);
		return err_set(e, PTCP_ECONFIG, "at least one cipher of TLS must be allowed, the "
		    "control connection needs it (add aes128gcm)");
	}
	if (c == NULL || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(c, suites) || !SSL_CTX_use_certificate(c, id->cert) ||
	    !SSL_CTX_use_PrivateKey(c, id->key) || !SSL_CTX_set1_sigalgs_list(c, "ed25519") ||
	    !SSL_CTX_set1_groups_list(c, "X25519:P-256") || !SSL_CTX_set_num_tickets(c, 0)) {
		SSL_CTX_free(c);
		return tls_error(e, PTCP_ECONFIG, "could not set up TLS");
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
		return tls_error(e, PTCP_EPROTO, "no key material for joining");
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

bool tls_mac_equal(const uint8_t a[32], const uint8_t b[32])
{
	return CRYPTO_memcmp(a, b, 32) == 0;
}

int tls_random(uint8_t *out, size_t n, struct ptcp_err *e)
{
	if (RAND_bytes(out, (int)n) != 1)
		return tls_error(e, PTCP_ENOMEM, "no random numbers");
	return 0;
}

static const char *const cipher_names[PTCP_CIPHERS] = {
	[PTCP_CIPHER_AES128GCM] = "aes128gcm",
	[PTCP_CIPHER_AES256GCM] = "aes256gcm",
	[PTCP_CIPHER_CHACHA20] = "chacha20",
	[PTCP_CIPHER_NONE] = "none",
};

const char *ptcp_cipher_name(enum ptcp_cipher c)
{
	return (unsigned)c < PTCP_CIPHERS ? cipher_names[c] : NULL;
}

int ptcp_cipher_parse(const char *name, enum ptcp_cipher *out)
{
	unsigned i;

	for (i = 0; i < PTCP_CIPHERS; i++)
		if (strcmp(name, cipher_names[i]) == 0) {
			*out = (enum ptcp_cipher)i;
			return 0;
		}
	return -1;
}
