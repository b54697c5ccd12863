/* Bad sources of a collection: each serves session after session, as they are begun again. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hostile.h"
#include "served.h"

#define GRID 262144u

static void send_totals(struct peer *p, uint64_t files, uint64_t bytes, bool final)
{
	struct wire_totals f = { files, bytes, final };
	uint8_t out[WIRE_TOTALS_MAX_BYTES];

	peer_send(p, out, wire_totals_encode(out, &f));
}

static bool only_looks(const struct server_session *s) { return (s->flags & WIRE_OPEN_DRY_RUN) != 0; }

/* A session as it should be, up to its stream. */
static struct server_session begun(struct peer *control)
{
	struct server_session s = server_session_greet(control);

	server_session_read_open(&s);
	server_session_agree(&s, 1, 0);
	s.data = server_session_join();
	return s;
}

static volatile sig_atomic_t enough;

static void on_term(int sig)
{
	(void)sig;
	enough = 1;
}

/* Again and again until SIGTERM, which the test sends when its client has ended. Who ends a session may still have been
 * about to join it. */
static void each(void (*one)(struct server_session *s, char **arguments), char **arguments)
{
	struct pollfd in = { .fd = hostile_listener, .events = POLLIN };
	struct peer *control;
	struct server_session s;
	unsigned n = 0;

	signal(SIGTERM, on_term);
	while (poll(&in, 1, enough ? 0 : 100) > 0 || !enough) {
		if (in.revents == 0 || (control = peer_may_accept(hostile_listener, ALPN_CONTROL)) == NULL)
			continue;
		s = begun(control);
		one(&s, arguments);
		n++;
	}
	if (n == 0)
		die("nobody connects");
}

/* The next frame but for RATE, which the receiver sends at any time. */
static const struct frame *answer(struct server_session *s)
{
	const struct frame *f;

	do
		f = peer_frame(s->control);
	while (f->type == WIRE_RATE);
	return f;
}

/* An empty directory, as it should be: true unless it is refused. */
static bool directory(struct server_session *s, uint64_t id, uint64_t parent, const char *name)
{
	send_entry(s->control, WIRE_DIR, id, parent, name, strlen(name), 0, NULL);
	return answer(s)->type == WIRE_ANSWER;
}

static bool done(struct server_session *s)
{
	const struct frame *f;

	do
		f = answer(s);
	while (f->type == WIRE_ACK || f->type == WIRE_ANSWER);
	return f->type == WIRE_DONE;
}

/* Is there, and does nothing, for so long. */
static void idle(struct server_session *s, unsigned seconds)
{
	time_t start = time(NULL);

	while (time(NULL) - start < seconds) {
		send_ping(s->control);
		poll(NULL, 0, 200);
	}
}

/* ---- What it says of how much there is ---- */

#define WHILE_S 10 /* so long another source has */

/* To who wants it, not before others are well under way. */
static void end_directory(struct server_session *s)
{
	if (!only_looks(s))
		idle(s, WHILE_S);
	send_dir_end(s->control, ID(0, 1));
	if (!done(s) && !s->control->may_end)
		die("the directory does not end");
}

/* FILES BYTES: so much is listed, whenever somebody asks; there is one file of 1000 bytes. */
static void claims_one(struct server_session *s, char **arguments)
{
	send_totals(s->control, strtoull(arguments[0], NULL, 10), strtoull(arguments[1], NULL, 10), false);
	if (!directory(s, ID(0, 1), 0, "run7"))
		die("the directory is refused");
	if (only_looks(s)) {
		send_entry(s->control, WIRE_FILE, ID(1, 2), ID(0, 1), "x", 1, 1000, NULL);
		if (!done(s))
			die("the file is refused");
	} else if (!server_session_file(s, ID(1, 2), ID(0, 1), "x")) {
		die("the file is refused");
	}
	end_directory(s);
	send_totals(s->control, strtoull(arguments[0], NULL, 10), strtoull(arguments[1], NULL, 10), true);
	send_end(s->control, 1, 0);
	server_session_end(s);
}

static void claims(unsigned port, char **arguments)
{
	(void)port;
	each(claims_one, arguments);
}

/* FILES: so many of the largest there can be, to who only looks; then one of 1000 bytes. */
static void shrinks_one(struct server_session *s, char **arguments)
{
	unsigned n = only_looks(s) ? (unsigned)atoi(arguments[0]) : 1, i;

	if (!directory(s, ID(0, 1), 0, "run7"))
		die("the directory is refused");
	s->control->may_end = only_looks(s);
	for (i = 1; only_looks(s) && i <= n; i++) {
		send_entry(s->control, WIRE_FILE, ID(1, i + 1), ID(0, 1), "x", 1, UINT64_C(1) << 48, NULL);
		if (!done(s)) { /* it has looked for long enough */
			server_session_drop(s);
			return;
		}
	}
	if (!only_looks(s) && !server_session_file(s, ID(1, 2), ID(0, 1), "x"))
		die("the file is refused");
	end_directory(s);
	send_totals(s->control, n, 1000, true);
	send_end(s->control, n, 0);
	if (s->control->may_end)
		server_session_drop(s);
	else
		server_session_end(s);
}

static void shrinks(unsigned port, char **arguments)
{
	(void)port;
	each(shrinks_one, arguments);
}

