/* Connections of frames by themselves: each frame in each state and role of a table, pieces of frames, and each
 * limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/frame_conn.h"

enum { IDLE, BUSY, CLOSED, STATES };
enum { FIRST = 1, SECOND = 2 };
#define IN(state) (1u << (state))

struct owner {
	struct frame_conn conn;
	unsigned state;
	uint32_t role;
	struct frame_limits limits;
	unsigned type, calls;      /* of the last handler */
	uint64_t value;            /* of the frame that it got */
	struct span bytes;
	size_t rest;
	unsigned pings;
	bool refuse, close;
};

static int took(struct owner *o, unsigned type, uint64_t value, struct ptcp_err *e)
{
	o->type = type;
	o->calls++;
	o->value = value;
	o->bytes = frame_conn_bytes(&o->conn);
	o->rest = frame_conn_rest(&o->conn);
	assert_ptr_equal(frame_conn_payload(&o->conn).p, o->bytes.p + WIRE_HEADER_BYTES);
	assert_int_equal(frame_conn_payload(&o->conn).n, o->bytes.n - WIRE_HEADER_BYTES);
	if (o->close)
		o->state = CLOSED;
	return o->refuse ? err_set(e, PTCP_EREFUSED, "refused") : 0;
}

static int on_ping(struct owner *o, const struct wire_ping *f, struct ptcp_err *e)
{
	return took(o, WIRE_PING, f->tick, e);
}
static int on_done(struct owner *o, const struct wire_done *f, struct ptcp_err *e)
{
	return took(o, WIRE_DONE, f->id, e);
}
static int on_ack(struct owner *o, const struct wire_ack *f, struct ptcp_err *e)
{
	return took(o, WIRE_ACK, f->block, e);
}
static int on_first_end(struct owner *o, const struct wire_end *f, struct ptcp_err *e)
{
	return took(o, WIRE_END, f->files, e);
}
static int on_end(struct owner *o, const struct wire_end *f, struct ptcp_err *e)
{
	return took(o, WIRE_END, f->failed, e);
}

static int on_totals(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	assert_null(f);
	return took(owner, type, frame_conn_payload(&((struct owner *)owner)->conn).n + 1, e);
}

/* A frame in any role, in one role, and with different handlers in different states; and an undecoded frame. */
#define RULES(X) \
	X(PING, IN(IDLE) | IN(BUSY), 0, on_ping) \
	X(DONE, IN(BUSY), FIRST, on_done) \
	X(ACK, IN(IDLE), FIRST | SECOND, on_ack) \
	X(END, IN(IDLE), SECOND, on_first_end) \
	X(END, IN(BUSY), FIRST, on_end)

RULES(FRAME_TAKE)
static const struct frame_rule rules[] = {
	RULES(FRAME_RULE)
	{ .type = WIRE_TOTALS, .states = IN(IDLE), .take = on_totals, .undecoded = true }
};

static const char *const state_names[] = { "IDLE", "BUSY", "CLOSED" };
static unsigned state_of(const void *owner) { return ((const struct owner *)owner)->state; }
static uint32_t role_of(const void *owner) { return ((const struct owner *)owner)->role; }
static struct frame_limits limits_of(const void *owner) { return ((const struct owner *)owner)->limits; }

static struct wire_ping ping_of(void *owner, struct mono now)
{
	((struct owner *)owner)->pings++;
	return (struct wire_ping){ WIRE_IDLE, now.ns };
}

static const struct frame_table table = { FRAME_TABLE_RULES(rules), .state_names = state_names, .deaf = IN(CLOSED),
	.state = state_of, .role = role_of, .limits = limits_of, .ping = ping_of };

static struct mono at(double s) { return (struct mono){ 1000 * NS_PER_S + (uint64_t)(s * 1e9) }; }

static const struct frame_limits none = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };

static void begin(struct owner *o, unsigned state, uint32_t role)
{
	*o = (struct owner){ .state = state, .role = role, .limits = none };
	frame_conn_init(&o->conn, &table, o, NULL, at(0));
}

/* A frame of this type, without content in particular. */
static size_t put(uint8_t *out, unsigned type)
{
	const struct wire_ping ping = { WIRE_IDLE, 7 };
	const struct wire_done done = { 1u << 16 };
	const struct wire_ack ack = { 1u << 16, 9 };
	const struct wire_end end = { 5, 3 };

	switch (type) {
	case WIRE_PING: return wire_ping_encode(out, &ping);
	case WIRE_DONE: return wire_done_encode(out, &done);
	case WIRE_ACK: return wire_ack_encode(out, &ack);
	case WIRE_END: return wire_end_encode(out, &end);
	default:
		wire_header_encode(out, &(struct wire_header){ (uint8_t)type, WIRE_CRITICAL, 0 });
		return WIRE_HEADER_BYTES;
	}
}

/* ---- Table and state ---- */

