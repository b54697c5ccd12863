/* Received files, directories and links.
 *
 * A file is written into a part file beside its target, ".ptcp-" + 16 hex digits of the XXH3 of its name +
 * ".part" (so that a name of 255 bytes has a part, too), created 0600, locked with flock(2) while this
 * process works on it, and renamed to the target when complete. The target is never opened for writing, except by
 * sink_opts.in_place: a link is replaced, not followed, and other hard links keep the old content. Of two transfers of
 * one file the second fails, or has a private part (sink_part_alone()). A file of several blocks whose source has a
 * version has a journal (journal.h), from which a later run resumes.
 *
 * Any thread; writes of one file may run concurrently. All functions may block on disk, except where stated.
 * Without flock(2) on a file system, two transfers of one file are not kept apart. */
#ifndef STORE_SINK_H
#define STORE_SINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/digest.h"
#include "fs/direct_io.h"
#include "fs/xattr.h"
#include "store/backup.h"
#include "store/owner.h"
#include "store/pipe_sink.h"
#include "store/published.h"
#include "store/reference.h"
#include "store/renames.h"
#include "store/rules.h"

struct meta {
	bool set_mode, set_mtime;
	uint32_t mode;         /* without `setid` only 0777 is used */
	struct timespec mtime; /* time of the source, even if not set */
	bool setid;            /* set sticky, too, and setuid and setgid if the owner could be set */
	/* NULL: not set. Borrowed until the entry is complete. */
	const struct owner *owner;
	struct owners *owners;       /* resolves the names of `owner` */
	const struct xattrs *xattrs;
	bool acls;                   /* with set_mode: sets those in `xattrs`, named by `owners`, and removes others */
	const struct attr_map *map;  /* changes of ACLs; the rest is changed already; NULL: none */
	struct published *published; /* files that are not replaced, and will have the file; NULL: none */
	struct backup *backup;       /* keeps what is replaced; NULL: nothing is kept */
	struct references *references; /* older copies, which may share files; NULL: none */
	unsigned xattr_kinds;        /* kinds that are set, but for ACLs */
};

#define SINK_VERSION_BYTES 16

/* Of a host that writes parts for another host, which gives the host up if it does not answer: what the host writes
 * later could spoil a complete file. */
struct sink_lease {
	atomic_uint_least64_t until_ns; /* a time of mono_now() */
	atomic_bool refused;            /* a write came later, and failed with PTCP_ETIMEOUT */
};

/* Properties of an offered file. */
struct sink_opts {
	uint32_t block_bytes; /* length of the grid's blocks; the last block may be shorter */
	bool has_version;     /* false: no journal, no resumption */
	bool matches;         /* the hashes of the source's blocks can be had, for sink_match() */
	bool delta;           /* with `matches`: an existing file of the name may have blocks of the source, too */
	/* With `matches`: earlier names of a missing file; outlives the work of the sink. NULL: none. */
	struct renames *renames;
	bool in_place;        /* an existing file is written to, not replaced */
	struct store_rules rules;   /* about what exists: write_once if there is an owner */
	struct store_match match;   /* the only version to replace: looked for by sink_inspect(), and again, with the
	                               lock on the part, right before the rename; PTCP_EREFUSED with ESTALE */
	bool unsized;         /* the size is not known yet, see sink_set_size() */
	struct stat *status;  /* NULL, or gets the status of the complete file, by store_complete() */
	bool sparse;          /* aligned 4 KiB pages of zeros are not written */
	struct sink_lease *lease; /* lease of this host; outlives the sink; NULL: none is needed */
	/* A file of several blocks is written, and read back, by direct I/O, where its file system can; of the
	 * transfer; NULL: by the page cache. */
	struct direct_io *direct_io;
	bool shared;          /* other hosts write into the part (sink_join()): what is zeroed here
	                         is flushed before it counts */
	uint8_t version[SINK_VERSION_BYTES]; /* changes with the content */
	/* NULL, or the client that adds the file: an existing name is not replaced, and the part file has a name of
	 * this client's, so that clients neither share nor disturb their parts. Copied. */
	const char *owner;
};

struct sink;

/* No I/O. `name` is one component (text_name_ok(), asserted). Copies name and opts (NULL: no blocks, no
 * journal, not sparse), keeps a reference to dir. NULL without memory. */
