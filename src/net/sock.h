/* Addresses as text, and options of sockets. Any thread. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/err.h"

#define SOCK_TEXT_BYTES 72 /* "[v6%scope]:port" */
#define SOCK_HOST_BYTES 256

struct sock_opts {
	int family;             /* 0, 4 or 6 */
	uint64_t timeout_ns;    /* for connecting; then for data that nobody acknowledges, and for silence */
	const char *congestion; /* NULL: the system's */
};

/* Splits "HOST", "HOST:PORT", "[V6]:PORT", ":PORT", or a bare IPv6 address; PTCP_EUSAGE. */
int sock_split(const char *text, char host[SOCK_HOST_BYTES], unsigned *port, unsigned default_port,
    struct ptcp_err *e);
/* "HOST:PORT", an IPv6 address bracketed. */
void sock_join(char *out, size_t cap, const char *host, unsigned port);
/* The same of a socket's address, numeric. */
void sock_address_text(char out[SOCK_TEXT_BYTES], const struct sockaddr *sa, socklen_t n);

/* Addresses of this host that another may reach, numeric, at most so many; their number. */
unsigned sock_local(char out[][SOCK_HOST_BYTES], unsigned most);

/* Options for a connected or accepted socket; what cannot be set is left. A congestion control that
 * the kernel lacks or does not allow: PTCP_EUSAGE. */
int sock_tune(int fd, const struct sock_opts *o, struct ptcp_err *e);
/* From then on a peer that lives may take nothing for as long as it likes (the kernel counts a closed window as
 * data that nobody acknowledges); one that has died is noticed much later. */
void sock_bear(int fd);

#endif
