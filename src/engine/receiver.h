/* The receiving half of the engine: what is accepted, what is complete, what is still wanted.
 *
 * No sockets, no files, no clock, one thread, as sender.h. An entry's life:
 *
 *   WAITING    its directory is not there yet, or the file that it is another name of is not complete
 *   PREPARING  the store looks; from WAITING, COMPARING
 *   COMPARING  a file like it is here, both sides hash theirs; from PREPARING (files only)
 *   RECEIVING  blocks may come; from PREPARING (files only)
 *   COMPLETE   all blocks are here, FILE_END is not; from RECEIVING
 *   COMMITTING the store gives it its name; from RECEIVING, COMPLETE, PREPARING (links), OPEN
 *   OPEN       a directory there is; from PREPARING (directories only)
 *
 * and ends by our DONE, FAIL or SEND_NONE. Frames about entries that have ended are ignored; those
 * about entries that never were, and ids that do not rise, are the sender's fault. Memory for what is
 * unfinished is limited: what goes beyond is failed, not the session; a file whose claims go beyond
 * is received anew.
 *
 * Resuming: the store claims blocks of an earlier session (RCV_PARTS) and verifies them while the
 * others already flow; rcv_verified() says what came of it. */
#ifndef ENGINE_RECEIVER_H
#define ENGINE_RECEIVER_H

#include <ptcp/progress.h>

#include "core/clock.h"
#include "wire/outbox.h"

struct rcv;

enum rcv_prep {
	RCV_ACCEPT,
	RCV_PARTS,   /* of a file: the blocks in `claimed` are said to be here, rcv_verified() will tell */
	RCV_COMPARE, /* of a file, only when verifying: a complete one like it is here; rcv_compared() follows */
	RCV_HAVE_IT,
	RCV_LATER,
	RCV_REFUSE
};

struct rcv_ops {
	/* A new entry in the directory whose cookie is `parent` (NULL: the destination): make what
	 * will receive it and look (make the directory, prepare the file); in a dry run only look. RCV_LATER:
	 * rcv_prepared() will follow, not from within. RCV_REFUSE with `e`. RCV_PARTS with a bitmap_new() of the
	 * file's blocks in `claimed`. Its cookie is the caller's until released. The file that a HARDLINK names
	 * is complete. */
	enum rcv_prep (*prepare)(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
	    void **cookie, uint64_t **claimed, struct ptcp_err *e);
	/* The file that was to be compared is another, or could not be read: prepare to receive it.
	 * Answer with rcv_prepared() (never RCV_COMPARE), not from within. */
	void (*differs)(void *arg, uint64_t id, void *cookie);
	/* Blocks may be written from now on, before the sender hears of it. `parts`: verify what was claimed and
	 * say so by rcv_verified(), not from within; else claims are void, all comes anew. */
	void (*accepted)(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts);
	/* These blocks are holes, and count as written: what the caller has there (of an earlier session) must
	 * be zeros before the commit is done. NULL: it is so anyway. */
	void (*hole)(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count);
	/* All is here: give it its final name, mode and times (a directory: mode and times of `end`).
	 * Answer with rcv_committed(), not from within. */
	void (*commit)(void *arg, uint64_t id, void *cookie, const struct wire_entry *end);
	/* The entry is over; called once for each that was prepared. `why` NULL: it is complete
	 * (or was, when `skipped`); else it failed, and what has been written of it is to be removed. */
	void (*ended)(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why);
	void (*totals)(void *arg, uint64_t files, uint64_t bytes, bool final);
	/* The file that was to be compared is the same: see to its mode and the like. Answer with
	 * rcv_prepared() (RCV_HAVE_IT or RCV_REFUSE), not from within. */
	void (*same)(void *arg, uint64_t id, void *cookie);
};

struct rcv_opts {
	uint32_t max_entries;
	bool verify;
	bool dry_run;   /* what would be received is DONE as soon as it has been prepared, without a commit */
	const struct rcv_ops *ops;
	void *arg;
};

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e);
void rcv_free(struct rcv *r); /* NULL is fine */
/* Ends all entries that are not over, with PTCP_ECANCELED; they do not count as failed. */
void rcv_drop(struct rcv *r);

/* An ENTRY, FILE_END, HOLE, FAIL, TOTALS of the sender; anything else is PTCP_EPROTO. */
int rcv_frame(struct rcv *r, unsigned type, struct span in, struct ptcp_err *e);

/* Any verdict but RCV_LATER: takes `claimed` (RCV_PARTS; else NULL); `why` with RCV_REFUSE. */
void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep verdict, uint64_t *claimed,
    const struct ptcp_err *why);
/* The digest of the file that is here (see snd_ops.compare), or why there is none. */
void rcv_compared(struct rcv *r, uint64_t id, struct digest digest, const struct ptcp_err *why);
/* Claimed blocks have been read: they are good, and `sum` that of their terms, or all of them are to be
 * sent. Blocks that are not claimed, or of which this was said before, are ignored. */
void rcv_verified(struct rcv *r, uint64_t id, uint32_t first, uint32_t count, bool good,
    struct digest sum);

/* Claimed blocks cannot be read: the file fails. */
void rcv_broken(struct rcv *r, uint64_t id, const struct ptcp_err *why);

enum rcv_block_news {
	RCV_BLOCK_WRITTEN, /* verified and written */
	RCV_BLOCK_BAD,     /* did not verify, not written */
	RCV_BLOCK_FAILED   /* could not be written: `why` */
};
/* News of a block of a file; of ended files or blocks that were here already it is ignored. */
void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_news news,
    struct digest term, const struct ptcp_err *why);
void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why);

/* Asks for missing blocks, as far as there is room for that. */
void rcv_tick(struct rcv *r);
struct mono rcv_deadline(const struct rcv *r);

/* Nothing is unfinished. */
bool rcv_idle(const struct rcv *r);

struct rcv_stats {
	struct ptcp_progress done; /* bytes, resumed_bytes, wire_bytes, files, file_bytes, others, failed */
	uint64_t hole_bytes;       /* of done.bytes: holes, neither sent nor resumed */
	uint32_t live;             /* entries in progress */
};
struct rcv_stats rcv_stats(const struct rcv *r);

#endif
