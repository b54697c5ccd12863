#include "engine/frame_conn.h"

#include <string.h>

#include "core/err.h"
#include "wire/codec.h"

void frame_conn_init(struct frame_conn *c, const struct frame_table *t, void *owner, struct memory_account *memory,
    struct mono now)
{
	c->table = t;
	c->owner = owner;
	c->in.memory = c->out.b.memory = memory;
	c->last_input = c->last_progress = c->last_ping = now;
}

void frame_conn_fini(struct frame_conn *c)
{
	buf_fini(&c->in);
	buf_fini(&c->out.b);
}

/* ---- Input ---- */

struct span frame_conn_bytes(const struct frame_conn *c) { return (struct span){ buf_head(&c->in), c->taken }; }

struct span frame_conn_payload(const struct frame_conn *c)
{
	return (struct span){ buf_head(&c->in) + WIRE_HEADER_BYTES, c->taken - WIRE_HEADER_BYTES };
}

size_t frame_conn_rest(const struct frame_conn *c) { return buf_len(&c->in) - c->taken; }

int frame_conn_unexpected(const struct frame_conn *c, unsigned type, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame in state %s", wire_type_name(type),
	    c->table->state_names[c->table->state(c->owner)]);
}

static bool is_deaf(const struct frame_conn *c) { return (c->table->deaf & 1u << c->table->state(c->owner)) != 0; }

/* 1: a frame of a known type. 0: the frame is incomplete. */
static int next(struct frame_conn *c, unsigned *type, struct ptcp_err *e)
{
	struct wire_header h;
	struct span payload;
	int r;

	do {
		buf_consume(&c->in, c->taken);
		c->taken = 0;
		if ((r = wire_frame_next(&h, &payload, (struct span){ buf_head(&c->in), buf_len(&c->in) }, e)) <= 0)
			return r;
		c->taken = WIRE_HEADER_BYTES + h.length;
		*type = h.type;
	} while (!wire_type_known(h.type));
	return 1;
}

static int take(struct frame_conn *c, unsigned type, struct ptcp_err *e)
{
	const struct frame_table *t = c->table;
	const struct frame_rule *rule = t->rule, *end = t->rule + t->n;
	uint32_t state = 1u << t->state(c->owner), role = t->role != NULL ? t->role(c->owner) : 0;
	union wire_any f;
	int r;

	while (rule < end && (rule->type != type || (rule->states & state) == 0 ||
	    (rule->roles != 0 && (rule->roles & role) == 0)))
		rule++;
	if (rule == end)
		return frame_conn_unexpected(c, type, e);
	if (rule->undecoded)
		return rule->take(c->owner, type, NULL, e);
	return (r = wire_decode(&f, type, frame_conn_payload(c), e)) < 0 ? r : rule->take(c->owner, type, &f, e);
}

int frame_conn_input(struct frame_conn *c, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e)
{
	uint8_t *room;
	unsigned type;
	int r = 0;

	if (is_deaf(c))
		return 0;
	if (mono_diff_ns(now, c->last_input) >= c->table->limits(c->owner).outage_ns)
		c->last_progress = now;
	c->last_input = now;
	if ((room = buf_reserve(&c->in, n, e)) == NULL)
		return PTCP_ENOMEM;
	memcpy(room, p, n);
	buf_added(&c->in, n);
	while (r >= 0 && !is_deaf(c) && (r = next(c, &type, e)) > 0)
		r = take(c, type, e);
	return r < 0 ? r : 0;
}

/* ---- Time ---- */

static bool is_unread(const struct frame_conn *c) { return c->out.failed || buf_len(&c->out.b) > OUTBOX_MAX_BYTES; }

enum frame_fault frame_conn_fault(const struct frame_conn *c, struct mono now)
{
	struct frame_limits l = c->table->limits(c->owner);
	uint64_t silent_ns = mono_diff_ns(now, c->last_input);

	if (is_unread(c))
		return FRAME_UNREAD;
	if (silent_ns >= l.silence_ns)
		return FRAME_SILENT;
	return silent_ns < l.outage_ns && mono_diff_ns(now, c->last_progress) >= l.stall_ns ? FRAME_STALLED :
	    FRAME_ALIVE;
}

enum frame_fault frame_conn_tick(struct frame_conn *c, struct mono now)
{
	enum frame_fault fault = frame_conn_fault(c, now);
	struct wire_ping ping;

	if (fault != FRAME_ALIVE || mono_diff_ns(now, c->last_ping) < c->table->limits(c->owner).ping_ns)
		return fault;
	ping = c->table->ping(c->owner, now);
	OUTBOX_PUT(&c->out, ping, PING, &ping);
	c->last_ping = now;
	return FRAME_ALIVE;
}

struct mono frame_conn_deadline(const struct frame_conn *c)
{
	struct frame_limits l = c->table->limits(c->owner);
	struct mono at = mono_min(mono_add_ns(c->last_input, l.silence_ns), mono_add_ns(c->last_ping, l.ping_ns));
	struct mono stalled = mono_add_ns(c->last_progress, l.stall_ns);

	if (is_unread(c))
		return (struct mono){ 0 };
	return mono_diff_ns(stalled, c->last_input) < l.outage_ns ? mono_min(at, stalled) : at;
}
