/* The inside of a session. session.c makes a session and drives its parts; the functions of each file follow below.
 * Calls go in one direction: session.c > engine_ops.c > adapt.c, probe_session.c, send.c, receive.c > progress.c,
 * stream_connect.c > stream_set.c > control.c > slot.c. Only session_pump() leads back up. */
#ifndef SESSION_SESSION_IMPL_H
#define SESSION_SESSION_IMPL_H

#include <stdatomic.h>

#include "core/units.h"
#include "engine/control_replay.h"
#include "engine/dead_path.h"
#include "engine/host_load.h"
#include "engine/mtu.h"
#include "engine/path_rates.h"
#include "engine/path_select.h"
#include "engine/stream_count.h"
#include "model/congestion.h"
#include "model/probe.h"
#include "model/yield.h"
#include "mover/movers.h"
#include "session/endpoints.h"
#include "session/mux.h"
#include "session/probe_session.h"
#include "session/session.h"
#include "session/slot.h"
#include "stream/stream.h"

#define SESSION_FDS 5u /* beside the streams: control connection, root, a listing, and a file with its journal */

/* Payload of the data streams: files sent (send.c), files received (receive.c), or generated blocks
 * (probe_session.c). Members may be NULL. */
struct payload_ops {
	void (*opts)(const struct session *sess, struct stream_opts *o); /* completes the options of a new stream */
	void (*connected)(struct session *sess, unsigned number);
	void (*lost)(struct session *sess, struct stream *s, const struct ptcp_err *why);
	/* as stream_ops has them */
	void (*sent)(struct session *sess, struct stream *s, struct stream_job *job);
	void (*received)(struct session *sess, struct stream *s, struct stream_results *results);
	bool (*locked)(struct session *sess, uint64_t dev, uint64_t ino);
};

/* A stream of a measurement, after the transfer of all its bytes. */
struct stream_run {
	bool ended;
	struct mono from, until;
};

