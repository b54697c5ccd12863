/* The sending half of the engine: offers entries, assigns blocks to streams, tracks acknowledgments.
 *
 * No sockets, no files, no clock: the caller passes entries, the peer's frames, connected and lost
 * streams, and `now`; the caller takes jobs for streams and delivers the outbox. One thread (the control
 * thread). An entry's life:
 *
 *   OFFERED   ENTRY was sent; next COMPARING, SENDING, MADE (a directory), or the end
 *   COMPARING the caller hashes the source, at the receiver's request; from OFFERED
 *   COMPARED  the digest was sent; next SENDING or the end; from COMPARING
 *   SENDING   blocks are sent, acknowledged, retransmitted; from OFFERED, COMPARED
 *   CHECKING  all blocks acknowledged and their terms known, the caller checks whether the source
 *             has changed; from SENDING (not for files of one block)
 *   FINISHING the receiver has everything; from SENDING, CHECKING, OFFERED (a link), MADE
 *   MADE      an existing directory, until the listing has left it and its children have ended;
 *             from OFFERED
 *   FAILING   failed here, FAIL was sent; from COMPARING, SENDING, CHECKING
 *   AGAIN     a hard link that the receiver could not make: the caller offers the name again, in another entry, which
 *             is OFFERED; from OFFERED, FINISHING
 *   LOST      a directory that the receiver could not make: its children fail; from OFFERED, MADE
 *
 * In a dry run files and links end in OFFERED or COMPARED: DONE means that they would be sent.
 * An entry ends by the peer's DONE, FAIL or SEND_NONE. (The slot of a LOST directory is free;
 * entries offered inside fail at once.) */
#ifndef ENGINE_SENDER_H
#define ENGINE_SENDER_H

#include <ptcp/progress.h>

#include "core/clock.h"
#include "core/list.h"
#include "wire/outbox.h"

struct snd;
struct tape;

enum snd_fate { SND_DONE, SND_SKIPPED /* up to date */, SND_FAILED, SND_DROPPED /* snd_drop() */ };

struct snd_ops {
	/* The entry has ended; once for each; the cookie is the caller's again. `why` only with SND_FAILED. */
	void (*ended)(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why);
	/* All blocks have arrived: has the source changed? Answer with snd_checked(), not from within. */
	void (*check)(void *arg, void *cookie, uint64_t id);
	/* The receiver has a similar file: compute the digest of the source (holes count as zeros) and check
	 * whether the source has changed. Answer with snd_compared(), not from within. */
	void (*compare)(void *arg, void *cookie, uint64_t id);
	/* The receiver may have these blocks of a file that is being sent: hash them in order, and answer with
	 * snd_hashed(), not from within. One request of a file at a time. */
	void (*hash)(void *arg, void *cookie, uint64_t id, uint32_t first, uint32_t count);
	/* The same of all pieces of a block: answer with snd_pieces(). One block of a file at a time. */
	void (*pieces)(void *arg, void *cookie, uint64_t id, uint32_t block);
	/* Find the holes of a file offered as SPARSE. No block of the file is sent before snd_mapped(), once for
	 * each, not from within. Called for some files at a time, by snd_tick(). */
	void (*map)(void *arg, void *cookie, uint64_t id);
	/* No block on this stream has been acknowledged for three quarters of the time-out: the caller closes the
	 * stream and calls snd_stream_lost(), unless our own disk is to blame; then the call is repeated. */
	void (*stalled)(void *arg, unsigned stream);
	/* A block of an UNSIZED file will not be sent again. */
	void (*release)(void *arg, void *cookie, uint32_t block);
	/* The receiver cannot link this name to its file: examine the source again, then call snd_offer_again() or
	 * snd_give_up(), not from within. The cookie is the engine's until then. */
	void (*again)(void *arg, void *cookie, uint64_t id);
};

struct snd_opts {
	bool verify;            /* compare digests */
	bool dry_run;
	const struct snd_ops *ops;
	void *arg;
	struct memory_account *memory; /* outlives the sender; NULL: no limit */
	struct tape *tape;      /* outlives the sender; NULL: no record */
};

/* What the peer has agreed to. */
struct snd_terms {
	uint32_t max_entries;   /* up to WIRE_SLOTS */
	uint64_t timeout_ns;
	uint64_t linger_ns;     /* maximum life of the session without progress, if above timeout_ns */
	bool spooled;           /* relays may spool blocks */
	uint64_t region_bytes;  /* region of a file that one mover carries; not 0 with snd_set_mover() */
};

