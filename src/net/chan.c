#include "net/chan.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/loop_uv.h"

/* One send gathers so much, one recv asks for so much. */
#define GATHER_BYTES (256u << 10)
/* Room beyond that for the records of one step and what TLS says by itself. */
#define SLACK_BYTES (80u << 10)
#define STEP_BYTES (64u << 10)
#define RECORD_OVERHEAD 64 /* per 16 KiB record, generous */
/* AES-GCM keys are good for 2^24.5 records (RFC 8446, 5.5); we renew long before. */
#define REKEY_BYTES (UINT64_C(64) << 30)

enum mode { HANDSHAKE, TLS, LEAVING, RAW };

/* What ties a channel to a loop; outlives it there until libuv and the mailbox let go. */
struct poll {
	uv_poll_t uv;
	struct msg again;
	bool posted, closed;
	struct chan *chan; /* NULL: it has gone */
};

struct chan {
	struct chan_opts o;
	struct loop *loop;
	struct poll *poll;
	SSL *ssl;
	BIO_METHOD *bio;
	enum mode mode;
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	uint8_t *rx, *tx;
	size_t rx_start, rx_end, tx_start, tx_end;
	uint64_t since_rekey;
	bool paused, drained, want_write, shutting, sent_fin;
	bool eof, failed, told, tell_opened;
	bool *gone; /* set when a callback frees or moves the channel */
	int events;
	struct ptcp_err why;
};

static void update_events(struct chan *c);
static void again(struct chan *c);

static void fail(struct chan *c, int code, const char *what)
{
	if (c->failed)
		return;
	c->failed = true;
	if (errno != 0)
		err_sys(&c->why, code, "%s", what);
	else
		err_set(&c->why, code, "%s", what);
	again(c);
}

/* ---- The BIO: records gathered on the way out, read in place on the way in ---- */

static void tx_send(struct chan *c)
{
	ssize_t n;

	while (c->tx_start < c->tx_end && !c->failed) {
		n = send(c->o.fd, c->tx + c->tx_start, c->tx_end - c->tx_start, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				fail(c, PTCP_EPEER, "the connection was cut");
			return;
		}
		c->tx_start += (size_t)n;
	}
	if (c->tx_start == c->tx_end)
		c->tx_start = c->tx_end = 0;
}

static size_t tx_room(struct chan *c)
{
	if (c->tx_start > 0 && c->tx_end + STEP_BYTES + SLACK_BYTES / 2 > GATHER_BYTES + SLACK_BYTES) {
		memmove(c->tx, c->tx + c->tx_start, c->tx_end - c->tx_start);
		c->tx_end -= c->tx_start;
		c->tx_start = 0;
	}
	return GATHER_BYTES + SLACK_BYTES - c->tx_end;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct chan *c = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (tx_room(c) < (size_t)n)
		tx_send(c);
	if (tx_room(c) < (size_t)n) {
		BIO_set_retry_write(b);
		return -1;
	}
	memcpy(c->tx + c->tx_end, p, (size_t)n);
	c->tx_end += (size_t)n;
	return n;
}

