/* Listening. Everything on the thread of the loop. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include "net/loop.h"
#include "net/sock.h"

/* Listens; `accepted` comes from the loop with each new socket, which is its; it may free the listener. For
 * want of descriptors connections are closed at once. `where`: "ADDR", "ADDR:PORT", "[V6]:PORT", ":PORT" or
 * "PORT"; without an address (or "*") every one; port 0: a free one. NULL: every address, default_port.
 * PTCP_EUSAGE, or PTCP_ECONFIG when it cannot be had. */
struct listener;
int listener_new(struct listener **out, struct loop *l, const char *where, unsigned default_port,
    void (*accepted)(void *arg, int fd, const char *address), void *arg, struct ptcp_err *e);
/* The same with a socket that listens already, which is taken, also on failure. PTCP_ECONFIG for any other
 * descriptor. */
int listener_take(struct listener **out, struct loop *l, int fd,
    void (*accepted)(void *arg, int fd, const char *address), void *arg, struct ptcp_err *e);
void listener_free(struct listener *ls); /* NULL is fine */
/* "127.0.0.1" or "::", and the port. */
const char *listener_address(const struct listener *ls);
unsigned listener_port(const struct listener *ls);

#endif
