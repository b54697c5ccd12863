/* Connecting. Everything on the thread of the loop. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "net/loop.h"
#include "net/sock.h"

/* Connects to a name or address: tries all its addresses, IPv6 and IPv4 alternating, each 250 ms after the
 * previous or once the previous has failed (RFC 8305). `done` is called once, from the loop: with a
 * non-blocking socket, owned by the caller, and the address reached; or with -1 and PTCP_ECONNECT
 * (PTCP_EUSAGE for an unavailable congestion control). `o->congestion` is borrowed until then. */
struct dial;
int dial_start(struct dial **out, struct loop *l, const char *host, unsigned port, const struct sock_opts *o,
    void (*done)(void *arg, int fd, const char *address, const struct ptcp_err *why), void *arg,
    struct ptcp_err *e);
/* Directly after dial_start(): tries only addresses accepted by `permits`; PTCP_EREFUSED without any. */
void dial_filter(struct dial *d, bool (*permits)(void *arg, const struct sockaddr *sa), void *arg);
/* Only before `done`, and instead of `done`. NULL is fine. */
void dial_cancel(struct dial *d);

#endif
