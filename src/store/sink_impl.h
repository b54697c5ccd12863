/* Internals of a sink, shared by its files; see sink.h. */
#ifndef STORE_SINK_IMPL_H
#define STORE_SINK_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/quota.h"
#include "store/journal.h"
#include "store/part.h"
#include "store/published.h"
#include "store/sink.h"

enum sink_state {
	SINK_OPEN,   /* accepts writes; part.fd may still be -1 */
	SINK_FAILED, /* a sync lost data: no more writes, no final name */
	SINK_DONE,   /* completed or discarded, or about to be: no more writes */
};

/* match.c: places of the source's blocks in an old file, at other offsets. */
struct sink_moved {
	int64_t shift;       /* offset of the last block found in the old file, less the offset in the source */
	uint64_t at;         /* end of that block in the old file */
	uint32_t gap_first, gap_end; /* blocks between two that were found, */
	uint64_t from, to;   /* part of the old file between these two */
	uint32_t lost_end;   /* earlier blocks were looked for in vain */
	bool no_pieces;      /* neither blocks nor pieces were found */
};

struct verifying;
struct comparing;

struct sink {
	struct pipe_sink *pipe; /* NULL: a file */
	struct dir *dir;
	uint64_t size_bytes;
	uint64_t final_bytes; /* the same, unless sink_set_size() has said more */
	struct meta meta;
	struct sink_opts opts;
	atomic_uint refs;
	/* Taken twice a block, about 20 ns each against the microseconds of the write: prevents writes to a
	 * closed descriptor. */
	pthread_mutex_t lock;
	enum sink_state state;
	int sync_errno; /* error of a failed sync, else 0 */
	struct part part;
	uint64_t join_ino; /* another host has made the part, with this inode; 0: none has */
	/* Copies of part.dev and part.ino, for callers that must not wait for the lock, which is held during
	 * I/O. */
	_Atomic uint64_t part_dev, part_ino;
	atomic_bool part_opened;
	atomic_bool not_direct; /* the file system lacks direct I/O */
	uint64_t part_number; /* parts are numbered in the order of opening */
	struct journal journal;
	uint64_t durable;   /* number of records whose blocks are durable */
	bool named;         /* has its final name */
	bool name_durable;  /* the name of the part is durable */
	unsigned writers;
	pthread_cond_t idle; /* writers is 0 */
	uint64_t end_bytes; /* end of the last byte written */
	struct quota_hold hold;
	struct verifying *verifying;
	struct comparing *comparing;
	uint64_t basis_bytes; /* size of the existing file whose blocks may be used; 0: none */
	bool in_place;        /* the part is the existing file, without a journal */
	bool missing;         /* nothing has the name */
	bool inspected;       /* sink_inspect() has succeeded */
	struct renamed renamed[RENAMES_FOUND]; /* candidates, instead of the file of the name */
	unsigned n_renamed;   /* 1: this one; more: the first block decides */
	uint64_t *in_part;  /* candidates in the part: bitmap; NULL: none */
	bool not_cloned;    /* the file system does not share blocks of files */
	struct sink_moved moved;
	const char *owner;  /* NULL, or behind `name` */
	const char *key;    /* name of part and journal: `name`, or OWNER/NAME (no name of a file), or `own` */
	char *own;          /* sink_part_alone(): NUMBERS/NAME; NULL: the common part */
	char name[];
};

/* commit.c: gives the part, which must still be the file that we wrote, the name. */
int sink_rename_part(struct sink *s, int at, const char *name, struct ptcp_err *e);
/* resume.c: whether the name has the version of opts.match. */
int sink_check_match(const struct sink *s, int at, const char *name, struct ptcp_err *e);
/* write_once.c, with an owner: gives the complete part its name unless the name exists, and remembers the owner. */
int sink_name_new(const struct sink *s, int at, const char *part, const char *name, struct ptcp_err *e);
void sink_mark_owner(const struct sink *s);
/* The existing file with that status is one that the owner has added before, and complete. */
bool sink_is_own(const struct sink *s, int at, const struct stat *st);
int sink_taken(const struct sink *s, struct ptcp_err *e);

/* The journal's key; borrows from s. */
struct journal_key sink_key(const struct sink *s);

/* Sets part_number. */
void sink_number_part(struct sink *s);

/* The next five with s->lock held; `at` is the open directory. part_open(). */
int sink_take_part(struct sink *s, int at, enum part_take take, struct ptcp_err *e);
/* Opens the part, empty, or the one of another host. `whole`: the file is written at once. */
int sink_open_part(struct sink *s, int at, bool whole, struct ptcp_err *e);
/* direct.c: after the part was opened, if the file wants direct I/O: true: direct I/O is used. */
bool sink_begin_direct(struct sink *s);
/* The same, and allocates the space of the file: the part is ours alone. PTCP_ENOSPC: the disk is full. */
int sink_begin_direct_alone(struct sink *s, struct ptcp_err *e);
void sink_refuse_direct(struct sink *s);
/* Whether the part may have been written by direct I/O, hence be longer than the file. */
bool sink_wants_direct(const struct sink *s);
/* Writes n bytes at off; 0 or an errno. */
int sink_put(struct sink *s, int fd, const void *buf, size_t n, uint64_t off);
/* Reads n bytes at off of the part, or of a complete target, fewer at the end of the file; -1 with errno. */
ssize_t sink_get(struct sink *s, int fd, void *buf, size_t n, uint64_t off);

/* Whether our open part still has the part's name; if not, a program without regard to locks has removed or
 * replaced the part. 1 or 0, or -1 with errno. */
