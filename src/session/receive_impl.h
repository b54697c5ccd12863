/* Receiving side of a session: receive.c (the engine's decisions), receive_io.c (the store's work, in batches on an
 * I/O thread), verify_queue.c (data of an earlier run), receive_movers.c (files that other hosts write). */
#ifndef SESSION_RECEIVE_IMPL_H
#define SESSION_RECEIVE_IMPL_H

#include "conn/io_call.h"
#include "core/spares.h"
#include "core/text.h"
#include "engine/linked_files.h"
#include "engine/match_pace.h"
#include "fs/file_system.h"
#include "fs/xattr.h"
#include "session/session_impl.h"
#include "store/leftover.h"
#include "store/owner.h"
#include "store/sink.h"

#define WORK_BATCH 1000
#define RECEIVE_WARNINGS 20         /* entries that cannot be removed, or lack attributes, to report one by one */

/* Kinds up to WORK_FIND_LINK prepare an entry, WORK_COMMIT to WORK_FINISH_DIR complete an entry. */
enum work {
	WORK_NONE,
	WORK_ACCEPT,     /* nothing but the answer */
	WORK_MKDIR,
	WORK_RESUME,     /* search for a part or a complete file of an earlier run */
	WORK_RENAMED,    /* search for a missing file under other names; after WORK_RESUME */
	WORK_REFRESH,    /* the file is up to date: set its mode */
	WORK_DRY_DIR,    /* dry run: does the directory exist? */
	WORK_DRY_FILE,   /* dry run: is the file up to date? */
	WORK_FIND_LINK,  /* is the link up to date? */
	WORK_COMMIT,
	WORK_SYMLINK,
	WORK_HARDLINK,
	WORK_FINISH_DIR,
	WORK_END,        /* the end: is the destination in its place, are there leftovers in the base? */
	WORK_PRUNE,      /* removes what the source does not have, before the end, or a directory in
	                    place of a file or link */
	WORK_RELEASE,    /* deletes the part of a failed file, or keeps it for the next run */
	WORK_OPEN,       /* makes the part of an accepted file, for movers */
	WORK_CLOSE       /* waits while movers close the file; not queued */
};

/* Existing data, see verify_queue.c. */
enum verify {
	VERIFY_PART, /* the claimed blocks of the part, by the journal */
	VERIFY_SAME, /* a complete file with the size and time of the source, by the digest */
	VERIFY_MATCH /* blocks of another version, by the sender's hashes */
};

/* Cookie of an entry in the receiving engine. */
struct receive_entry {
	struct receive_entry *next; /* next in a queue, in the batch, or among the locked entries */
	uint64_t id;
	uint8_t type;
	uint64_t size_bytes;    /* UNSIZED: 0 until it is known */
	struct wire_grid grid;
	bool unsized;
	uint64_t beginning_bytes; /* beginning of a failed UNSIZED file that stays under a name of its own; 0: none */
	uint64_t hash;          /* hash of the path, see core/name_set.h; only with --delete */
	enum work work;         /* queued, or in progress */
	bool ended;             /* the engine has ended the entry */
	bool release, keep;     /* the part of a failed file; keep it for the next run */
	bool fresh;             /* directory made by this session, so empty */
	bool same;              /* the file or link is up to date, or kept */
	bool absent;            /* a directory that is not made, by the rules, nor what is below */
	bool dry_run;           /* flag of the session */
	const struct store_rules *rules; /* the session's */
	uint8_t version[SINK_VERSION_BYTES]; /* version of the source, with `durable` */
	bool durable;           /* the sender will remove it: sync the file or link although it is up to date */
	bool compares;          /* dry run: a file of the same size is compared */
	bool linked;            /* hard links to the entry may follow */
	struct store_inode made; /* a LINKED symbolic link, as it was made or found */
	bool verifying;         /* in a queue of verify_queue.c, or on an I/O thread */
	enum verify verify;     /* what for, at last */
	struct receive_match *match; /* VERIFY_MATCH: its state; else NULL */
	uint64_t match_bytes;   /* charged for it */
	struct list waiting;    /* in the queue of verify_queue.c or receive_prune.c */
	unsigned fds;           /* descriptors reserved, see fs/fd_budget.h */
	struct dir *dir;        /* the parent */
	struct dir *self;       /* the directory itself, of a DIR */
	struct sink *sink;      /* the part, of a FILE */
	char *name, *target;    /* name NULL: `dir` and `self` are the base */
	uint64_t link_id;       /* id of the file or symbolic link with that name */
	const struct linked_file *file; /* its record; NULL: unknown */
	bool not_linked;        /* the sender is to offer the name again, in another entry */
	char *source;           /* top-level directory under a new name: its name at the sender */
	struct meta meta;       /* borrows from the next two */
	struct owner *owner;
	struct xattrs xattrs;
	struct sink_existing existing;
	bool shared;            /* movers write the file */
	bool commits;           /* the entry is committed after WORK_OPEN or WORK_CLOSE */
	struct mono locked_since, retry_at; /* another session has locked the part since then; time of the next try */
	enum work retry;        /* work to try again, when the part is free or a directory has made way */
	bool same_client;       /* a session of the same client */
	struct leftover_count left; /* leftovers in an existing directory, at its end */
	struct receive_prune *prune; /* WORK_PRUNE: its state; NULL: no directory was emptied for the entry */
	int result;
	const struct file_system *on; /* file system of a written entry; NULL: unknown */
	bool lacking;           /* done, but attributes are missing: `why` is a warning */
	struct ptcp_err why;
};

