/* Who steers, or says what it has seen, as nobody should: USE and SEEN where they may not come, malformed, without
 * end, and with values that cannot be. Clients of a server, then servers. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hostile.h"
#include "served.h"
#include "session.h"

#define FLOOD 300000u /* frames */
#define BATCH 1000u   /* at a time */
#define GRID 262144u

static void send_use(struct peer *p, unsigned streams, uint64_t bytes)
{
	struct wire_use f = { (uint16_t)streams, bytes };
	uint8_t out[WIRE_USE_MAX_BYTES];

	peer_send(p, out, wire_use_encode(out, &f));
}

static void send_seen(struct peer *p, const struct wire_seen *f)
{
	uint8_t out[WIRE_SEEN_MAX_BYTES];

	peer_send(p, out, wire_seen_encode(out, f));
}

/* Different ones each time, with the same values on every run. */
static uint64_t any(void)
{
	static uint64_t x = 1;

	x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return x >> 60 == 0 ? 0 : x >> 60 == 1 ? UINT64_MAX : x;
}

/* ---- A client ---- */

static uint8_t role_named(const char *name)
{
	return strcmp(name, "receive") == 0 ? WIRE_YOU_RECEIVE : strcmp(name, "send") == 0 ? WIRE_YOU_SEND :
	    strcmp(name, "drop") == 0 ? WIRE_YOU_DROP : WIRE_YOU_FLOOD;
}

/* A session up to OPENED in which the server has that role, about `path` unless it measures. */
static struct session begun(unsigned port, uint8_t role, const char *path, unsigned streams, uint32_t flags)
{
	bool measures = role == WIRE_YOU_DROP || role == WIRE_YOU_FLOOD;
	uint8_t paths[100], out[WIRE_OPEN_MAX_BYTES + sizeof paths];
	struct wire_open o = { .role = role, .streams = (uint16_t)streams, .n_paths = !measures,
		.flags = (measures ? 0 : WIRE_OPEN_VERIFY) | flags };
	struct session s = { .port = port, .control = control(port) };

	o.paths.p = paths;
	o.paths.n = measures ? 0 : wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, strlen(path) });
	send_hello_able(s.control, WIRE_ABLE_STEERED);
	expect(s.control, WIRE_HELLO);
	peer_send(s.control, out, wire_open_encode(out, &o));
	memcpy(s.id, expect(s.control, WIRE_OPENED)->payload, sizeof s.id);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	return s;
}

/* USE and SEEN where they may not come: before OPEN, where nobody steers, from who does not. */
static void wrong_steering(unsigned port, char **arguments)
{
	static const uint8_t roles[] = { WIRE_YOU_RECEIVE, WIRE_YOU_SEND, WIRE_YOU_DROP, WIRE_YOU_FLOOD };
	static const uint8_t zeros[WIRE_SEEN_MAX_BYTES];
	struct session s;
	struct peer *p;
	size_t i;
	int seen;

	(void)arguments;
	for (seen = 0; seen < 2; seen++) {
		for (i = 0; i < 2; i++) {
			p = control(port);
			if (i == 1) {
				send_hello(p);
				expect(p, WIRE_HELLO);
			}
			peer_send_raw(p, seen ? WIRE_SEEN : WIRE_USE, 1, zeros, seen ? 41 : 10);
			expect_error(p, 10);
			peer_close(p);
		}
		for (i = 0; i < sizeof roles; i++) {
			if (roles[i] == WIRE_YOU_FLOOD && !seen)
				continue; /* that one must be steered */
			s = begun(port, roles[i], "/", 2, seen ? WIRE_OPEN_STEERED : 0);
			peer_send_raw(s.control, seen ? WIRE_SEEN : WIRE_USE, 1, zeros, seen ? 41 : 10);
			expect_error(s.control, 10);
			drop(&s);
		}
	}
}

/* USE that is too short, too long, or says that it is. */
static void malformed_use(unsigned port, char **arguments)
{
	static const uint8_t zeros[70];
	static const uint8_t lengths[] = { 0, 1, 9, 11, 64, 65 };
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof lengths; i++) {
		s = begun(port, WIRE_YOU_RECEIVE, "/", 2, WIRE_OPEN_STEERED);
		peer_send_raw(s.control, WIRE_USE, 1, zeros, lengths[i]);
		expect_error(s.control, 10);
		drop(&s);
	}
}

static void use_flood(struct peer *p)
{
	static uint8_t out[BATCH * WIRE_USE_MAX_BYTES];
	unsigned i, k;

	for (i = 0; i < FLOOD; i += BATCH) {
		size_t n = 0;

		for (k = 0; k < BATCH; k++) {
			struct wire_use f = { (uint16_t)any(), any() };

			n += wire_use_encode(out + n, &f);
		}
		peer_send(p, out, n);
	}
}

