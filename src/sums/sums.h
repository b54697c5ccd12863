/* Digests of files that users ask for by name (PTCP_DIGESTS in <ptcp/options.h>), computed from front to back, several
 * at a time. OpenSSL and xxhash do the work; crc32c and adler32, which detect accidents only, are here. The digest that
 * a transfer compares files by is another one (store/hash.h). One thread at a time for each `sums`. */
#ifndef SUMS_SUMS_H
#define SUMS_SUMS_H

#include <ptcp/options.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define SUMS_BYTES_MAX 256 /* at least the bytes of all digests */

struct sums;

/* `digests`: at least one of enum ptcp_digest. PTCP_EUSAGE: OpenSSL does not offer one, as md5 in FIPS mode. */
int sums_new(struct sums **out, unsigned digests, struct ptcp_err *e);
void sums_free(struct sums *s); /* NULL is fine */
void sums_add(struct sums *s, const void *p, size_t n);
/* The digests of all bytes added, each as many bytes as PTCP_DIGESTS says, in the order of their bits; once. Returns the
 * number of bytes. */
size_t sums_end(struct sums *s, uint8_t out[SUMS_BYTES_MAX]);
/* That number of bytes. */
size_t sums_bytes(unsigned digests);

#endif
