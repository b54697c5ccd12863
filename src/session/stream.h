/* A data stream: lives on one worker loop, does what the control thread's engine decides.
 *
 *   control thread                          worker thread
 *   stream_new(), stream_send() .. ------->  reads, hashes, encrypts, sends
 *   ops.sent(), ops.received() <-----------  what has become of it
 *   stream_stop() ------------------------>  lets go of everything
 *   ops.gone() <---------------------------  the last word
 *
 * All functions here are the control thread's; so are the callbacks. */
#ifndef SESSION_STREAM_H
#define SESSION_STREAM_H

#include "conn/context.h"
#include "engine/receiver.h"
#include "engine/sender.h"
#include "session/open_files.h"
#include "store/source.h"

struct stream;

#define STREAM_JOBS 3 /* jobs a sending stream holds: one going out, others being read */

struct stream_job {
	struct snd_job job;
	struct source *source[SND_JOB_EXTENTS]; /* held until the job is done */
	struct digest term[SND_JOB_EXTENTS];
	bool failed[SND_JOB_EXTENTS];           /* not read, not sent; */
	struct ptcp_err *why[SND_JOB_EXTENTS];  /* why: NULL without memory */
	/* the worker's */
	struct msg msg;
	struct io_job io;
	struct stream *stream;
	uint8_t *buf;
	size_t buf_bytes, fill;                 /* the frames that go out: buf[0..fill) */
	unsigned n_read;                        /* extents that are in buf or have failed */
	bool reading;                           /* on an I/O thread */
	struct stream_job *next;
};

#define STREAM_NEWS 64

struct stream_news {
	unsigned n;
	struct {
		uint64_t id;
		uint32_t block;
		enum rcv_block_news what;
		struct digest term;
		struct ptcp_err *why;           /* with RCV_BLOCK_FAILED; to be freed */
	} of[STREAM_NEWS];
};

struct stream_ops {
	/* The job has been given to the channel: what has become of its extents. */
	void (*sent)(void *arg, struct stream *s, struct stream_job *job);
	/* After that: stream_free_job() has one. */
	void (*idle)(void *arg, struct stream *s);
	void (*received)(void *arg, struct stream *s, struct stream_news *news);
	/* A part file, that inode, is held by another session. True: which may let go of it soon. */
	bool (*held)(void *arg, uint64_t dev, uint64_t ino);
	/* The connection is over or broke the protocol; stream_stop() is due. */
	void (*lost)(void *arg, struct stream *s, const struct ptcp_err *why);
	void (*gone)(void *arg, struct stream *s);
};

struct stream_opts {
	struct context *host;
	unsigned number;
	unsigned worker;                /* which of the host's loops, modulo their number */
	unsigned path;                  /* it goes over */
	struct pacer *pacer;            /* it keeps to, beside the host's; or NULL */
	struct chan *chan;              /* taken, also on failure; of the control loop until now */
	bool verify;
	struct open_files *intake;          /* receiving; NULL: sending */
	uint64_t most_bytes;            /* receiving: it fails beyond that; 0: no limit */
	const uint8_t *flood_data;      /* sending blocks with these STREAM_FLOOD_BLOCK bytes; NULL: what
					   stream_send() is given */
	bool flood_open;                /* it stays open behind what stream_flood() sends, for more */
	const struct stream_ops *ops;
	void *arg;
};

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e);
unsigned stream_number(const struct stream *s);
unsigned stream_path(const struct stream *s);
/* A job to fill and give to stream_send(), or NULL when all are out. */
struct stream_job *stream_free_job(struct stream *s);
void stream_send(struct stream *s, struct stream_job *job);
/* Begins to flood, with so many bytes, or UINT64_MAX. When all has been sent the stream closes, and ops.lost
 * follows; one that stays open may flood again when all that has arrived. */
void stream_flood(struct stream *s, uint64_t bytes);
/* In ops.lost of a flooding stream: it sent all and the peer closed behind that, within [*from, *until]. */
bool stream_flooded(const struct stream *s, struct mono *from, struct mono *until);
/* In ops.lost of a receiving stream: bytes of blocks that came, when the first did, and when it ended. */
uint64_t stream_taken(const struct stream *s, struct mono *from, struct mono *until);
#define STREAM_FLOOD_BLOCK (256u << 10)
/* Segments that its socket has sent again, as of the last call, which asks for a newer number, or of its
 * end; 0 where the kernel does not tell. */
uint64_t stream_retransmits(struct stream *s);
/* Something of it waits for a disk. */
bool stream_on_disk(const struct stream *s);
/* A count that changes whenever its channel gives or takes bytes. */
uint64_t stream_moved(const struct stream *s);
/* From now on it keeps to this one, too, in place of that of the last call; NULL: to none. */
void stream_share(struct stream *s, struct pacer *p);
/* Ends it; ops.gone follows and is the last callback, then stream_free(). */
void stream_stop(struct stream *s);
void stream_free(struct stream *s);

#endif
