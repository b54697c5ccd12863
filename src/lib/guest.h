/* A connection to a daemon that has yet to say what it is: TLS handshake, then by its ALPN a control
 * connection, one by virtue of a GRANT, one about errands, a JOIN, or a ROUTE. Costs a bounded time. Control
 * thread. */
#ifndef LIB_GUEST_H
#define LIB_GUEST_H

#include "core/list.h"
#include "lib/host.h"
#include "lib/lobby.h"
#include "net/sock.h"
#include "wire/grant.h"

struct guest;
struct relayed;

/* Each may end the guest or take its channel. */
struct guest_ops {
	void (*control)(void *arg, struct guest *g);                            /* it wants a session */
	/* Likewise, as this allows; it wants us to do an errand. NULL: not here. */
	void (*granted)(void *arg, struct guest *g, const struct wire_grant *f);
	void (*errand)(void *arg, struct guest *g);
	void (*join)(void *arg, struct guest *g, const struct wire_join *j);    /* it wants to be a stream */
	void (*stream)(void *arg, struct guest *g, const struct wire_join *j);  /* welcomed, and ready */
	/* It wants to be relayed; NULL: nobody is. */
	void (*route)(void *arg, struct guest *g, const struct wire_route *f);
	void (*gone)(void *arg);                                                /* freed */
};

struct guest_opts {
	struct host *host;
	int fd;                /* taken, also on failure */
	const char *address;   /* copied */
	struct source *from;   /* where that is */
	bool one_channel;      /* for who asks for a session: this is all there is */
	struct lobby *lobby;   /* it waits there */
	uint64_t timeout_ns;   /* for the socket, once it is a stream */
	const struct guest_ops *ops;
	void *arg;
};

struct guest {
	struct list in_list;
	struct guest_opts o;
	struct chan *chan;
	struct timer *timer;
	char address[SOCK_TEXT_BYTES];
	enum door_end end;     /* what it was, should it be freed now */
	enum { GUEST_HANDSHAKE, GUEST_ASKING, GUEST_ASKED, GUEST_LEAVING_TLS, GUEST_REFUSED } state;
	uint8_t frame[WIRE_GRANT_MAX_BYTES]; /* the first it sends: JOIN, ROUTE or GRANT */
	size_t got;
	struct wire_join join;
	struct relayed *relayed; /* it is being connected to a next hop; or NULL */
};

int guest_new(const struct guest_opts *o, struct ptcp_err *e);
void guest_free(struct guest *g);
/* The channel is the caller's; guest_free() is due. */
struct chan *guest_take_chan(struct guest *g);
/* Tells why and closes. */
void guest_refuse(struct guest *g, const struct ptcp_err *why);
/* Answers JOINED; ops.stream follows, after the hand-over out of TLS if `raw` and it is a stream. */
void guest_welcome(struct guest *g, bool raw);
/* Answers ROUTED; relay_begin() follows, after the hand-over out of TLS. */
void guest_routed(struct guest *g);

#endif