int snd_new(struct snd **out, const struct snd_opts *o, struct outbox *outbox, struct ptcp_err *e);
/* Once, before any stream is connected. Until then only early entries may be offered. */
void snd_agree(struct snd *s, const struct snd_terms *t);
void snd_free(struct snd *s); /* NULL is fine */
/* Ends all unfinished entries, SND_DROPPED; the statistics stay. */
void snd_drop(struct snd *s);

/* ---- Entries, in the order of the walk ---- */

/* Number of entries that may be offered now; 0 also while the outbox is full. */
unsigned snd_room(const struct snd *s);

/* Before snd_agree(): whether there is room for an early entry with frame of at most that size. */
bool snd_early_room(const struct snd *s, size_t bytes);
/* Offers an entry inside the directory that was offered last and not left; sets id and parent of `f`.
 * snd_room() must not be 0. Returns the id, for hard links to the file; 0 when the entry has ended. The target of a
 * HARDLINK must not have failed. After a WIRE_DIR entries are inside the directory until snd_leave(). Takes the
 * cookie in any case: without memory, or inside a lost directory, the entry ends at once. snd_depth() is the number
 * of directories entered and not left. */
uint64_t snd_offer(struct snd *s, struct wire_entry *f, void *cookie);
void snd_leave(struct snd *s);
/* An entry of the directory entered last cannot be offered: its DIR_END tells the receiver. False at the top. */
bool snd_lack(struct snd *s);
/* Leaves the directory entered last, whose content is not offered. */
void snd_close(struct snd *s);
/* Answers again(): offers an entry in place of the hard link `id`, whose cookie is the caller's again; no directory. */
uint64_t snd_offer_again(struct snd *s, uint64_t id, struct wire_entry *f, void *cookie);
/* Or ends the hard link, SND_DROPPED, after the caller has told the receiver why by a warning. */
void snd_give_up(struct snd *s, uint64_t id);
/* Whether the receiver will remember a file of that name, offered next (`again`: in place of that hard link; else 0), for
 * hard links: offer the file as LINKED. False: its memory (WIRE_LINKED_MAX_BYTES) is used up, offer every name as a file. */
bool snd_may_link(struct snd *s, uint64_t again, size_t name_bytes);
unsigned snd_depth(const struct snd *s);
/* Levels of directories, which are unfinished as long as their content is, that leave the receiver room for other entries;
 * UINT_MAX before snd_agree(), when a walk begins. */
unsigned snd_levels(const struct snd *s);
/* Totals listed so far; `final`: the listing is complete. */
void snd_listed(struct snd *s, uint64_t files, uint64_t bytes, bool final);

/* ---- Streams and jobs ---- */

#define SND_JOB_EXTENTS 64
#define SND_JOB_BYTES (256u << 10) /* limit of a job that small files share */

struct snd_extent {
	uint64_t id, offset;
	uint32_t block, length;
	uint64_t omit; /* pieces that the receiver has, see wire_patch.omit */
	void *cookie;
};

struct snd_job {
	unsigned n;
	struct snd_extent extent[SND_JOB_EXTENTS];
};

/* The mover, or pair of movers, that will carry the stream when it is connected again; 0 at first. Streams of several movers
 * get the blocks of a file by regions of terms.region_bytes: the streams of one mover send all blocks of a region, unless
 * they were lost. Once no other block is left, a mover takes half of the largest rest of another mover's region; before
 * the listing is complete, only of files of several regions. */
void snd_set_mover(struct snd *s, unsigned stream, uint64_t mover);
void snd_stream_up(struct snd *s, unsigned stream, struct mono now);
void snd_stream_lost(struct snd *s, unsigned stream);

/* The next job for a stream that has room: lost blocks first, then new blocks, and when the listing is complete and
 * no block is left, for an idle stream, copies of blocks that wait long for their acknowledgment on another stream.
 * False: no block now (try again after frames, losses or snd_deadline()). */
bool snd_take(struct snd *s, unsigned stream, struct mono now, struct snd_job *job);
/* A common cause, our rate limit or the peer's disk, delays the blocks of all streams: no stream counts as stalled,
 * and a stream carries copies only of blocks under another rate. Initially false. */
void snd_set_paced(struct snd *s, bool paced);

/* Rates shared by some streams; the caller enforces them. The streams of a rate take only as many blocks as the rate
 * permits in half a second, or one job, so that the tail does not wait for a slow stream. A stream has rate 0 (none)
 * at first, and keeps its rate when connected again. */
#define SND_RATES 16
#define SND_IDLE UINT64_MAX
void snd_share(struct snd *s, unsigned stream, unsigned rate); /* 1 to SND_RATES, or 0 */
/* 1 to SND_RATES; bit/s, 0: no limit, SND_IDLE: no new blocks. */
void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps);
/* The stream's rate admits no block now. */
bool snd_stream_waits(const struct snd *s, unsigned stream);

