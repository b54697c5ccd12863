/* Clients that are let in and keep to the letter of the protocol, but want more than is theirs: sessions,
 * streams, memory, time, bits and names that they were not given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "session.h"
#include "wire/attrs.h"
#include "wire/block.h"

/* ---- Sessions and streams ---- */

/* Sessions until one is refused: after how many, is the argument. Another client is then let in still. */
static void many_sessions(unsigned port, char **arguments)
{
	struct peer *p;
	unsigned most = (unsigned)atoi(arguments[0]), i;
	const struct frame *f;

	for (i = 0; i < most; i++)
		opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
	p = control(port);
	send_hello(p);
	expect(p, WIRE_HELLO);
	ask(p, WIRE_ACCEPTOR_RECEIVES, "/", 1, WIRE_OPEN_VERIFY);
	f = peer_frame(p);
	if (f->type != WIRE_ERROR || get_u16(f->payload) != 18 || memmem(f->payload, f->n, "too busy", 8) == NULL)
		die("session %u is not refused: %s came", most + 1, frame_name(f->type));
	expect_end(p);
	hold();
}

/* A session that waits for a place. */
static struct peer *waiting_session(unsigned port)
{
	static const uint8_t path[] = { 0, 0, 1, '/' };
	struct wire_open o = { .role = WIRE_ACCEPTOR_RECEIVES, .streams = 1, .n_paths = 1, .wait_ms = 60000,
		.paths = { path, 4 } };
	uint8_t out[WIRE_OPEN_BYTES(sizeof path)];
	struct peer *p = control(port);

	send_hello(p);
	peer_send(p, out, wire_open_encode(out, &o));
	expect(p, WIRE_HELLO);
	return p;
}

static void send_early(struct peer *p, unsigned n, const char *target)
{
	char name[32];
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof name, "early-%u", i);
		send_entry(p, target != NULL ? WIRE_SYMLINK : WIRE_DIR, ID(i, i + 1), 0, name, strlen(name), 0, target);
	}
}

static const struct frame *after_waiting(struct peer *p)
{
	const struct frame *f;

	while ((f = peer_frame(p))->type == WIRE_WAITING)
		;
	return f;
}

/* Entries of sessions that wait: too many, too long, malformed; and as many as there may be, which come to nothing
 * before there is a place. The first argument: how many sessions a client may have. */
static void early_entries(unsigned port, char **arguments)
{
	unsigned most = (unsigned)atoi(arguments[0]), i;
	struct session s[16];
	const struct frame *f;
	struct peer *p, *junk;
	char target[4001];

	for (i = 0; i < most; i++)
		s[i] = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
	p = waiting_session(port);
	send_early(p, WIRE_EARLY_ENTRIES + 1, NULL);
	expect_error(p, 10);
	p = waiting_session(port);
	memset(target, 't', sizeof target - 1);
	target[sizeof target - 1] = '\0';
	send_early(p, 5, target);
	expect_error(p, 10);
	junk = waiting_session(port);
	peer_send_raw(junk, WIRE_ENTRY, WIRE_CRITICAL, "junk", 4);
	p = waiting_session(port);
	send_early(p, WIRE_EARLY_ENTRIES, NULL);
	send_ping(p);
	hold();
	peer_close(s[0].control);
	f = after_waiting(junk);
	if (f->type != WIRE_OPENED)
		die("a session with malformed entries is judged before them: frame %u, %.*s", f->type, (int)f->n,
		    (const char *)f->payload);
	expect_error(junk, 10);
	if (after_waiting(p)->type != WIRE_OPENED)
		die("no OPENED");
	for (i = 0; i < WIRE_EARLY_ENTRIES; i++)
		if (get_u64(expect(p, WIRE_ANSWER)->payload) != ID(i, i + 1))
			die("answer %u is about another entry", i);
	peer_close(p);
}

