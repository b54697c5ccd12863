/* Clients and third hosts that misuse what goes on between several hosts: routes, errands, grants, and control
 * connections that are replaced. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "lib/grants.h"
#include "session.h"
#include "wire/errand.h"

static void say_open(void)
{
	puts("open");
	fflush(stdout);
}

/* ---- Replaced control connections ---- */

static struct session returning(unsigned port, bool returns)
{
	struct session s = { .port = port, .control = control(port) };

	send_hello_able(s.control, returns ? WIRE_ABLE_RETURN : 0);
	expect(s.control, WIRE_HELLO);
	ask(s.control, WIRE_YOU_RECEIVE, "/", 1, WIRE_OPEN_VERIFY);
	memcpy(s.id, expect(s.control, WIRE_OPENED)->payload, sizeof s.id);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	s.data = join(&s, 1);
	return s;
}

static void send_heard(struct peer *p, uint64_t bytes)
{
	struct wire_heard f = { bytes };
	uint8_t out[WIRE_HEARD_MAX_BYTES];

	peer_send(p, out, wire_heard_encode(out, &f));
}

/* The session of whoever has the secret that its mac is made with is still only that identity's. */
static void try_to_steal(struct session *s, const char *config_dir)
{
	struct identity us = self;
	struct wire_join f;
	struct peer *p;

	if (config_dir != NULL)
		peer_init(config_dir);
	p = data(s->port);
	f = join_frame(s, p, WIRE_JOIN_CONTROL);
	if (config_dir == NULL)
		f.mac[31] ^= 1;
	send_join(p, &f);
	expect_no_join(p, config_dir != NULL ? "a control connection of somebody else" : "a wrong mac");
	self = us;
}

/* CONFIG of another client, CONFIG of a stranger. */
static void stolen_control(unsigned port, char **arguments)
{
	struct session s = returning(port, true), old = returning(port, false);
	char *mine = arguments[2];

	try_to_steal(&s, NULL);
	try_to_steal(&s, arguments[0]);
	try_to_steal(&s, arguments[1]);
	peer_init(mine);
	try_to_steal(&old, mine); /* it never said that it would return */
	if (!file(&s, ID(0, 1), 0, "one") || !file(&old, ID(0, 1), 0, "two"))
		die("refused");
	finish(&s, 1, 0);
	finish(&old, 1, 0);
}

/* Comes again and again, and says that it has heard what nobody has said. */
static void restless_control(unsigned port, char **arguments)
{
	struct session s = returning(port, true);
	unsigned i;

	(void)arguments;
	for (i = 0; i < 40; i++) {
		peer_close(s.control);
		s.control = join(&s, WIRE_JOIN_CONTROL);
		expect(s.control, WIRE_HEARD);
		if (i % 2 == 0) /* the others do not say it */
			send_heard(s.control, i / 2);
	}
	peer_close(s.control);
	s.control = join(&s, WIRE_JOIN_CONTROL);
	expect(s.control, WIRE_HEARD);
	send_heard(s.control, UINT64_MAX);
	expect_error(s.control, 10);
	drop(&s);
}

/* Two sessions when their client is revoked: one has come back, of the other only a stream is left. */
static void revoked_control(unsigned port, char **arguments)
{
	struct session s = returning(port, true), cut = returning(port, true);

	(void)arguments;
	peer_close(s.control);
	s.control = join(&s, WIRE_JOIN_CONTROL);
	expect(s.control, WIRE_HEARD);
	send_heard(s.control, 0);
	peer_close(cut.control);
	say_open();
	expect_error(s.control, 5);
	expect_end(cut.data);
}

/* ---- Routes ---- */

static void send_route(struct peer *p, unsigned port)
{
	static const char here[] = "127.0.0.1";
	struct wire_route f = { .port = (uint16_t)port, .host = { (const uint8_t *)here, sizeof here - 1 } };
	uint8_t out[WIRE_ROUTE_MAX_BYTES];

	peer_send(p, out, wire_route_encode(out, &f));
}

static struct peer *ask_route(unsigned relay, unsigned port)
{
	struct peer *p = peer_connect(relay, ALPN_ROUTE);

	if (p == NULL)
		die("no handshake");
	send_route(p, port);
	return p;
}

/* PORT of the next hop. Stays halfway out of TLS, so that it is no route yet when its client is revoked. */
static void halfway_route(unsigned port, char **arguments)
{
	struct peer *p = ask_route(port, (unsigned)atoi(arguments[0]));
	struct timeval patience = { 3, 0 };
	char byte;

	expect(p, WIRE_ROUTED);
	say_open();
	while (read(0, &byte, 1) > 0) /* until it is revoked */
		;
	sleep(1);
	SSL_shutdown(p->ssl);
	setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	while (read(p->fd, &byte, 1) > 0) /* the relay's close_notify */
		;
	if (send(p->fd, "x", 1, MSG_NOSIGNAL) == 1 && (sleep(1), send(p->fd, "x", 1, MSG_NOSIGNAL)) == 1)
		die("it is relayed");
}