struct sink *sink_new(struct dir *dir, const char *name, uint64_t size_bytes, const struct meta *m,
    const struct sink_opts *opts);
/* The output of `pipe`, borrowed: only writes, sink_admits() and references are meaningful. */
struct sink *sink_of_pipe(struct pipe_sink *pipe);
struct sink *sink_ref(struct sink *s);
/* The last reference closes part and journal, which stay on disk. NULL is fine. */
void sink_unref(struct sink *s);

/* As fs_err_at(). */
void sink_err_at(struct ptcp_err *out, const struct ptcp_err *why, const struct sink *s, bool whole);
const char *sink_path_text(const struct sink *s, char *out, size_t cap);

/* ---- Before blocks arrive ---- */

enum sink_found {
	SINK_NOTHING, /* receive the whole file */
	SINK_KEPT,    /* what exists, or does not exist, stays as it is by the rules of sink_opts */
	SINK_COPIED,  /* the part has all data, from a reference or a file with several names: store_complete() is to
	                 follow */
	SINK_UNCHANGED, /* RULES_UNCHANGED: has got its attributes, as by sink_refresh() */
	SINK_SAME,    /* RULES_COMPARE: sink_same_next() compares */
	SINK_PART     /* blocks exist: sink_verify_next() verifies those of a part, sink_match() finds the others */
};

struct sink_existing {
	enum sink_found found;
	uint64_t *claimed;  /* SINK_PART: bitmap of blocks, to be released by the caller with free() */
	uint32_t n_claimed;
	uint64_t *candidates; /* claimed blocks for sink_match(), of a part of another version, or of the existing file;
	                         likewise to be released; NULL: none */
	bool in_part;       /* candidates are in the part, which keeps other data until all are matched */
	bool lacking;       /* SINK_UNCHANGED: as sink_refresh() with the result 1 */
	bool is_linked;     /* the name is a new link to a reference: store_complete() of the directory is to follow */
	bool is_new;        /* nothing has the name, */
	uint64_t held_bytes; /* space that the file will replace: (at most) of an existing one, and of a part */
	const char *restart_why; /* why an existing part is not used, a phrase; or NULL */
};

/* Looks for what the rules keep, and for the result of an earlier run; at most once, before the first write; I/O
 * threads. Without this call the first write empties an earlier part. After SINK_PART this sink owns the part, and all
 * but its claimed blocks read as zeros (holes where the file system has them), since holes of the source are not
 * transferred. PTCP_EIO with EWOULDBLOCK in e->sys: another transfer holds the part, identified by
 * sink_part_id(). PTCP_EREFUSED with EEXIST in e->sys: the rules refuse the entry, as another one has the name. */
#define STORE_EXISTS_WHY "File exists (choose another name, or do without exclusive creation)"
#define STORE_OTHER_VERSION_WHY "another version has the name (read the file again, then repeat the change)"
#define STORE_TAKEN_WHY "the name is taken, and this client may only add files (choose another name)"
int sink_inspect(struct sink *s, struct sink_existing *out, struct ptcp_err *e);
/* After sink_inspect(), of a missing file: claims blocks for sink_match() of candidates in sink_opts.renames, with
 * `delta` of any file of the size. 1: call this again. */
int sink_inspect_renamed(struct sink *s, struct sink_existing *out, struct ptcp_err *e);
/* After SINK_SAME, if the content differs: looks for a part, and for blocks of that file. */
int sink_inspect_other(struct sink *s, struct sink_existing *out, struct ptcp_err *e);
/* The same without side effects on disk, for a dry run: SINK_NOTHING, SINK_KEPT or SINK_SAME; SINK_KEPT stands for
 * SINK_UNCHANGED, and without `compares` for SINK_SAME. */
int sink_look(struct sink *s, bool compares, struct sink_existing *out, struct ptcp_err *e);

/* What has the name; `excluded` entries count as nothing. I/O threads. */
int store_look(struct dir *parent, const char *name, struct rules_entry *out, struct ptcp_err *e);

/* For a target with the right content: sets mode, owner and extended attributes where requested and different.
 * Without effect if the target was replaced meanwhile. 1: the mode or an attribute was refused, named by `e`.
 * SINK_REFRESHED_COPY: as SINK_COPIED. I/O threads. */
enum { SINK_REFRESHED_COPY = 2 };
int sink_refresh(struct sink *s, struct ptcp_err *e);

