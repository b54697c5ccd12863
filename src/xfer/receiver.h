/* The receiving half of the engine: what is accepted, what is complete, what is still wanted.
 *
 * No sockets, no files, no clock, one thread, as sender.h. An entry's life:
 *
 *   WAITING    its directory is not there yet
 *   PREPARING  the store looks; from WAITING
 *   RECEIVING  blocks may come; from PREPARING (files only)
 *   COMPLETE   all blocks are here, FILE_END is not; from RECEIVING
 *   COMMITTING the store gives it its name; from RECEIVING, COMPLETE, PREPARING (links), OPEN
 *   OPEN       a directory there is; from PREPARING (directories only)
 *
 * and ends by our DONE, FAIL or SEND_NONE. Frames about entries that have ended are ignored; those
 * about entries that never were, and ids that do not rise, are the sender's fault. Memory for what is
 * unfinished is limited: what goes beyond is failed, not the session. */
#ifndef XFER_RECEIVER_H
#define XFER_RECEIVER_H

#include "xfer/outbox.h"

struct rcv;

enum rcv_prep { RCV_ACCEPT, RCV_HAVE_IT, RCV_LATER, RCV_REFUSE };

struct rcv_ops {
	/* A new entry in the directory whose cookie is `parent` (NULL: the destination): make what
	 * will receive it and look (make the directory, prepare the file). RCV_LATER: rcv_prepared() will
	 * follow, not from within. RCV_REFUSE with `e`. Its cookie is the caller's until released. */
	enum rcv_prep (*prepare)(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
	    void **cookie, struct ptcp_err *e);
	/* Blocks may be written from now on, before the sender hears of it. */
	void (*accepted)(void *arg, uint64_t id, void *cookie, uint64_t size_bytes);
	/* All is here: give it its final name, mode and times (a directory: mode and times of `end`).
	 * Answer with rcv_committed(), not from within. */
	void (*commit)(void *arg, uint64_t id, void *cookie, const struct wire_entry *end);
	/* The entry is over; called once for each that was prepared. `why` NULL: it is complete
	 * (or was, when `skipped`); else it failed, and what has been written of it is to be removed. */
	void (*ended)(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why);
	void (*totals)(void *arg, uint64_t files, uint64_t bytes, bool final);
};

struct rcv_opts {
	uint32_t max_entries;
	bool verify;
	const struct rcv_ops *ops;
	void *arg;
};

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e);
void rcv_free(struct rcv *r); /* NULL is fine */
/* Ends all entries that are not over, with PTCP_ECANCELED; they do not count as failed. */
void rcv_drop(struct rcv *r);

/* An ENTRY, FILE_END, FAIL, TOTALS of the sender; anything else is PTCP_EPROTO. */
int rcv_frame(struct rcv *r, unsigned type, struct span in, struct ptcp_err *e);

/* `verdict` RCV_ACCEPT, RCV_HAVE_IT or RCV_REFUSE with `why`. */
void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep verdict, const struct ptcp_err *why);

enum rcv_block_news {
	RCV_BLOCK_WRITTEN, /* verified and written */
	RCV_BLOCK_BAD,     /* did not verify, not written */
	RCV_BLOCK_FAILED   /* could not be written: `why` */
};
/* News of a block of a file; of ended files or blocks that were here already it is ignored. */
void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_news news,
    struct digest term, const struct ptcp_err *why);
void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why);

/* Nothing is unfinished. */
bool rcv_idle(const struct rcv *r);

struct rcv_stats {
	uint64_t bytes;          /* verified and written, or found complete */
	uint64_t resumed_bytes;
	uint64_t files, file_bytes;
	uint64_t failed;
	uint32_t live;
};
struct rcv_stats rcv_stats(const struct rcv *r);

#endif