/* The value that the handler gets; 0: a violation. */
static uint64_t expected(unsigned type, unsigned state, uint32_t role)
{
	switch (type) {
	case WIRE_PING: return 7;
	case WIRE_DONE: return state == BUSY && role == FIRST ? 1u << 16 : 0;
	case WIRE_ACK: return state == IDLE ? 9 : 0;
	case WIRE_END: return state == IDLE && role == SECOND ? 5 : state == BUSY && role == FIRST ? 3 : 0;
	case WIRE_TOTALS: return state == IDLE; /* although put() makes a malformed frame */
	default: return 0;
	}
}

static void every_frame_in_every_state_and_role(void **state)
{
	char unexpected[100];
	uint8_t frame[100];
	unsigned type, st;
	uint32_t role;
	struct ptcp_err e;
	struct owner o;
	uint64_t value;
	size_t n;

	(void)state;
	for (type = 0; type < 256; type++)
		for (st = 0; st < STATES && wire_type_known(type); st++)
			for (role = FIRST; role <= SECOND; role++) {
				begin(&o, st, role);
				n = put(frame, type);
				value = st == CLOSED ? 0 : expected(type, st, role);
				if (st == CLOSED || value != 0) {
					assert_int_equal(frame_conn_input(&o.conn, frame, n, at(1), &e), 0);
				} else {
					assert_int_equal(frame_conn_input(&o.conn, frame, n, at(1), &e), PTCP_EPROTO);
					snprintf(unexpected, sizeof unexpected, "unexpected %s frame in state %s",
					    wire_type_name(type), state_names[st]);
					assert_string_equal(e.msg, unexpected);
				}
				assert_int_equal(o.calls, value != 0);
				assert_int_equal(o.value, value);
				assert_true(value == 0 || o.type == type);
				frame_conn_fini(&o.conn);
			}
}

static void malformed(void **state)
{
	uint8_t frame[100];
	struct ptcp_err e;
	struct owner o;
	size_t n;

	(void)state;
	begin(&o, IDLE, FIRST);
	n = put(frame, WIRE_PING);
	frame[WIRE_HEADER_BYTES] = 255; /* no such state of a peer */
	assert_int_equal(frame_conn_input(&o.conn, frame, n, at(0), &e), PTCP_EPROTO);
	assert_string_equal(e.msg, "malformed PING frame");
	assert_int_equal(o.calls, 0);
	frame_conn_fini(&o.conn);
}

/* ---- Bytes ---- */

static void pieces_of_any_length(void **state)
{
	uint8_t bytes[200];
	struct owner o;
	size_t n, one, step, i;

	(void)state;
	for (step = 1; step <= 3 * (WIRE_HEADER_BYTES + 12); step++) {
		begin(&o, IDLE, FIRST);
		one = n = put(bytes, WIRE_PING);
		n += put(bytes + n, WIRE_ACK);
		n += put(bytes + n, WIRE_PING);
		for (i = 0; i < n; i += step)
			assert_int_equal(frame_conn_input(&o.conn, bytes + i, n - i < step ? n - i : step, at(0), NULL),
			    0);
		assert_int_equal(o.calls, 3);
		assert_int_equal(o.bytes.n, one);
		assert_int_equal(o.rest, 0);
		frame_conn_fini(&o.conn);
	}
}

/* Frames behind the frame that closes the connection, or is refused, do not reach a handler. */
static void the_last_frame(void **state)
{
	uint8_t bytes[200];
	struct owner o;
	size_t n;

	(void)state;
	n = put(bytes, WIRE_PING);
	n += put(bytes + n, WIRE_PING);
	begin(&o, IDLE, FIRST);
	o.close = true;
	assert_int_equal(frame_conn_input(&o.conn, bytes, n, at(0), NULL), 0);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.rest, n / 2);
	assert_int_equal(frame_conn_input(&o.conn, bytes, n, at(0), NULL), 0);
	assert_int_equal(o.calls, 1);
	frame_conn_fini(&o.conn);

	begin(&o, IDLE, FIRST);
	o.refuse = true;
	assert_int_equal(frame_conn_input(&o.conn, bytes, n, at(0), NULL), PTCP_EREFUSED);
	assert_int_equal(o.calls, 1);
	frame_conn_fini(&o.conn);
}

static void unknown_types(void **state)
{
	uint8_t frame[WIRE_HEADER_BYTES + 3 + 100] = { 0 };
	struct owner o;
	size_t n;

	(void)state;
	wire_header_encode(frame, &(struct wire_header){ 200, 0, 3 });
	n = WIRE_HEADER_BYTES + 3 + put(frame + WIRE_HEADER_BYTES + 3, WIRE_PING);
	begin(&o, IDLE, FIRST);
	assert_int_equal(frame_conn_input(&o.conn, frame, n, at(0), NULL), 0);
	assert_int_equal(o.calls, 1);
	frame[1] = WIRE_CRITICAL;
	assert_int_equal(frame_conn_input(&o.conn, frame, n, at(0), NULL), PTCP_EPROTO);
	frame_conn_fini(&o.conn);
}

/* ---- Time ---- */

