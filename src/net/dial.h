/* Connecting. Everything on the thread of the loop. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "net/loop.h"
#include "net/sock.h"

/* Connects to a name or address: all its addresses, IPv6 and IPv4 in turns, each tried 250 ms after
 * the one before or when that has failed (RFC 8305). `done` comes once, from the loop: a non-blocking
 * socket that is the caller's, and the address it has reached; or -1 and PTCP_ECONNECT (PTCP_EUSAGE for a
 * congestion control that cannot be had). `o->congestion` is borrowed until then. */
struct dial;
int dial_start(struct dial **out, struct loop *l, const char *host, unsigned port,
    const struct sock_opts *o,
    void (*done)(void *arg, int fd, const char *address, const struct ptcp_err *why), void *arg,
    struct ptcp_err *e);
/* Directly after dial_start(): only to addresses of the host that `permits` says yes to; PTCP_EREFUSED when there
 * is none. */
void dial_only(struct dial *d, bool (*permits)(void *arg, const struct sockaddr *sa), void *arg);
/* Only before `done`, which then does not come. NULL is fine. */
void dial_cancel(struct dial *d);

#endif
