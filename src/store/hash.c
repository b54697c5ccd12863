#include "store/hash.h"

#include <xxhash.h>

#include "core/byteorder.h"

/* Debian's library uses SSE2 code by default, 0.125 s per GiB; the dispatcher (x86 only) selects AVX2 or AVX-512, 0.022 s
 * (tests/bench/bench_hash.c). Called by its own name, so that the plain functions stay available. */
#if (defined(__x86_64__) || defined(__i386__)) && __has_include(<xxh_x86dispatch.h>)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#define FAST_64BITS XXH3_64bits_dispatch
#else
#define FAST_64BITS XXH3_64bits
#endif

uint64_t hash_content(const void *p, size_t n)
{
	return FAST_64BITS(p, n);
}

uint64_t hash_content_plain(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

/* The code for inputs of this length is the same on all processors. */
uint64_t hash_check(const uint8_t header[24], uint64_t content_hash)
{
	uint8_t in[32];

	for (int i = 0; i < 24; i++)
		in[i] = header[i];
	put_u64(in + 24, content_hash);
	return XXH3_64bits(in, sizeof in);
}

struct digest hash_term(uint64_t index, uint64_t length, uint64_t content_hash)
{
	uint8_t in[24];
	XXH128_hash_t h;

	put_u64(in, index);
	put_u64(in + 8, length);
	put_u64(in + 16, content_hash);
	h = XXH3_128bits(in, sizeof in);
	return (struct digest){ .hi = h.high64, .lo = h.low64 };
}