/* Control connections that never send OPEN, until one is refused: after how many, is the argument. */
static void many_waiting(unsigned port, char **arguments)
{
	unsigned most = (unsigned)atoi(arguments[0]), i;
	const struct frame *f;
	struct peer *p;

	for (i = 0; i <= most; i++) {
		p = control(port);
		send_hello(p);
		f = peer_frame(p);
		if (i < most && f->type != WIRE_HELLO)
			die("session %u: %s came", i + 1, frame_name(f->type));
	}
	if (f->type != WIRE_ERROR || get_u16(f->payload) != 18 ||
	    memmem(f->payload, f->n, "of this client wait", 19) == NULL)
		die("session %u is not refused: %s came", i, frame_name(f->type));
	hold();
}

/* Asks for 65,535 streams: gets as many as the argument says, and none beyond that joins. */
static void many_streams(unsigned port, char **arguments)
{
	static const uint8_t path[] = { 0, 0, 1, '/' };
	struct wire_open o = { .role = WIRE_ACCEPTOR_RECEIVES, .streams = 65535, .n_paths = 1, .paths = { path, 4 } };
	struct session s = { .port = port, .control = control(port) };
	unsigned most = (unsigned)atoi(arguments[0]), i;
	uint8_t out[WIRE_OPEN_BYTES(sizeof path)];
	struct wire_join j;
	struct peer *p;

	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	peer_send(s.control, out, wire_open_encode(out, &o));
	take_opened(&s);
	if (s.granted != most)
		die("%u streams are granted", s.granted);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	for (i = 0; i < most; i++)
		join(&s, i);
	p = data(port);
	j = join_frame(&s, p, most);
	send_join(p, &j);
	expect_no_join(p, "a stream over the granted ones");
	drop(&s);
}

/* Connections beside a session, to which the limits of strangers do not apply; none ever joins. */
static void unjoined(unsigned port, char **arguments)
{
	unsigned n = (unsigned)atoi(arguments[0]);
	struct session s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");

	while (n-- > 0)
		peer_dial(port);
	hold();
	drop(&s);
}

/* Has a session and waits to be told that it is over, as its client is revoked; nothing joins it then. */
static void revoked(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	struct wire_join j;
	struct peer *p;

	(void)arguments;
	puts("open");
	fflush(stdout);
	peer_patience(s.control, 10);
	expect_error(s.control, 5);
	p = data(port);
	j = join_frame(&s, p, 0);
	send_join(p, &j);
	expect_no_join(p, "a stream of a revoked client");
}

/* ---- Memory ---- */

/* A window full of files with the longest names, none of which ever comes. */
static void entry_flood(unsigned port, char **arguments)
{
	static char name[256];
	struct session s = sending(port, "/");
	unsigned i;

	(void)arguments;
	memset(name, 'n', 255);
	for (i = 0; i < WIRE_SLOTS; i++) {
		snprintf(name, 7, "%06u", i);
		name[6] = 'n';
		send_entry(s.control, WIRE_FILE, ID(i, i + 1), 0, name, 255, 1000000, NULL);
	}
	hold();
}

/* Sends and sends, and never reads what it is answered. */
static void reads_no_answer(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	struct wire_warning n = { WIRE_WARNING_FAILED, { (const uint8_t *)"x", 1 }, { 13, 0, { (const uint8_t *)"y",
	    1 } } };
	uint8_t out[WIRE_WARNING_MAX_BYTES];
	size_t size = wire_warning_encode(out, &n);
	unsigned i;

	(void)arguments;
	peer_short_patience(s.control);
	for (i = 0; i < 20000; i++)
		if (!peer_try_send(s.control, out, size))
			break;
	hold();
}

/* ---- Time ---- */

/* A pattern that a simple matcher takes ages for, and a name for it. ARGUMENT: the directory. */
static void glob_bomb(unsigned port, char **arguments)
{
	static const char pattern[] = "- *a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
	uint8_t paths[2 * (WIRE_PATH_MAX + 3)], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = WIRE_ACCEPTOR_SENDS, .streams = 1, .n_paths = 2, .paths = { paths, 0 } };
	struct session s = { .port = port, .control = control(port) };
	const struct frame *f;

	o.paths.n = wire_path_encode(paths, WIRE_PATH_CONTENTS,
	    (struct span){ (const uint8_t *)arguments[0], strlen(arguments[0]) });
	o.paths.n += wire_path_encode(paths + o.paths.n, WIRE_PATH_RULE,
	    (struct span){ (const uint8_t *)pattern, strlen(pattern) });
	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	peer_send(s.control, out, wire_open_encode(out, &o));
	expect(s.control, WIRE_OPENED);
	while ((f = peer_frame(s.control))->type != WIRE_ENTRY || f->payload[0] != WIRE_FILE)
		if (f->type < 0 || f->type == WIRE_ERROR)
			die("no file within %u s: %s", TIMEOUT_S, frame_name(f->type));
	drop(&s);
}

