/* Access list of a relay: the addresses to which it may connect. Unlisted addresses are refused. A special
 * address (loopback, private, link-local, unspecified, multicast, or an IPv6 address that may embed a special
 * IPv4 address) is refused unless listed explicitly. Control thread. */
#ifndef NET_RELAY_ACL_H
#define NET_RELAY_ACL_H

#include "core/log.h"
#include "net/resolve.h"

struct relay_acl;

/* Adds an entry to *list, which is allocated if NULL: a name, an address or a range (10.0.0.0/8, [fc00::/7]), then
 * :PORT, :* (any port) or neither (default_port). A name covers the special addresses of its first answer only, so
 * that the owner of the name cannot redirect the relay to others later. A range covers special addresses only if all
 * its addresses are special: 0.0.0.0/0 covers none. PTCP_EUSAGE. */
int relay_acl_add(struct relay_acl **list, const char *text, unsigned default_port, struct ptcp_err *e);
/* Resolves the listed names in the background, again while no name server answers: after 1 s, at last every minute.
 * Until its first answer, a name covers no special addresses. NULL is fine. */
int relay_acl_resolve(struct relay_acl *n, struct loop *l, struct resolver *names, const struct log *log,
    struct ptcp_err *e);
void relay_acl_free(struct relay_acl *n); /* NULL is fine */

/* Whether an address of `host` could be permitted; if not, `host` need not be resolved. NULL: no. */
bool relay_acl_may_permit(const struct relay_acl *n, const char *host, unsigned port);
/* Whether the relay may connect to `sa`, an address of the requested `host`. `all`: all addresses of the host, a
 * first answer unless there was one; NULL: unknown. */
bool relay_acl_permit(struct relay_acl *n, const char *host, unsigned port, const struct addrinfo *all,
    const struct sockaddr *sa);

#endif
