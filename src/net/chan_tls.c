/* TLS over a channel's buffers: BIO, handshake, end of TLS, records. */
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#include "net/chan_impl.h"

#define HOPS_FLAG 0x80u /* set in a first byte that holds the number of relays */
#define STEP_BYTES (64u << 10)
#define RECORD_BYTES 16384u
#define RECORD_OVERHEAD 64 /* generous */
/* AES-GCM keys are safe for 2^24.5 records (RFC 8446, 5.5); we renew long before. */
#define REKEY_RECORDS (UINT64_C(1) << 22)
/* Limit on key updates by the peer: UPDATES_FREE, and one per UPDATE_BYTES of data. */
#define UPDATES_FREE 16u
#define UPDATE_BYTES (1u << 20)

/* ---- The BIO: buffers outgoing records, reads incoming ones from the receive buffer ---- */

static int bio_write(BIO *b, const char *p, int n)
{
	struct chan *c = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (chan_tx_room(c) < (size_t)n)
		chan_tx_send(c);
	if (c->cut)
		return n;
	if (chan_tx_room(c) < (size_t)n) {
		BIO_set_retry_write(b);
		return -1;
	}
	chan_tx_put(c, p, (size_t)n);
	return n;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct chan *c = BIO_get_data(b);
	size_t have;

	BIO_clear_retry_flags(b);
	if (c->failed)
		return 0;
	if ((size_t)n > c->wanted)
		c->wanted = (size_t)n; /* bytes to the end of the record */
	if (c->rx_start == c->rx_end && !(c->mode == CHAN_LEAVING ? chan_rx_fill_max(c, (size_t)n) : chan_rx_fill(c))) {
		if (c->eof || c->failed)
			return 0;
		BIO_set_retry_read(b);
		return -1;
	}
	have = c->rx_end - c->rx_start;
	if (have > (size_t)n)
		have = (size_t)n;
	memcpy(p, c->rx + c->rx_start, have);
	c->rx_start += have;
	return (int)have;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	struct chan *c = BIO_get_data(b);

	(void)num;
	(void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return c->eof;
	return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

/* Each channel has its own method (200 bytes): no global state. */
static int attach_bio(struct chan *c)
{
	BIO *b;

	c->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 0x7f, "ptcp channel");
	if (c->bio == NULL || !BIO_meth_set_write(c->bio, bio_write) ||
	    !BIO_meth_set_read(c->bio, bio_read) || !BIO_meth_set_ctrl(c->bio, bio_ctrl) ||
	    (b = BIO_new(c->bio)) == NULL)
		return -1;
	BIO_set_data(b, c);
	BIO_set_init(b, 1);
	SSL_set_bio(c->ssl, b, b);
	return 0;
}

/* A key update costs the peer 27 bytes and us a key derivation: a flood of updates is an attack. */
static void on_message(int writing, int version, int type, const void *p, size_t n, SSL *ssl, void *arg)
{
	struct chan *c = arg;

	(void)version;
	(void)ssl;
	if (writing || type != SSL3_RT_HANDSHAKE || n == 0 || *(const uint8_t *)p != SSL3_MT_KEY_UPDATE)
		return;
	if (++c->rx_updates > UPDATES_FREE + c->rx_bytes / UPDATE_BYTES)
		chan_fail(c, PTCP_EPROTO, 0, "too many TLS key updates from the peer");
}

/* ---- Handshake and end of TLS ---- */

int chan_tls_start(struct chan *c, SSL_CTX *tls, struct ptcp_err *e)
{
	uint8_t alpn[32];
	size_t n;

	if (c->o.rekey_records == 0)
		c->o.rekey_records = REKEY_RECORDS;
	if ((c->ssl = SSL_new(tls)) == NULL || attach_bio(c) < 0)
		return tls_error(e, PTCP_ENOMEM, "cannot start TLS");
	SSL_set_msg_callback(c->ssl, on_message);
	SSL_set_msg_callback_arg(c->ssl, c);
	if (c->o.server) {
		SSL_set_accept_state(c->ssl);
		return 0;
	}
	SSL_set_connect_state(c->ssl);
	n = strlen(c->o.alpn);
	alpn[0] = (uint8_t)n;
	memcpy(alpn + 1, c->o.alpn, n);
	if (SSL_set_alpn_protos(c->ssl, alpn, (unsigned)n + 1) != 0 ||
	    (c->o.server_name != NULL && SSL_set_tlsext_host_name(c->ssl, c->o.server_name) != 1) ||
	    (c->o.one_cipher && tls_suite(c->o.cipher) != NULL &&
	    SSL_set_ciphersuites(c->ssl, tls_suite(c->o.cipher)) != 1))
		return tls_error(e, PTCP_ENOMEM, "cannot start TLS");
	return 0;
}

void chan_tls_free(struct chan *c)
{
	SSL_free(c->ssl);
	BIO_meth_free(c->bio);
}

/* After an SSL call that returned <= 0: fails the channel unless the call only has to be repeated later. */
static void ssl_failed(struct chan *c, int r, const char *what)
{
	int why = SSL_get_error(c->ssl, r);
	struct ptcp_err e;

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE || c->failed)
		return;
	if (why == SSL_ERROR_ZERO_RETURN) {
		c->eof = true;
		c->rx_start = c->rx_end = 0; /* ignore bytes after the end of TLS */
	} else if (c->eof) {
		chan_fail(c, PTCP_EPEER, 0, c->mode == CHAN_HANDSHAKE ?
		    "the peer closed the connection during the handshake" : "connection lost");
	} else {
		/* After the handshake, corrupt records and alerts about ours may be caused by the path. */
		tls_error(&e, c->mode == CHAN_TLS ? PTCP_EPEER : PTCP_EPROTO, what);
		chan_fail(c, e.code, 0, e.msg);
		chan_tx_send(c); /* the alert */
	}
}