/* After EWOULDBLOCK: uses a private part instead of the locked part; no later run resumes a private part. The last of
 * two such transfers gives the name. False: the rules permit a single transfer at a time. */
bool sink_part_alone(struct sink *s);
/* Whether sink_part_alone() may do so. No I/O, never blocks. */
bool sink_may_be_alone(const struct sink *s);

/* dev and inode of the part that this sink holds or was refused, hence of the complete file; after sink_refresh() of
 * the target. False: no part so far. Two sinks with equal ids exclude each other. No I/O, never blocks. */
bool sink_part_id(struct sink *s, uint64_t *dev, uint64_t *ino);

/* After SINK_PART, before the first write: drops the claims; the first write empties the part. */
void sink_restart(struct sink *s);

struct sink_run { /* blocks [first, first + n) */
	uint32_t first, n;
	bool good;          /* false: the blocks were zeroed and must be sent again */
	struct digest sum;  /* sum of the terms of good blocks (store/hash.h) */
	uint64_t from, to;  /* sink_match(): the old file may have pieces of bad blocks between these offsets; 0: no */
};
#define SINK_RUNS 64

/* After SINK_PART: reads back and hashes about the next 16 MiB of claimed blocks, while other threads may
 * write missing blocks. Each claimed block is reported once. 1: more are left, 0: done, or a negative
 * PTCP_E*. I/O threads, one at a time. */
int sink_verify_next(struct sink *s, struct sink_run runs[SINK_RUNS], unsigned *n, struct ptcp_err *e);

/* A search for blocks at other offsets than their own. */
struct sink_search {
	uint64_t allowed_bytes;  /* bytes of the old file to search, at most; 0: no search */
	uint64_t searched_bytes; /* bytes searched, */
	uint64_t found_bytes;    /* bytes of the source, found by the search */
};

/* Of the candidates [first, first + n), n at most SINK_RUNS: finds blocks with the content hashes of the source,
 * `sum`, in the part, or in the file of the name or of an earlier name, and copies the latter into the part: the very
 * bytes that were hashed, whoever changes the file meanwhile. Behind an insertion, the search looks for the blocks
 * [first, first + ahead), with sums for all, at any offset. Reports each block once, as sink_verify_next(). I/O
 * threads, one at a time. */
int sink_match(struct sink *s, uint32_t first, uint32_t n, uint32_t ahead, const struct block_sum *sum,
    struct sink_search *search, struct sink_run runs[SINK_RUNS], unsigned *n_runs, struct ptcp_err *e);

/* Looks for the pieces of bad blocks, of HASH_PIECE_BYTES, by the sums of all pieces, in [from, to) of the old file,
 * and copies found pieces into the part; bit k of has[i]: piece k of block first + i. n at most SINK_SPLIT. I/O
 * threads, one at a time. */
enum { SINK_SPLIT = 64 };
int sink_split(struct sink *s, uint32_t first, uint32_t n, const struct block_sum *sum, uint64_t from, uint64_t to,
    uint64_t has[SINK_SPLIT], struct sink_search *search, struct ptcp_err *e);
/* Reads n bytes at off of the part, which sink_split() has written. Any thread. */
int sink_recall(struct sink *s, void *buf, size_t n, uint64_t off, struct ptcp_err *e);

/* After SINK_SAME: reads about the next 16 MiB of the target. 1: more are left; 0: its digest is in *sum;
 * PTCP_ECHANGED: the target was changed or replaced meanwhile. I/O threads, one at a time. */
int sink_same_next(struct sink *s, struct digest *sum, struct ptcp_err *e);

/* Reserves the space of the file in the quota of its tree, if any, as far as it is known before: PTCP_ENOSPC, with
 * EDQUOT in e->sys. Without this call the writes take the space. No I/O. */
int sink_reserve(struct sink *s, struct ptcp_err *e);

/* ---- While blocks arrive ---- */

/* Writes n bytes at off. The first write opens the part and empties an existing one (unless sink_inspect()
 * returned SINK_PART). off + n <= size, and with a journal these bytes end a block (asserted) whose other chunks, if
 * any, were written by sink_write_chunk(); `hash` is the block's content hash, for the journal. PTCP_ECANCELED after
 * store_complete() or sink_discard(); after a failed sync its error. */
