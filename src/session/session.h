/* A session: one end of a transfer or measurement, for client and server alike. Joins the engine with the control
 * connection, the data streams and the store. Control thread only. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "conn/context.h"
#include "core/memory_budget.h"
#include "core/selection.h"
#include "engine/engine.h"
#include "engine/spent.h"
#include "engine/stream_count.h"
#include "net/sock.h"
#include "session/paths.h"
#include "store/backup.h"
#include "store/destination.h"
#include "store/reference.h"
#include "sums/sums.h"

struct attr_map;
struct filter;
struct published;
struct movers;
struct pipe_sink;
struct pipe_source;
struct session;
struct stream;

struct session_file {
	const char *path; /* raw bytes */
	enum ptcp_file_status status;
	bool is_link;
	uint64_t size_bytes; /* SESSION_SIZE_UNKNOWN: unknown */
	const struct ptcp_err *why; /* NULL unless failed or skipped for a reason */
	const char *digests; /* digits of those of session_send_digests(), one after the other; NULL: none */
};
#define SESSION_SIZE_UNKNOWN UINT64_MAX

struct session_ops {
	/* Acceptor: authorize the request; then call session_send_from() or session_receive_into(), and
	 * session_accept(); or engine_fail(session_engine()). */
	void (*open)(void *arg, struct session *sess, const struct wire_open *o);
	/* Starter: the peer is busy, and `ahead` other sessions wait before this one. */
	void (*waiting)(void *arg, uint32_t ahead);
	/* Accepted. */
	void (*running)(void *arg, struct session *sess);
	/* A file or link is done, or a directory failed. */
	void (*file)(void *arg, const struct session_file *f);
	/* A warning about a file path (NULL: about the session). */
	void (*warning)(void *arg, const char *path, const char *text);
	/* A receiver's directories contain leftovers of transfers whose sources are gone. */
	void (*leftovers)(void *arg, const struct wire_leftovers *f);
	void (*streams)(void *arg, unsigned from, unsigned to, const char *why);
	/* Congestion control of the sender's streams, once known and when it changes; or NULL. */
	void (*congestion)(void *arg, const char *name, const char *why);
	/* Receiver: a session has locked the part file of the inode, since `since`. `alone`: a private part may
	 * be used instead. NULL: PART_OF_OTHERS. */
	enum part_holder (*contended)(void *arg, struct session *sess, uint64_t dev, uint64_t ino, struct mono since,
	    bool alone);
	/* The control connection is lost, for the reason `why`; attempt number `attempt` to replace it starts after
	 * `wait_ns`. Ends that connect only; or NULL. */
	void (*reconnecting)(void *arg, unsigned attempt, uint64_t wait_ns, const char *why);
	/* No connection over that path of several, because of that hop (connect_result.hop); once, until a stream of
	 * the path connects. */
	void (*path_failed)(void *arg, unsigned path, unsigned hop, const char *why);
	/* paths->place has changed. */
	void (*paths)(void *arg, const char *why);
	/* As connect_opts.check, for relays; required with opts.paths. */
	int (*check)(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
	    struct ptcp_err *e);
	/* As connect_opts.permits, for the addresses of opts.name; or NULL. */
	bool (*permits)(void *arg, const struct addrinfo *all, const struct sockaddr *sa);
	/* The last call: only session_free() remains. `why` NULL: success. */
	void (*gone)(void *arg, struct session *sess, const struct ptcp_err *why);
};

struct session_opts {
	struct context *context;
	struct chan *control;         /* opened, peer's fingerprint accepted; taken, also on failure */
	bool connects;                /* this end opens the data connections (the TLS client) */
	bool one_channel;             /* no data connections: blocks travel on the control connection */
	struct connect *spare;        /* connect_result.spare; taken, also on failure */
	const char *address;          /* address of the peer, for data connections; copied */
	unsigned port;
	const char *label;            /* label of the peer's shared port; outlives the session; NULL: none */
	const char *name;             /* name of the peer, resolved where `address` does not answer;
	                                 copied; NULL: none */
	const char *client;           /* client that lookups are counted for, see connect_opts; outlives the session */
	bool once;                    /* the peer is an ephemeral server */
	struct paths *paths;          /* several, or one with relays; outlives the session. NULL: direct */
	unsigned path;                /* index of the control connection's path */
	uint64_t route_session;       /* random number of the control connection's route, see connect_opts */
	struct sock_opts sock;        /* copied; congestion outlives the session */
	const struct wire_open *open; /* starter: the request; NULL: acceptor */
	uint16_t max_streams;
	unsigned fds;                 /* descriptors from session_take_fds(); taken, also on failure */
	uint64_t timeout_ns;          /* limit without progress, while the peer responds */
	uint64_t linger_ns;           /* limit without any connection; 0: no connection is replaced */
	struct movers *movers;        /* movers for the streams; outlives the session; NULL: see session_use_movers() */
	unsigned streams;             /* active without movers, as far as granted; 0: all granted */
	bool fixed_streams;           /* all granted streams are active, with movers */
	struct memory_account *memory; /* outlives the session; NULL: no limit */
	bool direct_io;               /* files bypass the page cache */
	const struct attr_map *map;   /* starter: changes of attributes; outlives the session; NULL: none */
	uint32_t stripe;              /* acceptor: in OPENED */
	const struct session_ops *ops;
	void *arg;
};

