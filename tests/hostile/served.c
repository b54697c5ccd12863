#include "served.h"

#include <string.h>

#include "hostile.h"

bool server_session_by_grant;

struct server_session server_session_greet(struct peer *control)
{
	struct server_session s = { .control = control };

	send_hello(s.control);
	if (server_session_by_grant)
		expect(s.control, WIRE_GRANT);
	expect(s.control, WIRE_HELLO);
	return s;
}

struct server_session server_session_hello(void)
{
	return server_session_greet(peer_accept(hostile_listener, server_session_by_grant ? ALPN_GRANT : ALPN_CONTROL));
}

void server_session_read_open(struct server_session *s)
{
	const struct frame *f = expect(s->control, WIRE_OPEN);

	s->role = f->payload[0];
	s->flags = get_u32(f->payload + 4);
	s->streams = get_u16(f->payload + 8);
}

uint8_t server_session_flags;

void server_session_agree(struct server_session *s, unsigned streams, unsigned cipher)
{
	struct wire_opened o = { .session = { 7 }, .cipher = (uint8_t)cipher, .streams = (uint16_t)streams,
		.flags = server_session_flags };
	uint8_t out[WIRE_OPENED_MAX_BYTES];

	peer_send(s->control, out, wire_opened_encode(out, &o));
}

struct server_session server_session_opened(void)
{
	struct server_session s = server_session_hello();

	server_session_read_open(&s);
	server_session_agree(&s, 1, 0);
	return s;
}

struct peer *server_session_join(void)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_DATA);
	uint8_t out[WIRE_JOINED_MAX_BYTES];

	expect(p, WIRE_JOIN);
	peer_send(p, out, wire_joined_encode(out));
	return p;
}

struct server_session server_session_joined(void)
{
	struct server_session s = server_session_opened();

	s.data = server_session_join();
	return s;
}

bool server_session_file(struct server_session *s, uint64_t id, uint64_t parent, const char *name)
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

void server_session_drop(struct server_session *s)
{
	peer_close(s->control);
	peer_close(s->data);
}

void server_session_end(struct server_session *s)
{
	while (peer_frame(s->control)->type > 0)
		;
	server_session_drop(s);
}
