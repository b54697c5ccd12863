/* Files, directories and links that are being received.
 *
 * A file is written into a part file beside its target, ".ptcp-" + 16 hex digits
 * of the XXH3 of its name + ".part" (so a name of 255 bytes has one too), created
 * 0600 and locked with flock(2) as long as this process works on it, and renamed
 * over the target when complete. The target is never opened for writing: a link there is
 * replaced, not followed, and other hard links of it keep the old content. Two
 * transfers of the same file: the second fails with a sentence that says so.
 * A file of several blocks whose source has a version has a journal (journal.h), by which
 * a later run goes on where this one ended.
 * Any thread; writes of one file may run side by side. All may block on disk,
 * except where said. Where a file system has no flock(2), nothing keeps two
 * transfers of one file apart. */
#ifndef STORE_SINK_H
#define STORE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/digest.h"
#include "store/owner.h"
#include "store/xattr.h"

struct meta {
	bool set_mode, set_mtime;
	uint32_t mode;         /* only 0777 is used without `setid` */
	struct timespec mtime; /* the source's, set or not */
	bool setid;            /* setuid, setgid and sticky too, the first two if the owner could be set */
	/* NULL: left as they are. Borrowed until the entry is complete. */
	const struct owner *owner;
	struct owners *owners;       /* with owner: who knows what it is here */
	const struct xattrs *xattrs;
};

#define SINK_VERSION_BYTES 16

/* What else is known of a file that is offered. */
struct sink_opts {
	uint32_t block_bytes; /* of its grid: writes are whole blocks of it, the last may be shorter */
	bool has_version;     /* else there is neither journal nor resumption */
	bool sparse;          /* zeros, in aligned pages of 4 KiB, are left out */
	uint8_t version[SINK_VERSION_BYTES]; /* another one when the content may be another */
};

struct sink;

/* No I/O. `name` is one component (text_name_ok(), asserted). Copies name and opts (NULL: no
 * grid, so no journal, not sparse), holds dir. NULL without memory. */
struct sink *sink_new(struct dir *dir, const char *name, uint64_t size_bytes, const struct meta *m,
    const struct sink_opts *opts);
struct sink *sink_ref(struct sink *s);
/* With the last hold closes; part and journal stay as they are. NULL is fine. */
void sink_unref(struct sink *s);

const char *sink_path_text(const struct sink *s, char *out, size_t cap);

/* ---- Before blocks flow ---- */

enum sink_found {
	SINK_NOTHING, /* to be received whole */
	SINK_SAME,    /* a file of this size and mtime has the name: sink_same_next() tells if it is the same */
	SINK_PART     /* a part of it is there: sink_verify_next() tells what it is worth */
};

struct sink_look {
	enum sink_found found;
	uint64_t *claimed;  /* SINK_PART: bitmap of blocks; the caller's to free() */
	uint32_t n_claimed;
	const char *anew;   /* why a part is of no use ("the source has changed since: it begins anew"), or NULL */
};

/* What is there of an earlier run; at most once, before the first write; I/O threads. Not
 * called, an earlier part is emptied by the first write. After SINK_PART the part is ours and
 * all of it but the claimed blocks reads as zeros (holes where the file system has them), for
 * the source may have holes there, which nobody writes. PTCP_EIO with EWOULDBLOCK in e->sys:
 * another transfer holds the part; sink_part_id() tells which part that is. */
int sink_look(struct sink *s, struct sink_look *out, struct ptcp_err *e);

/* Whether a file of this size and mtime has the name, as far as can be told; for a dry run, which touches
 * nothing. I/O threads. */
bool sink_like(struct sink *s);

/* The file that has the name is the one to be received, but for what costs no data: it gets mode, owner and
 * extended attributes as far as they are to be set and differ. Nothing to do if it has been replaced
 * meanwhile. 1: an attribute was left out, that `e` names. I/O threads. */
int sink_refresh(struct sink *s, struct ptcp_err *e);

/* dev and inode of the part that this sink holds or was refused. False: none so far. The ids of
 * two sinks are the same if one is in the other's way. No I/O, never blocks. */
bool sink_part_id(struct sink *s, uint64_t *dev, uint64_t *ino);

/* After SINK_PART, before the first write: its claims are not wanted; the part is emptied by the first write. */
void sink_begin_anew(struct sink *s);

struct sink_run { /* blocks [first, first + n) */
	uint32_t first, n;
	bool good;          /* else they read as zeros now and are to be sent again */
	struct digest sum;  /* of the terms of the good ones (store/hash.h) */
};
#define SINK_RUNS 64

/* After SINK_PART: reads back and hashes about the next 16 MiB of claimed blocks, while others
 * may write the blocks that are missing. Each claimed block is told once. 1: there is more, 0:
 * that was all, or a negative PTCP_E*. I/O threads, one at a time. */
int sink_verify_next(struct sink *s, struct sink_run runs[SINK_RUNS], unsigned *n,
    struct ptcp_err *e);

