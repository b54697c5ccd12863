/* Certificates: a certificate authority, an Ed25519 key, states who a client is and what it may do at servers that
 * trust the authority, or for which hosts a server answers (PROTOCOL.md, section 2). Any thread. */
#ifndef NET_CERTIFICATE_H
#define NET_CERTIFICATE_H

#include "net/identity.h"

#include <time.h>

enum certificate_kind { CERTIFICATE_CLIENT = 1, CERTIFICATE_SERVER = 2 };

#define CERTIFICATE_TEXT_BYTES 256 /* name and root, each with its NUL */
/* "ptcp-certificate " and base64, with its NUL. */
#define CERTIFICATE_LINE_BYTES (18 + (CERTIFICATE_MAX_BYTES + 2) / 3 * 4)

struct certificate {
	enum certificate_kind kind;
	bool read_only, no_relay, write_once;
	uint64_t serial, quota_bytes;      /* no quota: 0 */
	uint64_t from_s, until_s;          /* since 1970, UTC */
	uint8_t issuer[IDENTITY_KEY_BYTES];
	char subject[PTCP_FINGERPRINT_BYTES];
	char name[CERTIFICATE_TEXT_BYTES]; /* of a client: one word; of a server: patterns of host names, by commas */
	char root[CERTIFICATE_TEXT_BYTES]; /* of a client, relative to the root that the server gives; "": that root */
};

/* Signs `c` by `ca`, which becomes the issuer. */
int certificate_sign(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, struct certificate *c, const struct identity *ca,
    struct ptcp_err *e);
/* The certificate that begins n bytes; returns its length, or 0 if malformed. The signature is not examined. */
size_t certificate_decode(struct certificate *c, const uint8_t *p, size_t n);
/* Whether the issuer signed the certificate of exactly n bytes. */
bool certificate_is_signed(const uint8_t *p, size_t n);
/* PTCP_EREFUSED before and after the validity, with both times and that of the clock, which is called `clock`. */
int certificate_check_time(const struct certificate *c, uint64_t now_s, const char *clock, struct ptcp_err *e);
/* "2026-11-23 04:50 UTC". */
#define CERTIFICATE_TIME_BYTES 40
const char *certificate_time_text(char out[CERTIFICATE_TIME_BYTES], uint64_t s);

/* As a line of text, without newline, and the reverse; PTCP_EUSAGE: not a certificate. */
void certificate_line(char out[CERTIFICATE_LINE_BYTES], const uint8_t *p, size_t n);
int certificate_parse(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, const char *line, struct ptcp_err *e);

/* The file `certificates` of the configuration directory, one line each; a missing file has none. */
int certificates_load(struct certificates *out, const char *dir, struct ptcp_err *e);
/* Adds one to the file, in the place of an earlier one of this kind and issuer. PTCP_EUSAGE: no room. */
int certificates_add(const char *dir, const uint8_t *p, size_t n, struct ptcp_err *e);

#endif
