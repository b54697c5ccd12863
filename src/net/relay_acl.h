/* Access list of a relay: the addresses to which it may connect. Unlisted addresses are refused. A special
 * address (loopback, private, link-local, unspecified, multicast, or an IPv6 address that may embed a special
 * IPv4 address) is refused unless listed explicitly. Any thread, once complete. */
#ifndef NET_RELAY_ACL_H
#define NET_RELAY_ACL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/err.h"

struct relay_acl;

/* Adds an entry to *list, which is allocated if NULL: a name, an address or a range (10.0.0.0/8, [fc00::/7]),
 * then :PORT, :* (any port) or neither (default_port). A name is resolved at once, which may block: the entry
 * covers the special addresses that the name has now, so that the owner of the name cannot redirect the relay
 * to others later. A range covers special addresses only if all its addresses are special: 0.0.0.0/0 covers
 * none. PTCP_EUSAGE. */
int relay_acl_add(struct relay_acl **list, const char *text, unsigned default_port, struct ptcp_err *e);
void relay_acl_free(struct relay_acl *n); /* NULL is fine */

/* Whether the relay may connect to `sa`, an address of the requested `host`. */
bool relay_acl_permit(const struct relay_acl *n, const char *host, unsigned port, const struct sockaddr *sa);

#endif