/* PORT MOST: as many routes as there may be for one client, halfway; others are refused. */
static void many_routes(unsigned port, char **arguments)
{
	unsigned next = (unsigned)atoi(arguments[0]), most = (unsigned)atoi(arguments[1]), i;
	struct peer *p;

	for (i = 0; i < most; i++)
		expect(ask_route(port, next), WIRE_ROUTED);
	for (; i < most + 20; i++) {
		p = ask_route(port, next);
		expect_error(p, 5);
		peer_close(p);
	}
	hold();
}

/* PORT of another relay, MOST: each lists the other, so that bytes could go to and fro between them as often as there
 * are routes; what goes through so many relays goes no further. */
static void circle(unsigned port, char **arguments)
{
	unsigned ports[] = { port, (unsigned)atoi(arguments[0]) }, most = (unsigned)atoi(arguments[1]), i;
	struct peer *p = ask_route(port, ports[1]);

	for (i = 1; i < most; i++) {
		expect(p, WIRE_ROUTED);
		if ((p = peer_beyond(p, ALPN_ROUTE)) == NULL)
			die("no handshake behind %u relays", i);
		send_route(p, ports[(i + 1) % 2]);
	}
	expect(p, WIRE_ROUTED);
	if ((p = peer_beyond(p, ALPN_ROUTE)) == NULL)
		die("no handshake behind %u relays", i);
	send_route(p, ports[(i + 1) % 2]);
	expect_error(p, 5);
	peer_close(p);
}

/* PORT MOST: says itself that it came through relays, with what begins each connection of one. */
static void pretends(unsigned port, char **arguments)
{
	unsigned next = (unsigned)atoi(arguments[0]), most = (unsigned)atoi(arguments[1]), said;
	struct peer *p;
	uint8_t first;
	int fd;

	for (said = 0; said < 128; said++) {
		fd = peer_dial(port);
		first = (uint8_t)(0x80 + said);
		if (send(fd, &first, 1, MSG_NOSIGNAL) != 1 || (p = peer_over(fd, ALPN_ROUTE)) == NULL)
			die("no handshake behind %u relays", said);
		send_route(p, next);
		if (said >= most)
			expect_error(p, 5);
		else
			expect(p, WIRE_ROUTED);
		peer_close(p);
	}
	for (said = 0; said < 2; said++) { /* twice; what is neither that nor TLS */
		fd = peer_dial(port);
		if (send(fd, said == 0 ? "\x81\x81" : "\x7f", 2, MSG_NOSIGNAL) != 2 || peer_over(fd, ALPN_ROUTE) != NULL)
			die("it is taken for the beginning of TLS");
	}
}

/* ---- Errands: we are the client, and the third host as well ---- */

struct third {
	int listener;
	unsigned port;
	struct peer *us;         /* as the client */
	struct peer *session;    /* as the third host */
	uint64_t id;
};