/* receive_room.c: needs of the transfer, against the room at the destination. */
struct receive_room {
	struct ptcp_err lacks;      /* why there is no room, or no permission; code 0: there is */
	bool sparse;                /* a file has holes: the total is more than its space */
	uint64_t bytes, entries;    /* needs of the accepted entries, in the file system of the destination */
};

/* All work of the store except writing blocks goes through one queue, a batch at a time on an I/O thread. */
struct receive_side {
	struct session *session;
	struct open_files files;
	struct destination place;
	struct owners *owners;      /* numbers of owners; NULL: the session does not preserve owners */
	struct pipe_sink *pipe;     /* pipe.c: in place of files; borrowed; NULL: files */
	struct receive_entry *piped; /* the entry on its way there; NULL: none */
	bool has_piped;             /* there was one */
	bool committing;            /* the output is complete, but not yet written */
	bool lacks_memory;          /* there is no memory for the claims of the output */
	uint64_t omitted_bytes;     /* bytes of received blocks that were not sent, as they were here */
	uint32_t resumed;           /* blocks taken by an earlier session that are to be reported */
	struct digest resumed_sum;  /* sum of their terms, without blocks that arrive before the report */
	atomic_bool pipe_notified;  /* pipe_changed is posted */
	struct msg pipe_changed;
	struct store_rules rules;         /* about what exists */
	struct store_match match;         /* the only version to replace, of the destination */
	const char *only_new;       /* the client who may only add files, by rules.write_once; NULL: any session */
	struct {
		bool copies;                   /* both users know that hard links become copies */
		const struct file_system *of[8]; /* reported file systems */
		unsigned n;
	} told;
	bool placed;                /* the top-level entry with a new name has arrived */
	/* The source's description of the base, whose attributes are set at the end; NULL: they stay. Owned once it has
	 * ended. */
	struct receive_entry *of_base;
	struct dir *top;            /* the top-level entry, if a directory; else NULL */
	struct published *published, own_published; /* files of a longer transfer, or of this session */
	struct backup *backup;      /* keeps what is replaced or removed; NULL: nothing is kept */
	struct references *references; /* older copies of the files; NULL: none */
	struct linked_files linked;
	enum store_sync sync;
	struct spares entries;      /* memory of ended entries */
	struct receive_entry *first, **last;         /* queue */
	struct receive_entry *fd_first, **fd_last;   /* queue for descriptors */
	unsigned fds, fds_low;      /* reserved for files; the second queue is served when they fall to fds_low */
	struct receive_entry *batch; /* entries on the I/O thread */
	struct store_item ends[WORK_BATCH]; /* completions of the batch */
	struct dir *named;          /* borrowed by the batch: the directory of the transfer that the user named */
	struct ptcp_err moved;      /* why the top-level directory has lost its name; code 0: it has not */
	atomic_bool completing;
	struct receive_entry *locked; /* files whose part another session has locked: retried later */
	struct receive_entry **shared; /* receive_movers.c: accepted files by slot; NULL: without movers */
	struct { struct receive_entry *first, **last; } closing; /* WORK_CLOSE, in the order of CLOSE */
	struct receive_want *wants; /* movers that want files in WORK_OPEN */
	struct list verify_queue;   /* entries that wait for an I/O thread (verify_queue.c) */
	struct list match_queue;    /* entries that wait to be matched */
	unsigned matching;          /* blocks of the entries that are being matched */
	struct { struct search_pace pace; uint64_t received_bytes; } search; /* received so far, as `pace` knows */
	struct { double bps; uint64_t bytes; struct mono since; } path; /* best rate so far; what had come by then */
	unsigned n_verifying;       /* number of jobs on I/O threads */
	struct sink *syncing;       /* verify_queue.c: a large file on an I/O thread; or NULL */
	struct io_call call, sync_call; /* calls of the batch, and of the sync */
	unsigned warnings;          /* entries that lack attributes */
	struct leftover_count left; /* leftovers in all directories */
	struct receive_prune *prune; /* receive_prune.c; NULL: nothing is deleted */
	struct renames *renames;    /* files of the destination; NULL: renamed files are not looked for */
	struct receive_room room;
	uint64_t total_files, total_bytes;
	bool total_known;
};

