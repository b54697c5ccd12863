#include "net/handshake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/list.h"

struct handshake {
	struct handshake_opts o;
	const struct chan_ops *ops; /* the owner's, after the handshake */
	void *arg;
	struct chan *chan;
	atomic_bool decided;     /* finished or canceled, the first of the two */
	bool canceled;           /* canceled while `finished` is under way; `home` only */
	struct msg start, finished, cancel;
	struct ptcp_err why;     /* reason of a failure */
};

static void handshake_free(struct handshake *h)
{
	chan_free(h->chan);
	free(h);
}

/* ---- On `home` ---- */

static void on_finished(struct msg *m)
{
	struct handshake *h = CONTAINER_OF(m, struct handshake, finished);
	struct chan *c = h->chan;

	if (!h->canceled) {
		--*h->o.running;
		if (c != NULL && chan_attach(c, h->o.home, h->ops, h->arg, &h->why) < 0)
			c = NULL;
		else
			h->chan = NULL;
		h->o.done(h->arg, c, c == NULL ? &h->why : NULL);
	}
	handshake_free(h);
}

/* ---- On `worker` ---- */

static void on_canceled(struct msg *m) { handshake_free(CONTAINER_OF(m, struct handshake, cancel)); }

static void handshake_finish(struct handshake *h)
{
	if (atomic_exchange(&h->decided, true))
		return; /* on_canceled() follows */
	h->finished.run = on_finished;
	loop_post(h->o.home, &h->finished);
}

static void on_opened(void *arg)
{
	struct handshake *h = arg;

	chan_detach(h->chan);
	handshake_finish(h);
}

static void on_handshake_closed(void *arg, const struct ptcp_err *why)
{
	struct handshake *h = arg;

	if (why != NULL)
		h->why = *why;
	else
		err_set(&h->why, PTCP_EPEER, "the peer closed the connection during the handshake");
	chan_free(h->chan);
	h->chan = NULL;
	handshake_finish(h);
}

static const struct chan_ops chan_ops = { .opened = on_opened, .closed = on_handshake_closed };

static void on_start(struct msg *m)
{
	struct handshake *h = CONTAINER_OF(m, struct handshake, start);
	struct ptcp_err why;

	if (chan_attach(h->chan, h->o.worker, &chan_ops, h, &why) < 0)
		on_handshake_closed(h, &why);
}

/* ---- On `home` ---- */

int handshake_start(struct handshake **out, const struct handshake_opts *o, SSL_CTX *tls, int *fd,
    const struct chan_opts *c, struct ptcp_err *e)
{
	struct handshake *h = calloc(1, sizeof *h);
	int r;

	if (h == NULL) {
		fd_close(fd);
		return err_nomem(e);
	}
	/* Here, not on `worker`: the certificate of a context may be replaced, on this thread. */
	if ((r = chan_new(&h->chan, NULL, tls, fd, c, e)) < 0) {
		free(h);
		return r;
	}
	h->o = *o;
	h->ops = c->ops;
	h->arg = c->arg;
	atomic_init(&h->decided, false);
	++*o->running;
	h->start.run = on_start;
	loop_post(o->worker, &h->start);
	*out = h;
	return 0;
}

void handshake_cancel(struct handshake *h)
{
	if (h == NULL)
		return;
	--*h->o.running;
	if (atomic_exchange(&h->decided, true)) {
		h->canceled = true;
		return;
	}
	h->cancel.run = on_canceled;
	loop_post(h->o.worker, &h->cancel);
}