/* Fills the receive buffer; false: nothing there, the end, or an error. */
static bool rx_fill(struct chan *c)
{
	ssize_t n;

	if (c->eof || c->failed)
		return false;
	do
		n = recv(c->o.fd, c->rx, GATHER_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->rx_start = 0;
		c->rx_end = (size_t)n;
		return true;
	}
	if (n == 0)
		c->eof = true;
	else if (errno != EAGAIN)
		fail(c, PTCP_EPEER, "the connection was cut");
	return false;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct chan *c = BIO_get_data(b);
	size_t have;

	BIO_clear_retry_flags(b);
	if (c->rx_start == c->rx_end && !rx_fill(c)) {
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

/* The method is the channel's own: no global, and 200 bytes beside its buffers. */
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

/* ---- The handshake and the hand-over ---- */

/* After an SSL call that returned <= 0: true if it only has to be tried again later. */
static bool ssl_again(struct chan *c, int r, const char *what)
{
	int why = SSL_get_error(c->ssl, r);
	struct ptcp_err e;

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return true;
	errno = 0;
	if (c->failed)
		return false;
	if (why == SSL_ERROR_ZERO_RETURN) {
		c->eof = true;
	} else if (c->eof) {
		fail(c, PTCP_EPEER, c->mode == HANDSHAKE ?
		    "the peer closed the connection during the handshake" : "the connection was cut");
	} else {
		tls_error(&e, PTCP_EPROTO, what);
		tx_send(c); /* the alert */
		errno = 0;
		fail(c, PTCP_EPROTO, e.msg);
	}
	return false;
}

static bool check_peer(struct chan *c)
{
	X509 *cert = SSL_get0_peer_certificate(c->ssl);
	const unsigned char *alpn;
	unsigned n;
	struct ptcp_err e;

	SSL_get0_alpn_selected(c->ssl, &alpn, &n);
	errno = 0;
	if (cert == NULL || !EVP_PKEY_is_a(X509_get0_pubkey(cert), "ED25519") ||
	    identity_fingerprint(c->fingerprint, cert, &e) < 0) {
		fail(c, PTCP_EPROTO, "the peer has no identity of ptcp");
		return false;
	}
	if (n == 0) {
		fail(c, PTCP_EPROTO, "the peer does not speak ptcp");
		return false;
	}
	return true;
}

static void handshake(struct chan *c)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(c->ssl);
	if (r == 1) {
		if (check_peer(c)) {
			c->mode = TLS;
			c->tell_opened = true;
		}
	} else {
		ssl_again(c, r, "TLS handshake");
	}
	tx_send(c);
}

void chan_hand_over(struct chan *c)
{
	ERR_clear_error();
	c->mode = LEAVING;
	SSL_shutdown(c->ssl);
	tx_send(c);
	again(c);
}

/* Nothing but the peer's close_notify may come while both leave. */
static void leave(struct chan *c)
{
	uint8_t byte;
	int r;

	ERR_clear_error();
	r = SSL_read(c->ssl, &byte, 1);
	errno = 0;
	if (r > 0) {
		fail(c, PTCP_EPROTO, "data before the end of TLS");
	} else if (SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN) {
		c->mode = RAW;
		c->tell_opened = true;
	} else {
		ssl_again(c, r, "leaving TLS");
	}
}

/* ---- Events ---- */

static void on_again(struct msg *m);

/* Comes back from the loop. */
static void again(struct chan *c)
{
	struct poll *p = c->poll;

	if (p == NULL || p->posted)
		return;
	p->posted = true;
	p->again.run = on_again;
	loop_post(c->loop, &p->again);
}

static bool has_input(const struct chan *c)
{
	return c->rx_start < c->rx_end || (c->mode == TLS && SSL_pending(c->ssl) > 0);
}

/* Calls back; false: the channel has been freed or moved meanwhile. */
static bool call(struct chan *c, void (*fn)(void *arg))
{
	bool gone = false;

	c->gone = &gone;
	fn(c->o.arg);
	if (gone)
		return false;
	c->gone = NULL;
	return true;
}

static void progress(struct chan *c)
{
	tx_send(c);
	if (c->mode == HANDSHAKE)
		handshake(c);
	else if (c->mode == LEAVING)
		leave(c);
	if (c->shutting && c->tx_start == c->tx_end && !c->sent_fin) {
		c->sent_fin = true;
		shutdown(c->o.fd, SHUT_WR);
	}
}

/* One round: what has become possible is done and told. */
static void turn(struct chan *c, bool readable)
{
	if (c->told)
		return;
	if (!c->failed)
		progress(c);
	if (c->tell_opened) {
		c->tell_opened = false;
		if (!call(c, c->o.ops->opened))
			return;
		readable = true;
	}
	if (c->want_write && !c->failed && c->tx_start == c->tx_end) {
		c->want_write = false;
		if (!call(c, c->o.ops->writable))
			return;
	}
	if ((readable || has_input(c)) && !c->failed && !c->paused &&
	    (c->mode == TLS || c->mode == RAW)) {
		c->drained = false;
		if (!call(c, c->o.ops->readable))
			return;
		if (!c->drained && !c->paused)
			again(c); /* there may be more: after the others had their turn */
	}
	if (c->failed || (c->eof && !has_input(c))) {
		c->told = true;
		update_events(c);
		c->o.ops->closed(c->o.arg, c->failed ? &c->why : NULL);
		return;
	}
	update_events(c);
}

static void poll_release(struct poll *p)
{
	if (p->closed && !p->posted)
		free(p);
}

static void on_again(struct msg *m)
{
	struct poll *p = (struct poll *)(void *)((char *)m - offsetof(struct poll, again));

	p->posted = false;
	if (p->chan == NULL)
		poll_release(p);
	else
		turn(p->chan, !p->chan->drained);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct poll *p = h->data;
	struct chan *c = p->chan;

	if (c == NULL)
		return;
	if (status < 0) {
		errno = -status;
		fail(c, PTCP_EPEER, "the connection was cut");
	}
	turn(c, status < 0 || (events & UV_READABLE) != 0);
}

static void update_events(struct chan *c)
{
	int want = 0;

	if (c->poll == NULL)
		return;
	if (!c->told && !c->eof && (!c->paused || c->mode == HANDSHAKE || c->mode == LEAVING))
		want |= UV_READABLE;
	if (!c->told && !c->failed && (c->want_write || c->tx_start < c->tx_end))
		want |= UV_WRITABLE;
	if (want == c->events)
		return;
	c->events = want;
	if (want == 0)
		uv_poll_stop(&c->poll->uv);
	else
		uv_poll_start(&c->poll->uv, want, on_poll);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct poll *p = h->data;

	p->closed = true;
	poll_release(p);
}

static int attach_poll(struct chan *c, struct loop *l, struct ptcp_err *e)
{
	struct poll *p = calloc(1, sizeof *p);
	int r;

	if (p == NULL)
		return err_nomem(e);
	if ((r = uv_poll_init(loop_uv(l), &p->uv, c->o.fd)) < 0) {
		free(p);
		return err_set(e, PTCP_EIO, "watching a socket: %s", uv_strerror(r));
	}
	p->uv.data = p;
	p->chan = c;
	c->poll = p;
	c->loop = l;
	c->events = 0;
	update_events(c);
	return 0;
}

static void detach_poll(struct chan *c)
{
	if (c->poll == NULL)
		return;
	if (c->gone != NULL)
		*c->gone = true;
	c->gone = NULL;
	c->poll->chan = NULL;
	uv_close((uv_handle_t *)&c->poll->uv, on_poll_closed);
	c->poll = NULL;
}

/* ---- Making, moving, ending ---- */

static int start_tls(struct chan *c, SSL_CTX *tls, struct ptcp_err *e)
{
	static const char *const one[] = { "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
		"TLS_CHACHA20_POLY1305_SHA256" };
	uint8_t alpn[32];
	size_t n;

	if ((c->ssl = SSL_new(tls)) == NULL || attach_bio(c) < 0)
		return tls_error(e, PTCP_ENOMEM, "could not start TLS");
	if (c->o.server) {
		SSL_set_accept_state(c->ssl);
		return 0;
	}
	SSL_set_connect_state(c->ssl);
	n = strlen(c->o.alpn);
	alpn[0] = (uint8_t)n;
	memcpy(alpn + 1, c->o.alpn, n);
	if (SSL_set_alpn_protos(c->ssl, alpn, (unsigned)n + 1) != 0 ||
	    (c->o.cipher < PTCP_CIPHER_NONE && c->o.one_cipher &&
	    SSL_set_ciphersuites(c->ssl, one[c->o.cipher]) != 1))
		return tls_error(e, PTCP_ENOMEM, "could not start TLS");
	return 0;
}

int chan_new(struct chan **out, struct loop *l, SSL_CTX *tls, const struct chan_opts *o,
    struct ptcp_err *e)
{
	struct chan *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL) {
		close(o->fd);
		return err_nomem(e);
	}
	c->o = *o;
	c->rx = malloc(GATHER_BYTES);
	c->tx = malloc(GATHER_BYTES + SLACK_BYTES);
	if (c->rx == NULL || c->tx == NULL)
		r = err_nomem(e);
	else if ((r = start_tls(c, tls, e)) == 0)
		r = attach_poll(c, l, e);
	if (r < 0) {
		chan_free(c);
		return r;
	}
	again(c); /* the client speaks first */
	*out = c;
	return 0;
}

