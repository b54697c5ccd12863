/* Clients and third hosts that misuse what goes on between several hosts: routes, jobs, grants, and control
 * connections that are replaced. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn/grants.h"
#include "hostile.h"
#include "session.h"
#include "wire/jobs.h"

static void say_open(void)
{
	puts("open");
	fflush(stdout);
}

/* ---- Replaced control connections ---- */

static struct session returning(unsigned port, bool returns)
{
	struct session s = { .port = port, .control = control(port) };

	send_hello_lingering(s.control, returns ? 60000 : 0);
	expect(s.control, WIRE_HELLO);
	ask(s.control, WIRE_ACCEPTOR_RECEIVES, "/", 1, WIRE_OPEN_VERIFY);
	memcpy(s.id, expect(s.control, WIRE_OPENED)->payload, sizeof s.id);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	s.data = join(&s, 1);
	return s;
}

static void send_heard(struct peer *p, uint64_t bytes)
{
	struct wire_control_ack f = { bytes };
	uint8_t out[WIRE_CONTROL_ACK_MAX_BYTES];

	peer_send(p, out, wire_control_ack_encode(out, &f));
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
		expect(s.control, WIRE_CONTROL_ACK);
		if (i % 2 == 0) /* the others do not say it */
			send_heard(s.control, i / 2);
	}
	peer_close(s.control);
	s.control = join(&s, WIRE_JOIN_CONTROL);
	expect(s.control, WIRE_CONTROL_ACK);
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
	expect(s.control, WIRE_CONTROL_ACK);
	send_heard(s.control, 0);
	peer_close(cut.control);
	say_open();
	expect_error(s.control, 5);
	expect_end(cut.data);
}

/* ---- Routes ---- */

static void put_route(struct peer *p, struct wire_route f, const char *host)
{
	uint8_t out[WIRE_ROUTE_MAX_BYTES];

	f.host = (struct span){ (const uint8_t *)host, strlen(host) };
	peer_send(p, out, wire_route_encode(out, &f));
}

static void send_route_to(struct peer *p, const char *host, unsigned port, uint64_t spool_bytes)
{
	put_route(p, (struct wire_route){ .port = (uint16_t)port, .spool_bytes = spool_bytes }, host);
}

static void send_route(struct peer *p, unsigned port, uint64_t spool_bytes)
{
	send_route_to(p, "127.0.0.1", port, spool_bytes);
}

static struct peer *ask_route(unsigned relay, unsigned port, uint64_t spool_bytes)
{
	struct peer *p = peer_connect(relay, ALPN_ROUTE);

	if (p == NULL)
		die("no handshake");
	send_route(p, port, spool_bytes);
	return p;
}

/* PORT of the next hop. Stays halfway out of TLS, so that it is no route yet when its client is revoked. */
static void halfway_route(unsigned port, char **arguments)
{
	struct peer *p = ask_route(port, (unsigned)atoi(arguments[0]), 0);
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
		expect(ask_route(port, next, 0), WIRE_ROUTED);
	for (; i < most + 20; i++) {
		p = ask_route(port, next, 0);
		expect_error(p, 18); /* too busy */
		peer_close(p);
	}
	hold();
}

/* PORT of another relay, MOST: each lists the other, so that bytes could go to and fro between them as often as there
 * are routes; what goes through so many relays goes no further. */
