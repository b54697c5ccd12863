/* The movers of an engine: processes on other hosts of the site, which join by an invitation and carry out streams.
 * Movers join and leave at any time. Control thread.
 *
 *   session > movers > link > mover process (work/work.c) > stream
 */
#ifndef MOVER_MOVERS_H
#define MOVER_MOVERS_H

#include <ptcp/ptcp.h>

#include "conn/connect.h"
#include "core/log.h"
#include "net/loop.h"
#include "store/sink.h"
#include "store/source.h"
#include "stream/stream.h"
#include "wire/mover.h"

struct movers;
struct mover;
struct remote_stream;

#define MOVERS_MAX 128

/* A directory as the engine names it, and its absolute path on every host. */
struct movers_base {
	char *given, *absolute;
};

struct movers_opts {
	struct loop *control;
	const struct log *log;
	const char *file;                /* path of the invitation; NULL: standard input of the
	                                    commands of movers_launch() */
	const char *listen;              /* address of the listener, see listener_new(); NULL: every
	                                    address, a free port */
	const struct movers_base *base;  /* directories of the sources, copied, */
	size_t n_bases;
	char *const *root;               /* absolute paths that movers may read; copied */
	size_t n_roots;
	bool writes;                     /* movers receive: they may write part files there */
	bool direct_io;                  /* files bypass the page cache */
	bool serves;                     /* the set is a server's, for movers_open(); movers listen on `port` */
	unsigned port;                   /* port of the movers' hosts; 0: a free one */
	uint64_t wait_ns;                /* patience for the first mover, and after the last loss; not for a server */
	/* A mover has joined or left: a sentence for the user. */
	void (*notify)(void *arg, const char *text);
	void *arg;
};

int movers_new(struct movers **out, const struct movers_opts *o, struct ptcp_err *e);

/* A session of a server, whose movers accept the data connections. */
struct movers_session {
	const uint8_t *id, *key;         /* copied */
	const char *peer;                /* fingerprint of the client; copied */
	const char *near;                /* numeric address of the server towards the client; copied */
	enum ptcp_cipher cipher;
	bool verify, receives;
	bool patient;                    /* no limit on unacknowledged data */
	unsigned streams;                /* granted */
	uint64_t timeout_ns;             /* time-out of the data connections */
	uint64_t wait_ns;                /* patience, as in movers_opts */
	/* A mover accepts connections at the endpoint, or has left. */
	void (*endpoint)(void *arg, const struct wire_endpoint *f);
	/* A data connection has joined: the owner attaches a stream, or cancels it. */
	void (*accepted)(void *arg, unsigned number, struct remote_stream *r);
	void *arg;
};
/* The set of the session, of movers of the pool. */
int movers_open(struct movers **out, struct movers *pool, const struct movers_session *s, struct ptcp_err *e);
/* Whether movers of the pool can open files beneath the directory. */
bool movers_cover(struct movers *pool, const char *dir);

/* Movers and launchers end. No stream of a mover, and no set of a session, may be left. NULL is fine. */
void movers_free(struct movers *m);
/* The path for `ptcp mover --join`: the file, or "-". */
const char *movers_invitation(const struct movers *m);
/* Runs a command to start movers, on `host` if not NULL, and logs the output. */
int movers_launch(struct movers *m, char *const *argv, const char *host, struct ptcp_err *e);
/* Checks how movers are to be started: `command`, or NULL if others start them, with the invitation in `file`, or not
 * at all (both NULL); `ptcp` and `listen`, as given by the user, may be NULL. PTCP_EUSAGE. */
int movers_check(const char *command, size_t n_hosts, const char *file, const char *ptcp, const char *listen,
    struct ptcp_err *e);
/* --stripe-size, 0: none. PTCP_EUSAGE: not a multiple of WIRE_STRIPE_BYTES, too large, or without movers. */
int movers_check_stripe(uint64_t bytes, bool striped, struct ptcp_err *e);
/* Starts movers by the words of `command`, followed by "PTCP mover --join FILE" (`ptcp` NULL: "ptcp"): once, or once
 * per host with {host} replaced. PTCP_EUSAGE. */
