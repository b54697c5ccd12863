/* SET_STREAMS, RATE and TCP_REPORT where they may not come, malformed, without end, and with values that cannot be.
 * Clients of a server, then servers. */
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

/* A limit of all streams, and a limit that streams 0 and 1 share; 0: no limit. */
static void send_rate(struct peer *p, uint64_t all, uint64_t each)
{
	struct wire_rate f = { .all_bps = all, .n = each > 0, .m = each > 0 ? 2 : 0, .bps = { each }, .of = { 1, 1 } };
	uint8_t out[WIRE_RATE_MAX_BYTES];

	peer_send(p, out, wire_rate_encode(out, &f));
}

static void send_seen(struct peer *p, const struct wire_tcp_report *f)
{
	uint8_t out[WIRE_TCP_REPORT_MAX_BYTES];

	peer_send(p, out, wire_tcp_report_encode(out, f));
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
	return strcmp(name, "receive") == 0 ? WIRE_ACCEPTOR_RECEIVES : strcmp(name, "send") == 0 ? WIRE_ACCEPTOR_SENDS :
	    strcmp(name, "drop") == 0 ? WIRE_ACCEPTOR_DISCARDS : WIRE_ACCEPTOR_GENERATES;
}

/* A session up to OPENED in which the server has that role, about `path` unless it measures. *granted: of `streams`. */
static struct session begun_with(unsigned port, uint8_t role, const char *path, unsigned streams, unsigned *granted)
{
	bool measures = role == WIRE_ACCEPTOR_DISCARDS || role == WIRE_ACCEPTOR_GENERATES;
	uint8_t paths[100], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = role, .streams = (uint16_t)streams, .n_paths = !measures,
		.flags = measures ? 0 : WIRE_OPEN_VERIFY };
	struct session s = { .port = port, .control = control(port) };
	const struct frame *f;

	o.paths.p = paths;
	o.paths.n = measures ? 0 : wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, strlen(path) });
	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	peer_send(s.control, out, wire_open_encode(out, &o));
	f = expect(s.control, WIRE_OPENED);
	memcpy(s.id, f->payload, sizeof s.id);
	*granted = (unsigned)get_u16(f->payload + sizeof s.id + 1);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	return s;
}

static struct session begun(unsigned port, uint8_t role, const char *path, unsigned streams)
{
	unsigned granted;

	return begun_with(port, role, path, streams, &granted);
}

/* Where they may not come: all before OPEN; RATE to a server that does not send, TCP_REPORT from any client. */
static void wrong_steering(unsigned port, char **arguments)
{
	static const uint8_t roles[] = { WIRE_ACCEPTOR_RECEIVES, WIRE_ACCEPTOR_SENDS, WIRE_ACCEPTOR_DISCARDS,
		WIRE_ACCEPTOR_GENERATES };
	static const struct { uint8_t type; uint32_t n; } of[] = {
		{ WIRE_SET_STREAMS, 10 }, { WIRE_TCP_REPORT, 42 }, { WIRE_RATE, 10 }
	};
	static const uint8_t zeros[WIRE_TCP_REPORT_MAX_BYTES];
	struct session s;
	struct peer *p;
	size_t i, k;

	(void)arguments;
	for (k = 0; k < sizeof of / sizeof *of; k++) {
		for (i = 0; i < 2; i++) {
			p = control(port);
			if (i == 1) {
				send_hello(p);
				expect(p, WIRE_HELLO);
			}
			peer_send_raw(p, of[k].type, 1, zeros, of[k].n);
			expect_error(p, 10);
			peer_close(p);
		}
		for (i = 0; i < sizeof roles; i++) {
			if (of[k].type == WIRE_SET_STREAMS ||
			    (of[k].type == WIRE_RATE && roles[i] == WIRE_ACCEPTOR_SENDS))
				continue;
			s = begun(port, roles[i], "/", 2);
			peer_send_raw(s.control, of[k].type, 1, zeros, of[k].n);
			expect_error(s.control, 10);
			drop(&s);
		}
	}
}

/* SET_STREAMS that is too short, too long, or says that it is. */
static void malformed_use(unsigned port, char **arguments)
{
	static const uint8_t zeros[70];
	static const uint8_t lengths[] = { 0, 1, 9, 11, 64, 65 };
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof lengths; i++) {
		s = begun(port, WIRE_ACCEPTOR_RECEIVES, "/", 2);
		peer_send_raw(s.control, WIRE_SET_STREAMS, 1, zeros, lengths[i]);
		expect_error(s.control, 10);
		drop(&s);
	}
}

