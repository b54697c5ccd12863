#include "conn/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "net/dial.h"
#include "wire/outbox.h"

#define HOP_TEXT_BYTES (SOCK_HOST_BYTES + 10)

/* The steps are the same at each relay and at the host: TLS, identity, first frame, answer. After its answer a relay
 * leaves TLS, and the socket leads to the next hop. */
struct connect {
	struct connect_opts o;
	struct connect_hop to;
	char address[HOP_TEXT_BYTES];
	struct dial *dial;
	struct handshake *handshake; /* handshake with hop `at` */
	struct chan *chan;       /* channel after the handshake */
	struct timer *timer;
	struct mono deadline;
	unsigned at;             /* o.relay[at]; n_relays: the host */
	enum { HANDSHAKE, AWAIT_ANSWER, LEAVE_TLS, READY, ASKING } state; /* READY: a spare
	                                                                     connection, until
	                                                                     adopted; ASKING: until connect_pass() */
	struct connect *spare;
	bool failed;             /* a spare connection; until adopted it has no o.done */
	bool next_failed;        /* a relay answered that it does not connect to the next hop */
	/* wire_header_decode() accepts no longer ERROR, and no ROUTED or JOINED with content. */
	uint8_t answer[WIRE_ERROR_MAX_BYTES];
	size_t got;
	char relay_fingerprint[CONNECT_RELAYS_MAX][PTCP_FINGERPRINT_BYTES];
};

void connect_cancel(struct connect *c)
{
	if (c == NULL)
		return;
	connect_cancel(c->spare);
	dial_cancel(c->dial);
	handshake_cancel(c->handshake);
	chan_free(c->chan);
	timer_free(c->timer);
	free(c);
}

static void connect_finish(struct connect *c, struct connect_result *r)
{
	struct connect_opts o = c->o;
	char address[HOP_TEXT_BYTES];

	strcpy(address, c->address);
	r->address = address;
	if (r->chan != NULL) {
		r->spare = c->spare;
		c->spare = NULL;
	}
	connect_cancel(c);
	o.done(o.arg, r);
}

static bool at_relay(const struct connect *c) { return c->at < c->o.n_relays; }

static const struct connect_hop *hop(const struct connect *c)
{
	return at_relay(c) ? &c->o.relay[c->at] : &c->to;
}

static void hop_text(char out[HOP_TEXT_BYTES], const struct connect_hop *h)
{
	if (h->port != 0)
		sock_join(out, HOP_TEXT_BYTES, h->host, h->port);
	else
		snprintf(out, HOP_TEXT_BYTES, "%s", h->host);
}

static void fail(struct connect *c, enum connect_cause cause, const struct ptcp_err *why)
{
	struct connect_result r = { .cause = cause, .why = *why, .hop = c->next_failed ? c->at + 1 : c->at };

	if (c->o.done != NULL) {
		connect_finish(c, &r);
		return;
	}
	c->failed = true;
	handshake_cancel(c->handshake);
	c->handshake = NULL;
	chan_free(c->chan);
	c->chan = NULL;
	timer_set(c->timer, MONO_NEVER);
}

/* `what` happened at the present hop. */
static void fail_at_hop(struct connect *c, enum connect_cause cause, int code, const char *what, bool hint)
{
	const char *remedy = at_relay(c) ? "is it a ptcp server with --relay-to?" :
	    c->o.hint != NULL ? c->o.hint : "is it a ptcp server?";
	char name[HOP_TEXT_BYTES];
	struct ptcp_err why;

	hop_text(name, hop(c));
	err_set(&why, code, "%s %s: %.300s%s%s%s", at_relay(c) ? "relay" : "connecting to", name, what,
	    hint ? " (" : "", hint ? remedy : "", hint ? ")" : "");
	fail(c, cause, &why);
}

static void broken(struct connect *c, const char *what)
{
	fail_at_hop(c, at_relay(c) ? CONNECT_RELAY : CONNECT_UNREACHABLE, PTCP_EPROTO, what, true);
}

