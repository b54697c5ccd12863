/* A bad client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "session.h"
#include "wire/block.h"

/* ---- Before TLS, and in its handshake ---- */

static void garbage(unsigned port, char **arguments)
{
	static const char *const texts[] = { "GET / HTTP/1.0\r\n\r\n", "\x16\x03\x01\xff\xff", "SSH-2.0-x\r\n" };
	char bytes[5000];
	int i, fd;

	(void)arguments;
	memset(bytes, 'Z', sizeof bytes);
	for (i = 0; i < 4; i++) {
		fd = peer_dial(port);
		if (i < 3)
			memcpy(bytes, texts[i], strlen(texts[i]));
		if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0)
			die("cannot send");
		while (recv(fd, bytes, sizeof bytes, 0) > 0)
			;
		/* It must end by itself, not by our patience. */
		if (recv(fd, bytes, 1, MSG_DONTWAIT) < 0 && recv(fd, bytes, 1, 0) < 0 && i != 1)
			die("still connected after garbage %d", i);
		close(fd);
	}
}

static void wrong_alpn(unsigned port, char **arguments)
{
	static const char *const names[] = { "h2", "ptcp/2", "ptcp-route/2", "ptcp-data/2" };
	int i;

	(void)arguments;
	for (i = 0; i < 4; i++)
		if (peer_connect(port, names[i]) != NULL)
			die("ALPN %s is accepted", names[i]);
}

/* Nothing but changes of the key: by a connection without a JOIN, or with "joined" by a stream, on which no limit on
 * the time of unauthenticated connections ends the flood in place of the limit on key updates. */
