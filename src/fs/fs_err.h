/* Error messages of the store. */
#ifndef FS_ERR_H
#define FS_ERR_H

#include "fs/dir.h"

/* "PATH: WHAT: strerror (what to do)", or without `what` "PATH: strerror (what to do)"; the code is derived
 * from `sys`, an errno, which is stored in e->sys. PATH is dir_path_text(d, name). Returns the code. */
int fs_err_sys(struct ptcp_err *e, int sys, const struct dir *d, const char *name, const char *what);

/* "PATH: why"; `sys` is the closest errno. */
int fs_err_set(struct ptcp_err *e, int code, int sys, const struct dir *d, const char *name,
    const char *why);

/* For callers that print the path separately: *why without its prefix "PATH: ". */
void fs_err_strip(struct ptcp_err *out, const struct ptcp_err *why, const char *path_text);

/* fs_err_strip() for a file that is written: "in DIRECTORY: " instead of the path if the directory, not the file, is
 * the likely reason. The directory is the whole path, or its path below the root. Without a directory: *why. */
void fs_err_at(struct ptcp_err *out, const struct ptcp_err *why, const struct dir *d, const char *name, bool whole);

#endif
