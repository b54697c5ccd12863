/* The local host among an overlay's hosts, and addresses of hosts. */
#ifndef COLLECT_LOCAL_HOST_H
#define COLLECT_LOCAL_HOST_H

#include <ptcp/plan.h>

#define LOCAL_HOST_ADDRESS_BYTES 256

/* As ptcp_overlay_local_host(), but *host is -1 without an error if no host matches. */
int local_host_find(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e);
/* Where a collection runs, or the links of one are measured: the destination, unless another host alone has an address
 * of this host. As local_host_find(), but if several hosts match, or none, the destination is the local host if it has
 * an address of this host, or no address. */
int local_host_collecting(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e);
const char *local_host_name(const struct ptcp_overlay *o, int host);

/* Formats an overlay address as "HOST:PORT", IPv6 addresses in brackets. Returns out. */
const char *local_host_authority(char out[LOCAL_HOST_ADDRESS_BYTES], const char *address);

/* The port of an overlay address; 0: none given. */
unsigned local_host_port(const char *address);

#endif