/* BLOCKS: nothing to who only looks; then a file of so many, of which none had been said. */
static void grows_one(struct server_session *s, char **arguments)
{
	uint64_t size = (uint64_t)atoi(arguments[0]) * GRID, at;

	if (!only_looks(s)) {
		send_totals(s->control, 1, 0, false);
		if (!directory(s, ID(0, 1), 0, "run7"))
			die("the directory is refused");
		send_entry(s->control, WIRE_FILE, ID(1, 2), ID(0, 1), "x", 1, size, NULL);
		expect(s->control, WIRE_ANSWER);
		for (at = 0; at < size; at += GRID) {
			send_totals(s->control, at, at, false);
			send_block(s->data, ID(1, 2), at, GRID, true);
			expect(s->control, WIRE_ACK);
		}
		send_file_end(s->control, ID(1, 2), size);
		if (!done(s))
			die("the file is refused");
		send_dir_end(s->control, ID(0, 1));
		if (!done(s))
			die("the directory does not end");
	}
	send_totals(s->control, 0, 0, true);
	send_end(s->control, !only_looks(s), 0);
	server_session_end(s);
}

static void grows(unsigned port, char **arguments)
{
	(void)port;
	each(grows_one, arguments);
}

/* ---- Its end ---- */

/* HOW: with a file under way ("unfinished"), with more files than there were ("boasts"), with none of what there
 * is ("empty"). */
static void early_one(struct server_session *s, char **arguments)
{
	const char *how = arguments[0];

	if (strcmp(how, "unfinished") == 0) {
		directory(s, ID(0, 1), 0, "run7");
		send_entry(s->control, WIRE_FILE, ID(1, 2), ID(0, 1), "x", 1, 2 * GRID, NULL);
		expect(s->control, WIRE_ANSWER);
		send_block(s->data, ID(1, 2), 0, GRID, true);
		expect(s->control, WIRE_ACK);
	}
	send_totals(s->control, 1, 2 * GRID, true);
	send_end(s->control, strcmp(how, "boasts") == 0 ? 1000000 : 0, 0);
	if (strcmp(how, "empty") == 0)
		server_session_end(s);
	else
		expect_error(s->control, 10);
}

static void early(unsigned port, char **arguments)
{
	(void)port;
	each(early_one, arguments);
}

/* HOW: who only looks is told of entries without end ("lists"), or of nothing, and that it is busy ("busy"). Whoever
 * else comes finds nothing. */
static void never_sized_one(struct server_session *s, char **arguments)
{
	struct wire_ping busy = { WIRE_READING, 0 };
	time_t start = time(NULL);
	uint8_t out[WIRE_PING_MAX_BYTES];
	uint64_t n = 0;

	if (!only_looks(s)) {
		send_totals(s->control, 0, 0, true);
		send_end(s->control, 0, 0);
		server_session_end(s);
		return;
	}
	peer_short_patience(s->control);
	if (strcmp(arguments[0], "lists") == 0 && !directory(s, ID(0, 1), 0, "run7"))
		die("the directory is refused");
	do {
		busy.tick++;
		if (strcmp(arguments[0], "busy") == 0) {
			poll(NULL, 0, 50);
			continue;
		}
		n++;
		send_totals(s->control, n, 1000 * n, false);
		send_entry(s->control, WIRE_FILE, ID(1, n + 1), ID(0, 1), "x", 1, 1000, NULL);
		if (!done(s))
			break;
	} while (peer_try_send(s->control, out, wire_ping_encode(out, &busy)) && time(NULL) - start < patience_s(40));
	if (time(NULL) - start >= patience_s(40))
		die("it is listened to for ever");
	server_session_drop(s);
}

static void never_sized(unsigned port, char **arguments)
{
	(void)port;
	each(never_sized_one, arguments);
}

/* Small files without end, as fast as they are taken. */
static void endless_one(struct server_session *s, char **arguments)
{
	struct wire_entry f = { .type = WIRE_FILE, .parent = ID(0, 1), .mtime_s = 1000000000, .mode = 0644 };
	uint8_t out[WIRE_ENTRY_BYTES(0)];
	uint64_t n;
	char name[32];

	(void)arguments;
	if (!directory(s, ID(0, 1), 0, "run7"))
		die("the directory is refused");
	for (n = 1; n < 5000000; n++) {
		f.id = ID(1, n + 1);
		f.name = (struct span){ (const uint8_t *)name, (size_t)snprintf(name, sizeof name, "%u",
		    (unsigned)(n % 100)) };
		if (!peer_try_send(s->control, out, wire_entry_encode(out, &f)) || !done(s))
			break;
		send_totals(s->control, n, UINT64_MAX - n, false);
	}
	server_session_drop(s);
}

static void endless(unsigned port, char **arguments)
{
	(void)port;
	each(endless_one, arguments);
}

/* Begins each session well, and then breaks the rules. */
static void breaks_one(struct server_session *s, char **arguments)
{
	(void)arguments;
	send_totals(s->control, 1, (uint64_t)time(NULL), false);
	peer_send_raw(s->control, WIRE_ACK, 1, NULL, 0);
	server_session_drop(s);
}

static void breaks(unsigned port, char **arguments)
{
	(void)port;
	each(breaks_one, arguments);
}

/* ---- What it sends ---- */

/* NAME: at the top, where it is not the source's. */
static void strays_one(struct server_session *s, char **arguments)
{
	if (directory(s, ID(0, 1), 0, arguments[0]))
		die("%s is taken", arguments[0]);
	server_session_drop(s);
}

static void strays(unsigned port, char **arguments)
{
	(void)port;
	each(strays_one, arguments);
}

const struct hostile hostile_sources[] = {
	{ "claims", claims }, { "shrinks", shrinks }, { "grows", grows }, { "early", early },
	{ "never-sized", never_sized }, { "endless", endless }, { "breaks", breaks }, { "strays", strays },
	{ NULL, NULL }
};
