/* Clients that make a server hold memory: streams with data that never becomes complete, or is never read. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "session.h"
#include "wire/attrs.h"
#include "wire/block.h"
#include "wire/jobs.h"

#define STREAMS_MAX 128u
#define FILE_ID ID(0, 1)
#define UNKNOWN_ID ID(7, 9)

static uint8_t chunk[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES];

static void greet(struct peer *p)
{
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 60000, .quiet_ms = 60000,
		.max_entries = 1000, .max_streams = STREAMS_MAX };
	uint8_t out[WIRE_HELLO_MAX_BYTES];

	peer_send(p, out, wire_hello_encode(out, &h));
}

static struct session open_session(unsigned port, uint8_t role, const char *path, unsigned streams)
{
	struct session s = { .port = port, .control = control(port) };
	uint8_t paths[WIRE_PATH_MAX + 3], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = role, .cipher = PTCP_CIPHER_AES128GCM,
		.flags = path == NULL ? 0 : WIRE_OPEN_VERIFY | WIRE_OPEN_NO_PREFLIGHT,
		.streams = (uint16_t)streams, .n_paths = path != NULL };

	o.paths.p = paths;
	if (path != NULL)
		o.paths.n = wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, strlen(path) });
	greet(s.control);
	expect(s.control, WIRE_HELLO);
	peer_send(s.control, out, wire_open_encode(out, &o));
	take_opened(&s);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	return s;
}

/* A block less a byte. The server may leave it in the socket. */
static void send_most(struct session *s, unsigned number, uint64_t id)
{
	struct wire_block b = { id, (uint64_t)number * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES, 0, false };
	struct timeval patience = { 0, 200000 };
	struct peer *p = join(s, number);
	int bytes = 1 << 20;

	setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	wire_block_encode(chunk, &b);
	peer_try_send(p, chunk, sizeof chunk - 1);
}

static void leave_unfinished(unsigned port, unsigned sessions, unsigned streams, uint64_t id)
{
	unsigned i, k;
	struct session s;
	char name[16];

	for (i = 0; i < sessions; i++) {
		s = open_session(port, WIRE_ACCEPTOR_RECEIVES, "/", streams);
		snprintf(name, sizeof name, "held%u", i);
		send_entry(s.control, WIRE_FILE, FILE_ID, 0, name, strlen(name), (uint64_t)streams * WIRE_CHUNK_BYTES,
		    NULL);
		if (answer(&s, FILE_ID) == 0)
			die("refused");
		for (k = 0; k < streams; k++)
			send_most(&s, k, id);
	}
}

static void unfinished(unsigned port, char **arguments, uint64_t id)
{
	leave_unfinished(port, (unsigned)atoi(arguments[0]), (unsigned)atoi(arguments[1]), id);
	hold();
}

/* ARGUMENTS: sessions, streams of each. */
static void unfinished_blocks(unsigned port, char **arguments) { unfinished(port, arguments, FILE_ID); }
static void unfinished_unknown(unsigned port, char **arguments) { unfinished(port, arguments, UNKNOWN_ID); }

static void unfinished_measurement(unsigned port, char **arguments)
{
	unsigned streams = (unsigned)atoi(arguments[1]), k;
	struct session s = open_session(port, WIRE_ACCEPTOR_DISCARDS, NULL, streams);

	send_streams(s.control, streams, 0);
	for (k = 0; k < streams; k++)
		send_most(&s, k, UNKNOWN_ID);
	hold();
}

/* Requests a file on many streams, and reads none. ARGUMENTS: sessions, streams of each, the file. */
static void reads_no_block(unsigned port, char **arguments)
{
	unsigned sessions = (unsigned)atoi(arguments[0]), streams = (unsigned)atoi(arguments[1]), i, k;
	struct wire_answer a = { .verdict = WIRE_SEND_ALL };
	uint8_t out[WIRE_ANSWER_MAX_BYTES];
	struct wire_entry e;
	const struct frame *f;
	struct session s;

	for (i = 0; i < sessions; i++) {
		s = open_session(port, WIRE_ACCEPTOR_SENDS, arguments[2], streams);
		send_streams(s.control, streams, 0);
		for (k = 0; k < streams; k++)
			join(&s, k);
		f = expect(s.control, WIRE_ENTRY);
		if (wire_entry_decode(&e, (struct span){ f->payload, f->n }, NULL) < 0)
			die("malformed ENTRY");
		a.id = e.id;
		peer_send(s.control, out, wire_answer_encode(out, &a));
	}
	hold();
}

/* ---- Everything at once ---- */

