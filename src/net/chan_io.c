/* A channel's socket and buffers; reading and writing, raw or through TLS. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/chan_impl.h"

#define TX_BYTES (CHAN_GATHER_BYTES + CHAN_SLACK_BYTES)
static_assert(CHAN_GATHER_BYTES <= LOOP_BUFFER_BYTES && TX_BYTES <= LOOP_LARGE_BUFFER_BYTES, "buffers of the loop");
/* Raw reads and writes below this size go through the buffers, larger ones directly to and from the caller's
 * memory. */
#define SMALL_BYTES (CHAN_GATHER_BYTES / 8)

/* ---- Buffers and socket ---- */

static void send_buffered(struct chan *c, int flags)
{
	ssize_t n;

	while (c->tx_start < c->tx_end && !c->cut) {
		n = send(c->fd, c->tx + c->tx_start, c->tx_end - c->tx_start, MSG_NOSIGNAL | flags);
		if (n >= 0) {
			c->tx_start += (size_t)n;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			chan_cut(c, errno);
		}
	}
	c->tx_start = c->tx_end = 0;
}

void chan_tx_send(struct chan *c) { send_buffered(c, 0); }

static bool have_buffer(struct chan *c, uint8_t **p, bool large)
{
	if (*p != NULL || (*p = loop_buffer_take(c->loop, large)) != NULL)
		return true;
	chan_fail(c, PTCP_ENOMEM, 0, "out of memory");
	return false;
}

void chan_return_buffers(struct chan *c)
{
	if (c->loop == NULL) /* detached */
		return;
	if (c->rx_start == c->rx_end) {
		loop_buffer_give(c->loop, c->rx, false);
		c->rx = NULL;
	}
	if (c->tx_start == c->tx_end) {
		loop_buffer_give(c->loop, c->tx, true);
		c->tx = NULL;
	}
}

size_t chan_tx_room(struct chan *c)
{
	if (!have_buffer(c, &c->tx, true))
		return 0;
	if (c->tx_start > 0 && TX_BYTES - c->tx_end < TX_BYTES / 3) {
		memmove(c->tx, c->tx + c->tx_start, c->tx_end - c->tx_start);
		c->tx_end -= c->tx_start;
		c->tx_start = 0;
	}
	return TX_BYTES - c->tx_end;
}

void chan_tx_put(struct chan *c, const void *p, size_t n)
{
	memcpy(c->tx + c->tx_end, p, n);
	c->tx_end += n;
}

/* Handles a result of recv() <= 0. */
static void no_bytes(struct chan *c, ssize_t n)
{
	if (n == 0)
		c->eof = true;
	else if (errno != EAGAIN)
		chan_fail(c, PTCP_EPEER, errno, "connection lost");
}

