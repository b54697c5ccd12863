/* Work on names that a client requests: making and removing directories, removing files, renaming. Nothing here
 * follows a link in a last component, touches an excluded directory, or, except for manage_clear(), the files of
 * running or interrupted transfers. All functions block on disk. */
#ifndef STORE_MANAGE_H
#define STORE_MANAGE_H

#include "store/dir.h"

/* Makes the directory `name` in `d`. `existing`: an existing directory is no failure. */
int manage_mkdir(struct dir *d, const char *name, bool existing, struct ptcp_err *e);

/* Removes a file, link or special file. A directory: PTCP_EIO with EISDIR in e->sys. */
int manage_remove(struct dir *d, const char *name, struct ptcp_err *e);
/* The same for an entry of a directory to be removed with its content: files of transfers too. */
int manage_clear(struct dir *d, const char *name, struct ptcp_err *e);
/* Removes the empty directory d, a node made by dir_child(). */
int manage_rmdir(struct dir *d, struct ptcp_err *e);

/* Renames `name` in `from` to `new_name` in `to`, by one system call. `replace`: an existing file, link or empty
 * directory is replaced, else PTCP_EIO with EEXIST in e->sys. A directory above an excluded one is refused. */
int manage_rename(struct dir *from, const char *name, struct dir *to, const char *new_name, bool replace,
    struct ptcp_err *e);

#endif