static void circle(unsigned port, char **arguments)
{
	unsigned ports[] = { port, (unsigned)atoi(arguments[0]) }, most = (unsigned)atoi(arguments[1]), i;
	struct peer *p = ask_route(port, ports[1], 0);

	for (i = 1; i < most; i++) {
		expect(p, WIRE_ROUTED);
		if ((p = peer_beyond(p, ALPN_ROUTE)) == NULL)
			die("no handshake behind %u relays", i);
		send_route(p, ports[(i + 1) % 2], 0);
	}
	expect(p, WIRE_ROUTED);
	if ((p = peer_beyond(p, ALPN_ROUTE)) == NULL)
		die("no handshake behind %u relays", i);
	send_route(p, ports[(i + 1) % 2], 0);
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
		send_route(p, next, 0);
		if (said >= most)
			expect_error(p, 5);
		else
			expect(p, WIRE_ROUTED);
		peer_close(p);
	}
	for (said = 0; said < 2; said++) { /* twice; what is neither that nor TLS */
		fd = peer_dial(port);
		if (send(fd, said == 0 ? "\x81\x81" : "\x7f", 2, MSG_NOSIGNAL) != 2 ||
		    peer_over(fd, ALPN_ROUTE) != NULL)
			die("it is taken for the beginning of TLS");
	}
}

/* PORT MOST: the control connections of as many sessions, each of which says that it is one of its own, and so has a
 * place kept for a stream; others are refused. */
static void many_routed_sessions(unsigned port, char **arguments)
{
	struct wire_route f = { .port = (uint16_t)atoi(arguments[0]), .control = 1 };
	unsigned most = (unsigned)atoi(arguments[1]);
	struct peer *p;

	for (f.session = 1; f.session < most + 20; f.session++) {
		if ((p = peer_connect(port, ALPN_ROUTE)) == NULL)
			die("no handshake");
		put_route(p, f, "127.0.0.1");
		if (f.session <= most) {
			expect(p, WIRE_ROUTED);
			continue;
		}
		expect_error(p, 18); /* too busy */
		peer_close(p);
	}
	hold();
}

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

/* Arguments COUNT BYTES: opens COUNT routes to this program, which reads nothing. Each route may store BYTES and is
 * sent data until it takes no more. */