static void key_updates(unsigned port, char **arguments)
{
	struct peer *p = arguments[0] == NULL ? data(port) : sending(port, "/updated").data;
	int i;

	for (i = 0; i < 50000; i++)
		if (SSL_key_update(p->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || SSL_do_handshake(p->ssl) != 1)
			return;
	die("it takes any number of key updates");
}

/* ---- Joining ---- */

static void strange_joins(unsigned port, char **arguments)
{
	struct session s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/joined"),
	    other = opened(port, WIRE_ACCEPTOR_RECEIVES, "");
	struct identity mine = self;
	SSL_CTX *tls = client_tls;
	struct wire_join f, good;
	struct peer *p;
	int i;

	for (i = 0; i < 32; i += 31) { /* the first and the last byte of the mac */
		p = data(port);
		f = join_frame(&s, p, 1);
		f.mac[i] ^= 0x80;
		send_join(p, &f);
		expect_no_join(p, "a wrong mac");
	}
	p = data(port);
	f = join_frame(&s, p, 1);
	f.stream = 0;
	send_join(p, &f);
	expect_no_join(p, "another number than in the mac");
	p = data(port);
	f = join_frame(&s, p, 1);
	memcpy(f.session, other.id, 16);
	send_join(p, &f);
	expect_no_join(p, "another session than in the mac");
	p = data(port);
	f = join_frame(&s, p, 1);
	f.session[15] ^= 1;
	send_join(p, &f);
	expect_no_join(p, "no such session");
	p = data(port);
	f = join_frame(&s, p, 60000);
	send_join(p, &f);
	expect_no_join(p, "a number over the agreed ones");
	/* Another identity, authorised as well, that somehow knows the key */
	peer_init(arguments[0]);
	p = data(port);
	f = join_frame(&s, p, 1);
	send_join(p, &f);
	expect_no_join(p, "another identity");
	SSL_CTX_free(client_tls);
	SSL_CTX_free(server_tls);
	identity_fini(&self);
	self = mine;
	client_tls = tls;
	/* The session has not suffered; and what joined once does not join again. */
	s.data = data(port);
	good = join_frame(&s, s.data, 1);
	send_join(s.data, &good);
	expect(s.data, WIRE_JOINED);
	p = data(port);
	send_join(p, &good);
	expect_no_join(p, "a replay");
	p = data(port);
	peer_send_raw(p, WIRE_BLOCK, 1, NULL, 1000);
	send_ping(p);
	peer_try_send(p, (uint8_t[64]){ 0 }, 64);
	expect_end(p);
	if (!file(&s, ID(0, 1), 0, "x"))
		die("the session has suffered");
	finish(&s, 1, 0);
	drop(&other);
}

static void joined_twice(unsigned port, char **arguments)
{
	struct session s = sending(port, "/twice");
	struct peer *p = data(port);
	struct wire_join f = join_frame(&s, p, 1);
	const struct frame *r;

	(void)arguments;
	send_join(p, &f);
	r = peer_frame(p);
	if (r->type == WIRE_JOINED) {
		peer_close(s.data); /* replaced */
		s.data = p;
	} else if (r->type != WIRE_ERROR || get_u16(r->payload) != 5) {
		die("%s came", frame_name(r->type));
	}
	if (!file(&s, ID(0, 1), 0, "x"))
		die("the session has suffered");
	finish(&s, 1, 0);
}

/* ---- Frames where they do not belong, and malformed ones ---- */

/* Every type with a payload of zeros, in a state where it may not come. */
static void wrong_states(unsigned port, char **arguments)
{
	static const uint8_t types[] = { WIRE_HELLO, WIRE_OPEN, WIRE_OPENED, WIRE_JOIN, WIRE_JOINED,
		WIRE_ENTRY, WIRE_ANSWER, WIRE_NEED, WIRE_HAVE, WIRE_ACK, WIRE_FILE_END, WIRE_DONE, WIRE_FAIL,
		WIRE_TOTALS, WIRE_END, WIRE_WARNING, WIRE_HOLE, WIRE_MATCH, WIRE_HASHES, WIRE_SPLIT,
		WIRE_PIECES, WIRE_PATCH, WIRE_BLOCK };
	static const uint8_t zeros[64];
	struct peer *p;
	size_t i;
	int state;

	(void)arguments;
	for (state = 0; state < 3; state++)
		for (i = 0; i < sizeof types; i++) {
			if (state == 2) {
				struct session s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/states");

				p = s.control;
				if (types[i] == WIRE_TOTALS)
					continue;
			} else {
				p = control(port);
				if (state == 1) {
					send_hello(p);
					expect(p, WIRE_HELLO);
				}
			}
			peer_send_raw(p, types[i], 1, zeros, sizeof zeros);
			expect_error(p, 10);
			peer_close(p);
		}
}

static void bad_headers(unsigned port, char **arguments)
{
	static const uint8_t bad[][8] = {
		{ WIRE_ENTRY, 1, 0, 0, 0, 1, 0, 1 }, { WIRE_HELLO, 1, 0, 0, 0, 0, 4, 1 },
		{ WIRE_ENTRY, 1, 0, 0, 0xff, 0xff, 0xff, 0xff }, { 200, 1, 0, 0, 0, 0, 0, 0 },
		{ 200, 0, 0, 0, 0, 1, 0, 1 }, { 200, 0, 0, 0, 0xff, 0xff, 0xff, 0xff },
		{ WIRE_PING, 2, 0, 0, 0, 0, 0, 9 }, { WIRE_PING, 1, 1, 0, 0, 0, 0, 9 },
		{ WIRE_PING, 1, 0, 1, 0, 0, 0, 9 }, { WIRE_BLOCK, 1, 0, 0, 0x7f, 0xff, 0xff, 0xff },
		{ 0, 1, 0, 0, 0, 0, 0, 0 },
	};
	uint8_t skipped[1000] = { 0 };
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/headers");
		peer_send(s.control, bad[i], 8);
		expect_error(s.control, 10);
		drop(&s);
	}
	s = sending(port, "/headers/");
	peer_send_raw(s.control, 200, 0, skipped, sizeof skipped); /* unknown and optional */
	if (!file(&s, ID(0, 1), 0, "x"))
		die("an optional frame disturbs");
	finish(&s, 1, 0);
}

static void bad_attributes(unsigned port, char **arguments)
{
	static const struct { uint8_t type; const char *attrs; size_t n; } bad[] = {
		{ WIRE_FILE, "\0\2\0\0\0\2\0\0", 8 },                   /* twice */
		{ WIRE_FILE, "\0\2\0\0\0\1\0\20ABCDEFGHIJKLMNOP", 24 }, /* not in order */
		{ WIRE_FILE, "\0\1\0\17ABCDEFGHIJKLMNO", 19 },            /* a short version */
		{ WIRE_FILE, "\0\4\0\14\0\0\0\0\0\0\0\0\2a\0\0", 16 }, /* NUL in a user */
		{ WIRE_FILE, "\0\5\377\377\1a\0\0", 8 },                 /* longer than the frame */
		{ WIRE_FILE, "\200\0\0\0", 4 },                          /* unknown and critical */
		{ WIRE_HARDLINK, "", 0 },                               /* of nothing */
		{ WIRE_HARDLINK, "\0\3\0\10\0\0\0\0\0\5\0\1", 12 },     /* of itself */
		{ WIRE_HARDLINK, "\0\3\0\10\0\0\0\0\0\11\0\0", 12 },    /* of what comes later */
	};
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
		send_with_attrs(s.control, bad[i].type, ID(1, 5), 0, 0644, bad[i].attrs, bad[i].n);
		expect_error(s.control, 10);
		drop(&s);
	}
}

