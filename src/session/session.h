/* One end of a session at work: the engine joined with its control channel, its data streams and the
 * store. Belongs to the control thread. Used by client and server alike; what differs (who connects,
 * who decides) comes through the options. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "conn/context.h"
#include "conn/paths.h"
#include "engine/engine.h"
#include "model/stream_control.h"
#include "net/sock.h"
#include "store/destination.h"

struct filter;
struct session;
struct stream;

struct session_ops {
	/* Acceptor: judge what is asked for; call session_send_from(), or session_receive_into(),
	 * then session_accept(); or engine_fail(session_session()). */
	void (*open)(void *arg, struct session *sess, const struct wire_open *o);
	/* Agreed. */
	void (*running)(void *arg, struct session *sess);
	/* A file or link is over; `path` in raw bytes. Also for directories that failed. */
	void (*file)(void *arg, const char *path, enum ptcp_file_status status,
	    const struct ptcp_err *why);
	/* A sentence about a path (NULL: none). */
	void (*warning)(void *arg, const char *path, const char *text);
	void (*streams)(void *arg, unsigned from, unsigned to, const char *why);
	/* Receiver: a file's part, that inode, is held by another session. True: it may be one of the same client's,
	 * which is being ended or may be done with it in a moment: look again. NULL: none is. */
	bool (*contended)(void *arg, struct session *sess, uint64_t dev, uint64_t ino);
	/* Others of paths->place are in use now. */
	void (*paths)(void *arg, const char *why);
	/* As connect_opts.check, of relays; where there are paths. */
	int (*check)(void *arg, const struct connect_hop *hop, bool relay, const char *fingerprint, struct ptcp_err *e);
	/* All is over, and everything of it freed but the party itself, which session_free() does.
	 * `why` NULL: done. */
	void (*gone)(void *arg, struct session *sess, const struct ptcp_err *why);
};

struct session_opts {
	struct context *host;
	struct chan *control;         /* opened, peer's fingerprint accepted; taken, also on failure */
	bool connects;                /* we make the data connections (the TLS client) */
	bool one_channel;             /* nobody does: blocks travel on the control connection */
	const char *address;          /* where to, as reached; copied */
	unsigned port;
	bool once;                    /* the peer serves nothing but this session, and ends with it */
	struct paths *paths;          /* several, or one with relays; outlives the party. NULL: to `address` */
	unsigned path;                /* of these, the control connection's */
	struct sock_opts sock;        /* copied; congestion outlives the party */
	const struct wire_open *open; /* starter: what to ask for; NULL: acceptor */
	uint16_t max_streams;
	uint64_t timeout_ns;
	const struct session_ops *ops;
	void *arg;
};

int session_new(struct session **out, const struct session_opts *o, struct ptcp_err *e);
void session_free(struct session *sess); /* only after ops.gone; NULL is fine */
struct engine *session_session(struct session *sess);
int session_control_fd(const struct session *sess); /* -1 once it is closed */

/* Starter: from now on the path, of those in o.paths, carries no more than that: bit/s; 0: no limit, PTCP_PATH_IDLE:
 * nothing new. */
void session_set_path_rate(struct session *sess, unsigned path, uint64_t bps);

/* Interrupts: the peer is told why. */
void session_cancel(struct session *sess, const struct ptcp_err *why);

/* It is ending: what it holds it lets go of. */
bool session_over(const struct session *sess);
/* Ends at once for a newer session of the same client. */
void session_yield(struct session *sess);
/* Whether it receives into that part file. */
bool session_holds(const struct session *sess, uint64_t dev, uint64_t ino);

/* ---- What to send, where to receive: before running ---- */

/* A source; `name` NULL: the contents of dir. Holds dir. */
int session_send_from(struct session *sess, struct dir *dir, const char *name, struct ptcp_err *e);
/* Leave out what `f` does not keep; of all sources. Borrowed as long as the party lives. */
int session_send_filtered(struct session *sess, const struct filter *f, struct ptcp_err *e);
/* A source that is not there: reported, counted and told to the receiver once running. */
int session_send_missing(struct session *sess, const char *path, const struct ptcp_err *why);
/* Entries land there. Takes what is in `place`, also on failure. */
int session_receive_into(struct session *sess, struct destination *place, struct ptcp_err *e);
/* Acceptor: agrees, with so many streams. */
void session_accept(struct session *sess, unsigned streams, enum ptcp_cipher cipher);

/* ---- Number of streams ---- */

struct stream_count_opts {
	double budget_ratio;
	unsigned max_streams;
	/* Once, when the congestion control of the sending streams is known: may call session_recall(). Or NULL. */
	void (*known)(void *arg, struct session *sess, const char *congestion);
	void *arg;
};

/* Starter, before running ends: adjusts the number of streams to the observed throughput
 * (engine/stream_count.h). */
void session_adapt_streams(struct session *sess, const struct stream_count_opts *o);
/* Probes of the path by earlier transfers. */
void session_recall(struct session *sess, const struct probe *probe, size_t count);
/* Result; NULL: the number is fixed. Valid as long as the session. */
const struct stream_control *session_stream_control(const struct session *sess);

/* ---- Data connections ---- */

const uint8_t *session_id(const struct session *sess);
enum ptcp_cipher session_cipher(const struct session *sess); /* once running */
/* Whether who has sent this JOIN on this connection belongs to the party (NULL: to none). */
bool session_knows(const struct session *sess, struct chan *c, const struct wire_join *j);
/* A joined channel (raw where the cipher is none), of a stream or WIRE_JOIN_CONTROL; taken. */
void session_add_stream(struct session *sess, unsigned number, struct chan *c);

struct ptcp_progress session_progress(const struct session *sess);
/* Segments that its data connections have sent again; of those that are up, as of the last call. */
uint64_t session_retransmits(struct session *sess);

/* Of one path: file data it has carried, and its streams now. */
struct session_path {
	uint64_t bytes;
	unsigned streams;
};
struct session_path session_path(const struct session *sess, unsigned path);

#endif
