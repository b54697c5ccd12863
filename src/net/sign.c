#include "net/sign.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "net/tls.h"

#define PREFIX "SHA256:"

int sign_text(uint8_t out[SIGN_BYTES], const struct identity *id, const uint8_t *text, size_t n,
    struct ptcp_err *e)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	size_t got = SIGN_BYTES;
	bool ok = c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, id->key) == 1 &&
	    EVP_DigestSign(c, out, &got, text, n) == 1 && got == SIGN_BYTES;

	EVP_MD_CTX_free(c);
	return ok ? 0 : tls_error(e, PTCP_ECONFIG, "could not sign with the identity's key");
}

bool sign_is_by(const uint8_t key[SIGN_KEY_BYTES], const uint8_t *text, size_t n,
    const uint8_t signature[SIGN_BYTES])
{
	EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, SIGN_KEY_BYTES);
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok = k != NULL && c != NULL && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
	    EVP_DigestVerify(c, signature, SIGN_BYTES, text, n) == 1;

	EVP_MD_CTX_free(c);
	EVP_PKEY_free(k);
	ERR_clear_error();
	return ok;
}

int sign_key(uint8_t out[SIGN_KEY_BYTES], const struct identity *id, struct ptcp_err *e)
{
	size_t n = SIGN_KEY_BYTES;

	if (EVP_PKEY_get_raw_public_key(id->key, out, &n) != 1 || n != SIGN_KEY_BYTES)
		return tls_error(e, PTCP_ECONFIG, "the identity's key cannot be had");
	return 0;
}

int sign_fingerprint(char out[PTCP_FINGERPRINT_BYTES], const uint8_t key[SIGN_KEY_BYTES], struct ptcp_err *e)
{
	EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, SIGN_KEY_BYTES);
	unsigned char *der = NULL, hash[32];
	int n = k != NULL ? i2d_PUBKEY(k, &der) : 0;
	bool ok = n > 0 && EVP_Digest(der, (size_t)n, hash, NULL, EVP_sha256(), NULL) == 1;

	OPENSSL_free(der);
	EVP_PKEY_free(k);
	if (!ok)
		return tls_error(e, PTCP_EPROTO, "a public key that is none");
	sign_digest_text(out, hash);
	return 0;
}

void sign_digest(uint8_t out[32], const char *fingerprint)
{
	unsigned char text[44], bytes[33];

	memcpy(text, fingerprint + strlen(PREFIX), 43);
	text[43] = '=';
	EVP_DecodeBlock(bytes, text, sizeof text);
	memcpy(out, bytes, 32);
}

void sign_digest_text(char out[PTCP_FINGERPRINT_BYTES], const uint8_t digest[32])
{
	unsigned char text[48];

	EVP_EncodeBlock(text, digest, 32); /* 44 characters, the last is '=' */
	snprintf(out, PTCP_FINGERPRINT_BYTES, PREFIX "%.43s", text);
}
