/* A file written so that it is there whole, as it was or as it is to be, at any time. */
#ifndef CONF_SAVE_H
#define CONF_SAVE_H

#include <stddef.h>

#include <ptcp/err.h>

/* Through a new file beside it, synced and renamed; keeps the mode of what was there, and a symbolic link to
 * it. PTCP_EIO or PTCP_ENOSPC; what was there is then untouched. */
int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e);

#endif