/* ---- Names and links ---- */

static void bad_names(unsigned port, char **arguments)
{
	static const struct {
		const char *name;
		size_t n;
	} bad[] = {
		{ "", 0 }, { ".", 1 }, { "..", 2 }, { "../escaped", 10 }, { "/escaped", 8 }, { "a/b", 3 },
		{ "a/../../escaped", 15 }, { "a\0b", 3 }, { "\0", 1 }, { "a/", 2 },
	};
	struct session s;
	size_t i;
	int type;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		for (type = WIRE_DIR; type <= WIRE_SYMLINK; type++) {
			if (type == WIRE_DIR && strcmp(bad[i].name, ".") == 0)
				continue; /* It describes the destination. */
			s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
			send_entry(s.control, (uint8_t)type, ID(0, 1), 0, bad[i].name, bad[i].n, 0,
			    type == WIRE_SYMLINK ? "x" : NULL);
			expect_error(s.control, 10);
			drop(&s);
		}
}

/* A link out of the root, then a directory of that name, and a file in it. */
static void through_a_link(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	bool made;

	send_entry(s.control, WIRE_SYMLINK, ID(0, 1), 0, "a", 1, 0, arguments[0]);
	if (answer(&s, ID(0, 1)) == 0 || !verdict(&s, ID(0, 1)))
		die("a link is refused");
	send_entry(s.control, WIRE_DIR, ID(1, 2), 0, "a", 1, 0, NULL);
	made = answer(&s, ID(1, 2)) != 0;
	send_entry(s.control, WIRE_FILE, ID(2, 3), ID(1, 2), "escaped", 7, 1000, NULL);
	if (answer(&s, ID(2, 3)) != 0) {
		send_block(s.data, ID(2, 3), 0, 1000, true);
		verdict(&s, ID(2, 3));
	}
	if (made) {
		send_dir_end(s.control, ID(1, 2));
		verdict(&s, ID(1, 2));
	}
	/* Both at once: the directory is asked for while the link is being made. */
	send_entry(s.control, WIRE_SYMLINK, ID(3, 4), 0, "b", 1, 0, arguments[0]);
	send_entry(s.control, WIRE_DIR, ID(4, 5), 0, "b", 1, 0, NULL);
	send_entry(s.control, WIRE_FILE, ID(5, 6), ID(4, 5), "escaped", 7, 0, NULL);
	peer_short_patience(s.control);
	while (peer_frame(s.control)->type > 0)
		;
	drop(&s);
}

/* Links that are there already: "file-link" to a file outside, "dir-link" to a directory outside. */
static void onto_links(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");

	(void)arguments;
	file(&s, ID(0, 1), 0, "file-link");
	send_entry(s.control, WIRE_DIR, ID(1, 2), 0, "dir-link", 8, 0, NULL);
	if (answer(&s, ID(1, 2)) != 0) {
		file(&s, ID(2, 3), ID(1, 2), "escaped");
		send_dir_end(s.control, ID(1, 2));
		verdict(&s, ID(1, 2));
	}
	drop(&s);
}

/* The destination is one new name: the first source gets it. */
static void two_for_one_name(unsigned port, char **arguments)
{
	struct session s = sending(port, "/one");

	(void)arguments;
	if (!file(&s, ID(0, 1), 0, "a"))
		die("the first source is refused");
	if (file(&s, ID(1, 2), 0, "b"))
		die("the second source is taken");
	finish(&s, 1, 1);
}

/* ---- Blocks ---- */

#define SIZE 300000u
#define GRID 262144u

static struct session half_sent(unsigned port)
{
	struct session s = sending(port, "/");