static struct third third_host(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { 10, 0 };
	struct third t = { .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	socklen_t n = sizeof sa;

	if (t.listener < 0 || bind(t.listener, (struct sockaddr *)&sa, n) < 0 || listen(t.listener, 64) < 0 ||
	    getsockname(t.listener, (struct sockaddr *)&sa, &n) < 0)
		die("cannot listen");
	setsockopt(t.listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	t.port = ntohs(sa.sin_port);
	return t;
}

static struct peer *connected(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_ERRAND);

	if (p == NULL)
		die("no handshake");
	return p;
}

/* "/" of the host whose fingerprint that is, to us. */
static void ask_errand(struct peer *p, const struct third *t, const char *host, uint8_t flags)
{
	struct wire_errand f = { .flags = flags, .port = (uint16_t)t->port, .timeout_ms = 20000,
		.host = { (const uint8_t *)"127.0.0.1", 9 } };
	uint8_t out[WIRE_ERRAND_MAX_BYTES], grant[WIRE_GRANT_MAX_BYTES];
	struct ptcp_err e;
	size_t n;

	if (grant_make(grant, &n, &self, host, self.fingerprint, WIRE_GRANT_WRITE, "/", (uint64_t)time(NULL), &e) < 0)
		die("%s", e.msg);
	peer_send(p, out, wire_errand_encode(out, &f));
	peer_send(p, grant, n);
	ask(p, WIRE_YOU_SEND, "/", 1, WIRE_OPEN_VERIFY);
}

/* An errand under way, to us, who have agreed and do nothing. */
static struct third errand(unsigned port, const char *host, uint8_t flags)
{
	struct wire_opened o = { .session = { 1 }, .cipher = PTCP_CIPHER_AES128GCM, .streams = 1 };
	struct third t = third_host();
	uint8_t out[WIRE_OPENED_MAX_BYTES];
	const struct frame *f;

	t.us = connected(port);
	ask_errand(t.us, &t, host, flags);
	t.session = peer_accept(t.listener, ALPN_GRANT);
	expect(t.session, WIRE_GRANT);
	send_hello(t.session);
	expect(t.session, WIRE_HELLO);
	expect(t.session, WIRE_OPEN);
	peer_send(t.session, out, wire_opened_encode(out, &o));
	while ((f = peer_frame(t.us))->type == WIRE_PROGRESS)
		;
	if (f->type != WIRE_STARTED)
		die("STARTED expected, %s came", frame_name(f->type));
	t.id = get_u64(f->payload);
	return t;
}

/* Is connected when its rights go, and has asked for nothing yet. */
static void waiting_errand(unsigned port, char **arguments)
{
	struct peer *p = connected(port);

	(void)arguments;
	say_open();
	expect_end(p);
}

/* FINGERPRINT MOST: as many errands as there may be for one client, and connections about them. */
static void many_errands(unsigned port, char **arguments)
{
	struct third t = third_host();
	unsigned most = (unsigned)atoi(arguments[1]), i;
	struct peer *p;

	for (i = 0; i < most; i++)
		ask_errand(connected(port), &t, arguments[0], 0); /* our listener never answers */
	sleep(1);
	p = connected(port);
	ask_errand(p, &t, arguments[0], 0);
	expect_error(p, 5);
	peer_close(p);
	sleep(1);
	for (; i < 2 * most; i++)
		connected(port);
	p = connected(port);
	expect_error(p, 5);
	peer_close(p);
	hold();
}

/* FINGERPRINT: has an errand under way when it is revoked: the third host hears of the end, too. */
static void revoked_errand(unsigned port, char **arguments)
{
	struct third t = errand(port, arguments[0], WIRE_ERRAND_DETACH);

	say_open();
	expect_error(t.us, 5);
	expect_error(t.session, 5);
}

/* FINGERPRINT: ends its errand, and goes on talking while that takes its time. */
static void talks_on(unsigned port, char **arguments)
{
	static uint8_t flood[1 << 20];
	struct third t = errand(port, arguments[0], 0);
	struct wire_status f = { .id = t.id, .cancel = 1 };
	struct peer *p = connected(port);
	uint8_t out[WIRE_STATUS_MAX_BYTES];
	unsigned i;

	peer_send(p, out, wire_status_encode(out, &f));
	for (i = 0; i < 400 && peer_try_send(p, flood, sizeof flood); i++)
		;
	hold();
}

/* FINGERPRINT: as the third host warns without end, as the client reads nothing. */
static void reads_no_event(unsigned port, char **arguments)
{
	static char path[WIRE_PATH_MAX], text[WIRE_TEXT_MAX];
	struct third t = errand(port, arguments[0], 0);
	struct wire_note n = { WIRE_NOTE_WARNING, 13, { (const uint8_t *)path, sizeof path },
		{ (const uint8_t *)text, sizeof text } };
	uint8_t out[WIRE_NOTE_MAX_BYTES];
	size_t size;
	unsigned i;

	memset(path, 'p', sizeof path);
	memset(text, 't', sizeof text);
	size = wire_note_encode(out, &n);
	for (i = 0; i < 60000 && peer_try_send(t.session, out, size); i++)
		;
	hold();
}

/* ---- A relay ---- */

/* HOW: speaks for who is behind it: "garbage" when it should only carry bytes, the same before its client has left
 * TLS ("early"), a frame instead of leaving it ("loud"), a handshake of its own ("itself"). */
static void lying_relay(unsigned port, char **arguments)
{
	static const char garbage[] = "HTTP/1.1 200 OK\r\n\r\n";
	struct peer *p = peer_accept(hostile_listener, ALPN_ROUTE);
	const char *how = arguments[0];
	uint8_t out[WIRE_ROUTED_MAX_BYTES];

	(void)port;
	expect(p, WIRE_ROUTE);
	peer_send(p, out, wire_routed_encode(out));
	if (strcmp(how, "loud") == 0) {
		send_hello(p);
		expect_end(p);
		return;
	}
	SSL_shutdown(p->ssl);
	if (strcmp(how, "early") == 0)
		send(p->fd, garbage, sizeof garbage, MSG_NOSIGNAL);
	if (peer_frame(p)->type != END_CLOSED)
		die("the client does not leave TLS");
	if (strcmp(how, "itself") == 0) {
		SSL *ssl = SSL_new(server_tls);

		SSL_set_fd(ssl, p->fd);
		SSL_accept(ssl);
		if (SSL_read(ssl, out, 1) > 0) /* not even HELLO */
			die("it is taken for the end");
	} else if (strcmp(how, "garbage") == 0) {
		send(p->fd, garbage, sizeof garbage, MSG_NOSIGNAL);
	}
	while (read(p->fd, out, sizeof out) > 0)
		;
}

const struct hostile hostile_relay[] = { { "lying-relay", lying_relay }, { NULL, NULL } };

const struct hostile hostile_between[] = {
	{ "revoked-control", revoked_control }, { "revoked-errand", revoked_errand },
	{ "stolen-control", stolen_control }, { "restless-control", restless_control }, { "halfway-route", halfway_route },
	{ "many-routes", many_routes }, { "circle", circle }, { "pretends", pretends }, { "waiting-errand", waiting_errand }, { "many-errands", many_errands },
	{ "talks-on", talks_on }, { "reads-no-event", reads_no_event }, { NULL, NULL }
};
