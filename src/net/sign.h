/* Signatures by identities, and what stands behind a fingerprint. Any thread. */
#ifndef NET_SIGN_H
#define NET_SIGN_H

#include "net/identity.h"

#define SIGN_KEY_BYTES 32
#define SIGN_BYTES 64

/* Ed25519 over the text as it is: what is signed must begin with what it is for. */
int sign_text(uint8_t out[SIGN_BYTES], const struct identity *id, const uint8_t *text, size_t n,
    struct ptcp_err *e);
/* False also for a key that is none. */
bool sign_is_by(const uint8_t key[SIGN_KEY_BYTES], const uint8_t *text, size_t n,
    const uint8_t signature[SIGN_BYTES]);

int sign_key(uint8_t out[SIGN_KEY_BYTES], const struct identity *id, struct ptcp_err *e);
/* "SHA256:.." of a key. */
int sign_fingerprint(char out[PTCP_FINGERPRINT_BYTES], const uint8_t key[SIGN_KEY_BYTES], struct ptcp_err *e);

/* The 32 bytes of a fingerprint (identity_fingerprint_ok()), and back. */
void sign_digest(uint8_t out[32], const char *fingerprint);
void sign_digest_text(char out[PTCP_FINGERPRINT_BYTES], const uint8_t digest[32]);

#endif