/* Pings hundreds of thousands of times, and sends what it has to say in records of one byte. */
static void bit_by_bit(unsigned port, char **arguments)
{
	static uint8_t pings[1000 * WIRE_PING_MAX_BYTES], out[WIRE_ENTRY_BYTES(0)];
	struct session s = sending(port, "/");
	struct wire_entry f = { .type = WIRE_FILE, .id = ID(0, 1), .size_bytes = 1000, .mode = 0644,
		.name = { (const uint8_t *)"bits", 4 } };
	size_t n = 0, i, size = wire_entry_encode(out, &f);
	uint64_t k;

	(void)arguments;
	for (k = 0; k < 1000; k++) {
		struct wire_ping ping = { (uint8_t)(k % 5), k };

		n += wire_ping_encode(pings + n, &ping);
	}
	for (i = 0; i < 300; i++)
		peer_send(s.control, pings, n);
	for (i = 0; i < n; i++)
		peer_send(s.control, pings + i, 1);
	for (i = 0; i < size; i++)
		peer_send(s.control, out + i, 1);
	if (answer(&s, ID(0, 1)) == 0)
		die("the session has suffered");
	send_block(s.data, ID(0, 1), 0, 1000, true);
	if (!verdict(&s, ID(0, 1)))
		die("the file has suffered");
	finish(&s, 1, 0);
}

static void whole_hole(struct session *s, uint64_t id, uint64_t size, int64_t mtime_s)
{
	struct wire_entry f = { .type = WIRE_FILE, .id = id, .size_bytes = size, .mode = 0644, .mtime_s = mtime_s,
		.name = { (const uint8_t *)"hole", 4 }, .attrs = { (const uint8_t *)"\0\2\0\0", 4 } };
	struct wire_blocks b = { .id = id, .first = 0, .count = wire_grid_blocks(wire_grid_of(size)) };
	struct wire_file_end end = { .id = id };
	uint8_t out[WIRE_ENTRY_BYTES(4)];
	unsigned how;

	peer_send(s->control, out, wire_entry_encode(out, &f));
	if ((how = answer(s, id)) == 0)
		return;
	if (how == WIRE_COMPARE) {
		peer_send(s->control, out, wire_file_end_encode(out, &end));
		verdict(s, id);
		return;
	}
	if (how != WIRE_SEND_ALL)
		die("verdict %u", how);
	peer_send(s->control, out, wire_hole_encode(out, &b));
	peer_send(s->control, out, wire_file_end_encode(out, &end));
	verdict(s, id);
}

/* 8 TiB that are not there, and then as if they had changed: nobody reads or hashes them. */
static void hole_bomb(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	time_t start = time(NULL);

	(void)arguments;
	whole_hole(&s, ID(0, 1), UINT64_C(1) << 43, 1000);
	whole_hole(&s, ID(0, 2), UINT64_C(1) << 43, 2000);
	whole_hole(&s, ID(0, 3), WIRE_FILE_MAX, 1000); /* more than a file system takes */
	if (time(NULL) - start > patience_s(10))
		die("it took %ld s", (long)(time(NULL) - start));
	drop(&s);
}

/* ---- Files of unknown size ---- */

static void put_size(struct session *s, uint64_t size_bytes)
{
	uint8_t out[WIRE_SIZE_MAX_BYTES];

	peer_send(s->control, out, wire_size_encode(out, &(struct wire_size){ ID(0, 1), size_bytes }));
}

/* One whole block of a file without a size is written. */
static struct session growing(unsigned port)
{
	struct wire_entry f = { .type = WIRE_FILE, .id = ID(0, 1), .mode = 0644,
		.name = { (const uint8_t *)"input", 5 }, .attrs = { (const uint8_t *)"\200\1\0\0", 4 } };
	struct session s = sending(port, "/");
	uint8_t out[WIRE_ENTRY_BYTES(4)];