/* A measurement by levels: numbers of streams, one after the other. */
struct probe_session {
	const struct probe_session_ops *ops; /* of the starter; NULL: acceptor */
	void *arg;
	bool generates;             /* this end sends the blocks */
	struct open_files files;    /* receiver: always empty: streams discard every block */
	uint8_t *data;              /* sender: content of the blocks */
	unsigned streams;           /* of this level; 0: between levels */
	uint64_t stream_bytes;
	bool started;
	bool generating[PTCP_STREAMS_MAX]; /* sender: streams that have started to send */
	/* starter */
	bool clearing;
	struct mono start_by;       /* deadline for the level to start */
	struct mono started_at;
	struct stream_run early[PTCP_STREAMS_MAX]; /* streams that ended before the level started here */
	unsigned n_early;
	struct mono checked_at;     /* last check for progress */
	uint64_t moved;             /* bytes at the last progress, */
	struct mono moved_at;       /* and its time */
	struct limit_times times;   /* reported by the sending end since the level started */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* Counters of the streams' TCP connections (tcp_report.c). */
struct tcp_stats {
	struct tcp_counters {
		uint32_t generation;    /* of the slot, for `last`; 0: none */
		struct tcpinfo last;
		struct loss_events events;
		struct evidence_sample sample; /* of the last interval, if active; rtt_s 0: unknown */
	} of[PTCP_STREAMS_MAX];
};

/* Increase of the counters over an interval. */
struct tcp_delta {
	uint64_t active_bytes;    /* of active streams, TLS included: acknowledged, or received */
	uint64_t inactive_bytes;  /* of inactive streams, which drain */
	struct limit_times times; /* of active streams, as senders */
	struct evidence_sample kernel; /* the same */
	uint64_t retransmits;
	char congestion[TCPINFO_CC_BYTES];
};

/* Congestion control of the sender's data streams (congestion.c, congestion_choice.c). */
struct session_congestion {
	char name[TCPINFO_CC_BYTES]; /* "": unknown yet */
	bool sets;                  /* the sender: sets `name` on its streams */
	const char *why;            /* of `name` */
	bool announced;             /* changes are reported to the user */
	/* the sender, which may change it: */
	bool judges;
	char fair[TCPINFO_CC_BYTES]; /* in use before bbr */
	bool excluded;              /* bbr: not permitted, or other flows were seen beside it */
	struct congestion_judge judge;
	struct tcp_stats stats;
	struct limit_times recent;
	struct mono sampled;
};

/* The sender's streams that yield to other flows (yielding.c). */
struct yielding {
	struct mono sampled;
	struct yielding_stream {
		uint32_t generation; /* of the slot; another: a new connection */
		struct yield law;
		struct mono stepped; /* with these counters: */
		struct tcpinfo last;
		double least_s;     /* RTT since then; 0: unknown */
	} stream[PTCP_STREAMS_MAX];
};

struct session {
	struct session_opts o;
	void (*pump)(struct session *sess); /* see session_pump() */
	char address[SOCK_HOST_BYTES], name[SOCK_HOST_BYTES]; /* of the peer: last reached; "": no name */
	struct engine *engine;
	struct chan *control;       /* NULL once closed */
	struct chan *successor;     /* of `control`, until the peer's CONTROL_ACK */
	struct control_replay control_replay;
	bool sources_expanded;
	uint64_t quiet_ns, rtt_ns;  /* see control_replay_session */
	bool control_lost;          /* a control connection was lost that stalls.c has not judged yet, */
	struct mtu_lost lost_control;
	struct mono return_by;      /* a lost control connection must have its successor by then, see control.c */
	struct ptcp_err attempt;    /* reason of the loss, or of the last attempt to connect its successor */
	struct mux *mux;            /* with one channel; else NULL */
	struct timer *timer;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	uint8_t id[WIRE_SESSION_BYTES], key[32];
	bool running, over, pumping, gone_posted, due_posted;
	struct msg due;             /* see session_reported() */
	bool failed;                /* with `why` */
	struct ptcp_err why;
	struct mono give_up;        /* deadline for the peer to close */
	struct msg gone;
	/* data streams */
	const struct payload_ops *payload;
	enum ptcp_cipher cipher;
	unsigned n_granted;         /* agreed */
	unsigned n_active;          /* of the granted: streams 0 to n_active - 1 carry new data, others at most the blocks
	                               that they have begun */
	const char *active_why;     /* reason for n_active, until reported; or NULL */
	unsigned n_connected;       /* active or not */
	unsigned n_connected_reported, n_connected_peak; /* of the active */
	unsigned n_ending;          /* lost or stopped, and not closed */
	unsigned n_fds_base, n_fds_reserved; /* beside the streams; in all */
	bool ever_connected;
	struct slot slot[SLOTS];    /* one for each stream number, see slot.h */
	bool tapped;                /* slots need a tap */
	struct tcp_stats tcp_stats;
	unsigned n_movers;          /* of the larger side, for which streams have been requested */
	struct movers *pool;        /* acceptor: of the server; o.movers is the set of this session. NULL: none */
	bool lacks_movers;          /* none of these was reached: */
	struct endpoints *endpoints; /* starter: of the acceptor's movers; NULL: streams connect to the acceptor */
	uint64_t carried[PTCP_PATHS_MAX]; /* bytes of file data, by path */
	struct mono began;          /* start of RUNNING */
	struct mono none_since;     /* no stream connected since then */
	struct ptcp_err join_why;   /* of the last failed connection */
	uint64_t failed_paths;      /* reported by ops.path_failed, and not connected since */
	uint64_t retransmits;       /* of ended streams */
	/* one of: */
	struct send_side *send;
	struct receive_side *receive;
	struct probe_session *probe;
	/* adaptation: adapt.c */
	struct path_rates path_rates;
	struct dead_path dead_path;
	struct mono stalls_checked;
	struct mono resumed;        /* when the control connection was last replaced, until stalls.c has judged the streams */
	struct mtu mtu;
	bool selects_paths;         /* the starter, with paths to choose from: */
	struct path_select path_select;
	bool checks_load;
	struct host_load host_load;
	struct { unsigned streams; const char *why; } requested; /* adapt_request(), until the first sources are listed */
	bool adapts_streams;        /* the starter, after session_adapt_streams(): */
	struct stream_count stream_count;
	struct stream_count_opts count_opts;
	struct session_congestion congestion;
	struct yielding *yielding;  /* NULL: does not */
	struct direct_io direct_io; /* with o.direct_io */
	bool reports_tcp;           /* a sending acceptor: tcp_report.c */
	struct mono tcp_reported;
};

/* Reports an event: the session does all work that is possible now, and ends when all is done. */
static inline void session_pump(struct session *sess) { sess->pump(sess); }

/* The same after a report of a stream. A turn of the loop brings many reports of movers, and the work that they permit
 * takes time for each stream: it is done once, after them. */
static inline void session_reported(struct session *sess, const struct stream *s)
{
	if (stream_kind_of(s) == NULL) {
		session_pump(sess);
	} else if (!sess->due_posted) {
		sess->due_posted = true;
		loop_post(sess->o.host->control, &sess->due);
	}
}

static inline unsigned session_path_of(const struct session *sess, unsigned stream)
{
	return sess->o.paths != NULL ? paths_of_stream(sess->o.paths, stream) : 0;
}

/* Rate limit of all sessions of the handle, in the direction of this session's data. */
static inline const struct pacer *session_pacer(const struct session *sess)
{
	return sess->send != NULL ? &sess->o.host->pacing.out : &sess->o.host->pacing.in;
}

/* A receiving starter: the peer enforces the rate limits. */
static inline bool session_reports_rates(const struct session *sess)
{
	return sess->running && sess->o.open != NULL && sess->probe == NULL && engine_rcv(sess->engine) != NULL;
}

/* For the session's files; NULL: they use the page cache. */
static inline struct direct_io *session_direct_io(struct session *sess)
{
	return sess->o.direct_io ? &sess->direct_io : NULL;
}

/* ---- engine_ops.c: operations for the engine ---- */

extern const struct engine_ops session_engine_ops;

/* ---- control.c: the control connection ---- */

extern const struct chan_ops control_ops;
extern const struct mux_ops control_mux_ops; /* with one channel */
/* Writes control frames, and with one channel blocks between frames. */
void control_flush(struct session *sess);
/* As engine_ops.control_ack. */
int control_on_ack(void *arg, uint64_t bytes, struct ptcp_err *e);
/* A lost control connection may be replaced: the session continues. */
bool control_may_resume(const struct session *sess);
/* It works, as far as this end knows. */
bool control_is_up(const struct session *sess);
/* The starter is to connect a successor now. */
bool control_wants_successor(const struct session *sess);
/* A joined connection as the successor; taken. */
void control_take(struct session *sess, struct chan *c);
/* An attempt to connect a successor failed. */
void control_failed(struct session *sess, const struct connect_result *r);
/* Its segments are not acknowledged: drops it. */
void control_stuck(struct session *sess);
void control_pump(struct session *sess, struct mono now);
struct mono control_deadline(const struct session *sess);
void control_free(struct session *sess);

/* ---- stream_set.c: connected data streams ---- */

/* Whether this end sends TCP_REPORT: a sending acceptor, unless one channel carries everything: that stream has no
 * socket. */
bool streams_report_tcp(const struct session *sess);
/* Sets the number of active streams; `why` is for the user. */
void streams_activate(struct session *sess, unsigned streams, const char *why);
/* Active streams that are connected. */
unsigned streams_connected(const struct session *sess);
/* Reports a changed number to the user, unless more connections are in progress. */
void streams_report(struct session *sess);
/* After an outage: replaces streams whose peer was silent, and retries the others at once. */
void streams_revive(struct session *sess);
/* The connection failed: closes the stream; the TLS client connects a new one. */
void streams_lost(struct session *sess, struct stream *s, const struct ptcp_err *why);
/* Applies the rate limit of a stream's path, see path_rates.h. */
void streams_share_rate(struct session *sess, unsigned number);
/* A connection failed: delays the next attempt, longer after each failure. */
void streams_retry_later(struct session *sess, unsigned number);
/* As session_add_stream(); `joining`: JOINED has not arrived yet. */
void streams_add(struct session *sess, unsigned number, struct chan *c, bool joining);
/* The same, of a mover. */
void streams_add_remote(struct session *sess, unsigned number, struct remote *r);
bool streams_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out); /* false: unknown */

