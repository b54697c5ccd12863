#include "core/arena.h"

#include <stdalign.h>

#include "core/charged.h"

#define BLOCK_BYTES (64u << 10)

struct arena_block {
	struct arena_block *before;
	size_t used, bytes; /* used and allocated bytes of `data` */
	alignas(max_align_t) char data[];
};

static struct arena_block *add_block(struct arena *a, size_t bytes, struct ptcp_err *e)
{
	struct arena_block *b = memory_calloc(a->memory, sizeof *b + bytes, e);

	if (b == NULL)
		return NULL;
	b->bytes = bytes;
	b->before = a->last;
	return a->last = b;
}

void *arena_take(struct arena *a, size_t n, struct ptcp_err *e)
{
	const size_t whole = BLOCK_BYTES - sizeof(struct arena_block);
	struct arena_block *b = a->last;

	n = (n + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
	if ((b == NULL || n > b->bytes - b->used) && (b = add_block(a, n > whole ? n : whole, e)) == NULL)
		return NULL;
	b->used += n;
	return b->data + b->used - n;
}

void arena_fini(struct arena *a)
{
	struct arena_block *b;

	while ((b = a->last) != NULL) {
		a->last = b->before;
		memory_free(a->memory, b, sizeof *b + b->bytes);
	}
}
