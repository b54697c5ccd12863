/* The receiving half of the engine: accepts entries, requests missing blocks, tracks complete files.
 *
 * No sockets, no files, no clock, one thread, as sender.h. An entry's life:
 *
 *   WAITING    for its directory, or a hard link for its file
 *   PREPARING  the store prepares the entry; from WAITING, COMPARING
 *   COMPARING  a similar file exists, both ends hash theirs; from PREPARING (files only)
 *   RECEIVING  blocks may arrive; from PREPARING (files only)
 *   COMPLETE   all blocks are written, FILE_END is missing; from RECEIVING
 *   COMMITTING the store renames the entry; from RECEIVING, COMPLETE, PREPARING (links), OPEN
 *   OPEN       an existing directory; from PREPARING (directories only)
 *
 * and ends by our DONE, FAIL, SEND_NONE or NO_LINK. Frames about ended entries are ignored; frames about
 * unknown entries, and ids that do not rise, are violations. Memory for unfinished entries is limited:
 * an entry beyond the limit fails, not the session; a file whose claims exceed the limit is received
 * from scratch.
 *
 * Resuming: the store claims blocks of an earlier session (RCV_PARTS) and verifies them with
 * rcv_verified(), while the missing blocks already arrive. Blocks of another version of the file are claimed, too: the
 * hashes of the sender, which rcv_match() requests, tell the equal ones. */
#ifndef ENGINE_RECEIVER_H
#define ENGINE_RECEIVER_H

#include <ptcp/progress.h>

#include "core/clock.h"
#include "wire/outbox.h"

struct rcv;
struct tape;

enum rcv_prep {
	RCV_ACCEPT,
	RCV_PARTS,   /* a file whose blocks in `claimed` may be written already; rcv_verified() follows */
	RCV_COMPARE, /* only with VERIFY: a similar complete file exists; rcv_compared() follows */
	RCV_UP_TO_DATE,
	RCV_NO_LINK, /* a HARDLINK that cannot be one: the sender offers the name again, in another entry */
	RCV_LATER,
	RCV_REFUSE
};

struct rcv_ops {
	/* A new entry in the directory whose cookie is `parent` (NULL: the destination): prepare the store for it
	 * (make the directory, open the part file); in a dry run only examine. RCV_LATER: rcv_prepared() follows, not
	 * from within. RCV_REFUSE with `e`. RCV_PARTS with a bitmap_new() of the file's blocks in `claimed`. The cookie
	 * is the caller's until ended(). The file of a HARDLINK is complete. */
	enum rcv_prep (*prepare)(void *arg, uint64_t id, const struct wire_entry *f, void *parent,
	    void **cookie, uint64_t **claimed, struct ptcp_err *e);
	/* The compared file differs, or could not be read: prepare to receive the entry.
	 * Answer with rcv_prepared() (never RCV_COMPARE), not from within. */
	void (*differs)(void *arg, uint64_t id, void *cookie);
	/* From now on blocks may be written, even before the sender has our ANSWER. `parts`: verify the claims, with
	 * rcv_verified(), not from within; else claims are void, all blocks will arrive. */
	void (*accepted)(void *arg, uint64_t id, void *cookie, uint64_t size_bytes, bool parts);
	/* These blocks are holes, and count as written: data of an earlier session must be zeroed before the commit is
	 * done. NULL: no such data. */
	void (*hole)(void *arg, uint64_t id, void *cookie, uint32_t first, uint32_t count);
	/* Hashes of the source, WIRE_HASH_BYTES each, of blocks from `first` on, as rcv_match() has requested.
	 * NULL: never called. */
	void (*hashes)(void *arg, uint64_t id, void *cookie, uint32_t first, struct span hashes);
	/* The same of all pieces of a block, in the order of the requests of rcv_split(). */
	void (*pieces)(void *arg, uint64_t id, void *cookie, uint32_t block, struct span hashes);
	/* Complete: set the final name, mode and times (of a directory: mode and times of `end`). Answer with
	 * rcv_committed(), not from within. */
	void (*commit)(void *arg, uint64_t id, void *cookie, const struct wire_entry *end);
	/* The entry has ended; once for each prepared entry. `why` NULL: complete (`skipped`: up to date, or
	 * RCV_NO_LINK); else failed: remove the written data. */
	void (*ended)(void *arg, uint64_t id, void *cookie, bool skipped, const struct ptcp_err *why);
	void (*totals)(void *arg, uint64_t files, uint64_t bytes, bool final);
	/* The compared file is equal: set mode, owner and times. Answer with
	 * rcv_prepared() (RCV_UP_TO_DATE or RCV_REFUSE), not from within. */
	void (*same)(void *arg, uint64_t id, void *cookie);
	/* The size of an UNSIZED file is known: blocks beyond it no longer fit the grid. */
	void (*sized)(void *arg, uint64_t id, void *cookie, uint64_t size_bytes);
	/* An UNSIZED file has failed, before ended(): length of its beginning, all of it verified and written, unless
	 * it is empty. NULL: none is kept. */
	void (*beginning)(void *arg, uint64_t id, void *cookie, uint64_t bytes);
	/* The directory lacks entries that the sender has and could not offer, or that failed before prepare(); or (not
	 * `failed`) its content was left out; before its commit. */
	void (*incomplete)(void *arg, void *cookie, bool failed);
};

