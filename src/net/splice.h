/* Two connected sockets made one: opaque bytes are moved both ways by splice(2), through a pipe each way,
 * without being looked at or copied. Everything on the thread of the loop. */
#ifndef NET_SPLICE_H
#define NET_SPLICE_H

#include <stdint.h>

#include "core/err.h"
#include "net/loop.h"

struct splice;

#define SPLICE_FDS 6 /* that one takes: both sockets, two pipes */

/* Both sockets are taken, also on failure. Nothing more is read from one while the other takes nothing; the end
 * of one direction is carried on, and the other goes on. `ended` comes once, from the loop: both directions
 * have ended (`why` NULL), one socket failed, or nothing has moved for idle_ns; only splice_free() is left. */
int splice_new(struct splice **out, struct loop *l, int a, int b, uint64_t idle_ns,
    void (*ended)(void *arg, const struct ptcp_err *why), void *arg, struct ptcp_err *e);
/* Closes both. NULL is fine. */
void splice_free(struct splice *s);
/* Moved, both ways. */
uint64_t splice_bytes(const struct splice *s);

#endif
