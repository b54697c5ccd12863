/* The sending half of the engine: which entries are offered, which block goes on
 * which stream, what has arrived.
 *
 * No sockets, no files, no clock: the caller brings entries, the peer's frames,
 * streams that come and go, and `now`; it takes jobs for streams and delivers what the
 * outbox holds. One thread (the control thread). An entry's life:
 *
 *   OFFERED  ENTRY was sent; next COMPARING, SENDING, MADE (a directory), or its end
 *   COMPARING the caller hashes the source, as the receiver asked; from OFFERED
 *   COMPARED the receiver has been told the digest; next SENDING or its end; from COMPARING
 *   SENDING  blocks go out, come back acknowledged, are sent again; from OFFERED, COMPARED
 *   CHECKING all acknowledged and the terms of all known, the caller looks whether the source
 *            is still the same; from SENDING (not for files of one block)
 *   FINISHING the receiver has all it needs; from SENDING, CHECKING, OFFERED (a link), MADE
 *   MADE     a directory there is; it stays until the listing has left it and all its
 *            children have ended; from OFFERED
 *   FAILING  failed here, the receiver has been told; from COMPARING, SENDING, CHECKING
 *   LOST     a directory the receiver could not make: its children fail; from OFFERED, MADE
 *
 * In a dry run, files and links end in OFFERED or COMPARED: DONE says that they would be sent.
 * An entry ends by the peer's DONE, FAIL or SEND_NONE. (A directory's slot is free once it is LOST;
 * what is offered in it from then on fails at once.) */
#ifndef ENGINE_SENDER_H
#define ENGINE_SENDER_H

#include <ptcp/progress.h>

#include "core/clock.h"
#include "core/list.h"
#include "wire/outbox.h"

struct snd;

enum snd_fate { SND_DONE, SND_SKIPPED /* was there already */, SND_FAILED, SND_DROPPED /* snd_drop() */ };

struct snd_ops {
	/* The entry is over; called once for each; the cookie is the caller's again. `why`
	 * only with SND_FAILED. Not called for directories that are fine until their end. */
	void (*ended)(void *arg, void *cookie, enum snd_fate fate, const struct ptcp_err *why);
	/* All blocks have arrived: is the source still what was offered? Answer with
	 * snd_checked(), not from within. */
	void (*check)(void *arg, void *cookie, uint64_t id);
	/* The receiver has a file like it: what is the digest of the source, as if none of it were a hole
	 * (a block that is one has the term of its zeros), and is it still what was offered? Answer with
	 * snd_compared(), not from within. */
	void (*compare)(void *arg, void *cookie, uint64_t id);
	/* Where are the holes of a file that was offered as SPARSE? No block of it is sent before
	 * snd_mapped(), once for each, not from within. Asked for some files at a time, by snd_tick(). */
	void (*map)(void *arg, void *cookie, uint64_t id);
	/* Nothing sent on this stream has been acknowledged for three quarters of the time-out:
	 * the caller closes it and calls snd_stream_lost(), unless it knows that our own disk is
	 * to blame; then it is asked again. */
	void (*stalled)(void *arg, unsigned stream);
};

struct snd_opts {
	uint32_t max_entries;   /* the peer's, up to WIRE_SLOTS */
	uint64_t timeout_ns;
	uint64_t peer_timeout_ns; /* as its HELLO says; it may bear silence for longer */
	bool verify;            /* compare digests */
	bool dry_run;
	const struct snd_ops *ops;
	void *arg;
};

int snd_new(struct snd **out, const struct snd_opts *o, struct outbox *outbox, struct ptcp_err *e);
void snd_free(struct snd *s); /* NULL is fine */
/* Ends all entries that are not over, SND_DROPPED; the statistics stay. */
void snd_drop(struct snd *s);

/* ---- Entries, in the order of the walk ---- */

/* How many entries may be offered right now; 0 also while much waits for the peer to read. */
unsigned snd_room(const struct snd *s);

/* Offers an entry inside the directory offered last and not yet left; id and parent of `f` are filled in
 * here, snd_room() must not be 0. Returns its id, for other names of it; 0 when it has ended. A HARDLINK is
 * not offered of a file that is known to have failed. For WIRE_DIR what
 * follows is inside it until snd_leave(). Takes the cookie in any case: without memory, or inside a lost
 * directory, it ends at once. snd_depth() is the number of directories entered and not left. */
