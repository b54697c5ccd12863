/* Memory that is charged to an account of the budget. */
#ifndef CORE_CHARGED_H
#define CORE_CHARGED_H

#include <stddef.h>

#include "core/memory_budget.h"

/* As calloc(3), realloc(3) and free(3), charged with the share of malloc(3). `from` is the present size; 0: p is NULL.
 * NULL: `e` says whether a limit or the system refused, and p stays. */
void *memory_calloc(struct memory_account *a, size_t bytes, struct ptcp_err *e);
void *memory_realloc(struct memory_account *a, void *p, size_t from, size_t to, struct ptcp_err *e);
void memory_free(struct memory_account *a, void *p, size_t bytes);

#endif
