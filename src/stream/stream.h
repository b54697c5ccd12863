/* Data stream: a connection that carries blocks. It lives on a worker loop, or on another host (stream_kind), and does
 * what the engine, on the control thread, decides.
 *
 *   control thread                          worker thread
 *   stream_new(), stream_send() .. ------->  reads, hashes, encrypts, sends
 *   ops.sent(), ops.received() <-----------  results of the blocks
 *   stream_stop() ------------------------>  closes the channel, cancels timers
 *   ops.gone() <---------------------------  last message
 *
 * Functions and callbacks run on the control thread. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "conn/context.h"
#include "core/memory_budget.h"
#include "engine/mtu.h"
#include "engine/receiver.h"
#include "engine/sender.h"
#include "net/sock.h"
#include "store/hash.h"
#include "store/source.h"
#include "stream/open_files.h"
#include "stream/packing.h"

struct stream;

/* Memory of a stream besides data in transit: its connection, and its jobs. */
#define STREAM_BYTES (CHAN_BYTES + (20u << 10))

#define STREAM_JOBS 3 /* jobs of a sending stream: the first is being sent, the rest are being read */
#define STREAM_WRITES 4 /* chunks of a receiving stream that I/O threads write at once */
#define STREAM_RESULTS 64
#define STREAM_GENERATED_BLOCK (256u << 10)

struct stream_job {
	struct snd_job job;
	struct source *source[SND_JOB_EXTENTS]; /* references, dropped when the job is done */
	struct digest term[SND_JOB_EXTENTS];
	bool failed[SND_JOB_EXTENTS];           /* blocks that could not be read and were not sent */
	struct ptcp_err *why[SND_JOB_EXTENTS];  /* the reason; NULL: out of memory */
	uint32_t saved_bytes;                   /* bytes that compression kept from being sent */
	/* worker thread */
	struct msg msg;
	struct io_job io;
	struct stream *stream;
	uint8_t *buf;                           /* the loop's; NULL: nothing is read */
	size_t fill;                            /* end of the frames to send */
	struct {                                /* data of the last frame, which is sent from its file: */
		size_t at;                      /* bytes buf[0..at) are handled, */
		uint32_t left;                  /* bytes, 0: none, */
		uint64_t offset;                /* offset in the file */
		unsigned extent;
	} unread;
	unsigned n_read;                        /* extents read, or failed */
	uint32_t extent_read;                   /* bytes read of the next one */
	struct block_hash sum;                  /* hash of these bytes */
	bool ready;                             /* buf is full, or has all the rest */
	bool reading;                           /* an I/O thread has the job */
	bool waited;                            /* the channel, or a rate limit, has made buf wait */
	struct stream_job *next;
};

/* Results of received blocks, gathered by the worker. */
struct stream_results {
	unsigned n;
	struct {
		uint64_t id;
		uint32_t block;
		enum rcv_block_result what;
		uint64_t hash;                  /* hash of the content, with RCV_BLOCK_WRITTEN */
		uint32_t omitted_bytes;         /* bytes that were not sent, as the part had them */
		struct digest term;
		struct ptcp_err *why;           /* reason of RCV_BLOCK_FAILED, freed by the
		                                   callback; NULL: out of memory */
	} of[STREAM_RESULTS];
};

/* The holder of a locked part file. */
enum part_holder {
	PART_OF_OTHERS,  /* no session of the same client */
	PART_RELEASED,   /* a session may release the part soon: try again */
	PART_OF_LIVING   /* a session with a live peer: use a private part (sink_part_alone()) */
};

struct stream_ops {
	/* The channel has accepted the frames of the job; `failed` marks extents that could not be read. */
	void (*sent)(void *arg, struct stream *s, struct stream_job *job);
	/* After sent(): stream_free_job() returns a job. */
	void (*idle)(void *arg, struct stream *s);
	void (*received)(void *arg, struct stream *s, struct stream_results *results);
	/* A session has locked the part file with the inode, since `since`; `alone`: a private part may be used. */
	enum part_holder (*locked)(void *arg, uint64_t dev, uint64_t ino, struct mono since, bool alone);
	/* The connection ended or the peer broke the protocol; the callback calls stream_stop(). */
	void (*lost)(void *arg, struct stream *s, const struct ptcp_err *why);
	void (*gone)(void *arg, struct stream *s);
	/* Data of a file that is not open: the stream pauses until stream_known(), and then discards the data if the
	 * file is still not open. NULL: such data is discarded at once. */
	void (*unknown)(void *arg, struct stream *s, uint64_t id);
};

/* Carries out a stream on another host (mover/remote_stream.c), in place of a worker loop. Control thread. */
struct stream_kind {
	void (*send)(struct stream *s, struct stream_job *job);
	void (*check)(struct stream *s, uint64_t silent_ns, bool unacked);
	void (*stop)(struct stream *s, bool reset); /* stream_gone() follows */
	void (*forget)(struct stream *s);           /* called before stream_free() */
};

