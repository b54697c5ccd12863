/* Unauthenticated inbound connections of a server, or of a client that the server connects to: TLS
 * handshake, then by ALPN a control connection, a data connection (JOIN), a relayed one (ROUTE), a session by grant
 * (GRANT), or a client that requests a job. Admission control (net/admission.h) and time limits bound the cost.
 * Control thread. */
#ifndef CONN_INBOUND_H
#define CONN_INBOUND_H

#include "conn/context.h"
#include "core/list.h"
#include "net/admission.h"
#include "net/sock.h"
#include "wire/grant.h"

struct inbound;
struct relayed;

/* Requests of an authenticated peer. Negative with `e`: refused, and the peer is told. Else the callback has taken the
 * channel (inbound_take_chan()), or answers a route later. */
struct inbound_ops {
	int (*control)(void *arg, struct inbound *g, struct ptcp_err *e);         /* a session */
	/* A session by grant, a job, to be relayed; NULL: not served. */
	int (*granted)(void *arg, struct inbound *g, const struct wire_grant *f, struct ptcp_err *e);
	int (*job)(void *arg, struct inbound *g, struct ptcp_err *e);
	int (*route)(void *arg, struct inbound *g, const struct wire_route *f, struct ptcp_err *e);
	/* To be a stream, or the next control connection. *plaintext: streams leave TLS. */
	int (*join)(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e);
	void (*stream)(void *arg, struct chan *c, const struct wire_join *j);     /* joined; `c` is taken */
	/* TLS is left, and the relay takes the channel; or the connection ends before. */
	void (*relay_begin)(struct relayed *d);
	void (*relay_forget)(struct relayed *d);
	void (*gone)(void *arg);                                                  /* freed; may be NULL */
};

struct pending_opts {
	struct context *host;
	uint64_t timeout_ns;                 /* for the socket, once a stream */
	unsigned waiting, sessions, streams; /* as admission_new(); `waiting` is reduced where descriptors are few */
	const struct inbound_ops *ops;
	void *arg;
};

/* All connections that wait. */
struct pending {
	struct pending_opts o;
	struct admission *admission;
	struct list waiting;                 /* the oldest first */
	unsigned n;
	uint64_t shut_out;                   /* connections closed at once */
	struct mono shut_out_logged;
};

struct inbound {
	struct list in_list;
	struct pending *pending;
	struct peer_address *from;        /* admission's, of `address` */
	bool one_channel;           /* a session has this connection only */
	struct chan *chan;
	struct timer *timer;
	char address[SOCK_TEXT_BYTES];
	enum admission_end end;     /* verdict for admission, if freed now */
	enum { INBOUND_HANDSHAKE, INBOUND_AWAIT_FRAME, INBOUND_AWAIT_VERDICT, INBOUND_LEAVING_TLS, INBOUND_REFUSED } state;
	uint8_t frame[WIRE_GRANT_MAX_BYTES]; /* the first received: JOIN, ROUTE or GRANT */
	size_t got;
	struct wire_join join;
	struct relayed *relayed;    /* while a relay connects to the next hop; or NULL */
};

int pending_init(struct pending *l, const struct pending_opts *o, struct ptcp_err *e);
/* No connection may wait any more. Zeroed memory is fine. */
void pending_fini(struct pending *l);
/* A new connection. `fd` is taken, and closed at once where admission control says so. */
void pending_take(struct pending *l, int fd, const char *address, bool one_channel);
void pending_empty(struct pending *l);

void inbound_free(struct inbound *g);
struct chan *inbound_take_chan(struct inbound *g);
/* Sends the reason and closes. */
void inbound_refuse(struct inbound *g, const struct ptcp_err *why);
/* Answers ROUTED; ops.relay_begin follows, after TLS is left. */
void inbound_routed(struct inbound *g);

#endif
