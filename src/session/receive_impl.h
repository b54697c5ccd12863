/* The inside of a party that receives, for receive.c and receive_work.c (what the store does),
 * receive_entries.c (what the engine decides) and resume_verify.c (what is there already). */
#ifndef SESSION_RECEIVE_IMPL_H
#define SESSION_RECEIVE_IMPL_H

#include "session/session_impl.h"
#include "store/sink.h"

#define WORK_BATCH 1000

/* Up to WORK_LOOK_SAME it prepares an entry, from WORK_COMMIT to WORK_FINISH_DIR it completes one. */
enum work {
	WORK_NONE,
	WORK_ACCEPT,     /* only the answer is due */
	WORK_MKDIR,
	WORK_LOOK,       /* what is there of an earlier run? */
	WORK_REFRESH,    /* the file is there: is its mode right? */
	WORK_LOOK_DIR,   /* dry run: is there such a directory? */
	WORK_LOOK_SAME,  /* dry run: is there such a file? */
	WORK_COMMIT,
	WORK_SYMLINK,
	WORK_HARDLINK,
	WORK_FINISH_DIR,
	WORK_LET_GO      /* remove what was written, or keep it for the next run */
};

/* The cookie of an entry in the engine. */
struct item {
	struct item *next;      /* in a queue or the batch, or among those that are contended */
	uint64_t id;
	uint8_t type;
	enum work work;         /* what it is in the queue for */
	bool over;              /* the engine has let go of it */
	bool let_go, keep;      /* of what was written; keep it for the next run */
	bool fresh;             /* a directory made by us: nothing is in it */
	bool same;              /* dry run: a file like it is there */
	bool reading, compare;  /* see resume_verify.c */
	struct list in_readers;
	unsigned fds;           /* taken for it, see store/fd_budget.h */
	struct dir *dir;        /* what it is in */
	struct dir *self;       /* of a directory: itself */
	struct sink *sink;      /* of a file */
	char *name, *target;
	char *source;           /* of a top-level directory under another name: its own */
	struct meta meta;       /* borrows from the next two */
	struct owner *owner;
	struct xattrs xattrs;
	struct sink_existing look;
	struct mono look_since, look_at; /* while another session is in the way, */
	bool ours;              /* which is the same client's */
	int result;
	bool lacking;           /* done, but `why` is a warning */
	struct ptcp_err why;
};

/* ---- receive.c ---- */

void item_free(struct session *sess, struct item *t);
void receive_enqueue(struct session *sess, struct item *t, enum work work);
/* Takes the descriptors that a file needs, which it has until it is over. False: there are too few, `work` is
 * done when others are complete. A session that has no file gets them at once, so that each makes progress. */
bool receive_room(struct session *sess, struct item *t, enum work work);
/* The engine has let go of it, and so has everybody else: what was written is seen to. */
void receive_item_over(struct session *sess, struct item *t);
/* Our own disk is full: that is not this file's fault alone, it ends the session. */
bool receive_disk_full(struct session *sess, const struct ptcp_err *why);

/* ---- receive_work.c ---- */

/* A job of struct receiving's `io`: does what its batch is for, then posts `done`. On an I/O thread. */
void receive_work(struct io_job *io);

/* ---- resume_verify.c ---- */

/* Reads what is there of the file, a step at a time beside everything else: the part's claimed blocks, or the
 * whole of a file that may be the same. Tells the engine. */
void resume_verify_start(struct session *sess, struct item *t, bool same);
void resume_verify_pump(struct session *sess);
/* A block was written: now and then what large files have got is made durable. */
void resume_verify_written(struct session *sess, uint64_t id, uint32_t block, struct mono now);

#endif
