#include "session/slot.h"

#include <assert.h>

#include "core/units.h"

#define RETRY_FIRST_NS (100 * NS_PER_MS)
#define RETRY_DOUBLINGS 7u /* at most 12.8 s between two attempts, and a quarter */

#define BIT(state) (1u << SLOT_##state)

/* ---- States ---- */

bool slot_permits(enum slot_state from, enum slot_state to)
{
	static const unsigned next[SLOT_STATES] = {
		[SLOT_IDLE] = BIT(WAITING) | BIT(CONNECTING) | BIT(CONNECTED),
		[SLOT_WAITING] = BIT(IDLE) | BIT(CONNECTING) | BIT(CONNECTED),
		[SLOT_CONNECTING] = BIT(IDLE) | BIT(MOVING),
		[SLOT_CONNECTED] = BIT(IDLE) | BIT(MOVING) | BIT(CLOSING),
		[SLOT_MOVING] = BIT(CONNECTING) | BIT(CONNECTED),
		[SLOT_CLOSING] = BIT(IDLE),
	};

	return from < SLOT_STATES && to < SLOT_STATES && (next[from] >> to & 1) != 0;
}

const char *slot_state_name(enum slot_state state)
{
	static const char *const name[SLOT_STATES] = { [SLOT_IDLE] = "idle", [SLOT_WAITING] = "waiting",
		[SLOT_CONNECTING] = "connecting", [SLOT_CONNECTED] = "connected", [SLOT_MOVING] = "moving",
		[SLOT_CLOSING] = "closing" };

	return state < SLOT_STATES ? name[state] : "?";
}

void slot_set_state(struct slot *s, enum slot_state to)
{
	if (s->state == to)
		return;
	assert(slot_permits(s->state, to));
	log_at(s->log, LOG_DEBUG, "slot", "stream=%u from=%s to=%s generation=%u", s->number, slot_state_name(s->state),
	    slot_state_name(to), (unsigned)s->generation);
	s->state = to;
}

void slot_init(struct slot *s, struct session *sess, unsigned number, const struct log *log)
{
	*s = (struct slot){ .session = sess, .log = log, .number = number };
}

/* ---- Attempts ---- */

bool slot_may_begin(const struct slot *s)
{
	return s->state == SLOT_IDLE || s->state == SLOT_WAITING || s->state == SLOT_CONNECTED;
}

bool slot_attempts(const struct slot *s) { return s->state == SLOT_CONNECTING || s->state == SLOT_MOVING; }

void slot_attempt_begins(struct slot *s)
{
	slot_set_state(s, s->state == SLOT_CONNECTED ? SLOT_MOVING : SLOT_CONNECTING);
}

void slot_attempt_ended(struct slot *s)
{
	if (slot_attempts(s))
		slot_set_state(s, s->state == SLOT_MOVING ? SLOT_CONNECTED : SLOT_IDLE);
}

void slot_retry_later(struct slot *s, struct mono now, uint8_t seed)
{
	s->retry_at = mono_add_ns(now, backoff_ns(RETRY_FIRST_NS, s->retries++, RETRY_DOUBLINGS, seed));
	if (s->state == SLOT_IDLE)
		slot_set_state(s, SLOT_WAITING);
}

void slot_retry_at(struct slot *s, struct mono at)
{
	s->retries = 0;
	s->retry_at = at;
	if (s->state == SLOT_WAITING)
		slot_set_state(s, SLOT_IDLE);
}

void slot_reached(struct slot *s) { s->retries = 0; }

/* ---- The connection ---- */

void slot_connected(struct slot *s, struct stream *stream, uint32_t far, uint64_t path_bytes, struct mono now)
{
	assert(s->stream == NULL && stream != NULL);
	s->generation++;
	slot_set_state(s, s->state == SLOT_CONNECTING ? SLOT_MOVING : SLOT_CONNECTED);
	s->stream = stream;
	s->since = now;
	s->path_bytes = path_bytes;
	s->far = far;
	s->connected_to = s->attempt.to;
}

void slot_closes(struct slot *s) { slot_set_state(s, SLOT_CLOSING); }

struct stream *slot_disconnected(struct slot *s)
{
	struct stream *stream = s->stream;

	assert(stream != NULL);
	slot_set_state(s, s->state == SLOT_MOVING ? SLOT_CONNECTING : SLOT_IDLE);
	s->stream = NULL;
	s->far = s->connected_to = 0;
	s->moved_bytes = 0;
	return stream;
}