/* ---- One hop ---- */

/* No two hops share an identity: a relay in the place of the next hop could read that hop's data. */
static int check_identity(struct connect *c, struct ptcp_err *e)
{
	const char *fingerprint = chan_fingerprint(c->chan);
	struct connect_peer peer = { .fingerprint = fingerprint };
	char name[HOP_TEXT_BYTES], relay[HOP_TEXT_BYTES];
	unsigned i;

	hop_text(name, hop(c));
	for (i = 0; i < c->at; i++)
		if (strcmp(c->relay_fingerprint[i], fingerprint) == 0) {
			hop_text(relay, &c->o.relay[i]);
			return err_set(e, PTCP_EREFUSED, "%s: has the identity of the relay %s (the relay answers for "
			    "the other host, or both are one host: leave one out)", name, relay);
		}
	if (at_relay(c))
		strcpy(c->relay_fingerprint[c->at], fingerprint);
	else if (c->o.fingerprint != NULL)
		return strcmp(fingerprint, c->o.fingerprint) == 0 ? 0 : err_set(e, PTCP_EREFUSED, "%s: the host's "
		    "fingerprint is %s, not %s as expected (another host answers in its place, or its key was "
		    "replaced: compare with ptcp key show there)", name, fingerprint, c->o.fingerprint);
	chan_certificates(c->chan, &peer.certificates);
	if (c->o.ask == NULL)
		return c->o.check(c->o.arg, hop(c), at_relay(c), &peer, e);
	c->state = ASKING;
	c->o.ask(c->o.arg, c->at, &peer);
	return 0;
}

static int write_first(struct connect *c, struct ptcp_err *e)
{
	uint8_t frame[WIRE_ROUTE_MAX_BYTES];
	const struct connect_hop *next;
	struct wire_route f;

	if (!at_relay(c))
		return c->o.first != NULL ? c->o.first(c->o.arg, c->chan, e) : 0;
	next = c->at + 1 < c->o.n_relays ? &c->o.relay[c->at + 1] : &c->to;
	f = (struct wire_route){ .port = (uint16_t)next->port, .host = { (const uint8_t *)next->host,
		strlen(next->host) },
		.spool_bytes = c->o.spool_bytes, .session = c->o.route_session, .control = c->o.route_control };
	chan_write(c->chan, frame, wire_route_encode(frame, &f));
	return 0;
}

static void begin_hop(struct connect *c, int *fd);

static void hop_done(struct connect *c)
{
	struct connect_result r = { .chan = c->chan };
	int fd;

	if (!at_relay(c)) {
		chan_detach(c->chan);
		c->chan = NULL;
		connect_finish(c, &r);
		return;
	}
	if ((fd = chan_take_fd(c->chan)) < 0) {
		broken(c, "data before the end of TLS");
		return;
	}
	chan_free(c->chan);
	c->chan = NULL;
	c->at++;
	begin_hop(c, &fd);
}

static void send_first(struct connect *c)
{
	struct ptcp_err why;

	if (write_first(c, &why) < 0) {
		fail(c, CONNECT_UNREACHABLE, &why);
	} else {
		chan_flush(c->chan);
		c->state = AWAIT_ANSWER;
		if (!at_relay(c) && c->o.answer == 0)
			hop_done(c);
	}
}

static void begin_frames(struct connect *c)
{
	struct ptcp_err why;

	if (check_identity(c, &why) < 0)
		fail(c, CONNECT_IDENTITY, &why);
	else if (c->state != ASKING)
		send_first(c);
}

void connect_pass(struct connect *c, const uint8_t *grant, size_t n)
{
	if (c->state != ASKING)
		return;
	chan_write(c->chan, grant, n);
	send_first(c);
}

static void on_opened(void *arg)
{
	struct connect *c = arg;

	if (c->state == LEAVE_TLS)
		hop_done(c);
	else if (c->o.done == NULL)
		c->state = READY;
	else
		begin_frames(c);
}

