/* The inside of a party that receives, for receiving.c and receiving_work.c (what the store does),
 * receiving_entries.c (what the engine decides) and readback.c (what is there already). */
#ifndef LIB_RECEIVING_IMPL_H
#define LIB_RECEIVING_IMPL_H

#include "lib/party_impl.h"
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
	bool reading, compare;  /* see readback.c */
	struct list in_readers;
	unsigned fds;           /* taken for it, see store/fds.h */
	struct dir *dir;        /* what it is in */
	struct dir *self;       /* of a directory: itself */
	struct sink *sink;      /* of a file */
	char *name, *target;
	char *source;           /* of a top-level directory under another name: its own */
	struct meta meta;       /* borrows from the next two */
	struct owner *owner;
	struct xattrs xattrs;
	struct sink_look look;
	struct mono look_since, look_at; /* while another session is in the way, */
	bool ours;              /* which is the same client's */
	int result;
	bool lacking;           /* done, but `why` is a warning */
	struct ptcp_err why;
};

/* ---- receiving.c ---- */

void item_free(struct party *p, struct item *t);
void receiving_enqueue(struct party *p, struct item *t, enum work work);
/* Takes the descriptors that a file needs, which it has until it is over. False: there are too few, `work` is
 * done when others are complete. A session that has no file gets them at once, so that each makes progress. */
bool receiving_room(struct party *p, struct item *t, enum work work);
/* The engine has let go of it, and so has everybody else: what was written is seen to. */
void receiving_item_over(struct party *p, struct item *t);
/* Our own disk is full: that is not this file's fault alone, it ends the session. */
bool receiving_disk_full(struct party *p, const struct ptcp_err *why);

/* ---- receiving_work.c ---- */

/* A job of struct receiving's `io`: does what its batch is for, then posts `done`. On an I/O thread. */
void receiving_work(struct io_job *io);

/* ---- readback.c ---- */

/* Reads what is there of the file, a step at a time beside everything else: the part's claimed blocks, or the
 * whole of a file that may be the same. Tells the engine. */
void readback_start(struct party *p, struct item *t, bool same);
void readback_pump(struct party *p);
/* A block was written: now and then what large files have got is made durable. */
void readback_written(struct party *p, uint64_t id, uint32_t block, struct mono now);

#endif
