/* A connection to a daemon that has yet to say what it is: TLS handshake, then by its ALPN a control
 * connection, one by virtue of a GRANT, one about errands, a JOIN, or a ROUTE. Costs a bounded time. Control
 * thread. */
#ifndef CONN_INBOUND_H
#define CONN_INBOUND_H

#include "conn/context.h"
#include "conn/pending.h"
#include "core/list.h"
#include "net/sock.h"
#include "wire/grant.h"

struct inbound;
struct relayed;

/* Each may end the guest or take its channel. */
struct inbound_ops {
	void (*control)(void *arg, struct inbound *g);                            /* it wants a session */
	/* Likewise, as this allows; it wants us to do an errand. NULL: not here. */
	void (*granted)(void *arg, struct inbound *g, const struct wire_grant *f);
	void (*job)(void *arg, struct inbound *g);
	void (*join)(void *arg, struct inbound *g, const struct wire_join *j);    /* it wants to be a stream */
	void (*stream)(void *arg, struct inbound *g, const struct wire_join *j);  /* welcomed, and ready */
	/* It wants to be relayed; NULL: nobody is. */
	void (*route)(void *arg, struct inbound *g, const struct wire_route *f);
	/* The hand-over out of TLS is done: the relay takes the channel; or the connection ends before. */
	void (*relay_begin)(struct relayed *d);
	void (*relay_forget)(struct relayed *d);
	void (*gone)(void *arg);                                                /* freed; NULL: not told */
};

struct inbound_opts {
	struct context *host;
	int fd;                /* taken, also on failure */
	const char *address;   /* copied */
	struct peer_address *from;   /* where that is */
	bool one_channel;      /* for who asks for a session: this is all there is */
	struct pending *pending;   /* it waits there */
	uint64_t timeout_ns;   /* for the socket, once it is a stream */
	const struct inbound_ops *ops;
	void *arg;
};

struct inbound {
	struct list in_list;
	struct inbound_opts o;
	struct chan *chan;
	struct timer *timer;
	char address[SOCK_TEXT_BYTES];
	enum admission_end end;     /* what it was, should it be freed now */
	enum { INBOUND_HANDSHAKE, INBOUND_ASKING, INBOUND_ASKED, INBOUND_LEAVING_TLS, INBOUND_REFUSED } state;
	uint8_t frame[WIRE_GRANT_MAX_BYTES]; /* the first it sends: JOIN, ROUTE or GRANT */
	size_t got;
	struct wire_join join;
	struct relayed *relayed; /* it is being connected to a next hop; or NULL */
};

int inbound_new(const struct inbound_opts *o, struct ptcp_err *e);
void inbound_free(struct inbound *g);
/* The channel is the caller's; inbound_free() is due. */
struct chan *inbound_take_chan(struct inbound *g);
/* Tells why and closes. */
void inbound_refuse(struct inbound *g, const struct ptcp_err *why);
/* Answers JOINED; ops.stream follows, after the hand-over out of TLS if `raw` and it is a stream. */
void inbound_welcome(struct inbound *g, bool raw);
/* Answers ROUTED; ops.relay_begin follows, after the hand-over out of TLS. */
void inbound_routed(struct inbound *g);

#endif