static ssize_t receive(struct chan *c, void *buf, size_t n)
{
	ssize_t got;

	do
		got = recv(c->fd, buf, n, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

bool chan_rx_fill(struct chan *c)
{
	if (c->no_read_ahead && chan_flows(c))
		return chan_rx_fill_max(c, c->wanted);
	return chan_rx_fill_max(c, c->mode == CHAN_HANDSHAKE ? CHAN_HANDSHAKE_BYTES : CHAN_GATHER_BYTES);
}

bool chan_rx_fill_max(struct chan *c, size_t max)
{
	ssize_t n;

	if (c->eof || c->failed)
		return false;
	if (c->mode != CHAN_RAW && c->turn_bytes >= CHAN_TURN_BYTES) {
		c->starved = true;
		chan_again(c);
		return false;
	}
	if (!have_buffer(c, &c->rx, false))
		return false;
	n = receive(c, c->rx, max < CHAN_GATHER_BYTES ? max : CHAN_GATHER_BYTES);
	if (n <= 0) {
		no_bytes(c, n);
		return false;
	}
	c->turn_bytes += (size_t)n;
	c->rx_start = 0;
	c->rx_end = (size_t)n;
	return true;
}

bool chan_has_input(const struct chan *c)
{
	return c->rx_start < c->rx_end || (c->mode == CHAN_TLS && SSL_pending(c->ssl) > 0);
}

/* ---- Reading ---- */

static size_t raw_read(struct chan *c, uint8_t *buf, size_t n)
{
	size_t have = c->rx_end - c->rx_start;
	ssize_t got;

	if (have == 0 && n < SMALL_BYTES) {
		if (!chan_rx_fill(c))
			return 0;
		have = c->rx_end - c->rx_start;
	}
	if (have > 0) {
		if (have > n)
			have = n;
		memcpy(buf, c->rx + c->rx_start, have);
		c->rx_start += have;
		return have;
	}
	got = receive(c, buf, n);
	if (got <= 0) {
		no_bytes(c, got);
		return 0;
	}
	return (size_t)got;
}

size_t chan_read(struct chan *c, void *buf, size_t n)
{
	size_t total = 0, got;

	while (total < n && !c->failed && chan_flows(c)) {
		c->wanted = n - total;
		if (c->eof && !chan_has_input(c))
			break;
		got = c->mode == CHAN_TLS ? chan_tls_read(c, (uint8_t *)buf + total, n - total) :
		    raw_read(c, (uint8_t *)buf + total, n - total);
		if (got == 0) {
			c->drained = !c->starved;
			break;
		}
		total += got;
	}
	return total;
}

/* ---- Writing ---- */

static size_t raw_write(struct chan *c, const uint8_t *p, size_t n)
{
	struct iovec v[2];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t sent;

	if (n < SMALL_BYTES && chan_tx_room(c) >= n) {
		chan_tx_put(c, p, n);
		return n;
	}
	/* After chan_tx_room(), which moves buffered bytes. */
	v[0] = (struct iovec){ c->tx != NULL ? c->tx + c->tx_start : NULL, c->tx_end - c->tx_start };
	v[1] = (struct iovec){ (void *)(uintptr_t)p, n };
	do
		sent = sendmsg(c->fd, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0) {
		if (errno != EAGAIN)
			chan_cut(c, errno);
		return 0;
	}
	if ((size_t)sent < v[0].iov_len) {
		c->tx_start += (size_t)sent;
		return 0;
	}
	c->tx_start = c->tx_end = 0;
	return (size_t)sent - v[0].iov_len;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	size_t total = 0, done, before;

	while (total < n && !c->failed && !c->cut && !c->shutting && chan_flows(c)) {
		done = c->mode == CHAN_TLS ? chan_tls_write(c, (const uint8_t *)p + total, n - total) :
		    raw_write(c, (const uint8_t *)p + total, n - total);
		total += done;
		if (c->tx_end - c->tx_start >= CHAN_GATHER_BYTES)
			chan_tx_send(c);
		if (done == 0) {
			before = c->tx_end - c->tx_start;
			chan_tx_send(c);
			if (before == c->tx_end - c->tx_start)
				break;
		}
	}
	if (total < n)
		c->want_write = true;
	chan_update_events(c);
	return total;
}

/* The threads of loops block SIGPIPE, which sendfile() and splice() cannot be told to avoid. */
ssize_t chan_write_by(struct chan *c, size_t n, chan_put_fn *put, void *arg)
{
	size_t total = 0;
	ssize_t done = 0;

	assert(c->mode == CHAN_RAW);
	if (!c->failed && !c->shutting)
		send_buffered(c, MSG_MORE);
	while (total < n && !c->failed && !c->cut && !c->shutting && c->tx_start == c->tx_end &&
	    (done = put(arg, c->fd, n - total)) > 0)
		total += (size_t)done;
	if (done < 0 && total == 0)
		return -1;
	if (total < n)
		c->want_write = true;
	chan_update_events(c);
	return (ssize_t)total;
}

void chan_flush(struct chan *c)
{
	chan_tx_send(c);
	chan_update_events(c);
}

