/* The inside of a party: session.c makes it and turns its crank; the rest is by file below. */
#ifndef SESSION_SESSION_IMPL_H
#define SESSION_SESSION_IMPL_H

#include <stdatomic.h>

#include "core/units.h"
#include "model/probe.h"
#include "session/hardlinks.h"
#include "session/mux.h"
#include "session/probe_session.h"
#include "session/session.h"
#include "session/stream.h"
#include "store/owner.h"
#include "store/walk.h"
#include "store/xattr.h"

#define WALK_BATCH 256
#define STREAM_CONNECT_CONTROL PTCP_STREAMS_MAX /* who joins as the next control connection */
#define JOINERS (PTCP_STREAMS_MAX + 1)

struct host_load;
struct stream_connect;
struct item;

/* What is being sent: a listing on an I/O thread, offered to the engine batch by batch. */
struct send_side {
	struct session *session;
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
	unsigned asked, comparing;  /* send_jobs.c: on I/O threads; of these, hashing */
	struct list to_compare;     /* sources to be hashed, or to be hashed further */
	struct hardlinks links;
	uint8_t attrs[WIRE_CONTROL_MAX], packed[WIRE_CONTROL_MAX]; /* of the entry that is being offered */
};

/* What is being received: everything the store has to do that is not writing blocks goes through one
 * queue, a batch at a time on an I/O thread. */
struct receive_side {
	struct session *session;
	struct open_files intake;
	struct destination place;
	bool placed;                /* the only top-level entry, which was renamed, is here */
	enum store_sync sync;
	struct item *first, **last; /* waiting */
	struct item *no_room, **no_room_last; /* for descriptors */
	unsigned fds, few_fds;      /* taken for files; when so few are left, those without room are let in */
	struct item *batch;         /* on the I/O thread */
	struct store_item *ends;     /* of it, what is completed */
	atomic_bool completing;
	struct item *contended;     /* files that another session holds: looked at again later */
	struct list readers;        /* resume_verify.c: waiting for an I/O thread, */
	unsigned n_reading;         /* and there */
	unsigned n_syncing;
	struct msg done;
	struct io_job io;
	uint64_t total_files, total_bytes;
	bool total_known;
};

/* What is being measured. */
struct probe_session_run {
	bool is;
	struct mono from, until;
};

