/* What a daemon relays: a client asks to be connected to a next hop, then bytes that say nothing to us are
 * moved both ways, on a worker loop. Control thread. */
#ifndef SERVER_RELAY_H
#define SERVER_RELAY_H

#include "conn/context.h"
#include "core/list.h"
#include "net/relay_acl.h"
#include "net/trust.h"
#include "server/relay_storage.h"
#include "wire/frame.h"

struct inbound;
struct relayed;

struct relay {
	struct context *host;
	const struct relay_acl *to;   /* NULL: it relays nothing */
	unsigned most;               /* connections at one time; a client has half of them at most */
	uint64_t timeout_ns;         /* for sockets whose peer acknowledges nothing */
	struct relay_storage holding;      /* nothing is stored unless that is set up */
	struct list list;
	unsigned n;
	void (*gone)(void *arg);     /* one has ended */
	void *arg;
};

void relay_init(struct relay *r, struct context *host, const struct relay_acl *to, unsigned most, uint64_t timeout_ns,
    void (*gone)(void *arg), void *arg);
/* An authorised guest asks. It is refused, or answered once the next hop has been reached; guest->relayed is set
 * meanwhile. */
void relay_ask(struct relay *r, struct inbound *g, const struct wire_route *f);
/* The guest has left TLS: its socket is taken, and inbound_free() is due. */
void relay_begin(struct relayed *d);
/* The guest goes before that. */
void relay_forget(struct relayed *d);
/* Ends what is moved for clients who have lost the right to it. */
void relay_judge_again(struct relay *r, trust_admits_fn *admits, void *arg);
/* Ends all that is being moved; `gone` follows for each. */
void relay_stop(struct relay *r);

#endif
