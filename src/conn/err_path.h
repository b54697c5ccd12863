/* The store's error sentences begin with "PATH: ", for callers that print the path separately this removes the prefix. */
#ifndef CONN_ERR_PATH_H
#define CONN_ERR_PATH_H

#include <string.h>

#include "core/err.h"

static inline void err_path_strip(struct ptcp_err *out, const struct ptcp_err *why, const char *path_text)
{
	size_t n = strlen(path_text);

	*out = *why;
	if (strncmp(why->msg, path_text, n) == 0 && strncmp(why->msg + n, ": ", 2) == 0)
		memmove(out->msg, why->msg + n + 2, strlen(why->msg + n + 2) + 1);
}

#endif