int sink_write(struct sink *s, const void *buf, size_t n, uint64_t off, uint64_t hash, struct ptcp_err *e);
/* Whether a block may be written now: always, except to a pipe. */
bool sink_admits(struct sink *s, uint32_t block);
/* As sink_write(), for data that ends no block: the journal gets no record, so a later run does not trust the
 * data. */
int sink_write_chunk(struct sink *s, const void *buf, size_t n, uint64_t off, struct ptcp_err *e);

/* Maximum number of descriptors until the file is complete or discarded; to be taken (fd_budget.h) before
 * sink_inspect() or the first write. No I/O. */
unsigned sink_fds(const struct sink *s);

/* Whether the part was opened: writes no longer fail with EWOULDBLOCK. No I/O, never blocks. */
bool sink_is_open(const struct sink *s);

/* Whether writes bypass the page cache, as far as is known before the part is open. No I/O, never blocks. */
bool sink_is_direct(const struct sink *s);

/* Whether sink_write() uses the hash. No I/O, never blocks. */
bool sink_has_journal(const struct sink *s);

/* Makes the data written so far durable, to limit the loss by a power cut; for large files every few seconds,
 * concurrent with writers. I/O threads, one at a time per file. On failure the file has failed: writes and
 * completion are refused, and the journal drops all records since the last successful sync. */
int sink_sync(struct sink *s, struct ptcp_err *e);

/* ---- Parts that several hosts write, on a shared file system ----
 *
 * One host makes, locks and journals the part, and completes the file; other hosts open the existing part without a
 * lock. Their caches are their own: a block counts once the host that wrote it has flushed it. */

/* Opens the part as the first write would, without a write. I/O threads. */
int sink_open(struct sink *s, struct ptcp_err *e);
/* The name of the part file, beside the target, into `out` of SINK_PART_BYTES bytes. No I/O. */
#define SINK_PART_BYTES 40
const char *sink_part(const struct sink *s, char *out);
struct dir *sink_dir(const struct sink *s); /* borrowed */
uint64_t sink_size(const struct sink *s);
bool sink_is_sparse(const struct sink *s);
bool sink_is_in_place(const struct sink *s); /* known after sink_inspect() */
/* Whether the name is one that sink_part() may return. */
bool sink_is_part(const char *name);
/* A block was written and flushed by another host. Any thread. */
int sink_wrote(struct sink *s, uint32_t block, uint64_t hash, struct ptcp_err *e);

/* On another host: `s` has the name and directory of the part itself, which must have the inode, not 0. The first write
 * opens the part. Before the first write; no I/O. */
void sink_join(struct sink *s, uint64_t ino);
/* Whether a write has failed because this host does not see the part, and may see it later. Any thread. */
bool sink_is_late(const struct sink *s, const struct ptcp_err *why);
/* Makes the writes so far visible to other hosts; `durable`: and durable. I/O threads. */
int sink_flush(struct sink *s, bool durable, struct ptcp_err *e);
/* Makes the writes to all these parts durable by one call, if possible: true. False: flush each of them. I/O
 * threads. */
bool sink_flush_all(struct sink *const *of, unsigned n);
/* Closes the flushed part of sink_join() until the next write, unless a write is running. I/O threads. */
void sink_rest(struct sink *s);
/* Refuses further writes, waits for running ones and closes the part, which stays. I/O threads. */
void sink_part_with(struct sink *s);

/* ---- The end ---- */

/* The size of a file that was made with its maximum size, before store_complete(). */
void sink_set_size(struct sink *s, uint64_t size_bytes);

/* Before store_complete(): the file has this time. */
void sink_set_time(struct sink *s, struct timespec mtime);

/* Removes the part file, if opened by this sink, and its journal. Never fails; without effect after a
 * successful store_complete(). */
void sink_discard(struct sink *s);

/* After an interruption: keeps part and journal for a later run if the journal has records, else as
 * sink_discard(). */
void sink_keep(struct sink *s);

/* Instead of either: gives the first `bytes` of the part, all of them written, the name of the file + ".partial",
 * durably, in place of an earlier file of that name. On failure as sink_discard(). */
#define SINK_PARTIAL_SUFFIX ".partial"
int sink_keep_beginning(struct sink *s, uint64_t bytes, struct ptcp_err *e);

/* As sink_discard(), without waiting, for a file without data on disk: true if so, and no write follows.
 * False: call sink_discard() or sink_keep(). */
