/* A byte channel to a peer: TLS over a connected socket, or raw after the one hand-over out of TLS; or
 * raw from the start, within this process.
 *
 * Belongs to one loop and its thread; chan_depart() and chan_arrive() take it to another. Callbacks come from the
 * loop, never from within a call of chan_*(). After `closed` (once) only chan_free() is left. */
#ifndef NET_CHAN_H
#define NET_CHAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/loop.h"
#include "net/tls.h"

struct chan;

/* Each may be NULL: the event is ignored; without `readable` the channel behaves as paused. */
struct chan_ops {
	/* The handshake is over, or the hand-over: bytes may flow. */
	void (*opened)(void *arg);
	/* There may be bytes; called again until chan_read() has returned 0 or it is paused. */
	void (*readable)(void *arg);
	/* There is room again after chan_write() took less than was given. */
	void (*writable)(void *arg);
	/* `why` NULL: the peer closed in good order. What had arrived until then has been read (or
	 * offered, to a channel that is paused), also when sending failed first. It lasts for the call, also
	 * when the channel is freed there. */
	void (*closed)(void *arg, const struct ptcp_err *why);
};

struct chan_opts {
	int fd;                 /* a connected, non-blocking socket; taken, also on failure */
	bool server;            /* of TLS */
	const char *alpn;       /* the client's */
	bool one_cipher;        /* the client offers only `cipher`, not all of the context */
	enum ptcp_cipher cipher;
	uint64_t rekey_records; /* our key is renewed after so many; 0: 2^22 */
	const struct chan_ops *ops;
	void *arg;
};

/* `tls` NULL: raw from the start, without `opened`. */
int chan_new(struct chan **out, struct loop *l, SSL_CTX *tls, const struct chan_opts *o,
    struct ptcp_err *e);
/* Closes the socket at once. NULL is fine. */
void chan_free(struct chan *c);

/* Takes it to another loop, whose thread calls chan_arrive() on it; from then on it belongs
 * there and calls these operations. Between the two nothing is called. */
void chan_depart(struct chan *c);
int chan_arrive(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg,
    struct ptcp_err *e);

/* Up to n bytes; 0: nothing now (or closed: that comes as a callback). */
size_t chan_read(struct chan *c, void *buf, size_t n);
/* Takes some or all of it, in order; short: `writable` will follow. What was taken is gathered until
 * much has come together or chan_flush() is called. */
size_t chan_write(struct chan *c, const void *p, size_t n);
void chan_flush(struct chan *c);
/* No more `readable` while paused. */
void chan_pause(struct chan *c, bool paused);

/* Leaves TLS: close_notify both ways, then `opened` again, then raw bytes. */
void chan_hand_over(struct chan *c);
/* After that: the socket, which is the caller's; only chan_free() is left. -1: not while bytes wait here. */
int chan_take_fd(struct chan *c);
/* Sends what is pending and closes in good order; `closed` follows when the peer has, too. */
void chan_shutdown(struct chan *c);

/* Of the handshake, after `opened`. */
const char *chan_fingerprint(const struct chan *c);
unsigned chan_relayed(const struct chan *c); /* relays that it came through, as the last of them said; server */
bool chan_is_alpn(const struct chan *c, const char *alpn);
int chan_export(struct chan *c, uint8_t out[32], struct ptcp_err *e);
int chan_fd(const struct chan *c);

/* On a connection that has just been made, before anything else: what it carries came through so many, up to 127
 * (PROTOCOL.md, section 2). False: it is cut already. */
bool chan_tell_relayed(int fd, unsigned relays);

#endif
