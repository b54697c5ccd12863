/* Certificates: a certificate authority, an Ed25519 key, states the name and rights of a client, for servers trusting
 * the authority, or the hosts of a server (PROTOCOL.md, section 15). Any thread. */
#ifndef NET_CERTIFICATE_H
#define NET_CERTIFICATE_H

#include <time.h>

#include "net/identity.h"

enum certificate_kind { CERTIFICATE_CLIENT = 1, CERTIFICATE_SERVER = 2 };

#define CERTIFICATE_TEXT_BYTES 256 /* name and root, each with its NUL */
#define CERTIFICATE_NAME_BYTES 21 /* size of a client's name, with a NUL */
/* "ptcp-certificate " and base64, with its NUL. */
#define CERTIFICATE_LINE_BYTES (18 + (CERTIFICATE_MAX_BYTES + 2) / 3 * 4)

struct certificate {
	enum certificate_kind kind;
	bool read_only, no_relay, write_once;
	uint64_t serial;
	uint64_t from_s, until_s;          /* validity, in seconds since 1970, UTC */
	uint64_t quota_bytes;              /* quota of a client; 0: no limit */
	uint8_t issuer[IDENTITY_KEY_BYTES];
	char subject[PTCP_FINGERPRINT_BYTES];
	char name[CERTIFICATE_TEXT_BYTES]; /* client: one word; server: patterns of host names, separated by commas */
	char root[CERTIFICATE_TEXT_BYTES]; /* directory of a client, beneath the server's root for it; "": the root */
};

/* Signs `c` by `ca`, the issuer. */
int certificate_sign(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, struct certificate *c, const struct identity *ca,
    struct ptcp_err *e);
/* The certificate at the start of n bytes; returns its length, or 0 if malformed. Does not examine the signature. */
size_t certificate_decode(struct certificate *c, const uint8_t *p, size_t n);
/* Whether the issuer signed the certificate of exactly n bytes. */
bool certificate_is_signed(const uint8_t *p, size_t n);
/* PTCP_EREFUSED before and after the validity, with both times and the time of the clock, called `clock`. */
int certificate_check_time(const struct certificate *c, uint64_t now_s, const char *clock, struct ptcp_err *e);
/* "2026-11-23 04:50:00 UTC". */
#define CERTIFICATE_TIME_BYTES 40

/* To a line of text, without newline, and back; PTCP_EUSAGE: not a certificate. */
void certificate_line(char out[CERTIFICATE_LINE_BYTES], const uint8_t *p, size_t n);
int certificate_parse(uint8_t out[CERTIFICATE_MAX_BYTES], size_t *n, const char *line, struct ptcp_err *e);

/* The file `certificates` of the configuration directory, a line for each; a missing file has none. */
int certificates_load(struct certificates *out, const char *dir, struct ptcp_err *e);
/* Adds a certificate to the file, or replaces the certificate of the same kind and issuer. PTCP_EUSAGE: no room. */
int certificates_add(const char *dir, const uint8_t *p, size_t n, struct ptcp_err *e);

#endif
