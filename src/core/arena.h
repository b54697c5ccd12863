/* Many small objects that live equally long, in blocks of 64 KiB: a few thousand calls of free(3) end millions. One
 * thread at a time. */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stddef.h>

#include "core/memory_budget.h"

struct arena { /* zeroed, with the account: empty */
	struct memory_account *memory;
	struct arena_block *last;
};

/* n bytes, zeroed and aligned for any type; NULL: see memory_charge(). */
void *arena_take(struct arena *a, size_t n, struct ptcp_err *e);
void arena_fini(struct arena *a); /* empty; the account remains */

#endif
