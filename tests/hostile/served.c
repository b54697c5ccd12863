#include "served.h"

#include <string.h>

#include "hostile.h"

bool served_by_grant;

struct served served_greet(struct peer *control, unsigned ability)
{
	struct served s = { .control = control };

	send_hello_able(s.control, ability);
	if (served_by_grant)
		expect(s.control, WIRE_GRANT);
	expect(s.control, WIRE_HELLO);
	return s;
}

struct served served_hello(unsigned ability)
{
	return served_greet(peer_accept(hostile_listener, served_by_grant ? ALPN_GRANT : ALPN_CONTROL), ability);
}

void served_read_open(struct served *s)
{
	const struct frame *f = expect(s->control, WIRE_OPEN);

	s->role = f->payload[0];
	s->flags = get_u32(f->payload + 4);
	s->streams = get_u16(f->payload + 8);
}

void served_agree(struct served *s, unsigned streams, unsigned cipher)
{
	struct wire_opened o = { .session = { 7 }, .cipher = (uint8_t)cipher, .streams = (uint16_t)streams };
	uint8_t out[WIRE_OPENED_MAX_BYTES];

	peer_send(s->control, out, wire_opened_encode(out, &o));
}

struct served served_opened(void)
{
	struct served s = served_hello(0);

	served_read_open(&s);
	served_agree(&s, 1, 0);
	return s;
}

struct peer *served_join(void)
{
	struct peer *p = peer_accept(hostile_listener, ALPN_DATA);
	uint8_t out[WIRE_JOINED_MAX_BYTES];

	expect(p, WIRE_JOIN);
	peer_send(p, out, wire_joined_encode(out));
	return p;
}

struct served served_joined(void)
{
	struct served s = served_opened();

	s.data = served_join();
	return s;
}

bool served_file(struct served *s, uint64_t id, uint64_t parent, const char *name)
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

void served_drop(struct served *s)
{
	peer_close(s->control);
	peer_close(s->data);
}

void served_end(struct served *s)
{
	while (peer_frame(s->control)->type > 0)
		;
	served_drop(s);
}
