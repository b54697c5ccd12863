/* Compression of the blocks of one session by zstd (PROTOCOL.md, BLOCK): each chunk is a zstd frame of its own, or
 * stays as it is if it shrinks by less than 1/32. The hashes are of the data, not of the compressed form.
 *
 * With WIRE_COMPRESS_AUTO the level follows the measured rates (model/compression.h).
 *
 * Any thread. */
#ifndef STREAM_PACKING_H
#define STREAM_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/memory_budget.h"

struct packing; /* NULL, where functions take one: no compression, nothing is counted */

/* `threads`: number of threads that may compress at once. `account`: charged with the memory of the compressors, and
 * borrowed; without memory for a compressor chunks stay as they are. */
int packing_new(struct packing **out, unsigned threads, struct memory_account *account, struct ptcp_err *e);
void packing_free(struct packing *p); /* no stream uses it */
/* A sender compresses as wire_open.compress says; at first not. */
void packing_set(struct packing *p, uint8_t compress);
/* A stream of this RTT begins to send; 0: the RTT is unknown. */
void packing_begin(struct packing *p, double rtt_s);
/* Level of zstd in use now; 0: chunks stay as they are. */
int packing_level(const struct packing *p);

/* Compresses n bytes of a file, at most WIRE_CHUNK_BYTES, in place. Returns the compressed length, below n, or 0: the
 * bytes are as they were. `file` tells the files apart, and may be NULL. */
uint32_t packing_pack(struct packing *p, const void *file, uint8_t *data, uint32_t n);
/* The channel of stream `number` has accepted this many bytes; `waited`: the channel or a rate limit was full
 * meanwhile. Decides about the level several times per second. */
void packing_sent(struct packing *p, unsigned number, uint64_t bytes, bool waited, struct mono now);

/* Restores n bytes, at most WIRE_CHUNK_BYTES, in the place of their compressed form: 0; PTCP_EVERIFY: the form is of
 * no n bytes; or PTCP_ENOMEM. The memory for that belongs to the calling thread until its end. */
int packing_unpack(struct packing *p, uint8_t *data, uint32_t packed, uint32_t n);

/* Bytes that were compressed so far, or restored, and the length of their compressed forms. */
struct packing_counts {
	uint64_t from_bytes, to_bytes;
};
struct packing_counts packing_counts(const struct packing *p);

#endif
