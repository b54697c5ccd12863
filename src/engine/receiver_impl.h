/* Internals of the receiving half, for receiver.c (entries) and receiver_blocks.c (blocks of files). */
#ifndef ENGINE_RECEIVER_IMPL_H
#define ENGINE_RECEIVER_IMPL_H

#include "core/bitmap.h"
#include "core/list.h"
#include "core/spares.h"
#include "engine/receiver.h"
#include "engine/tape.h"
#include "wire/block.h"

/* Limit for all unfinished entries together. */
#define BITMAPS_MAX_BYTES (64u << 20)

enum rcv_state { WAITING, PREPARING, COMPARING, RECEIVING, COMPLETE, COMMITTING, OPEN };

struct rcv_entry {
	uint64_t id, size_bytes;
	struct rcv_entry *parent;
	void *cookie;
	enum rcv_state state;
	uint8_t type;
	bool ended, lost;         /* retained for children or hard links; failed */
	bool incomplete;          /* a directory: lacks entries that failed before they were prepared */
	bool again;               /* a hard link that the sender offers again, and then counts */
	bool has_digest;
	uint64_t path_bytes;      /* length of its path below the destination, in the sender's
	                             names; 0: is the destination */
	uint32_t children, depth, names; /* unfinished children, and hard links to the entry */
	struct rcv_entry *file;   /* the LINKED entry of a HARDLINK; NULL: was complete already */
	struct list waiting;      /* member of the waiters of the directory or file, of runnable, later of requesting */
	struct list waiters;      /* children that wait for a directory; hard links that wait for a file or link */
	struct wire_entry offer;  /* the ENTRY, until prepared; borrows from `text` */
	uint8_t *text;            /* `small`, or memory of its own; NULL: prepared */
	size_t text_bytes;
	uint8_t small[64];        /* most names, without attributes */
	struct wire_grid grid;
	uint32_t n_blocks, n_done;
	uint64_t *done, few;      /* bitmap; in `few` up to 64 blocks */
	uint32_t done_room;       /* blocks that a bitmap of its own has room for */
	bool unsized, unended;    /* offered as UNSIZED; its size is unknown */
	uint32_t end;             /* end of the last written block */
	struct digest sum, expected;
	bool has_own, unreadable; /* COMPARING: `sum` is of the existing file */
	bool sparse;
	/* Resuming: */
	uint64_t *claimed;        /* bitmap of claimed blocks that did not turn out bad; NULL: none */
	uint32_t need_next;       /* earlier blocks have been requested, or are claimed */
	uint32_t need_end;        /* later blocks are not to be requested yet */
	uint32_t requested;       /* requested blocks, not yet received */
	struct { uint32_t first, count; } match[2]; /* hashes requested and not yet received, in order */
	/* Blocks whose pieces are yet to come: bitmap, NULL: none so far; with the first one, or an earlier block, and
	 * the end of the last request. */
	struct { uint64_t *of; uint32_t from, end; } split;
};

struct rcv {
	struct rcv_opts o;
	struct outbox *out;
	struct rcv_entry *slot[WIRE_SLOTS];
	uint64_t highest;         /* count of the newest id */
	uint64_t lost[WIRE_SLOTS]; /* the slot's last failed file or link; the sender knows once it reuses the slot */
	struct list runnable;     /* entries whose directory is open, or whose file or link is complete */
	struct list requesting;   /* files with missing blocks to request */
	uint64_t requested;       /* blocks, of all files */
	bool needs_wait;          /* an entry waits for the outbox */
	uint64_t bitmap_bytes, text_bytes;
	struct spares entries;    /* memory of ended entries */
	uint64_t linked_bytes;    /* costs of all LINKED entries */
	struct rcv_stats stats;
};

/* ---- receiver.c ---- */

struct rcv_entry *rcv_find(const struct rcv *r, uint64_t id);
/* No entry with this id has been offered. */
bool rcv_is_new(const struct rcv *r, uint64_t id);
int rcv_violation(const char *what, struct ptcp_err *e);
/* Ends the entry and frees its slot; `why` NULL: complete. */
void rcv_end(struct rcv *r, struct rcv_entry *f, bool skipped, const struct ptcp_err *why);
/* Sends FAIL, ends the entry and all its waiters. */
void rcv_fail(struct rcv *r, struct rcv_entry *f, const struct ptcp_err *why);
/* Fails the waiters only. */
void rcv_fail_waiters(struct rcv *r, struct rcv_entry *f);
/* Sends DONE and ends the entry. */
void rcv_done(struct rcv *r, struct rcv_entry *f);
/* Prepares entries whose directories or files are ready. */
void rcv_run_waiting(struct rcv *r);
void rcv_commit(struct rcv *r, struct rcv_entry *f, const struct wire_entry *end_frame);

/* ---- receiver_blocks.c ---- */

/* Takes the claims of an accepted file, or discards the claims for lack of memory. */
void rcv_claim(struct rcv *r, struct rcv_entry *f, uint64_t *claimed);
void rcv_bitmaps_free(struct rcv *r, struct rcv_entry *f);
/* Of the written blocks, those before the first missing one. */
uint64_t rcv_beginning_bytes(const struct rcv_entry *f);

#endif
