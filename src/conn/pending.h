/* Where connections wait that have yet to say what they are: guests behind a door (net/admission.h), of a daemon
 * or of a client that its server is to connect to. Control thread. */
#ifndef CONN_PENDING_H
#define CONN_PENDING_H

#include "conn/context.h"
#include "core/list.h"
#include "net/admission.h"

struct inbound;
struct inbound_ops;

struct pending_opts {
	struct context *host;
	uint64_t timeout_ns;                   /* for the socket, once it is a stream */
	unsigned waiting, sessions, streams;   /* as admission_new() has them; fewer wait where descriptors are few */
	const struct inbound_ops *ops;
	void *arg;
};

struct pending {
	struct pending_opts o;
	struct admission *admission;
	struct list guests;                    /* the oldest first */
	unsigned n;
	uint64_t shut_out;                     /* connections closed at once */
	struct mono told;                      /* when that was said last */
};

int pending_init(struct pending *l, const struct pending_opts *o, struct ptcp_err *e);
/* Every guest must be gone. Zeroed memory is fine. */
void pending_fini(struct pending *l);
/* A connection comes; `fd` is taken, and perhaps closed at once. `one_channel`: for who asks for a session this is
 * all there is. */
void pending_take(struct pending *l, int fd, const char *address, bool one_channel);
/* A guest is about to be freed. */
void pending_left(struct pending *l, struct peer_address *from, enum admission_end how);
void pending_empty(struct pending *l);

#endif
