/* The inside of the receiving half, for receiver.c (their end), receiver_entries.c (entries, until blocks
 * may come), receiver_blocks.c (claims, holes) and receiver_frames.c (blocks, what the sender says). */
#ifndef ENGINE_RECEIVER_IMPL_H
#define ENGINE_RECEIVER_IMPL_H

#include "core/bitmap.h"
#include "core/list.h"
#include "engine/receiver.h"

/* Of all unfinished entries together. */
#define BITMAPS_MAX_BYTES (64u << 20)

enum rcv_state { WAITING, PREPARING, COMPARING, RECEIVING, COMPLETE, COMMITTING, OPEN };

struct item {
	uint64_t id, size_bytes;
	struct item *parent;
	void *cookie;
	enum rcv_state state;
	uint8_t type;
	bool ended, lost;         /* kept, a directory's for its children, a file's for its other names; it failed */
	bool has_digest;
	uint32_t children, depth, names; /* those that are not over, in it and (HARDLINK) of it */
	struct item *file;        /* of a HARDLINK: what it is another name of; NULL: that was complete before */
	struct list waiting;      /* in its directory's or file's waiters, in runnable, later in asking */
	struct list waiters;      /* of a file: other names of it */
	uint8_t *frame;           /* the ENTRY, until it is prepared */
	size_t frame_bytes;
	uint32_t n_blocks, n_done;
	uint64_t *done, few;      /* bitmap; `few` is that of up to 64 blocks */
	struct digest sum, wanted;
	/* COMPARING: `sum` is of the file that is here */
	bool has_own, unreadable;
	bool sparse;
	/* what is here of an earlier session */
	uint64_t *claimed;        /* bitmap without what turned out bad; NULL: nothing */
	uint32_t need_next;       /* blocks before this have been asked for, or are claimed */
	uint32_t asked;           /* and these of them have not come */
};

struct rcv {
	struct rcv_opts o;
	struct outbox *out;
	struct item *slot[WIRE_SLOTS];
	uint64_t highest;         /* count of the newest id */
	uint64_t lost[WIRE_SLOTS]; /* the file of the slot that failed last: the sender takes the slot again once it knows */
	struct list runnable;     /* their directory is there now, or their file complete */
	struct list asking;       /* files whose missing blocks have not all been asked for */
	uint64_t asked;           /* blocks, of all files */
	bool needs_wait;          /* for the outbox */
	uint64_t bitmap_bytes, frame_bytes;
	struct rcv_stats stats;
};

/* ---- receiver.c ---- */

extern const char rcv_no_directory[], rcv_no_file[];

struct item *rcv_find(const struct rcv *r, uint64_t id);
/* There was never an entry with this id. */
bool rcv_unheard(const struct rcv *r, uint64_t id);
int rcv_violation(const char *what, struct ptcp_err *e);
/* Lets go of the ENTRY. */
void rcv_frame_free(struct rcv *r, struct item *f);
/* The entry is over and its slot free; `why` NULL: complete. */
void rcv_end(struct rcv *r, struct item *f, bool skipped, const struct ptcp_err *why);
/* It is complete: tells the sender and ends it. */
void rcv_done(struct rcv *r, struct item *f);
/* Tells the sender and ends it, and all that waits for it. */
void rcv_fail(struct rcv *r, struct item *f, const struct ptcp_err *why);
/* What waits for it fails, it does not itself. */
void rcv_fail_waiters(struct rcv *r, struct item *f);
/* Fails an entry for which nothing has been kept. */
void rcv_refuse(struct rcv *r, const struct wire_entry *w, int code, const char *text);

/* ---- receiver_entries.c ---- */

/* A new entry that keeps the rules. */
void rcv_new_entry(struct rcv *r, const struct wire_entry *w, struct span in);
/* Prepares what waited for directories and files that are there now. */
void rcv_run_waiting(struct rcv *r);
void rcv_commit(struct rcv *r, struct item *f, const struct wire_entry *end_frame);
/* Both digests are here: it is the same file, or it is to be received. */
void rcv_try_compare(struct rcv *r, struct item *f);

/* ---- receiver_blocks.c ---- */

/* Makes sure of a file's bitmap, which it has from its first block on: thousands of large files may
 * wait. False when there are too many of them: the file has been failed. */
bool rcv_track(struct rcv *r, struct item *f);
/* Takes the claims of a file that is accepted; without room for them it has none. */
void rcv_claim(struct rcv *r, struct item *f, uint64_t *claimed);
void rcv_bitmaps_free(struct rcv *r, struct item *f);
/* Whether the block may come: it is not here, and the sender was asked for it. */
bool rcv_wanted(const struct item *f, uint32_t block);
/* These blocks are here now; none was before. Tells nobody. */
void rcv_add_blocks(struct rcv *r, struct item *f, uint32_t first, uint32_t count);
int rcv_on_hole(struct rcv *r, struct span in, struct ptcp_err *e);

/* ---- receiver_frames.c ---- */

/* Everything may be here: compare, and give it its name. */
void rcv_try_commit(struct rcv *r, struct item *f);

#endif
