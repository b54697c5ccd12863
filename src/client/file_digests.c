#include "client/file_digests.h"

#include <string.h>

bool file_digests(struct file_digests *m, unsigned digests, const char *hex, struct ptcp_entry *out)
{
	char *to = m->hex;
	unsigned bit, n = 0;
	size_t digits;

	if (strlen(hex) != 2 * sums_bytes(digests) || hex[strspn(hex, "0123456789abcdef")] != '\0')
		return false;
	for (bit = 0; digests >> bit != 0; bit++) {
		if ((digests & 1u << bit) == 0)
			continue;
		digits = 2 * sums_bytes(1u << bit);
		memcpy(to, hex, digits);
		to[digits] = '\0';
		m->digest[n++] = (struct ptcp_file_digest){ (enum ptcp_digest)(1u << bit), to };
		to += digits + 1;
		hex += digits;
	}
	out->digest = m->digest;
	out->n_digests = n;
	return true;
}
