/* Hashes of blocks and files (XXH3, chosen at run time for this processor).
 *
 *   content hash of a chunk    XXH3_64(bytes); a block consists of chunks of HASH_CHUNK_BYTES, the last may be shorter
 *   content hash of a block    of one chunk: the chunk's; else XXH3_64(be64(content hash) of each chunk, in order)
 *   check of a chunk on the wire   XXH3_64(24 bytes of its header as sent | be64(content hash))
 *   term of a block in its file    XXH3_128(be64(index) | be64(length) | be64(content hash))
 *   digest of a file           sum of its blocks' terms, modulo 2^128
 *
 * The digest is independent of the order of blocks and needs no list of hashes in memory. Any thread. */
#ifndef STORE_HASH_H
#define STORE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"
#include "core/err.h"

#define HASH_CHUNK_BYTES (256u << 10)
#define HASH_CHUNKS_MAX 8u /* max number of chunks of a block */

/* Content hash of up to HASH_CHUNK_BYTES. */
uint64_t hash_content(const void *p, size_t n);

/* Content hash of a block whose chunks are hashed one after the other. Zeroed memory is a block without chunks. */
struct block_hash {
	unsigned n;
	uint8_t chunk[HASH_CHUNKS_MAX][8];
};
void block_hash_add(struct block_hash *h, uint64_t content_hash);
uint64_t block_hash_end(const struct block_hash *h);

/* Hash, not 0, of the entry `name`, at most 255 bytes, below the directory with the hash `above`; the top has 0. */
uint64_t hash_name(uint64_t above, const char *name);

uint64_t hash_check(const uint8_t header[24], uint64_t content_hash);
struct digest hash_term(uint64_t index, uint64_t length, uint64_t content_hash);

/* hash_content() by the portable code path, for tests and the benchmark. */
uint64_t hash_content_plain(const void *p, size_t n);

/* ---- The digest of a file, in short steps between which the caller may stop ---- */

#define FILE_DIGEST_STEP_BYTES (16u << 20) /* read per step, a few ms to some tenths of a second */
#define FILE_DIGEST_STEP_BLOCKS 65536      /* per step: holes are fast, but may be 2^27 blocks */

/* Initialized by the caller to block_bytes and holes, else 0. */
struct file_digest {
	uint32_t block_bytes, next;
	const uint64_t *holes; /* blocks that are zero (source_map()), borrowed; NULL: none */
	uint64_t zeros;        /* content hash of a whole chunk of zeros */
	bool zeros_known;
	uint64_t *each;        /* NULL, or receives the content hashes of a step, at most FILE_DIGEST_EACH */
	struct digest digest;  /* sum of the blocks before `next` */
};
#define FILE_DIGEST_EACH 64

/* Reads n bytes, at most HASH_CHUNK_BYTES, at off: 0; 1: all zero, nothing was read; or a negative PTCP_E*. */
typedef int file_digest_read_fn(void *arg, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e);

/* Hashes the next blocks of a file: 1: more are left; 0: all are hashed; or a negative PTCP_E*. */
int file_digest_step(struct file_digest *sum, uint64_t size_bytes, file_digest_read_fn *read, void *arg,
    struct ptcp_err *e);

#endif