	peer_send(s.control, out, wire_entry_encode(out, &f));
	if (answer(&s, ID(0, 1)) != WIRE_SEND_ALL)
		die("not accepted");
	send_block(s.data, ID(0, 1), 0, WIRE_CHUNK_BYTES, true);
	expect(s.control, WIRE_ACK);
	return s;
}

/* Lies about the end of an input: no file of the name follows from any. */
static void lying_input(unsigned port, char **arguments)
{
	struct session s;
	unsigned lie;

	(void)arguments;
	for (lie = 0; lie < 6; lie++) {
		s = growing(port);
		if (lie == 0)
			put_size(&s, 1000); /* less than was written */
		else if (lie == 1)
			send_file_end(s.control, ID(0, 1), WIRE_CHUNK_BYTES); /* without a size */
		else if (lie == 2) {
			put_size(&s, 2 * WIRE_CHUNK_BYTES);
			put_size(&s, 3 * WIRE_CHUNK_BYTES);
		} else if (lie == 3)
			send_block(s.data, ID(0, 1), WIRE_CHUNK_BYTES, 1000, true); /* a last block, before the size */
		else if (lie == 4)
			send_block(s.data, ID(0, 1), WIRE_UNSIZED_MAX, WIRE_CHUNK_BYTES, true);
		else
			put_size(&s, WIRE_UNSIZED_MAX + 1);
		expect_error(s.control, 10);
		drop(&s);
	}
	s = growing(port);
	put_size(&s, WIRE_CHUNK_BYTES);
	send_file_end(s.control, ID(0, 1), 2 * WIRE_CHUNK_BYTES); /* the digest of another input */
	if (verdict(&s, ID(0, 1)))
		die("published");
	finish(&s, 0, 1);
	s = growing(port);
	put_size(&s, WIRE_CHUNK_BYTES);
	drop(&s); /* before FILE_END */
}

/* ---- Bits and names ---- */

/* Without SETID no such bit is set, without MODE none at all; attributes outside "user." are never. */
static void unasked_bits(unsigned port, char **arguments)
{
	static const char attrs[] = "\0\5\0\27\23security.capability\0\1x";
	struct session s = opened_preserving(port, "/", WIRE_PRESERVE_MODE | WIRE_PRESERVE_XATTR);
	struct wire_entry dir = { .type = WIRE_DIR, .id = ID(1, 2), .mode = 07777,
		.name = { (const uint8_t *)"d", 1 } };
	uint8_t out[WIRE_ENTRY_BYTES(0)];

	(void)arguments;
	s.data = join(&s, 1);
	send_with_attrs(s.control, WIRE_FILE, ID(0, 1), 1000, 06755, attrs, sizeof attrs - 1);
	if (answer(&s, ID(0, 1)) == 0)
		die("refused");
	send_block(s.data, ID(0, 1), 0, 1000, true);
	if (!verdict(&s, ID(0, 1)))
		die("not taken");
	peer_send(s.control, out, wire_entry_encode(out, &dir));
	if (answer(&s, ID(1, 2)) == 0)
		die("refused");
	dir.type = WIRE_DIR_END;
	dir.name.n = 0;
	peer_send(s.control, out, wire_entry_encode(out, &dir));
	verdict(&s, ID(1, 2));
	finish(&s, 1, 0);
}

/* Types that are none, such as devices would be. */
/* Names of part files, journals and the like: the data of other transfers. */
static void reserved_names(unsigned port, char **arguments)
{
	static const char *const names[] = { ".ptcp-0123456789abcdef.part", ".ptcp-0123456789abcdef.journal",
		".ptcp-0123456789abcdef.link", ".ptcp-0123456789abcdef.dir" };
	struct session s = sending(port, "/");
	unsigned i;

	(void)arguments;
	for (i = 0; i < 4; i++)
		if (file(&s, ID(i, i + 1), 0, names[i]))
			die("%s is received", names[i]);
	if (!file(&s, ID(4, 5), 0, "x"))
		die("the session has suffered");
	finish(&s, 1, 4);
}