/* ---- stalls.c ---- */

/* A connection was lost, perhaps because of the path's MTU. */
void stalls_suspect(struct session *sess, const struct mtu_lost *lost);
void stalls_pump(struct session *sess, struct mono now);
struct mono stalls_deadline(const struct session *sess);

/* ---- progress.c ---- */

/* Activity of this end's disk or CPU; a rate limit or spooling counts as disk. */
enum wire_busy session_busy(const struct session *sess);
/* The session is slow because of rate limits only. */
bool session_is_paced(const struct session *sess);
/* A stream waits for a disk. */
bool session_waits_for_disk(const struct session *sess);
/* Warns the users of both sides, once, if a file system has no direct I/O. */
void progress_pump(struct session *sess, struct mono now);

/* ---- stream_connect.c: data connections being made ---- */

void stream_connect_pump(struct session *sess, struct mono now);
struct mono stream_connect_deadline(const struct session *sess);
void stream_connect_stop(struct session *sess);
/* Moves the streams of a place to its present path: the old connections carry data until the new ones have joined. */
void stream_connect_move(struct session *sess, unsigned place);
/* The stream is still connected over an earlier path. */
bool stream_connect_moves(const struct session *sess, unsigned number);
/* Connects a successor of the control connection, if wanted. */
void stream_connect_control(struct session *sess, struct mono now);
void stream_connect_stop_control(struct session *sess);

