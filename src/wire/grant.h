/* GRANT: the issuer permits the grantee to act at the audience on the issuer's behalf (PROTOCOL.md, section 13). */
#ifndef WIRE_GRANT_H
#define WIRE_GRANT_H

#include "wire/frame.h"

#define WIRE_KEY_BYTES 32
#define WIRE_DIGEST_BYTES 32
#define WIRE_NONCE_BYTES 16
#define WIRE_SIGNATURE_BYTES 64

enum wire_grant_mode { WIRE_GRANT_READ = 1, WIRE_GRANT_WRITE = 2, WIRE_GRANT_PROBE = 3, WIRE_GRANT_RELAY = 4 };

/* READ and WRITE permit access to `path` at `audience`, PROBE a measurement of the path to the audience, RELAY
 * connections through the audience to a single next hop. */
struct wire_grant {
	uint8_t issuer[WIRE_KEY_BYTES];      /* Ed25519 key */
	uint8_t grantee[WIRE_DIGEST_BYTES];  /* digest behind the fingerprint */
	uint8_t audience[WIRE_DIGEST_BYTES];
	uint8_t mode;
	uint64_t expiry_s;                   /* seconds since 1970, UTC, by the audience's clock */
	uint8_t nonce[WIRE_NONCE_BYTES];
	struct span path;                    /* below the issuer's root; empty with PROBE; RELAY:
	                                        the next hop, HOST:PORT */
	struct span certificates;            /* certificates of the issuer, as in its TLS certificate */
	uint8_t signature[WIRE_SIGNATURE_BYTES];
};
/* The role in OPEN of a session that a grant of this mode permits at its audience; 0: none. */
uint8_t wire_grant_role(uint8_t mode);
WIRE_CODEC(GRANT, grant, wire_grant)

/* The signed text: a prefix that begins no other text signed by ptcp, then all fields but the signature. */
#define WIRE_GRANT_TEXT_MAX_BYTES (14 + 125 + WIRE_PATH_MAX + WIRE_CERTIFICATES_MAX)
size_t wire_grant_text(uint8_t *out, const struct wire_grant *g);

#endif
