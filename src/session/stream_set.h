/* The data streams of a session: the number of active streams, streams connected and lost, and the descriptors of
 * all. */
#ifndef SESSION_STREAM_SET_H
#define SESSION_STREAM_SET_H

#include "net/sock.h"
#include "session/session.h"
#include "stream/stream.h"

struct remote_stream;

#define SESSION_FDS 5u /* descriptors beside the streams: control connection, root, a listing, a
                          file with its journal */

/* Payload of the data streams: files sent (send.c), files received (receive.c), or generated blocks
 * (probe_session.c). Members may be NULL. */
struct payload_ops {
	void (*opts)(const struct session *sess, struct stream_opts *o); /* completes the options of a new stream */
	bool (*wants)(const struct session *sess, unsigned number); /* takes a connection of the stream; NULL: always */
	void (*connected)(struct session *sess, unsigned number);
	void (*lost)(struct session *sess, struct stream *s, const struct ptcp_err *why);
	/* as stream_ops has them */
	void (*sent)(struct session *sess, struct stream *s, struct stream_job *job);
	void (*received)(struct session *sess, struct stream *s, struct stream_results *results);
	enum part_holder (*locked)(struct session *sess, uint64_t dev, uint64_t ino, struct mono since, bool alone);
	void (*outage)(struct session *sess, bool begins); /* the control connection is lost, or replaced */
};

struct stream_set {
	unsigned n_granted;         /* agreed */
	unsigned n_active;          /* streams 0 to n_active - 1 carry new data, further ones at
	                               most the blocks begun */
	const char *active_why;     /* reason for n_active, until reported; or NULL */
	unsigned n_connected;       /* active or not */
	unsigned n_reported, n_peak; /* numbers of connected active streams: last report, maximum */
	unsigned n_ending;          /* lost or stopped, and not closed */
	unsigned n_fds_base, n_fds_reserved; /* descriptors beside the streams; all reserved descriptors */
	bool ever_connected;
	bool tapped;                /* new streams are tapped */
	struct packing *packing;    /* compression of the streams on this host */
	const char *congestion;     /* congestion control to set on sockets; NULL: the system's */
	struct mono none_since;     /* no stream connected since then */
	struct ptcp_err join_why;   /* error of the last failed connection */
	bool lacks_movers;          /* no mover of the acceptor was reached */
	struct mono revived;        /* time of the last replacement of the control connection */
	uint64_t failed_paths;      /* reported by ops.path_failed, and not connected since */
	uint64_t retransmits;       /* retransmits of ended streams */
};

void streams_init(struct session *sess, const struct session_opts *o);
void streams_free(struct session *sess);
/* What the streams carry. */
void streams_carry(struct session *sess, const struct payload_ops *payload);
/* Streams are tapped from now on (stream/stream.h). */
void streams_tap(struct session *sess);
/* Sets the congestion control of all sockets, also of those to come; `name` outlives the session. */
void streams_set_congestion(struct session *sess, const char *name);
/* The time limit without any stream begins again. */
void streams_await(struct session *sess, struct mono now);
/* Whether this end sends TCP_REPORT: a sending acceptor, unless one channel carries everything: that stream has no
 * socket. */
bool streams_report_tcp(const struct session *sess);
/* Sets the number of active streams; `why` is for the user, NULL: nothing is reported yet. */
void streams_activate(struct session *sess, unsigned streams, const char *why);
/* Active streams that are connected. */
unsigned streams_connected(const struct session *sess);
/* Reports a changed number to the user, unless more connections are in progress. */
void streams_report(struct session *sess);
/* The control connection has a successor: replaces streams whose peer was silent, and retries the others at once. */
void streams_revive(struct session *sess);
/* The stream is still connected over an earlier path, by an earlier mover, or to an earlier one of the acceptor. */
bool streams_moves(const struct session *sess, unsigned number);
unsigned streams_on_path(const struct session *sess, unsigned path); /* connected */
/* Bytes of file data that the streams of a path have delivered, so far. */
uint64_t streams_delivered(const struct session *sess, unsigned path);
/* The session takes a connection of this stream now. */
bool streams_accepts(const struct session *sess, unsigned number);
/* The connection failed: closes the stream; the TLS client connects a new one. */
void streams_lost(struct session *sess, struct stream *s, const struct ptcp_err *why);
/* Stops all streams in their slots, which are free after the last message of each stream. */
void streams_close(struct session *sess, bool reset);
/* Applies the rate limit of a stream's path, see path_rates.h. */
void streams_share_rate(struct session *sess, unsigned number);
/* A connection failed: delays the next attempt, longer after each failure. */
void streams_retry_later(struct session *sess, unsigned number);
/* As session_add_stream(), for a data stream; `joining`: JOINED has not arrived yet. */
void streams_add(struct session *sess, unsigned number, struct chan *c, bool joining);
/* The same, of a mover. */
void streams_add_remote(struct session *sess, unsigned number, struct remote_stream *r);
bool streams_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out); /* false: unknown */

#endif