int sink_owns_part_name(const struct sink *s, int at);
/* Closes the part and the journal; both files stay. */
void sink_close(struct sink *s);
/* Removes the journal. */
void sink_remove_journal(struct sink *s, int at);

/* The part's descriptor for writing, until sink_leave(); opens the part. `whole`: the file is written at once. */
int sink_enter(struct sink *s, bool whole, int *fd, struct ptcp_err *e);
/* Of a file in place, with s->lock held or alone: cuts off what follows its last whole block, which the source has
 * otherwise. Not before the first use, so that a transfer that is refused leaves the file as it was. */
int sink_cut_rest(struct sink *s, struct ptcp_err *e);
/* The descriptor of the open part, usable until sink_leave(); -1 without a part. */
int sink_enter_open(struct sink *s);
/* Ends a use of the descriptor, which wrote up to `end_bytes` (0: no write). */
void sink_leave(struct sink *s, uint64_t end_bytes);

/* With s->lock held: refuses further writes and waits for running ones (a late write would change the times
 * set by store_complete()). */
void sink_stop_writers(struct sink *s, enum sink_state state);

/* Whether syncfs() reports write errors: older kernels ignore them. */
bool sink_syncfs_reports(void);

/* With s->lock held, without writers: a sync failed with this errno. The kernel may have dropped unwritten
 * data but still return the data to readers, so all records since the last successful sync are dropped.
 * Returns a PTCP_E*. */
int sink_fail_sync(struct sink *s, int sys, struct ptcp_err *e);

/* For files with blocks: */
uint32_t sink_block_length(const struct sink *s, uint32_t block);
/* Makes [off, off + n) read as zeros, by punching a hole if the file system can. */
int sink_punch(struct sink *s, int fd, uint64_t off, uint64_t n, struct ptcp_err *e);
/* Of a shared part: zeros that are still in this host's cache would overwrite what another host writes. */
int sink_flush_cleared(struct sink *s, int fd, struct ptcp_err *e);

/* Whether the file has the owner that it is to have, as far as this host knows the names. */
bool meta_has_owner(const struct meta *m, const struct stat *st);
/* same_meta.c: whether the file, open as `fd` (-1: not readable), has all attributes of `m`, and no others of their
 * kinds. Attributes that the file system lacks, or this user may not set, count as equal. Times are not examined. */
bool meta_matches(const struct meta *m, struct dir *d, int at, const char *name, int fd, const struct stat *st);
/* The same of the owner alone. */
bool meta_matches_owner(const struct meta *m, const struct dir *d, const struct stat *st);
/* Whether `name` is a symbolic link to the target; *st is what lstat() has found. */
bool store_has_target(const struct dir *parent, int at, const char *name, const char *target, struct stat *st);
/* refresh.c: the answer of the rules for what has the name. */
enum rules_answer sink_judge(const struct sink *s, const struct rules_entry *there);
/* For sink_part_id(). */
void sink_set_id(struct sink *s, const struct stat *st);
/* refresh.c, with s->lock held: sink_refresh() of a regular file `st` that no other source has, open at `at`. */
int sink_refresh_found(struct sink *s, int at, struct stat *st, struct ptcp_err *e);
/* Whether the file may belong to older copies, too. */
static inline bool sink_is_shared(const struct sink *s, const struct stat *st)
{
	return references_share(s->meta.references) && st->st_nlink > 1;
}
/* Whether the attributes of the file also belong to older copies, or to a published name. */
static inline bool sink_has_others(const struct sink *s, const struct stat *st)
{
	return sink_is_shared(s, st) || published_shares(s->meta.published, st);
}
/* copy.c, with s->lock held: the part gets the data of the open file `from`; store_complete() is to follow. After a
 * failure there is no part; EWOULDBLOCK in e->sys: another transfer holds it. */
int sink_copy_in(struct sink *s, int at, int from, struct ptcp_err *e);
/* Sets extended attributes, owner and ACLs, before mode and times. *mode: the mode to set, with set_mode. 1: the file
 * system refused an attribute, named by `e`. */
int meta_set_owner(const struct meta *m, const struct dir *d, const char *name, int fd, bool is_dir, mode_t *mode,
    struct ptcp_err *e);

/* After a failed change of the mode of the open file, with errno. 1: the mode cannot be set, and differs: named by
 * `e`. 0: the file has the mode. */
int meta_mode_failed(const struct dir *d, const char *name, int fd, mode_t wanted, struct ptcp_err *e);

/* The same of the modification time. Both times of a file are set together: file systems of libfuse 2 ignore a change
 * of one. */
int meta_time_failed(const struct dir *d, const char *name, struct ptcp_err *e);

/* 0 if the caller may rename a file or link to `name` in `at`: nothing, a file or a link has the name, or an empty
 * directory had it, which is removed. PTCP_EIO for a device, FIFO, socket or full directory, PTCP_EREFUSED for a
 * published file. */
int sink_make_way(struct ptcp_err *e, int at, const struct dir *d, const char *name, struct published *published);

/* Adds the block to the last run, or begins another, for which there is room. */
void sink_add_run(struct sink_run *runs, unsigned *n, uint32_t block, bool good, const struct digest *term);

/* Begin and end the work of sink_verify_next() and sink_same_next(); copies `claimed`. */
int sink_verify_begin(struct sink *s, const uint64_t *claimed, struct ptcp_err *e);
int sink_same_begin(struct sink *s, const struct stat *found, struct ptcp_err *e);
void sink_verify_end(struct sink *s);
void sink_same_end(struct sink *s);

#endif
