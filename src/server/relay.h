/* Relayed connections of a server: a client requests a connection to a next hop, then a worker loop moves encrypted
 * bytes in both directions. Connections of clients that request storage spool to disk while the next hop is slower
 * than the input. Control thread, except for the splices. */
#ifndef SERVER_RELAY_H
#define SERVER_RELAY_H

#include "conn/context.h"
#include "core/list.h"
#include "core/memory_budget.h"
#include "fs/io.h"
#include "net/relay_acl.h"
#include "net/splice.h"
#include "net/trust/trust.h"
#include "server/relay_room.h"
#include "wire/frame.h"

struct inbound;
struct relayed;

struct relay {
	struct context *context;
	struct relay_acl *to;  /* permitted next hops; NULL: none */
	unsigned max;                /* number of connections; at most half for a single client */
	uint64_t timeout_ns;         /* time-out of sockets whose peer acknowledges nothing */
	struct {
		struct spool_quota all;  /* max_bytes 0: nothing is spooled */
		const char *dir;
		struct io *io;
		struct list clients;
	} storage;
	struct list list;
	unsigned n;
	struct relay_room room;
	struct memory_budget *memory; /* NULL: no limit */
	void (*gone)(void *arg);     /* a connection has ended */
	void *arg;
};

/* Descriptors of the smallest relay, for one session. */
unsigned relay_min_fds(bool stores);
/* Borrows all but the numbers; relay_fini() once no connection is left. */
void relay_init(struct relay *r, struct context *context, struct relay_acl *to, unsigned max, uint64_t timeout_ns,
    void (*gone)(void *arg), void *arg);
void relay_fini(struct relay *r); /* zeroed is fine */
/* Storage of all connections together, at most half of the bytes for a single client; borrows `dir` and `io`. */
void relay_set_storage(struct relay *r, uint64_t max_bytes, const char *dir, struct io *io);
uint64_t relay_stored_bytes(const struct relay *r);
/* The request of an authorized client, or of a mover of the client: as inbound_ops.route; answered once the next hop is
 * connected; g->relayed is set until then. */
int relay_request(struct relay *r, struct inbound *g, const struct wire_route *f, const char *client,
    const struct trust_proof *proof, struct ptcp_err *e);
/* The inbound connection has left TLS: takes the socket; inbound_free() is due. */
void relay_begin(struct relayed *d);
/* The inbound connection ends before that. */
void relay_forget(struct relayed *d);
/* After a change of the authorized clients: ends connections without permission. */
void relay_reauthorize(struct relay *r, trust_admits_fn *admits, void *arg);
/* Ends all connections that move bytes; `gone` follows for each. */
void relay_stop(struct relay *r);

#endif
