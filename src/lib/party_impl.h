/* The inside of a party, for party.c, joining.c, sending.c, receiving.c and probing.c. */
#ifndef LIB_PARTY_IMPL_H
#define LIB_PARTY_IMPL_H

#include <stdatomic.h>

#include "lib/mux.h"
#include "lib/party.h"
#include "lib/links.h"
#include "lib/probing.h"
#include "lib/stream.h"
#include "store/owner.h"
#include "store/walk.h"
#include "store/xattr.h"

#define WALK_BATCH 256

struct joiner;
struct item;

/* What is being sent: a listing on an I/O thread, offered to the engine batch by batch. */
struct sending {
	struct party *party;
	struct walk *walk;
	struct msg done;
	struct io_job io;
	struct walk_entry entry[WALK_BATCH];
	struct owner *owner;        /* of these, where asked for; else NULL */
	struct xattrs *xattrs;
	char *lacking[WALK_BATCH];  /* what attribute does not travel, a sentence; else NULL */
	unsigned n, most;           /* in this batch */
	int result;                 /* of the last walk_next() */
	bool listing, end;          /* on an I/O thread; the listing is complete */
	uint64_t files, bytes;      /* listed */
	uint64_t wire_bytes;        /* given to streams' channels */
	unsigned asked, comparing;  /* sending_jobs.c: on I/O threads; of these, hashing */
	struct list to_compare;     /* sources to be hashed, or to be hashed further */
	struct links links;
	uint8_t attrs[WIRE_CONTROL_MAX], packed[WIRE_CONTROL_MAX]; /* of the entry that is being offered */
};

/* What is being received: everything the store has to do that is not writing blocks goes through one
 * queue, a batch at a time on an I/O thread. */
struct receiving {
	struct party *party;
	struct intake intake;
	struct place place;
	bool placed;                /* the only top-level entry, which was renamed, is here */
	enum store_sync sync;
	struct item *first, **last; /* waiting */
	struct item *no_room, **no_room_last; /* for descriptors */
	unsigned fds, few_fds;      /* taken for files; when so few are left, those without room are let in */
	struct item *batch;         /* on the I/O thread */
	struct store_end *ends;     /* of it, what is completed */
	atomic_bool completing;
	struct item *contended;     /* files that another session holds: looked at again later */
	struct list readers;        /* readback.c: waiting for an I/O thread, */
	unsigned n_reading;         /* and there */
	unsigned n_syncing;
	struct msg done;
	struct io_job io;
	uint64_t total_files, total_bytes;
	bool total_known;
};

/* What is being measured. */
struct probing {
	const struct probing_ops *ops; /* the starter's; NULL: blocks are dropped here */
	void *arg;
	struct intake intake;       /* without a file, so that blocks have no place */
	unsigned granted;
	struct mono since[PTCP_STREAMS_MAX]; /* streams are up */
	/* the starter's */
	uint8_t *data;              /* of all blocks */
	unsigned streams;           /* of this level; 0: none is under way */
	uint64_t stream_bytes;
	bool open;                  /* streams stay so behind them */
	bool begun, clearing;
	bool flooding[PTCP_STREAMS_MAX]; /* streams that have begun to send */
	struct mono give_up;        /* on a level that has not begun */
	int tap[PTCP_STREAMS_MAX];  /* descriptors of our own of the streams' sockets, so as to look at them
				       from this thread; -1: none */
};

struct party {
	struct party_opts o;
	char address[SOCK_HOST_BYTES];
	struct session *session;
	struct chan *control;       /* NULL once closed */
	struct mux *mux;            /* with one channel; else NULL */
	struct timer *timer;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	uint8_t id[WIRE_SESSION_BYTES], key[32];
	bool running, over, pumping, told_gone;
	bool failed;                /* with `why` */
	struct ptcp_err why;
	struct mono give_up;        /* on a peer that does not close */
	struct msg gone;
	/* data streams */
	enum ptcp_cipher cipher;
	unsigned n_wanted;          /* agreed */
	unsigned n_up, n_most, n_ending;
	bool ever_up;
	struct stream *stream[PTCP_STREAMS_MAX];
	struct joiner *joiner[PTCP_STREAMS_MAX];
	struct mono retry_at[PTCP_STREAMS_MAX];
	unsigned retries[PTCP_STREAMS_MAX];
	uint64_t carried[PTCP_STREAMS_MAX]; /* bytes of file data */
	struct mono began;          /* running since */
	struct mono none_since;     /* no stream up since then */
	struct ptcp_err join_why;   /* of the last that failed */
	/* one of: */
	struct sending *snd;
	struct receiving *rcv;
	struct probing *prb;
};

/* Moves everything that can move; after any event. Ends the party when all is over. */
void party_pump(struct party *p);
/* Fails the session from here; the peer is told. */
void party_fail(struct party *p, const struct ptcp_err *why);

/* ---- joining.c: data connections ---- */

void joining_pump(struct party *p, struct mono now);
struct mono joining_deadline(const struct party *p);
void joining_stop(struct party *p);
void party_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why);

/* ---- sending.c ---- */

int sending_new(struct party *p, struct ptcp_err *e);
void sending_free(struct party *p);
void sending_pump(struct party *p);
/* Fills the streams' free jobs. */
void sending_feed(struct party *p, struct mono now);
bool sending_idle(const struct party *p); /* nothing of it is on an I/O thread */
extern const struct snd_ops sending_snd_ops;
void sending_sent(void *arg, struct stream *s, struct stream_job *job);

/* ---- receiving.c ---- */

void receiving_free(struct party *p);
void receiving_pump(struct party *p, struct mono now);
struct mono receiving_deadline(const struct party *p);
bool receiving_idle(const struct party *p); /* nothing waits for or is on an I/O thread */
enum wire_busy receiving_busy(const struct party *p);
extern const struct rcv_ops receiving_rcv_ops;
bool receiving_held(void *arg, uint64_t dev, uint64_t ino);
void receiving_received(void *arg, struct stream *s, struct stream_news *news);

/* ---- probing.c ---- */

void probing_free(struct party *p);
void probing_pump(struct party *p, struct mono now);
struct mono probing_deadline(const struct party *p);
/* What a stream of it does. */
void probing_stream_opts(const struct party *p, struct stream_opts *o);
/* It is on its way to its worker, with this socket. */
void probing_stream_up(struct party *p, unsigned number, int fd);
void probing_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why);

#endif
