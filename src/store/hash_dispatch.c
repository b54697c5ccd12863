/* The dispatcher of xxhash for the static executable: Debian's static library lacks XXH3_64bits_dispatch(). */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)

/* XXH_INLINE_ALL compiles a private copy of XXH3, for the instruction set of this region. A compiler that ignores the
 * pragma compiles the copy for SSE2. */
#pragma GCC push_options
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t hash_avx2(const void *p, size_t n) { return XXH3_64bits(p, n); }
#pragma GCC pop_options

#include "store/hash.h"

XXH64_hash_t XXH3_64bits_dispatch(const void *p, size_t n);

XXH64_hash_t XXH3_64bits_dispatch(const void *p, size_t n)
{
	return __builtin_cpu_supports("avx2") ? hash_avx2(p, n) : hash_content_plain(p, n);
}

#endif