	send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "blocks", 6, SIZE, NULL);
	if (answer(&s, ID(0, 1)) != WIRE_SEND_ALL)
		die("refused");
	send_block(s.data, ID(0, 1), 0, GRID, true);
	expect(s.control, WIRE_ACK);
	return s;
}

static void bad_blocks(unsigned port, char **arguments)
{
	static const struct {
		uint64_t offset;
		uint32_t n;
	} bad[] = { { 1, GRID }, { GRID, GRID }, { GRID, SIZE - GRID - 1 }, { 2 * GRID, 1000 }, { 0, 1000 },
		{ SIZE, 1 }, { (UINT64_C(1) << 48) - 1, 1 }, { UINT64_C(1) << 47, GRID } };
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) { /* none of them is written, the stream ends */
		s = half_sent(port);
		send_block(s.data, ID(0, 1), bad[i].offset, bad[i].n, true);
		expect_end(s.data);
		drop(&s);
	}
	s = half_sent(port);
	send_block(s.data, ID(7, 1), 0, 1000, true); /* of nobody: dropped */
	send_block(s.data, ID(0, 9), 0, GRID, true); /* of another in that slot */
	send_block(s.data, ID(0, 1), 0, GRID, true); /* a copy */
	send_block(s.data, ID(0, 1), GRID, SIZE - GRID, false);
	if (get_u32(expect(s.control, WIRE_NEED)->payload + 8) != 1)
		die("another block is needed");
	send_block(s.data, ID(0, 1), GRID, SIZE - GRID, true);
	if (get_u32(expect(s.control, WIRE_ACK)->payload + 8) != 1)
		die("another block is acknowledged");
	send_file_end(s.control, ID(0, 1), SIZE);
	expect(s.control, WIRE_DONE);
	finish(&s, 1, 0);
}

/* Compressed forms of fewer bytes than the block, of more (up to 55 times as many), damaged, and patches that were not
 * requested: the block is requested again each time; a form as long as its data, or as short as the frame is not,
 * ends the stream. */
static void bad_forms(unsigned port, char **arguments)
{
	static const uint32_t wrong[] = { GRID - 1, GRID + 1, 2 * GRID, WIRE_BLOCK_MAX, 1 };
	struct session s = half_sent(port);
	struct wire_block b = { ID(0, 1), GRID, SIZE - GRID, SIZE - GRID - 1, false };
	uint8_t head[WIRE_BLOCK_HEAD_BYTES];
	unsigned i;
	bool damaged;

	(void)arguments;
	for (i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
		damaged = i % 2 != 0;
		send_packed(s.data, ID(0, 1), GRID, SIZE - GRID, damaged ? SIZE - GRID : wrong[i / 2], damaged);
		if (get_u32(expect(s.control, WIRE_NEED)->payload + 8) != 1)
			die("another block is needed");
	}
	for (i = 0; i < 3; i++) { /* pieces that nobody has, or none; or more of them than there are */
		send_patch(s.data, ID(0, 1), GRID, SIZE - GRID, i == 0 ? 1 : i == 1 ? 0 : UINT64_MAX);
		if (get_u32(expect(s.control, WIRE_NEED)->payload + 8) != 1)
			die("another block is needed");
	}
	send_packed(s.data, ID(0, 1), GRID, SIZE - GRID, SIZE - GRID, 0);
	if (get_u32(expect(s.control, WIRE_ACK)->payload + 8) != 1)
		die("another block is acknowledged");
	send_file_end(s.control, ID(0, 1), SIZE);
	expect(s.control, WIRE_DONE);
	finish(&s, 1, 0);
	for (i = 0; i < 2; i++) {
		s = half_sent(port);
		wire_block_encode(head, &b);
		put_u32(head + WIRE_HEADER_BYTES + 20, i == 0 ? SIZE - GRID : 5);
		peer_send(s.data, head, sizeof head);
		expect_end(s.data);
		drop(&s);
	}
}

