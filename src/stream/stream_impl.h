/* Internals of a stream, for stream.c, stream_send.c, stream_recv.c and memory.c. */
#ifndef STREAM_STREAM_IMPL_H
#define STREAM_STREAM_IMPL_H

#include <stdatomic.h>

#include "net/mailbox.h"
#include "store/hash.h"
#include "stream/stream.h"
#include "wire/block.h"

/* Rate limits, all in force at once: of the host, of the session, of the streams on the same path. */
enum { PACE_HOST, PACE_SESSION, PACE_SHARED, PACES };

enum phase { PHASE_HEAD, PHASE_FILE, PHASE_BODY, PHASE_END };

/* Of the block whose chunks arrive: */
enum block_state {
	BLOCK_NONE,    /* no chunk, or the rest is not sent */
	BLOCK_GOOD,    /* verified and written so far */
	BLOCK_CORRUPT, /* the last chunk reports it */
	BLOCK_FAILED   /* reported */
};

/* Generated blocks, for measurements. */
struct generator {
	struct msg start, next_turn;
	bool turn_posted;
	bool complete;                   /* all bytes were sent before the peer closed */
	uint64_t left_bytes;             /* bytes of blocks that are not yet written completely */
	struct wire_block block;         /* being written, */
	size_t written;                  /* bytes of its frame so far */
	uint8_t head[WIRE_BLOCK_HEAD_BYTES], tail[WIRE_BLOCK_END_BYTES];
	struct mono from;                /* 0: not started */
};

/* Another session has locked the part file of the block: */
enum part_lock {
	PART_FREE,
	PART_QUERIED, /* the control thread searches for the session */
	PART_FOREIGN, /* a session of another client, or already ended: retry once */
	PART_RETRIED,
	PART_LIVES    /* a live session: retry with a private part */
};

/* A chunk that is being written, or waits for the lock of its part. */
struct stream_write {
	struct stream *stream;
	struct sink *sink;               /* NULL: unused */
	uint8_t *buf;
	struct wire_block block;
	struct wire_chunk chunk;
	uint64_t hash;                   /* hash of the block, with its last chunk */
	uint32_t omitted_bytes;          /* bytes of the chunk that the part had */
	struct io_job io;
	struct msg done;
	struct ptcp_err why;
	int result;
};

/* The worker loop of the stream; stream.c writes it. */
struct stream_worker {
	atomic_uint number;
	struct msg move, arrive;
	unsigned to;                     /* worker, while `moving` */
	atomic_bool moving;              /* `move` is posted, or `arrive` */
};

/* stream_check(): the control thread asks the worker about the connection; stream.c. */
struct stream_check {
	struct msg msg;
	atomic_bool posted;
	uint64_t silent_ns;
	bool unacked;
};

/* Sources of TCP_INFO on the control thread: a duplicate of the socket, or the last two reports by another host, and
 * their times; stream.c. */
struct stream_tcp {
	int tap;                         /* -1: none */
	bool known;
	struct tcpinfo last, before;
	struct mono at, before_at;
};

/* Rate limits; stream.c. */
struct stream_pace {
	_Atomic(struct pacer *) pacer[PACES]; /* NULL: none */
	struct pacer_turn turn[PACES];
	size_t allowance[PACES];         /* bytes taken from the pacer, not yet used */
	struct timer *timer;             /* fires when a pacer permits more; NULL: not needed yet */
	bool waits;                      /* the stream waits for the timer */
};

/* Memory of the channel's buffers and the stream's own; memory.c. */
struct stream_memory {
	struct memory_claim claim;
	bool has, awaits;
	bool worked;                     /* the stream has worked with the memory that it has */
	unsigned n_bufs;                 /* buffers of jobs or chunks in use; the first is a part of
	                                    the stream's memory */
	struct msg granted, stalled;
	atomic_bool stall_posted;        /* `stalled` is posted, */
	bool awaits_stall;               /* the stream's end waits for `stalled` */
};

/* Chunks that are being written. */
struct stream_writes {
	unsigned n;                      /* writes in use */
	bool alone;                      /* the only one opens its part */
	struct stream_write of[STREAM_WRITES];
};

/* The part of a chunk is locked by another session. */
struct stream_lock {
	struct stream_write *write;      /* retried by the timer; or NULL */
	struct timer *timer;
	struct mono since;
	enum part_lock state;
	struct msg query;
	uint64_t dev, ino;
	bool querying, alone;            /* `query` is posted; argument `alone` of the query */
	enum part_holder holder;         /* the answer */
};

/* A question to the control thread about a file that is not open; stream_recv.c. */
struct stream_ask {
	struct msg query;
	bool asking, answered;           /* `query` is posted; the answer is there */
};

/* Waits for a disk. */
struct stream_waits {
	atomic_uint on_disk;                   /* number of jobs */
	atomic_uint_fast64_t since_ns, sum_ns; /* begin of the present wait, 0: none; sum of earlier waits */
	atomic_uint_fast64_t writing_since_ns; /* begin of a write on the worker; 0: none */
};

