/* Lines over a socket. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/line_reader.h"

static struct {
	struct loop *loop;
	struct line_reader *lines;
	int peer, taken;
	char got[64 * 1024];       /* lines, each with a '|' behind it */
	bool closed, broken;
	size_t left;               /* of line_reader_send_all() */
	const char *free_at, *take_at;
} fx;

static void on_line(void *arg, const char *line)
{
	(void)arg;
	assert_true(strlen(fx.got) + strlen(line) + 2 < sizeof fx.got);
	strcat(strcat(fx.got, line), "|");
	if (fx.free_at != NULL && strcmp(line, fx.free_at) == 0) {
		line_reader_free(fx.lines);
		fx.lines = NULL;
	} else if (fx.take_at != NULL && strcmp(line, fx.take_at) == 0) {
		fx.taken = line_reader_take_fd(fx.lines);
		fx.lines = NULL;
	}
}

static void on_closed(void *arg, bool broken)
{
	(void)arg;
	assert_false(fx.closed);
	fx.closed = true;
	fx.broken = broken;
}

static void on_sent(void *arg, size_t left)
{
	(void)arg;
	assert_true(left < fx.left);
	fx.left = left;
}

static const struct line_reader_ops ops = { .line = on_line, .closed = on_closed, .sent = on_sent };
static const struct line_reader_ops text_ops = { .line = on_line, .closed = on_closed, .text = true };

static void begin_with(const struct line_reader_ops *with)
{
	int pair[2];

	memset(&fx, 0, sizeof fx);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(loop_new(&fx.loop, NULL), 0);
	assert_int_equal(line_reader_new(&fx.lines, fx.loop, &pair[0], with, NULL, NULL), 0);
	fx.peer = pair[1];
}

static void begin(void) { begin_with(&ops); }

static void say(const char *text)
{
	assert_int_equal(write(fx.peer, text, strlen(text)), strlen(text));
	nf_settle(fx.loop);
}

static void end(void)
{
	line_reader_free(fx.lines);
	close(fx.peer);
	loop_free(fx.loop);
}

static void in_and_out(void **state)
{
	char got[64];

	(void)state;
	begin();
	say("one\ntwo\r\n\nth");
	assert_string_equal(fx.got, "one|two||");
	say("ree");
	say("\n");
	assert_string_equal(fx.got, "one|two||three|");
	assert_true(line_reader_send(fx.lines, "%s %d", "back", 80));
	assert_int_equal(read(fx.peer, got, sizeof got), 8);
	assert_memory_equal(got, "back 80\n", 8);
	assert_false(fx.closed);
	shutdown(fx.peer, SHUT_WR);
	nf_settle(fx.loop);
	assert_true(fx.closed && !fx.broken);
	end();
}

static void too_long(void **state)
{
	char text[LINE_READER_BYTES + 10];

	(void)state;
	begin();
	memset(text, 'x', sizeof text);
	text[LINE_READER_BYTES - 2] = '\n';
	text[LINE_READER_BYTES - 1] = '\0';
	say(text);
	assert_int_equal(strlen(fx.got), LINE_READER_BYTES - 1);
	memset(text, 'x', sizeof text);
	text[LINE_READER_BYTES] = '\0';
	say(text);
	assert_true(fx.closed && fx.broken);
	text[LINE_READER_BYTES - 1] = '\0';
	assert_false(line_reader_send(fx.lines, "%s", text));
	end();
}

/* Who ends without having read what it was sent is heard nevertheless. */
static void the_last_line(void **state)
{
	(void)state;
	begin();
	assert_true(line_reader_send(fx.lines, "unread"));
	assert_int_equal(write(fx.peer, "one\nwhy\n", 8), 8);
	close(fx.peer);
	fx.peer = dup(0);
	nf_settle(fx.loop);
	assert_string_equal(fx.got, "one|why|");
	assert_true(fx.closed && !fx.broken);
	end();
}

