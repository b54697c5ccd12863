/* Directories below a root that no path from a peer can leave.
 *
 * A tree is the operator's directory: its own path is trusted and may contain symbolic links. Each directory
 * below is a node with a parent and a name. A node is opened on first use, one component at a time from the
 * parent's descriptor, without following links. Descriptors of unused nodes are closed when many are open
 * (DIR_OPEN_MAX a tree), so the number of nodes is unlimited. All functions may be called from any thread. */
#ifndef FS_DIR_H
#define FS_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "fs/excluded.h"
#include "fs/sys.h"

struct tree;
struct dir;

#define DIR_OPEN_MAX 128 /* limit; fd_budget_directories() may be lower */

#define STORE_AGAIN 1 /* the call would block on disk */

/* `root` must exist and be a directory ("" is refused). `sys` outlives the tree. */
int tree_open(struct tree **out, const char *root, const struct sys *sys, struct ptcp_err *e);
/* A tree of its own for the directory d of another tree, which no path from its peer can leave either. */
int tree_below(struct tree **out, struct dir *d, struct ptcp_err *e);
/* No node is one of these directories, or lies beneath, and no file is one of these files: PTCP_EREFUSED; none of them
 * is replaced. Takes `x`. PTCP_EREFUSED if the root itself is one of them, or lies beneath. Before the first use of the
 * tree. */
int tree_exclude(struct tree *t, struct excluded *x, struct ptcp_err *e);
/* Whether this inode is one of them. */
bool dir_excludes(const struct dir *d, uint64_t dev, uint64_t ino);
/* Whether an excluded directory lies, or may lie, below the directory of this inode. */
bool dir_has_excluded_below(const struct dir *d, uint64_t dev, uint64_t ino);
/* Drops the caller's reference; nodes keep their tree alive. NULL is fine. */
void tree_unref(struct tree *t);

/* A reference to the root's node, to be dropped with dir_unref(). Never fails. */
struct dir *tree_root(struct tree *t);

/* A node for `parent`/`name`, without I/O; the directory need not exist. `name` is one component accepted by
 * text_name_ok() (asserted). NULL without memory. */
struct dir *dir_child(struct dir *parent, const char *name);

/* A node for an existing directory at `path`, from a peer or user, below `base`: "" and "." are `base`; a
 * leading '/' is dropped; ".." and symbolic links are followed as long as they stay below the root, by
 * openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS), or without that call (ENOSYS, EPERM) component by
 * component, refusing links. PTCP_EIO with e->sys ENOENT (does not exist) or ENOTDIR (not a directory);
 * PTCP_EREFUSED with EXDEV (leaves the root). */
int dir_resolve(struct dir **out, struct dir *base, const char *path, struct ptcp_err *e);

struct dir *dir_ref(struct dir *d);
void dir_unref(struct dir *d); /* NULL is fine */

/* The tree's system calls, for use with dir_fd(). */
const struct sys *dir_sys(const struct dir *d);

/* The process's umask, now, and when the tree was opened (022 without /proc). */
mode_t dir_process_umask(void);
mode_t dir_umask(const struct dir *d);
/* The mode of a new file in the directory, as of any program that asks for `mode`: limited by the directory's default
 * ACL, or else by the umask. */
mode_t dir_new_mode(struct dir *d, mode_t mode);

/* The directory's descriptor (O_DIRECTORY, readable where permitted, else O_PATH), pinned until
 * dir_fd_done(); or a negative PTCP_E*. May block on disk. A node stands for the directory of its first
 * opening: if another directory has the name when the node is opened again, PTCP_EIO with ESTALE in e->sys. */
int dir_fd(struct dir *d, struct ptcp_err *e);
/* As dir_fd(), without blocking on disk: 0, or STORE_AGAIN (not pinned). */
int dir_fd_cached(struct dir *d, int *fd, struct ptcp_err *e);
void dir_fd_done(struct dir *d);

