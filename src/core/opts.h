/* Structs of options and results of callers, who may have been compiled with an older version: their first member is
 * a size. */
#ifndef CORE_OPTS_H
#define CORE_OPTS_H

#include <string.h>

#include "core/err.h"

/* Copies the caller's options over the defaults in `to`; NULL: the defaults remain. PTCP_EUSAGE for a size of 0 or above
 * `known`; `init` names the function that sets the size. */
static inline int opts_copy(void *to, size_t known, const void *from, const char *init, struct ptcp_err *e)
{
	size_t size;

	if (from == NULL)
		return 0;
	memcpy(&size, from, sizeof size);
	if (size == 0 || size > known)
		return err_set(e, PTCP_EUSAGE, "options not initialized (call %s())", init);
	memcpy(to, from, size);
	return 0;
}

/* Copies a struct of results, which begins with its size as well, as far as the caller's struct `to` reaches. */
static inline void results_copy(void *to, void *all, size_t known)
{
	size_t size;

	memcpy(&size, to, sizeof size);
	size = size < known ? size : known;
	memcpy(all, &size, sizeof size);
	memcpy(to, all, size);
}

#endif
