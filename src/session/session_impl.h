/* The inside of a party: session.c makes it and turns its crank; the rest is by file below. */
#ifndef SESSION_SESSION_IMPL_H
#define SESSION_SESSION_IMPL_H

#include <stdatomic.h>

#include "core/units.h"
#include "model/sender_limit.h"
#include "session/mux.h"
#include "session/probe_session.h"
#include "session/session.h"
#include "session/stream.h"

#define STREAM_CONNECT_CONTROL PTCP_STREAMS_MAX /* who joins as the next control connection */
#define JOINERS (PTCP_STREAMS_MAX + 1)

struct host_load;
struct stream_connect;

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
/* A stream of that number is to be there: nobody could keep it from bringing something. */
bool path_rates_joins(const struct session *sess, unsigned number);
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
bool send_idle(const struct session *sess); /* nothing is on an I/O thread */
enum wire_busy send_busy(const struct session *sess);
extern const struct snd_ops send_snd_ops;
void send_job_sent(void *arg, struct stream *s, struct stream_job *job);

/* ---- receive.c ---- */

void receive_free(struct session *sess);
void receive_pump(struct session *sess, struct mono now);
struct mono receive_deadline(const struct session *sess);
struct open_files *receive_files(const struct session *sess); /* NULL: the session does not receive */
bool receive_idle(const struct session *sess); /* nothing waits for or is on an I/O thread */
enum wire_busy receive_busy(const struct session *sess);
extern const struct rcv_ops receive_rcv_ops;
bool receive_part_locked(void *arg, uint64_t dev, uint64_t ino);
void receive_blocks(void *arg, struct stream *s, struct stream_results *results);

/* ---- probe_session.c ---- */

void probe_session_free(struct session *sess);
void probe_session_pump(struct session *sess, struct mono now);
struct mono probe_session_deadline(const struct session *sess);
/* false: not a measurement session, or its acceptor */
bool probe_session_is_starter(const struct session *sess);
/* A stream of the level that has transferred all its bytes before the level started here. */
bool probe_session_has_ended(const struct session *sess, unsigned number);
void probe_session_stream_opts(const struct session *sess, struct stream_opts *o);
void probe_session_stream_up(struct session *sess, unsigned number);
void probe_session_stream_lost(struct session *sess, struct stream *s, const struct ptcp_err *why);
/* Acceptor: a level starts or ends; session_generate() sends stream_bytes bytes on each stream. */
void probe_session_use(struct session *sess, uint64_t stream_bytes);
/* Starter: TCP_REPORT of the sending side. */
void probe_session_seen(struct session *sess, const struct wire_tcp_report *f);

#endif