static void hoarding_routes(unsigned port, char **arguments)
{
	static uint8_t junk[1 << 16];
	struct third t = third_host();
	unsigned n = (unsigned)atoi(arguments[0]), i;
	uint64_t spool_bytes = strtoull(arguments[1], NULL, 10);
	struct peer *p[16];
	bool more;

	for (i = 0; i < n; i++) {
		p[i] = ask_route(port, t.port, spool_bytes);
		expect(p[i], WIRE_ROUTED);
		SSL_shutdown(p[i]->ssl);
		if (peer_frame(p[i])->type != END_CLOSED)
			die("the relay does not leave TLS");
	}
	do {
		more = false;
		usleep(500000);
		for (i = 0; i < n; i++)
			while (send(p[i]->fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
				more = true;
	} while (more);
	hold();
}

/* COUNT: so many routes, each to another name that no name server answers for. */
static void dead_names(unsigned port, char **arguments)
{
	unsigned n = (unsigned)atoi(arguments[0]), i;
	char host[20];
	struct peer *p;

	for (i = 0; i < n; i++) {
		if ((p = peer_connect(port, ALPN_ROUTE)) == NULL)
			die("no handshake");
		snprintf(host, sizeof host, "%u.dead", i);
		send_route_to(p, host, 7811, 0);
	}
	hold();
}

/* ---- Errands: we are the client, and the third host as well ---- */

static struct peer *connected(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_JOB);

	if (p == NULL)
		die("no handshake");
	return p;
}

/* With "/" there, or a measurement. */
static void put_job(struct peer *p, const struct third *t, const char *host, uint8_t flags, enum wire_grant_mode mode)
{
	struct wire_job f = { .flags = flags, .port = (uint16_t)t->port, .timeout_ms = 20000,
		.host = { (const uint8_t *)"127.0.0.1", 9 } };
	uint8_t out[WIRE_JOB_MAX_BYTES], grant[WIRE_GRANT_MAX_BYTES];
	const struct grant_terms terms = { host, self.fingerprint, mode, mode == WIRE_GRANT_PROBE ? "" : "/" };
	struct ptcp_err e;
	size_t n;

	if (grant_make(grant, &n, &self, &terms, (uint64_t)time(NULL), &e) < 0)
		die("%s", e.msg);
	peer_send(p, out, wire_job_encode(out, &f));
	peer_send(p, grant, n);
}

/* "/" of the host whose fingerprint that is, to us. */
static void ask_job(struct peer *p, const struct third *t, const char *host, uint8_t flags)
{
	put_job(p, t, host, flags, WIRE_GRANT_WRITE);
	ask(p, WIRE_ACCEPTOR_SENDS, "/", 1, WIRE_OPEN_VERIFY);
}

/* A job under way, to us, who have agreed and do nothing. */
static struct third job(unsigned port, const char *host, uint8_t flags)
{
	struct wire_opened o = { .session = { 1 }, .cipher = PTCP_CIPHER_AES128GCM, .streams = 1 };
	struct third t = third_host();
	uint8_t out[WIRE_OPENED_MAX_BYTES];
	const struct frame *f;

	t.us = connected(port);
	ask_job(t.us, &t, host, flags);
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
static void waiting_job(unsigned port, char **arguments)
{
	struct peer *p = connected(port);

	(void)arguments;
	say_open();
	expect_end(p);
}

/* The reason of its ERROR, which must come, without digits. */
static void reason(char out[WIRE_ERROR_MAX_BYTES], struct peer *p, unsigned code)
{
	const struct frame *f;
	size_t i, n = 0;

	do
		f = peer_frame(p);
	while (f->type == WIRE_PROGRESS);
	if (f->type != WIRE_ERROR || get_u16(f->payload) != code)
		die("ERROR %u expected, %s came: %.*s", code, frame_name(f->type), f->n > ERROR_TEXT_AT ?
		    (int)f->n - ERROR_TEXT_AT : 0, (const char *)f->payload + ERROR_TEXT_AT);
	for (i = ERROR_TEXT_AT; i < f->n; i++)
		if (f->payload[i] < '0' || f->payload[i] > '9')
			out[n++] = (char)f->payload[i];
	out[n] = '\0';
	peer_close(p);
}

/* OPEN CLOSED FINGERPRINT of the host: of ports that it may not go on to none is told from the other; by routes, and by
 * jobs. */
static void scans(unsigned port, char **arguments)
{
	struct third t = { .listener = -1 };
	char said[4][WIRE_ERROR_MAX_BYTES];
	unsigned i;

	for (i = 0; i < 2; i++) {
		t.port = (unsigned)atoi(arguments[i]);
		reason(said[i], ask_route(port, t.port, 0), 5);
		struct peer *p = connected(port);

		ask_job(p, &t, arguments[2], 0);
		reason(said[2 + i], p, 5);
	}
	if (strcmp(said[0], said[1]) != 0 || strcmp(said[2], said[3]) != 0)
		die("it tells ports apart: %s, %s; %s, %s", said[0], said[1], said[2], said[3]);
}

/* FINGERPRINT: a job with who is no ptcp, where it may go on to: what that says is told to nobody. */
static void listens_by_job(unsigned port, char **arguments)
{
	static const char *const secrets[] = { "220 SECRET ready\r\n", "SSH-2.0-SECRET\r\n",
		"\x16\x03\x03\x00\x06SECRET", "\x15\x03\x03\x00\x06SECRET" };
	char said[WIRE_ERROR_MAX_BYTES];
	struct third t = third_host();
	size_t i;
	int fd;

	for (i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		struct peer *p = connected(port);

		ask_job(p, &t, arguments[0], 0);
		if ((fd = accept(t.listener, NULL, NULL)) < 0 || send(fd, secrets[i], 11 + 6 * (i == 0),
		    MSG_NOSIGNAL) < 0)
			die("nobody connects");
		shutdown(fd, SHUT_WR);
		reason(said, p, 4);
		if (strcasestr(said, "secret") != NULL)
			die("told: %s", said);
		close(fd);
	}
}

/* FINGERPRINT MOST: as many jobs as there may be for one client, and connections about them. */
static void many_jobs(unsigned port, char **arguments)
{
	struct third t = third_host();
	unsigned most = (unsigned)atoi(arguments[1]), i;
	struct peer *p;

	for (i = 0; i < most; i++)
		ask_job(connected(port), &t, arguments[0], 0); /* our listener never answers */
	sleep(1);
	p = connected(port);
	ask_job(p, &t, arguments[0], 0);
	expect_error(p, 18); /* too busy */
	peer_close(p);
	sleep(1);
	for (; i < 2 * most; i++)
		connected(port);
	p = connected(port);
	expect_error(p, 18); /* too busy */
	peer_close(p);
	hold();
}

/* FINGERPRINT: has a job under way when it is revoked: the third host hears of the end, too. */
static void revoked_job(unsigned port, char **arguments)
{
	struct third t = job(port, arguments[0], WIRE_JOB_DETACH);

	say_open();
	expect_error(t.us, 5);
	expect_error(t.session, 5);
}

/* FINGERPRINT: has the way to us measured, and takes next to nothing of what comes: that ends. */
static void dribbles(unsigned port, char **arguments)
{
	struct wire_opened o = { .session = { 7 }, .streams = 1 };
	const struct wire_probe probe = { 1, 1, 0, 0 };
	struct third t = third_host();
	struct pollfd in = { .events = POLLIN };
	uint8_t out[WIRE_OPENED_MAX_BYTES], bytes[3072];
	time_t start = time(NULL);
	struct peer *stream;
	int small = 16384;

	setsockopt(t.listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	t.us = connected(port);
	put_job(t.us, &t, arguments[0], 0, WIRE_GRANT_PROBE);
	peer_send(t.us, out, wire_probe_encode(out, &probe));
	t.session = peer_accept(t.listener, ALPN_GRANT);
	expect(t.session, WIRE_GRANT);
	send_hello(t.session);
	expect(t.session, WIRE_HELLO);
	expect(t.session, WIRE_OPEN);
	peer_send(t.session, out, wire_opened_encode(out, &o));
	stream = peer_accept(t.listener, ALPN_DATA);
	expect(stream, WIRE_JOIN);
	peer_send(stream, out, wire_joined_encode(out));
	for (in.fd = t.us->fd; time(NULL) - start < patience_s(30); ) {
		send_ping(t.session);
		(void)!recv(stream->fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (poll(&in, 1, 100) > 0 && peer_frame(t.us)->type == WIRE_ERROR)
			return;
	}
	die("it measures for ever");
}

/* FINGERPRINT: ends its job, and goes on talking while that takes its time. */
static void talks_on(unsigned port, char **arguments)
{
	static uint8_t flood[1 << 20];
	struct third t = job(port, arguments[0], 0);
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
	struct third t = job(port, arguments[0], 0);
	struct wire_warning n = { WIRE_WARNING_ONLY, { (const uint8_t *)path, sizeof path },
		{ 13, 0, { (const uint8_t *)text, sizeof text } } };
	uint8_t out[WIRE_WARNING_MAX_BYTES];
	size_t size;
	unsigned i;

	memset(path, 'p', sizeof path);
	memset(text, 't', sizeof text);
	size = wire_warning_encode(out, &n);
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
	{ "revoked-control", revoked_control }, { "revoked-job", revoked_job },
	{ "stolen-control", stolen_control }, { "restless-control", restless_control },
	    { "halfway-route", halfway_route },
	{ "many-routes", many_routes }, { "many-routed-sessions", many_routed_sessions },
	{ "hoarding-routes", hoarding_routes }, { "dead-names", dead_names }, { "circle", circle },
	{ "pretends", pretends }, { "waiting-job", waiting_job }, { "many-jobs", many_jobs }, { "dribbles", dribbles },
	{ "scans", scans }, { "listens-by-job", listens_by_job },
	{ "talks-on", talks_on }, { "reads-no-event", reads_no_event }, { NULL, NULL }
};