/* Reserves the descriptors of a session with up to `want` streams, of `each` descriptors; fewer streams if room is
 * short. Returns the number of streams, and the descriptors in *fds; 0: no room. `alone`: at least one stream,
 * whatever the room. */
unsigned session_take_fds(unsigned *fds, unsigned want, unsigned each, bool alone);
int session_new(struct session **out, const struct session_opts *o, struct ptcp_err *e);
void session_free(struct session *sess); /* only after ops.gone; NULL is fine */
struct engine *session_engine(struct session *sess);
int session_control_fd(const struct session *sess); /* -1: closed */

/* Acceptor, before session_accept(): movers of the pool accept the data connections. The pool outlives the session. */
void session_use_movers(struct session *sess, struct movers *pool);
/* RUNNING: movers of either end carry the streams. */
bool session_is_striped(const struct session *sess);

/* Starter: rate limit of a path, bit/s; 0: none, PTCP_PATH_IDLE: no new data. */
void session_set_path_rate(struct session *sess, unsigned path, uint64_t bps);
/* Another impact budget, above 0, after session_adapt_streams(); without effect before. */
void session_set_budget(struct session *sess, double ratio);
/* Another maximum of streams, after session_adapt_streams(); not in a group. */
void session_set_most_streams(struct session *sess, unsigned most);
/* Starter, of a session that yields: the rate in bit/s of all streams together down to which the sender yields; 0, at
 * first: without a floor; INFINITY: the sender does not yield. */
void session_set_floor(struct session *sess, double bps);
/* Starter: the limit of all streams together has changed (opts.context->pacing). */
void session_rate_changed(struct session *sess);

/* Ends the session; the peer gets the reason. */
void session_cancel(struct session *sess, const struct ptcp_err *why);

/* Ended or failed; the session is releasing its resources. */
bool session_over(const struct session *sess);
/* The peer has closed the control connection, probably by its end, and has not returned. */
bool session_is_abandoned(const struct session *sess);
/* Ends at once for a newer session of the same client. */
void session_yield(struct session *sess);
/* Whether the session has locked the part file of that inode. */
bool session_has_locked(const struct session *sess, uint64_t dev, uint64_t ino);

/* ---- Sources and destination: before running ---- */

/* Adds a source; `name` NULL: the contents of dir. Keeps a reference to dir. */
int session_send_from(struct session *sess, struct dir *dir, const char *name, struct ptcp_err *e);
/* The only source is the input of the pipe, borrowed for the session's lifetime, as a file of unknown size. */
int session_send_pipe(struct session *sess, struct pipe_source *pipe, struct ptcp_err *e);
/* Starter that has added all its sources before the peer has accepted: offers the first entries early. */
void session_offer_early(struct session *sess);
/* Filters the entries of all sources. `own`: see walk_filter(). Borrows f for the session's lifetime. */
int session_send_filtered(struct session *sess, const struct filter *f, bool own, struct ptcp_err *e);
/* Limits the content of the source, a directory, to a selection. Borrows s for the session's lifetime. */
int session_send_selected(struct session *sess, const struct selection *s, struct ptcp_err *e);
/* Starter that receives, within ops.running: sends the selection to the acceptor. */
void session_select(struct session *sess, const struct selection *s);
/* Starter that removes its sources, before the first entry: the transfer may have earlier and later sessions. Borrows p
 * for the session's lifetime. */
int session_send_removed(struct session *sess, struct published *p, struct ptcp_err *e);
/* Computes these digests (enum ptcp_digest) of each file while it is sent, for ops.file. A file without the expected
 * digest, one of these, fails by PTCP_EVERIFY; copied, NULL: none. */
int session_send_digests(struct session *sess, unsigned digests, const struct sums_expected *expected,
    struct ptcp_err *e);
/* Reports a missing source to the user, and once running to the receiver. */
int session_send_missing(struct session *sess, const char *path, const struct ptcp_err *why);
/* Sets the destination. Takes the content of `place`, also on failure. */
int session_receive_into(struct session *sess, struct destination *place, struct ptcp_err *e);
/* Writes the only file to the pipe instead, borrowed for the session's lifetime. */
int session_receive_pipe(struct session *sess, struct pipe_sink *pipe, struct ptcp_err *e);
/* The same of a starter that receives. */
void session_receive_published(struct session *sess, struct published *p);
/* The rules of the sources, which a receiver with DELETE needs as well. Borrows f for the session's lifetime; after
 * session_receive_into(). */
void session_receive_filtered(struct session *sess, const struct filter *f, bool own);
/* The destination is a file, replaced only if it has the version, see store_match_parse(); after
 * session_receive_into(). */