static void use_flood(struct peer *p)
{
	static uint8_t out[BATCH * WIRE_SET_STREAMS_MAX_BYTES];
	unsigned i, k;

	for (i = 0; i < FLOOD; i += BATCH) {
		size_t n = 0;

		for (k = 0; k < BATCH; k++) {
			struct wire_set_streams f = { (uint16_t)any(), any() };

			n += wire_set_streams_encode(out + n, &f);
		}
		peer_send(p, out, n);
	}
}

/* The next frame but those that tell how far the sender is, and where the file has holes. */
static const struct frame *told(struct peer *p)
{
	const struct frame *f;

	while ((f = peer_frame(p))->type == WIRE_TOTALS || f->type == WIRE_HOLE)
		;
	return f;
}

/* The server sends: nothing while no stream is in use or may carry anything, then the one block; on the stream that is
 * in use. */
static void take_block(struct session *s, struct peer *other, bool by_rate)
{
	struct pollfd in[] = { { .fd = s->data->fd, .events = POLLIN }, { .fd = other->fd, .events = POLLIN } };
	struct wire_answer a = { 0, WIRE_SEND_ALL };
	struct wire_ack k = { 0, 1 };
	struct wire_done d = { 0 };
	uint8_t out[64];
	const struct frame *f;

	if (by_rate)
		send_rate(s->control, 1, WIRE_RATE_IDLE);
	else
		send_streams(s->control, 0, 0);
	f = told(s->control);
	if (f->type != WIRE_ENTRY)
		die("ENTRY expected, %s came", frame_name(f->type));
	a.id = k.id = d.id = get_u64(f->payload + 1);
	peer_send(s->control, out, wire_answer_encode(out, &a));
	if (poll(in, 2, 1000) != 0)
		die("a block comes on a stream that is not in use");
	if (by_rate)
		send_rate(s->control, 0, 0);
	else
		send_streams(s->control, 1, 0);
	if (poll(in, 2, 1000 * (int)patience_s(5)) <= 0 || (in[0].revents == 0 && !by_rate))
		die("no block comes on stream 0");
	f = peer_frame(in[0].revents != 0 ? s->data : other);
	if (f->type != WIRE_BLOCK)
		die("BLOCK expected, %s came", frame_name(f->type));
	peer_send(s->control, out, wire_ack_encode(out, &k));
	if ((f = told(s->control))->type != WIRE_FILE_END)
		die("FILE_END expected, %s came", frame_name(f->type));
	peer_send(s->control, out, wire_done_encode(out, &d));
}

/* ROLE PATH: says hundreds of thousands of times how many streams are in use. In the end all is as if it had said
 * nothing. */
static void steers_without_end(unsigned port, char **arguments)
{
	uint8_t role = role_named(arguments[0]), out[WIRE_END_MAX_BYTES];
	struct session s = begun(port, role, arguments[1], 2);
	struct wire_end end = { role == WIRE_ACCEPTOR_SENDS, 0 };
	const struct frame *f;
	struct peer *other;

	s.data = join(&s, 0);
	other = join(&s, 1);
	use_flood(s.control);
	if (role == WIRE_ACCEPTOR_RECEIVES) {
		send_streams(s.control, 2, 0);
		if (!file(&s, ID(0, 1), 0, "steered"))
			die("the session has suffered");
		send_end(s.control, 1, 0);
	} else if (role == WIRE_ACCEPTOR_SENDS) {
		take_block(&s, other, false);
	} else {
		peer_send(s.control, out, wire_end_encode(out, &end));
	}
	f = told(s.control);
	if (f->type != WIRE_END)
		die("END expected, %s came", frame_name(f->type));
	if (role == WIRE_ACCEPTOR_SENDS)
		peer_send(s.control, out, wire_end_encode(out, &end));
	peer_close(other);
	drop(&s);
}

/* RATE frames that are too short or too long, with too many rates or streams, or with a stream of an unlisted rate;
 * then more well-formed RATE frames than the server accepts. */
