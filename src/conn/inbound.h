/* Unauthenticated inbound connections of a server, or of a client that the server connects to: TLS
 * handshake, then by ALPN a control connection, a data connection (JOIN), a relayed one (ROUTE), a session under a
 * grant (GRANT), or a client that requests a job. Admission control (net/admission.h) and time limits bound the cost.
 * Control thread. */
#ifndef CONN_INBOUND_H
#define CONN_INBOUND_H

#include "conn/context.h"
#include "core/list.h"
#include "core/memory_budget.h"
#include "net/admission.h"
#include "net/sock.h"
#include "wire/grant.h"

struct inbound;
struct relayed;

/* The client of the memory budget that is charged for all pending connections, while their clients are unknown. */
#define INBOUND_STRANGERS "strangers"

enum inbound_lend {
	INBOUND_LEND_UNKNOWN, /* no process has that label */
	INBOUND_LENT,
	INBOUND_LEND_BUSY     /* try again, see pending_lend_again() */
};

/* Requests of an authenticated peer. Negative with `e`: refused; the peer gets the reason. Otherwise the callback has
 * taken the channel (inbound_take_chan()), or answers a route later. */
struct inbound_ops {
	int (*control)(void *arg, struct inbound *g, struct ptcp_err *e);         /* a session; NULL: not served */
	/* A session under a grant; a job; a relayed connection, perhaps under a grant (else NULL). NULL: not served. */
	int (*granted)(void *arg, struct inbound *g, const struct wire_grant *f, struct ptcp_err *e);
	int (*job)(void *arg, struct inbound *g, struct ptcp_err *e);
	int (*route)(void *arg, struct inbound *g, const struct wire_route *f, const struct wire_grant *grant,
	    struct ptcp_err *e);
	/* A stream, or the successor of a control connection. *plaintext: set if the stream leaves TLS. */
	int (*join)(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e);
	void (*stream)(void *arg, struct chan *c, const struct wire_join *j);     /* joined; `c` is taken */
	/* A mover: checks the JOIN, writes JOINED. NULL: not served. */
	int (*mover)(void *arg, struct inbound *g, const struct wire_join *j, struct ptcp_err *e);
	/* The channel has left TLS, and the relay takes the socket; or the connection ended earlier. */
	void (*relay_begin)(struct relayed *d);
	void (*relay_forget)(struct relayed *d);
	void (*gone)(void *arg);                                                  /* freed; may be NULL */
	/* With pending.peeks: passes a copy of `fd`, of which no byte was read, to the process with that label. */
	enum inbound_lend (*lend)(void *arg, const char *label, int fd);
};

struct pending_opts {
	struct context *context;
	uint64_t timeout_ns;                 /* time-out of the socket after JOIN */
	unsigned waiting, sessions, streams; /* limits for admission_new(); few descriptors reduce `waiting` */
	struct memory_budget *memory;        /* NULL: no limit */
	const struct inbound_ops *ops;
	void *arg;
};

/* All pending connections. */
struct pending {
	struct pending_opts o;
	struct admission *admission;
	struct list waiting;                 /* the oldest first */
	unsigned n;
	uint64_t shut_out;                   /* connections closed on arrival */
	struct mono shut_out_logged;
	struct log_limit log_limit;
	bool peeks;                          /* the port is shared: look for labels in new connections */
};

struct inbound {
	struct list in_list;
	struct pending *pending;
	struct peer_address *from;        /* admission's, of `address` */
	bool one_channel;           /* a session has this connection only */
	struct watch *peek;         /* watches until the label of the connection is known; then NULL */
	int fd;                     /* socket while `peek` */
	size_t peeked;              /* bytes examined so far */
	struct memory_account *memory; /* account of INBOUND_STRANGERS; NULL: no limit */
	struct handshake *handshake; /* the handshake follows the label */
	struct chan *chan;          /* channel of an accepted connection */
	struct timer *timer;
	char address[SOCK_TEXT_BYTES];
	enum admission_end end;     /* verdict for admission, if freed now */
	enum { INBOUND_HANDSHAKE, INBOUND_AWAIT_FRAME, INBOUND_AWAIT_VERDICT, INBOUND_LEAVING_TLS,
	    INBOUND_REFUSED } state;
	uint8_t frame[WIRE_GRANT_MAX_BYTES + WIRE_ROUTE_MAX_BYTES]; /* received: JOIN, ROUTE or
	                                                               GRANT, or GRANT and ROUTE */
	size_t got, at;             /* `at`: where the last of them begins */
	struct wire_join join;
	struct relayed *relayed;    /* relayed connection while a relay connects to the next hop; or NULL */
};

int pending_init(struct pending *l, const struct pending_opts *o, struct ptcp_err *e);
/* All connections must have ended. Zeroed memory is fine. */
void pending_fini(struct pending *l);
/* A new connection. Takes `fd`, and closes it if admission control refuses the address. Without memory for another one,
 * the oldest connection is closed, and the new one if there is no other. */
void pending_take(struct pending *l, int *fd, const char *address, bool one_channel);
void pending_empty(struct pending *l);
/* After INBOUND_LEND_BUSY. */
void pending_lend_again(struct pending *l);

void inbound_free(struct inbound *g);
struct chan *inbound_take_chan(struct inbound *g);
/* Sends the reason and closes. */
void inbound_refuse(struct inbound *g, const struct ptcp_err *why);
/* Logs an event of an unauthenticated connection: "event=EVENT from=ADDRESS ", then the rest. All such lines together
 * are limited, as strangers cause them. */
void inbound_log(struct inbound *g, enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Answers ROUTED; ops.relay_begin follows, after TLS is left. */
void inbound_routed(struct inbound *g);

#endif
