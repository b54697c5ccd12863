/* Digests of a file as users get them. */
#ifndef CLIENT_FILE_DIGESTS_H
#define CLIENT_FILE_DIGESTS_H

#include <ptcp/ptcp.h>

#include "sums/sums.h"

/* Digests of a file for an entry, in the order of the bits. */
struct file_digests {
	struct ptcp_file_digest digest[16];
	char hex[2 * SUMS_BYTES_MAX + 16];
};
/* From `hex`, the digits of all digests without separators; false: not these digests. */
bool file_digests(struct file_digests *m, unsigned digests, const char *hex, struct ptcp_entry *out);

#endif
