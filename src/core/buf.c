#include "core/buf.h"

#include <string.h>

#include "core/charged.h"
#include "core/err.h"

void buf_fini(struct buf *b)
{
	memory_free(b->memory, b->data, b->cap);
	*b = (struct buf){ .memory = b->memory };
}

uint8_t *buf_reserve(struct buf *b, size_t n, struct ptcp_err *e)
{
	size_t len = buf_len(b), cap;
	uint8_t *data;

	if (b->data != NULL && n <= b->cap - b->end)
		return b->data + b->end;
	if (b->data != NULL && n <= b->cap - len && b->start >= len) {
		memcpy(b->data, b->data + b->start, len);
	} else {
		if (n > SIZE_MAX / 2 - len) {
			err_nomem(e);
			return NULL;
		}
		cap = b->cap > 0 ? b->cap : 256;
		while (cap < len + n)
			cap *= 2;
		if ((data = memory_realloc(b->memory, NULL, 0, cap, e)) == NULL)
			return NULL;
		if (len > 0)
			memcpy(data, b->data + b->start, len);
		memory_free(b->memory, b->data, b->cap);
		b->data = data;
		b->cap = cap;
	}
	b->start = 0;
	b->end = len;
	return b->data + len;
}

void buf_consume(struct buf *b, size_t n)
{
	b->start += n;
	if (b->start != b->end)
		return;
	b->start = b->end = 0;
	if (b->cap > BUF_KEPT_BYTES)
		buf_fini(b);
}