/* The directory of the transfer that the user named, or the parent of a file: the base, or the new directory in it.
 * Linked files are remembered by their paths below this directory. */
static inline struct dir *receive_named(const struct receive_side *r)
{
	return r->top != NULL ? r->top : r->place.base;
}

/* ---- receive_entry.c ---- */

/* Memory of an unfinished entry without the engine's part, and without target and attributes: the cookie, the part
 * file, and the names of both. */
#define RECEIVE_ENTRY_BYTES (sizeof(struct receive_entry) + 3 * TEXT_NAME_BYTES)
/* A zeroed entry, with its share of the session's memory; NULL: see memory_charge(). */
struct receive_entry *receive_entry_calloc(struct session *sess, struct ptcp_err *e);
void receive_entry_free(struct session *sess, struct receive_entry *t);

/* ---- receive_io.c ---- */

void receive_enqueue(struct session *sess, struct receive_entry *t, enum work work);
/* Reserves the descriptors of a file until the file ends. False: too few are left, `work` is queued until other files
 * complete. A session without open files gets them at once, so that every session makes progress. */
bool receive_reserve_fds(struct session *sess, struct receive_entry *t, enum work work);
/* The entry has ended in the engine and no thread uses it: releases its part and frees it. */
void receive_entry_done(struct session *sess, struct receive_entry *t);
/* Work was put off: tries it again, or (`failed`) fails the entry by t->why, unless the entry has ended meanwhile. */
void receive_retry(struct session *sess, struct receive_entry *t, bool failed);
/* As payload_ops.locked. */
enum part_holder receive_part_locked(struct session *sess, uint64_t dev, uint64_t ino, struct mono since, bool alone);

/* ---- receive_room.c ---- */

/* If the disk of this host is full, fails the session (the next file would fail, too) and returns true. */
bool receive_disk_full(struct session *sess, const struct ptcp_err *why);
/* Counts the needs of an accepted entry. `fresh`: the name is new. */
void receive_room_count(struct session *sess, const struct receive_entry *t, bool fresh);
/* The directory was not made, for a reason common to all new names in the destination: fails the session. */
bool receive_room_denied(struct session *sess, const struct receive_entry *t);
/* Reserves the space of an accepted file in the client's quota: early, so that a transfer without room fails before its
 * data moves; */
