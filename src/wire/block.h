/* Headers of blocks and of their chunks, on data connections (PROTOCOL.md, section 6). */
#ifndef WIRE_BLOCK_H
#define WIRE_BLOCK_H

#include "wire/frame.h"

/* A block, or a chunk of a block (wire_chunk_find()). In transit: header, the 24 bytes of wire_block, the data, the 16
 * bytes of wire_block_end. */
struct wire_block {
	uint64_t id, offset;
	uint32_t length_bytes; /* 1 to WIRE_CHUNK_BYTES; offset + length at most WIRE_FILE_MAX */
	uint32_t packed_bytes; /* 0: the data is in transit as it is; else length of its form, below length_bytes: */
	bool patch;            /* false: compressed; true: without some pieces, see wire_patch_bytes() */
};
/* Length of the data in transit. */
static inline uint32_t wire_block_data_bytes(const struct wire_block *f)
{
	return f->packed_bytes > 0 ? f->packed_bytes : f->length_bytes;
}
/* A chunk consists of at most 64 pieces; the last one may be shorter. A patch has the data of some pieces,
 * compressed or
 * as it is, and then the `u64` of wire_patch.omit: the receiver has the other pieces. */
enum { WIRE_BLOCK_PIECE_BYTES = 4096, WIRE_OMIT_BYTES = 8 };
#define WIRE_BLOCK_PATCH (UINT32_C(1) << 31) /* in the field of packed_bytes */
/* Number of pieces of n bytes, at most WIRE_CHUNK_BYTES. */
static inline uint32_t wire_pieces(uint32_t n) { return (n + WIRE_BLOCK_PIECE_BYTES - 1) / WIRE_BLOCK_PIECE_BYTES; }
/* Whether n bytes have these pieces. */
static inline bool wire_omit_fits(uint64_t omit, uint32_t n)
{
	return wire_pieces(n) == 64 || omit >> wire_pieces(n) == 0;
}
/* Moves the pieces of the n bytes that are not in `omit` to the front; returns their length. */
uint32_t wire_patch_gather(uint8_t *data, uint32_t n, uint64_t omit);
/* Length of these pieces. */
uint32_t wire_patch_bytes(uint32_t n, uint64_t omit);
/* The reverse of wire_patch_gather(): leaves room for the pieces in `omit`. */
void wire_patch_spread(uint8_t *data, uint32_t n, uint64_t omit);
#define WIRE_BLOCK_FIELDS 24
#define WIRE_BLOCK_HEAD_BYTES (WIRE_HEADER_BYTES + WIRE_BLOCK_FIELDS)
size_t wire_block_encode(uint8_t *out, const struct wire_block *f);
/* Decodes header and fields at once, from WIRE_BLOCK_HEAD_BYTES. */
int wire_block_decode(struct wire_block *f, const uint8_t *in, struct ptcp_err *e);

enum wire_block_status { WIRE_BLOCK_GOOD = 0, WIRE_BLOCK_VOID = 1 /* the receiver ignores the block */ };

struct wire_block_end {
	uint32_t status;
	uint64_t check; /* see store/hash.h; 0 without hashing */
};
#define WIRE_BLOCK_END_BYTES 16
size_t wire_block_end_encode(uint8_t *out, const struct wire_block_end *f);
int wire_block_end_decode(struct wire_block_end *f, const uint8_t *in, struct ptcp_err *e);

/* Length of the blocks of a file, which depends on the file's size alone: 256 KiB, doubled until the file has at most
 * 2^20 blocks, up to WIRE_BLOCK_MAX. */
uint32_t wire_grid_bytes(uint64_t size_bytes);
/* Blocks of a file: all of block_bytes but the last, which may be shorter. */
struct wire_grid {
	uint64_t size_bytes;
	uint32_t block_bytes;
};
/* Of a file whose size ENTRY states. */
struct wire_grid wire_grid_of(uint64_t size_bytes);
/* Of an UNSIZED file, once its size is known; before with WIRE_UNSIZED_MAX, so that every block is whole. */
struct wire_grid wire_grid_unsized(uint64_t size_bytes);

/* Number of blocks, at most 2^27; 0 for an empty file and for a size above WIRE_FILE_MAX. */
uint32_t wire_grid_blocks(struct wire_grid g);
/* Length of one block; 0 if the file has no such block. */
uint32_t wire_grid_length(struct wire_grid g, uint32_t block);
/* Position of a BLOCK frame's data. A block longer than WIRE_CHUNK_BYTES is sent in chunks of that length, the last
 * may be shorter; each chunk has a frame of its own. */
struct wire_chunk {
	uint32_t block, index; /* number of the block; number of the chunk within the block */
	uint32_t block_bytes;
	bool last;             /* the chunk is the last one of its block */
};
/* False: the frame does not fit the grid of the file. */
bool wire_chunk_find(struct wire_chunk *out, const struct wire_block *f, struct wire_grid g);
/* Bytes of `count` blocks from `first` on; blocks beyond the end of the file count nothing. */
uint64_t wire_grid_range_bytes(struct wire_grid g, uint32_t first, uint32_t count);

#endif
