/* Directories beneath a root that nothing the peer says can leave.
 *
 * A tree is the operator's directory: its own path is trusted and may be or
 * contain symbolic links. Every directory below it is a node that knows its
 * parent and one name; it is opened on first use, one component at a time from
 * the parent's descriptor and without following links, and descriptors of nodes
 * not in use are closed again when many are open (DIR_OPEN_MAX a tree), so that
 * any number of nodes may exist. All functions may be called from any thread. */
#ifndef STORE_DIR_H
#define STORE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "store/sys.h"

struct tree;
struct dir;

#define DIR_OPEN_MAX 128 /* or less: see fd_budget_directories() */

#define STORE_AGAIN 1 /* would have to wait for the disk */

/* `root` must exist and be a directory ("" is refused). `sys` outlives the tree. */
int tree_open(struct tree **out, const char *root, const struct sys *sys, struct ptcp_err *e);
/* Nodes keep their tree alive; this only ends the caller's own hold. NULL is fine. */
void tree_unref(struct tree *t);

/* A hold on the root's node; never fails. End it with dir_unref(). */
struct dir *tree_root(struct tree *t);

/* A node for `parent`/`name`; no I/O, nothing need exist. `name` is one component
 * that text_name_ok() accepts (asserted). NULL without memory. */
struct dir *dir_child(struct dir *parent, const char *name);

/* A node for an existing directory at a path of any number of components that a
 * peer or user asked for, below `base`: "" and "." are base itself; a leading '/'
 * is dropped; ".." and symbolic links are followed as long as they stay beneath
 * the root, by openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS), else (no such
 * call in the kernel: ENOSYS or EPERM) component by component with links and ".."
 * refused. PTCP_EIO with errno in e->sys if it does not exist (ENOENT), is not a
 * directory (ENOTDIR) or leaves the root (EXDEV). */
int dir_resolve(struct dir **out, struct dir *base, const char *path, struct ptcp_err *e);

struct dir *dir_ref(struct dir *d);
void dir_unref(struct dir *d); /* NULL is fine */

/* The tree's system calls, for what is done with dir_fd(). */
const struct sys *dir_sys(const struct dir *d);

/* The process's umask when the tree was opened (022 where /proc does not tell). */
mode_t dir_umask(const struct dir *d);

/* The directory's descriptor (O_DIRECTORY, readable where permitted, else O_PATH),
 * pinned open until dir_fd_done(); or a negative PTCP_E*. May block on disk.
 * A node stands for the directory it was first opened as: if the descriptor was
 * closed and another directory has that name now, PTCP_EIO with ESTALE in e->sys. */
int dir_fd(struct dir *d, struct ptcp_err *e);
/* The same without waiting for the disk: 0, or STORE_AGAIN if it would have to
 * (nothing is pinned then). */
int dir_fd_cached(struct dir *d, int *fd, struct ptcp_err *e);
void dir_fd_done(struct dir *d);

/* openat(at, name, flags) that does not wait for the disk: -1 and EAGAIN if it
 * would have to. Where the kernel cannot tell, as openat(). `flags` create nothing. */
int dir_open_cached(const struct dir *d, int at, const char *name, int flags);

/* Something in d, or d itself, was changed: its names, mode or times. To be said after it was done. */
void dir_changed(struct dir *d);
/* Makes durable what dir_changed() told of d and of all directories above it. PTCP_EIO if the disk
 * failed; where a file system cannot do it nothing is done. */
int dir_sync(struct dir *d, struct ptcp_err *e);
/* Whether dir_sync() has something to do for d itself. */
bool dir_unsynced(const struct dir *d);

/* The st_dev of a directory that dir_fd() has opened before; else 0. */
uint64_t dir_dev(struct dir *d);

/* What somebody learnt of the file system with this st_dev and noted with
 * dir_note(), 1 to 3; else 0. The tree keeps its last note only. */
unsigned dir_noted(const struct dir *d, uint64_t dev);
void dir_note(const struct dir *d, uint64_t dev, unsigned note);

/* "a/b/name" relative to the root, escaped for people (text_escape()), `name`
 * may be NULL; "." is the root. Cut in front with ".." where `cap` (at least 16)
 * is too small. Returns `out`. */
const char *dir_path_text(const struct dir *d, const char *name, char *out, size_t cap);

/* The same in raw bytes, for programs. */
const char *dir_path_raw(const struct dir *d, const char *name, char *out, size_t cap);

/* Enough for what people want to see, and for any path that the system takes. */
#define DIR_PATH_TEXT_BYTES 400
#define DIR_PATH_RAW_BYTES 4200

#endif