void receive_reserve(struct receive_side *r, const struct receive_entry *t);
/* Then fails the session, unless there was room. A dry run fails at its end, when the needs are known: false. */
void receive_check_room(struct session *sess);
bool receive_room_suffices(struct session *sess);
/* The control connection is lost, or the session is over: others may use the space reserved for data that has not
 * arrived, */
void receive_lend_room(struct receive_side *r);
/* Reserves the space again when the connection is replaced. NULL is fine. */
void receive_reclaim_room(struct receive_side *r);

/* ---- receive_entry.c: with only_new ---- */

/* Whether the client may add such an entry. */
bool receive_new_takes(const struct wire_entry *f, struct ptcp_err *e);
/* On an I/O thread: whether the directory exists, and keeps its mode. False without only_new. */
bool receive_new_has_dir(struct receive_entry *t);

/* ---- receive_entry.c: on an I/O thread ---- */

/* Of a new base: its mode until the end, which keeps out whom the source keeps out. */
int receive_make_dir(struct receive_entry *t);
/* WORK_RELEASE: keeps the part or its beginning, or removes it. */
int receive_release(struct receive_entry *t);
int receive_link_make(struct receive_entry *t);
/* WORK_FIND_LINK: whether the link exists, or an existing entry is to be kept. */
void receive_find_link(struct receive_entry *t);
/* WORK_RESUME: sets t->same, or finds a part, or a file to compare. */
void receive_look(struct receive_entry *t);
/* WORK_RENAMED: finds a file of another name. Result 1: not all names are known yet. */
void receive_look_renamed(struct receive_entry *t);
/* WORK_DRY_DIR: whether the directory exists. */
void receive_dry_dir(struct receive_entry *t);
/* WORK_REFRESH: as sink_refresh(). Where the sender will remove its own file, the existing one must be another, and is
 * made durable. */
int receive_refresh(struct receive_entry *t);
/* WORK_DRY_FILE: sets t->same, or finds a file to compare. */
void receive_dry_file(struct receive_entry *t);

/* ---- receive_entry.c: renamed files ---- */

/* For a session with RENAMES. */
int receive_renames_new(struct session *sess, struct ptcp_err *e);
/* Files below the directories of the transfer may have been renamed: learns of an entry in the directory of `in`, or at
 * the top. */
void receive_renames_note(struct receive_side *r, const struct receive_entry *t, const struct receive_entry *in);
/* Whether a file that the destination cannot have may have been renamed. */
bool receive_renames_may_have(struct receive_side *r, const struct receive_entry *t);

/* ---- receive_prune.c: --delete ---- */

/* For a session with DELETE. */
int receive_prune_new(struct session *sess, struct ptcp_err *e);
void receive_prune_free(struct receive_side *r);
/* Remembers an entry of the source, placed in the directory of `in`, or at the top. Without memory, the entry fails. */
int receive_prune_note(struct receive_side *r, struct receive_entry *t, const struct receive_entry *in,
    struct ptcp_err *e);
/* An entry of the received directory failed, or was left out: entries that the source lacks stay there. */
void receive_prune_close(struct receive_side *r, const struct receive_entry *t, bool failed);
/* All entries have ended. True: deletion begins, receive_end() follows. */
bool receive_prune_begin(struct session *sess);
/* An entry has failed: true if a full directory has its name, which is emptied in WORK_PRUNE; receive_retry()
 * follows. */
bool receive_prune_make_way(struct session *sess, struct receive_entry *t);
void receive_prune_pump(struct session *sess);
bool receive_prune_idle(const struct receive_side *r); /* nothing waits for a step */
/* WORK_PRUNE: on an I/O thread. */
void receive_prune_step(struct receive_entry *t);
/* On the control thread, after WORK_PRUNE and WORK_END. */
void receive_end_stepped(struct session *sess, struct receive_entry *t);

/* ---- receive_movers.c: files that movers write ---- */

