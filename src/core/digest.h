/* A 128-bit number with addition modulo 2^128; see store/hash.h. */
#ifndef CORE_DIGEST_H
#define CORE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

struct digest {
	uint64_t hi, lo;
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