#define PATTERNS 480u
#define PATTERN_BYTES 125u
#define FLOOD_BYTES (UINT64_C(8) << 20)
#define SELECT_BYTES 45000u
#define XATTR_BYTES 55000u
#define ATTRIBUTED 1500u       /* files with so many bytes of attributes */
#define RANGES (1u << 21)      /* blocks, every second of which is requested */
#define NEEDS 1000u            /* frames sent at once */
#define UNFINISHED_STREAMS 32u

/* A request that waits for room, for the directory `dir`; with so many patterns as one frame can carry, or none. */
static void request(struct peer *p, uint8_t role, uint32_t flags, const char *dir, bool patterns)
{
	static uint8_t paths[(PATTERNS + 1) * (PATTERN_BYTES + 3)], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = role, .cipher = PTCP_CIPHER_AES128GCM, .flags = flags,
		.streams = 32, .n_paths = 1, .wait_ms = 600000, .paths = { paths, 0 },
		.preserve = WIRE_PRESERVE_XATTR };
	uint8_t pattern[PATTERN_BYTES];

	o.paths.n = wire_path_encode(paths, role == WIRE_ACCEPTOR_SENDS ? WIRE_PATH_CONTENTS : 0,
	    (struct span){ (const uint8_t *)dir, strlen(dir) });
	for (; patterns && o.n_paths <= PATTERNS; o.n_paths++) {
		memset(pattern, 'a' + o.n_paths % 26, sizeof pattern);
		memcpy(pattern, "- [a-z]?*", 9);
		o.paths.n += wire_path_encode(paths + o.paths.n, WIRE_PATH_RULE,
		    (struct span){ pattern, sizeof pattern });
	}
	peer_try_send(p, out, wire_open_encode(out, &o));
}

/* SELECT frames of paths of `length` bytes that are written as "./././..", or of distinct names, until the server ends
 * the session or reads no more. */
static void flood_paths(struct peer *p, size_t length, bool distinct)
{
	static uint8_t paths[SELECT_BYTES], out[SELECT_BYTES + 64];
	struct wire_select f;
	uint64_t sent = 0;
	uint32_t n = 0;

	do {
		f = (struct wire_select){ .paths = { paths, 0 } };
		for (; f.paths.n + length + 1 <= sizeof paths; f.paths.n += length + 1, f.n_paths++) {
			uint8_t *path = paths + f.paths.n;

			for (size_t i = 0; i < length; i++)
				path[i] = i % 2 ? '/' : '.';
			path[length] = 0;
			if (distinct)
				snprintf((char *)path, length + 1, "%0*u", (int)length, n++);
		}
		sent += f.paths.n;
	} while (sent < (distinct ? WIRE_SELECT_MAX_PATHS_BYTES - 2 * SELECT_BYTES : FLOOD_BYTES) &&
	    peer_try_send(p, out, wire_select_encode(out, &f)));
}

/* An attribute of an entry: extended attributes, almost as many bytes as a frame can carry. */
static struct span large_attributes(void)
{
	static uint8_t list[XATTR_BYTES + 100], out[XATTR_BYTES + 200], value[XATTR_BYTES];
	struct wire_attrs a = { .xattrs = { list, 0 } };

	a.xattrs.n = wire_xattr_encode(list, (struct span){ (const uint8_t *)"user.x", 6 },
	    (struct span){ value, sizeof value });
	return (struct span){ out, wire_attrs_encode(out, &a) };
}

/* A window of unfinished files with long names, and, all files, with attributes. */
static void flood_entries(struct peer *p, unsigned n, bool attributes)
{
	static uint8_t out[WIRE_ENTRY_BYTES(XATTR_BYTES + 200)];
	struct span attrs = attributes ? large_attributes() : (struct span){ NULL, 0 };
	char name[256];
	unsigned i;

	memset(name, 'n', sizeof name);
	if (attributes && n > ATTRIBUTED)
		n = ATTRIBUTED;
	for (i = 0; i < n; i++) {
		bool dir = i % 2 && !attributes;
		struct wire_entry f = { .type = dir ? WIRE_DIR : WIRE_FILE, .id = ID(i, i + 1),
			.size_bytes = dir ? 0 : 1u << 30,
			.mode = 0755, .name = { (const uint8_t *)name, 255 }, .attrs = attrs };

		snprintf(name, 12, "%011u", i);
		name[11] = 'n';
		if (!peer_try_send(p, out, wire_entry_encode(out, &f)))
			break;
	}
}