static void malformed_rate(unsigned port, char **arguments)
{
	static const struct { uint32_t n; uint8_t head[28]; } of[] = {
		{ 0, { 0 } }, { 9, { 0 } }, { 11, { 0 } }, { 10, { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0 } },
		{ 18, { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, /* a rate of 0 */
		{ 10 + 17 * 8, { 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ 10 + 129, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 129 } }, { 10 + 255, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 255 } },
		{ 11, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1 } },                      /* of no rate */
		{ 19, { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2 } },
		{ 19, { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0 } }, /* the last shares none */
		{ 513, { 0 } },
	};
	uint8_t payload[513];
	struct session s;
	size_t i;

	for (i = 0; i < sizeof of / sizeof *of; i++) {
		s = begun(port, WIRE_ACCEPTOR_SENDS, arguments[0], 2);
		memset(payload, 0, sizeof payload);
		memcpy(payload, of[i].head, sizeof of[i].head);
		peer_send_raw(s.control, WIRE_RATE, 1, payload, of[i].n);
		expect_error(s.control, 10);
		drop(&s);
	}
	s = begun(port, WIRE_ACCEPTOR_SENDS, arguments[0], 2);
	for (i = 0; i < 1000; i++)
		send_rate(s.control, any(), any() | 1);
	expect_error(s.control, 10);
	drop(&s);
}

/* PATH: small, large and arbitrary rates, as often as the server accepts; then the server sends one block. */
static void rates_of_all_kinds(unsigned port, char **arguments)
{
	static const uint64_t of[] = { 1, 7, 8, 1000, UINT64_C(1) << 32, UINT64_C(1) << 53, INT64_MAX, UINT64_MAX - 1,
		UINT64_MAX };
	struct session s = begun(port, WIRE_ACCEPTOR_SENDS, arguments[0], 2);
	struct wire_end end = { 1, 0 };
	uint8_t out[WIRE_END_MAX_BYTES];
	const struct frame *f;
	struct peer *other;
	size_t i;

	s.data = join(&s, 0);
	other = join(&s, 1);
	send_streams(s.control, 2, 0);
	for (i = 0; i < 150; i++)
		send_rate(s.control, i % 3 == 0 ? any() : of[i % 9], of[i / 9 % 9]);
	take_block(&s, other, true);
	f = told(s.control);
	if (f->type != WIRE_END)
		die("END expected, %s came", frame_name(f->type));
	peer_send(s.control, out, wire_end_encode(out, &end));
	peer_close(other);
	drop(&s);
}

/* PATH: has a large file sent to it at a rate of its own choice, reads none of it, and talks. */
static void waits_by_a_rate(unsigned port, char **arguments)
{
	struct session s = begun(port, WIRE_ACCEPTOR_SENDS, arguments[0], 2);
	struct wire_answer a = { 0, WIRE_SEND_ALL };
	struct pollfd in = { .fd = s.control->fd, .events = POLLIN };
	time_t start = time(NULL);
	const struct frame *f;
	uint8_t out[64];
	unsigned i;

	s.data = join(&s, 0);
	send_streams(s.control, 2, 0);
	send_rate(s.control, UINT64_C(1) << 40, UINT64_C(1) << 40);
	f = told(s.control);
	if (f->type != WIRE_ENTRY)
		die("ENTRY expected, %s came", frame_name(f->type));
	a.id = get_u64(f->payload + 1);
	peer_send(s.control, out, wire_answer_encode(out, &a));
	for (i = 0; time(NULL) - start < patience_s(100); i++) {
		send_ping(s.control);
		if (i % 40 == 0 && peer_try_send(s.control, "", 0))
			send_rate(s.control, (UINT64_C(1) << 40) + i, 0);
		if (poll(&in, 1, 50) == 0)
			continue;
		peer_short_patience(s.control);
		if ((f = peer_frame(s.control))->type == WIRE_ERROR && get_u16(f->payload) == 12)
			return;
		if (f->type < 0 && f->type != END_SILENT)
			die("%s came", frame_name(f->type));
	}
	die("it waits for ever");
}

/* STREAMS: joins all that were granted and never says that any is in use. */
static void streams_in_no_use(unsigned port, char **arguments)
{
	unsigned i, granted;
	struct session s = begun_with(port, WIRE_ACCEPTOR_SENDS, "/", (unsigned)atoi(arguments[0]), &granted);

	for (i = 0; i < granted; i++)
		join(&s, i);
	hold();
}

