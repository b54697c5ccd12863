/* Digests of files that users name (PTCP_DIGESTS in <ptcp/options.h>), computed from front to back, several at a time.
 * OpenSSL and xxhash do the work, checksums.h has the rest. Transfers compare files by another digest (store/hash.h).
 * Each `sums` belongs to one thread at a time. */
#ifndef SUMS_SUMS_H
#define SUMS_SUMS_H

#include <ptcp/options.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define SUMS_BYTES_MAX 256 /* at least the bytes of all digests */

struct sums;

/* `digests`: bits of enum ptcp_digest. PTCP_EUSAGE: OpenSSL lacks one of these digests, as md5 in FIPS mode. */
int sums_new(struct sums **out, unsigned digests, struct ptcp_err *e);
void sums_free(struct sums *s); /* NULL is fine */
void sums_add(struct sums *s, const void *p, size_t n);
/* Once, at the end: writes the digests of all added bytes in the order of the bits, each of its length in PTCP_DIGESTS;
 * returns the number of bytes written. */
size_t sums_end(struct sums *s, uint8_t out[SUMS_BYTES_MAX]);
/* A required digest of content. */
struct sums_expected {
	unsigned digest; /* an enum ptcp_digest; 0: content of any digest */
	char hex[2 * 64 + 1];
};
/* From "sha256:DIGITS", in either case; false: malformed. */
bool sums_expected_parse(struct sums_expected *out, const char *text);
/* PTCP_EVERIFY: `hex`, the digits of the set `digests` without separators, has another. */
int sums_expected_check(const struct sums_expected *x, unsigned digests, const char *hex, struct ptcp_err *e);
/* The same for content in memory; PTCP_EUSAGE and PTCP_ENOMEM as sums_new(). */
int sums_expected_check_data(const struct sums_expected *x, const void *p, size_t n, struct ptcp_err *e);

/* The set of names separated by commas; 0: an unknown name. */
unsigned sums_named(const char *names);
/* The same number, of any digests. */
size_t sums_bytes(unsigned digests);

#endif