void chan_free(struct chan *c)
{
	if (c == NULL)
		return;
	detach_poll(c);
	close(c->o.fd);
	SSL_free(c->ssl);
	BIO_meth_free(c->bio);
	free(c->rx);
	free(c->tx);
	free(c);
}

void chan_depart(struct chan *c)
{
	detach_poll(c);
	c->loop = NULL;
}

int chan_arrive(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg,
    struct ptcp_err *e)
{
	int r;

	c->o.ops = ops;
	c->o.arg = arg;
	if ((r = attach_poll(c, l, e)) < 0)
		return r;
	c->drained = false;
	again(c);
	return 0;
}

/* ---- Bytes ---- */

static size_t raw_read(struct chan *c, uint8_t *buf, size_t n)
{
	size_t have = c->rx_end - c->rx_start;
	ssize_t got;

	if (have > 0) {
		if (have > n)
			have = n;
		memcpy(buf, c->rx + c->rx_start, have);
		c->rx_start += have;
		return have;
	}
	/* Small pieces through the buffer, large ones straight to their place. */
	if (n < GATHER_BYTES / 8)
		return rx_fill(c) ? raw_read(c, buf, n) : 0;
	do
		got = recv(c->o.fd, buf, n, 0);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		return (size_t)got;
	if (got == 0)
		c->eof = true;
	else if (errno != EAGAIN)
		fail(c, PTCP_EPEER, "the connection was cut");
	return 0;
}

