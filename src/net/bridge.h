/* Joins a pair of pollable descriptors (pipes, as from sshd) into one socket, copying bytes in both directions.
 * Everything on the thread of the loop. */
#ifndef NET_BRIDGE_H
#define NET_BRIDGE_H

#include "net/loop.h"

struct bridge;

/* Copies from `in` to *fd, a non-blocking socket owned by the caller, and from *fd to `out_fd`. `in` and
 * `out_fd` stay the caller's and are non-blocking meanwhile. `ended` is called once from the loop after `in`
 * has ended and all its bytes were copied, or after `out_fd` failed; it must not free the bridge. PTCP_EUSAGE
 * for descriptors that cannot be polled. */
int bridge_new(struct bridge **out, struct loop *l, int in, int out_fd, int *fd,
    void (*ended)(void *arg), void *arg, struct ptcp_err *e);
/* First copies the bytes written to the socket so far, if `out_fd` takes them. NULL is fine. */
void bridge_free(struct bridge *b);

#endif
