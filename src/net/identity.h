/* The identity of a host, an Ed25519 key in a self-signed certificate, created on first use; signatures and
 * fingerprints. Signing and verifying on any thread. */
#ifndef NET_IDENTITY_H
#define NET_IDENTITY_H

#include <openssl/ssl.h>
#include <ptcp/ptcp.h>

#include "core/err.h"

#define IDENTITY_KEY_BYTES 32
#define IDENTITY_SIGNATURE_BYTES 64

/* Certificates that a host presents, encoded one behind the other (net/trust/certificate.h). */
#define CERTIFICATE_MAX_BYTES 676
#define CERTIFICATES_MAX 4
#define CERTIFICATES_MAX_BYTES (CERTIFICATES_MAX * CERTIFICATE_MAX_BYTES)
struct certificates {
	size_t n; /* bytes */
	uint8_t bytes[CERTIFICATES_MAX_BYTES];
};

struct identity {
	EVP_PKEY *key;
	X509 *cert;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct certificates certificates; /* part within `cert` */
};

/* Reads identity.pem of `dir` (see userdir_config()); a missing file (and directory, mode 0700) is created.
 * `only_new`: PTCP_EUSAGE if the file exists. Refuses a file readable by other users, and for root the
 * directory of another user, whose server could not read a key owned by root. */
int identity_load(struct identity *out, const char *dir, bool only_new, struct ptcp_err *e);
/* An identity of the file `path`, such as a certificate authority's: reads it, or with `create` makes it. PTCP_EUSAGE:
 * the file to be made exists. */
int identity_file(struct identity *out, const char *path, bool create, struct ptcp_err *e);
/* Presents these certificates from now on. */
int identity_present(struct identity *id, const struct certificates *c, struct ptcp_err *e);
/* The certificates in a peer's `cert`, unexamined. */
void identity_presented(struct certificates *out, const X509 *cert);
/* A temporary identity, in memory only, for one session. */
int identity_new(struct identity *out, struct ptcp_err *e);
void identity_fini(struct identity *id);

/* "SHA256:.." of a certificate's key. */
int identity_fingerprint(char out[PTCP_FINGERPRINT_BYTES], X509 *cert, struct ptcp_err *e);
/* Whether `text` has the form of a fingerprint. */
bool identity_fingerprint_ok(const char *text);

/* Ed25519 over `text` as it is: the text must begin with its purpose (domain separation). */
int identity_sign(uint8_t out[IDENTITY_SIGNATURE_BYTES], const struct identity *id, const uint8_t *text, size_t n,
    struct ptcp_err *e);
/* False also for an invalid key. */
bool identity_verify(const uint8_t key[IDENTITY_KEY_BYTES], const uint8_t *text, size_t n,
    const uint8_t signature[IDENTITY_SIGNATURE_BYTES]);

/* The public key of `id`. */
int identity_key(uint8_t out[IDENTITY_KEY_BYTES], const struct identity *id, struct ptcp_err *e);
/* "SHA256:.." of a public key. */
int identity_key_fingerprint(char out[PTCP_FINGERPRINT_BYTES], const uint8_t key[IDENTITY_KEY_BYTES],
    struct ptcp_err *e);

/* The SHA-256 of a fingerprint (which identity_fingerprint_ok() accepts), and the reverse. */
void identity_digest(uint8_t out[32], const char *fingerprint);
void identity_digest_text(char out[PTCP_FINGERPRINT_BYTES], const uint8_t digest[32]);

#endif
