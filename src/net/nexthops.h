/* Where a relay may connect to. What is not listed is refused; and an address that is special (loopback,
 * private, link-local, unspecified, multicast, or one in which such an address of IPv4 can hide) is refused
 * unless it is listed as such. Any thread, once complete. */
#ifndef NET_NEXTHOPS_H
#define NET_NEXTHOPS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/err.h"

struct nexthops;

/* Adds one to *list, which is made when it is NULL: a name, an address or a range (10.0.0.0/8, [fc00::/7]),
 * then nothing, :PORT or :*; default_port when there is none. A name is looked up at once, which may take its
 * time: it lists those special addresses that it has now, so that its owner cannot lead us to others later. A
 * range lists special addresses only if it has no others: 0.0.0.0/0 lists none. PTCP_EUSAGE. */
int nexthops_add(struct nexthops **list, const char *text, unsigned default_port, struct ptcp_err *e);
void nexthops_free(struct nexthops *n); /* NULL is fine */

/* May we connect to this address, which the host that was asked for has? */
bool nexthops_permit(const struct nexthops *n, const char *host, unsigned port, const struct sockaddr *sa);

#endif