int session_receive_match(struct session *sess, const char *version, struct ptcp_err *e);
/* What is replaced or removed gets a backup, durable if the files are; after session_receive_into(). */
int session_receive_backup(struct session *sess, struct backup_opts o, struct ptcp_err *e);
/* A directory with older copies of the files, all of one kind; after session_receive_into(). */
struct session_reference {
	enum reference_kind kind;
	const char *path;
	bool own; /* as of backups */
};
int session_receive_reference(struct session *sess, const struct session_reference *o, struct ptcp_err *e);
/* The peer acts for `client`, borrowed, who may only add files, and learns of no other file; after
 * session_receive_into(). */
void session_receive_only_new(struct session *sess, const char *client);
/* Acceptor: grants the request with up to `streams` streams. `expanded`: a source was a pattern. */
void session_accept(struct session *sess, unsigned streams, enum ptcp_cipher cipher, bool expanded);
/* Starter that receives, running: the acceptor has expanded a pattern, so that there may be several sources. */
bool session_sources_expanded(const struct session *sess);
/* The session failed because no stream has reached a mover of the acceptor. Without WIRE_OPEN_MOVERS the acceptor
 * itself accepts the streams. */
bool session_lacks_movers(const struct session *sess);

/* Acceptor: session_take_fds() for this session. */
unsigned session_reserve(struct session *sess, unsigned want, bool alone);
/* Acceptor: tells a starter that waits how many sessions wait before this one. */
void session_wait(struct session *sess, uint32_t ahead);

/* Congestion control of the sender's data streams; "": not known yet. */
const char *session_congestion(const struct session *sess);
/* Whether OPEN requests AUTO, but the sender's kernel permits no congestion control that shares links. */
bool session_lacks_congestion(const struct session *sess);

/* ---- Number of streams ---- */

struct stream_count_opts {
	double budget_ratio;          /* limit of the impact on competing flows */
	unsigned max_streams;
	/* The sender's congestion control is known, or has changed: may call session_recall_probes(). Returns the
	 * number of streams until another transfer of the group decides, or 0: this transfer decides. Or NULL. */
	unsigned (*known)(void *arg, struct session *sess, const char *congestion);
	void *arg;
	struct stream_count_group group;
};

/* Starter, within ops.running: adjusts the number of streams to the observed throughput (engine/stream_count.h). */
void session_adapt_streams(struct session *sess, const struct stream_count_opts *o);
/* Within stream_count_opts.known: uses probes of the path by earlier transfers. */
void session_recall_probes(struct session *sess, const struct probe *probe, size_t count, const struct evidence *e);
/* Result; NULL: the number is fixed. Valid as long as the session. */
const struct stream_control *session_stream_control(const struct session *sess);

/* The warning about leftovers, with the command that removes them beneath `where`, a word for a shell. */
#define SESSION_LEFTOVERS_BYTES 6000
const char *session_leftovers_text(char out[SESSION_LEFTOVERS_BYTES], const struct wire_leftovers *f,
    const char *where);

/* ---- Data connections ---- */

const uint8_t *session_id(const struct session *sess);
enum ptcp_cipher session_cipher(const struct session *sess); /* once running */
enum session_join {
	SESSION_JOIN_INVALID, /* the sender is neither the session's peer nor its mover, or the
	                         session takes no such stream */
	SESSION_JOIN_LATE,    /* the session's peer, but the session is over */
	SESSION_JOIN_VALID
};
/* Judges a JOIN on this connection; `sess` NULL: invalid. */
enum session_join session_join(const struct session *sess, struct chan *c, const struct wire_join *j);
/* Adds a joined channel (without TLS if the cipher is `none`) of a stream, or of WIRE_JOIN_CONTROL; taken. */
void session_add_stream(struct session *sess, unsigned number, struct chan *c);

struct ptcp_progress session_progress(const struct session *sess);
/* Segments retransmitted by data connections; the count of connected streams may lag by one call. */
uint64_t session_retransmits(struct session *sess);
/* Bytes moved by the present data streams: less after the end of a stream. */
uint64_t session_moved_bytes(const struct session *sess);

/* Adds the time that the session has spent so far, as the starter of a transfer; whole seconds have been examined. */
void session_spent(const struct session *sess, struct spent *out);

/* How bytes were spared so far, beside session_progress(). */
struct session_spared {
	uint64_t compared_bytes; /* blocks compared with those of earlier versions, by hash */
	int compress_level;      /* level of zstd in use; 0: none; -1: unknown, at a receiver */
};
struct session_spared session_spared(const struct session *sess);

struct session_path {
	uint64_t bytes;               /* file data carried */
	unsigned streams;             /* connected */
	/* Receiving starter: as the sender's kernel has it; 0: unknown */
	double rtt_s, min_rtt_s;      /* smallest of the streams that send */
	uint64_t segments, lost;      /* sent and retransmitted by all streams */
};
struct session_path session_path(const struct session *sess, unsigned path);

#endif