static void on_error_frame(struct connect *c, struct span in)
{
	struct wire_error f;
	struct ptcp_err why;

	if (wire_error_decode(&f, in, &why) < 0) {
		broken(c, why.msg);
		return;
	}
	outbox_reason(&why, &f.why);
	c->next_failed = at_relay(c);
	fail_at_hop(c, at_relay(c) ? CONNECT_RELAY : CONNECT_REFUSED,
	    why.code == PTCP_EREFUSED || why.code == PTCP_EBUSY ? why.code : PTCP_ECONNECT, why.msg, false);
}

/* Reads no byte beyond `want`: the caller reads what follows the answer. */
static bool fill(struct connect *c, size_t want)
{
	if (c->got < want)
		c->got += chan_read(c->chan, c->answer + c->got, want - c->got);
	return c->got >= want;
}

static void on_readable(void *arg)
{
	struct connect *c = arg;
	enum wire_type answer = at_relay(c) ? WIRE_ROUTED : c->o.answer;
	struct wire_header h;
	struct ptcp_err why;

	if ((c->state == READY || c->state == ASKING) && fill(c, 1)) {
		broken(c, "data before the first frame");
		return;
	}
	if (c->state != AWAIT_ANSWER || !fill(c, WIRE_HEADER_BYTES))
		return;
	if (wire_header_decode(&h, c->answer, &why) < 0 || (h.type != WIRE_ERROR && h.type != answer)) {
		broken(c, "malformed answer");
		return;
	}
	if (!fill(c, WIRE_HEADER_BYTES + h.length))
		return;
	if (h.type == WIRE_ERROR) {
		on_error_frame(c, (struct span){ c->answer + WIRE_HEADER_BYTES, h.length });
	} else if (at_relay(c) || c->o.plaintext) {
		c->state = LEAVE_TLS;
		chan_leave_tls(c->chan);
	} else {
		hop_done(c);
	}
}

static void on_connect_closed(void *arg, const struct ptcp_err *why)
{
	struct connect *c = arg;
	bool refused = c->state == HANDSHAKE && why != NULL && why->code == PTCP_EPEER;

	fail_at_hop(c, refused ? CONNECT_CLOSED : at_relay(c) ? CONNECT_RELAY : CONNECT_UNREACHABLE, PTCP_ECONNECT,
	    why != NULL ? why->msg : "the host closed the connection", true);
}

static const struct chan_ops chan_ops = { .opened = on_opened, .readable = on_readable, .closed = on_connect_closed };

static void on_handshake(void *arg, struct chan *chan, const struct ptcp_err *why)
{
	struct connect *c = arg;

	c->handshake = NULL;
	c->chan = chan;
	if (chan == NULL)
		on_connect_closed(c, why);
	else
		on_opened(c);
}

/* Takes the socket, also on failure. */
static int open_chan(struct connect *c, int *fd, struct ptcp_err *e)
{
	struct chan_opts o = { .ops = &chan_ops, .arg = c, .alpn = at_relay(c) ? ALPN_ROUTE : c->o.alpn,
		.server_name = at_relay(c) ? NULL : c->o.label, .one_cipher = !at_relay(c) && c->o.one_cipher,
		.cipher = c->o.cipher };

	c->state = HANDSHAKE;
	c->got = 0;
	return context_handshake(c->o.context, &c->handshake, c->o.context->client, fd, &o, on_handshake, e);
}

static void begin_hop(struct connect *c, int *fd)
{
	struct ptcp_err why;

	if (open_chan(c, fd, &why) < 0)
		fail(c, CONNECT_UNREACHABLE, &why);
}

/* ---- All hops ---- */

/* A second connection to the address, for the first data stream: its TCP and TLS take no time of their own. Only the
 * session's peer is sent a frame on it. */
static void start_spare(struct connect *c)
{
	char host[SOCK_HOST_BYTES];
	struct connect_opts o = { .context = c->o.context, .host = host, .timeout_ns = c->o.timeout_ns,
		.sock = c->o.sock,
		.alpn = ALPN_DATA, .label = c->o.label, .one_cipher = *c->o.spare != PTCP_CIPHER_NONE,
		.cipher = *c->o.spare };
	struct ptcp_err e;

	if (sock_split(c->address, host, &o.port, c->to.port, &e) == 0)
		connect_start(&c->spare, &o, &e); /* without it the session connects all streams itself */
}

