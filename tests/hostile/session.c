#include "session.h"

#include <string.h>

static void ask_to(struct peer *p, uint8_t role, const char *path, size_t n, uint32_t flags, uint16_t preserve)
{
	uint8_t paths[WIRE_PATH_MAX + 3], out[WIRE_OPEN_BYTES(sizeof paths)];
	struct wire_open o = { .role = role, .cipher = PTCP_CIPHER_AES128GCM, .flags = flags, .streams = 2,
		.n_paths = 1, .preserve = preserve };

	if (role == WIRE_ACCEPTOR_RECEIVES)
		o.flags |= WIRE_OPEN_NO_PREFLIGHT; /* some attacks offer more than any disk has room for */
	o.paths.p = paths;
	o.paths.n = wire_path_encode(paths, 0, (struct span){ (const uint8_t *)path, n });
	peer_send(p, out, wire_open_encode(out, &o));
}

void ask(struct peer *p, uint8_t role, const char *path, size_t n, uint32_t flags)
{
	ask_to(p, role, path, n, flags, 0);
}

struct peer *control(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_CONTROL);

	if (p == NULL)
		die("no handshake");
	return p;
}

struct session opened(unsigned port, uint8_t role, const char *path)
{
	return opened_with(port, role, path, WIRE_OPEN_VERIFY);
}

void take_opened(struct session *s)
{
	const struct frame *f = expect(s->control, WIRE_OPENED);

	memcpy(s->id, f->payload, sizeof s->id);
	s->granted = get_u16(f->payload + sizeof s->id + 1);
}

static struct session begun(unsigned port, uint8_t role, const char *path, uint32_t flags, uint16_t preserve)
{
	struct session s = { .port = port, .control = control(port) };

	send_hello(s.control);
	expect(s.control, WIRE_HELLO);
	ask_to(s.control, role, path, strlen(path), flags, preserve);
	take_opened(&s);
	if (tls_export(s.control->ssl, s.key, NULL) < 0)
		die("no exporter");
	if (role == WIRE_ACCEPTOR_SENDS)
		send_streams(s.control, 2, 0);
	return s;
}

struct session opened_with(unsigned port, uint8_t role, const char *path, uint32_t flags)
{
	return begun(port, role, path, flags, 0);
}

struct session opened_preserving(unsigned port, const char *path, uint16_t preserve)
{
	return begun(port, WIRE_ACCEPTOR_RECEIVES, path, 0, preserve);
}

void send_streams(struct peer *p, unsigned streams, uint64_t bytes)
{
	struct wire_set_streams f = { (uint16_t)streams, bytes };
	uint8_t out[WIRE_SET_STREAMS_MAX_BYTES];

	peer_send(p, out, wire_set_streams_encode(out, &f));
}

struct peer *data(unsigned port)
{
	struct peer *p = peer_connect(port, ALPN_DATA);

	if (p == NULL)
		die("no handshake");
	return p;
}

struct wire_join join_frame(const struct session *s, struct peer *p, unsigned number)
{
	struct wire_join f = { .stream = (uint16_t)number };
	uint8_t exporter[32];

	memcpy(f.session, s->id, sizeof f.session);
	if (tls_export(p->ssl, exporter, NULL) < 0 || tls_join_mac(f.mac, s->key, exporter, s->id, f.stream) < 0)
		die("no exporter");
	return f;
}

void send_join(struct peer *p, const struct wire_join *f)
{
	uint8_t out[WIRE_JOIN_MAX_BYTES];

	peer_send(p, out, wire_join_encode(out, f));
}

struct peer *join(const struct session *s, unsigned number)
{
	struct peer *p = data(s->port);
	struct wire_join f = join_frame(s, p, number);

	send_join(p, &f);
	expect(p, WIRE_JOINED);
	return p;
}

void expect_no_join(struct peer *p, const char *what)
{
	const struct frame *f = peer_frame(p);

	if (f->type != WIRE_ERROR || get_u16(f->payload) != 5 || f->n != ERROR_TEXT_AT + 25 ||
	    memcmp(f->payload + ERROR_TEXT_AT, "no such session or stream", 25) != 0)
		die("%s: not refused as it must be (%s came)", what, frame_name(f->type));
	expect_end(p);
	peer_close(p);
}

struct session sending(unsigned port, const char *path)
{
	struct session s = opened(port, WIRE_ACCEPTOR_RECEIVES, path);

	s.data = join(&s, 1);
	return s;
}

unsigned answer(struct session *s, uint64_t id)
{
	const struct frame *f = peer_frame(s->control);

	if ((f->type != WIRE_ANSWER && f->type != WIRE_FAIL) || get_u64(f->payload) != id)
		die("ANSWER or FAIL of %llx expected, %s came", (unsigned long long)id, frame_name(f->type));
	return f->type == WIRE_FAIL ? 0 : f->payload[8];
}

bool verdict(struct session *s, uint64_t id)
{
	const struct frame *f;

	do
		f = peer_frame(s->control);
	while (f->type == WIRE_ACK);
	if ((f->type != WIRE_DONE && f->type != WIRE_FAIL) || get_u64(f->payload) != id)
		die("DONE or FAIL expected, %s came", frame_name(f->type));
	return f->type == WIRE_DONE;
}

bool file(struct session *s, uint64_t id, uint64_t parent, const char *name)
{
	send_entry(s->control, WIRE_FILE, id, parent, name, strlen(name), 1000, NULL);
	if (answer(s, id) == 0)
		return false;
	send_block(s->data, id, 0, 1000, true);
	return verdict(s, id);
}

void finish(struct session *s, unsigned files, unsigned failed)
{
	send_end(s->control, files, failed);
	expect(s->control, WIRE_END);
	peer_close(s->control);
	peer_close(s->data);
}

void drop(struct session *s)
{
	peer_close(s->control);
	peer_close(s->data);
}

void send_with_attrs(struct peer *p, uint8_t type, uint64_t id, uint64_t size, uint32_t mode, const char *attrs,
    size_t n)
{
	struct wire_entry f = { .type = type, .id = id, .size_bytes = size, .mode = mode,
		.name = { (const uint8_t *)"x", 1 }, .target = { (const uint8_t *)"y", type == WIRE_SYMLINK },
		.attrs = { (const uint8_t *)attrs, n } };
	uint8_t out[WIRE_ENTRY_BYTES(128)];

	peer_send(p, out, wire_entry_encode(out, &f));
}
