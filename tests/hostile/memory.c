/* Clients that make a server hold memory: streams with data that never becomes complete, or is never read. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "session.h"
#include "wire/block.h"

#define STREAMS_MAX 128u
#define FILE_ID ID(0, 1)
#define UNKNOWN_ID ID(7, 9)

static uint8_t chunk[WIRE_BLOCK_HEAD_BYTES + WIRE_CHUNK_BYTES];

static struct session open_session(unsigned port, uint8_t role, const char *path, unsigned streams)
{
	struct session s = { .port = port, .control = control(port) };
	uint8_t paths[WIRE_PATH_MAX + 3], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_hello h = { .version_min = 1, .version_max = 1, .timeout_ms = 60000, .quiet_ms = 60000,
		.max_entries = 1000, .max_streams = STREAMS_MAX };
	struct wire_open o = { .role = role, .cipher = PTCP_CIPHER_AES128GCM,
		.flags = path != NULL ? WIRE_OPEN_VERIFY : 0,
		.streams = (uint16_t)streams, .n_paths = path != NULL };

	o.paths.p = paths;
	if (path != NULL)
		o.paths.n = wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, strlen(path) });
	peer_send(s.control, out, wire_hello_encode(out, &h));
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
	struct wire_block b = { id, (uint64_t)number * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES };
	struct timeval patience = { 0, 200000 };
	struct peer *p = join(s, number);
	int bytes = 1 << 20;

	setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	wire_block_encode(chunk, &b);
	peer_try_send(p, chunk, sizeof chunk - 1);
}

static void unfinished(unsigned port, char **arguments, uint64_t id)
{
	unsigned sessions = (unsigned)atoi(arguments[0]), streams = (unsigned)atoi(arguments[1]), i, k;
	struct session s;
	char name[16];

	for (i = 0; i < sessions; i++) {
		s = open_session(port, WIRE_ACCEPTOR_RECEIVES, "/", streams);
		snprintf(name, sizeof name, "held%u", i);
		send_entry(s.control, WIRE_FILE, FILE_ID, 0, name, strlen(name), (uint64_t)streams * WIRE_CHUNK_BYTES, NULL);
		if (answer(&s, FILE_ID) == 0)
			die("refused");
		for (k = 0; k < streams; k++)
			send_most(&s, k, id);
	}
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

const struct hostile hostile_holders[] = {
	{ "unfinished-blocks", unfinished_blocks }, { "unfinished-unknown", unfinished_unknown },
	{ "unfinished-measurement", unfinished_measurement }, { "reads-no-block", reads_no_block }, { NULL, NULL }
};
