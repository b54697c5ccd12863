/* Inside movers.c (set, joins, rates), pool.c (movers of a server), launch.c and remote_stream.c (streams of a
 * mover). */
#ifndef MOVER_MOVERS_IMPL_H
#define MOVER_MOVERS_IMPL_H

#include "conn/inbound.h"
#include "core/list.h"
#include "mover/deal.h"
#include "mover/invitation.h"
#include "mover/link.h"
#include "mover/movers.h"
#include "net/child.h"
#include "net/line_reader.h"
#include "net/listen.h"

#define MOVER_HANDLES WIRE_MOVER_HANDLES

/* A stream of a mover, from remote_connect() to GONE. */
struct remote_stream {
	struct mover *mover;     /* NULL: lost */
	uint32_t handle, peer;
	enum { REMOTE_CONNECTING, REMOTE_CONNECTED, REMOTE_STREAM, REMOTE_STOPPING, REMOTE_ORPHAN } state;
	struct stream *stream;
	void (*done)(void *arg, struct remote_stream *r, const struct connect_result *result);
	int (*check)(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
	    struct ptcp_err *e);
	void *arg;
	/* While connecting: */
	const struct connect_hop *relay;
	unsigned n_relays, n_passed; /* n_passed: relays that are trusted, so far */
	struct connect_hop to;   /* behind the relays */
	const struct identity *issuer;
};

struct mover {
	struct list in_list;
	struct movers *set;
	struct mover_link *link;
	uint64_t tick;           /* number in its last PING */
	uint32_t id;
	bool joined;             /* has sent MOVER */
	bool listens;            /* the set is a session's, and the endpoint of this mover is known */
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	char host[WIRE_HOST_MAX + 1], address[SOCK_TEXT_BYTES];
	struct peer_address *from; /* admission's, of `address` */
	uint64_t *known;         /* by slot: id of the file that the mover knows; 0: none */
	struct list closing;     /* files whose CLOSED is yet to come */
	struct remote_stream *remote[MOVER_HANDLES]; /* streams by handle modulo MOVER_HANDLES */
	uint32_t next_handle;
	unsigned n_streams;
	uint64_t bytes, bytes_before;
	double rate_bps;
	uint64_t share_bps;
};

struct closing {
	struct list in_list;
	uint64_t id;
};

struct launcher {
	struct list in_list;
	struct movers *set;
	struct child *child;
	struct line_reader *lines;
	bool ended;
	int status, signal;
	char host[100];          /* a host of --mover-hosts; "": the command is started once for all */
	char last[200];          /* line of its output */
};

struct movers {
	struct movers_opts o;
	struct movers_base *base;
	struct context context;     /* context of the listener: without workers and I/O threads */
	struct pending pending;
	struct listener *listener;
	struct invitation invitation;
	char *file, *text;
	int file_fd;             /* descriptor that keeps `file` locked, see invitation_write() */
	struct timer *timer;
	struct list movers, launchers;
	unsigned n;              /* movers that have joined */
	uint32_t last_id;
	struct mono none_since;
	bool ever;               /* a mover has joined */
	struct ptcp_err why;     /* error of the last loss */
	uint64_t rate_bps;
	char congestion[WIRE_CONGESTION_MAX + 1];
	struct mono metered;
	void (*changed)(void *arg);
	void *changed_arg;
	struct movers_base into; /* the base of the last path that is in no `base` */
	const struct movers_target_ops *target_ops;
	void *target_arg;
	/* members of a server's pool, which has a set for each session: */
	struct list sessions;
	unsigned n_sessions;
	struct movers *pool;     /* pool of the server, if the set is a session's; else NULL */
	struct list in_pool;
	struct movers_session session;
	uint8_t session_id[WIRE_SESSION_BYTES], session_key[32];
	char session_peer[PTCP_FINGERPRINT_BYTES], session_near[SOCK_HOST_BYTES];
};

/* launch.c */
void launchers_free(struct movers *m);

/* movers.c: the user of the set is to look again. */
void movers_changed(const struct movers *m);
/* A set without a listener; and the timer of its rates. */
struct movers *movers_bare(const struct movers_opts *o);
int movers_meter(struct movers *m, struct ptcp_err *e);
/* The frames of a mover; the owner is a struct mover. */
extern const struct frame_table mover_table;

/* pool.c: the set of a JOIN, NULL: none; `m` is the set with the listener. */
struct movers *pool_find(struct movers *m, const struct wire_join *j);
/* Whether a mover of the pool has that fingerprint. */
bool pool_vouches(const struct movers *pool, const char *fingerprint);
/* A mover of the pool has joined: invites it to all sessions. */
void pool_joined(struct mover *v);
/* A mover of a session has named its endpoint, or has left. */
int pool_on_endpoint(struct mover *v, const struct wire_endpoint *f, struct ptcp_err *e);
void pool_left(const struct mover *v);
/* Adds what a mover of a session has carried since the last call to the mover of the pool. */
void pool_count(const struct mover *v, bool last);
/* Of a mover of the pool, in all sessions. */
unsigned pool_streams(const struct mover *v);

/* remote_relays.c: the relays of STREAM; and HOP. */
struct span remote_relays(char out[WIRE_RELAYS_MAX + 1], const struct connect_hop *relay, unsigned n);
int remote_on_hop(struct mover *m, const struct wire_hop *f, struct ptcp_err *e);

/* remote_stream.c: frames of a mover; and its end, for its streams. */
int remote_on_connected(struct mover *m, const struct wire_connected *f, struct ptcp_err *e);
int remote_on_accepted(struct mover *m, const struct wire_accepted *f, struct ptcp_err *e);
int remote_on_lost(struct mover *m, const struct wire_lost *f, struct ptcp_err *e);
int remote_on_gone(struct mover *m, const struct wire_gone *f, struct ptcp_err *e);
int remote_on_unread(struct mover *m, const struct wire_unread *f, struct ptcp_err *e);
int remote_on_sent(struct mover *m, const struct wire_sent *f, struct ptcp_err *e);
int remote_on_traffic(struct mover *m, const struct wire_traffic *f, struct ptcp_err *e);
void remote_end_all(struct mover *m, const struct ptcp_err *why);
struct remote_stream *remote_find(const struct mover *m, uint32_t handle);
int remote_no_such(struct ptcp_err *e);
/* The data connection could not be made. */
void remote_fail(struct remote_stream *r, const struct connect_result *result);
/* What a mover says why something failed. */
void remote_reason(struct ptcp_err *why, const struct mover *m, const struct wire_why *w);
/* The path below a root of the invitation, in `path`; NULL: below none. */
const char *remote_below_root(const struct movers *set, const char *path, uint16_t *root);
/* The absolute path of a directory, the same on every host; "": unknown. */
const char *remote_absolute(struct movers *set, const char *given);

/* remote_receive.c */
int remote_on_want(struct mover *m, const struct wire_want *f, struct ptcp_err *e);
int remote_on_wrote(struct mover *m, const struct wire_wrote *f, struct ptcp_err *e);
int remote_on_unwritten(struct mover *m, const struct wire_unwritten *f, struct ptcp_err *e);
int remote_on_closed(struct mover *m, const struct wire_closed *f, struct ptcp_err *e);
/* A mover that has left the list writes no more. */
void remote_targets_end(struct movers *set, struct mover *gone);

#endif