struct probe_session {
	const struct probe_session_ops *ops; /* the starter's; NULL: the acceptor's */
	void *arg;
	bool floods;                /* blocks are sent here, and dropped there */
	struct open_files intake;       /* without a file, so that blocks have no place */
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
	struct probe_session_run early[PTCP_STREAMS_MAX]; /* streams whose bytes had all come before that, */
	unsigned n_early;           /* so many */
	struct mono looked;         /* at how much it has moved, */
	uint64_t moved;             /* bytes, */
	struct mono moved_at;       /* and when that was last more */
	struct limit_times times;   /* since then, as the flooding side has told */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* The control connection may die and be replaced by another: what the peer may not have got is kept. */
struct control_replay {
	struct buf kept;            /* sent, and not known to have arrived */
	size_t again;               /* of these the last, still to be sent on the present connection */
	uint64_t kept_from;         /* bytes sent before those */
	uint64_t heard, told;       /* bytes that came in; as the peer was last told */
	struct chan *chan;          /* the next connection, while the peer has not said where to go on */
	uint8_t frame[WIRE_CONTROL_ACK_MAX_BYTES];
	size_t got;
	struct mono since;          /* the present connection, or the next, is there */
	unsigned path;              /* which the starter tries next */
	bool vain;                  /* nobody is there to return to */
};

/* What paths carry at most, bit/s; 0: no limit, PTCP_PATH_IDLE: nothing new. */
struct path_rates {
	uint64_t asked[PTCP_PATHS_MAX];  /* by the caller */
	uint64_t chosen[PTCP_PATHS_MAX]; /* by path_select.c */
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

struct session {
	struct session_opts o;
	char address[SOCK_HOST_BYTES];
	struct engine *engine;
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
	struct stream_connect *connecting[JOINERS];
	struct mono retry_at[JOINERS];
	unsigned retries[JOINERS];
	struct control_replay control_replay;
	struct life life[PTCP_STREAMS_MAX];
	struct mono looked;         /* at the streams' lives */
	uint64_t carried[PTCP_PATHS_MAX]; /* bytes of file data, by path */
	struct mono began;          /* running since */
	struct mono none_since;     /* no stream up since then */
	struct ptcp_err join_why;   /* of the last that failed */
	uint64_t retransmits;       /* of those that are gone */
	/* one of: */
	struct send_side *send;
	struct receive_side *receive;
	struct probe_session *probe;
	/* and beside one of these, or neither: */
	struct stream_count *stream_count;       /* the starter's */
	struct tcp_report *tcp_report;         /* an acceptor's that sends */
	struct path_select *path_select;       /* the starter's, with paths to choose from; or NULL */
	struct host_load *host_load;          /* who may have to say that an end is the bottleneck; or NULL */
	struct path_rates path_rates;
};

/* With several paths: a control connection that has brought nothing for so long is left. */
#define SESSION_QUIET_NS (3 * NS_PER_S)

/* Moves everything that can move; after any event. Ends the party when all is over. */
void session_pump(struct session *sess);
/* Fails the session from here; the peer is told. */
void session_fail(struct session *sess, const struct ptcp_err *why);

/* ---- session_session.c: what it does at its session's word ---- */

extern const struct engine_ops session_session_ops;
/* What our own disk, or our processor, keeps us with. */
enum wire_busy session_busy(const struct session *sess);
/* Some stream waits for a disk. */
bool session_waits_for_disk(const struct session *sess);

/* ---- session_control.c: the channel of the control frames ---- */

extern const struct chan_ops session_control_ops;
extern const struct mux_ops session_mux_ops; /* where blocks travel on it, too */
/* Writes control frames, and between them the blocks that have no other way. */
void session_flush(struct session *sess);

/* ---- session_streams.c: the data connections that are up ---- */

/* From now on so many streams are in use. */
void session_want(struct session *sess, unsigned streams, const char *why);
/* Of these, how many are up. */
unsigned session_in_use(const struct session *sess);
/* Unless more are on their way: the user hears of a change. */
void session_tell_joined(struct session *sess);
void session_stream_lost(struct session *sess, struct stream *s, const struct ptcp_err *why);
/* What the kernel knows of a stream now; false: nothing, or it is not tapped. */
bool session_look(const struct session *sess, unsigned number, struct tcpinfo *out);
void session_close_tap(struct session *sess, unsigned number);

/* ---- stream_connect.c: data connections on their way ---- */

void stream_connect_pump(struct session *sess, struct mono now);
struct mono stream_connect_deadline(const struct session *sess);
void stream_connect_stop(struct session *sess);
/* Not at once: the longer the more often it has failed. */
void stream_connect_again(struct session *sess, unsigned number);
/* The streams in a place begin anew, over the path that it holds now. */
void stream_connect_move(struct session *sess, unsigned place, const struct ptcp_err *why);

/* ---- path_select.c: paths chosen from candidates ---- */

int path_select_new(struct session *sess, struct ptcp_err *e); /* once running; nothing where there is nothing to choose */
void path_select_free(struct session *sess);
void path_select_pump(struct session *sess, struct mono now);
struct mono path_select_deadline(const struct session *sess);
/* A stream had room, and there was nothing for it. */
void path_select_starved(struct session *sess);

/* ---- rates.c: what paths carry at most ---- */

void path_rates_init(struct path_rates *r);
void path_rates_pump(struct session *sess, struct mono now);
struct mono path_rates_deadline(const struct session *sess);
/* Acceptor that sends: as engine_ops has it. */
void path_rates_received(void *arg, const struct wire_rate *f);
/* Whether any path has one. */
bool path_rates_limit(const struct session *sess);
/* Whether blocks wait for a rate that this side keeps to: any of a path, or the handle's, as long as that holds them up. */
bool path_rates_hold(const struct session *sess);
/* Receiving: it is the sender that keeps to all of them. */
bool path_rates_at_sender(const struct session *sess);
/* By what the receiver has said, blocks may be rare, and nobody is to blame. */
bool path_rates_slow(const struct session *sess);
/* A stream is up: it keeps to the rate of its path. */
void path_rates_stream_up(struct session *sess, unsigned number);
/* For so long a path may bring nothing beside what would be a bad sign elsewhere. */
uint64_t path_rates_patience_ns(const struct session *sess, unsigned path);

/* ---- host_load.c: whether an end is the bottleneck ---- */

int host_load_new(struct session *sess, struct ptcp_err *e); /* once running; nothing where there is nothing to tell */
void host_load_free(struct session *sess);
/* What the acceptor says of itself. */
void host_load_heard(struct session *sess, const struct wire_load *f, struct mono now);
void host_load_pump(struct session *sess, struct mono now);
struct mono host_load_deadline(const struct session *sess);

/* ---- stream_count.c, tcp_report.c ---- */

void stream_count_free(struct session *sess);
void stream_count_pump(struct session *sess, struct mono now);
struct mono stream_count_deadline(const struct session *sess);
void stream_count_seen(struct session *sess, const struct wire_tcp_report *f);

int tcp_report_new(struct session *sess, struct ptcp_err *e); /* once running, of an acceptor that sends */
void tcp_report_free(struct session *sess);
void tcp_report_pump(struct session *sess, struct mono now);
struct mono tcp_report_deadline(const struct session *sess);

/* Makes a connection that is to be the control connection, if none is being made. */
void stream_connect_control(struct session *sess, struct mono now);
void stream_connect_stop_control(struct session *sess);

/* ---- control_replay.c: the control connection's successors ---- */

/* A control connection that is lost may be replaced: nothing is over yet. */
bool control_replay_may(const struct session *sess);
/* Writes to the control connection what has to be sent again, then of these bytes; how many of these it took. */
size_t control_replay_write(struct session *sess, const uint8_t *bytes, size_t n);
/* Bytes that came in on it. */
void control_replay_heard(struct session *sess, size_t n);
/* As engine_ops has it. */
int control_replay_told(void *arg, uint64_t bytes, struct ptcp_err *e);
/* It has died, or it is given up: the next one takes another path. */
void control_replay_lost(struct session *sess, const char *why);
/* A joined connection that is to be it; taken. */
void control_replay_take(struct session *sess, struct chan *c);
/* There could be none, by this path. */
void control_replay_failed(struct session *sess, const struct ptcp_err *why, bool refused);
void control_replay_pump(struct session *sess, struct mono now);
struct mono control_replay_deadline(const struct session *sess);
void control_replay_fini(struct session *sess);

/* ---- dead_path.c: paths that bring nothing, while others do ---- */

/* The starter's, with several paths: gives up the streams of a path that has died without a sign. */
void dead_path_pump(struct session *sess, struct mono now);
struct mono dead_path_deadline(const struct session *sess);

/* ---- send.c ---- */

void send_free(struct session *sess);
/* Lists further, and fills the streams' free jobs. */
void send_pump(struct session *sess, struct mono now);
bool send_idle(const struct session *sess); /* nothing of it is on an I/O thread */
extern const struct snd_ops send_snd_ops;
void send_sent(void *arg, struct stream *s, struct stream_job *job);

/* ---- receive.c ---- */

void receive_free(struct session *sess);
void receive_pump(struct session *sess, struct mono now);
struct mono receive_deadline(const struct session *sess);
bool receive_idle(const struct session *sess); /* nothing waits for or is on an I/O thread */
enum wire_busy receive_busy(const struct session *sess);
extern const struct rcv_ops receive_rcv_ops;
bool receive_held(void *arg, uint64_t dev, uint64_t ino);
void receive_received(void *arg, struct stream *s, struct stream_news *news);

/* ---- probe_session.c ---- */

void probe_session_free(struct session *sess);
void probe_session_pump(struct session *sess, struct mono now);
struct mono probe_session_deadline(const struct session *sess);
/* What a stream of it does. */
void probe_session_stream_opts(const struct session *sess, struct stream_opts *o);
/* It is on its way to its worker. */
void probe_session_stream_up(struct session *sess, unsigned number);
void probe_session_stream_lost(struct session *sess, struct stream *s, const struct ptcp_err *why);
/* Acceptor: a level begins, or ends, for session_flood() with so many bytes on each stream. */
void probe_session_use(struct session *sess, uint64_t stream_bytes);
/* Starter: what the flooding side's kernel has seen. */
void probe_session_seen(struct session *sess, const struct wire_tcp_report *f);

#endif
