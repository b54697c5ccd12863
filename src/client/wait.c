/* Waits for a busy server: in its queue, or by connecting again from time to time. */
#include "client/task_impl.h"
#include "core/units.h"
#include "net/tls.h"

#define PAUSE_NS (500 * NS_PER_MS) /* first pause between connections to a busy server; later up to 8 times */
#define PAUSES_DOUBLED 3
#define CLOSED_NS (10 * NS_PER_S)  /* how long to try a host that closes connections: it may be no busy ptcp server */

void wait_begin(struct ptcp_task *t)
{
	t->wait.until = mono_add_ns(mono_now(), (uint64_t)(t->o.wait_s * 1e9));
	t->wait.until_closed = mono_min(t->wait.until, mono_add_ns(mono_now(), CLOSED_NS));
	t->wait.pausing = t->wait.waited = t->wait.has_answered = t->wait.unanswered = false;
	t->wait.pauses = 0;
}

uint32_t wait_ms(const struct ptcp_task *t)
{
	struct mono now = mono_now();

	return now.ns >= t->wait.until.ns ? 0 : (uint32_t)(mono_diff_ns(t->wait.until, now) / NS_PER_MS + 1);
}

void wait_report(struct ptcp_task *t, uint32_t ahead, const char *why)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_WAITING, .ahead = ahead, .text = why };

	t->wait.has_answered |= ahead != PTCP_AHEAD_UNKNOWN;
	if (t->wait.waited && t->wait.ahead == ahead)
		return;
	t->wait.waited = true;
	t->wait.ahead = ahead;
	task_emit(t, &ev);
}

bool wait_pause(struct ptcp_task *t, struct mono until, const char *why)
{
	unsigned doubled = t->wait.pauses < PAUSES_DOUBLED ? t->wait.pauses : PAUSES_DOUBLED;
	struct mono now = mono_now(), next;
	uint8_t random;

	if (t->report.announced || atomic_load(&t->canceled) || t->target.ssh || t->o.remote.launch != NULL ||
	    tls_random(&random, 1, NULL) < 0)
		return false;
	next = mono_add_ns(now, (PAUSE_NS << doubled) * (128 + random) / 256); /* a crowd must not return at once */
	if (next.ns >= until.ns)
		return false;
	t->wait.pausing = true;
	t->wait.pauses++;
	timer_set(t->timer, next);
	wait_report(t, PTCP_AHEAD_UNKNOWN, why);
	return true;
}

bool wait_after(struct ptcp_task *t, const struct ptcp_err *why)
{
	t->wait.has_answered |= why->code == PTCP_EBUSY;
	if (why->code == PTCP_EBUSY || (t->wait.has_answered && retry_may_help(why->code)))
		return wait_pause(t, t->wait.until, why->msg);
	/* A crowded server closes the oldest connections that have not authenticated, some of them just as they do. */
	return t->wait.unanswered && wait_pause(t, t->wait.until_closed, why->msg);
}
