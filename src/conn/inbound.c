#include "conn/inbound.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/client_hello.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "net/watch.h"
#include "wire/outbox.h"

#define PATIENCE_NS (10 * NS_PER_S) /* limit for handshake and first frame, or for reading our refusal */
#define ROUTE_NS (15 * NS_PER_S)    /* limit for the next hop, and leaving TLS */
#define SHUT_OUT_LOG_NS (60 * NS_PER_S) /* a flood must not fill the log */

void inbound_free(struct inbound *g)
{
	struct pending *l = g->pending;

	if (g->relayed != NULL)
		l->o.ops->relay_forget(g->relayed);
	list_remove(&g->in_list);
	l->n--;
	fd_budget_count_inbound(-1);
	admission_leave(l->admission, g->from, g->end);
	watch_free(g->peek);
	fd_close(&g->fd);
	handshake_cancel(g->handshake);
	chan_free(g->chan);
	timer_free(g->timer);
	memory_account_free(g->memory);
	if (l->o.ops->gone != NULL)
		l->o.ops->gone(l->o.arg);
	free(g);
}

struct chan *inbound_take_chan(struct inbound *g)
{
	struct chan *c = g->chan;

	g->chan = NULL;
	g->end = ADMISSION_GOOD;
	return c;
}

void inbound_log(struct inbound *g, enum log_level level, const char *event, const char *fmt, ...)
{
	const struct log *log = &g->pending->o.context->log;
	unsigned left_out;
	char text[700];
	va_list ap;

	if (level > log->level || !log_limit_allows(&g->pending->log_limit, mono_now(), &left_out))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (left_out > 0)
		log_at(log, LOG_WARN, "server", "event=log-limited lines=%u why=\"too many failed connections\"",
		    left_out);
	log_at(log, level, "server", "event=%s from=%s %s", event, g->address, text);
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

void inbound_routed(struct inbound *g)
{
	uint8_t frame[WIRE_ROUTED_MAX_BYTES];

	chan_write(g->chan, frame, wire_routed_encode(frame));
	g->state = INBOUND_LEAVING_TLS;
	chan_leave_tls(g->chan);
}

/* After a callback that returned `r`. */
static void conclude(struct inbound *g, int r, const struct ptcp_err *why)
{
	if (r < 0)
		inbound_refuse(g, why);
	else if (g->chan == NULL)
		inbound_free(g);
}

static void become_stream(struct inbound *g)
{
	g->pending->o.ops->stream(g->pending->o.arg, inbound_take_chan(g), &g->join);
	inbound_free(g);
}

static void take_join(struct inbound *g)
{
	uint8_t frame[WIRE_HEADER_BYTES];
	bool plaintext = false;
	struct ptcp_err why;

	if (g->pending->o.ops->join(g->pending->o.arg, g, &g->join, &plaintext, &why) < 0) {
		inbound_refuse(g, &why);
		return;
	}
	chan_write(g->chan, frame, wire_joined_encode(frame));
	chan_flush(g->chan);
	if (plaintext && g->join.stream != WIRE_JOIN_CONTROL) {
		g->state = INBOUND_LEAVING_TLS;
		chan_leave_tls(g->chan);
	} else {
		become_stream(g);
	}
}

static void on_opened(void *arg)
{
	struct inbound *g = arg;
	const struct pending_opts *o = &g->pending->o;
	struct ptcp_err why;

	if (g->relayed != NULL) {
		o->ops->relay_begin(g->relayed);
		inbound_free(g);
	} else if (g->state == INBOUND_LEAVING_TLS) {
		become_stream(g);
	} else if (chan_is_alpn(g->chan, ALPN_CONTROL) && o->ops->control != NULL) {
		conclude(g, o->ops->control(o->arg, g, &why), &why);
	} else if ((chan_is_alpn(g->chan, ALPN_DATA) && o->ops->join != NULL) || (chan_is_alpn(g->chan, ALPN_ROUTE) &&
	    o->ops->route != NULL) || (chan_is_alpn(g->chan, ALPN_GRANT) && o->ops->granted != NULL) ||
	    (chan_is_alpn(g->chan, ALPN_MOVER) && o->ops->mover != NULL)) {
		g->state = INBOUND_AWAIT_FRAME;
	} else if (chan_is_alpn(g->chan, ALPN_JOB) && o->ops->job != NULL) {
		conclude(g, o->ops->job(o->arg, g, &why), &why);
	} else {
		inbound_free(g);
	}
}

/* A grant may precede ROUTE. */
static bool is_expected(const struct inbound *g, unsigned type)
{
	if (chan_is_alpn(g->chan, ALPN_ROUTE))
		return type == WIRE_ROUTE || (type == WIRE_GRANT && g->at == 0);
	return type == (chan_is_alpn(g->chan, ALPN_GRANT) ? WIRE_GRANT : WIRE_JOIN);
}

/* False: malformed. */
static bool take_frame(struct inbound *g, const struct wire_header *h)
{
	struct span in = { g->frame + g->at + WIRE_HEADER_BYTES, h->length };
	const struct pending_opts *o = &g->pending->o;
	struct wire_route route;
	struct wire_grant grant;
	struct ptcp_err why;

	if (h->type == WIRE_GRANT) {
		if (wire_grant_decode(&grant, in, &why) < 0)
			return false;
		conclude(g, o->ops->granted(o->arg, g, &grant, &why), &why);
	} else if (h->type == WIRE_JOIN) {
		if (wire_join_decode(&g->join, in, &why) < 0)
			return false;
		if (chan_is_alpn(g->chan, ALPN_MOVER))
			conclude(g, o->ops->mover(o->arg, g, &g->join, &why), &why);
		else
			take_join(g);
	} else {
		if (wire_route_decode(&route, in, &why) < 0 || (g->at > 0 && wire_grant_decode(&grant,
		    (struct span){ g->frame + WIRE_HEADER_BYTES, g->at - WIRE_HEADER_BYTES }, &why) < 0))
			return false;
		timer_set(g->timer, mono_add_ns(mono_now(), admission_limit_ns(ROUTE_NS)));
		conclude(g, o->ops->route(o->arg, g, &route, g->at > 0 ? &grant : NULL, &why), &why);
	}
	return true;
}

/* Reads up to `want` bytes of the frame; true when all are read. */
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
	if (g->state == INBOUND_AWAIT_VERDICT && chan_read(g->chan, rest, 1) > 0) {
		inbound_free(g); /* it sends before it has our answer */
		return;
	}
	if (g->state != INBOUND_AWAIT_FRAME || !fill(g, g->at + WIRE_HEADER_BYTES))
		return;
	if (wire_header_decode(&h, g->frame + g->at, &why) < 0 || !is_expected(g, h.type) ||
	    h.length > sizeof g->frame - WIRE_HEADER_BYTES - g->at) {
		inbound_free(g);
		return;
	}
	if (!fill(g, g->at + WIRE_HEADER_BYTES + h.length))
		return;
	if (h.type == WIRE_GRANT && chan_is_alpn(g->chan, ALPN_ROUTE)) {
		g->at = g->got;
		on_readable(g); /* ROUTE, which is often there */
		return;
	}
	g->state = INBOUND_AWAIT_VERDICT;
	if (!take_frame(g, &h))
		inbound_free(g);
}

