#include "conn/inbound.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/units.h"
#include "wire/outbox.h"

#define PATIENCE_NS (10 * NS_PER_S) /* for handshake and JOIN or ROUTE, or a goodbye */
#define ROUTE_NS (15 * NS_PER_S)    /* for the next hop, and leaving TLS */

void inbound_free(struct inbound *g)
{
	if (g->relayed != NULL)
		g->o.ops->relay_forget(g->relayed);
	list_remove(&g->in_list);
	pending_left(g->o.pending, g->o.from, g->end);
	chan_free(g->chan);
	timer_free(g->timer);
	if (g->o.ops->gone != NULL)
		g->o.ops->gone(g->o.arg);
	free(g);
}

struct chan *inbound_take_chan(struct inbound *g)
{
	struct chan *c = g->chan;

	g->chan = NULL;
	g->end = ADMISSION_GOOD;
	return c;
}

void inbound_refuse(struct inbound *g, const struct ptcp_err *why)
{
	struct outbox out = { BUF_INIT, false };

	outbox_put_error(&out, why);
	if (!out.failed)
		chan_write(g->chan, buf_head(&out.b), buf_len(&out.b));
	buf_fini(&out.b);
	g->state = INBOUND_REFUSED;
	chan_shutdown(g->chan);
}

void inbound_welcome(struct inbound *g, bool raw)
{
	uint8_t frame[WIRE_HEADER_BYTES];

	chan_write(g->chan, frame, wire_joined_encode(frame));
	chan_flush(g->chan);
	if (raw && g->join.stream != WIRE_JOIN_CONTROL) {
		g->state = INBOUND_LEAVING_TLS;
		chan_leave_tls(g->chan);
	} else {
		g->o.ops->stream(g->o.arg, g, &g->join);
	}
}

void inbound_routed(struct inbound *g)
{
	uint8_t frame[WIRE_ROUTED_MAX_BYTES];

	chan_write(g->chan, frame, wire_routed_encode(frame));
	g->state = INBOUND_LEAVING_TLS;
	chan_leave_tls(g->chan);
}

static void on_opened(void *arg)
{
	struct inbound *g = arg;

	if (g->relayed != NULL) {
		g->o.ops->relay_begin(g->relayed);
		inbound_free(g);
	} else if (g->state == INBOUND_LEAVING_TLS) {
		g->o.ops->stream(g->o.arg, g, &g->join);
	} else if (chan_is_alpn(g->chan, ALPN_CONTROL)) {
		g->o.ops->control(g->o.arg, g);
	} else if (chan_is_alpn(g->chan, ALPN_DATA) || (chan_is_alpn(g->chan, ALPN_ROUTE) && g->o.ops->route != NULL) ||
	    (chan_is_alpn(g->chan, ALPN_GRANT) && g->o.ops->granted != NULL)) {
		g->state = INBOUND_ASKING;
	} else if (chan_is_alpn(g->chan, ALPN_JOB) && g->o.ops->job != NULL) {
		g->o.ops->job(g->o.arg, g);
	} else {
		inbound_free(g);
	}
}

/* What it has to begin with. */
static unsigned first_frame(const struct inbound *g)
{
	return chan_is_alpn(g->chan, ALPN_GRANT) ? WIRE_GRANT : chan_is_alpn(g->chan, ALPN_DATA) ? WIRE_JOIN : WIRE_ROUTE;
}

/* That is here. False: it is malformed. */
static bool take_frame(struct inbound *g, const struct wire_header *h)
{
	struct span in = { g->frame + WIRE_HEADER_BYTES, h->length };
	struct wire_route route;
	struct wire_grant grant;
	struct ptcp_err why;

	if (h->type == WIRE_GRANT) {
		if (wire_grant_decode(&grant, in, &why) < 0)
			return false;
		g->o.ops->granted(g->o.arg, g, &grant);
	} else if (h->type == WIRE_JOIN) {
		if (wire_join_decode(&g->join, in, &why) < 0)
			return false;
		g->o.ops->join(g->o.arg, g, &g->join);
	} else {
		if (wire_route_decode(&route, in, &why) < 0)
			return false;
		timer_set(g->timer, mono_add_ns(mono_now(), ROUTE_NS));
		g->o.ops->route(g->o.arg, g, &route);
	}
	return true;
}

/* Reads up to so much of the frame; true when it is there. */
static bool fill(struct inbound *g, size_t want)
{
	if (g->got < want)
		g->got += chan_read(g->chan, g->frame + g->got, want - g->got);
	return g->got >= want;
}

static void on_readable(void *arg)
{
	struct inbound *g = arg;
	struct wire_header h;
	struct ptcp_err why;
	uint8_t rest[256];

	if (g->state == INBOUND_REFUSED)
		while (chan_read(g->chan, rest, sizeof rest) > 0)
			;
	if (g->state == INBOUND_ASKED && chan_read(g->chan, rest, 1) > 0) {
		inbound_free(g); /* its answer is not here yet */
		return;
	}
	if (g->state != INBOUND_ASKING || !fill(g, WIRE_HEADER_BYTES))
		return;
	if (wire_header_decode(&h, g->frame, &why) < 0 || h.type != first_frame(g) ||
	    h.length > sizeof g->frame - WIRE_HEADER_BYTES) {
		inbound_free(g);
		return;
	}
	if (!fill(g, WIRE_HEADER_BYTES + h.length))
		return;
	g->state = INBOUND_ASKED;
	if (!take_frame(g, &h))
		inbound_free(g);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct inbound *g = arg;

	if (why != NULL)
		log_at(&g->o.host->log, LOG_INFO, "server", "event=guest-lost from=%s why=\"%s\"", g->address,
		    why->msg);
	if (why != NULL && why->code == PTCP_EPROTO && g->state == INBOUND_HANDSHAKE)
		g->end = ADMISSION_BAD; /* it does not speak ptcp */
	inbound_free(g);
}

static const struct chan_ops chan_ops = { .opened = on_opened, .readable = on_readable, .closed = on_closed };

static void on_timer(void *arg)
{
	struct inbound *g = arg;

	log_at(&g->o.host->log, LOG_INFO, "server", "event=guest-late from=%s", g->address);
	inbound_free(g);
}

int inbound_new(const struct inbound_opts *o, struct ptcp_err *e)
{
	struct sock_opts so = { 0, o->timeout_ns, NULL };
	struct inbound *g = calloc(1, sizeof *g);
	struct chan_opts co = { .fd = o->fd, .server = true, .ops = &chan_ops, .arg = g };
	struct timer *timer = NULL;
	int r;

	sock_tune(o->fd, &so, e);
	if (g == NULL || (r = timer_new(&timer, o->host->control, on_timer, g, e)) < 0) {
		free(g);
		close(o->fd);
		return err_nomem(e);
	}
	if ((r = chan_new(&g->chan, o->host->control, o->host->server, &co, e)) < 0) {
		timer_free(timer);
		free(g);
		return r;
	}
	g->o = *o;
	g->timer = timer;
	strncpy(g->address, o->address, sizeof g->address - 1);
	list_append(&o->pending->guests, &g->in_list);
	timer_set(timer, mono_add_ns(mono_now(), PATIENCE_NS));
	return 0;
}
