/* A configuration file read whole; and written so that it is there whole, as it was or as it is to be, at any time. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include <stddef.h>

#include <ptcp/err.h>

#define CONF_FILE_MAX_BYTES (16u << 20)

/* The bytes of a file, freed by the caller: at most one more than CONF_FILE_MAX_BYTES, by which one that is too long is
 * seen. `shown` is its name in errors; PTCP_EIO. */
int conf_read_file(char **out, size_t *n, const char *path, const char *shown, struct ptcp_err *e);

/* Through a new file beside it, synced and renamed; keeps the mode of what was there, and a symbolic link to
 * it. PTCP_EIO or PTCP_ENOSPC; what was there is then untouched. */
int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e);

#endif