static void no_devices(unsigned port, char **arguments)
{
	unsigned type;
	struct session s;

	(void)arguments;
	for (type = WIRE_NAME + 1; type < 256; type += 25) {
		s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
		send_entry(s.control, (uint8_t)type, ID(0, 1), 0, "x", 1, 0, NULL);
		expect_error(s.control, 10);
		drop(&s);
	}
}

static uint64_t link_attr(uint8_t out[12], uint64_t id)
{
	memcpy(out, "\0\3\0\10", 4);
	put_u64(out + 4, id);
	return id;
}

/* Hard links to a good file that was not announced as LINKED. ARGUMENTS: the paths that they name beside the id. */
static void links_out(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	uint8_t attrs[12], out[WIRE_ENTRY_BYTES(12)];
	const struct frame *f;
	unsigned i;

	if (!file(&s, ID(0, 1), 0, "inside"))
		die("refused");
	link_attr(attrs, ID(0, 1));
	for (i = 0; arguments[i] != NULL; i++) {
		struct wire_entry e = { .type = WIRE_HARDLINK, .id = ID(1, i + 2),
			.name = { (const uint8_t *)"stolen", 6 },
			.target = { (const uint8_t *)arguments[i], strlen(arguments[i]) },
			.attrs = { attrs, sizeof attrs } };

		peer_send(s.control, out, wire_entry_encode(out, &e));
		f = peer_frame(s.control);
		if (f->type == WIRE_ANSWER && f->n == 9 && f->payload[8] == WIRE_NO_LINK)
			continue;
		if (f->type == WIRE_ERROR) { /* malformed: as well */
			drop(&s);
			s = sending(port, "/");
			if (!file(&s, ID(0, 1), 0, "inside"))
				die("refused");
		} else if (f->type != WIRE_FAIL) {
			die("%s: %s came", arguments[i], frame_name(f->type));
		}
	}
	drop(&s);
}

/* Rates of next to nothing are taken, and so is a change of mind now and then; not thousands of them. ARGUMENT: what to
 * ask for. */
static void rate_flood(unsigned port, char **arguments)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 30000, .quiet_ms = 30000,
		.max_entries = 1000, .max_streams = 16 };
	struct wire_rate f = { .all_bps = 1, .n = WIRE_RATES_MAX, .m = WIRE_RATE_STREAMS_MAX };
	struct session s = { .port = port, .control = control(port) };
	uint8_t out[WIRE_HELLO_MAX_BYTES > WIRE_RATE_MAX_BYTES ? WIRE_HELLO_MAX_BYTES : WIRE_RATE_MAX_BYTES];
	unsigned i;

	for (i = 0; i < WIRE_RATES_MAX; i++)
		f.bps[i] = i % 2 ? WIRE_RATE_IDLE : 1;
	for (i = 0; i < WIRE_RATE_STREAMS_MAX; i++)
		f.of[i] = (uint8_t)(i % WIRE_RATES_MAX + 1);
	peer_send(s.control, out, wire_hello_encode(out, &h));
	expect(s.control, WIRE_HELLO);
	ask(s.control, WIRE_ACCEPTOR_SENDS, arguments[0], strlen(arguments[0]), 0);
	expect(s.control, WIRE_OPENED);
	for (i = 0; i < 100; i++)
		peer_send(s.control, out, wire_rate_encode(out, &f));
	expect(s.control, WIRE_ENTRY);
	for (i = 0; i < 5000 && peer_try_send(s.control, out, wire_rate_encode(out, &f)); i++)
		;
	expect_error(s.control, 10);
	drop(&s);
}

const struct hostile hostile_greedy[] = {
	{ "many-sessions", many_sessions }, { "many-streams", many_streams }, { "many-waiting", many_waiting },
	{ "unjoined", unjoined }, { "early-entries", early_entries }, { "revoked", revoked },
	{ "entry-flood", entry_flood }, { "reads-no-answer", reads_no_answer }, { "glob-bomb", glob_bomb },
	{ "bit-by-bit", bit_by_bit },
	{ "hole-bomb", hole_bomb }, { "lying-input", lying_input }, { "unasked-bits", unasked_bits },
	    { "no-devices", no_devices },
	{ "reserved-names", reserved_names },
	{ "links-out", links_out }, { "rate-flood", rate_flood }, { NULL, NULL }
};
