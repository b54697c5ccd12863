/* Structs of options and results of callers, who may have been compiled with an older version: their first member is
 * a size. */
#ifndef CORE_OPTS_H
#define CORE_OPTS_H

#include <ptcp/options.h>
#include <string.h>

#include "core/err.h"

/* Rows of <ptcp/options.h> as initializers of members. */
#define OPTS_INITIAL(TYPE, member, initial, ...) .member = initial,
/* The rows as checks of o->member, in a function with `o`, `e` and the result `r`. */
#define OPTS_CHECK(TYPE, member, initial, min, max, ...) OPTS_CHECK_##TYPE(member, initial, min, max)
#define OPTS_CHECK_UNSIGNED(member, initial, min, max) \
	if (r == 0) r = opts_check_number(#member, (double)o->member, initial, min, max, e);
#define OPTS_CHECK_WORD    OPTS_CHECK_UNSIGNED
#define OPTS_CHECK_PERCENT OPTS_CHECK_UNSIGNED
#define OPTS_CHECK_BUDGET OPTS_CHECK_UNSIGNED
#define OPTS_CHECK_SECONDS OPTS_CHECK_UNSIGNED
#define OPTS_CHECK_BYTES   OPTS_CHECK_UNSIGNED
#define OPTS_CHECK_TEXT(...)

/* The number that an option has by default is permitted beside its range. Written so that NAN is refused. */
static inline int opts_check_number(const char *name, double n, double initial, double min, double max,
    struct ptcp_err *e)
{
	return (n >= min && n <= max) || (n >= initial && n <= initial) ? 0 :
	    err_set(e, PTCP_EUSAGE, "%s: %.10g is out of range (give %.10g to %.10g)", name, n, min, max);
}

/* Copies the caller's options over the defaults in `to`; NULL: the defaults remain. PTCP_EUSAGE for a size of 0 or
 * above `known`; `init` names the function that sets the size. */
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