/* After SINK_SAME: reads about the next 16 MiB of the existing file. 1: there is more; 0: its
 * digest is in *sum; PTCP_ECHANGED: somebody changed or replaced it meanwhile. I/O threads, one
 * at a time. */
int sink_same_next(struct sink *s, struct digest *sum, struct ptcp_err *e);

/* ---- Writing ---- */

/* Write n bytes at off; the first write of a file opens its part, the same name's leftover of an
 * earlier run truncated (unless sink_look() found it to be of use). off + n <= size, and with a
 * journal one whole block (asserted); `hash` is its content hash, for the journal alone.
 * PTCP_ECANCELED after store_complete() or sink_discard(); after a sync that failed, what that said. */
int sink_write(struct sink *s, const void *buf, size_t n, uint64_t off, uint64_t hash,
    struct ptcp_err *e);

/* So many descriptors it may have open at once, until it is complete or given up; to be taken (fd_budget.h)
 * before it is looked for or written. No I/O. */
unsigned sink_fds(const struct sink *s);

/* Whether sink_write() has a use for the hash. No I/O, never blocks. */
bool sink_has_journal(const struct sink *s);

/* Makes durable what was written until now, so that a power cut costs no more than what comes
 * after; for large files every few seconds, beside writers. I/O threads. On failure the file has
 * failed: nothing of it can be written or completed any more, and its journal forgets what had
 * not been durable before. Of one file one at a time. */
int sink_sync(struct sink *s, struct ptcp_err *e);

/* ---- The end ---- */

/* Give up: remove the part file if this sink opened it, and its journal. Never fails; does nothing
 * after success of store_complete(). */
void sink_discard(struct sink *s);

/* Interrupted: part and journal stay for a later run if the journal holds anything, else as
 * sink_discard(). */
void sink_keep(struct sink *s);

/* As sink_discard(), without waiting, for a file that has nothing on disk yet: true if that was
 * so, and from now on nothing is written. False: sink_discard() or sink_keep() is due. */
bool sink_give_up(struct sink *s);

/* True for names that are part files, unfinished links or journals of ptcp. */
bool sink_is_own_name(const char *name);

enum store_sync {
	STORE_SYNC_NONE,  /* the kernel writes it when it likes */
	STORE_SYNC_GROUP, /* what succeeded is durable when store_complete() returns */
	STORE_SYNC_FILE   /* and each before the next is begun */
};

struct store_end {
	struct sink *sink;    /* a file to complete, or NULL */
	struct dir *dir;      /* with sink NULL: where a link or directory was made, or what was finished */
	int result;           /* 0 or a negative PTCP_E* */
	struct ptcp_err *why; /* the caller's; may be NULL */
	bool lacking;         /* with result 0: an extended attribute could not be kept, `why` names it */
	bool synced;          /* the store's */
};

/* Completes files that are written, up to 1,000 at a time, and makes durable the names, links
 * and directories given with them, with all directories above. In steps, each for all: length,
 * mode and times (without set_mode the mode is 0666 less the umask; what the file system cannot
 * hold, EPERM, EOPNOTSUPP for our own file, is left out; an empty file is created here); data
 * synced; renamed to the final name; directories synced; descriptors closed, journals removed. A
 * crash between any two leaves the old file, a part to resume, or the new file. PTCP_EIO with
 * EISDIR or EEXIST in sys if a directory, a device, FIFO or socket has the name, with ESTALE if what
 * has the part's name is not what was written. A sync that
 * fails is that file's failure; where a file system cannot sync, nothing is synced. Of a failure
 * before the renaming the part stays, and this may be called again (to no avail if syncing
 * failed), or sink_discard() or sink_keep(); once after success. */
void store_complete(struct store_end *of, unsigned n, enum store_sync sync);

/* A directory: made if it is not there, at once with the mode of `m` and u+rwx, so
 * that a private directory is private while it fills (with m NULL or without
 * set_mode: the default mode). An existing directory is fine and gains u+rwx for
 * the time being if it lacks it and is ours; anything else in the way fails
 * (EEXIST). *made (NULL is fine): it was not there, so nothing is in it. */
int store_mkdir(struct dir *parent, const char *name, const struct meta *m, bool *made,
    struct ptcp_err *e);
/* Give a received directory its final attributes, mode and times, after all within it. Its
 * setuid, setgid and sticky bits stay as they are unless `setid`; what may not be set (EPERM, as
 * for a shared directory of somebody else) is left out. 1: so was an extended attribute, that `e` names. */
int store_dir_finish(struct dir *d, const struct meta *m, struct ptcp_err *e);

/* A symbolic link, made beside and renamed over the target name; a directory in
 * the way fails (EISDIR). Only times and owner of `m` are used. */
int store_symlink(struct dir *parent, const char *name, const char *target, const struct meta *m,
    struct ptcp_err *e);

/* Another name of a regular file, which is at `path` below `base` (".." and links on the way are refused):
 * made beside and renamed over the target name, unless that is a name of the same file already. */
int store_hardlink(struct dir *base, const char *path, struct dir *parent, const char *name,
    struct ptcp_err *e);

#endif
