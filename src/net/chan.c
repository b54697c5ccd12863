#include "net/chan.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/list.h"
#include "net/chan_impl.h"

/* ---- Failure ---- */

static void set_failure(struct chan *c, int code, int sys, const char *what)
{
	if (c->failed || c->cut)
		return;
	errno = sys;
	if (sys != 0)
		err_sys(&c->why, code, "%s", what);
	else
		err_set(&c->why, code, "%s", what);
}

void chan_fail(struct chan *c, int code, int sys, const char *what)
{
	set_failure(c, code, sys, what);
	c->failed = true;
	chan_again(c);
}

void chan_cut(struct chan *c, int sys)
{
	set_failure(c, PTCP_EPEER, sys, "connection lost");
	c->cut = true;
	c->drained = false; /* read once more */
	c->tx_start = c->tx_end = 0;
	chan_again(c);
}

/* ---- Events ---- */

static void on_again(struct msg *m);

void chan_again(struct chan *c)
{
	struct chan_poll *p = c->poll;

	if (p == NULL || p->posted)
		return;
	p->posted = true;
	p->again.run = on_again;
	loop_post(c->loop, &p->again);
}

/* Calls `fn`, unless NULL; false: the callback freed or detached the channel. The call_*() functions below
 * return the same. */
static bool call(struct chan *c, void (*fn)(void *arg))
{
	bool gone = false;

	if (fn == NULL)
		return true;
	c->gone = &gone;
	fn(c->o.arg);
	if (gone)
		return false;
	c->gone = NULL;
	return true;
}

static void progress(struct chan *c)
{
	chan_tx_send(c);
	if (c->mode == CHAN_HANDSHAKE)
		chan_tls_handshake(c);
	else if (c->mode == CHAN_LEAVING)
		chan_tls_leave(c);
	if (c->shutting && c->tx_start == c->tx_end && !c->sent_fin) {
		c->sent_fin = true;
		shutdown(c->fd, SHUT_WR);
	}
}

static bool call_opened(struct chan *c)
{
	if (!c->opened_due || c->failed)
		return true;
	c->opened_due = false;
	return call(c, c->o.ops->opened);
}

static bool call_writable(struct chan *c)
{
	if (!c->want_write || c->failed || c->cut || c->shutting || !chan_flows(c) || c->tx_start < c->tx_end)
		return true;
	c->want_write = false;
	return call(c, c->o.ops->writable);
}

static bool is_paused(const struct chan *c) { return c->paused || c->o.ops->readable == NULL; }

static bool call_readable(struct chan *c)
{
	if (c->failed || is_paused(c) || !chan_flows(c))
		return true;
	c->drained = false;
	if (!call(c, c->o.ops->readable))
		return false;
	if (!c->drained && !is_paused(c))
		chan_again(c); /* more input may be left: yield to other channels first */
	return true;
}

/* Whether `closed` is due: the received bytes were read as far as possible and our own end was sent. */
static bool is_spent(const struct chan *c)
{
	return c->failed || (c->eof && !chan_has_input(c) && c->shutting == c->sent_fin) ||
	    (c->cut && !is_paused(c) && (c->drained || (!chan_flows(c) && !c->starved)));
}

/* Does the I/O possible now and calls the due callbacks. */
static void turn(struct chan *c, bool readable)
{
	struct ptcp_err why;

	if (c->closed)
		return;
	c->turn_bytes = 0;
	c->starved = false;
	if (!c->failed)
		progress(c);
	readable = readable || c->opened_due;
	if (!call_opened(c) || !call_writable(c))
		return;
	if ((readable || c->cut || chan_has_input(c)) && !call_readable(c))
		return;
	c->closed = is_spent(c);
	chan_update_events(c);
	if (c->closed && c->o.ops->closed != NULL) {
		why = c->why; /* the callback may free the channel */
		c->o.ops->closed(c->o.arg, c->failed || c->cut ? &why : NULL);
	}
}

static void poll_release(struct chan_poll *p)
{
	if (p->closed && !p->posted)
		free(p);
}

static void on_again(struct msg *m)
{
	struct chan_poll *p = CONTAINER_OF(m, struct chan_poll, again);

	p->posted = false;
	if (p->chan == NULL)
		poll_release(p);
	else
		turn(p->chan, !p->chan->drained);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct chan_poll *p = h->data;
	struct chan *c = p->chan;
	socklen_t n = sizeof(int);
	int sys = 0;

	if (c == NULL)
		return;
	if (status < 0) { /* an error that libuv does not name; it has stopped polling */
		c->events = 0;
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &sys, &n);
		chan_cut(c, sys != 0 ? sys : ECONNRESET);
	}
	turn(c, (events & UV_READABLE) != 0);
}

