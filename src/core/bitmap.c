#include "core/bitmap.h"

#include <string.h>

uint64_t *bitmap_copy(const uint64_t *b, uint32_t n)
{
	uint64_t *copy = bitmap_new(n);

	if (copy != NULL)
		memcpy(copy, b, (size_t)bitmap_bytes(n));
	return copy;
}

uint32_t bitmap_next(const uint64_t *b, bool in, uint32_t from, uint32_t end)
{
	uint64_t flip = in ? 0 : UINT64_MAX, word;
	uint64_t i; /* may pass the largest uint32_t */

	for (i = from; i < end; i = (i / 64 + 1) * 64) {
		word = (b[i / 64] ^ flip) >> (i % 64);
		if (word != 0) {
			i += (unsigned)__builtin_ctzll(word);
			return i < end ? (uint32_t)i : end;
		}
	}
	return end;
}

/* The bits [first, end), all in one word. */
static uint64_t mask(uint64_t first, uint64_t end)
{
	uint64_t n = end - first;

	return (n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX) << (first % 64);
}

void bitmap_set(uint64_t *b, bool in, uint32_t first, uint32_t end)
{
	uint64_t i, next;

	for (i = first; i < end; i = next) {
		next = (i / 64 + 1) * 64;
		if (next > end)
			next = end;
		if (in)
			b[i / 64] |= mask(i, next);
		else
			b[i / 64] &= ~mask(i, next);
	}
}