/* Text for people, such as the output of a command: too long a line comes in pieces, and the last line needs no end. */
static void text(void **state)
{
	char much[LINE_READER_BYTES + 10];

	(void)state;
	begin_with(&text_ops);
	memset(much, 'x', sizeof much);
	much[sizeof much - 1] = '\0';
	say(much);
	assert_int_equal(strlen(fx.got), LINE_READER_BYTES + 1);
	fx.got[0] = '\0';
	say("\nwhy");
	assert_string_equal(fx.got, "xxxxxxxxx|");
	shutdown(fx.peer, SHUT_WR);
	nf_settle(fx.loop);
	assert_string_equal(fx.got, "xxxxxxxxx|why|");
	assert_true(fx.closed && !fx.broken);
	end();
}

/* What has arrived is delivered at once, while others have the socket open. */
static void drained(void **state)
{
	(void)state;
	begin_with(&text_ops);
	assert_int_equal(write(fx.peer, "one\nwhy", 7), 7);
	line_reader_drain(fx.lines);
	assert_string_equal(fx.got, "one|why|");
	assert_false(fx.closed);
	say("more\n");
	assert_string_equal(fx.got, "one|why|more|");
	end();
	begin_with(&text_ops);
	assert_int_equal(write(fx.peer, "one\n", 4), 4);
	shutdown(fx.peer, SHUT_WR);
	line_reader_drain(fx.lines);
	assert_string_equal(fx.got, "one|");
	assert_true(fx.closed && !fx.broken);
	end();
}

static void free_within(void **state)
{
	(void)state;
	begin();
	fx.free_at = "two";
	say("one\ntwo\nthree\n");
	assert_string_equal(fx.got, "one|two|");
	assert_false(fx.closed);
	end();
}

static void take_over(void **state)
{
	char got[8];

	(void)state;
	begin();
	fx.take_at = "pipe";
	say("pipe\n");
	say("raw");
	assert_string_equal(fx.got, "pipe|");
	assert_int_equal(read(fx.taken, got, sizeof got), 3);
	close(fx.taken);
	end();
}

#define MUCH (3u << 20)

/* Much more than the socket holds goes as the peer reads; lines arrive meanwhile, and lines are sent afterwards. */
static void sends_much(void **state)
{
	char *data = malloc(MUCH), *got = malloc(MUCH + 10);
	size_t n = 0;
	ssize_t r;
	unsigned i;

	(void)state;
	for (i = 0; i < MUCH; i++)
		data[i] = (char)(i * 7 + i / 256);
	begin();
	fx.left = SIZE_MAX;
	line_reader_send_all(fx.lines, data, MUCH);
	nf_settle(fx.loop);
	assert_in_range(fx.left, 1, MUCH - 1);
	say("a line\n");
	assert_string_equal(fx.got, "a line|");
	for (i = 0; i < 10000 && n < MUCH; i++) {
		if ((r = read(fx.peer, got + n, MUCH - n)) > 0)
			n += (size_t)r;
		else
			nf_settle(fx.loop);
	}
	assert_int_equal(n, MUCH);
	assert_memory_equal(got, data, MUCH);
	assert_int_equal(fx.left, 0);
	assert_true(line_reader_send(fx.lines, "end"));
	assert_int_equal(read(fx.peer, got, 10), 4);
	end();
	free(data);
	free(got);
}

/* A peer that closes meanwhile: its last lines arrive, then the end. */
static void much_for_a_peer_that_closes(void **state)
{
	char *data = calloc(1, MUCH);

	(void)state;
	begin();
	fx.left = SIZE_MAX;
	line_reader_send_all(fx.lines, data, MUCH);
	nf_settle(fx.loop);
	assert_int_equal(write(fx.peer, "why\n", 4), 4);
	shutdown(fx.peer, SHUT_RDWR);
	nf_settle(fx.loop);
	assert_string_equal(fx.got, "why|");
	assert_true(fx.closed);
	end();
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(in_and_out),
		nf_test(too_long),
		nf_test(the_last_line),
		nf_test(text),
		nf_test(drained),
		nf_test(free_within),
		nf_test(take_over),
		nf_test(sends_much),
		nf_test(much_for_a_peer_that_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