void chan_update_events(struct chan *c)
{
	int want = 0;

	chan_return_buffers(c);
	if (c->poll == NULL) /* detached */
		return;
	if (!c->closed && !c->failed && !c->eof && (!is_paused(c) || !chan_flows(c)))
		want |= UV_READABLE;
	if (!c->closed && !c->failed && !c->cut && (c->tx_start < c->tx_end ||
	    (c->want_write && chan_flows(c) && !c->shutting)))
		want |= UV_WRITABLE;
	poll_events(&c->poll->uv, &c->events, want, on_poll);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct chan_poll *p = h->data;

	p->closed = true;
	poll_release(p);
}

static int attach_poll(struct chan *c, struct loop *l, struct ptcp_err *e)
{
	struct chan_poll *p = calloc(1, sizeof *p);
	int r;

	if (p == NULL)
		return err_nomem(e);
	if ((r = uv_poll_init(loop_uv(l), &p->uv, c->fd)) < 0) {
		free(p);
		return err_set(e, PTCP_EIO, "polling a socket: %s", uv_strerror(r));
	}
	p->uv.data = p;
	p->chan = c;
	c->poll = p;
	c->loop = l;
	c->events = 0;
	chan_update_events(c);
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

/* ---- Lifetime ---- */

int chan_new(struct chan **out, struct loop *l, SSL_CTX *tls, int *fd, const struct chan_opts *o, struct ptcp_err *e)
{
	struct chan *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL) {
		fd_close(fd);
		return err_nomem(e);
	}
	c->fd = fd_take(fd);
	c->o = *o;
	if (tls == NULL)
		c->mode = CHAN_RAW;
	r = tls != NULL ? chan_tls_start(c, tls, e) : 0;
	if (r == 0 && l != NULL)
		r = attach_poll(c, l, e);
	if (r < 0) {
		chan_free(c);
		return r;
	}
	chan_again(c); /* a client starts the handshake */
	*out = c;
	return 0;
}

void chan_free(struct chan *c)
{
	if (c == NULL)
		return;
	detach_poll(c);
	fd_close(&c->fd);
	chan_tls_free(c);
	loop_buffer_give(c->loop, c->rx, false);
	loop_buffer_give(c->loop, c->tx, true);
	free(c);
}

int chan_take_fd(struct chan *c)
{
	if (c->mode != CHAN_RAW || c->failed || c->cut || c->eof || chan_has_input(c) || c->tx_start < c->tx_end)
		return -1;
	detach_poll(c);
	return fd_take(&c->fd);
}

bool chan_is_idle(const struct chan *c)
{
	return !c->failed && !c->cut && !c->eof && !c->shutting && !chan_has_input(c) && c->tx_start == c->tx_end &&
	    c->rx == NULL && c->tx == NULL;
}

void chan_detach(struct chan *c)
{
	detach_poll(c);
	c->loop = NULL;
}

int chan_attach(struct chan *c, struct loop *l, const struct chan_ops *ops, void *arg, struct ptcp_err *e)
{
	int r;

	detach_poll(c);
	c->o.ops = ops;
	c->o.arg = arg;
	if ((r = attach_poll(c, l, e)) < 0)
		return r;
	c->drained = false;
	chan_again(c);
	return 0;
}

void chan_pause(struct chan *c, bool paused)
{
	if (c->paused == paused)
		return;
	c->paused = paused;
	if (!paused) {
		c->drained = false;
		chan_again(c);
	}
	chan_update_events(c);
}

void chan_shutdown(struct chan *c)
{
	if (c->shutting || c->failed)
		return;
	if (c->mode == CHAN_TLS) {
		ERR_clear_error();
		SSL_shutdown(c->ssl);
	}
	c->shutting = true;
	chan_again(c);
}

void chan_read_ahead(struct chan *c, bool read_ahead) { c->no_read_ahead = !read_ahead; }

bool chan_holds_input(const struct chan *c) { return c->rx_start < c->rx_end; }

bool chan_flushed(struct chan *c)
{
	if (c->tx_start == c->tx_end)
		return true;
	c->want_write = true;
	chan_update_events(c);
	return false;
}

bool chan_is_raw(const struct chan *c) { return c->mode == CHAN_RAW; }

int chan_fd(const struct chan *c) { return c->fd; }
