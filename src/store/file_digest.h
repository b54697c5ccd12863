/* The digest of a whole source (see hash.h), in steps short enough to give up between them. It is
 * what a receiver compares with what it has. */
#ifndef STORE_FILE_DIGEST_H
#define STORE_FILE_DIGEST_H

#include "core/digest.h"
#include "store/source.h"

#define FILE_DIGEST_STEP_BYTES (16u << 20) /* read in one step, a few ms to some tenths of a second */
#define FILE_DIGEST_STEP_BLOCKS 65536      /* in one step: a hole costs next to nothing, but may be 2^27 blocks */

/* The caller's; `digest` is that of the blocks before `next`, in the end of all. */
struct file_digest {
	uint32_t block_bytes, next;
	const uint64_t *holes; /* blocks that are not read, being zero (source_map()); NULL: none */
	uint64_t zeros;        /* content hash of a whole block of zeros, once known */
	bool zeros_known;
	struct digest digest;
};

/* Borrows holes. */
void file_digest_init(struct file_digest *sum, uint32_t block_bytes, const uint64_t *holes);

/* The content hash of n zeros, at most a block of them, for which `buf` has room. */
uint64_t file_digest_zeros(struct file_digest *sum, void *buf, uint32_t n);

/* Hashes the next blocks: 1 when there are more; 0 when all are hashed and the source is still what
 * was listed (its descriptor is closed then); or fails as a read does. I/O threads only. */
int file_digest_next(struct file_digest *sum, struct source *s, struct ptcp_err *e);

#endif
