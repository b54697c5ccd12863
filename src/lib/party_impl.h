/* The inside of a party: party.c makes it and turns its crank; the rest is by file below. */
#ifndef LIB_PARTY_IMPL_H
#define LIB_PARTY_IMPL_H

#include <stdatomic.h>

#include "core/units.h"
#include "lib/mux.h"
#include "lib/party.h"
#include "lib/links.h"
#include "lib/probing.h"
#include "lib/stream.h"
#include "model/limit.h"
#include "store/owner.h"
#include "store/walk.h"
#include "store/xattr.h"

#define WALK_BATCH 256
#define JOINER_CONTROL PTCP_STREAMS_MAX /* who joins as the next control connection */
#define JOINERS (PTCP_STREAMS_MAX + 1)

struct ends;
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
struct probing_run {
	bool is;
	struct mono from, until;
};

struct probing {
	const struct probing_ops *ops; /* the starter's; NULL: the acceptor's */
	void *arg;
	bool floods;                /* blocks are sent here, and dropped there */
	struct intake intake;       /* without a file, so that blocks have no place */
	struct mono since[PTCP_STREAMS_MAX]; /* streams are up */
	uint8_t *data;              /* of all blocks, where they are sent */
	unsigned streams;           /* of this level; 0: none is under way */
	uint64_t stream_bytes;
	bool open;                  /* streams stay so behind them */
	bool begun;
	bool flooding[PTCP_STREAMS_MAX]; /* streams that have begun to send, where blocks are sent */
	/* the starter's */
	bool clearing;
	struct mono give_up;        /* on a level that has not begun */
	struct mono from;           /* it began */
	struct probing_run early[PTCP_STREAMS_MAX]; /* streams whose bytes had all come before that, */
	unsigned n_early;           /* so many */
	struct mono looked;         /* at how much it has moved, */
	uint64_t moved;             /* bytes, */
	struct mono moved_at;       /* and when that was last more */
	struct limit_times times;   /* since then, as the flooding side has told */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* The control connection may die and be replaced by another: what the peer may not have got is kept. */
struct returning {
	struct buf kept;            /* sent, and not known to have arrived */
	size_t again;               /* of these the last, still to be sent on the present connection */
	uint64_t kept_from;         /* bytes sent before those */
	uint64_t heard, told;       /* bytes that came in; as the peer was last told */
	struct chan *chan;          /* the next connection, while the peer has not said where to go on */
	uint8_t frame[WIRE_HEARD_MAX_BYTES];
	size_t got;
	struct mono since;          /* the present connection, or the next, is there */
	unsigned path;              /* which the starter tries next */
	bool vain;                  /* nobody is there to return to */
};

/* What paths carry at most, bit/s; 0: no limit, PTCP_PATH_IDLE: nothing new. */
struct rates {
	uint64_t asked[PTCP_PATHS_MAX];  /* by the caller */
	uint64_t chosen[PTCP_PATHS_MAX]; /* by choosing.c */
	uint64_t set[PTCP_PATHS_MAX];    /* as it is kept to */
	struct wire_rate told;           /* to the sender; of an acceptor that sends: by the receiver */
	struct mono told_at, looked;
	/* Of all streams, where the receiver says it; and by path, or as that numbers them. */
	struct pacer all, of[WIRE_RATES_MAX];
};

/* When a stream was last seen to bring something. */
struct life {
	uint64_t moved;
	struct mono at;
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
	unsigned n_granted;         /* agreed */
	unsigned n_wanted;          /* in use, of these: others may be up, and carry nothing new */
	const char *wanted_why;     /* until that has been told of them; or NULL */
	unsigned n_told;            /* the owner thinks so many are in use */
	unsigned n_up, n_most, n_ending, n_counted;
	bool ever_up;
	struct stream *stream[PTCP_STREAMS_MAX];
	bool tapped;                /* wanted: */
	int tap[PTCP_STREAMS_MAX];  /* descriptors of our own of the streams' sockets, so as to look at them
				       from this thread; -1: none */
	struct joiner *joiner[JOINERS];
	struct mono retry_at[JOINERS];
	unsigned retries[JOINERS];
	struct returning returning;
	struct life life[PTCP_STREAMS_MAX];
	struct mono looked;         /* at the streams' lives */
	uint64_t carried[PTCP_PATHS_MAX]; /* bytes of file data, by path */
	struct mono began;          /* running since */
	struct mono none_since;     /* no stream up since then */
	struct ptcp_err join_why;   /* of the last that failed */
	uint64_t retransmits;       /* of those that are gone */
	/* one of: */
	struct sending *snd;
	struct receiving *rcv;
	struct probing *prb;
	/* and beside one of these, or neither: */
	struct steering *str;       /* the starter's */
	struct seeing *see;         /* an acceptor's that sends */
	struct choosing *chs;       /* the starter's, with paths to choose from; or NULL */
	struct ends *ends;          /* who may have to say that an end is the bottleneck; or NULL */
	struct rates rates;
};

/* With several paths: a control connection that has brought nothing for so long is left. */
#define PARTY_QUIET_NS (3 * NS_PER_S)

/* Moves everything that can move; after any event. Ends the party when all is over. */
void party_pump(struct party *p);
/* Fails the session from here; the peer is told. */
void party_fail(struct party *p, const struct ptcp_err *why);

/* ---- party_session.c: what it does at its session's word ---- */

extern const struct session_ops party_session_ops;
/* What our own disk, or our processor, keeps us with. */
enum wire_busy party_busy(const struct party *p);
/* Some stream waits for a disk. */
bool party_waits_for_disk(const struct party *p);

/* ---- party_control.c: the channel of the control frames ---- */

extern const struct chan_ops party_control_ops;
extern const struct mux_ops party_mux_ops; /* where blocks travel on it, too */
/* Writes control frames, and between them the blocks that have no other way. */
void party_flush(struct party *p);

/* ---- party_streams.c: the data connections that are up ---- */

/* From now on so many streams are in use. */
void party_want(struct party *p, unsigned streams, const char *why);
/* Of these, how many are up. */
unsigned party_in_use(const struct party *p);
/* Unless more are on their way: the user hears of a change. */
void party_tell_joined(struct party *p);
void party_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why);
/* What the kernel knows of a stream now; false: nothing, or it is not tapped. */
bool party_look(const struct party *p, unsigned number, struct tcpinfo *out);
void party_close_tap(struct party *p, unsigned number);

