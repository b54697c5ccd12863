/* Files, directories and links that are being received.
 *
 * A file is written into a part file beside its target, ".ptcp-" + 16 hex digits
 * of the XXH3 of its name + ".part" (so a name of 255 bytes has one too), created
 * 0600 and locked with flock(2) as long as this process works on it, and renamed
 * over the target when complete. The target is never opened: a link there is
 * replaced, not followed, and other hard links of it keep the old content. Two
 * transfers of the same file: the second fails with a sentence that says so.
 * Any thread; writes of one file may run side by side. All may block on disk,
 * except where said. Where a file system has no flock(2), nothing keeps two
 * transfers of one file apart. */
#ifndef STORE_SINK_H
#define STORE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "store/dir.h"

struct meta {
	bool set_mode, set_mtime;
	uint32_t mode; /* only 0777 is used */
	struct timespec mtime;
};

struct sink;

/* No I/O. `name` is one component (text_name_ok(), asserted). Copies name, holds
 * dir. NULL without memory. */
struct sink *sink_new(struct dir *dir, const char *name, uint64_t size_bytes, const struct meta *m);
struct sink *sink_ref(struct sink *s);
void sink_unref(struct sink *s); /* with the last hold closes; the part file stays. NULL is fine */

const char *sink_path_text(const struct sink *s, char *out, size_t cap);

/* Write n bytes at off; the first write of a file opens its part, the same name's
 * leftover of an earlier run truncated. off + n <= size (asserted). PTCP_ECANCELED
 * after sink_commit() or sink_discard(). STORE_AGAIN: half of the descriptors this
 * process may have are part files already; when some have been committed it goes on. */
int sink_write(struct sink *s, const void *buf, size_t n, uint64_t off, struct ptcp_err *e);

/* All is written: set length, mode and times and rename to the final name (an
 * empty file is created here); the descriptor is closed. Without set_mode the mode
 * is 0666 less the umask. What the file system cannot hold (EPERM, EOPNOTSUPP for
 * our own file) is left out. PTCP_EIO with EISDIR or EEXIST in e->sys if a directory,
 * a device, FIFO or socket has the name. On failure the part file stays, and this or sink_discard() may be
 * called again; once after success. */
int sink_commit(struct sink *s, struct ptcp_err *e);

/* Give up: remove the part file if this sink opened it. Never fails; does nothing
 * after sink_commit(). */
void sink_discard(struct sink *s);

/* The same, without waiting, for a file that has nothing on disk yet: true if that was so, and from now on
 * nothing is written. False: sink_discard() is due. */
bool sink_give_up(struct sink *s);

/* How many part files are open in this process. */
unsigned sink_open_count(void);

/* True for names that are part files, unfinished links or journals of ptcp. */
bool sink_is_own_name(const char *name);

/* A directory: made if it is not there, at once with the mode of `m` and u+rwx, so
 * that a private directory is private while it fills (with m NULL or without
 * set_mode: the default mode). An existing directory is fine and gains u+rwx for
 * the time being if it lacks it and is ours; anything else in the way fails
 * (EEXIST). */
int store_mkdir(struct dir *parent, const char *name, const struct meta *m, struct ptcp_err *e);
/* Give a received directory its final mode and times, after all within it. Its
 * setuid, setgid and sticky bits stay as they are; what may not be set (EPERM, as
 * for a shared directory of somebody else) is left out. */
int store_dir_finish(struct dir *d, const struct meta *m, struct ptcp_err *e);

/* A symbolic link, made beside and renamed over the target name; a directory in
 * the way fails (EISDIR). Only times of `m` are used. */
int store_symlink(struct dir *parent, const char *name, const char *target, const struct meta *m,
    struct ptcp_err *e);

#endif
