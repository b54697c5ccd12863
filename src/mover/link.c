#include "mover/link.h"

#include <stdlib.h>

#include "core/err.h"
#include "core/list.h"

#define READ_BYTES 16384

struct mover_link {
	struct loop *loop;
	struct chan *chan;
	struct timer *timer;
	struct frame_conn conn;
	struct msg flush;
	bool flush_posted, freed;
	bool lost, reported;        /* lost, and reported, for the reason `why` */
	struct ptcp_err why;
	void (*on_lost)(void *owner, const struct ptcp_err *why);
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
	struct buf *b = &k->conn.out.b;
	size_t n;

	do {
		n = buf_len(b) > 0 ? chan_write(k->chan, buf_head(b), buf_len(b)) : 0;
		buf_consume(b, n);
	} while (n > 0);
	chan_flush(k->chan);
}

static void judge(struct mover_link *k, enum frame_fault fault)
{
	struct ptcp_err why;

	if (fault == FRAME_ALIVE)
		return;
	if (fault == FRAME_UNREAD)
		err_set(&why, PTCP_EPEER, "the other end does not read");
	else
		err_set(&why, PTCP_ETIMEOUT, "no response for %.3g s",
		    (double)k->conn.table->limits(k->conn.owner).silence_ns / 1e9);
	mover_link_lose(k, &why);
}

static void on_flush(struct msg *m)
{
	struct mover_link *k = CONTAINER_OF(m, struct mover_link, flush);

	k->flush_posted = false;
	if (k->freed) {
		free(k);
		return;
	}
	if (k->lost) {
		if (!k->reported) {
			k->reported = true;
			k->on_lost(k->conn.owner, &k->why); /* may free the link */
		}
		return;
	}
	write_out(k);
	if (k->conn.out.failed)
		judge(k, FRAME_UNREAD);
}

struct outbox *mover_link_out(struct mover_link *k)
{
	post(k);
	return &k->conn.out;
}

/* ---- Input ---- */

static void on_readable(void *arg)
{
	struct mover_link *k = arg;
	uint8_t bytes[READ_BYTES];
	struct ptcp_err why;
	size_t n;

	while (!k->lost && (n = chan_read(k->chan, bytes, sizeof bytes)) > 0) {
		if (frame_conn_input(&k->conn, bytes, n, mono_now(), &why) < 0)
			mover_link_lose(k, &why);
	}
}

static void on_writable(void *arg) { write_out(arg); }

static void on_link_closed(void *arg, const struct ptcp_err *why)
{
	struct mover_link *k = arg;
	struct ptcp_err closed;

	if (why == NULL) {
		err_set(&closed, PTCP_EPEER, "the other end closed the connection");
		why = &closed;
	}
	mover_link_lose(k, why);
}

static void on_link_timer(void *arg)
{
	struct mover_link *k = arg;

	judge(k, frame_conn_tick(&k->conn, mono_now()));
	post(k); /* a PING, perhaps */
	if (!k->lost)
		timer_set(k->timer, frame_conn_deadline(&k->conn));
}

static const struct chan_ops chan_ops = { .readable = on_readable, .writable = on_writable, .closed = on_link_closed };

int mover_link_new(struct mover_link **out, struct loop *l, struct chan *c, const struct frame_table *t, void *owner,
    void (*on_lost)(void *owner, const struct ptcp_err *why), struct ptcp_err *e)
{
	struct mover_link *k = calloc(1, sizeof *k);
	int r;

	if (k == NULL) {
		chan_free(c);
		return err_nomem(e);
	}
	*k = (struct mover_link){ .loop = l, .chan = c, .on_lost = on_lost };
	frame_conn_init(&k->conn, t, owner, NULL, mono_now());
	if ((r = timer_new(&k->timer, l, on_link_timer, k, e)) < 0 || (r = chan_attach(c, l, &chan_ops, k, e)) < 0) {
		mover_link_free(k);
		return r;
	}
	timer_set(k->timer, frame_conn_deadline(&k->conn));
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
	frame_conn_fini(&k->conn);
	k->freed = true;
	if (!k->flush_posted)
		free(k);
}