bool sink_discard_unopened(struct sink *s);

enum store_sync {
	STORE_SYNC_NONE,  /* the kernel decides when to write */
	STORE_SYNC_GROUP, /* successful items are durable when store_complete() returns */
	STORE_SYNC_FILE   /* each item is durable before the next begins */
};

struct store_item {
	struct sink *sink;    /* a file to complete, or NULL */
	struct dir *dir;      /* directory of a new link or directory, or a finished directory, if sink is NULL */
	bool finished;        /* `dir` is a finished directory, and the directories above it will be */
	int result;           /* 0 or a negative PTCP_E* */
	struct ptcp_err *why; /* owned by the caller; may be NULL */
	bool attr_dropped;    /* the mode or an extended attribute was refused, named by `why`; result is 0 */
	bool synced;          /* used by the store */
};

/* Completes written files, up to 1,000 at a time, and makes durable the names, links and directories given
 * with them and all directories above. In steps, each for all items: length, mode and times (without set_mode
 * an existing file keeps its mode, and a new one has dir_new_mode() of the source's; attributes that the file system
 * cannot hold, EPERM or EOPNOTSUPP for our own file, are left out; empty files are created here); sync data; rename to
 * the final name; sync directories; close descriptors, remove journals. A crash between two steps leaves the old file,
 * a part to resume, or the new file. An empty directory of the name is replaced. PTCP_EIO with EISDIR or EEXIST in
 * sys if a full directory, device, FIFO or socket has the name, with ESTALE if another file has the part's name. A
 * failed sync fails its file; file systems that cannot sync are not synced. After a failure before the rename the part
 * stays: call this again (in vain after a failed sync), or sink_discard() or sink_keep(). Only once after success. */
void store_complete(struct store_item *of, unsigned n, enum store_sync sync);

/* Creates a directory with the mode of `m` and u+rwx, so that a private directory is private while it fills
 * (limited by the umask; m NULL: 0777). An existing directory is accepted and temporarily gains
 * u+rwx if it lacks it and is ours; a file of any other type is EEXIST. *made (NULL is fine): the directory
 * is new, hence empty. */
int store_mkdir(struct dir *parent, const char *name, const struct meta *m, bool *made, struct ptcp_err *e);
/* After EEXIST: removes the file, link, FIFO or socket in place of the directory to create. PTCP_EREFUSED if a rule
 * keeps it, or a file of the transfer has the name; PTCP_EIO for a device. */
int store_make_way(struct dir *parent, const char *name, const struct store_rules *rules, const struct meta *m,
    struct ptcp_err *e);
/* Sets the final attributes, mode and times of a received directory, after its content is complete. Setuid,
 * setgid and sticky bits are unchanged without `setid`; attributes that may not be set (EPERM, as for a
 * shared directory) are left out. 1: the mode or an extended attribute was left out, named by `e`. */
int store_dir_finish(struct dir *d, const struct meta *m, struct ptcp_err *e);

struct store_inode { uint64_t dev, ino; }; /* ino 0: none */

/* Creates a symbolic link under a temporary name and renames it to `name`; EISDIR if `name` is a directory that is not
 * empty. Uses only times and owner of `m`. *made, unless NULL: the inode of the link. */
int store_symlink(struct dir *parent, const char *name, const char *target, const struct meta *m,
    struct store_inode *made, struct ptcp_err *e);

/* Whether `name` is a symbolic link to `target` with the owner of `m`; then *found is the inode of the link, and
 * `refresh` sets the times of the link, where permitted. */
bool store_symlink_same(struct dir *parent, const char *name, const char *target, const struct meta *m, bool refresh,
    struct store_inode *found);

/* A file or symbolic link received by this session: inode and path below `base`, as dir_path_below() returns it. */
struct store_file {
	struct dir *base;
	const char *path;
	uint64_t dev, ino;
	struct published *published; /* as in struct meta */
	struct backup *backup;
};

/* Creates a hard link to the file under a temporary name and renames it to `name`; without effect if `name` is
 * already a name of the file. PTCP_EIO with ESTALE if another file has the path: links in the path are not
 * followed. */
int store_hardlink(const struct store_file *to, struct dir *parent, const char *name, struct ptcp_err *e);
/* Whether `name` is a name of the file. */
bool store_hardlink_same(const struct store_file *to, struct dir *parent, const char *name);

#endif
