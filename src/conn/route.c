#include "conn/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "net/dial.h"
#include "wire/frame.h"

#define ANSWER_BYTES (WIRE_HEADER_BYTES + 4 + WIRE_TEXT_MAX) /* ROUTED, or an ERROR */
#define HOP_TEXT_BYTES (SOCK_HOST_BYTES + 10)

struct route {
	struct route_opts o;
	char to[SOCK_HOST_BYTES];
	struct dial *dial;
	struct chan *chan;       /* to relay[at], through those before */
	struct timer *timer;
	unsigned at;
	enum { DIALLING, GREETING, ASKED, LEAVING } state;
	uint8_t answer[ANSWER_BYTES];
	size_t got;
	char seen[ROUTE_RELAYS_MAX][PTCP_FINGERPRINT_BYTES];
};

void route_cancel(struct route *w)
{
	if (w == NULL)
		return;
	dial_cancel(w->dial);
	chan_free(w->chan);
	timer_free(w->timer);
	free(w);
}

/* The end of it: `fd` is given away. */
static void finish(struct route *w, int fd, const char *address, const struct ptcp_err *why)
{
	struct route_opts o = w->o;
	char kept[SOCK_HOST_BYTES];
	struct ptcp_err e;

	snprintf(kept, sizeof kept, "%s", address);
	if (why != NULL)
		e = *why;
	route_cancel(w);
	o.done(o.arg, fd, kept, why != NULL ? &e : NULL);
}

static void hop_text(const struct route *w, char out[HOP_TEXT_BYTES])
{
	sock_join(out, HOP_TEXT_BYTES, w->o.relay[w->at].host, w->o.relay[w->at].port);
}

static void fail(struct route *w, int code, const char *what)
{
	char name[HOP_TEXT_BYTES];
	struct ptcp_err why;

	hop_text(w, name);
	err_set(&why, code, "relay %s: %s", name, what);
	finish(w, -1, "", &why);
}

/* ---- One relay ---- */

/* One identity is one hop: a relay that plays the next one, too, would see what is meant for it. */
static int check_relay(struct route *w, struct ptcp_err *e)
{
	const char *fingerprint = chan_fingerprint(w->chan);
	char name[HOP_TEXT_BYTES];
	unsigned i;

	for (i = 0; i < w->at; i++)
		if (strcmp(w->seen[i], fingerprint) == 0) {
			hop_text(w, name);
			return err_set(e, PTCP_EREFUSED, "relay %s: it has the identity of the relay before it (that one "
			    "answers in its place, or they are one: leave one out)", name);
		}
	strcpy(w->seen[w->at], fingerprint);
	return w->o.check(w->o.arg, &w->o.relay[w->at], fingerprint, e);
}

static void ask(struct route *w)
{
	bool last = w->at + 1 == w->o.n_relays;
	const char *to = last ? w->to : w->o.relay[w->at + 1].host;
	struct wire_route f = { .port = (uint16_t)(last ? w->o.port : w->o.relay[w->at + 1].port),
		.host = { (const uint8_t *)to, strlen(to) }, .hold_bytes = w->o.hold_bytes };
	uint8_t frame[WIRE_ROUTE_MAX_BYTES];

	chan_write(w->chan, frame, wire_route_encode(frame, &f));
	chan_flush(w->chan);
	w->state = ASKED;
}

static void begin_relay(struct route *w, int fd);

static void leave_behind(struct route *w)
{
	int fd = chan_take_fd(w->chan);
	char end[HOP_TEXT_BYTES];

	if (fd < 0) {
		fail(w, PTCP_EPROTO, "it sends before it is asked");
		return;
	}
	chan_free(w->chan);
	w->chan = NULL;
	if (++w->at < w->o.n_relays) {
		begin_relay(w, fd);
		return;
	}
	sock_join(end, sizeof end, w->to, w->o.port);
	finish(w, fd, end, NULL);
}

static void on_opened(void *arg)
{
	struct route *w = arg;
	struct ptcp_err why;

	if (w->state == LEAVING)
		leave_behind(w);
	else if (check_relay(w, &why) < 0)
		finish(w, -1, "", &why);
	else
		ask(w);
}