/* ---- joining.c: data connections on their way ---- */

void joining_pump(struct party *p, struct mono now);
struct mono joining_deadline(const struct party *p);
void joining_stop(struct party *p);
/* Not at once: the longer the more often it has failed. */
void joining_again(struct party *p, unsigned number);
/* The streams in a place begin anew, over the path that it holds now. */
void joining_move(struct party *p, unsigned place, const struct ptcp_err *why);

/* ---- choosing.c: paths chosen from candidates ---- */

int choosing_new(struct party *p, struct ptcp_err *e); /* once running; nothing where there is nothing to choose */
void choosing_free(struct party *p);
void choosing_pump(struct party *p, struct mono now);
struct mono choosing_deadline(const struct party *p);
/* A stream had room, and there was nothing for it. */
void choosing_starved(struct party *p);

/* ---- rates.c: what paths carry at most ---- */

void rates_init(struct rates *r);
void rates_pump(struct party *p, struct mono now);
struct mono rates_deadline(const struct party *p);
/* Acceptor that sends: as session_ops has it. */
void rates_told(void *arg, const struct wire_rate *f);
/* Whether any path has one. */
bool rates_limit(const struct party *p);
/* Whether blocks wait for a rate that this side keeps to: any of a path, or the handle's, as long as that holds them up. */
bool rates_hold(const struct party *p);
/* Receiving: it is the sender that keeps to all of them. */
bool rates_at_sender(const struct party *p);
/* By what the receiver has said, blocks may be rare, and nobody is to blame. */
bool rates_slow(const struct party *p);
/* A stream is up: it keeps to the rate of its path. */
void rates_stream_up(struct party *p, unsigned number);
/* A stream of that number is to be there: nobody could keep it from bringing something. */
bool rates_joins(const struct party *p, unsigned number);
/* For so long a path may bring nothing beside what would be a bad sign elsewhere. */
uint64_t rates_patience_ns(const struct party *p, unsigned path);

/* ---- ends.c: whether an end is the bottleneck ---- */

int ends_new(struct party *p, struct ptcp_err *e); /* once running; nothing where there is nothing to tell */
void ends_free(struct party *p);
/* What the acceptor says of itself. */
void ends_heard(struct party *p, const struct wire_load *f, struct mono now);
void ends_pump(struct party *p, struct mono now);
struct mono ends_deadline(const struct party *p);

/* ---- steering.c, seeing.c ---- */

void steering_free(struct party *p);
void steering_pump(struct party *p, struct mono now);
struct mono steering_deadline(const struct party *p);
void steering_seen(struct party *p, const struct wire_seen *f);

void seeing_free(struct party *p);
void seeing_pump(struct party *p, struct mono now);
struct mono seeing_deadline(const struct party *p);

/* Makes a connection that is to be the control connection, if none is being made. */
void joining_control(struct party *p, struct mono now);
void joining_stop_control(struct party *p);

/* ---- returning.c: the control connection's successors ---- */

/* A control connection that is lost may be replaced: nothing is over yet. */
bool returning_may(const struct party *p);
/* Writes to the control connection what has to be sent again, then of these bytes; how many of these it took. */
size_t returning_write(struct party *p, const uint8_t *bytes, size_t n);
/* Bytes that came in on it. */
void returning_heard(struct party *p, size_t n);
/* As session_ops has it. */
int returning_told(void *arg, uint64_t bytes, struct ptcp_err *e);
/* It has died, or it is given up: the next one takes another path. */
void returning_lost(struct party *p, const char *why);
/* A joined connection that is to be it; taken. */
void returning_take(struct party *p, struct chan *c);
/* There could be none, by this path. */
void returning_failed(struct party *p, const struct ptcp_err *why, bool refused);
void returning_pump(struct party *p, struct mono now);
struct mono returning_deadline(const struct party *p);
void returning_fini(struct party *p);

/* ---- stale.c: paths that bring nothing, while others do ---- */

/* The starter's, with several paths: gives up the streams of a path that has died without a sign. */
void stale_pump(struct party *p, struct mono now);
struct mono stale_deadline(const struct party *p);

/* ---- sending.c ---- */

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
/* It is on its way to its worker. */
void probing_stream_up(struct party *p, unsigned number);
void probing_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why);
/* Acceptor: a level begins, or ends, for party_flood() with so many bytes on each stream. */
void probing_use(struct party *p, uint64_t stream_bytes);
/* Starter: what the flooding side's kernel has seen. */
void probing_seen(struct party *p, const struct wire_seen *f);

#endif