/* ---- striping.c: movers ---- */

/* Once agreed: movers of the server accept the streams of this session, or of the acceptor the streams of the starter. */
int striping_open(struct session *sess, bool movers, struct ptcp_err *e);
void striping_free(struct session *sess);
/* Starter: as engine_ops.endpoint. */
void striping_on_endpoint(struct session *sess, const struct wire_endpoint *f);
/* From now on movers carry the streams. */
void striping_start(struct session *sess);
void striping_stop(struct session *sess);
void striping_pump(struct session *sess, struct mono now);
struct mono striping_deadline(const struct session *sess);

/* Movers of either end carry the streams, whose number depends on theirs. */
static inline bool striping_sets_streams(const struct session *sess)
{
	return session_is_striped(sess) && !sess->o.fixed_streams;
}

/* Some mover can carry the stream; always true without movers. */
static inline bool striping_ready(const struct session *sess, unsigned number)
{
	return (sess->o.movers == NULL || sess->slot[number].mover != 0) && (sess->endpoints == NULL || sess->slot[number].endpoint != 0);
}

/* The connected stream is to move to another mover, or to another one of the acceptor. */
static inline bool striping_moves(const struct session *sess, unsigned number)
{
	if (sess->endpoints != NULL && sess->slot[number].endpoint != 0 && sess->slot[number].connected_to != sess->slot[number].endpoint)
		return true;
	return sess->pool == NULL && sess->o.movers != NULL && sess->slot[number].mover != 0 &&
	    remote_mover(stream_remote(sess->slot[number].stream)) != sess->slot[number].mover;
}

/* A rate limit may delay the movers' streams. */
static inline bool striping_is_paced(const struct session *sess)
{
	return sess->o.movers != NULL && sess->o.host->pacing.bps > 0;
}

/* ---- congestion.c, congestion_choice.c ---- */

/* Whether this end sends the data. */
bool congestion_is_ours(const struct session *sess);
/* Once the session runs: chooses the congestion control of a sender. PTCP_EUSAGE: not permitted by the kernel. */
int congestion_start(struct session *sess, struct ptcp_err *e);
/* A new data connection. */
void congestion_apply(const struct session *sess, int fd);
/* Takes a name into use, or notes that of a sending peer, and reports a change to the user. `why` NULL: the peer's. */
void congestion_use(struct session *sess, const char *name, const char *why);
/* Reports the name, if known, and changes from now on. */
void congestion_announce(struct session *sess);
void congestion_pump(struct session *sess, struct mono now);
struct mono congestion_deadline(const struct session *sess);

/* ---- yielding.c ---- */

void yielding_pump(struct session *sess, struct mono now);
struct mono yielding_deadline(const struct session *sess);
void yielding_free(struct session *sess);

/* ---- adapt.c: the adaptive parts of the engine, joined with the session ---- */

/* As the starter: requests up to `streams` streams, but none that has nothing to send; a path has at least one. `why` is
 * for the user. */
