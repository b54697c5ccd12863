/* The sentences of the store's failures. */
#ifndef STORE_STORE_ERR_H
#define STORE_STORE_ERR_H

#include "store/dir.h"

/* "PATH: WHAT: why (what to do)" with the code that fits `sys`, an errno, which
 * is kept in e->sys. PATH is dir_path_text(d, name). Returns the code. */
int store_err_sys(struct ptcp_err *e, int sys, const struct dir *d, const char *name, const char *what);

/* "PATH: why", the reason being our own; `sys` is the errno that comes nearest. */
int store_err_why(struct ptcp_err *e, int code, int sys, const struct dir *d, const char *name,
    const char *why);

/* Whether what is at `name` in `at` may be replaced: nothing, a file or a link, but no device, FIFO,
 * socket or directory. 0, or PTCP_EIO. */
int store_err_unless_replaceable(struct ptcp_err *e, int at, const struct dir *d, const char *name);

#endif
