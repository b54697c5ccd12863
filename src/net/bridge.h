/* A pair of descriptors of any kind that can be waited for (pipes, as ssh's server gives them), made into
 * one socket: bytes are carried both ways. Everything on the thread of the loop. */
#ifndef NET_BRIDGE_H
#define NET_BRIDGE_H

#include "net/loop.h"

struct bridge;

/* From `in` to *fd, a non-blocking socket that is the caller's, and from that to `out_fd`; both stay the
 * caller's, non-blocking meanwhile. `ended` comes once from the loop when `in` is at its end and everything
 * of it has been carried, or `out_fd` takes nothing any more; the bridge must not be freed within.
 * PTCP_EUSAGE for descriptors that cannot be waited for. */
int bridge_new(struct bridge **out, struct loop *l, int in, int out_fd, int *fd,
    void (*ended)(void *arg), void *arg, struct ptcp_err *e);
/* What has been written to the socket until now is still carried, if `out_fd` takes it. NULL is fine. */
void bridge_free(struct bridge *b);

#endif