struct stream_opts {
	struct context *context;
	const struct stream_kind *kind; /* NULL: a worker loop; else without chan: */
	void *remote;                   /* the stream of this kind */
	unsigned number;
	unsigned path;                  /* index of the path */
	struct pacer *pacer;            /* rate limit beside the context's; or NULL */
	struct memory_account *memory;  /* NULL: no limit */
	bool only_stream;               /* without a replacement: the stream is not closed for its memory */
	struct chan *chan;              /* taken, also on failure; on the control loop until now */
	bool tapped;                    /* the control thread uses the socket as well: stream_tap() */
	bool joining;                   /* sender: JOINED is yet to come */
	bool verify;
	struct packing *packing;        /* compression; NULL: none, in a measurement or on another host */
	struct open_files *files;       /* receiver: destination of the blocks; NULL: the stream sends */
	bool users;                     /* receiver: errors may name the path of the root */
	uint64_t max_bytes;             /* receiver: the stream fails beyond this; 0: no limit */
	const uint8_t *generate_data;   /* sender: content of generated blocks, STREAM_GENERATED_BLOCK bytes; NULL: the
	                                   stream sends jobs */
	const struct stream_ops *ops;
	void *arg;
};

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e);
unsigned stream_number(const struct stream *s);
unsigned stream_path(const struct stream *s);
/* The next free job, for the caller to fill and stream_send() to send; NULL: all jobs are in use. */
struct stream_job *stream_free_job(struct stream *s);
/* Sends the job of the last stream_free_job(). */
void stream_send(struct stream *s);
/* Sends `bytes` bytes of generated blocks (UINT64_MAX: until stopped). After the last block the stream closes and
 * ops.lost follows; a stream that stays open may generate again once the peer has received all bytes. */
void stream_generate(struct stream *s, uint64_t bytes);
/* In ops.lost of a generating stream: true if all bytes were sent before the peer closed, during [*from, *until]. */
bool stream_generated(const struct stream *s, struct mono *from, struct mono *until);
/* In ops.lost of a receiving stream: bytes of received blocks, time of the first block and of the end. */
uint64_t stream_received(const struct stream *s, struct mono *from, struct mono *until);
/* TCP segments retransmitted, as of the previous call (each call requests a new sample) or of the end; 0 if the
 * kernel does not report the number. */
uint64_t stream_retransmits(struct stream *s);
/* A job or block of the stream waits for a disk. */
bool stream_on_disk(const struct stream *s);
/* Time for which any did so far; 0 for a stream of a mover. */
uint64_t stream_waited_ns(const struct stream *s);
/* Bytes through the channel, both directions. */
uint64_t stream_moved(const struct stream *s);
/* Resets the stream if its peer's TCP was silent for so long, and three RTTs; `unacked`: only if it owes
 * acknowledgments. */
void stream_check(struct stream *s, uint64_t silent_ns, bool unacked);
/* In ops.lost. */
const struct mtu_lost *stream_lost(const struct stream *s);
/* A duplicate of the socket, for options and TCP_INFO, until ops.lost has returned or stream_stop(); -1: not tapped, or
 * a stream of another host. Borrowed. */
int stream_tap(const struct stream *s);
/* TCP_INFO of the tap, or as reported from another host, the counters one report late; false: unknown. */
bool stream_tcpinfo(const struct stream *s, struct tcpinfo *out);
/* Sets the rate limit shared by the streams of a path; NULL: none. */
void stream_share(struct stream *s, struct pacer *p);
/* Once after ops.unknown. */
void stream_known(struct stream *s);
/* Ends the stream, without its unsent data if `reset`. ops.gone follows as the last callback and calls
 * stream_free(). */
void stream_stop(struct stream *s, bool reset);
void stream_free(struct stream *s);

/* ---- For a stream_kind: reports from the other host, which run the callbacks ---- */

/* Of a stream on another host; NULL: of this host. */
const struct stream_kind *stream_kind_of(const struct stream *s);
void *stream_remote(const struct stream *s);
/* The oldest job that was sent and not returned; NULL: none. */
struct stream_job *stream_oldest_job(struct stream *s);
/* Returns it. */
void stream_job_done(struct stream *s);
/* Of blocks that the other host has written; the callback frees the reasons. */
void stream_deliver(struct stream *s, struct stream_results *results);
void stream_observe(struct stream *s, uint64_t moved, bool on_disk, const struct tcpinfo *tcp);
void stream_end(struct stream *s, const struct ptcp_err *why, const struct mtu_lost *conn); /* ops.lost */
void stream_gone(struct stream *s); /* ops.gone: frees the stream */

#endif