/* For a session with movers. */
int receive_movers_new(struct session *sess, struct ptcp_err *e);
void receive_movers_free(struct receive_side *r);
/* Movers may write the accepted file. `anew`: without the part that was found. */
void receive_movers_accepted(struct session *sess, struct receive_entry *t, bool anew);
/* On an I/O thread, after the file was prepared: makes its part. */
int receive_movers_open(struct receive_entry *t);
/* After WORK_OPEN; result and reason in `t`. */
void receive_movers_opened(struct session *sess, struct receive_entry *t);
/* No more blocks are taken. True: movers are closing the file, and then it is completed (`commits`) or released. */
bool receive_movers_close(struct session *sess, struct receive_entry *t, bool commits);
/* Written by a mover: the term of the block, and its record in the journal. False: `why`, or the file has no such
 * block. */
bool receive_movers_wrote(struct session *sess, struct stream *s, uint64_t id, uint32_t block, uint64_t hash,
    struct digest *term, struct ptcp_err *why);

/* ---- pipe.c: the only file, to a descriptor ---- */

enum rcv_prep receive_pipe_prepare(struct session *sess, uint64_t id, const struct wire_entry *f, void **cookie,
    uint64_t **claimed, struct ptcp_err *e);
void receive_pipe_accepted(struct session *sess, struct receive_entry *t, bool parts);
void receive_pipe_commit(struct session *sess);
void receive_pipe_ended(struct session *sess, struct receive_entry *t);
void receive_pipe_pump(struct session *sess);
/* Whether the pipe is to blame for a delay. */
bool receive_pipe_busy(const struct receive_side *r);
/* No message of the pipe is pending; of a session that is over, none follows. */
bool receive_pipe_idle(const struct session *sess);
void receive_pipe_attach(struct receive_side *r, struct pipe_sink *pipe);
void receive_pipe_detach(struct receive_side *r);

/* ---- receive.c, receive_prune.c ---- */

/* Behind the last entry and all deletions. True: the session may end. */
bool receive_end(struct session *sess);

/* Tells both users of leftovers, unless a file failed: its part is no leftover, and may be anywhere. */
void receive_report_leftovers(struct session *sess);

/* ---- verify_queue.c ---- */

/* Verifies existing data step by step, in parallel with everything else, and reports to the engine. */
void resume_verify_start(struct session *sess, struct receive_entry *t, enum verify what);
/* As rcv_ops.hashes and rcv_ops.pieces. */
void resume_verify_hashes(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes);
void resume_verify_pieces(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes);
void resume_verify_pump(struct session *sess);
/* A block was written: syncs large files to disk from time to time. */
void resume_verify_written(struct session *sess, uint64_t id, uint32_t block, struct mono now);

/* ---- receive_match.c ---- */

/* Smaller files are received whole, rather than that their hashes cost a round trip. */
#define RECEIVE_DELTA_BYTES (1u << 20)

/* Charges the candidates to the session. Without memory false, and the candidates are freed. */
bool receive_match_charge(struct session *sess, struct receive_entry *t);
void receive_match_fini(struct session *sess, struct receive_entry *t); /* at the end of the entry */
/* Once the part is verified: requests the hashes of t->existing.candidates. */
void receive_match_begin(struct session *sess, struct receive_entry *t);
/* The next hashes that were requested. */
void receive_match_hashes(struct receive_entry *t, struct span hashes);
/* Hashes of the pieces of the next block. */
void receive_match_pieces(struct receive_entry *t, struct span hashes);
/* Arguments of sink_match(), or (split) of sink_split(). */
struct match_step {
	bool split;
	uint32_t first, n, ahead;
	const struct block_sum *sum;
	uint64_t from, to;
};
/* The next blocks to compare, valid until the end of the step. False: none yet. */
bool receive_match_next(const struct receive_entry *t, struct match_step *out);
/* Bytes that a step may search. */
uint64_t receive_match_allowance(struct session *sess);
/* The end of a step: the blocks were compared, and the runs reported to the engine but for those with pieces. True: as
 * receive_match_next(). */
bool receive_match_stepped(struct session *sess, struct receive_entry *t, const struct sink_run *run, unsigned n_runs);
/* The end of a step that has looked for pieces. */
bool receive_match_split(struct session *sess, struct receive_entry *t, const uint64_t *has);

#endif
