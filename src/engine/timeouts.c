/* How long a peer may be silent or bring nothing, and what it is told of us meanwhile. */
#include "core/err.h"
#include "core/units.h"
#include "engine/engine_impl.h"

#define TELL_NS (200 * NS_PER_MS) /* between PINGs at the least */

void engine_progress(struct engine *s, struct mono now)
{
	s->last_progress = s->last_work = now;
}

/* Not for ever. */
static bool believes(const struct engine *s, unsigned timeouts, struct mono now)
{
	return mono_diff_ns(now, s->last_work) / timeouts < s->o.timeout_ns;
}

bool engine_is_excuse(const struct engine *s, enum wire_busy busy, struct mono now)
{
	return busy != WIRE_IDLE && s->state != HELLO && s->state != ASKED &&
	    believes(s, busy == WIRE_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS : ENGINE_BUSY_TIMEOUTS, now);
}

/* Whether the peer owes us something. */
static bool waiting(const struct engine *s)
{
	if (s->state == JUDGING || (s->state == RUNNING && engine_measures(s)))
		return false;
	return s->state != RUNNING || s->snd == NULL || snd_stats(s->snd).live > 0;
}

/* Judging is looking at the disk, too. */
static enum wire_busy busy(const struct engine *s)
{
	return s->state == JUDGING ? WIRE_READING : s->o.ops->busy(s->o.arg);
}

static bool paced(const struct engine *s)
{
	return s->o.ops->paced != NULL && s->o.ops->paced(s->o.arg);
}

/* What the peer's user wants to see of it at once: nothing moves meanwhile. */
static bool worth_telling(enum wire_busy b)
{
	return b == WIRE_SYNCING || b == WIRE_VERIFYING;
}

/* How long after the last PING the next is due. That we are busy no more is told soon: until then the peer bears what
 * it would else do something about. And that we keep to a rate: until then it copies what waits, at that rate. */
static uint64_t ping_after_ns(const struct engine *s, enum wire_busy now)
{
	uint64_t regular = s->peer_timeout_ns / 3;

	if (now == s->told_busy || (now != WIRE_IDLE && !worth_telling(now) && !worth_telling(s->told_busy) && !paced(s)))
		return regular;
	return regular < TELL_NS ? regular : TELL_NS;
}

struct mono engine_deadline(const struct engine *s)
{
	struct mono at = mono_add_ns(s->last_ping, ping_after_ns(s, busy(s)));

	if (engine_over(s))
		return MONO_NEVER;
	at = mono_min(at, mono_add_ns(s->last_heard, s->o.timeout_ns));
	if (waiting(s))
		at = mono_min(at, mono_add_ns(s->last_progress, s->o.timeout_ns));
	if (s->snd != NULL)
		at = mono_min(at, snd_deadline(s->snd));
	if (s->rcv != NULL)
		at = mono_min(at, rcv_deadline(s->rcv));
	return at;
}

static void check_time(struct engine *s, struct mono now)
{
	enum wire_busy doing = busy(s);
	bool at_rate = paced(s);
	struct wire_ping ping = { (uint8_t)doing, 0 };
	struct ptcp_err e;

	/* What it was busy with at the last look kept it until now. */
	if (!waiting(s) || ((doing != WIRE_IDLE || s->was_busy) && !at_rate))
		engine_progress(s, now);
	else if (at_rate && believes(s, ENGINE_BUSY_TIMEOUTS, now))
		s->last_progress = now;
	s->was_busy = doing != WIRE_IDLE;
	if (mono_diff_ns(now, s->last_heard) >= s->o.timeout_ns) {
		err_set(&e, PTCP_ETIMEOUT, "the peer: not heard of for %.3g s "
		    "(check the network and the other host, then run it again)",
		    (double)s->o.timeout_ns / 1e9);
		engine_fail(s, &e);
	} else if (mono_diff_ns(now, s->last_progress) >= s->o.timeout_ns) {
		err_set(&e, PTCP_ETIMEOUT, "the peer: no progress for %.3g s "
		    "(check the network and the other host, then run it again)",
		    (double)s->o.timeout_ns / 1e9);
		engine_fail(s, &e);
	} else if (mono_diff_ns(now, s->last_ping) >= ping_after_ns(s, doing)) {
		s->told_busy = doing;
		ping.tick = ++s->ticks;
		OUTBOX_PUT(&s->out, ping, PING, &ping);
		s->last_ping = now;
	}
}

void engine_tick(struct engine *s, struct mono now)
{
	struct ptcp_err e;

	if (engine_over(s))
		return;
	if (s->snd != NULL) {
		snd_tick(s->snd, now);
		if (engine_over(s))
			return; /* an operation ended it */
		if (s->state == RUNNING && snd_finished(s->snd))
			engine_send_end(s);
	}
	if (s->rcv != NULL)
		rcv_tick(s->rcv);
	check_time(s, now);
	if (s->out.failed && !engine_over(s)) {
		err_set(&e, PTCP_ENOMEM, "control connection: the peer does not read it, or memory is short");
		engine_fail(s, &e);
	}
}
