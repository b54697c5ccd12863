/* The digest of a whole source (see hash.h), in steps short enough to give up between them. It is
 * what a receiver compares with what it has. */
#ifndef STORE_SUM_H
#define STORE_SUM_H

#include "core/digest.h"
#include "store/source.h"

#define SUM_STEP_BYTES (16u << 20) /* read in one step, a few ms to some tenths of a second */
#define SUM_STEP_BLOCKS 65536      /* in one step: a hole costs next to nothing, but may be 2^27 blocks */

/* The caller's; `digest` is that of the blocks before `next`, in the end of all. */
struct sum {
	uint32_t block_bytes, next;
	const uint64_t *holes; /* blocks that are not read, being zero (source_map()); NULL: none */
	uint64_t zeros;        /* content hash of a whole block of zeros, once known */
	bool zeros_known;
	struct digest digest;
};

/* Borrows holes. */
void sum_init(struct sum *sum, uint32_t block_bytes, const uint64_t *holes);

/* The content hash of n zeros, at most a block of them, for which `buf` has room. */
uint64_t sum_zeros(struct sum *sum, void *buf, uint32_t n);

/* Hashes the next blocks: 1 when there are more; 0 when all are hashed and the source is still what
 * was listed (its descriptor is closed then); or fails as a read does. I/O threads only. */
int sum_next(struct sum *sum, struct source *s, struct ptcp_err *e);

#endif
