/* Who a host is: an Ed25519 key in a self-signed certificate, made on first use. */
#ifndef NET_IDENTITY_H
#define NET_IDENTITY_H

#include <openssl/ssl.h>
#include <ptcp/ptcp.h>

#include "core/err.h"

struct identity {
	EVP_PKEY *key;
	X509 *cert;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
};

/* Reads identity.pem of `dir` (userdir_config()); makes it (and the directory, 0700) when there is none. `only_new`:
 * PTCP_EUSAGE when there is one. A file that others can read is refused, and so is to root a directory of another
 * user's: what is made there would be root's. */
int identity_load(struct identity *out, const char *dir, bool only_new, struct ptcp_err *e);
/* One that is nowhere but in memory, for a session. */
int identity_new(struct identity *out, struct ptcp_err *e);
void identity_fini(struct identity *id);

/* "SHA256:.." of a certificate's key. */
int identity_fingerprint(char out[PTCP_FINGERPRINT_BYTES], X509 *cert, struct ptcp_err *e);
/* Whether `text` has the form of a fingerprint. */
bool identity_fingerprint_ok(const char *text);

#endif