const struct hostile hostile_steerers[] = {
	{ "wrong-steering", wrong_steering }, { "malformed-use", malformed_use },
	{ "malformed-rate", malformed_rate }, { "rates-of-all-kinds", rates_of_all_kinds },
	{ "waits-by-a-rate", waits_by_a_rate },
	{ "steers-without-end", steers_without_end }, { "streams-in-no-use", streams_in_no_use }, { NULL, NULL }
};

/* ---- A server ---- */

/* A session with as many streams as its client asked for, up to 16. */
static struct server_session steered(void)
{
	struct server_session s = server_session_hello();

	server_session_read_open(&s);
	server_session_agree(&s, s.streams < 16 ? s.streams : 16, 0);
	return s;
}

/* FRAME: to a client, which is the starter (SET_STREAMS, RATE), or sends (TCP_REPORT). */
static void steers_client(unsigned port, char **arguments)
{
	static const uint8_t zeros[42];
	struct server_session s = steered();
	const char *what = arguments[0];

	(void)port;
	if (strcmp(what, "seen") == 0)
		peer_send_raw(s.control, WIRE_TCP_REPORT, 1, zeros, 42);
	else
		peer_send_raw(s.control, strcmp(what, "use") == 0 ? WIRE_SET_STREAMS : WIRE_RATE, 1, zeros, 10);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* N TEXT: a congestion control whose name has N bytes, as it says, and is TEXT. */
static void malformed_seen(unsigned port, char **arguments)
{
	struct server_session s = steered();
	uint8_t payload[42 + 64] = { 0 };
	size_t n = strlen(arguments[1]);

	(void)port;
	payload[40] = (uint8_t)atoi(arguments[0]);
	memcpy(payload + 41, arguments[1], n);
	peer_send_raw(s.control, WIRE_TCP_REPORT, 1, payload, (uint32_t)(42 + n));
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* What no kernel has seen; under a name that means something to shells, terminals, JSON and files of lines. */
static struct wire_tcp_report absurd(void)
{
	static const char name[] = "%0A\"'`$(id)\\,#";
	struct wire_tcp_report f = { any(), any(), any(), any(), any(), { (const uint8_t *)name, sizeof name - 1 },
		.m = 3 };
	unsigned i;

	for (i = 0; i < f.m; i++) {
		f.rtt_us[i] = (uint32_t)any();
		f.min_rtt_us[i] = (uint32_t)any();
		f.segments[i] = (uint32_t)any();
		f.lost[i] = (uint32_t)any();
		f.events[i] = (uint32_t)any();
	}
	return f;
}

static void seen_flood(struct peer *p)
{
	static uint8_t out[BATCH * WIRE_TCP_REPORT_MAX_BYTES];
	unsigned i, k;

	for (i = 0; i < FLOOD; i += BATCH) {
		size_t n = 0;

		for (k = 0; k < BATCH; k++) {
			struct wire_tcp_report f = absurd();

			n += wire_tcp_report_encode(out + n, &f);
		}
		peer_send(p, out, n);
	}
}

/* The next SET_STREAMS of a client; false: it is done. */
static bool next_use(struct server_session *s, struct wire_set_streams *u)
{
	const struct frame *f = peer_any_frame(s->control);

	if (f->type == WIRE_END)
		return false;
	if (f->type != WIRE_SET_STREAMS)
		die("SET_STREAMS expected, %s came", frame_name(f->type));
	u->streams = get_u16(f->payload);
	u->bytes = get_u64(f->payload + 2);
	return true;
}

/* Says hundreds of thousands of times what it has not seen, and then gives what was asked for: NAME. */
static void sees_without_end(unsigned port, char **arguments)
{
	struct server_session s = steered();
	struct wire_set_streams u;
	unsigned i;

	(void)port;
	if (!next_use(&s, &u))
		die("no SET_STREAMS");
	s.data = server_session_join();
	for (i = 1; i < u.streams; i++)
		server_session_join();
	seen_flood(s.control);
	if (!server_session_file(&s, ID(0, 1), 0, arguments[0]))
		die("the client refuses %s", arguments[0]);
	send_end(s.control, 1, 0);
	server_session_end(&s);
}

/* A stream's bytes of a round, to its end. */
static void one_run(struct peer *stream, uint64_t bytes)
{
	send_block(stream, ID(0, 1), 0, (uint32_t)bytes, true);
	SSL_shutdown(stream->ssl);
	expect_end(stream);
	peer_close(stream);
}

/* Measured as it should be, but that a stream is over before the next has come. */
static void hurries(unsigned port, char **arguments)
{
	struct server_session s = steered();
	struct wire_set_streams u;
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_end end = { 0, 0 };
	unsigned i;

	(void)port;
	(void)arguments;
	while (next_use(&s, &u))
		for (i = 0; i < u.streams; i++)
			one_run(server_session_join(), u.bytes);
	peer_send(s.control, out, wire_end_encode(out, &end));
	server_session_end(&s);
}

/* A measurement in good order, with false reports. */
static void lies_about_rounds(unsigned port, char **arguments)
{
	struct server_session s = steered();
	struct peer *stream[16];
	struct wire_set_streams u;
	struct wire_tcp_report f;
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_end end = { 0, 0 };
	unsigned i;

	(void)port;
	(void)arguments;
	while (next_use(&s, &u)) {
		if (u.streams == 0)
			continue;
		for (i = 0; i < u.streams; i++)
			stream[i] = server_session_join();
		for (i = 0; i < 3; i++) {
			f = absurd();
			f.retransmits = UINT64_MAX;
			send_seen(s.control, &f);
		}
		for (i = 0; i < u.streams; i++)
			one_run(stream[i], u.bytes);
	}
	peer_send(s.control, out, wire_end_encode(out, &end));
	server_session_end(&s);
}

/* The next that is neither RATE nor ACK. */
static const struct frame *but_rates(struct peer *p)
{
	const struct frame *f;

	do
		f = peer_frame(p);
	while (f->type == WIRE_RATE || f->type == WIRE_ACK);
	return f;
}

/* BLOCKS: sends a file of so many as fast as it can, whatever rate its client has asked for. */
static void keeps_to_no_rate(unsigned port, char **arguments)
{
	struct server_session s = server_session_hello();
	uint64_t size = (uint64_t)atoi(arguments[0]) * GRID, at;
	const struct frame *f;

	(void)port;
	server_session_read_open(&s);
	server_session_agree(&s, 1, 0);
	s.data = server_session_join();
	peer_patience(s.data, 30);
	peer_patience(s.control, 30);
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "x", 1, size, NULL);
	if ((f = but_rates(s.control))->type != WIRE_ANSWER)
		die("ANSWER expected, %s came", frame_name(f->type));
	for (at = 0; at < size; at += GRID)
		send_block(s.data, ID(0, 1), at, GRID, true);
	send_ping(s.control);
	for (at = 0; at < size; at += GRID)
		while ((f = peer_frame(s.control))->type == WIRE_RATE)
			;
	send_file_end(s.control, ID(0, 1), size);
	if ((f = but_rates(s.control))->type != WIRE_DONE)
		die("DONE expected, %s came", frame_name(f->type));
	send_end(s.control, 1, 0);
	server_session_end(&s);
}

/* HOW: measured, it lets its client wait ("silent", and reads nothing), or sends without end ("endless"); and pings.
 * The client goes by its own time. */
static void never_measured(unsigned port, char **arguments)
{
	struct server_session s = steered();
	bool endless = strcmp(arguments[0], "endless") == 0;
	time_t start = time(NULL);
	const struct frame *f;
	struct wire_end end = { 0, 0 };
	uint8_t out[WIRE_END_MAX_BYTES];
	struct wire_set_streams u;
	unsigned n;

	(void)port;
	if (!next_use(&s, &u))
		die("no SET_STREAMS");
	s.data = server_session_join();
	peer_short_patience(s.control);
	peer_short_patience(s.data);
	do {
		for (n = 0; endless && n < 8; n++)
			send_block(s.data, ID(0, 1), 0, GRID, true);
		send_ping(s.control);
		if (time(NULL) - start > patience_s(40))
			die("it goes on for ever");
		f = peer_frame(s.control);
	} while (f->type == END_SILENT);
	if (f->type == WIRE_END)
		peer_try_send(s.control, out, wire_end_encode(out, &end));
	server_session_drop(&s);
}

const struct hostile hostile_steered[] = {
	{ "steers-client", steers_client }, { "malformed-seen", malformed_seen },
	    { "sees-without-end", sees_without_end },
	{ "keeps-to-no-rate", keeps_to_no_rate }, { "lies-about-rounds", lies_about_rounds }, { "hurries", hurries },
	    { "never-measured", never_measured }, { NULL, NULL }
};