/* The fault comes at the deadline, neither earlier nor later. */
static void assert_due(const struct owner *o, double s, enum frame_fault fault)
{
	struct mono due = frame_conn_deadline(&o->conn);

	assert_int_equal(due.ns, at(s).ns);
	assert_int_equal(frame_conn_fault(&o->conn, (struct mono){ due.ns - 1 }), FRAME_ALIVE);
	assert_int_equal(frame_conn_fault(&o->conn, due), fault);
}

static void silence_and_stalls(void **state)
{
	struct owner o;

	(void)state;
	begin(&o, IDLE, FIRST);
	assert_true(frame_conn_deadline(&o.conn).ns == MONO_NEVER.ns);
	assert_int_equal(frame_conn_fault(&o.conn, at(1e6)), FRAME_ALIVE);
	o.limits.silence_ns = 4 * NS_PER_S;
	assert_due(&o, 4, FRAME_SILENT);
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"\5", 1, at(3), NULL), 0); /* a part of a PING */
	assert_due(&o, 7, FRAME_SILENT);
	o.limits.stall_ns = 5 * NS_PER_S;
	assert_due(&o, 5, FRAME_STALLED);
	o.conn.last_progress = at(3);
	assert_due(&o, 7, FRAME_SILENT);
	frame_conn_fini(&o.conn);
}

/* During an outage only the silence counts; after the outage the time without progress begins anew. */
static void outages(void **state)
{
	struct owner o;

	(void)state;
	begin(&o, IDLE, FIRST);
	o.limits = (struct frame_limits){ .silence_ns = 60 * NS_PER_S, .stall_ns = 4 * NS_PER_S,
	    .outage_ns = 2 * NS_PER_S,
		.ping_ns = UINT64_MAX };
	assert_due(&o, 60, FRAME_SILENT);
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"\5", 1, at(1.9), NULL), 0); /* no outage */
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"\1", 1, at(3), NULL), 0);
	assert_due(&o, 4, FRAME_STALLED);
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"", 1, at(50), NULL), 0);
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"", 1, at(51), NULL), 0);
	assert_int_equal(o.conn.last_progress.ns, at(50).ns);
	assert_int_equal(frame_conn_fault(&o.conn, at(52.9)), FRAME_ALIVE);
	assert_int_equal(frame_conn_input(&o.conn, (const uint8_t *)"\11", 1, at(52.9), NULL), 0);
	assert_due(&o, 54, FRAME_STALLED);
	frame_conn_fini(&o.conn);
}

static void pings(void **state)
{
	struct wire_ping f;
	struct owner o;

	(void)state;
	begin(&o, IDLE, FIRST);
	o.limits.ping_ns = NS_PER_S;
	o.limits.silence_ns = 3 * NS_PER_S;
	assert_int_equal(frame_conn_deadline(&o.conn).ns, at(1).ns);
	assert_int_equal(frame_conn_tick(&o.conn, at(0.9)), FRAME_ALIVE);
	assert_int_equal(buf_len(&o.conn.out.b), 0);
	assert_int_equal(frame_conn_tick(&o.conn, at(1.5)), FRAME_ALIVE);
	assert_int_equal(wire_ping_decode(&f, (struct span){ buf_head(&o.conn.out.b) + WIRE_HEADER_BYTES,
	    buf_len(&o.conn.out.b) - WIRE_HEADER_BYTES }, NULL), 0);
	assert_int_equal(f.tick, at(1.5).ns);
	assert_int_equal(frame_conn_deadline(&o.conn).ns, at(2.5).ns);
	assert_int_equal(frame_conn_tick(&o.conn, at(3)), FRAME_SILENT); /* no PING to a silent end */
	assert_int_equal(o.pings, 1);
	frame_conn_fini(&o.conn);
}

static void unread(void **state)
{
	struct owner o;

	(void)state;
	begin(&o, IDLE, FIRST);
	while (buf_len(&o.conn.out.b) <= OUTBOX_MAX_BYTES) {
		assert_int_equal(frame_conn_fault(&o.conn, at(0)), FRAME_ALIVE);
		OUTBOX_PUT(&o.conn.out, done, DONE, (&(struct wire_done){ 1u << 16 }));
	}
	assert_int_equal(frame_conn_tick(&o.conn, at(0)), FRAME_UNREAD);
	assert_true(frame_conn_deadline(&o.conn).ns < at(0).ns);
	buf_consume(&o.conn.out.b, buf_len(&o.conn.out.b));
	assert_int_equal(frame_conn_tick(&o.conn, at(0)), FRAME_ALIVE);
	o.conn.out.failed = true; /* no memory */
	assert_int_equal(frame_conn_tick(&o.conn, at(0)), FRAME_UNREAD);
	frame_conn_fini(&o.conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_in_every_state_and_role),
		cmocka_unit_test(malformed),
		cmocka_unit_test(pieces_of_any_length),
		cmocka_unit_test(the_last_frame),
		cmocka_unit_test(unknown_types),
		cmocka_unit_test(silence_and_stalls),
		cmocka_unit_test(outages),
		cmocka_unit_test(pings),
		cmocka_unit_test(unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
