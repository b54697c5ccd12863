/* The ephemeral server of a session through ssh: writes address and identity to ssh's pipe, serves a single session
 * to the client behind the pipe, over TCP in either direction or over the pipe, and ends with the session or with
 * ssh. PROTOCOL.md, section 12, describes the lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/connect.h"
#include "conn/ssh_hello.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/units.h"
#include "net/bridge.h"
#include "net/line_reader.h"
#include "server/port_lease.h"
#include "server/server_impl.h"

#define IDLE_NS (60 * NS_PER_S) /* maximum time without a session */
#define BACK_NS (2 * NS_PER_S)  /* maximum time per address of the client */

struct ssh_server {
	struct ptcp_server *s;
	struct bridge *bridge;
	struct line_reader *lines;      /* NULL once the pipe carries the session */
	struct port_lease *lease;       /* NULL: no shared port */
	struct timer *timer;
	bool greeted;
	char client[PTCP_FINGERPRINT_BYTES];
	char from[SOCK_HOST_BYTES], here[SOCK_HOST_BYTES]; /* ends of ssh's connection; "": unknown */
	/* connecting to the client */
	struct ssh_hello_back back;
	unsigned next;
	struct connect *connect;
};

static void end(struct ssh_server *o, const struct ptcp_err *why)
{
	if (why != NULL && o->s->why.code == 0)
		o->s->why = *why;
	ptcp_server_stop(o->s);
}

bool ssh_server_admits(const struct ssh_server *o, const char *fingerprint)
{
	return o->greeted && strcmp(fingerprint, o->client) == 0;
}

/* ---- Connecting to the client: address by address ---- */

static void back_next(struct ssh_server *o);

static void back_failed(struct ssh_server *o, const struct ptcp_err *why)
{
	log_at(&o->s->context.log, LOG_INFO, "ssh", "event=reverse-failed to=%s why=\"%s\"",
	    o->back.address[o->next], why->msg);
	o->next++;
	back_next(o);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct ssh_server *o = arg;
	struct authorization all = { .name = "ssh" };
	struct server_session_link l = { .control = r->chan, .address = r->address, .connects = true,
		.host = o->back.address[o->next], .port = o->back.port };
	struct ptcp_err why;

	o->connect = NULL;
	if (r->chan == NULL)
		back_failed(o, &r->why);
	else if (server_session_new(&o->s->sessions, &l, &all, &why) < 0)
		end(o, &why);
}

static void back_next(struct ssh_server *o)
{
	struct connect_opts co = { .context = &o->s->context, .port = o->back.port, .timeout_ns = BACK_NS,
		.sock = { .timeout_ns = (uint64_t)(o->s->o.timeout_s * 1e9) }, .alpn = ALPN_CONTROL,
		.fingerprint = o->client, .done = on_connected, .arg = o };
	struct ptcp_err why;

	if (o->next == o->back.n) {
		if (o->lines != NULL)
			line_reader_send(o->lines, "cannot");
		return;
	}
	co.host = o->back.address[o->next];
	if (connect_start(&o->connect, &co, &why) < 0)
		back_failed(o, &why);
}

static void back_stop(struct ssh_server *o)
{
	connect_cancel(o->connect);
	o->connect = NULL;
	o->next = o->back.n = 0;
}

/* ---- Lines ---- */

static void greet(struct ssh_server *o, bool final)
{
	char share[80] = "";

	if (o->lease != NULL)
		snprintf(share, sizeof share, " " SSH_HELLO_SHARE " %u %s", port_lease_port(o->lease),
		    port_lease_label(o->lease));
	line_reader_send(o->lines, SSH_HELLO_WORD " %d %s %s %u %s%s%s", SSH_HELLO_VERSION, PTCP_VERSION,
	    ptcp_server_fingerprint(o->s), ptcp_server_port(o->s), o->here[0] != '\0' ? o->here : "-",
	    final ? " " SSH_HELLO_FINAL : "", share);
}

/* Before the client's line, which takes a round trip more: the client connects to this port in the meantime. Nothing is
 * accepted until the line has named the client. */
static void listen_early(struct ssh_server *o)
{
	struct ptcp_err e;

	if (server_listen(o->s, ":0", &e) < 0)
		return; /* on_hello() tries again, and reports the failure */
	listener_hold(o->s->at[0].listener, true);
	greet(o, false);
}

/* On the port that the client has requested; 0: any. */
static int listen_for(struct ssh_server *o, const struct ssh_hello_hello *h, struct ptcp_err *e)
{
	char where[16];
	int r;

	if (o->s->n_at > 0 && (h->port == 0 || h->port == ptcp_server_port(o->s))) {
		listener_hold(o->s->at[0].listener, false);
		return 0;
	}
	server_unlisten(o->s);
	snprintf(where, sizeof where, ":%u", h->port);
	if ((r = server_listen(o->s, where, e)) < 0 && h->or_any)
		r = server_listen(o->s, ":0", e);
	if (r == 0)
		greet(o, true);
	return r;
}

