#include "mover/link.h"

#include <stdlib.h>

#include "core/err.h"
#include "core/list.h"
#include "core/units.h"

#define READ_BYTES 16384

struct mover_link {
	struct loop *loop;
	struct chan *chan;
	struct timer *timer;
	struct frame_reader in;
	struct outbox out;
	struct msg flush;
	bool flush_posted, freed;
	bool lost, reported;        /* for the reason `why` */
	struct ptcp_err why;
	struct mono last_input;
	uint64_t tick;              /* of the other end's last PING */
	uint64_t timeout_ns;
	const struct mover_link_ops *ops;
	void *arg;
};

static void on_flush(struct msg *m);

static void post(struct mover_link *k)
{
	if (k->flush_posted)
		return;
	k->flush_posted = true;
	k->flush.run = on_flush;
	loop_post(k->loop, &k->flush);
}

/* The owner hears of it later, from the loop, and may free the link then. */
void mover_link_lose(struct mover_link *k, const struct ptcp_err *why)
{
	if (k->lost)
		return;
	k->lost = true;
	k->why = *why;
	chan_pause(k->chan, true);
	timer_set(k->timer, MONO_NEVER);
	post(k);
}

static void write_out(struct mover_link *k)
{
	struct buf *b = &k->out.b;
	size_t n;

	do {
		n = buf_len(b) > 0 ? chan_write(k->chan, buf_head(b), buf_len(b)) : 0;
		buf_consume(b, n);
	} while (n > 0);
	chan_flush(k->chan);
}

static void on_flush(struct msg *m)
{
	struct mover_link *k = CONTAINER_OF(m, struct mover_link, flush);
	struct ptcp_err why;

	k->flush_posted = false;
	if (k->freed) {
		free(k);
		return;
	}
	if (k->lost) {
		if (!k->reported) {
			k->reported = true;
			k->ops->lost(k->arg, &k->why); /* may free the link */
		}
		return;
	}
	write_out(k);
	if (k->out.failed) {
		err_set(&why, PTCP_EPEER, "the other end does not read");
		mover_link_lose(k, &why);
	}
}

struct outbox *mover_link_out(struct mover_link *k)
{
	post(k);
	return &k->out;
}

/* ---- Input ---- */

static int on_ping(struct mover_link *k, const struct frame *f, struct ptcp_err *e)
{
	struct wire_ping ping;
	int r;

	if ((r = wire_ping_decode(&ping, f->payload, e)) < 0)
		return r;
	k->tick = ping.tick;
	if (k->ops->answered != NULL)
		k->ops->answered(k->arg, (struct mono){ ping.tick });
	return 0;
}

static int take_frames(struct mover_link *k, struct ptcp_err *e)
{
	struct frame f;
	int r;

	while ((r = frame_reader_next(&k->in, &f, e)) > 0)
		if ((r = f.type == WIRE_PING ? on_ping(k, &f, e) : k->ops->frame(k->arg, &f, e)) < 0)
			break;
	return r;
}

static void on_readable(void *arg)
{
	struct mover_link *k = arg;
	uint8_t bytes[READ_BYTES];
	struct ptcp_err why;
	size_t n;

	while (!k->lost && (n = chan_read(k->chan, bytes, sizeof bytes)) > 0) {
		k->last_input = mono_now();
		if (frame_reader_add(&k->in, bytes, n, &why) < 0 || take_frames(k, &why) < 0)
			mover_link_lose(k, &why);
	}
}

static void on_writable(void *arg) { write_out(arg); }

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct mover_link *k = arg;
	struct ptcp_err closed;

	if (why == NULL) {
		err_set(&closed, PTCP_EPEER, "the other end closed the connection");
		why = &closed;
	}
	mover_link_lose(k, why);
}

static void on_timer(void *arg)
{
	struct mover_link *k = arg;
	struct mono now = mono_now();
	struct ptcp_err why;

	if (mono_diff_ns(now, k->last_input) >= k->timeout_ns) {
		err_set(&why, PTCP_ETIMEOUT, "no response for %.3g s", (double)k->timeout_ns / 1e9);
		mover_link_lose(k, &why);
		return;
	}
	OUTBOX_PUT(mover_link_out(k), ping, PING, (&(struct wire_ping){ WIRE_IDLE, k->ops->answered != NULL ? now.ns : k->tick }));
	timer_set(k->timer, mono_add_ns(now, LINK_PING_NS));
}

static const struct chan_ops chan_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };

int mover_link_new(struct mover_link **out, struct loop *l, struct chan *c, uint64_t timeout_ns,
    const struct mover_link_ops *ops, void *arg, struct ptcp_err *e)
{
	struct mover_link *k = calloc(1, sizeof *k);
	int r;

	if (k == NULL) {
		chan_free(c);
		return err_nomem(e);
	}
	*k = (struct mover_link){ .loop = l, .chan = c, .timeout_ns = timeout_ns, .ops = ops, .arg = arg,
		.last_input = mono_now() };
	if ((r = timer_new(&k->timer, l, on_timer, k, e)) < 0 || (r = chan_attach(c, l, &chan_ops, k, e)) < 0) {
		mover_link_free(k);
		return r;
	}
	timer_set(k->timer, mono_add_ns(mono_now(), LINK_PING_NS));
	*out = k;
	return 0;
}

void mover_link_free(struct mover_link *k)
{
	if (k == NULL)
		return;
	if (!k->lost && k->chan != NULL)
		write_out(k);
	chan_free(k->chan);
	timer_free(k->timer);
	frame_reader_fini(&k->in);
	buf_fini(&k->out.b);
	k->freed = true;
	if (!k->flush_posted)
		free(k);
}
