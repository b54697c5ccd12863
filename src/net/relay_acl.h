/* Where a relay may connect to. What is not listed is refused; and an address that is special (loopback,
 * private, link-local, unspecified, multicast, or one in which such an address of IPv4 can hide) is refused
 * unless it is listed as such. Any thread, once complete. */
#ifndef NET_RELAY_ACL_H
#define NET_RELAY_ACL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/err.h"

struct relay_acl;

/* Adds one to *list, which is made when it is NULL: a name, an address or a range (10.0.0.0/8, [fc00::/7]),
 * then nothing, :PORT or :*; default_port when there is none. A name is looked up at once, which may take its
 * time: it lists those special addresses that it has now, so that its owner cannot lead us to others later. A
 * range lists special addresses only if it has no others: 0.0.0.0/0 lists none. PTCP_EUSAGE. */
int relay_acl_add(struct relay_acl **list, const char *text, unsigned default_port, struct ptcp_err *e);
void relay_acl_free(struct relay_acl *n); /* NULL is fine */

/* May we connect to this address, which the host that was asked for has? */
bool relay_acl_permit(const struct relay_acl *n, const char *host, unsigned port, const struct sockaddr *sa);

#endif