void adapt_request(struct session *sess, unsigned streams, const char *why);
void adapt_requested(struct session *sess, struct mono now);
/* Once running. */
int adapt_start(struct session *sess, struct ptcp_err *e);
void adapt_rates(struct session *sess, struct mono now);
struct mono adapt_rates_deadline(const struct session *sess);
void adapt_dead_paths(struct session *sess, struct mono now);
struct mono adapt_dead_paths_deadline(const struct session *sess);
void adapt_paths(struct session *sess, struct mono now);
struct mono adapt_paths_deadline(const struct session *sess);
void adapt_load(struct session *sess, struct mono now);
struct mono adapt_load_deadline(const struct session *sess);
/* The sender uses another congestion control from now on. */
void adapt_on_congestion(struct session *sess, const char *name);
void adapt_movers(struct session *sess, unsigned movers); /* that carry the streams */
void adapt_streams(struct session *sess, struct mono now);
struct mono adapt_streams_deadline(const struct session *sess);
/* As engine_ops.rate, load and (unless a probe session) tcp_report. */
void adapt_on_rate(void *arg, const struct wire_rate *f);
void adapt_on_load(void *arg, const struct wire_load *f);
void adapt_on_tcp_report(struct session *sess, const struct wire_tcp_report *f);

/* ---- tcp_report.c: TCP_INFO of the streams ---- */

/* Since the last call with these counters; a stream counts from its second sample. */
void tcp_stats_read(struct session *sess, struct tcp_stats *t, double elapsed_s, struct tcp_delta *out);
void tcp_report_pump(struct session *sess, struct mono now);
struct mono tcp_report_deadline(const struct session *sess);
/* As engine_ops.tcp_report: the starter's part. */
void tcp_report_take(struct session *sess, const struct wire_tcp_report *f);

/* ---- send.c ---- */

void send_free(struct session *sess);
/* Continues the listing, and fills the streams' free jobs. */
void send_pump(struct session *sess, struct mono now);
/* Replaces a stream without acknowledgments, unless it still takes bytes. */
void send_stream_stalled(struct session *sess, unsigned number);
/* Before the peer has accepted the session: begins the listing. */
void send_early(struct session *sess);
/* As engine_ops.select; select.c. */
int send_select(struct session *sess, const struct wire_select *f, struct ptcp_err *e);
bool send_idle(const struct session *sess); /* no job on an I/O thread */
/* Number of streams that have something to send, at most: 0 before the first sources are listed, PTCP_STREAMS_MAX before
 * all are. */
unsigned send_streams(const struct session *sess);
enum wire_busy send_busy(const struct session *sess);
extern const struct snd_ops send_snd_ops;

/* ---- receive.c, receive_io.c ---- */

void receive_free(struct session *sess);
void receive_pump(struct session *sess, struct mono now);
struct mono receive_deadline(const struct session *sess);
bool receive_idle(const struct session *sess); /* no job queued or on an I/O thread */
enum wire_busy receive_busy(const struct session *sess);
/* As engine_ops.finish. */
bool receive_finish(struct session *sess);
extern const struct rcv_ops receive_rcv_ops;
void receive_blocks(struct session *sess, struct stream *s, struct stream_results *results);

/* ---- probe_session.c ---- */

void probe_session_free(struct session *sess);
void probe_session_pump(struct session *sess, struct mono now);
struct mono probe_session_deadline(const struct session *sess);
/* Acceptor: a level starts or ends; session_generate() sends stream_bytes bytes on each stream. */
void probe_session_on_set_streams(struct session *sess, uint64_t stream_bytes);
/* Starter: the sending end's report. */
void probe_session_on_report(struct session *sess, const struct wire_tcp_report *f);

/* The user of this process has started the session: errors may name the path of the root, which a peer must not
 * learn. */
static inline bool session_is_users(const struct session *sess)
{
	return sess->o.open != NULL && sess->o.client == NULL;
}

static inline void session_file_failed(struct session *sess, const char *path, const struct ptcp_err *why)
{
	sess->o.ops->file(sess->o.arg, &(struct session_file){ .path = path, .status = PTCP_FILE_FAILED,
	    .size_bytes = SESSION_SIZE_UNKNOWN, .why = why });
}

#endif