uint64_t snd_offer(struct snd *s, struct wire_entry *f, void *cookie);
void snd_leave(struct snd *s);
unsigned snd_depth(const struct snd *s);
/* What has been listed so far; `final`: nothing more comes. */
void snd_listed(struct snd *s, uint64_t files, uint64_t bytes, bool final);

/* ---- Streams and jobs ---- */

#define SND_JOB_EXTENTS 64
#define SND_JOB_BYTES (256u << 10) /* small files share a job up to this */

struct snd_extent {
	uint64_t id, offset;
	uint32_t block, length;
	void *cookie;
};

struct snd_job {
	unsigned n;
	struct snd_extent extent[SND_JOB_EXTENTS];
};

void snd_stream_up(struct snd *s, unsigned stream, struct mono now);
void snd_stream_lost(struct snd *s, unsigned stream);

/* The next job for a stream that has room: lost blocks first, then new ones, and when the
 * listing is complete and nothing is left, for one that carries nothing, blocks that another stream has not got
 * acknowledged for long. False: nothing now (ask again after frames, losses or snd_deadline()). */
bool snd_take(struct snd *s, unsigned stream, struct mono now, struct snd_job *job);
/* What holds up blocks that are on their way holds up all streams: a rate of ours, or the peer's disk. None of
 * them counts as stalled then, and none carries copies but of those that keep to another rate. False to begin with. */
void snd_set_paced(struct snd *s, bool paced);

/* Streams that share a rate beside that, which the caller sees to. They take no more than goes out within half a
 * second at that rate, or one job, so that the tail does not wait for a slow one. A stream keeps to rate 0 (none) at
 * first, and to the one it was given when it comes up again. */
#define SND_RATES 16
#define SND_IDLE UINT64_MAX
void snd_share(struct snd *s, unsigned stream, unsigned rate); /* 1 to SND_RATES, or 0 */
/* 1 to SND_RATES; bit/s, 0: no limit, SND_IDLE: they take nothing; what they have goes on. */
void snd_set_rate(struct snd *s, unsigned rate, uint64_t bps);
/* Its rate keeps it from taking anything now. */
bool snd_stream_waits(const struct snd *s, unsigned stream);

/* It has blocks that are not acknowledged; when one of its blocks last was (or snd_excuse()). */
bool snd_stream_carries(const struct snd *s, unsigned stream);
struct mono snd_stream_acked(const struct snd *s, unsigned stream);
/* Bytes of blocks of which it is known that a stream of this number brought them, so far. */
uint64_t snd_stream_acked_bytes(const struct snd *s, unsigned stream);

/* A block of a job has been read (its term, for the digest) and is now being sent, or could
 * not be read (`why`). May come late, or never when the stream is lost. */
void snd_read(struct snd *s, unsigned stream, uint64_t id, uint32_t block, struct digest term,
    const struct ptcp_err *why, struct mono now);
void snd_checked(struct snd *s, uint64_t id, const struct ptcp_err *why);
void snd_compared(struct snd *s, uint64_t id, struct digest digest, const struct ptcp_err *why);
/* Whether compare() asked for the digest of an entry that still waits for it. */
bool snd_compares(const struct snd *s, uint64_t id);
/* Takes `holes`, a bitmap_new() of the file's blocks: those that are wholly holes; NULL: none is. */
void snd_mapped(struct snd *s, uint64_t id, uint64_t *holes, const struct ptcp_err *why);

/* ---- Time, the peer, the end ---- */

/* An ANSWER, NEED, HAVE, ACK, DONE or FAIL of the receiver; anything else is PTCP_EPROTO. */
int snd_frame(struct snd *s, unsigned type, struct span in, struct mono now, struct ptcp_err *e);
/* The receiver says that its disk keeps it busy: no stream counts as stalled for it. */
void snd_excuse(struct snd *s, struct mono now);
/* When snd_tick() should be called at the latest. */
struct mono snd_deadline(const struct snd *s);
void snd_tick(struct snd *s, struct mono now);

/* Everything has been listed and has ended. */
bool snd_finished(const struct snd *s);

struct snd_stats {
	struct ptcp_progress done; /* bytes, resumed_bytes, files, file_bytes, others, failed */
	uint64_t blocks_again;     /* retransmitted */
	uint32_t live;             /* entries in progress */
};
struct snd_stats snd_stats(const struct snd *s);

#endif