struct rcv_opts {
	uint32_t max_entries;
	bool verify;
	bool dry_run;   /* entries are DONE once prepared, without a commit */
	const struct rcv_ops *ops;
	void *arg;
	struct memory_account *memory; /* outlives the receiver; NULL: no limit */
	struct tape *tape; /* outlives the receiver; NULL: no record */
};

int rcv_new(struct rcv **out, const struct rcv_opts *o, struct outbox *outbox, struct ptcp_err *e);
void rcv_free(struct rcv *r); /* NULL is fine */
/* Ends all unfinished entries, with PTCP_ECANCELED; they do not count as failed. */
void rcv_drop(struct rcv *r);

/* Frames of the sender; PTCP_EPROTO for a violation. */
int rcv_on_entry(struct rcv *r, const struct wire_entry *w, struct ptcp_err *e);
int rcv_on_file_end(struct rcv *r, const struct wire_file_end *w, struct ptcp_err *e);
int rcv_on_size(struct rcv *r, const struct wire_size *w, struct ptcp_err *e);
int rcv_on_hole(struct rcv *r, const struct wire_blocks *b, struct ptcp_err *e);
int rcv_on_hashes(struct rcv *r, const struct wire_hashes *w, struct ptcp_err *e);
int rcv_on_pieces(struct rcv *r, const struct wire_hashes *w, struct ptcp_err *e);
int rcv_on_fail(struct rcv *r, const struct wire_fail *w, struct ptcp_err *e);
int rcv_on_totals(struct rcv *r, const struct wire_totals *t, struct ptcp_err *e);

/* Any verdict but RCV_LATER: takes `claimed` (RCV_PARTS; else NULL); `why` with RCV_REFUSE. */
void rcv_prepared(struct rcv *r, uint64_t id, enum rcv_prep verdict, uint64_t *claimed,
    const struct ptcp_err *why);
/* The digest of the existing file (see snd_ops.compare), or the error. */
void rcv_compared(struct rcv *r, uint64_t id, struct digest digest, const struct ptcp_err *why);
/* Claimed blocks were read: good, with the sum of their terms, or bad: all to be sent. Blocks without a claim, and
 * verified blocks, are ignored. */
void rcv_verified(struct rcv *r, uint64_t id, uint32_t first, uint32_t count, bool good,
    struct digest sum);

/* Requests the sender's hashes of blocks of a file of RCV_PARTS, at most WIRE_HASHES_MAX, none twice and in ascending
 * order; two requests of a file may be open. Without effect once the file is complete or has ended. */
void rcv_match(struct rcv *r, uint64_t id, uint32_t first, uint32_t count);

/* Requests the hashes of the pieces of claimed blocks, none twice and in ascending order, of a file whose blocks have
 * WIRE_CHUNK_BYTES. False: not so, or too little memory; no pieces will come. */
bool rcv_split(struct rcv *r, uint64_t id, uint32_t first, uint32_t count);
/* As rcv_verified(), of a bad block: these pieces are in their place. The rest is requested, or, of a block beyond the
 * requests so far, all. */
void rcv_patch(struct rcv *r, uint64_t id, uint32_t block, uint64_t has);

/* A file of RCV_PARTS: requests no block from `end` on, until the next call. Within accepted() and later. */
void rcv_limit(struct rcv *r, uint64_t id, uint32_t end);

/* Claimed blocks cannot be read, or written blocks not delivered: the file fails. */
void rcv_broken(struct rcv *r, uint64_t id, const struct ptcp_err *why);

enum rcv_block_result {
	RCV_BLOCK_WRITTEN, /* verified and written */
	RCV_BLOCK_BAD,     /* did not verify, not written */
	RCV_BLOCK_FAILED   /* could not be written: `why` */
};
/* Result of a received block; ignored for ended files and blocks already written. */
void rcv_block(struct rcv *r, uint64_t id, uint32_t block, enum rcv_block_result result,
    struct digest term, const struct ptcp_err *why);
void rcv_committed(struct rcv *r, uint64_t id, const struct ptcp_err *why);
/* In place of rcv_committed(): as RCV_NO_LINK. */
void rcv_not_linked(struct rcv *r, uint64_t id);

/* Requests missing blocks, within the limits. */
void rcv_tick(struct rcv *r);
struct mono rcv_deadline(const struct rcv *r);

/* No entry is unfinished. */
bool rcv_idle(const struct rcv *r);

struct rcv_stats {
	struct ptcp_progress done; /* bytes, resumed_bytes, wire_bytes, files, file_bytes, others, failed */
	uint64_t compared_bytes;   /* blocks with requested hashes */
	uint64_t hole_bytes;       /* part of done.bytes: holes, neither sent nor resumed */
	uint32_t live;             /* entries in progress */
	uint64_t unplaced;         /* failed entries at the top that the caller was not asked to prepare */
};
struct rcv_stats rcv_stats(const struct rcv *r);

#endif