/* openat(at, name, flags) without blocking on disk: -1 and EAGAIN if it would. May block where the kernel lacks
 * RESOLVE_CACHED. `flags` create no file. */
int dir_open_cached(const struct dir *d, int at, const char *name, int flags);

/* Symbolic links in the tree of d are followed: by nobody, which is the default; as long as they stay beneath the
 * root; or wherever they lead. Before the session uses the tree. */
enum dir_follow { DIR_FOLLOW_NONE, DIR_FOLLOW_BENEATH, DIR_FOLLOW_ANYWHERE };
void dir_follow(struct dir *d, enum dir_follow how);
/* openat(at, name, flags), where `at` is dir_fd(d) and the flags contain O_NOFOLLOW; what a link leads to, if the
 * tree follows links. `cached`: as dir_open_cached(). */
int dir_open_name(const struct dir *d, int at, const char *name, int flags, bool cached);
/* fstat() of what the link leads to: 0, or -1 and errno; ELOOP if the tree follows none, EXDEV if it leads out of
 * the root. */
int dir_stat_target(const struct dir *d, int at, const char *name, struct stat *st);

enum { DIR_IN_PLACE_LEVELS = DIR_OPEN_MAX / 2 }; /* directories that stay open while files in the lowest arrive */

/* Whether d and the directories above d still have their names, and the root lies at the path given to tree_open():
 * 0, or PTCP_EIO with ESTALE, naming the directory that was moved or replaced. d was opened before. Looks at
 * DIR_IN_PLACE_LEVELS directories, so that a tree of many levels takes linear time: dir_has_name() looks at those
 * further above when they are finished. `check`: of dir_check_new(); directories that are in place count as such
 * until the next check. */
int dir_in_place(struct dir *d, uint64_t check, struct ptcp_err *e);
uint64_t dir_check_new(const struct dir *d);
/* As dir_in_place(), of the name of d alone: the directories above may have been moved. */
int dir_has_name(struct dir *d, struct ptcp_err *e);

/* To be called after a change of names in d, or of d's mode or times. */
void dir_changed(struct dir *d);
/* Makes the changes of d and of all directories above durable. PTCP_EIO if the disk failed; without effect
 * where the file system cannot sync. */
int dir_sync(struct dir *d, struct ptcp_err *e);
/* Whether d has changes since the last sync. */
bool dir_unsynced(const struct dir *d);

/* The st_dev of a directory opened by dir_fd() before; else 0. */
uint64_t dir_dev(struct dir *d);

/* A property of the file system with this st_dev, 1 to 3, cached by dir_set_fs_hint(); else 0. The tree
 * stores the last hint only. */
unsigned dir_fs_hint(const struct dir *d, uint64_t dev);
void dir_set_fs_hint(const struct dir *d, uint64_t dev, unsigned hint);

/* "a/b/name" relative to the root, escaped for display (text_escape()); `name` may be NULL; "." is the root.
 * Cut in front with "../" where `cap` (at least 16) is too small. Returns `out`. */
const char *dir_path_text(const struct dir *d, const char *name, char *out, size_t cap);

/* The path of d with that of the root as given to tree_open(), likewise; cut at the end where `cap` is too small. */
const char *dir_whole_path_text(const struct dir *d, char *out, size_t cap);

/* The path of the root as given to tree_open(). */
const char *dir_root_path(const struct dir *d);

/* As dir_path_text(), in raw bytes, for programs. */
const char *dir_path_raw(const struct dir *d, const char *name, char *out, size_t cap);

/* The whole path of `name` in d, relative to `base` (d itself or a directory above d); the caller frees it. NULL
 * without memory. */
char *dir_path_below(const struct dir *d, const struct dir *base, const char *name);

#define DIR_PATH_TEXT_BYTES 400  /* size of a path in messages */
#define DIR_PATH_RAW_BYTES 4200  /* any path accepted by the system */

#endif