static void on_inbound_closed(void *arg, const struct ptcp_err *why)
{
	struct inbound *g = arg;

	if (why != NULL)
		inbound_log(g, LOG_INFO, "inbound-lost", "why=\"%s\"", why->msg);
	if (why != NULL && why->code == PTCP_EPROTO && g->state == INBOUND_HANDSHAKE)
		g->end = ADMISSION_BAD; /* not a ptcp client */
	inbound_free(g);
}

static const struct chan_ops chan_ops = { .opened = on_opened, .readable = on_readable, .closed = on_inbound_closed };

static void on_handshake(void *arg, struct chan *c, const struct ptcp_err *why)
{
	struct inbound *g = arg;

	g->handshake = NULL;
	g->chan = c;
	if (c == NULL)
		on_inbound_closed(g, why);
	else
		on_opened(g);
}

static void on_inbound_timer(void *arg)
{
	struct inbound *g = arg;

	inbound_log(g, LOG_INFO, "inbound-late", "why=\"no valid request in time\"");
	inbound_free(g);
}

/* ---- A shared port: whose connection is it? ---- */

/* Takes the socket, also on failure. */
static int open_chan(struct inbound *g, int *fd, struct ptcp_err *e)
{
	struct context *context = g->pending->o.context;
	struct chan_opts co = { .server = true, .ops = &chan_ops, .arg = g };

	return context_handshake(context, &g->handshake, context->server, fd, &co, on_handshake, e);
}

