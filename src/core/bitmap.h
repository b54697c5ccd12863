/* A fixed set of small integers. */
#ifndef CORE_BITMAP_H
#define CORE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* An empty set for 0 to n - 1, to be released by free(); NULL without memory. */
static inline uint64_t *bitmap_new(uint32_t n)
{
	return calloc(((size_t)n + 63) / 64 + (n == 0), sizeof(uint64_t));
}

/* A copy of `b`, for 0 to n - 1; as bitmap_new(). */
uint64_t *bitmap_copy(const uint64_t *b, uint32_t n);

static inline uint64_t bitmap_bytes(uint32_t n) { return ((uint64_t)n + 63) / 64 * 8; }

static inline bool bitmap_has(const uint64_t *b, uint32_t i)
{
	return (b[i / 64] >> (i % 64) & 1) != 0;
}

/* The first member (`in` false: first non-member) in [from, end), or `end`. Scans a word at a time. */
uint32_t bitmap_next(const uint64_t *b, bool in, uint32_t from, uint32_t end);
/* Adds or removes [first, end), a word at a time. */
void bitmap_set(uint64_t *b, bool in, uint32_t first, uint32_t end);

/* Adds i; false if i was a member already. */
static inline bool bitmap_add(uint64_t *b, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << (i % 64);

	if (b[i / 64] & bit)
		return false;
	b[i / 64] |= bit;
	return true;
}

#endif
