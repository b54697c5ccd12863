/* Connecting. Everything on the thread of the loop. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "net/resolve.h"

struct dial_opts {
	struct resolver *names; /* NULL: numeric hosts only */
	const char *client;     /* client whose lookups are counted, see resolve_start() */
	const char *host;       /* copied */
	unsigned port;
	struct sock_opts sock;  /* its texts are borrowed until `done` */
	/* Whether to try `sa`, one of the addresses `all` of the host; NULL: every address. */
	bool (*permits)(void *arg, const struct addrinfo *all, const struct sockaddr *sa);
	/* Once, from the loop: with a non-blocking socket, which is taken, and the address reached; or with -1 and
	 * PTCP_ECONNECT, PTCP_EREFUSED without any permitted address, PTCP_EUSAGE for an unavailable congestion
	 * control. */
	void (*done)(void *arg, int *fd, const char *address, const struct ptcp_err *why);
	void *arg;
};

/* Connects to a name or address: tries all its addresses, IPv6 and IPv4 alternating, each 250 ms after the
 * previous or once the previous has failed (RFC 8305). */
struct dial;
int dial_start(struct dial **out, struct loop *l, const struct dial_opts *o, struct ptcp_err *e);
/* Only before `done`, and instead of `done`. NULL is fine. */
void dial_cancel(struct dial *d);

#endif
