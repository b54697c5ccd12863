#include "store/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/byteorder.h"
#include "fs/direct_io.h"

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

void block_hash_add(struct block_hash *h, uint64_t content_hash)
{
	assert(h->n < HASH_CHUNKS_MAX);
	put_u64(h->chunk[h->n++], content_hash);
}

uint64_t block_hash_end(const struct block_hash *h)
{
	return h->n == 1 ? get_u64(h->chunk[0]) : hash_content(h->chunk, h->n * sizeof h->chunk[0]);
}

uint64_t hash_name(uint64_t above, const char *name)
{
	uint8_t in[8 + 255];
	size_t n = strlen(name);
	uint64_t h;

	assert(n <= 255);
	put_u64(in, above);
	memcpy(in + 8, name, n);
	h = hash_content(in, 8 + n);
	return h != 0 ? h : 1;
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

uint32_t hash_head(const uint8_t *p)
{
	uint32_t head = 0, i;

	for (i = 0; i < HASH_HEAD_BYTES; i++)
		head = head * HASH_HEAD_FACTOR + p[i];
	return head;
}

uint32_t hash_head_leave(void)
{
	uint32_t leave = HASH_HEAD_FACTOR, i;

	for (i = 1; i < HASH_HEAD_BYTES; i *= 2)
		leave *= leave;
	return leave;
}

static uint32_t chunk_bytes(uint32_t block_bytes)
{
	return block_bytes < HASH_CHUNK_BYTES ? block_bytes : HASH_CHUNK_BYTES;
}

static uint64_t hash_zeros(struct file_digest *sum, void *buf, uint32_t n)
{
	bool whole = n == chunk_bytes(sum->block_bytes);

	if (whole && sum->zeros_known)
		return sum->zeros;
	memset(buf, 0, n);
	if (!whole)
		return hash_content(buf, n);
	sum->zeros_known = true;
	return sum->zeros = hash_content(buf, n);
}

/* Hashes the n bytes of a block, the `block`th of the step; adds to *done the bytes read. */
static int hash_block(struct file_digest *sum, uint32_t n, uint64_t off, file_digest_read_fn *read, void *arg,
    void *buf, uint32_t block, uint64_t *done, struct ptcp_err *e)
{
	struct block_hash h = { 0 };
	uint64_t hash;
	uint32_t at, chunk;
	int r;

	for (at = 0; at < n; at += chunk) {
		chunk = chunk_bytes(n - at);
		if ((r = read(arg, buf, chunk, off + at, e)) < 0)
			return r;
		if (r == 0)
			*done += chunk;
		block_hash_add(&h, r > 0 ? hash_zeros(sum, buf, chunk) : hash_content(buf, chunk));
		if (sum->each != NULL && at == 0)
			sum->each[block].head = r == 0 && n >= HASH_HEAD_BYTES ? hash_head(buf) : 0;
	}
	hash = block_hash_end(&h);
	if (sum->each != NULL)
		sum->each[block].content = hash;
	digest_add(&sum->digest, hash_term(sum->next++, n, hash));
	return 0;
}

int file_digest_step(struct file_digest *sum, uint64_t size_bytes, file_digest_read_fn *read, void *arg,
    struct ptcp_err *e)
{
	uint64_t off = (uint64_t)sum->next * sum->block_bytes, done = 0;
	uint32_t n, blocks = 0, max = sum->each != NULL ? FILE_DIGEST_EACH : FILE_DIGEST_STEP_BLOCKS;
	void *buf = direct_io_memory(size_bytes < sum->block_bytes ? chunk_bytes((uint32_t)size_bytes + 1) :
	    chunk_bytes(sum->block_bytes));
	int r = 0;

	if (buf == NULL)
		return err_nomem(e);
	for (; off < size_bytes && done < FILE_DIGEST_STEP_BYTES && blocks < max;
	    off += n, blocks++) {
		n = size_bytes - off < sum->block_bytes ? (uint32_t)(size_bytes - off) : sum->block_bytes;
		if ((r = hash_block(sum, n, off, read, arg, buf, blocks, &done, e)) < 0)
			break;
	}
	free(buf);
	return r < 0 ? r : off < size_bytes;
}
