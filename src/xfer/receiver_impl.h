/* The inside of the receiving half, for receiver.c (entries, until blocks may come) and
 * receiver_frames.c (blocks, the end of an entry, what the sender says). */
#ifndef XFER_RECEIVER_IMPL_H
#define XFER_RECEIVER_IMPL_H

#include "core/bitmap.h"
#include "core/list.h"
#include "xfer/receiver.h"

enum rcv_state { WAITING, PREPARING, RECEIVING, COMPLETE, COMMITTING, OPEN };

struct item {
	uint64_t id, size_bytes;
	struct item *parent;
	void *cookie;
	enum rcv_state state;
	uint8_t type;
	bool ended;               /* kept, a directory's, for its children */
	bool has_digest;
	uint32_t children, depth;
	struct list waiting;      /* in its directory's waiters, or in runnable */
	struct list waiters;
	uint8_t *frame;           /* the ENTRY, until it is prepared */
	size_t frame_bytes;
	uint32_t n_blocks, n_done;
	uint64_t *done, few;      /* bitmap; `few` is that of up to 64 blocks */
	struct digest sum, wanted;
};

struct rcv {
	struct rcv_opts o;
	struct outbox *out;
	struct item *slot[WIRE_SLOTS];
	uint64_t highest;         /* count of the newest id */
	struct list runnable;     /* their directory is there now */
	uint64_t bitmap_bytes, frame_bytes;
	struct rcv_stats stats;
};

/* ---- receiver.c ---- */

struct item *rcv_find(const struct rcv *r, uint64_t id);
/* There was never an entry with this id. */
bool rcv_unheard(const struct rcv *r, uint64_t id);
int rcv_violation(const char *what, struct ptcp_err *e);
/* A new entry that keeps the rules. */
void rcv_new_entry(struct rcv *r, const struct wire_entry *w, struct span in);
/* The entry is over and its slot free; `why` NULL: complete. */
void rcv_end(struct rcv *r, struct item *f, bool skipped, const struct ptcp_err *why);
/* Tells the sender and ends it, and all that waits for it. */
void rcv_fail(struct rcv *r, struct item *f, const struct ptcp_err *why);
/* Makes sure of a file's bitmap, which it has from its first block on: thousands of large files may
 * wait. False when there are too many of them: the file has been failed. */
bool rcv_track(struct rcv *r, struct item *f);
void rcv_commit(struct rcv *r, struct item *f, const struct wire_entry *end_frame);

#endif
