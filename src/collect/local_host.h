/* Which of an overlay's hosts this one is: ptcp_overlay_local_host(), ptcp_overlay_remote_host(); and what they are called. */
#ifndef COLLECT_LOCAL_HOST_H
#define COLLECT_LOCAL_HOST_H

#include <ptcp/plan.h>

#define HERE_ADDRESS_BYTES 256

/* As ptcp_overlay_local_host(), but -1 and no error where this is none of them. */
int here_find(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e);
const char *here_name(const struct ptcp_overlay *o, int host);

/* An address of the overlay as "HOST:PORT", an IPv6 address in brackets. Returns out. */
const char *here_authority(char out[HERE_ADDRESS_BYTES], const char *address);

#endif
