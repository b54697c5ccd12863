#include "net/cipher_speed.h"

#include <openssl/evp.h>
#include <string.h>

#include "core/clock.h"

#define RECORD_BYTES 16384

static const EVP_CIPHER *find(enum ptcp_cipher c)
{
	switch (c) {
	case PTCP_CIPHER_AES128GCM: return EVP_aes_128_gcm();
	case PTCP_CIPHER_AES256GCM: return EVP_aes_256_gcm();
	case PTCP_CIPHER_CHACHA20: return EVP_chacha20_poly1305();
	default: return NULL;
	}
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

int cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e)
{
	static const uint8_t key[32];
	const EVP_CIPHER *cipher = find(c);
	EVP_CIPHER_CTX *x;
	uint8_t record[RECORD_BYTES];
	struct mono start;
	double took = 0, bytes = 0;
	int i, r = 0;

	if (cipher == NULL)
		return err_set(e, PTCP_EUSAGE, "no cipher of TLS to measure");
	memset(record, 0x5a, sizeof record);
	if ((x = EVP_CIPHER_CTX_new()) == NULL || EVP_EncryptInit_ex(x, cipher, NULL, key, NULL) != 1 ||
	    !encrypt(x, record)) /* the first is slower */
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
