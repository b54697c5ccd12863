#include "store/file_digest.h"

#include <stdlib.h>
#include <string.h>

#include "core/bitmap.h"
#include "store/hash.h"

void file_digest_init(struct file_digest *sum, uint32_t block_bytes, const uint64_t *holes)
{
	*sum = (struct file_digest){ .block_bytes = block_bytes, .holes = holes };
}

uint64_t file_digest_zeros(struct file_digest *sum, void *buf, uint32_t n)
{
	if (n == sum->block_bytes && sum->zeros_known)
		return sum->zeros;
	memset(buf, 0, n);
	if (n < sum->block_bytes)
		return hash_content(buf, n);
	sum->zeros_known = true;
	return sum->zeros = hash_content(buf, n);
}

int file_digest_next(struct file_digest *sum, struct source *s, struct ptcp_err *e)
{
	uint64_t size = source_size_bytes(s), off = (uint64_t)sum->next * sum->block_bytes;
	uint32_t n, blocks = 0, room = size < sum->block_bytes ? (uint32_t)size : sum->block_bytes;
	uint64_t content, read = 0;
	void *buf = malloc(room > 0 ? room : 1);
	int r = 0;

	if (buf == NULL)
		return err_nomem(e);
	for (; off < size && read < FILE_DIGEST_STEP_BYTES && blocks < FILE_DIGEST_STEP_BLOCKS; off += n, blocks++) {
		n = size - off < sum->block_bytes ? (uint32_t)(size - off) : sum->block_bytes;
		if (sum->holes != NULL && bitmap_has(sum->holes, sum->next)) {
			content = file_digest_zeros(sum, buf, n);
		} else {
			if ((r = source_read(s, buf, n, off, true, e)) != 0)
				break;
			content = hash_content(buf, n);
			read += n;
		}
		digest_add(&sum->digest, hash_term(sum->next++, n, content));
	}
	free(buf);
	if (r != 0)
		return r;
	return off < size ? 1 : source_check(s, e);
}