static size_t tls_read(struct chan *c, uint8_t *buf, size_t n)
{
	size_t got;

	ERR_clear_error();
	if (SSL_read_ex(c->ssl, buf, n, &got) == 1)
		return got;
	ssl_again(c, 0, "reading");
	return 0;
}

size_t chan_read(struct chan *c, void *buf, size_t n)
{
	size_t total = 0, got;

	while (total < n && !c->failed && (c->mode == TLS || c->mode == RAW)) {
		if (c->eof && !has_input(c))
			break;
		got = c->mode == TLS ? tls_read(c, (uint8_t *)buf + total, n - total) :
		    raw_read(c, (uint8_t *)buf + total, n - total);
		if (got == 0) {
			c->drained = true;
			break;
		}
		total += got;
	}
	return total;
}

static size_t raw_write(struct chan *c, const uint8_t *p, size_t n)
{
	struct iovec v[2] = {
		{ c->tx + c->tx_start, c->tx_end - c->tx_start },
		{ (void *)(uintptr_t)p, n }
	};
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t sent;

	/* Small pieces are gathered; large ones go straight from where they are. */
	if (n < GATHER_BYTES / 8 && tx_room(c) >= n) {
		memcpy(c->tx + c->tx_end, p, n);
		c->tx_end += n;
		return n;
	}
	do
		sent = sendmsg(c->o.fd, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0) {
		if (errno != EAGAIN)
			fail(c, PTCP_EPEER, "the connection was cut");
		return 0;
	}
	if ((size_t)sent < v[0].iov_len) {
		c->tx_start += (size_t)sent;
		return 0;
	}
	c->tx_start = c->tx_end = 0;
	return (size_t)sent - v[0].iov_len;
}

static size_t tls_write(struct chan *c, const uint8_t *p, size_t n)
{
	size_t done;

	if (n > STEP_BYTES)
		n = STEP_BYTES;
	if (tx_room(c) < n + (n / 16384 + 2) * RECORD_OVERHEAD + 4096)
		return 0;
	if (c->since_rekey > REKEY_BYTES) {
		c->since_rekey = 0;
		SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
	}
	ERR_clear_error();
	if (SSL_write_ex(c->ssl, p, n, &done) != 1) {
		ssl_again(c, 0, "writing");
		return 0;
	}
	c->since_rekey += done;
	return done;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	size_t total = 0, done;

	while (total < n && !c->failed && !c->shutting) {
		done = c->mode == TLS ? tls_write(c, (const uint8_t *)p + total, n - total) :
		    c->mode == RAW ? raw_write(c, (const uint8_t *)p + total, n - total) : 0;
		total += done;
		if (c->tx_end - c->tx_start >= GATHER_BYTES)
			tx_send(c);
		if (done == 0) {
			size_t before = c->tx_end - c->tx_start;

			tx_send(c);
			if (before == c->tx_end - c->tx_start)
				break;
		}
	}
	if (total < n)
		c->want_write = true;
	update_events(c);
	return total;
}

void chan_flush(struct chan *c)
{
	tx_send(c);
	update_events(c);
}

bool chan_flushed(const struct chan *c)
{
	return c->tx_start == c->tx_end;
}

void chan_pause(struct chan *c, bool paused)
{
	if (c->paused == paused)
		return;
	c->paused = paused;
	if (!paused) {
		c->drained = false;
		again(c);
	}
	update_events(c);
}

void chan_shutdown(struct chan *c)
{
	if (c->shutting || c->failed)
		return;
	if (c->mode == TLS) {
		ERR_clear_error();
		SSL_shutdown(c->ssl);
	}
	c->shutting = true;
	again(c);
}

const char *chan_fingerprint(const struct chan *c) { return c->fingerprint; }
int chan_fd(const struct chan *c) { return c->o.fd; }

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
