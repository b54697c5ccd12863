/* The inside of a channel, for chan.c (its loop and its life), chan_tls.c (TLS) and chan_io.c
 * (the socket and the bytes). */
#ifndef NET_CHAN_IMPL_H
#define NET_CHAN_IMPL_H

#include "net/chan.h"
#include "net/loop_uv.h"

/* One send gathers so much, one recv asks for so much. */
#define CHAN_GATHER_BYTES (256u << 10)
/* Room beyond that for the records of one step and what TLS says by itself. */
#define CHAN_SLACK_BYTES (80u << 10)
/* A stranger gets no more memory than a handshake needs. */
#define CHAN_HANDSHAKE_BYTES (16u << 10)
/* One turn reads so much under TLS: records that bring no data must not keep the loop. */
#define CHAN_TURN_BYTES (1u << 20)

enum chan_mode { CHAN_HANDSHAKE, CHAN_TLS, CHAN_LEAVING, CHAN_RAW };

/* What ties a channel to a loop; outlives it there until libuv and the mailbox let go. */
struct chan_poll {
	uv_poll_t uv;
	struct msg again;
	bool posted, closed;
	struct chan *chan; /* NULL: it has gone */
};

struct chan {
	struct chan_opts o;
	struct loop *loop;
	struct chan_poll *poll;
	SSL *ssl;
	BIO_METHOD *bio;
	enum chan_mode mode;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	unsigned relayed;        /* a server's: relays on the way */
	bool begun;              /* what a relay would say first has been looked for */
	uint8_t *rx, *tx;
	size_t rx_start, rx_end, tx_start, tx_end;
	size_t turn_bytes;       /* read in this turn */
	uint64_t tx_records;     /* under the present key */
	uint64_t rx_bytes, rx_updates; /* for the measure of key updates */
	bool paused, want_write, shutting, sent_fin;
	bool drained;            /* the last chan_read() found nothing more */
	bool starved;            /* because the turn is over, not the bytes */
	bool eof;                /* nothing more comes */
	bool cut;                /* nothing goes out any more; what has come is still read */
	bool failed, told, tell_opened;
	bool *gone;              /* set when a callback frees or moves the channel */
	int events;
	struct ptcp_err why;     /* of cut and failed: the first */
};

/* ---- chan.c ---- */

/* `sys` an errno or 0. `closed` follows. */
void chan_fail(struct chan *c, int code, int sys, const char *what);
/* As that, once what has arrived has been read. */
void chan_cut(struct chan *c, int sys);
/* Comes back from the loop. */
void chan_again(struct chan *c);
void chan_update_events(struct chan *c);
/* Bytes may flow. */
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

/* Gives the kernel what it takes. */
void chan_tx_send(struct chan *c);
/* Free bytes behind what waits to be sent. */
size_t chan_tx_room(struct chan *c);
void chan_tx_put(struct chan *c, const void *p, size_t n);
/* Fills the empty receive buffer; false: nothing now, the end, or an error. */
bool chan_rx_fill(struct chan *c);
/* The same with no more than n bytes. */
bool chan_rx_fill_exactly(struct chan *c, size_t n);
bool chan_has_input(const struct chan *c);

#endif
