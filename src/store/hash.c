#include "store/hash.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/byteorder.h"

/* Debian's library uses SSE2 code by default, 0.125 s per GiB; the dispatcher (x86 only) selects AVX2 or
 * AVX-512, 0.022 s (tests/bench/bench_hash.c). Called explicitly: the plain functions stay available. */
#if (defined(__x86_64__) || defined(__i386__)) && __has_include(<xxh_x86dispatch.h>)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#define FAST_64BITS XXH3_64bits_dispatch
#else
#define FAST_64BITS XXH3_64bits
#endif

uint64_t hash_content(const void *p, size_t n) { return FAST_64BITS(p, n); }
uint64_t hash_content_plain(const void *p, size_t n) { return XXH3_64bits(p, n); }

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

static uint64_t hash_zeros(struct file_digest *sum, void *buf, uint32_t n)
{
	if (n == sum->block_bytes && sum->zeros_known)
		return sum->zeros;
	memset(buf, 0, n);
	if (n < sum->block_bytes)
		return hash_content(buf, n);
	sum->zeros_known = true;
	return sum->zeros = hash_content(buf, n);
}

int file_digest_step(struct file_digest *sum, uint64_t size_bytes, file_digest_read_fn *read, void *arg,
    struct ptcp_err *e)
{
	uint64_t off = (uint64_t)sum->next * sum->block_bytes, done = 0;
	uint32_t n, blocks = 0;
	void *buf = malloc(size_bytes < sum->block_bytes ? (size_t)size_bytes + 1 : sum->block_bytes);
	int r = 0;

	if (buf == NULL)
		return err_nomem(e);
	for (; off < size_bytes && done < FILE_DIGEST_STEP_BYTES && blocks < FILE_DIGEST_STEP_BLOCKS; off += n, blocks++) {
		n = size_bytes - off < sum->block_bytes ? (uint32_t)(size_bytes - off) : sum->block_bytes;
		if ((r = read(arg, buf, n, off, e)) < 0)
			break;
		if (r == 0)
			done += n;
		digest_add(&sum->digest, hash_term(sum->next++, n, r > 0 ? hash_zeros(sum, buf, n) : hash_content(buf, n)));
	}
	free(buf);
	return r < 0 ? r : off < size_bytes;
}
