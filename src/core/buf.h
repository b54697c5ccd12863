/* A growing byte queue: appended at the end, consumed at the front. */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/memory_budget.h"

struct buf {
	uint8_t *data;
	size_t start, end, cap; /* content is data[start..end) */
	struct memory_account *memory; /* its account, which outlives the content */
};

/* An empty buffer keeps at most this much memory. */
#define BUF_KEPT_BYTES (1u << 20)

#define BUF_INIT ((struct buf){ 0 })

void buf_fini(struct buf *b); /* empty; the account remains */

static inline size_t buf_len(const struct buf *b) { return b->end - b->start; }
/* may be NULL */
static inline uint8_t *buf_head(const struct buf *b) { return b->start > 0 ? b->data + b->start : b->data; }

/* Space for n more bytes at data + end, valid until the next call; NULL without memory, or beyond a limit of the
 * account (the content stays; see memory_charge()). buf_added() appends the bytes written there. */
uint8_t *buf_reserve(struct buf *b, size_t n, struct ptcp_err *e);
static inline void buf_added(struct buf *b, size_t n) { b->end += n; }

/* Drops n bytes, at most buf_len(), from the front. */
void buf_consume(struct buf *b, size_t n);

#endif
