/* A bad server. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

struct served {
	struct peer *control, *data;
	uint8_t role;
	uint16_t streams;
};

static struct served hello(void)
{
	struct served s = { .control = peer_accept(hostile_listener, ALPN_CONTROL) };

	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	return s;
}

static void read_open(struct served *s)
{
	const struct frame *f = expect(s->control, WIRE_OPEN);

	s->role = f->payload[0];
	s->streams = get_u16(f->payload + 8);
}

static void agree(struct served *s, unsigned streams, unsigned cipher)
{
	struct wire_opened o = { .session = { 7 }, .cipher = (uint8_t)cipher, .streams = (uint16_t)streams };
	uint8_t out[WIRE_OPENED_MAX_BYTES];

	peer_send(s->control, out, wire_opened_encode(out, &o));
}

static struct served opened(void)
{
	struct served s = hello();

	read_open(&s);
	agree(&s, 1, 0);
	return s;
}

static struct served joined(void)
{
	struct served s = opened();
	uint8_t out[8];

	s.data = peer_accept(hostile_listener, ALPN_DATA);
	expect(s.data, WIRE_JOIN);
	peer_send(s.data, out, wire_joined_encode(out));
	return s;
}

static void drop(struct served *s)
{
	peer_close(s->control);
	peer_close(s->data);
}

static bool send_file(struct served *s, uint64_t id, uint64_t parent, const char *name)
{
	const struct frame *f;

	send_entry(s->control, WIRE_FILE, id, parent, name, strlen(name), 1000, NULL);
	if ((f = peer_frame(s->control))->type != WIRE_ANSWER)
		return false;
	send_block(s->data, id, 0, 1000, true);
	while ((f = peer_frame(s->control))->type == WIRE_ACK)
		;
	return f->type == WIRE_DONE;
}

/* Until the client closes. */
static void wait_for_the_end(struct served *s)
{
	while (peer_frame(s->control)->type > 0)
		;
	drop(s);
}

/* ---- Cases ---- */

static void good(unsigned port, char **arguments)
{
	struct served s = joined();

	(void)port;
	if (!send_file(&s, ID(0, 1), 0, arguments[0]))
		die("the client refuses %s", arguments[0]);
	send_end(s.control, 1, 0);
	wait_for_the_end(&s);
}

/* Each argument a name at the top level that was not asked for, whatever the client says. */
static void unasked(unsigned port, char **arguments)
{
	struct served s = joined();
	unsigned i;

	(void)port;
	for (i = 0; arguments[i] != NULL; i++)
		if (!send_file(&s, ID(i, 1), 0, arguments[i])) {
			drop(&s);
			return;
		}
	send_end(s.control, i, 0);
	wait_for_the_end(&s);
}

static void bad_name(unsigned port, char **arguments)
{
	struct served s = joined();

	(void)port;
	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, arguments[0], strlen(arguments[0]), 0, NULL);
	expect_error(s.control, 10);
	drop(&s);
}

/* ARGUMENT is where the link leads. */
static void through_a_link(unsigned port, char **arguments)
{
	struct served s = joined();

	(void)port;
	send_entry(s.control, WIRE_SYMLINK, ID(0, 1), 0, "a", 1, 0, arguments[0]);
	expect(s.control, WIRE_ANSWER);
	expect(s.control, WIRE_DONE);
	send_entry(s.control, WIRE_DIR, ID(1, 2), 0, "a", 1, 0, NULL);
	peer_frame(s.control);
	send_file(&s, ID(2, 3), ID(1, 2), "escaped");
	drop(&s);
}

static void rude_texts(unsigned port, char **arguments)
{
	static const char path[] = "\033]0;title\007name\nptcp: done", text[] = "\033[31mred\nptcp: done\r\x9b" "31m";
	struct wire_note n = { WIRE_NOTE_WARNING, 13, { (const uint8_t *)path, strlen(path) },
		{ (const uint8_t *)text, strlen(text) } };
	struct served s = joined();
	uint8_t out[WIRE_NOTE_MAX_BYTES];

	(void)port;
	(void)arguments;
	if (s.role == WIRE_YOU_SEND) {
		peer_send(s.control, out, wire_note_encode(out, &n));
		n.kind = WIRE_NOTE_FAILED;
		peer_send(s.control, out, wire_note_encode(out, &n));
	}
	send_error(s.control, 11, text);
	wait_for_the_end(&s);
}

static void too_generous(unsigned port, char **arguments)
{
	struct served s = hello();

	(void)port;
	read_open(&s);
	if (strcmp(arguments[0], "streams") == 0)
		agree(&s, s.streams + 1, 0);
	else
		agree(&s, 1, 3); /* cipher none, not asked for */
	expect_error(s.control, 10);
	drop(&s);
}

/* Frames about blocks and entries that do not exist; to a client that sends. */
static void bad_range(unsigned port, char **arguments)
{
	struct served s = joined();
	const struct frame *f;
	uint8_t out[64];
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
	drop(&s);
}

/* Silent from some step on, until the client goes. */
static void silent(unsigned port, char **arguments)
{
	const char *after = arguments[0];
	struct served s = { NULL, NULL, 0, 0 };
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
		s = hello();
	else if (strcmp(after, "opened") == 0)
		s = opened();
	else
		s = joined();
	peer_patience(s.control, 20);
	wait_for_the_end(&s);
}

/* Answers, and reads no block, but pings. */
static void reads_nothing(unsigned port, char **arguments)
{
	struct served s = joined();
	struct wire_answer a = { 0, WIRE_SEND_ALL };
	uint8_t out[WIRE_ANSWER_MAX_BYTES];
	time_t start = time(NULL);
	const struct frame *f;

	(void)port;
	(void)arguments;
	peer_patience(s.control, 1);
	while ((f = peer_frame(s.control))->type > 0 || f->type == END_SILENT) {
		if (f->type == WIRE_ENTRY) {
			a.id = get_u64(f->payload + 1);
			peer_send(s.control, out, wire_answer_encode(out, &a));
		}
		send_ping(s.control);
		if (time(NULL) - start > 15)
			die("it goes on for ever");
	}
	drop(&s);
}

const struct hostile hostile_server[] = {
	{ "good", good }, { "unasked", unasked }, { "bad-name", bad_name },
	{ "through-a-link", through_a_link }, { "rude-texts", rude_texts },
	{ "too-generous", too_generous }, { "bad-range", bad_range }, { "silent", silent },
	{ "reads-nothing", reads_nothing }, { NULL, NULL }
};