/* Requests every second block of the first file that the server offers, and reads no more. */
static void flood_needs(struct peer *p)
{
	static uint8_t out[NEEDS * WIRE_NEED_MAX_BYTES];
	struct wire_answer a = { .verdict = WIRE_SEND_PARTS };
	struct wire_blocks b = { .count = 1 };
	const struct frame *f;
	struct wire_entry e;
	size_t n;

	while ((f = peer_frame(p))->type != WIRE_ENTRY ||
	    wire_entry_decode(&e, (struct span){ f->payload, f->n }, NULL) < 0 || e.type != WIRE_FILE)
		if (f->type < 0)
			return;
	a.id = b.id = e.id;
	if (!peer_try_send(p, out, wire_answer_encode(out, &a)))
		return;
	do {
		for (n = 0; n + WIRE_NEED_MAX_BYTES <= sizeof out; b.first += 2)
			n += wire_need_encode(out + n, &b);
	} while (b.first < RANGES && peer_try_send(p, out, n));
}

enum kind { PATHS_OF_DOTS, PATHS_OF_ONE_BYTE, RULES, NAMES, LONG_PATHS, RANGES_OF_BLOCKS, ATTRIBUTES,
    SHORT_PATHS, KINDS };

static void request_of(struct peer *p, enum kind kind, const char *dir)
{
	switch (kind) {
	case RULES:
		request(p, WIRE_ACCEPTOR_SENDS, 0, dir, true);
		break;
	case NAMES:
		request(p, WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_DELETE | WIRE_OPEN_VERIFY, dir, false);
		break;
	case ATTRIBUTES:
		request(p, WIRE_ACCEPTOR_RECEIVES, WIRE_OPEN_VERIFY, dir, false);
		break;
	case RANGES_OF_BLOCKS:
		request(p, WIRE_ACCEPTOR_SENDS, WIRE_OPEN_VERIFY, "huge", false);
		break;
	default:
		request(p, WIRE_ACCEPTOR_SENDS, WIRE_OPEN_SELECTED, dir, false);
	}
}

/* Begins the session number `i`: each kind of memory in turn. The server may refuse any of them, at any point. */
static void take_memory(struct peer *p, unsigned i, const char *dir)
{
	enum kind kind = (enum kind)(i % KINDS);
	struct wire_hello h = { 0 };
	const struct frame *f;

	request_of(p, kind, dir);
	while ((f = peer_frame(p))->type == WIRE_HELLO || f->type == WIRE_WAITING)
		if (f->type == WIRE_HELLO && wire_hello_decode(&h, (struct span){ f->payload, f->n }, NULL) < 0)
			die("malformed HELLO");
	if (f->type != WIRE_OPENED)
		return;
	if (kind == NAMES || kind == ATTRIBUTES)
		flood_entries(p, h.max_entries, kind == ATTRIBUTES);
	else if (kind == RANGES_OF_BLOCKS)
		flood_needs(p);
	else if (kind == PATHS_OF_DOTS || kind == PATHS_OF_ONE_BYTE)
		flood_paths(p, kind == PATHS_OF_DOTS ? 4095 : 1, false);
	else if (kind != RULES)
		flood_paths(p, kind == LONG_PATHS ? 200 : 11, true);
}

/* ARGUMENTS: running sessions, waiting sessions, jobs, a directory with many names. */
static void at_once(unsigned port, char **arguments)
{
	unsigned running = (unsigned)atoi(arguments[0]), waiting = (unsigned)atoi(arguments[1]),
	    jobs = (unsigned)atoi(arguments[2]), i;
	struct wire_manage list = { .op = WIRE_MANAGE_LIST, .n_paths = 1 };
	static uint8_t out[WIRE_MANAGE_MAX_BYTES], path[WIRE_PATH_MAX + 3];
	struct peer *p;

	leave_unfinished(port, 1, UNFINISHED_STREAMS, FILE_ID);
	for (i = 1; i < running + waiting; i++) {
		if ((p = peer_connect(port, ALPN_CONTROL)) == NULL)
			continue;
		peer_patience(p, 2);
		greet(p);
		if (i < running)
			take_memory(p, i, arguments[3]);
		else
			request(p, WIRE_ACCEPTOR_SENDS, 0, arguments[3], true);
	}
	list.paths = (struct span){ path, wire_path_encode(path, 0, (struct span){ (const uint8_t *)arguments[3],
	    strlen(arguments[3]) }) };
	for (i = 0; i < jobs; i++)
		if ((p = peer_connect(port, ALPN_JOB)) != NULL)
			peer_try_send(p, out, wire_manage_encode(out, &list));
	hold();
}

const struct hostile hostile_holders[] = {
	{ "at-once", at_once }, { "unfinished-blocks", unfinished_blocks },
	    { "unfinished-unknown", unfinished_unknown },
	{ "unfinished-measurement", unfinished_measurement }, { "reads-no-block", reads_no_block }, { NULL, NULL }
};