static void on_error(struct route *w, const struct wire_header *h)
{
	char raw[WIRE_TEXT_MAX + 1], shown[TEXT_NAME_BYTES];
	struct wire_error f;
	struct ptcp_err why;

	if (wire_error_decode(&f, (struct span){ w->answer + WIRE_HEADER_BYTES, h->length }, &why) < 0) {
		fail(w, PTCP_EPROTO, why.msg);
		return;
	}
	memcpy(raw, f.text.n > 0 ? (const char *)f.text.p : "", f.text.n);
	raw[f.text.n] = '\0';
	fail(w, f.code == -PTCP_EREFUSED ? PTCP_EREFUSED : PTCP_ECONNECT, text_escape(shown, sizeof shown, raw));
}

static void on_readable(void *arg)
{
	struct route *w = arg;
	struct wire_header h;
	struct ptcp_err why;
	size_t want = WIRE_HEADER_BYTES;

	if (w->state != ASKED)
		return;
	w->got += chan_read(w->chan, w->answer + w->got, want > w->got ? want - w->got : 0);
	if (w->got < want)
		return;
	if (wire_header_decode(&h, w->answer, &why) < 0 || (h.type != WIRE_ROUTED && h.type != WIRE_ERROR) ||
	    h.length > ANSWER_BYTES - WIRE_HEADER_BYTES) {
		fail(w, PTCP_EPROTO, "its answer is malformed");
		return;
	}
	want += h.length;
	w->got += chan_read(w->chan, w->answer + w->got, want - w->got);
	if (w->got < want)
		return;
	if (h.type == WIRE_ERROR) {
		on_error(w, &h);
	} else if (wire_routed_decode((struct span){ w->answer + WIRE_HEADER_BYTES, h.length }, &why) < 0) {
		fail(w, PTCP_EPROTO, why.msg);
	} else {
		w->state = LEAVING;
		chan_leave_tls(w->chan);
	}
}

static void on_writable(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct route *w = arg;
	char text[400];

	snprintf(text, sizeof text, "%.300s (is it a ptcp daemon with --relay-to?)",
	    why != NULL ? why->msg : "it closed the connection");
	fail(w, PTCP_ECONNECT, text);
}

static const struct chan_ops chan_ops = { on_opened, on_readable, on_writable, on_closed };

static void begin_relay(struct route *w, int fd)
{
	struct chan_opts o = { .fd = fd, .alpn = ALPN_ROUTE, .ops = &chan_ops, .arg = w };
	struct ptcp_err why;

	w->state = GREETING;
	w->got = 0;
	if (chan_new(&w->chan, w->o.host->control, w->o.host->client, &o, &why) < 0)
		finish(w, -1, "", &why);
}

/* ---- All of it ---- */

static void on_dialled(void *arg, int fd, const char *address, const struct ptcp_err *why)
{
	struct route *w = arg;

	w->dial = NULL;
	if (fd < 0 || w->o.n_relays == 0)
		finish(w, fd, address, why);
	else
		begin_relay(w, fd);
}

static void on_timer(void *arg)
{
	struct route *w = arg;
	char text[80];

	snprintf(text, sizeof text, "no way through it within %.3g s", (double)w->o.sock.timeout_ns / 1e9);
	fail(w, PTCP_ECONNECT, text);
}

int route_start(struct route **out, const struct route_opts *o, struct ptcp_err *e)
{
	struct route *w = calloc(1, sizeof *w);
	bool direct = o->n_relays == 0;
	int r;

	if (w == NULL)
		return err_nomem(e);
	w->o = *o;
	snprintf(w->to, sizeof w->to, "%s", o->to);
	if ((r = timer_new(&w->timer, o->host->control, on_timer, w, e)) < 0 ||
	    (r = dial_start(&w->dial, o->host->control, direct ? w->to : o->relay[0].host,
	    direct ? o->port : o->relay[0].port, &o->sock, on_dialled, w, e)) < 0) {
		route_cancel(w);
		return r;
	}
	if (!direct) /* a dial keeps its own time */
		timer_set(w->timer, mono_add_ns(mono_now(), o->sock.timeout_ns));
	*out = w;
	return 0;
}