/* The next that is no SEEN. */
static const struct frame *but_seen(struct peer *p)
{
	const struct frame *f;

	do
		f = peer_frame(p);
	while (f->type == WIRE_SEEN);
	return f;
}

/* The server sends: nothing while no stream is in use, then the one block on the stream that is. */
static void take_block(struct session *s, struct peer *other)
{
	struct pollfd in[] = { { .fd = s->data->fd, .events = POLLIN }, { .fd = other->fd, .events = POLLIN } };
	struct wire_answer a = { 0, WIRE_SEND_ALL };
	struct wire_ack k = { 0, 0 };
	struct wire_done d = { 0 };
	uint8_t out[64];
	const struct frame *f;

	send_use(s->control, 0, 0);
	while ((f = but_seen(s->control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_ENTRY)
		die("ENTRY expected, %s came", frame_name(f->type));
	a.id = k.id = d.id = get_u64(f->payload + 1);
	peer_send(s->control, out, wire_answer_encode(out, &a));
	if (poll(in, 2, 1000) != 0)
		die("a block comes on a stream that is not in use");
	send_use(s->control, 1, 0);
	f = peer_frame(s->data);
	if (f->type != WIRE_BLOCK || poll(in + 1, 1, 0) != 0)
		die("BLOCK expected on stream 0, %s came", frame_name(f->type));
	peer_send(s->control, out, wire_ack_encode(out, &k));
	peer_send(s->control, out, wire_done_encode(out, &d));
}

/* ROLE PATH: says hundreds of thousands of times how many streams are in use. In the end all is as if it had said
 * nothing. */
static void steers_without_end(unsigned port, char **arguments)
{
	uint8_t role = role_named(arguments[0]), out[WIRE_END_MAX_BYTES];
	struct session s = begun(port, role, arguments[1], 2, WIRE_OPEN_STEERED);
	struct wire_end end = { role == WIRE_YOU_SEND, 0 };
	const struct frame *f;
	struct peer *other;

	s.data = join(&s, 0);
	other = join(&s, 1);
	use_flood(s.control);
	if (role == WIRE_YOU_RECEIVE) {
		send_use(s.control, 2, 0);
		if (!file(&s, ID(0, 1), 0, "steered"))
			die("the session has suffered");
		send_end(s.control, 1, 0);
	} else if (role == WIRE_YOU_SEND) {
		take_block(&s, other);
	} else {
		peer_send(s.control, out, wire_end_encode(out, &end));
	}
	while ((f = but_seen(s.control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_END)
		die("END expected, %s came", frame_name(f->type));
	if (role == WIRE_YOU_SEND)
		peer_send(s.control, out, wire_end_encode(out, &end));
	peer_close(other);
	drop(&s);
}

/* STREAMS: joins all that were granted and never says that any is in use. */
static void streams_in_no_use(unsigned port, char **arguments)
{
	unsigned i, most = (unsigned)atoi(arguments[0]);
	struct session s = begun(port, WIRE_YOU_SEND, "/", most, WIRE_OPEN_STEERED);

	for (i = 0; i < most; i++)
		join(&s, i);
	hold();
}

const struct hostile hostile_steerers[] = {
	{ "wrong-steering", wrong_steering }, { "malformed-use", malformed_use },
	{ "steers-without-end", steers_without_end }, { "streams-in-no-use", streams_in_no_use }, { NULL, NULL }
};

/* ---- A server ---- */

/* A session that its client steers, if it wants to; as many streams as it asked for, up to 16. */
static struct served steered(void)
{
	struct served s = served_hello(WIRE_ABLE_STEERED);

	served_read_open(&s);
	served_agree(&s, s.streams < 16 ? s.streams : 16, 0);
	return s;
}

/* FRAME: to a client whose frame it is not, as it is the starter (USE), sends, or does not steer (SEEN). */
static void steers_client(unsigned port, char **arguments)
{
	static const uint8_t zeros[41];
	struct served s = steered();
	bool use = strcmp(arguments[0], "use") == 0;

	(void)port;
	peer_send_raw(s.control, use ? WIRE_USE : WIRE_SEEN, 1, zeros, use ? 10 : 41);
	expect_error(s.control, 10);
	served_drop(&s);
}

/* N TEXT: a congestion control whose name has N bytes, as it says, and is TEXT. */
static void malformed_seen(unsigned port, char **arguments)
{
	struct served s = steered();
	uint8_t payload[41 + 64] = { 0 };
	size_t n = strlen(arguments[1]);

	(void)port;
	if ((s.flags & WIRE_OPEN_STEERED) == 0)
		die("it does not steer");
	payload[40] = (uint8_t)atoi(arguments[0]);
	memcpy(payload + 41, arguments[1], n);
	peer_send_raw(s.control, WIRE_SEEN, 1, payload, (uint32_t)(41 + n));
	expect_error(s.control, 10);
	served_drop(&s);
}

/* What no kernel has seen; under a name that means something to shells, terminals, JSON and files of lines. */
static struct wire_seen absurd(void)
{
	static const char name[] = "%0A\"'`$(id)\\,#";
	struct wire_seen f = { any(), any(), any(), any(), any(), { (const uint8_t *)name, sizeof name - 1 } };

	return f;
}

static void seen_flood(struct peer *p)
{
	static uint8_t out[BATCH * WIRE_SEEN_MAX_BYTES];
	unsigned i, k;

	for (i = 0; i < FLOOD; i += BATCH) {
		size_t n = 0;

		for (k = 0; k < BATCH; k++) {
			struct wire_seen f = absurd();

			n += wire_seen_encode(out + n, &f);
		}
		peer_send(p, out, n);
	}
}

/* The next USE of a client; false: it is done. */
static bool next_use(struct served *s, struct wire_use *u)
{
	const struct frame *f = peer_frame(s->control);

	if (f->type == WIRE_END)
		return false;
	if (f->type != WIRE_USE)
		die("USE expected, %s came", frame_name(f->type));
	u->streams = get_u16(f->payload);
	u->bytes = get_u64(f->payload + 2);
	return true;
}

/* Says hundreds of thousands of times what it has not seen, and then gives what was asked for: NAME. */
static void sees_without_end(unsigned port, char **arguments)
{
	struct served s = steered();
	struct wire_use u;
	unsigned i;

	(void)port;
	if (!next_use(&s, &u))
		die("no USE");
	s.data = served_join();
	for (i = 1; i < u.streams; i++)
		served_join();
	seen_flood(s.control);
	if (!served_file(&s, ID(0, 1), 0, arguments[0]))
		die("the client refuses %s", arguments[0]);
	send_end(s.control, 1, 0);
	served_end(&s);
}

/* Measured as it should be, but for what it says that it has seen. */
static void lies_about_rounds(unsigned port, char **arguments)
{
	struct served s = steered();
	struct peer *stream[16];
	struct wire_use u;
	struct wire_seen f;
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_end end = { 0, 0 };
	unsigned i;

	(void)port;
	(void)arguments;
	while (next_use(&s, &u)) {
		if (u.streams == 0)
			continue;
		for (i = 0; i < u.streams; i++)
			stream[i] = served_join();
		for (i = 0; i < 3; i++) {
			f = absurd();
			f.retransmits = UINT64_MAX;
			send_seen(s.control, &f);
		}
		for (i = 0; i < u.streams; i++) {
			send_block(stream[i], ID(0, 1), 0, (uint32_t)u.bytes, true);
			SSL_shutdown(stream[i]->ssl);
		}
		for (i = 0; i < u.streams; i++) {
			expect_end(stream[i]);
			peer_close(stream[i]);
		}
	}
	peer_send(s.control, out, wire_end_encode(out, &end));
	served_end(&s);
}

/* HOW: measured, it lets its client wait ("silent", and reads nothing), or sends without end ("endless"); and pings.
 * The client goes by its own time. */
static void never_measured(unsigned port, char **arguments)
{
	struct served s = steered();
	bool endless = strcmp(arguments[0], "endless") == 0;
	time_t start = time(NULL);
	const struct frame *f;
	struct wire_end end = { 0, 0 };
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_use u;
	unsigned n;

	(void)port;
	if (!next_use(&s, &u))
		die("no USE");
	s.data = served_join();
	peer_patience(s.control, 1);
	peer_patience(s.data, 1);
	do {
		for (n = 0; endless && n < 100; n++)
			send_block(s.data, ID(0, 1), 0, GRID, true);
		send_ping(s.control);
		if (time(NULL) - start > 40)
			die("it goes on for ever");
		f = peer_frame(s.control);
	} while (f->type == END_SILENT || f->type == WIRE_USE);
	if (f->type == WIRE_END)
		peer_send(s.control, out, wire_end_encode(out, &end));
	served_drop(&s);
}

const struct hostile hostile_steered[] = {
	{ "steers-client", steers_client }, { "malformed-seen", malformed_seen }, { "sees-without-end", sees_without_end },
	{ "lies-about-rounds", lies_about_rounds }, { "never-measured", never_measured }, { NULL, NULL }
};