/* A block of several chunks whose chunks are not all there, in order: none of it counts, the stream ends. */
static void bad_chunks(unsigned port, char **arguments)
{
	static const struct { unsigned n, block[4], chunk[4]; } bad[] = { { 1, { 0 }, { 1 } },
		{ 2, { 0, 0 }, { 0, 2 } },
		{ 3, { 0, 0, 0 }, { 0, 1, 1 } }, { 2, { 0, 1 }, { 0, 1 } }, { 4, { 0, 0, 0, 0 }, { 0, 1, 2, 1 } },
		{ 2, { 0, 0 }, { 0, 3 } } };
	const uint64_t size = UINT64_C(600) << 30, id = ID(0, 1);
	const uint32_t grid = wire_grid_bytes(size);
	struct session s;
	size_t i;
	unsigned k;

	(void)arguments;
	for (i = 0; i <= sizeof bad / sizeof *bad; i++) {
		s = sending(port, "/");
		send_entry(s.control, WIRE_FILE, id, 0, "chunks", 6, size, NULL);
		if (answer(&s, id) == 0)
			die("refused");
		if (i == sizeof bad / sizeof *bad) {
			for (k = 0; k < grid / WIRE_CHUNK_BYTES; k++)
				send_block(s.data, id, grid + k * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES, true);
			if (get_u32(expect(s.control, WIRE_ACK)->payload + 8) != 1)
				die("another block is acknowledged");
		} else {
			for (k = 0; k < bad[i].n; k++)
				send_block(s.data, id, bad[i].block[k] * grid + bad[i].chunk[k] * WIRE_CHUNK_BYTES,
				    WIRE_CHUNK_BYTES, true);
			expect_end(s.data);
		}
		drop(&s);
	}
}

/* Holes beyond the file, twice, where blocks are, in a file that has none, of what was never offered. */
static void bad_holes(unsigned port, char **arguments)
{
	static const struct { bool sparse; uint64_t id; uint32_t first, count, before; } bad[] = {
		{ true, ID(0, 1), 3, 1, 0 }, { true, ID(0, 1), 1, UINT32_MAX - 1, 0 }, { true, ID(0, 1), 0, 2, 1 },
		{ false, ID(0, 1), 0, 1, 0 }, { true, ID(0, 2), 0, 1, 0 },
	};
	uint8_t out[WIRE_HOLE_MAX_BYTES];
	struct wire_blocks b;
	struct session s;
	size_t i;

	(void)arguments;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/");
		send_with_attrs(s.control, WIRE_FILE, ID(0, 1), 3 * GRID, 0644, "\0\2\0\0", bad[i].sparse ? 4 : 0);
		expect(s.control, WIRE_ANSWER);
		b = (struct wire_blocks){ .id = ID(0, 1), .first = 0, .count = bad[i].before };
		if (bad[i].before > 0)
			peer_send(s.control, out, wire_hole_encode(out, &b));
		b = (struct wire_blocks){ .id = bad[i].id, .first = bad[i].first, .count = bad[i].count };
		peer_send(s.control, out, wire_hole_encode(out, &b));
		expect_error(s.control, 10);
		drop(&s);
	}
}

static void wrong_digest(unsigned port, char **arguments)
{
	struct session s = half_sent(port);

	(void)arguments;
	send_block(s.data, ID(0, 1), GRID, SIZE - GRID, true);
	expect(s.control, WIRE_ACK);
	send_file_end(s.control, ID(0, 1), GRID);
	if (get_u16(expect(s.control, WIRE_FAIL)->payload + 8) != 6)
		die("a digest that differs fails with another code");
	finish(&s, 0, 1);
}

static void early_end(unsigned port, char **arguments)
{
	struct session s = half_sent(port);

	(void)arguments;
	send_file_end(s.control, ID(0, 1), SIZE);
	expect_error(s.control, 10);
	drop(&s);
	s = half_sent(port);
	send_end(s.control, 1, 0);
	expect_error(s.control, 10);
	drop(&s);
	s = half_sent(port); /* the slot is taken */
	send_entry(s.control, WIRE_FILE, ID(0, 2), 0, "other", 5, 10, NULL);
	expect_error(s.control, 10);
	drop(&s);
}

