/* TLS handshakes on another loop than the owner's: a handshake occupies its thread for most of a millisecond, and a
 * session may connect 128 streams at once. Begins and ends on the thread of the owner's loop. */
#ifndef NET_HANDSHAKE_H
#define NET_HANDSHAKE_H

#include "net/chan.h"

struct handshake;

struct handshake_opts {
	struct loop *home, *worker; /* the owner's loop, and the loop of the handshake; may be the same */
	unsigned *running;          /* counts handshakes, until `done` or canceled; `home` only */
	/* Once, from `home`, with the `arg` of the channel, unless canceled; the handshake is freed. `c`: opened, the
	 * owner's, attached to `home`; NULL: failed, as chan_ops.closed reports it. */
	void (*done)(void *arg, struct chan *c, const struct ptcp_err *why);
};

/* `fd`: the socket, as chan_new() takes it; `c`: the options of the channel, whose `opened` and `closed` are not called
 * before `done`. */
int handshake_start(struct handshake **out, const struct handshake_opts *o, SSL_CTX *tls, int *fd,
    const struct chan_opts *c, struct ptcp_err *e);
/* Closes the connection, and `done` is not called. NULL is fine. */
void handshake_cancel(struct handshake *h);

#endif
