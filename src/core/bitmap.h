/* A fixed set of small integers. */
#ifndef CORE_BITMAP_H
#define CORE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Zeroed room for n bits, for free(); NULL without memory. */
static inline uint64_t *bitmap_new(uint32_t n)
{
	return calloc(((size_t)n + 63) / 64 + (n == 0), sizeof(uint64_t));
}

static inline uint64_t bitmap_bytes(uint32_t n) { return ((uint64_t)n + 63) / 64 * 8; }

static inline bool bitmap_has(const uint64_t *b, uint32_t i)
{
	return (b[i / 64] >> (i % 64) & 1) != 0;
}

/* The first from `from` on and below `end` that is in the set, or (`in` false) is not; `end` when there
 * is none. A word at a time. */
uint32_t bitmap_next(const uint64_t *b, bool in, uint32_t from, uint32_t end);
/* Adds or removes all from `first` on and below `end`, a word at a time. */
void bitmap_set(uint64_t *b, bool in, uint32_t first, uint32_t end);

/* Adds i; false if it was there. */
static inline bool bitmap_add(uint64_t *b, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	if (b[i / 64] & bit)
		return false;
	b[i / 64] |= bit;
	return true;
}

#endif
