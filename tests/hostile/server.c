/* A bad server. */
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "served.h"
#include "wire/mover.h"

/* ---- Cases ---- */

static void good(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	if (!server_session_file(&s, ID(0, 1), 0, arguments[0]))
		die("the client refuses %s", arguments[0]);
	send_end(s.control, 1, 0);
	server_session_end(&s);
}

/* Closes the first connection after the handshake, as a server that makes room for others, and is good then. */
static void crowded(unsigned port, char **arguments)
{
	struct server_session s;
	struct peer *control;

	(void)port;
	peer_close(peer_accept(hostile_listener, ALPN_CONTROL));
	while ((control = peer_may_accept(hostile_listener, ALPN_CONTROL)) == NULL)
		; /* the data connection of the first attempt */
	s = server_session_greet(control);
	server_session_read_open(&s);
	server_session_agree(&s, 1, 0);
	s.data = server_session_join();
	if (!server_session_file(&s, ID(0, 1), 0, arguments[0]))
		die("the client refuses %s", arguments[0]);
	send_end(s.control, 1, 0);
	server_session_end(&s);
}

/* Each argument a name at the top level that was not asked for, whatever the client says. */
static void unasked(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	unsigned i;

	(void)port;
	for (i = 0; arguments[i] != NULL; i++)
		if (!server_session_file(&s, ID(i, 1), 0, arguments[i])) {
			server_session_drop(&s);
			return;
		}
	send_end(s.control, i, 0);
	server_session_end(&s);
}

/* The same, as the matches of a pattern. */
static void unmatched(unsigned port, char **arguments)
{
	server_session_flags = WIRE_OPENED_EXPANDED;
	unasked(port, arguments);
}

/* The same to another server, which fetches the data from the first. */
static void fetched(unsigned port, char **arguments)
{
	struct peer *asks = peer_accept(hostile_listener, ALPN_JOB);

	expect(asks, WIRE_JOB);
	expect(asks, WIRE_GRANT);
	expect(asks, WIRE_OPEN);
	send_error(asks, 5, "not from here");
	server_session_by_grant = true;
	unasked(port, arguments);
	peer_close(asks);
}

static void bad_name(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, arguments[0], strlen(arguments[0]), 0, NULL);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* ARGUMENT is where the link leads. */
static void through_a_link(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	send_entry(s.control, WIRE_SYMLINK, ID(0, 1), 0, "a", 1, 0, arguments[0]);
	expect(s.control, WIRE_ANSWER);
	expect(s.control, WIRE_DONE);
	send_entry(s.control, WIRE_DIR, ID(1, 2), 0, "a", 1, 0, NULL);
	peer_frame(s.control);
	server_session_file(&s, ID(2, 3), ID(1, 2), "escaped");
	server_session_drop(&s);
}

static void rude_texts(unsigned port, char **arguments)
{
	static const char path[] = "\033]0;title\007name\nptcp: done", text[] = "\033[31mred\nptcp: done\r\x9b" "31m";
	struct wire_warning n = { WIRE_WARNING_ONLY, { (const uint8_t *)path, strlen(path) },
		{ 13, 0, { (const uint8_t *)text, strlen(text) } } };
	struct server_session s = server_session_joined();
	uint8_t out[WIRE_WARNING_MAX_BYTES];

	(void)port;
	(void)arguments;
	if (s.role == WIRE_ACCEPTOR_SENDS) {
		peer_send(s.control, out, wire_warning_encode(out, &n));
		n.kind = WIRE_WARNING_FAILED;
		peer_send(s.control, out, wire_warning_encode(out, &n));
	}
	send_error(s.control, 11, text);
	server_session_end(&s);
}

