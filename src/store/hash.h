/* Hashes of blocks and files (XXH3, chosen at run time for this processor).
 *
 *   content hash of a chunk    XXH3_64(bytes); a block consists of chunks of HASH_CHUNK_BYTES, the last may be shorter
 *   content hash of a block    of one chunk: the chunk's; else XXH3_64(be64(content hash) of each chunk, in order)
 *   check of a chunk on the wire   XXH3_64(24 bytes of its header as sent | be64(content hash))
 *   term of a block in its file    XXH3_128(be64(index) | be64(length) | be64(content hash))
 *   head of a block            sum of b[i] * HASH_HEAD_FACTOR^(HASH_HEAD_BYTES - 1 - i) modulo 2^32, of its first
 *                              HASH_HEAD_BYTES; 0 for a shorter block
 *   digest of a file           sum of its blocks' terms, modulo 2^128
 *
 * The digest is independent of the order of blocks and needs no list of hashes in memory. Any thread. */
#ifndef STORE_HASH_H
#define STORE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/digest.h"
#include "core/err.h"

#define HASH_CHUNK_BYTES (256u << 10)
#define HASH_CHUNKS_MAX 8u /* max number of chunks of a block */

/* Content hash of up to HASH_CHUNK_BYTES. */
uint64_t hash_content(const void *p, size_t n);

/* Content hash of a block, chunk by chunk. Zeroed memory is a block without chunks. */
struct block_hash {
	unsigned n;
	uint8_t chunk[HASH_CHUNKS_MAX][8];
};
void block_hash_add(struct block_hash *h, uint64_t content_hash);
uint64_t block_hash_end(const struct block_hash *h);

enum {
	HASH_PIECE_BYTES = 4096,     /* a chunk has at most 64 pieces */
	HASH_HEAD_BYTES = 1024,
	HASH_HEAD_FACTOR = 747796405 /* 5 modulo 8: the powers have the longest period */
};
/* Of HASH_HEAD_BYTES at p. */
uint32_t hash_head(const uint8_t *p);
/* The head one byte further: `out` is the first byte of the old one, `in` the last of the new one. `leave` is
 * hash_head_leave(). */
static inline uint32_t hash_head_roll(uint32_t head, uint8_t out, uint8_t in, uint32_t leave)
{
	return head * HASH_HEAD_FACTOR + in - out * leave;
}
uint32_t hash_head_leave(void);

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
	struct block_sum *each; /* NULL, or receives the sums of the blocks of a step, at most FILE_DIGEST_EACH */
	struct digest digest;  /* sum of the blocks before `next` */
};
#define FILE_DIGEST_EACH 64

/* Reads n bytes, at most HASH_CHUNK_BYTES, at off: 0; 1: all zero, nothing was read; or a negative PTCP_E*. */
typedef int file_digest_read_fn(void *arg, void *buf, uint32_t n, uint64_t off, struct ptcp_err *e);

/* Hashes the next blocks of a file: 1: more are left; 0: all are hashed; or a negative PTCP_E*. */
int file_digest_step(struct file_digest *sum, uint64_t size_bytes, file_digest_read_fn *read, void *arg,
    struct ptcp_err *e);

/* ---- Search (search.c) ----
 *
 * Finds blocks, or pieces of blocks, by their sums at any offset of a file, where an insertion has moved them. A head
 * that rolls over the file byte by byte finds candidates, and the content hash decides. Behind each unit found, the
 * next unit is expected, so that most of the file is hashed rather than rolled over. */

enum {
	SEARCH_UNITS_MAX = 4096,
	SEARCH_MEMORY_BYTES = 4 * HASH_CHUNK_BYTES + (128 << 10) /* a search, with the offsets found */
};
#define SEARCH_NOWHERE UINT64_MAX

/* Reads n bytes at off: the number of bytes read, fewer at the end of the file; -1: the search ends there. */
typedef ssize_t search_read_fn(void *arg, void *buf, size_t n, uint64_t off);

struct search {
	const struct block_sum *unit;    /* n sums, 1 to SEARCH_UNITS_MAX */
	uint32_t n;
	uint32_t unit_bytes, last_bytes; /* at most HASH_CHUNK_BYTES; last_bytes of the last unit */
	bool one;                        /* the search ends with the first unit found */
	search_read_fn *read;
	void *arg;
};

/* Looks in [from, to) of the file for the units i with found[i] of SEARCH_NOWHERE, and replaces the latter by the
 * offset of the unit. The first unit is expected at `from`. Equal units are found together; units without a head are
 * found behind others only. *scanned: bytes examined. PTCP_ENOMEM. */
int search_file(const struct search *s, uint64_t from, uint64_t to, uint64_t *found, uint64_t *scanned,
    struct ptcp_err *e);

#endif