/* Bitmaps of 16 MiB each; it may refuse, not fall over. The script looks at its memory. */
/* Files of 2^48 bytes, a block of each: what remembers which of its blocks are here is 16 MiB a file. */
static void bitmap_bomb(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");
	static const char too_large[] = "larger than files of this file system";
	unsigned i, k, accepted = 0, refused = 0;
	const struct frame *f;
	char name[16];

	(void)arguments;
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "bomb%u", i);
		send_entry(s.control, WIRE_FILE, ID(i, i + 1), 0, name, strlen(name), UINT64_C(1) << 48, NULL);
		if (answer(&s, ID(i, i + 1)) == 0)
			continue;
		for (k = 0; k < WIRE_BLOCK_MAX / WIRE_CHUNK_BYTES; k++)
			send_block(s.data, ID(i, i + 1), k * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES, true);
		f = peer_frame(s.control);
		accepted += f->type == WIRE_ACK;
		refused += f->type == WIRE_FAIL && memmem(f->payload, f->n, too_large, sizeof too_large - 1) != NULL;
		if (f->type != WIRE_ACK && f->type != WIRE_FAIL)
			die("ACK or FAIL expected, %s came", frame_name(f->type));
	}
	if (accepted > 8)
		die("blocks of %u files of 2^48 bytes are taken at once", accepted);
	if (accepted == 0 && refused == 0) /* ext4 has no such files */
		die("no block was taken");
	puts("open");
	fflush(stdout);
	if (read(0, name, 1) < 0)
		die("stdin");
	drop(&s);
}

/* ---- Who may do what ---- */

/* Prints what the server says to someone it does not know; the same for every path. */
static void unauthorised(unsigned port, char **arguments)
{
	struct peer *p = control(port);
	struct session s = { .port = port };
	const struct frame *f;
	struct wire_join j;

	send_hello(p);
	ask(p, WIRE_ACCEPTOR_SENDS, arguments[0], strlen(arguments[0]), 0);
	f = peer_frame(p);
	if (f->type != WIRE_ERROR || get_u16(f->payload) != 5)
		die("ERROR 5 expected first, %s came", frame_name(f->type));
	printf("%.*s\n", (int)f->n - ERROR_TEXT_AT, (const char *)f->payload + ERROR_TEXT_AT);
	f = peer_frame(p);
	if (f->type > 0)
		die("more than an ERROR: %s", frame_name(f->type));
	peer_close(p);
	p = control(port); /* entries behind OPEN change nothing */
	send_hello(p);
	ask(p, WIRE_ACCEPTOR_RECEIVES, arguments[0], strlen(arguments[0]), 0);
	send_entry(p, WIRE_DIR, ID(0, 1), 0, "early", 5, 0, NULL);
	if ((f = peer_frame(p))->type != WIRE_ERROR || get_u16(f->payload) != 5)
		die("ERROR 5 expected instead of entries, %s came", frame_name(f->type));
	peer_close(p);
	p = data(port);
	j = join_frame(&s, p, 1);
	send_join(p, &j);
	expect_no_join(p, "an unauthorised stream");
}

/* Reading what is outside: no FILE is ever offered. */
static void read_escape(unsigned port, char **arguments)
{
	struct session s;
	const struct frame *f;
	char **path;

	for (path = arguments; *path != NULL; path++) {
		s.control = control(port);
		send_hello(s.control);
		expect(s.control, WIRE_HELLO);
		ask(s.control, WIRE_ACCEPTOR_SENDS, *path, strlen(*path), WIRE_OPEN_VERIFY);
		while ((f = peer_frame(s.control))->type > 0 && f->type != WIRE_END)
			if (f->type == WIRE_ENTRY && f->payload[0] == WIRE_FILE)
				die("%s: a file is offered", *path);
		if (f->type == END_SILENT)
			die("%s: neither an answer nor the end", *path);
		peer_close(s.control);
	}
}

static void write_escape(unsigned port, char **arguments)
{
	struct session s;
	const struct frame *f;
	char **path;

	for (path = arguments; *path != NULL; path++) {
		s = (struct session){ .port = port, .control = control(port) };
		send_hello(s.control);
		expect(s.control, WIRE_HELLO);
		ask(s.control, WIRE_ACCEPTOR_RECEIVES, *path, strlen(*path), WIRE_OPEN_VERIFY);
		f = peer_frame(s.control);
		if (f->type == WIRE_ERROR) {
			peer_close(s.control);
			continue;
		}
		if (f->type != WIRE_OPENED)
			die("%s: %s came", *path, frame_name(f->type));
		memcpy(s.id, f->payload, 16);
		tls_export(s.control->ssl, s.key, NULL);
		s.data = join(&s, 1);
		file(&s, ID(0, 1), 0, "escaped"); /* somewhere; the script looks */
		drop(&s);
	}
}