static void too_generous(unsigned port, char **arguments)
{
	struct server_session s = server_session_hello();

	(void)port;
	server_session_read_open(&s);
	if (strcmp(arguments[0], "streams") == 0)
		server_session_agree(&s, s.streams + 1, 0);
	else
		server_session_agree(&s, 1, 3); /* cipher none, not asked for */
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* Frames about blocks and entries that do not exist; to a client that sends. */
static void bad_range(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	const struct frame *f;
	uint8_t out[WIRE_ANSWER_MAX_BYTES + 2 * WIRE_MATCH_MAX_BYTES];
	uint64_t id;
	size_t n = 0;

	(void)port;
	while ((f = peer_frame(s.control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_ENTRY)
		die("%s came", frame_name(f->type));
	id = get_u64(f->payload + 1);
	if (strcmp(arguments[0], "need") == 0) {
		struct wire_blocks b = { .id = id, .first = 0, .count = UINT32_MAX };

		n = wire_need_encode(out, &b);
	} else if (strcmp(arguments[0], "ack") == 0) {
		struct wire_ack a = { id, 4000000 };

		n = wire_ack_encode(out, &a);
	} else if (strcmp(arguments[0], "done") == 0) {
		struct wire_done d = { id };

		n = wire_done_encode(out, &d);
	} else if (strcmp(arguments[0], "have") == 0) { /* to who sends all of it */
		struct wire_answer a = { id, WIRE_SEND_ALL };
		struct wire_blocks b = { .id = id, .first = 0, .count = 1 };

		n = wire_answer_encode(out, &a);
		n += wire_have_encode(out + n, &b);
	} else if (strcmp(arguments[0], "match") == 0 || strcmp(arguments[0], "match-twice") == 0) {
		bool twice = strcmp(arguments[0], "match-twice") == 0; /* else to who sends all of it */
		struct wire_answer a = { id, twice ? WIRE_SEND_PARTS : WIRE_SEND_ALL };
		struct wire_blocks b = { .id = id, .first = 0, .count = 1 };

		n = wire_answer_encode(out, &a);
		n += wire_match_encode(out + n, &b);
		if (twice)
			n += wire_match_encode(out + n, &b);
	} else if (strcmp(arguments[0], "hole") == 0) {
		struct wire_blocks b = { .id = id, .first = 0, .count = 1 };

		n = wire_hole_encode(out, &b);
	} else if (strcmp(arguments[0], "parts-twice") == 0) {
		struct wire_answer a = { id, WIRE_SEND_PARTS };

		n = wire_answer_encode(out, &a);
		n += wire_answer_encode(out + n, &a);
	} else {
		struct wire_answer a = { ID(77, 9), WIRE_SEND_ALL };

		n = wire_answer_encode(out, &a);
	}
	peer_send(s.control, out, n);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* Silent from some step on, until the client goes. */
static void silent(unsigned port, char **arguments)
{
	const char *after = arguments[0];
	struct server_session s = { .control = NULL };
	char bytes[4096];
	int fd;

	(void)port;
	if (strcmp(after, "tcp") == 0) {
		if ((fd = accept(hostile_listener, NULL, NULL)) < 0)
			die("nobody connects");
		while (recv(fd, bytes, sizeof bytes, 0) > 0)
			;
		close(fd);
		return;
	}
	if (strcmp(after, "handshake") == 0)
		s.control = peer_accept(hostile_listener, ALPN_CONTROL);
	else if (strcmp(after, "hello") == 0)
		s = server_session_hello();
	else if (strcmp(after, "opened") == 0)
		s = server_session_opened();
	else
		s = server_session_joined();
	peer_patience(s.control, 20);
	server_session_end(&s);
}

/* Answers, and reads no block, but pings. */
static void reads_nothing(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	struct wire_answer a = { 0, WIRE_SEND_ALL };
	uint8_t out[WIRE_ANSWER_MAX_BYTES];
	time_t start = time(NULL);
	const struct frame *f;

	(void)port;
	(void)arguments;
	peer_short_patience(s.control);
	while ((f = peer_frame(s.control))->type > 0 || f->type == END_SILENT) {
		if (f->type == WIRE_ENTRY) {
			a.id = get_u64(f->payload + 1);
			peer_send(s.control, out, wire_answer_encode(out, &a));
		}
		send_ping(s.control);
		if (time(NULL) - start > patience_s(15))
			die("it goes on for ever");
	}
	server_session_drop(&s);
}

/* Every type with a payload of zeros where it may not come, after HELLO, OPENED or JOINED; the argument says which. */
static void wrong_frame(unsigned port, char **arguments)
{
	static const uint8_t zeros[64];
	unsigned after = (unsigned)atoi(arguments[0]);
	struct server_session s = after == 0 ? server_session_hello() : after == 1 ? server_session_opened() :
	    server_session_joined();

	(void)port;
	if (after == 0)
		server_session_read_open(&s);
	peer_send_raw(s.control, (uint8_t)atoi(arguments[1]), 1, zeros, sizeof zeros);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* To a client that receives: blocks off the grid, or beyond the file. ARGUMENTS: offset, length. */
static void bad_block(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "x", 1, 300000, NULL);
	expect(s.control, WIRE_ANSWER);
	send_block(s.data, ID(0, 1), strtoull(arguments[0], NULL, 10), (uint32_t)atoi(arguments[1]), true);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* To standard output: a corrupt block is not written, and a block beyond the window not kept. ARGUMENT: offset */
static void beyond_window(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "x", 1, UINT64_C(100) << 30, NULL);
	expect(s.control, WIRE_ANSWER);
	expect(s.control, WIRE_NEED);
	send_block(s.data, ID(0, 1), 0, WIRE_CHUNK_BYTES, false);
	expect(s.control, WIRE_NEED);
	send_block(s.data, ID(0, 1), strtoull(arguments[0], NULL, 10), WIRE_CHUNK_BYTES, true);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* Sizes that no file has: of arithmetic that wraps. */
static void bad_size(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();

	(void)port;
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "x", 1, strtoull(arguments[0], NULL, 10), NULL);
	expect_error(s.control, 10);
	server_session_drop(&s);
}

/* JOIN of a client that sends, which lets a block follow at once. ARGUMENT: the answer to JOIN and block; after "error"
 * the next JOIN is answered well, and no block comes before that. */
static void joined_ahead(unsigned port, char **arguments)
{
	struct server_session s = server_session_opened();
	struct wire_answer answer = { .verdict = WIRE_SEND_ALL };
	struct wire_ack ack = { .block = 0 };
	uint8_t out[64];
	const struct frame *f;

	(void)port;
	s.data = peer_accept(hostile_listener, ALPN_DATA);
	while ((f = peer_frame(s.control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_ENTRY)
		die("%s came", frame_name(f->type));
	answer.id = ack.id = get_u64(f->payload + 1);
	peer_send(s.control, out, wire_answer_encode(out, &answer));
	expect(s.data, WIRE_JOIN);
	expect(s.data, WIRE_BLOCK);
	if (strcmp(arguments[0], "routed") == 0) {
		peer_send(s.data, out, wire_routed_encode(out));
		expect_error(s.control, 10);
		server_session_drop(&s);
		return;
	}
	send_error(s.data, 5, "no such session or stream");
	peer_close(s.data);
	s.data = peer_accept(hostile_listener, ALPN_DATA);
	expect(s.data, WIRE_JOIN);
	peer_short_patience(s.data);
	if ((f = peer_frame(s.data))->type >= 0)
		die("%s follows the second JOIN before JOINED", frame_name(f->type));
	peer_patience(s.data, 5);
	peer_send(s.data, out, wire_joined_encode(out));
	expect(s.data, WIRE_BLOCK);
	peer_send(s.control, out, wire_ack_encode(out, &ack));
	peer_send(s.control, out, wire_done_encode(out, &(struct wire_done){ ack.id }));
	while ((f = peer_frame(s.control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_END)
		die("%s instead of END", frame_name(f->type));
	peer_send_raw(s.control, WIRE_END, 1, f->payload, (uint32_t)f->n);
	server_session_end(&s);
}

/* Somebody else is where data connections go: no JOIN is said to him. ARGUMENT: his identity. */
static void thief(unsigned port, char **arguments)
{
	struct server_session s = server_session_opened();
	struct pollfd more = { .fd = hostile_listener, .events = POLLIN };
	const struct frame *f;

	(void)port;
	peer_init(arguments[0]);
	do {
		s.data = peer_accept(hostile_listener, ALPN_DATA);
		peer_patience(s.data, 2);
		if ((f = peer_frame(s.data))->type >= 0)
			die("%s is said to another host", frame_name(f->type));
		peer_close(s.data);
		s.data = NULL;
	} while (poll(&more, 1, 1500) > 0);
	server_session_drop(&s);
}

static void name_endpoint(struct server_session *s, uint32_t id, const char *host, unsigned port)
{
	struct wire_endpoint f = { .id = id, .peer = { 0x11 }, .port = (uint16_t)port,
		.host = { (const uint8_t *)host, strlen(host) } };
	uint8_t out[WIRE_ENDPOINT_MAX_BYTES];

	peer_send(s->control, out, wire_endpoint_encode(out, &f));
}

/* Names hosts for data connections: names and addresses of nobody, which are ignored, and a host of another identity,
 * which learns nothing but a handshake. */
static void elsewhere(unsigned port, char **arguments)
{
	static const char *const nobody[] = { "localhost", "0.0.0.0", "::", "224.0.0.1", "::ffff:0.0.0.0" };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct wire_opened o = { .session = { 7 }, .streams = 1, .flags = WIRE_OPENED_MOVERS };
	uint8_t out[WIRE_OPENED_MAX_BYTES];
	struct server_session s = server_session_hello();
	struct pollfd there = { .events = POLLIN };
	socklen_t n = sizeof sa;
	unsigned i;

	(void)port;
	(void)arguments;
	there.fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(there.fd, (struct sockaddr *)&sa, n) < 0 || listen(there.fd, 4) < 0 ||
	    getsockname(there.fd, (struct sockaddr *)&sa, &n) < 0)
		die("cannot listen");
	server_session_read_open(&s);
	peer_send(s.control, out, wire_opened_encode(out, &o));
	for (i = 0; i < sizeof nobody / sizeof *nobody; i++)
		name_endpoint(&s, i + 1, nobody[i], ntohs(sa.sin_port));
	if (poll(&there, 1, 500) > 0)
		die("it connects to an address of nobody");
	name_endpoint(&s, 100, "127.0.0.1", ntohs(sa.sin_port));
	if (poll(&there, 1, 1000 * (int)patience_s(3)) <= 0)
		die("it connects to no endpoint");
	s.data = peer_may_accept(there.fd, ALPN_DATA);
	if (s.data != NULL && peer_frame(s.data)->type >= 0)
		die("it says something to another identity");
	server_session_drop(&s);
}

/* Gives tickets out, as no server of ptcp does, and looks whether the next connection makes use of one. */
static void tickets(unsigned port, char **arguments)
{
	struct server_session s;
	uint8_t out[8];

	(void)port;
	(void)arguments;
	SSL_CTX_clear_options(server_tls, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(server_tls, 2);
	SSL_CTX_set_max_early_data(server_tls, 16384);
	SSL_CTX_set_session_cache_mode(server_tls, SSL_SESS_CACHE_SERVER);
	SSL_CTX_set_session_id_context(server_tls, (const uint8_t *)"x", 1);
	s = server_session_opened();
	s.data = peer_accept(hostile_listener, ALPN_DATA);
	if (SSL_session_reused(s.data->ssl) || SSL_get_early_data_status(s.data->ssl) == SSL_EARLY_DATA_ACCEPTED)
		die("it resumes");
	expect(s.data, WIRE_JOIN);
	peer_send(s.data, out, wire_joined_encode(out));
	send_end(s.control, 0, 0);
	server_session_end(&s);
}

/* TLS 1.2, whatever the client says: no handshake. */
static void old_tls(unsigned port, char **arguments)
{
	struct pollfd in = { .fd = hostile_listener, .events = POLLIN };
	SSL *ssl;

	(void)port;
	(void)arguments;
	SSL_CTX_set_min_proto_version(server_tls, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(server_tls, TLS1_2_VERSION);
	SSL_CTX_set_security_level(server_tls, 0);
	if (poll(&in, 1, 1000 * (int)patience_s(5)) <= 0)
		die("nobody connects");
	ssl = SSL_new(server_tls);
	SSL_set_fd(ssl, accept(hostile_listener, NULL, NULL));
	if (SSL_accept(ssl) == 1)
		die("TLS 1.2 is accepted");
}

/* Wants the only block again and again, for good copies too: it is told at last that there will be no more. */
static void never_content(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	struct wire_answer a = { 0, WIRE_SEND_PARTS };
	struct wire_blocks b = { .first = 0, .count = 1 };
	uint8_t out[64], sink[16384];
	const struct frame *f;
	int i;

	(void)port;
	(void)arguments;
	while ((f = peer_frame(s.control))->type == WIRE_TOTALS)
		;
	if (f->type != WIRE_ENTRY)
		die("%s came", frame_name(f->type));
	a.id = b.id = get_u64(f->payload + 1);
	peer_send(s.control, out, wire_answer_encode(out, &a));
	fcntl(s.data->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < 3000 && peer_try_send(s.control, out, wire_need_encode(out, &b)); i++) {
		poll(NULL, 0, 1);
		while (SSL_read(s.data->ssl, sink, sizeof sink) > 0)
			;
		ERR_clear_error();
	}
	do
		f = peer_frame(s.control);
	while (f->type > 0 && f->type != WIRE_FAIL && f->type != WIRE_ERROR);
	if (f->type != WIRE_FAIL && f->type != WIRE_ERROR)
		die("FAIL expected, %s came", frame_name(f->type));
	server_session_drop(&s);
}

/* Says that it is busy, for ever, having asked for a file. */
static void busy_for_ever(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	struct wire_ping f = { (uint8_t)atoi(arguments[0]), 0 };
	uint8_t out[WIRE_PING_MAX_BYTES];
	unsigned most = (unsigned)atoi(arguments[1]);
	time_t start = time(NULL);

	(void)port;
	do {
		f.tick++;
		poll(NULL, 0, 20);
		if (time(NULL) - start > patience_s(most))
			die("it is believed for ever");
	} while (peer_try_send(s.control, out, wire_ping_encode(out, &f)));
	server_session_drop(&s);
}

/* Modes with every bit, and attributes that were not asked for. ARGUMENT: the name that was. */
static void unasked_bits(unsigned port, char **arguments)
{
	static const char attrs[] = "\0\4\0\12\0\0\1\1\0\0\1\1\0\0\0\5\0\27\23security.capability\0\1x";
	struct server_session s = server_session_joined();
	struct wire_entry f = { .type = WIRE_FILE, .id = ID(0, 1), .size_bytes = 1000, .mode = 06755,
		.name = { (const uint8_t *)arguments[0], strlen(arguments[0]) },
		.attrs = { (const uint8_t *)attrs, sizeof attrs - 1 } };
	uint8_t out[WIRE_ENTRY_BYTES(sizeof attrs)];

	(void)port;
	peer_send(s.control, out, wire_entry_encode(out, &f));
	expect(s.control, WIRE_ANSWER);
	send_block(s.data, ID(0, 1), 0, 1000, true);
	while (peer_frame(s.control)->type == WIRE_ACK)
		;
	send_end(s.control, 1, 0);
	server_session_end(&s);
}

/* A hard link to a good file that was not announced as LINKED. ARGUMENTS: the name of its directory; the path that the
 * link names beside the id, or an empty one. */
static void link_out(unsigned port, char **arguments)
{
	struct server_session s = server_session_joined();
	uint8_t attrs[12] = { 0, 3, 0, 8 }, out[WIRE_ENTRY_BYTES(12)];
	struct wire_entry f = { .type = WIRE_HARDLINK, .id = ID(2, 3), .parent = ID(0, 1),
		.name = { (const uint8_t *)"stolen", 6 },
		.target = { (const uint8_t *)arguments[1], strlen(arguments[1]) }, .attrs = { attrs, 12 } };
	struct wire_answer answer;
	const struct frame *r;

	(void)port;
	put_u64(attrs + 4, ID(1, 2));
	send_entry(s.control, WIRE_DIR, ID(0, 1), 0, arguments[0], strlen(arguments[0]), 0, NULL);
	expect(s.control, WIRE_ANSWER);
	if (!server_session_file(&s, ID(1, 2), ID(0, 1), "inside"))
		die("refused");
	peer_send(s.control, out, wire_entry_encode(out, &f));
	do
		r = peer_frame(s.control);
	while (r->type == WIRE_ANSWER && !(wire_answer_decode(&answer, (struct span){ r->payload, r->n }, NULL) == 0 &&
	    answer.verdict == WIRE_NO_LINK));
	if (r->type != WIRE_FAIL && r->type != WIRE_ERROR && r->type != WIRE_ANSWER)
		die("%s: %s came", arguments[1], frame_name(r->type));
	server_session_drop(&s);
}

/* Warnings without end, with a client that prints them. */
static void notes(unsigned port, char **arguments)
{
	struct wire_warning n = { WIRE_WARNING_ONLY, { (const uint8_t *)"x", 1 }, { 13, 0, { (const uint8_t *)"y",
	    1 } } };
	struct server_session s = server_session_joined();
	uint8_t out[WIRE_WARNING_MAX_BYTES];
	size_t size = wire_warning_encode(out, &n);
	int i;

	(void)port;
	(void)arguments;
	for (i = 0; i < 20000 && peer_try_send(s.control, out, size); i++)
		;
	send_end(s.control, 0, 0);
	server_session_end(&s);
}

const struct hostile hostile_server[] = {
	{ "good", good }, { "crowded", crowded }, { "unasked", unasked }, { "unmatched", unmatched },
	    { "fetched", fetched }, { "bad-name", bad_name },
	{ "through-a-link", through_a_link }, { "rude-texts", rude_texts },
	{ "too-generous", too_generous }, { "bad-range", bad_range }, { "silent", silent },
	{ "reads-nothing", reads_nothing }, { "wrong-frame", wrong_frame }, { "bad-block", bad_block },
	    { "beyond-window", beyond_window },
	{ "bad-size", bad_size }, { "joined-ahead", joined_ahead }, { "thief", thief }, { "elsewhere", elsewhere },
	    { "tickets", tickets },
	{ "old-tls", old_tls }, { "never-content", never_content }, { "busy-for-ever", busy_for_ever },
	{ "unasked-bits", unasked_bits }, { "link-out", link_out }, { "notes", notes }, { NULL, NULL }
};