struct stream {
	struct stream_opts o;
	struct loop *loop;               /* the worker's: changes in stream_move(), on the worker */
	struct mailbox *box;             /* messages to the worker; NULL: a stream of another host */
	struct stream_worker worker;
	struct chan *chan;
	const struct chan_ops *chan_ops;
	struct msg start, stop, lost, gone, sample;
	struct ptcp_err why;             /* reason of `lost` */
	struct stream_waits waits;
	atomic_ullong retransmits;
	atomic_bool sampling;            /* `sample` is posted */
	struct stream_check check;
	struct mtu_lost lost_conn;
	atomic_uint_fast64_t moved;      /* bytes */
	/* control thread */
	bool stop_posted, resets;
	struct list in_balance;          /* place in the list of context.balance, on a worker: */
	uint64_t balanced_bytes;         /* moved until the last measurement */
	struct stream_job *free_jobs;
	struct stream_tcp tcp;
	/* worker thread */
	bool stopping, lost_posted, gone_posted;
	unsigned n_io;                   /* jobs on I/O threads, and a query to the control thread */
	struct stream_pace pace;
	struct stream_memory memory;
	struct mono closed_at;           /* time when the peer closed the stream */
	uint8_t joined[WIRE_HEADER_BYTES]; /* sender: bytes of JOINED */
	size_t joined_got;                 /* number of bytes in `joined` */
	/* sender: queue, the first job is being written; of a stream on another host: control thread */
	struct stream_job *first, **last;
	size_t written;                  /* bytes of the first job's buffer accepted by the channel */
	struct stream_job jobs[STREAM_JOBS];
	struct generator gen;
	/* receiver */
	uint64_t received_bytes;         /* received bytes of blocks */
	struct mono first_at;            /* time of the first block */
	enum phase phase;
	size_t got;                      /* bytes of the phase */
	bool drained;                    /* the channel has no more input now */
	uint8_t head[WIRE_BLOCK_HEAD_BYTES], tail[WIRE_BLOCK_END_BYTES];
	struct wire_block block;
	uint32_t omitted_bytes;          /* bytes of its complete chunk that the part had */
	struct wire_chunk chunk;         /* chunk of that frame, within its block: */
	uint64_t id;
	uint32_t block_index, next_chunk;
	enum block_state state;
	struct block_hash sum;
	struct sink *sink;               /* destination of the chunk; NULL: discard the chunk */
	uint8_t *buf;                    /* the loop's, for the next chunk; or NULL */
	bool complete;                   /* the chunk in buf waits for earlier writes */
	struct stream_writes writes;
	struct stream_lock lock;
	struct results_msg *results;     /* being gathered */
	struct stream_ask ask;
};

/* The connection is unusable: posts ops.lost, once. */
void stream_fail(struct stream *s, const struct ptcp_err *why);
/* The stream waits for an I/O thread, for the control thread or for memory: stream_on_disk(), and no end before
 * stream_io_done(). */
void stream_io_begin(struct stream *s);
/* The wait is over, on the worker loop. May post ops.gone. */
void stream_io_done(struct stream *s);
/* Control thread: a job has returned from the worker. */
void stream_job_sent(struct msg *m);

/* Bytes, at most `want`, that the rate limits permit now; 0: the stream is called again when they permit more. */
size_t stream_allowance(struct stream *s, size_t want);
/* Charges bytes sent or received to the rate limits. */
void stream_charge(struct stream *s, size_t n);

/* ---- memory.c ---- */

void stream_memory_init(struct stream *s);
/* The stream works with the memory that it has. */
static inline void stream_memory_used(struct stream *s) { s->memory.worked = true; }
/* True: the stream has memory for its buffers. False: the stream pauses until its turn; then its channel's callback
 * runs. */
bool stream_memory_take(struct stream *s);
/* As stream_memory_take(), between two pieces of work while no buffer is in use: others may have their turn first. */
bool stream_memory_turn(struct stream *s);
/* No buffer is in use, and none is needed for now. */
void stream_memory_give(struct stream *s);
/* A buffer for a job or a chunk; NULL: too little memory for one more, or (the first) none at all. */
uint8_t *stream_memory_take_buf(struct stream *s);
void stream_memory_give_buf(struct stream *s, uint8_t *buf);
/* At the end: cancels a wait; gives all back, unless a message of the budget is still to come. */
void stream_memory_stop(struct stream *s);
bool stream_memory_fini(struct stream *s);

/* Posts ops.gone once nothing of the stream is in progress. */
void stream_try_gone(struct stream *s);

void stream_generate_start(struct msg *m);
void stream_generate_writable(void *arg);

void stream_send_writable(void *arg);
void stream_send_queue(struct msg *m);

void stream_recv_readable(void *arg);
void stream_recv_fini(struct stream *s);

#endif
