/* Memory of equally large objects that come and go by the thousand, and its charge, for the next object. malloc(3)
 * keeps seven blocks of a size for a thread; a batch has hundreds. One thread at a time. */
#ifndef CORE_SPARES_H
#define CORE_SPARES_H

#include <stddef.h>

#include "core/memory_budget.h"

/* Limit of unused objects; sanitizers see each use after the end if none is kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARES_MAX 0
#else
#define SPARES_MAX 1000
#endif

struct spares {
	struct memory_account *memory;
	size_t bytes;        /* size of an object, at least that of a pointer */
	size_t charge_bytes; /* charged for an object, with the memory of its pointers */
	void *first;
	unsigned n;
};

void spares_init(struct spares *s, struct memory_account *memory, size_t bytes, size_t charge_bytes);
/* Zeroed; NULL: see memory_charge(). */
void *spares_take(struct spares *s, struct ptcp_err *e);
void spares_give(struct spares *s, void *object); /* NULL is fine */
/* Frees all unused objects. */
void spares_fini(struct spares *s);

#endif
