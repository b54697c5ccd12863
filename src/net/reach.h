/* Numeric addresses: their scope, and the longest common prefix. Any thread. */
#ifndef NET_REACH_H
#define NET_REACH_H

#include "net/sock.h"

/* The higher, the more hosts reach the address. */
enum reach { REACH_NOBODY, REACH_HOST, REACH_LINK, REACH_SITE, REACH_WORLD };
/* Multicast and unspecified addresses are nobody's; ::ffff:a.b.c.d counts as a.b.c.d. */
enum reach reach_of(const struct sockaddr *sa);
/* A numeric address without a port; false: it is none. */
bool reach_numeric(struct sockaddr_storage *out, const char *host);
/* The one of n > 0 numeric addresses that shares the longest prefix with `near`; one of the same family first. */
const char *reach_nearest(char (*host)[SOCK_HOST_BYTES], unsigned n, const char *near);

#endif
