/* The inside of a stream, for stream.c, stream_send.c, stream_flood.c and stream_recv.c. */
#ifndef SESSION_STREAM_IMPL_H
#define SESSION_STREAM_IMPL_H

#include <stdatomic.h>

#include "session/stream.h"

/* Pacers that it keeps to, all of them: the host's, one of its session's, and that of the streams that share a rate with it. */
enum { PACE_HOST, PACE_SESSION, PACE_SHARED, PACES };

enum phase { PHASE_HEAD, PHASE_BODY, PHASE_END };

/* Sending blocks of no entry. */
struct flood {
	struct msg start, again;
	bool posted;                     /* again */
	bool whole;                      /* all sent, and the peer has closed behind it */
	uint64_t left;                   /* bytes of blocks not yet written whole */
	uint64_t more;                   /* to be added to them by `start` */
	struct wire_block block;         /* going out; */
	size_t at;                       /* so much of its frame has */
	uint8_t head[WIRE_BLOCK_HEAD_BYTES], tail[WIRE_BLOCK_END_BYTES];
	struct mono from, until;         /* from 0: not begun */
	atomic_uint taken;               /* so many times `start` was */
};

/* The part that the block goes into is held by another session, */
enum held {
	HELD_NO,
	HELD_ASKED,  /* the control thread is looking whose */
	HELD_YIELDS, /* which may let go of it soon */
	HELD_ALIEN,  /* which is none of this client's, or was until now: one more try */
	HELD_LAST
};

struct stream {
	struct stream_opts o;
	struct loop *loop;               /* the worker's */
	struct chan *chan;
	struct msg start, stop, lost, gone, look;
	struct ptcp_err why;             /* of lost */
	atomic_uint on_disk;
	atomic_ullong retransmits;
	atomic_bool looking;             /* `look` is on its way */
	atomic_uint_fast64_t moved;      /* bytes */
	/* control thread */
	bool stop_sent;
	struct stream_job *free_jobs;
	/* worker thread */
	bool stopping, told_lost, told_gone;
	unsigned n_io;                   /* jobs of ours on I/O threads */
	_Atomic(struct pacer *) pacer[PACES]; /* NULL: none */
	size_t leave[PACES];             /* bytes that may go by it */
	struct timer *pacing;            /* until there is more; NULL: never needed yet */
	/* sending: the first of the queue goes out */
	struct stream_job *first, **last;
	size_t out_at;                   /* of the first, bytes taken by the channel */
	struct stream_job jobs[STREAM_JOBS];
	struct flood flood;
	/* receiving */
	uint64_t taken;                  /* bytes of blocks */
	struct mono began;               /* to come, */
	struct mono closed;              /* until the peer has */
	enum phase phase;
	size_t got;
	uint8_t head[WIRE_BLOCK_HEAD_BYTES], tail[WIRE_BLOCK_END_BYTES];
	struct wire_block block;
	struct sink *sink;               /* where the block goes; NULL: dropped */
	uint32_t index;
	uint64_t hash;
	uint8_t *buf;
	size_t buf_bytes;
	struct mono slow_until;          /* the disk pushed back: writes go to I/O threads */
	struct io_job write_io;
	struct msg write_done;
	struct ptcp_err write_why;
	int write_result;
	/* waiting for another session's end */
	struct timer *waiting;
	struct mono waiting_since;
	enum held held;
	struct msg ask_held;
	uint64_t held_dev, held_ino;
	bool asking_held, held_yields;   /* ask_held is on its way; the answer */
	struct news_msg *news;           /* being gathered */
};

/* The connection is of no use any more; once. */
void stream_fail(struct stream *s, const struct ptcp_err *why);
/* An I/O job of the stream has come back to the loop. */
void stream_io_done(struct stream *s);

/* On the control thread: a job has come back from the worker. */
void stream_job_sent(struct msg *m);

/* How much of it may be moved now by the rates that it keeps to; 0: the stream is called again when it may be.
 * Then what has been. */
size_t stream_leave(struct stream *s, size_t want);
void stream_took(struct stream *s, size_t n);

/* Tells ops.gone when nothing of it is under way any more. */
void stream_try_gone(struct stream *s);

void stream_flood_start(struct msg *m);
void stream_flood_writable(void *arg);
void stream_flood_closed(void *arg, const struct ptcp_err *why);

void stream_send_writable(void *arg);
void stream_send_queue(struct msg *m);

void stream_recv_readable(void *arg);
void stream_recv_go_on(struct stream *s);
void stream_recv_fini(struct stream *s);

#endif
