/* The way to a host: directly, or through relays one after the other, each of which we authenticate ourselves,
 * through those before it. Control thread. */
#ifndef CONN_ROUTE_H
#define CONN_ROUTE_H

#include "conn/context.h"
#include "net/sock.h"

#define ROUTE_RELAYS_MAX 8

/* "HOST:PORT" of each relay, in order. */
struct route_hop {
	char host[SOCK_HOST_BYTES];
	unsigned port;
};

struct route_opts {
	struct context *host;
	const struct route_hop *relay;  /* n_relays of them, borrowed until `done` */
	unsigned n_relays;            /* 0: directly */
	const char *to;               /* the end; copied */
	unsigned port;
	uint64_t hold_bytes;          /* that each relay may hold on the way; 0: nothing */
	struct sock_opts sock;        /* its time-out is for all of the way */
	/* Is this the relay it should be? 0, or negative with `e`. */
	int (*check)(void *arg, const struct route_hop *relay, const char *fingerprint, struct ptcp_err *e);
	/* Once, from the loop: a socket that is the caller's and leads to the end, which is yet to be
	 * authenticated, and the address that was connected to (with relays, the name of the end); or -1:
	 * PTCP_ECONNECT, PTCP_EREFUSED.. */
	void (*done)(void *arg, int fd, const char *address, const struct ptcp_err *why);
	void *arg;
};

struct route;
int route_start(struct route **out, const struct route_opts *o, struct ptcp_err *e);
/* Only before `done`, which then does not come. NULL is fine. */
void route_cancel(struct route *w);

#endif
