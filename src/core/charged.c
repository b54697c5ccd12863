#include "core/charged.h"

#include <stdlib.h>

/* What malloc(3) takes for a block of n bytes: a word beside it, in units of two words. */
static uint64_t block_bytes(size_t n) { return n == 0 ? 0 : ((uint64_t)n + 8 + 15) / 16 * 16; }

void *memory_calloc(struct memory_account *a, size_t bytes, struct ptcp_err *e)
{
	void *new;

	if (memory_charge(a, block_bytes(bytes), e) < 0)
		return NULL;
	if ((new = calloc(1, bytes)) == NULL) {
		memory_release(a, block_bytes(bytes));
		err_nomem(e);
	}
	return new;
}

void *memory_realloc(struct memory_account *a, void *p, size_t from, size_t to, struct ptcp_err *e)
{
	void *new = NULL;

	/* realloc(3) may copy: both blocks exist for a moment. */
	if (to > 0 && (memory_charge(a, block_bytes(to), e) < 0))
		return NULL;
	if (to > 0 && (new = realloc(p, to)) == NULL) {
		memory_release(a, block_bytes(to));
		err_nomem(e);
		return NULL;
	}
	if (to == 0)
		free(p);
	if (from > 0)
		memory_release(a, block_bytes(from));
	return new;
}

void memory_free(struct memory_account *a, void *p, size_t bytes)
{
	if (p != NULL)
		memory_realloc(a, p, bytes, 0, NULL);
}
