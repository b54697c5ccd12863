/* Sums of blocks and files; see store/hash.h. A digest is a 128-bit number with addition modulo 2^128. */
#ifndef CORE_DIGEST_H
#define CORE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

struct digest {
	uint64_t hi, lo;
};

/* Sums of a block, or of a piece of a block, to find the same bytes in other data: store/hash.h. */
struct block_sum {
	uint64_t content; /* hash of all bytes */
	uint32_t head;    /* hash of the first bytes, cheap at each offset; 0: the run is too short */
};

static inline void digest_add(struct digest *sum, struct digest term)
{
	sum->lo += term.lo;
	sum->hi += term.hi + (sum->lo < term.lo);
}

static inline bool digest_equal(struct digest a, struct digest b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#endif