int movers_start(struct movers *m, const char *command, const char *const *host, size_t n_hosts, const char *ptcp,
    struct ptcp_err *e);

unsigned movers_count(const struct movers *m);
/* `changed` is called when a mover has joined or left; NULL: no longer. */
void movers_watch(struct movers *m, void (*changed)(void *arg), void *arg);
/* Deals streams: place[i] is the id of the mover of stream i, or 0; see deal_streams(). */
bool movers_deal(const struct movers *m, uint32_t *place, unsigned n, const uint8_t *path);
struct mover *movers_find(const struct movers *m, uint32_t id); /* NULL: gone */
/* PTCP_ECONNECT: no mover is left, and none has joined in time. 0: at least one mover, or time is left. */
int movers_fault(const struct movers *m, struct mono now, struct ptcp_err *e);
struct mono movers_deadline(const struct movers *m); /* deadline of movers_fault() */
/* The limit of all streams together, in bit/s, divided among the movers; 0: none. */
void movers_set_rate(struct movers *m, uint64_t bps);
/* Congestion control of all streams from now on. */
void movers_set_congestion(struct movers *m, const char *name);
/* The source with the id is complete, or given up. */
void movers_forget(struct movers *m, uint64_t id);

/* ---- Files that movers write ---- */

struct movers_target_ops {
	/* A mover has received data of the file: movers_target() or movers_close_of() must follow. */
	void (*wanted)(void *arg, uint32_t mover, uint64_t id);
	/* After movers_close(): no mover writes into the file any more. */
	void (*closed)(void *arg, uint64_t id);
};
/* NULL: no longer. */
void movers_watch_targets(struct movers *m, const struct movers_target_ops *ops, void *arg);
/* Describes the open part of the file to the mover, if it is still there. */
void movers_target(struct movers *m, uint32_t mover, uint64_t id, struct sink *s, unsigned flags);
/* The same, to all movers. */
void movers_target_all(struct movers *m, uint64_t id, struct sink *s, unsigned flags);
/* There is no such file. */
void movers_close_of(struct movers *m, uint32_t mover, uint64_t id);
/* No mover may write into the file from now on. True: ops.closed follows; false: no mover has it open. */
bool movers_close(struct movers *m, uint64_t id);

/* Of mover number i, below movers_count(). */
void movers_stats(const struct movers *m, unsigned i, struct ptcp_mover_stats *out);

/* ---- Streams ---- */

struct remote_opts {
	unsigned number;                 /* number of the stream */
	const uint8_t *session, *key;    /* id and key of the session; copied */
	const char *peer;                /* fingerprint of the peer */
	enum ptcp_cipher cipher;
	bool verify, ahead;
	bool patient;                    /* no limit on unacknowledged data */
	bool receives;
	struct sock_opts sock;
	const char *host, *label;        /* label may be NULL */
	unsigned port;
	const struct connect_hop *relay; /* n_relays, in order; borrowed until `done` */
	unsigned n_relays;
	uint64_t spool_bytes, route_session; /* values of connect_opts */
	const struct identity *issuer;   /* issuer of the grants for relays; borrowed */
	uint64_t connect_ns;
	/* As connect_opts has it, for the relays. */
	int (*check)(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
	    struct ptcp_err *e);
	/* Once: joined, and the owner attaches a stream of remote_stream_kind; or failed (r NULL), with cause, hop and
	 * why of `result`. */
	void (*done)(void *arg, struct remote_stream *r, const struct connect_result *result);
	void *arg;
};

/* Has the mover make a data connection. */
int remote_connect(struct remote_stream **out, struct mover *m, const struct remote_opts *o, struct ptcp_err *e);
/* Instead of `done`, or after `done` instead of a stream. NULL is fine. */
void remote_cancel(struct remote_stream *r);
uint32_t remote_mover(const struct remote_stream *r);
/* A number made of the identity at the other end of the data connection. */
uint32_t remote_peer(const struct remote_stream *r);
/* Received by the stream and written. */
void remote_count(struct remote_stream *r, uint64_t bytes);
/* `s` was made with remote_stream_kind and `r`. */
void remote_attach(struct remote_stream *r, struct stream *s);
extern const struct stream_kind remote_stream_kind;

#endif
