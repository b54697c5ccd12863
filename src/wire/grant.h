/* GRANT, which lets one host do a thing at another on behalf of a third (PROTOCOL.md, section 13). As
 * wire/frame.h. */
#ifndef WIRE_GRANT_H
#define WIRE_GRANT_H

#include "wire/frame.h"

#define WIRE_KEY_BYTES 32
#define WIRE_DIGEST_BYTES 32
#define WIRE_NONCE_BYTES 16
#define WIRE_SIGNATURE_BYTES 64

enum wire_grant_mode { WIRE_GRANT_READ = 1, WIRE_GRANT_WRITE = 2, WIRE_GRANT_PROBE = 3 };

/* `issuer` lets `grantee` read or write `path` at `audience`, or measure the way to it. */
struct wire_grant {
	uint8_t issuer[WIRE_KEY_BYTES];      /* the Ed25519 key itself */
	uint8_t grantee[WIRE_DIGEST_BYTES];  /* what their fingerprints are written from */
	uint8_t audience[WIRE_DIGEST_BYTES];
	uint8_t mode;
	uint64_t expiry_s;                   /* since 1970, UTC, by the audience's clock */
	uint8_t nonce[WIRE_NONCE_BYTES];
	struct span path;                    /* below the issuer's root; with PROBE none */
	uint8_t signature[WIRE_SIGNATURE_BYTES];
};
#define WIRE_GRANT_MAX_BYTES (8 + 187 + WIRE_PATH_MAX)
size_t wire_grant_encode(uint8_t *out, const struct wire_grant *g);
int wire_grant_decode(struct wire_grant *g, struct span in, struct ptcp_err *e);

/* What is signed: a prefix that nothing else we sign begins with, then all fields but the signature. */
#define WIRE_GRANT_TEXT_MAX_BYTES (14 + 123 + WIRE_PATH_MAX)
size_t wire_grant_text(uint8_t *out, const struct wire_grant *g);

#endif