/* The socket is readable when it has that many bytes, or the end. */
static void await_bytes(struct inbound *g, size_t n)
{
	int low = (int)n;

	setsockopt(g->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
}

/* The connection is this server's. Connections with an unknown label are handled as connections without a label. */
static void stay(struct inbound *g)
{
	struct ptcp_err why;

	watch_free(g->peek);
	g->peek = NULL;
	if (open_chan(g, &g->fd, &why) < 0) {
		inbound_log(g, LOG_WARN, "failed", "why=\"%s\"", why.msg);
		inbound_free(g);
	}
}

static void lend(struct inbound *g, const char *label)
{
	switch (g->pending->o.ops->lend(g->pending->o.arg, label, g->fd)) {
	case INBOUND_LENT:
		inbound_free(g);
		break;
	case INBOUND_LEND_BUSY:
		watch_hold(g->peek, true);
		break;
	case INBOUND_LEND_UNKNOWN:
		stay(g);
	}
}

/* A peer that sends its ClientHello in pieces costs one call for each, because every call waits for the rest. Without
 * new bytes the peer has sent its end. */
static void on_first_bytes(void *arg)
{
	struct inbound *g = arg;
	uint8_t first[CLIENT_HELLO_MAX_BYTES];
	char label[CLIENT_HELLO_LABEL_BYTES];
	ssize_t n = recv(g->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
	size_t got = n > 0 ? (size_t)n : 0, need;
	enum client_hello verdict;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	verdict = client_hello_read(label, &need, first, got);
	if (verdict == CLIENT_HELLO_MORE && got > g->peeked) {
		g->peeked = got;
		await_bytes(g, need);
		return;
	}
	if (g->peeked > 0)
		await_bytes(g, 1);
	if (verdict == CLIENT_HELLO_LABEL)
		lend(g, label);
	else
		stay(g);
}

/* In a flood the oldest goes, so that a client's fast handshake succeeds. */
static int inbound_charge(struct pending *l, struct memory_account *a, struct ptcp_err *e)
{
	uint64_t bytes = sizeof(struct inbound) + CHAN_BYTES;
	int r = memory_charge(a, bytes, e);

	if (r == 0 || list_empty(&l->waiting))
		return r;
	inbound_free(CONTAINER_OF(l->waiting.next, struct inbound, in_list));
	return memory_charge(a, bytes, e);
}

/* `fd` is taken, also on failure. */
static int inbound_new(struct pending *l, int *fd, const char *address, struct peer_address *from, bool one_channel,
    struct ptcp_err *e)
{
	struct sock_opts so = { .timeout_ns = l->o.timeout_ns, .dscp = sock_answer_mark(*fd) };
	struct inbound *g = calloc(1, sizeof *g);
	int r;

	sock_tune(*fd, &so, e);
	if (g == NULL || (r = timer_new(&g->timer, l->o.context->control, on_inbound_timer, g, e)) < 0) {
		free(g);
		fd_close(fd);
		return err_nomem(e);
	}
	g->pending = l;
	g->fd = fd_take(fd);
	if ((r = memory_account_new(&g->memory, l->o.memory, INBOUND_STRANGERS, e)) < 0 ||
	    (r = inbound_charge(l, g->memory, e)) < 0)
		;
	else if (!l->peeks || one_channel)
		r = open_chan(g, &g->fd, e);
	else
		r = watch_new(&g->peek, l->o.context->control, g->fd, on_first_bytes, g, e);
	if (r < 0) {
		fd_close(&g->fd);
		timer_free(g->timer);
		memory_account_free(g->memory);
		free(g);
		return r;
	}
	g->from = from;
	g->end = admission_has_session(from) ? ADMISSION_GOOD : ADMISSION_LOST;
	g->one_channel = one_channel;
	strncpy(g->address, address, sizeof g->address - 1);
	list_append(&l->waiting, &g->in_list);
	l->n++;
	fd_budget_count_inbound(1);
	timer_set(g->timer, mono_add_ns(mono_now(), admission_limit_ns(PATIENCE_NS)));
	return 0;
}

/* ---- All that wait ---- */

int pending_init(struct pending *l, const struct pending_opts *o, struct ptcp_err *e)
{
	*l = (struct pending){ .o = *o };
	list_init(&l->waiting);
	return admission_new(&l->admission, fd_budget_unauthenticated(o->waiting), o->sessions, o->streams, e);
}

void pending_fini(struct pending *l)
{
	admission_free(l->admission);
	l->admission = NULL;
}

/* Takes the socket. */
static void shut_out(struct pending *l, int *fd, const char *address)
{
	struct mono now = mono_now();

	fd_close(fd);
	l->shut_out++;
	if (l->shut_out > 1 && mono_diff_ns(now, l->shut_out_logged) < SHUT_OUT_LOG_NS)
		return;
	l->shut_out_logged = now;
	log_at(&l->o.context->log, LOG_WARN, "server", "event=shut-out from=%s connections=%llu why=\"too many "
	    "failed or unauthenticated connections from this address\"", address, (unsigned long long)l->shut_out);
}

static void free_oldest(struct pending *l, const struct peer_address *from)
{
	struct list *i;

	for (i = l->waiting.next; i != &l->waiting; i = i->next) {
		struct inbound *g = CONTAINER_OF(i, struct inbound, in_list);

		if (g->from == from) {
			inbound_free(g);
			return;
		}
	}
}

void pending_take(struct pending *l, int *fd, const char *address, bool one_channel)
{
	struct peer_address *from = admission_begin(l->admission, address, mono_now()), *excess;
	struct ptcp_err why;

	if (from == NULL) {
		shut_out(l, fd, address);
		return;
	}
	/* In a flood the oldest connection goes, so that a client's fast handshake succeeds. */
	if ((excess = admission_excess(l->admission, from)) != NULL)
		free_oldest(l, excess);
	if (inbound_new(l, fd, address, from, one_channel, &why) < 0) {
		log_at(&l->o.context->log, LOG_WARN, "server", "event=failed from=%s why=\"%s\"", address, why.msg);
		admission_leave(l->admission, from, ADMISSION_LOST);
	}
}

void pending_empty(struct pending *l)
{
	while (!list_empty(&l->waiting))
		inbound_free(CONTAINER_OF(l->waiting.next, struct inbound, in_list));
}

void pending_lend_again(struct pending *l)
{
	struct inbound *g;

	LIST_EACH(&l->waiting, g, struct inbound, in_list)
		if (g->peek != NULL)
			watch_hold(g->peek, false);
}
