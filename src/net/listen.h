/* Listening. Everything on the thread of the loop. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include "net/loop.h"
#include "net/sock.h"

/* Listens; `accepted` is called from the loop with each new socket, takes it, and may free the listener. When
 * the process has no descriptors left, new connections are closed at once. `where`: "ADDR", "ADDR:PORT",
 * "[V6]:PORT", ":PORT" or "PORT"; without an address (or "*") every address; port 0: a free port. NULL: every
 * address, default_port. PTCP_EUSAGE, or PTCP_ECONFIG when the address or port is unavailable. */
struct listener;
int listener_new(struct listener **out, struct loop *l, const char *where, unsigned default_port,
    void (*accepted)(void *arg, int *fd, const char *address), void *arg, struct ptcp_err *e);
/* As listener_new(), with a listening socket, which is taken, also on failure. PTCP_ECONFIG for other
 * descriptors. */
int listener_take(struct listener **out, struct loop *l, int *fd,
    void (*accepted)(void *arg, int *fd, const char *address), void *arg, struct ptcp_err *e);
/* Accepts nothing for 50 ms: new connections wait. */
void listener_rest(struct listener *ls);
/* Accepts nothing until released: new connections wait in the kernel. */
void listener_hold(struct listener *ls, bool hold);
void listener_free(struct listener *ls); /* NULL is fine */
/* The address ("127.0.0.1" or "::") and port. */
const char *listener_address(const struct listener *ls);
unsigned listener_port(const struct listener *ls);

#endif
