/* Time-outs: how long the peer may be silent or without progress, and the PINGs that report our own delays. */
#include "core/err.h"
#include "core/units.h"
#include "engine/engine_impl.h"

#define PING_MIN_NS (200 * NS_PER_MS) /* min time between two PINGs */
#define STOPPED_NS (5 * NS_PER_S)     /* a later tick: this end did not run */

void engine_progress(struct engine *s, struct mono now)
{
	TAPE(s->tape, progress, .at = now);
	engine_advance(s, now);
}

void engine_advance(struct engine *s, struct mono now)
{
	s->conn.last_progress = s->last_work = now;
	s->moved = true;
}

static bool worked_within(const struct engine *s, unsigned timeouts, struct mono now)
{
	return mono_diff_ns(now, s->last_work) / timeouts < s->timeout_ns;
}

bool engine_tolerates(const struct engine *s, enum wire_busy busy, struct mono now)
{
	return busy != WIRE_IDLE && s->state != HELLO && s->state != AWAIT_OPEN &&
	    worked_within(s, busy == WIRE_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS : ENGINE_BUSY_TIMEOUTS, now);
}

/* Whether the peer must act next. */
static bool waiting(const struct engine *s)
{
	if (s->state == AUTHORIZING || (s->state == RUNNING && engine_measures(s)))
		return false;
	return s->state != RUNNING || s->snd == NULL || snd_stats(s->snd).live > 0;
}

/* AUTHORIZING examines the disk as well. */
static enum wire_busy busy(const struct engine *s)
{
	return s->state == AUTHORIZING ? WIRE_READING : s->o.ops->busy(s->o.arg);
}

static bool paced(const struct engine *s)
{
	return s->o.ops->paced != NULL && s->o.ops->paced(s->o.arg);
}

/* Shown to the peer's user at once, as no data moves meanwhile. */
static bool urgent(enum wire_busy b)
{
	return b == WIRE_SYNCING || b == WIRE_VERIFYING;
}

/* Time from the last PING to the next. The end of a delay is reported soon, as the peer postpones its countermeasures
 * until then; so is a rate limit, or the peer would copy waiting blocks and spend the rate on copies. */
static uint64_t ping_after_ns(const struct engine *s, enum wire_busy now)
{
	uint64_t regular = s->ping_ns;

	if (now == s->busy_reported || (now != WIRE_IDLE && !urgent(now) && !urgent(s->busy_reported) && !paced(s)))
		return regular;
	return regular < PING_MIN_NS ? regular : PING_MIN_NS;
}

/* ---- Limits ---- */

/* Without a connection, or without progress, a session that has begun to move data lingers. Before, the time-outs
 * hold, so that a client that goes silent while it waits, or when it is admitted, does not occupy a session for
 * longer. */
static uint64_t progress_limit_ns(const struct engine *s)
{
	return s->moved && s->linger_ns > s->timeout_ns ? s->linger_ns : s->timeout_ns;
}

static uint64_t silence_limit_ns(const struct engine *s)
{
	if (s->state != RUNNING && s->state != CLOSING)
		return s->o.timeout_ns;
	return progress_limit_ns(s);
}

/* A dead connection of a lingering session is an outage: the silence limit holds, not the progress limit. */
struct frame_limits engine_limits(const void *engine)
{
	const struct engine *s = engine;
	uint64_t silence_ns = silence_limit_ns(s);

	return (struct frame_limits){ .silence_ns = silence_ns,
		.stall_ns = waiting(s) ? progress_limit_ns(s) : UINT64_MAX,
		.outage_ns = silence_ns > s->timeout_ns ? s->o.quiet_ns : UINT64_MAX,
		.ping_ns = ping_after_ns(s, busy(s)) };
}

struct wire_ping engine_ping(void *engine, struct mono now)
{
	struct engine *s = engine;

	(void)now;
	s->busy_reported = busy(s);
	return (struct wire_ping){ (uint8_t)s->busy_reported, ++s->ticks };
}

static struct mono deadline(const struct engine *s)
{
	struct mono at = frame_conn_deadline(&s->conn);

	if (engine_over(s))
		return MONO_NEVER;
	if (s->snd != NULL)
		at = mono_min(at, snd_deadline(s->snd));
	return s->rcv != NULL ? mono_min(at, rcv_deadline(s->rcv)) : at;
}

struct mono engine_deadline(const struct engine *s)
{
	TAPE(s->tape, deadline, .u = { 0 });
	return deadline(s);
}

static void fail_late(struct engine *s, const char *what, uint64_t limit_ns)
{
	char after[UNITS_TEXT_BYTES];
	struct ptcp_err e;

	err_set(&e, PTCP_ETIMEOUT, "the peer: no %s for %s (check the network and the other host, then run "
	    "the same command again)",
	    what, units_time_text(after, (double)limit_ns / 1e9));
	engine_give_up(s, &e);
}

/* This process or the host was stopped (SIGSTOP, suspend): the peer had no chance to be heard meanwhile. */
static void excuse_stop(struct engine *s, struct mono now)
{
	uint64_t late_ns = mono_diff_ns(now, s->due);

	if (late_ns < STOPPED_NS)
		return;
	s->conn.last_input = mono_min(now, mono_add_ns(s->conn.last_input, late_ns));
	s->conn.last_progress = mono_min(now, mono_add_ns(s->conn.last_progress, late_ns));
	s->last_work = mono_min(now, mono_add_ns(s->last_work, late_ns));
}

static void check_time(struct engine *s, struct mono now)
{
	bool is_busy = busy(s) != WIRE_IDLE, at_rate = paced(s);
	struct ptcp_err e;

	/* A delay observed at the last tick lasted until now. */
	if (!waiting(s) || ((is_busy || s->was_busy) && !at_rate))
		s->conn.last_progress = s->last_work = now;
	else if (at_rate && worked_within(s, ENGINE_BUSY_TIMEOUTS, now))
		s->conn.last_progress = now;
	s->was_busy = is_busy;
	switch (frame_conn_tick(&s->conn, now)) {
	case FRAME_ALIVE:
		break;
	case FRAME_SILENT:
		fail_late(s, "response", silence_limit_ns(s));
		break;
	case FRAME_STALLED:
		fail_late(s, "progress", progress_limit_ns(s));
		break;
	case FRAME_UNREAD:
		err_set(&e, PTCP_ENOMEM, "control connection: the peer does not read, or memory is short");
		engine_give_up(s, &e);
	}
}

void engine_tick(struct engine *s, struct mono now)
{
	TAPE(s->tape, tick, .at = now);
	engine_check(s, now);
}

void engine_check(struct engine *s, struct mono now)
{
	if (engine_over(s))
		return;
	excuse_stop(s, now);
	if (s->snd != NULL) {
		snd_tick(s->snd, now);
		if (engine_over(s))
			return; /* an operation ended the session */
		if (s->state == RUNNING && snd_finished(s->snd))
			engine_send_end(s);
	}
	if (s->rcv != NULL)
		rcv_tick(s->rcv);
	check_time(s, now);
	s->due = deadline(s);
	if (s->due.ns < now.ns)
		s->due = now;
}
