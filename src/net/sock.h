/* Addresses, connecting and listening. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

#define SOCK_TEXT_BYTES 72 /* "[v6%scope]:port" */
#define SOCK_HOST_BYTES 256

struct sock_opts {
	int family;             /* 0, 4 or 6 */
	uint64_t timeout_ns;    /* for connecting; then for data that nobody acknowledges, and for silence */
	const char *congestion; /* NULL: the system's */
};

/* Connects to a name or address: all its addresses, IPv6 and IPv4 in turns, each tried 250 ms after
 * the one before or when that has failed (RFC 8305). `done` comes once, from the loop: a non-blocking
 * socket that is the caller's, and the address it has reached; or -1 and PTCP_ECONNECT. `host` and
 * o->congestion are borrowed until then. */
struct dial;
int dial_start(struct dial **out, struct loop *l, const char *host, unsigned port,
    const struct sock_opts *o,
    void (*done)(void *arg, int fd, const char *address, const struct ptcp_err *why), void *arg,
    struct ptcp_err *e);
/* Only before `done`, which then does not come. NULL is fine. */
void dial_cancel(struct dial *d);

/* Listens; `accepted` comes from the loop with each new socket, which is its. */
struct listener;
int listener_new(struct listener **out, struct loop *l, const char *where, unsigned default_port,
    void (*accepted)(void *arg, int fd, const char *address), void *arg, struct ptcp_err *e);
void listener_free(struct listener *ls); /* NULL is fine */
/* "127.0.0.1" or "::", and the port. */
const char *listener_address(const struct listener *ls);
unsigned listener_port(const struct listener *ls);

/* Splits "HOST", "HOST:PORT", "[V6]:PORT", ":PORT", or a bare IPv6 address; PTCP_EUSAGE. */
int sock_split(const char *text, char host[SOCK_HOST_BYTES], unsigned *port, unsigned default_port,
    struct ptcp_err *e);
/* "HOST:PORT", an IPv6 address bracketed. */
void sock_join(char *out, size_t cap, const char *host, unsigned port);

/* Options for a connected or accepted socket; what cannot be set is left. A congestion control that
 * the kernel lacks or does not allow: PTCP_EUSAGE. */
int sock_tune(int fd, const struct sock_opts *o, struct ptcp_err *e);

#endif