static void read_only(unsigned port, char **arguments)
{
	struct peer *p = control(port);

	(void)arguments;
	send_hello(p);
	expect(p, WIRE_HELLO);
	ask(p, WIRE_ACCEPTOR_RECEIVES, "/written", 8, 0);
	send_entry(p, WIRE_DIR, ID(0, 1), 0, "early", 5, 0, NULL);
	expect_error(p, 5);
	peer_close(p);
}

/* ---- Silence ---- */

/* Silent after some step; the server must end it, within its time-out and a little. */
static void silent(unsigned port, char **arguments)
{
	const char *after = arguments[0];
	struct session s = { .port = port };
	struct peer *watched;
	time_t start = time(NULL), took;
	unsigned code = 12;

	if (strcmp(after, "tls") == 0) {
		s.control = data(port); /* no JOIN */
		code = 0;
	} else if (strcmp(after, "handshake") == 0) {
		s.control = control(port);
	} else if (strcmp(after, "hello") == 0) {
		s.control = control(port);
		send_hello(s.control);
	} else {
		s = opened(port, WIRE_ACCEPTOR_RECEIVES, "/silent/");
		if (strcmp(after, "opened") != 0)
			s.data = join(&s, 1);
		if (strcmp(after, "entry") == 0)
			send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "x", 1, SIZE, NULL);
		if (strcmp(after, "block") == 0) {
			send_entry(s.control, WIRE_FILE, ID(0, 1), 0, "y", 1, SIZE, NULL);
			answer(&s, ID(0, 1));
			peer_send_raw(s.data, WIRE_BLOCK, 1, "x", 1); /* within a frame */
		}
	}
	watched = s.control;
	peer_patience(watched, 20);
	if (code != 0)
		expect_error(watched, code);
	else
		expect_end(watched);
	took = time(NULL) - start;
	if (took > patience_s(18))
		die("it took %ld s", (long)took);
	drop(&s);
}

/* Asks for a large file and reads no block of it, but pings. */
static void reads_nothing(unsigned port, char **arguments)
{
	struct session s = opened(port, WIRE_ACCEPTOR_SENDS, arguments[0]);
	time_t start = time(NULL);
	const struct frame *f;
	bool asked = false;

	s.data = join(&s, 1);
	peer_short_patience(s.control);
	for (;;) {
		if (time(NULL) - start > patience_s(20))
			die("it goes on for ever");
		f = peer_frame(s.control);
		if (f->type == WIRE_ERROR && get_u16(f->payload) == 12)
			break;
		if (f->type == WIRE_ENTRY && f->payload[0] == WIRE_FILE && !asked) {
			struct wire_answer a = { get_u64(f->payload + 1), WIRE_SEND_ALL };
			uint8_t out[WIRE_ANSWER_MAX_BYTES];

			asked = true;
			peer_send(s.control, out, wire_answer_encode(out, &a));
		} else if (f->type < 0 && f->type != END_SILENT) {
			die("%s came", frame_name(f->type));
		}
		send_ping(s.control);
	}
	if (!asked)
		die("no file was offered");
	drop(&s);
}

/* Ends the session with a text that a terminal or log would not like. */
static void rude_error(unsigned port, char **arguments)
{
	struct session s = sending(port, "/");

	(void)arguments;
	send_error(s.control, 11, "\033[31mred\nevent=forged\007\r\x7f\xff");
	expect_end(s.control);
	drop(&s);
}

const struct hostile hostile_client[] = {
	{ "garbage", garbage }, { "wrong-alpn", wrong_alpn },
	{ "key-updates", key_updates }, { "strange-joins", strange_joins }, { "joined-twice", joined_twice },
	{ "wrong-states", wrong_states }, { "bad-headers", bad_headers }, { "bad-names", bad_names },
	{ "bad-attributes", bad_attributes }, { "bad-holes", bad_holes },
	{ "through-a-link", through_a_link }, { "onto-links", onto_links }, { "bad-blocks", bad_blocks },
	{ "two-for-one-name", two_for_one_name },
	{ "bad-chunks", bad_chunks }, { "bad-forms", bad_forms },
	{ "wrong-digest", wrong_digest }, { "early-end", early_end }, { "bitmap-bomb", bitmap_bomb },
	{ "unauthorised", unauthorised }, { "read-escape", read_escape }, { "write-escape", write_escape },
	{ "read-only", read_only }, { "silent", silent }, { "reads-nothing", reads_nothing },
	{ "rude-error", rude_error }, { NULL, NULL }
};