static bool check_peer(struct chan *c)
{
	X509 *cert = SSL_get0_peer_certificate(c->ssl);
	const unsigned char *alpn;
	unsigned n;
	struct ptcp_err e;

	SSL_get0_alpn_selected(c->ssl, &alpn, &n);
	if (cert == NULL || !EVP_PKEY_is_a(X509_get0_pubkey(cert), "ED25519") ||
	    identity_fingerprint(c->fingerprint, cert, &e) < 0) {
		chan_fail(c, PTCP_EPROTO, 0, "the peer presents no ptcp identity");
		return false;
	}
	if (n == 0) {
		chan_fail(c, PTCP_EPROTO, 0, "the peer does not speak ptcp");
		return false;
	}
	return true;
}

/* A relay sends the number of relays in a first byte with which no TLS record begins. False: no input yet. */
static bool read_hops(struct chan *c)
{
	if (c->rx_start == c->rx_end && !chan_rx_fill(c))
		return c->eof || c->failed;
	c->hops_read = true;
	if ((c->rx[c->rx_start] & HOPS_FLAG) != 0)
		c->hops = c->rx[c->rx_start++] & ~HOPS_FLAG;
	return true;
}

bool chan_send_hops(int fd, unsigned relays)
{
	uint8_t first = (uint8_t)(HOPS_FLAG | relays);

	return send(fd, &first, 1, MSG_NOSIGNAL) == 1;
}

void chan_tls_handshake(struct chan *c)
{
	int r;

	if (c->o.server && !c->hops_read && !read_hops(c))
		return;
	ERR_clear_error();
	r = SSL_do_handshake(c->ssl);
	if (r != 1) {
		ssl_failed(c, r, "TLS handshake");
	} else if (check_peer(c)) {
		c->mode = CHAN_TLS;
		c->opened_due = true;
	}
	chan_tx_send(c);
}

/* The peer sends no plaintext before it has read our close_notify, and from here on we read no further than
 * the end of the current record: so the buffer never holds raw bytes, and the socket can be taken. */
void chan_leave_tls(struct chan *c)
{
	ERR_clear_error();
	c->mode = CHAN_LEAVING;
	SSL_shutdown(c->ssl);
	chan_tx_send(c);
	chan_again(c);
}

/* Only the peer's close_notify may arrive while both ends leave TLS. */
void chan_tls_leave(struct chan *c)
{
	uint8_t byte;
	int r;

	ERR_clear_error();
	r = SSL_read(c->ssl, &byte, 1);
	if (r > 0) {
		chan_fail(c, PTCP_EPROTO, 0, "data before the end of TLS");
	} else if (SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN) {
		c->mode = CHAN_RAW;
		c->opened_due = true;
	} else {
		ssl_failed(c, r, "leaving TLS");
	}
}

/* ---- Records ---- */

size_t chan_tls_read(struct chan *c, uint8_t *buf, size_t n)
{
	size_t got;

	ERR_clear_error();
	if (SSL_read_ex(c->ssl, buf, n, &got) == 1) {
		c->rx_bytes += got;
		return got;
	}
	ssl_failed(c, 0, "reading");
	return 0;
}

size_t chan_tls_write(struct chan *c, const uint8_t *p, size_t n)
{
	size_t done;

	if (n > STEP_BYTES)
		n = STEP_BYTES;
	if (chan_tx_room(c) < n + (n / RECORD_BYTES + 2) * RECORD_OVERHEAD + 4096)
		return 0;
	ERR_clear_error();
	if (c->tx_records >= c->o.rekey_records && SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		c->tx_records = 0;
	if (SSL_write_ex(c->ssl, p, n, &done) != 1) {
		ssl_failed(c, 0, "writing");
		return 0;
	}
	c->tx_records += (done + RECORD_BYTES - 1) / RECORD_BYTES;
	return done;
}

const char *chan_fingerprint(const struct chan *c) { return c->fingerprint; }

void chan_certificates(const struct chan *c, struct certificates *out)
{
	const X509 *cert = c->ssl != NULL ? SSL_get0_peer_certificate(c->ssl) : NULL;

	out->n = 0;
	if (cert != NULL)
		identity_presented(out, cert);
}

unsigned chan_hops(const struct chan *c) { return c->hops; }

bool chan_is_alpn(const struct chan *c, const char *alpn)
{
	const unsigned char *p;
	unsigned n;

	SSL_get0_alpn_selected(c->ssl, &p, &n);
	return n == strlen(alpn) && memcmp(p, alpn, n) == 0;
}

int chan_export(struct chan *c, uint8_t out[32], struct ptcp_err *e)
{
	return tls_export(c->ssl, out, e);
}