static void on_dialed(void *arg, int *fd, const char *address, const struct ptcp_err *why)
{
	struct connect *c = arg;
	struct ptcp_err e;

	c->dial = NULL;
	if (*fd < 0) {
		fail(c, why->code == PTCP_EREFUSED ? CONNECT_REFUSED :
		    mono_now().ns >= c->deadline.ns ? CONNECT_TIMED_OUT : CONNECT_UNREACHABLE, why);
		return;
	}
	if (c->o.sock.timeout_ns != c->o.timeout_ns) /* dial set its own time-out */
		sock_tune(*fd, &c->o.sock, &e);
	if (c->o.n_relays == 0)
		snprintf(c->address, sizeof c->address, "%s", address);
	timer_set(c->timer, c->deadline);
	if (c->o.spare != NULL && c->o.n_relays == 0)
		start_spare(c);
	begin_hop(c, fd);
}

static void on_connect_timer(void *arg)
{
	static const char *const awaited[] = { "TLS handshake", "answer", "end of TLS", "use", "permission" };
	struct connect *c = arg;
	char text[80];

	if (c->state == READY && c->o.done != NULL) {
		timer_set(c->timer, c->deadline);
		begin_frames(c);
		return;
	}
	snprintf(text, sizeof text, "no %s within %.3g s", awaited[c->state], (double)c->o.timeout_ns / 1e9);
	fail_at_hop(c, at_relay(c) && c->state != HANDSHAKE ? CONNECT_TIMED_OUT : CONNECT_SLOW,
	    PTCP_ECONNECT, text, true);
}

static bool permits(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	const struct connect *c = arg;

	return c->o.permits(c->o.arg, all, sa);
}

static int start_dial(struct connect *c, struct ptcp_err *e)
{
	struct dial_opts o = { .names = c->o.context->names, .client = c->o.client, .host = hop(c)->host,
		.port = hop(c)->port,
		.sock = c->o.sock, .permits = c->o.permits != NULL ? permits : NULL, .done = on_dialed, .arg = c };

	o.sock.timeout_ns = c->o.timeout_ns;
	return dial_start(&c->dial, c->o.context->control, &o, e);
}

/* Takes the socket, also on failure; -1: dials. */
static int start(struct connect **out, int *fd, const struct connect_opts *o, struct ptcp_err *e)
{
	struct connect *c = calloc(1, sizeof *c);
	int r = c != NULL ? timer_new(&c->timer, o->context->control, on_connect_timer, c, e) : err_nomem(e);

	if (r < 0) {
		free(c);
		fd_close(fd);
		return r;
	}
	c->o = *o;
	c->deadline = mono_add_ns(mono_now(), o->timeout_ns);
	snprintf(c->to.host, sizeof c->to.host, "%s", o->host);
	c->to.port = o->port;
	hop_text(c->address, &c->to);
	if (*fd >= 0)
		timer_set(c->timer, c->deadline);
	if ((r = *fd >= 0 ? open_chan(c, fd, e) : start_dial(c, e)) < 0) {
		connect_cancel(c);
		return r;
	}
	*out = c;
	return 0;
}

int connect_start(struct connect **out, const struct connect_opts *o, struct ptcp_err *e)
{
	int none = -1;

	return start(out, &none, o, e);
}

bool connect_adopt(struct connect *c, const struct connect_opts *o)
{
	if (c->failed)
		return false;
	c->o = *o;
	c->deadline = mono_add_ns(mono_now(), o->timeout_ns);
	timer_set(c->timer, c->state == READY ? mono_now() : c->deadline);
	return true;
}

int connect_over(struct connect **out, int *fd, const struct connect_opts *o, struct ptcp_err *e)
{
	return start(out, fd, o, e);
}
