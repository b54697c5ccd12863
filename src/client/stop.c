/* --stop-after and --stop-at: the transfer ends, as if it were interrupted, and the same command resumes it. */
#include <time.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define CLOCK_S 20 /* the clock may be set, and the host may sleep: the longest time between two looks at the clock */

int stop_take(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_limits *o = &t->o.limits;
	char shown[TEXT_NAME_BYTES];

	if (o->stop_at != NULL && units_parse_next(o->stop_at, time(NULL), &t->stop.at_s) < 0)
		return err_set(e, PTCP_EUSAGE, "--stop-at '%s': no time to come (write a time of the day such as "
		    "06:00, a date such as 2026-11-30 or 2026-11-30T06:00, or seconds since 1970 such as @1700000000)",
		    text_escape(shown, sizeof shown, o->stop_at));
	if (t->o.detach && (o->stop_after_s > 0 || o->stop_at != NULL))
		return err_set(e, PTCP_EUSAGE, "--detach: not with %s, as the servers continue without this command "
		    "(leave one out, or end the transfer by ptcp status --cancel)",
		    o->stop_after_s > 0 ? "--stop-after" : "--stop-at");
	return 0;
}

/* What is complete, of what the sender has listed so far. */
static void say(struct ptcp_task *t, const char *option)
{
	const struct ptcp_progress g = t->session != NULL ? session_progress(t->session) : t->report.last;
	char bytes[UNITS_TEXT_BYTES], total[UNITS_TEXT_BYTES];

	if (g.total_files == 0) {
		err_set(&t->stop.why, PTCP_ESTOPPED, "transfer: stopped at the time of %s, before files were "
		    "transferred (run the same command again)", option);
		return;
	}
	err_set(&t->stop.why, PTCP_ESTOPPED, "transfer: stopped at the time of %s, with %llu of %llu files complete, "
	    "and %s of %s transferred (run the same command again for the rest)", option, (unsigned long long)g.files,
	    (unsigned long long)g.total_files, units_size_text(bytes, g.bytes), units_size_text(total, g.total_bytes));
}

static void wait_on(struct ptcp_task *t);

static void on_time(void *arg)
{
	struct ptcp_task *t = arg;
	bool after = t->stop.after.ns != 0 && mono_now().ns >= t->stop.after.ns;

	if (!after && (t->stop.at_s == 0 || time(NULL) < t->stop.at_s)) {
		wait_on(t);
		return;
	}
	say(t, after ? "--stop-after" : "--stop-at");
	atomic_store(&t->canceled, true);
	loop_wake(t->loop);
}

static void wait_on(struct ptcp_task *t)
{
	struct mono next = t->stop.after, clock;
	int64_t s;

	if (t->stop.at_s != 0) {
		s = t->stop.at_s - time(NULL);
		clock = mono_add_ns(mono_now(), (uint64_t)(s < 1 ? 1 : s > CLOCK_S ? CLOCK_S : s) * NS_PER_S);
		next = next.ns != 0 ? mono_min(next, clock) : clock;
	}
	timer_set(t->stop.timer, next);
}

int stop_begin(struct ptcp_task *t, struct ptcp_err *e)
{
	int r;

	if (t->o.limits.stop_after_s > 0)
		t->stop.after = mono_add_ns(mono_now(), (uint64_t)(t->o.limits.stop_after_s * 1e9));
	if (t->stop.after.ns == 0 && t->stop.at_s == 0)
		return 0;
	if ((r = timer_new(&t->stop.timer, t->loop, on_time, t, e)) == 0)
		wait_on(t);
	return r;
}