static void on_hello(struct ssh_server *o, const char *line)
{
	struct ssh_hello_hello h;
	struct ptcp_err why;

	if (ssh_hello_hello_parse(&h, line, &why) < 0) {
		line_reader_send(o->lines, SSH_HELLO_WORD " %d %s", SSH_HELLO_VERSION, PTCP_VERSION);
		end(o, &why);
		return;
	}
	if (listen_for(o, &h, &why) < 0) {
		line_reader_send(o->lines, SSH_HELLO_ERROR " %s", why.msg);
		end(o, NULL); /* the client reports it */
		return;
	}
	strcpy(o->client, h.fingerprint);
	o->s->o.direct_io = h.direct_io;
	o->greeted = true;
	if (o->lease != NULL)
		port_lease_release(o->lease);
}

/* The source address of ssh's connection is the most likely address of the client. */
static void on_back(struct ssh_server *o, const char *line)
{
	struct ptcp_err why;

	back_stop(o);
	if (ssh_hello_back_parse(&o->back, line, &why) < 0) {
		end(o, &why);
		return;
	}
	if (o->from[0] != '\0') {
		if (o->back.n == SSH_HELLO_ADDRESSES)
			o->back.n--;
		memmove(o->back.address[1], o->back.address[0], o->back.n * sizeof o->back.address[0]);
		strcpy(o->back.address[0], o->from);
		o->back.n++;
	}
	back_next(o);
}

/* From here on the pipe is an inbound connection. */
static void on_pipe(struct ssh_server *o)
{
	int fd;

	back_stop(o);
	line_reader_send(o->lines, "pipe");
	fd = line_reader_take_fd(o->lines);
	o->lines = NULL;
	pending_take(&o->s->pending, &fd, "ssh", true);
}

static void on_line(void *arg, const char *line)
{
	struct ssh_server *o = arg;
	struct ptcp_err why;

	if (!o->greeted) {
		on_hello(o, line);
	} else if (strncmp(line, "back ", 5) == 0) {
		on_back(o, line);
	} else if (strcmp(line, "pipe") == 0) {
		on_pipe(o);
	} else {
		err_set(&why, PTCP_EPROTO,
		    "standard input: unknown line (only ptcp itself starts this command, through ssh)");
		end(o, &why);
	}
}

static void on_closed(void *arg, bool broken)
{
	(void)broken;
	end(arg, NULL);
}

void ssh_server_job_gone(void *arg)
{
	struct ptcp_server *s = arg;

	if (s->sessions.n == 0 && job_set_idle(&s->jobs))
		ptcp_server_stop(s);
	server_try_end(s);
}

static const struct line_reader_ops line_reader_ops = { .line = on_line, .closed = on_closed };

/* ---- Start and end ---- */

static void on_pipes_ended(void *arg) { end(arg, NULL); }

static void on_timer(void *arg)
{
	struct ssh_server *o = arg;

	if (o->s->sessions.n == 0 && job_set_idle(&o->s->jobs))
		end(o, NULL);
	timer_set(o->timer, mono_add_ns(mono_now(), IDLE_NS));
}

/* sshd sets SSH_CONNECTION to "CLIENT PORT SERVER PORT". */
static void take_connection(struct ssh_server *o)
{
	const char *text = getenv("SSH_CONNECTION");
	char from[SOCK_HOST_BYTES], here[SOCK_HOST_BYTES];

	if (text == NULL || sscanf(text, "%255s %*u %255s %*u", from, here) != 2)
		return;
	if (ssh_hello_address_ok(from))
		strcpy(o->from, from);
	if (ssh_hello_address_ok(here))
		strcpy(o->here, here);
}

static void on_lent(void *arg, int *fd, const char *address)
{
	struct ptcp_server *s = arg;

	if (s->stopping) {
		fd_close(fd);
		return;
	}
	s->sessions.past.connections++;
	pending_take(&s->pending, fd, address, false);
}

/* Without a service that shares its port, the session has this server's own port only. */
static void lease_port(struct ssh_server *o)
{
	struct port_lease_opts lo = { .loop = o->s->loop, .log = &o->s->context.log, .path = o->s->o.share_socket,
		.connection = on_lent, .arg = o->s };
	struct ptcp_err why;

	if (lo.path == NULL)
		return;
	if (port_lease_new(&o->lease, &lo, &why) < 0)
		log_at(lo.log, LOG_INFO, "share", "event=none why=\"%s\"", why.msg);
	else
		log_at(lo.log, LOG_INFO, "share", "event=shared port=%u", port_lease_port(o->lease));
}

int ssh_server_start(struct ptcp_server *s, struct ptcp_err *e)
{
	struct ssh_server *o = calloc(1, sizeof *o);
	int fd, r;

	if (o == NULL)
		return err_nomem(e);
	s->ssh = o;
	o->s = s;
	take_connection(o);
	if ((r = bridge_new(&o->bridge, s->loop, s->o.in, s->o.out, &fd, on_pipes_ended, o, e)) < 0 ||
	    (r = line_reader_new(&o->lines, s->loop, &fd, &line_reader_ops, o, e)) < 0 ||
	    (r = timer_new(&o->timer, s->loop, on_timer, o, e)) < 0)
		return r;
	timer_set(o->timer, mono_add_ns(mono_now(), IDLE_NS));
	lease_port(o);
	listen_early(o);
	return 0;
}

void ssh_server_free(struct ssh_server *o)
{
	if (o == NULL)
		return;
	back_stop(o);
	port_lease_free(o->lease);
	line_reader_free(o->lines);
	bridge_free(o->bridge);
	timer_free(o->timer);
	free(o);
}
