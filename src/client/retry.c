/* Further attempts. Of a transfer whose session was lost with its connection: with pauses, for at most retry_for_s
 * since data last moved; the new session resumes what the earlier sessions have transferred. To a busy server: in its
 * queue, or by connecting again from time to time. */
#include "client/task_impl.h"
#include "core/err.h"
#include "core/units.h"
#include "net/tls.h"

#define FIRST_PAUSE_NS NS_PER_S
#define DOUBLINGS 6u /* at most 64 s between two attempts, and a quarter */

/* The next attempt may succeed: the network, or the other host, has failed, or a relay has given the room to
 * others. Not after PTCP_ESUPERSEDED: two runs would supersede each other by turns. */
bool retry_may_help(int code)
{
	return code == PTCP_ECONNECT || code == PTCP_EPEER || code == PTCP_ETIMEOUT || code == PTCP_EBUSY;
}

/* An input cannot be read again. */
static bool can_repeat(const struct ptcp_task *t)
{
	return t->files.input == NULL || pipe_source_is_whole(t->files.input);
}

bool retry_is_due(const struct ptcp_task *t)
{
	return can_repeat(t) && striping_may_go_on(t) && t->retry.worked && retry_may_help(t->result) &&
	    !atomic_load(&t->canceled) && t->session == NULL && t->remote_job == NULL && t->prober == NULL &&
	    (double)mono_diff_ns(mono_now(), t->retry.moved) < t->o.retry_for_s * 1e9;
}

void retry_worked(struct ptcp_task *t)
{
	if (t->retry.worked)
		return;
	t->retry.worked = true;
	t->retry.moved = mono_now();
}

void retry_moved(struct ptcp_task *t, uint64_t bytes)
{
	if (bytes == 0 || bytes == t->retry.bytes)
		return;
	t->retry.bytes = bytes;
	t->retry.moved = mono_now();
	t->retry.attempts = 0;
}

void retry_report(struct ptcp_task *t, unsigned attempt, uint64_t wait_ns, const char *why)
{
	struct ptcp_event ev = { .type = PTCP_EVENT_RECONNECTING, .attempt = attempt, .in_s = (double)wait_ns / 1e9,
		.text = why };

	task_emit(t, &ev);
}

void retry_give_up(struct ptcp_task *t)
{
	struct ptcp_err last = t->why;

	if (t->avoids_movers && t->retry.attempts == 0)
		return; /* the first session had no stream */
	/* not the reason of an earlier attempt */
	if (t->result < 0 && t->retry.worked && striping_may_go_on(t) && last.code == PTCP_ECONNECT)
		t->result = err_set(&t->why, PTCP_EPEER, "transfer: cut off, and not continued within %.4g s: %s (run "
		    "the same command again to resume it)", t->o.retry_for_s, last.msg);
}

static void on_retry_timer(void *arg)
{
	struct ptcp_task *t = arg;

	t->over = true;
	loop_stop(t->loop);
}

int retry_pause(struct ptcp_task *t, struct ptcp_err *e)
{
	unsigned n = t->retry.attempts++;
	uint8_t random = 0;
	uint64_t wait;
	int r;

	tls_random(&random, sizeof random, e);
	wait = backoff_ns(FIRST_PAUSE_NS, n, DOUBLINGS, random);
	if ((r = timer_new(&t->retry.timer, t->loop, on_retry_timer, t, e)) < 0)
		return r;
	timer_set(t->retry.timer, mono_add_ns(mono_now(), wait));
	retry_report(t, n + 1, wait, t->why.msg);
	t->over = false;
	t->result = 0;
	loop_reset(t->loop);
	return 0;
}

void retry_pause_end(struct ptcp_task *t)
{
	timer_free(t->retry.timer);
	t->retry.timer = NULL;
}

/* ---- Waits for a busy server ---- */

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
