/* Limits for waiting, scaled to the machine: see tests/e2e/patience.c. */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#include <stdlib.h>

/* `s` seconds of a quiet machine without sanitizers. */
static inline unsigned patience_s(unsigned s)
{
	const char *text = getenv("PTCP_PATIENCE");
	long factor = text != NULL ? atol(text) : 1;

	return factor > 1 && factor <= 1000 ? s * (unsigned)factor : s;
}

#endif