/* The stream has unacknowledged blocks; time of its last acknowledgment (or of snd_peer_busy()). */
bool snd_stream_carries(const struct snd *s, unsigned stream);
struct mono snd_stream_acked(const struct snd *s, unsigned stream);
/* Bytes of acknowledged blocks delivered by the streams with this number, as far as known. */
uint64_t snd_stream_acked_bytes(const struct snd *s, unsigned stream);
/* How long the stream needs for the blocks that it carries, by the time that it took for earlier ones. */
uint64_t snd_stream_drains_ns(const struct snd *s, unsigned stream, struct mono now);

/* A block of a job was read (its term, for the digest) and is being sent, or could not be read (`why`). May be called
 * late, or never when the stream is lost. */
void snd_read(struct snd *s, unsigned stream, uint64_t id, uint32_t block, struct digest term,
    const struct ptcp_err *why, struct mono now);
void snd_checked(struct snd *s, uint64_t id, const struct ptcp_err *why);
void snd_compared(struct snd *s, uint64_t id, struct digest digest, const struct ptcp_err *why);
/* The sums of the next n blocks of hash(), at most WIRE_HASHES_MAX; or the source cannot be read. */
void snd_hashed(struct snd *s, uint64_t id, const struct block_sum *sum, uint32_t n, const struct ptcp_err *why);
/* The sums of all n pieces of the block of pieces(). */
void snd_pieces(struct snd *s, uint64_t id, const struct block_sum *sum, uint32_t n, const struct ptcp_err *why);
/* Whether the entry waits for snd_compared(), snd_checked(), snd_hashed() or snd_pieces(). */
bool snd_awaits_digest(const struct snd *s, uint64_t id);
/* Of an entry that waits for snd_checked(): whether the blocks that were sent have this digest. */
bool snd_digest_is(const struct snd *s, uint64_t id, struct digest digest);
/* Takes `holes`, a bitmap_new() of the file's blocks: those wholly in holes; NULL: none. */
void snd_mapped(struct snd *s, uint64_t id, uint64_t *holes, const struct ptcp_err *why);

/* ---- Files of unknown size: offered as UNSIZED ---- */

/* The first n whole blocks can be read. Without effect before the receiver has accepted the file, and once the file
 * has ended or has its size: to be repeated until snd_sized() or snd_input_failed() returns true. */
void snd_grown(struct snd *s, uint64_t id, uint32_t n);
/* The input has ended: the size of the file, at most WIRE_UNSIZED_MAX. True: accepted, or the file has ended. */
bool snd_sized(struct snd *s, uint64_t id, uint64_t size_bytes);
/* The input has failed: so does the file. True as snd_sized(). */
bool snd_input_failed(struct snd *s, uint64_t id, const struct ptcp_err *why);

/* ---- Time, the peer, the end ---- */

/* Frames of the receiver; PTCP_EPROTO for a violation. */
int snd_on_answer(struct snd *s, const struct wire_answer *a, struct ptcp_err *e);
int snd_on_need(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e);
int snd_on_have(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e);
int snd_on_match(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e);
int snd_on_split(struct snd *s, const struct wire_blocks *b, struct ptcp_err *e);
int snd_on_patch(struct snd *s, const struct wire_patch *p, struct ptcp_err *e);
int snd_on_ack(struct snd *s, const struct wire_ack *a, struct mono now, struct ptcp_err *e);
int snd_on_done(struct snd *s, const struct wire_done *d, struct ptcp_err *e);
int snd_on_fail(struct snd *s, const struct wire_fail *d, struct ptcp_err *e);
/* The receiver reports a busy disk: no stream counts as stalled meanwhile. */
void snd_peer_busy(struct snd *s, struct mono now);
struct mono snd_deadline(struct snd *s);
void snd_tick(struct snd *s, struct mono now);

/* The listing is complete and all entries have ended: except for the caller's work on ended entries, between snd_hold()
 * and snd_release(), the session is finished. */
bool snd_all_ended(const struct snd *s);
void snd_hold(struct snd *s);
void snd_release(struct snd *s);
bool snd_finished(const struct snd *s);

struct snd_stats {
	struct ptcp_progress done; /* bytes, resumed_bytes, files, file_bytes, others, failed */
	uint64_t blocks_again;     /* retransmitted */
	uint64_t compared_bytes;   /* blocks with requested hashes */
	uint32_t live;             /* entries in progress */
};
struct snd_stats snd_stats(const struct snd *s);

#endif
