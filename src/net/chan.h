/* A byte channel to a peer: TLS over a connected socket, raw after leaving TLS (once), or raw from the start
 * (within this process).
 *
 * A channel belongs to one loop and the thread of the loop; chan_detach() and chan_attach() move a channel to
 * another loop. Callbacks come from the loop, never from within a call of chan_*(). After `closed` (called
 * once) only chan_free() is allowed. */
#ifndef NET_CHAN_H
#define NET_CHAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/loop.h"
#include "net/tls.h"

/* Memory of an idle TLS connection, about. */
#define CHAN_BYTES (40u << 10)

struct chan;

/* Each may be NULL: the event is ignored; without `readable` the channel behaves as paused. */
struct chan_ops {
	/* The handshake, or chan_leave_tls(), is complete: bytes may flow. */
	void (*opened)(void *arg);
	/* Bytes may be available; called until chan_read() returns 0 or the channel is paused. */
	void (*readable)(void *arg);
	/* Space is available again after a short chan_write(). */
	void (*writable)(void *arg);
	/* `why` NULL: the peer closed the channel in good order. All input received before was offered to
	 * `readable` (unless paused), also when sending failed first. `why` is valid during the call, even if
	 * the callback frees the channel. */
	void (*closed)(void *arg, const struct ptcp_err *why);
};

struct chan_opts {
	bool server;            /* the TLS role */
	const char *alpn;       /* client: the protocol to offer */
	const char *server_name; /* client: sent in plaintext, borrowed during chan_new(); NULL: none */
	bool one_cipher;        /* client: offer only `cipher` instead of all ciphers of the context */
	enum ptcp_cipher cipher;
	uint64_t rekey_records; /* records sent per key; 0: 2^22 */
	const struct chan_ops *ops;
	void *arg;
};

/* `l` NULL: attached to no loop, until chan_attach(). `tls` NULL: raw from the start; `opened` is not called. `fd`: a
 * connected, non-blocking socket; taken, also on failure. */
int chan_new(struct chan **out, struct loop *l, SSL_CTX *tls, int *fd, const struct chan_opts *o, struct ptcp_err *e);
/* Closes the socket at once. NULL is fine. */
void chan_free(struct chan *c);

/* Give a channel new callbacks, and perhaps another loop: for a loop of another thread first chan_detach() on the old
 * thread. No callback is called in between. */
void chan_detach(struct chan *c);
/* Whether the channel works, and has no bytes of either direction: it may be detached and kept. */
bool chan_is_idle(const struct chan *c);
int chan_attach(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg, struct ptcp_err *e);

/* Up to n bytes; 0: no input now (or closed, which `closed` reports). */
size_t chan_read(struct chan *c, void *buf, size_t n);
/* Takes up to n bytes, in order, and returns their number; `writable` follows a short write. The bytes are
 * buffered until a send is worthwhile or chan_flush() is called. */
size_t chan_write(struct chan *c, const void *p, size_t n);
void chan_flush(struct chan *c);
/* Raw channels: sends the buffered bytes; then `put` sends up to n bytes to the socket itself, repeatedly. `put`
 * returns their number, 0 when the socket is full, or a negative value. The number of bytes, at most n; short:
 * `writable` follows, or nothing was sent and `put` has failed: -1. */
typedef ssize_t chan_put_fn(void *arg, int sock, size_t n);
ssize_t chan_write_by(struct chan *c, size_t n, chan_put_fn *put, void *arg);
/* TLS has ended, or never began. */
bool chan_is_raw(const struct chan *c);
/* Without read-ahead (default: with), chan_read() takes no more from the socket than requested, except for the rest
 * of a TLS record: so a channel that is not read holds no buffer. */
void chan_read_ahead(struct chan *c, bool read_ahead);
/* Whether the channel's buffer has received bytes. */
bool chan_holds_input(const struct chan *c);
/* All accepted bytes are sent; otherwise `writable` follows when they are. */
bool chan_flushed(struct chan *c);
/* While paused, `readable` is not called. */
void chan_pause(struct chan *c, bool paused);

/* Leaves TLS: close_notify in both directions, then `opened` again, then raw bytes. */
void chan_leave_tls(struct chan *c);
/* After that: transfers the socket to the caller; only chan_free() is allowed then. -1 while bytes are
 * buffered. */
int chan_take_fd(struct chan *c);
/* Sends buffered bytes and closes in good order; `closed` follows when the peer has closed, too. */
void chan_shutdown(struct chan *c);

/* Results of the handshake, after `opened`. */
const char *chan_fingerprint(const struct chan *c);
/* The certificates that the peer presents, unexamined; not after TLS. */
void chan_certificates(const struct chan *c, struct certificates *out);
unsigned chan_hops(const struct chan *c); /* server: number of relays on the path, as sent by the last relay */
bool chan_is_alpn(const struct chan *c, const char *alpn);
int chan_export(struct chan *c, uint8_t out[32], struct ptcp_err *e);
int chan_fd(const struct chan *c);

/* Sends the number of relays on the path so far, up to 127, as the first byte of a new connection (PROTOCOL.md,
 * section 2). False: the connection is lost. */
bool chan_send_hops(int fd, unsigned relays);

#endif
