/* Internals of a channel: chan.c (loop and lifetime), chan_tls.c (TLS), chan_io.c (socket and buffers). */
#ifndef NET_CHAN_IMPL_H
#define NET_CHAN_IMPL_H

#include "net/chan.h"
#include "net/loop_uv.h"

/* Maximum size of a send and of a recv. */
#define CHAN_GATHER_BYTES (256u << 10)
/* Additional space for the records of one step and for TLS messages. */
#define CHAN_SLACK_BYTES (80u << 10)
/* Limit on input before the handshake is complete: strangers use little memory. */
#define CHAN_HANDSHAKE_BYTES (16u << 10)
/* Limit on input of one turn under TLS: a flood of empty records must not occupy the loop. */
#define CHAN_TURN_BYTES (1u << 20)

enum chan_mode { CHAN_HANDSHAKE, CHAN_TLS, CHAN_LEAVING, CHAN_RAW };

/* Connects a channel to a loop; freed when libuv and the message queue no longer use it. */
struct chan_poll {
	uv_poll_t uv;
	struct msg again;
	bool posted, closed;
	struct chan *chan; /* NULL: freed or detached */
};

struct chan {
	int fd;
	struct chan_opts o;
	struct loop *loop;
	struct chan_poll *poll;
	SSL *ssl;
	BIO_METHOD *bio;
	enum chan_mode mode;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned hops;           /* server: relays on the path */
	bool hops_read;          /* server: the first byte was checked for a number of relays */
	uint8_t *rx, *tx;        /* the loop's buffers; NULL while empty */
	bool no_read_ahead;
	size_t wanted;           /* bytes that the present chan_read() wants */
	size_t rx_start, rx_end, tx_start, tx_end;
	size_t turn_bytes;       /* read in this turn */
	uint64_t tx_records;     /* under the current key */
	uint64_t rx_bytes, rx_updates; /* counters that limit key updates */
	bool paused, want_write, shutting, sent_fin;
	bool drained;            /* the last chan_read() exhausted the input */
	bool starved;            /* reading stopped at CHAN_TURN_BYTES, with input left */
	bool eof;                /* the peer sends no more */
	bool cut;                /* sending failed; received bytes are still read */
	bool failed, closed, opened_due;
	bool *gone;              /* set when a callback frees or detaches the channel */
	int events;
	struct ptcp_err why;     /* the first failure (cut or failed) */
};

/* ---- chan.c ---- */

/* Fails the channel; `closed` follows. `sys` is an errno or 0. */
void chan_fail(struct chan *c, int code, int sys, const char *what);
/* As chan_fail(), after the received bytes were read. */
void chan_cut(struct chan *c, int sys);
/* Schedules another turn. */
void chan_again(struct chan *c);
void chan_update_events(struct chan *c);
/* Whether application bytes may flow. */
static inline bool chan_flows(const struct chan *c)
{
	return c->mode == CHAN_TLS || c->mode == CHAN_RAW;
}

/* ---- chan_tls.c ---- */

int chan_tls_start(struct chan *c, SSL_CTX *tls, struct ptcp_err *e);
void chan_tls_free(struct chan *c);
void chan_tls_handshake(struct chan *c);
void chan_tls_leave(struct chan *c);
size_t chan_tls_read(struct chan *c, uint8_t *buf, size_t n);
size_t chan_tls_write(struct chan *c, const uint8_t *p, size_t n);

/* ---- chan_io.c ---- */

/* Sends buffered bytes as far as the kernel takes them. */
void chan_tx_send(struct chan *c);
/* Free bytes of the transmit buffer. */
size_t chan_tx_room(struct chan *c);
void chan_tx_put(struct chan *c, const void *p, size_t n);
/* Fills the empty receive buffer; false: no input now, end of input, or an error. */
bool chan_rx_fill(struct chan *c);
/* As chan_rx_fill(), with at most `max` bytes. */
bool chan_rx_fill_max(struct chan *c, size_t max);
/* Returns empty buffers to the loop. */
void chan_return_buffers(struct chan *c);
bool chan_has_input(const struct chan *c);

#endif
