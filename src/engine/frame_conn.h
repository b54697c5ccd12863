/* One end of a connection that carries frames: splits received bytes into frames, refuses frames that the state and the
 * role of this end do not allow, decodes the others for their handlers, buffers the frames to be sent, sends PINGs, and
 * judges the silence of the other end, its lack of progress, and output that it does not read. No sockets and no clock:
 * inputs are bytes and `now`, outputs are bytes and a deadline. */
#ifndef ENGINE_FRAME_CONN_H
#define ENGINE_FRAME_CONN_H

#include "core/clock.h"
#include "wire/outbox.h"

struct memory_account;

/* A frame that an end accepts. Any frame without a rule for the state and the role of the end is a violation. */
struct frame_rule {
	enum wire_type type;
	uint32_t states, roles; /* sets, with a bit for each state and role; roles 0: all */
	/* `f` is the decoded struct wire_x of the type; its spans are valid during the call. */
	int (*take)(void *owner, unsigned type, const void *f, struct ptcp_err *e);
	bool undecoded; /* `f` is NULL, the handler calls frame_conn_bytes() */
};

/* A row X(TYPE, states, roles, handler) of a list of rules, as a function that calls handler(owner, f, e) with its own
 * types, and as a rule with that function. */
#define FRAME_TAKE(TYPE, states, roles, handler) \
	static int TYPE##_##handler(void *owner, unsigned type, const void *f, struct ptcp_err *e) \
	{ \
		(void)type; \
		return handler(owner, f, e); \
	}
#define FRAME_RULE(TYPE, of_states, of_roles, handler) \
	{ .type = WIRE_##TYPE, .states = (of_states), .roles = (of_roles), .take = TYPE##_##handler },

/* UINT64_MAX: no limit. */
struct frame_limits {
	uint64_t silence_ns; /* time without a byte */
	uint64_t stall_ns;   /* time without progress */
	uint64_t outage_ns;  /* After silence this long the connection is taken for dead: only
	                        silence_ns holds until the next byte, with which the time without progress begins
	                        anew. */
	uint64_t ping_ns;    /* time from one PING to the next */
};

struct frame_table {
	const struct frame_rule *rule;
	unsigned n;
	const char *const *state_names;
	uint32_t deaf;                          /* set of states in which received bytes are ignored */
	unsigned (*state)(const void *owner);
	uint32_t (*role)(const void *owner);    /* one bit; NULL: the end has no role */
	struct frame_limits (*limits)(const void *owner);
	struct wire_ping (*ping)(void *owner, struct mono now); /* the PING that is due; NULL: never */
};

#define FRAME_TABLE_RULES(rules) .rule = (rules), .n = sizeof (rules) / sizeof *(rules)

struct frame_conn {
	const struct frame_table *table;
	void *owner;
	struct buf in;
	size_t taken;      /* length of the frame at the start of `in` that was taken last */
	struct outbox out; /* frames to be sent */
	struct mono last_input, last_progress, last_ping;
};

/* `memory`, which pays for the buffers, outlives the connection; NULL: no limit. Frames put into `out` before stay. */
void frame_conn_init(struct frame_conn *c, const struct frame_table *t, void *owner, struct memory_account *memory,
    struct mono now);
void frame_conn_fini(struct frame_conn *c);

/* Passes the complete frames among the bytes received to their handlers. Frames of unknown types are skipped unless
 * they are critical. The error of a handler, PTCP_ENOMEM, or PTCP_EPROTO for a violation: the owner ends the
 * connection. */
int frame_conn_input(struct frame_conn *c, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e);
/* For handlers: the bytes of the frame, its payload, and the number of bytes received after the frame. */
struct span frame_conn_bytes(const struct frame_conn *c);
struct span frame_conn_payload(const struct frame_conn *c);
size_t frame_conn_rest(const struct frame_conn *c);
/* PTCP_EPROTO: "unexpected PING frame in state RUNNING". */
int frame_conn_unexpected(const struct frame_conn *c, unsigned type, struct ptcp_err *e);

enum frame_fault {
	FRAME_ALIVE,
	FRAME_UNREAD, /* the other end does not read: more than OUTBOX_MAX_BYTES are buffered; or no memory for them */
	FRAME_SILENT, /* no byte for silence_ns */
	FRAME_STALLED /* no progress for stall_ns */
};
enum frame_fault frame_conn_fault(const struct frame_conn *c, struct mono now);
/* frame_conn_fault(), and puts a PING that is due into `out` if there is no fault. */
enum frame_fault frame_conn_tick(struct frame_conn *c, struct mono now);
/* When frame_conn_tick() is due; MONO_NEVER: never. */
struct mono frame_conn_deadline(const struct frame_conn *c);

#endif
