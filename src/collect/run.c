/* The loop of a collection: all transfers are stepped by one thread. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "collect/collect_impl.h"
#include "core/err.h"
#include "core/text.h"

#define TELL_S 0.5
#define SIZING_TIMEOUTS 2.0 /* how long a rehearsal may take: a source that goes on for ever holds nobody up */

/* ---- Stepping ---- */

static double due_s(const struct source *s, double now_s)
{
	int ms;

	if (s->t == NULL)
		return s->retry_at_s;
	ms = ptcp_transfer_timeout_ms(s->t);
	return ms < 0 ? INFINITY : now_s + ms / 1e3;
}

/* Waits for anything to do, until a time at most, and does it. */
static void turn(struct ptcp_collect *c, struct pollfd *fd, double *due, double until_s)
{
	double now_s = collect_now_s(c), first = until_s;
	struct source *s;
	size_t i;

	for (i = 0; i < c->n; i++) {
		s = &c->source[i];
		due[i] = due_s(s, now_s);
		first = fmin(first, due[i]);
		fd[i] = (struct pollfd){ .fd = s->t != NULL ? ptcp_transfer_fd(s->t) : -1, .events = POLLIN };
	}
	poll(fd, c->n, (int)ceil(fmax(0, fmin(first - now_s, TICK_S)) * 1e3));
	now_s = collect_now_s(c);
	for (i = 0; i < c->n; i++) {
		s = &c->source[i];
		if (s->t != NULL && (fd[i].revents != 0 || now_s >= due[i]))
			source_step(s);
		else if (s->t == NULL && now_s >= due[i] && !source_is_over(s))
			source_begin(s);
	}
}

static void cancel_all(struct ptcp_collect *c)
{
	struct source *s;

	for (s = c->source; s < c->source + c->n; s++) {
		s->again = false;
		s->retry_at_s = INFINITY;
		if (s->t != NULL)
			ptcp_transfer_cancel(s->t);
	}
}

static void end_sizing(struct ptcp_collect *c)
{
	struct source *s;

	for (s = c->source; s < c->source + c->n; s++)
		source_end_sizing(s);
}

static bool any_at_work(const struct ptcp_collect *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->source[i].t != NULL || (!source_is_over(&c->source[i]) && isfinite(c->source[i].retry_at_s)))
			return true;
	return false;
}

/* ---- The parts of it ---- */

static void tick(struct ptcp_collect *c, double *tell_at_s)
{
	double now_s = collect_now_s(c);

	monitor_see(c);
	if (!c->o.no_replan)
		allocate_again(c);
	allocate_apply(c);
	if (now_s < *tell_at_s)
		return;
	*tell_at_s = now_s + TELL_S;
	collect_tell(c, PTCP_COLLECT_PROGRESS, NULL, NULL, NULL, 0);
}

/* Until no transfer is at work. */
static void work(struct ptcp_collect *c, struct pollfd *fd, double *due)
{
	double tick_at_s = 0, tell_at_s = 0, next_s;
	bool ending = false;

	while (any_at_work(c)) {
		if (!ending && (atomic_load(&c->cancelled) || c->stop.code != 0)) {
			cancel_all(c);
			ending = true;
		}
		if (c->schedule == NULL || ending) {
			turn(c, fd, due, INFINITY);
			if (collect_now_s(c) >= c->sizing_until_s)
				end_sizing(c);
			continue;
		}
		next_s = c->plan_start_s + schedule_next_s(c->schedule, collect_now_s(c) - c->plan_start_s);
		turn(c, fd, due, fmin(tick_at_s, next_s));
		if (collect_now_s(c) >= tick_at_s) {
			tick(c, &tell_at_s);
			tick_at_s = collect_now_s(c) + TICK_S;
		} else if (collect_now_s(c) >= next_s) {
			allocate_apply(c);
		}
	}
}

/* How much there is of what the overlay does not say. */
static void measure(struct ptcp_collect *c, struct pollfd *fd, double *due)
{
	struct source *s;

	c->sizing_until_s = collect_now_s(c) + SIZING_TIMEOUTS * c->connect.timeout_s;
	for (s = c->source; s < c->source + c->n; s++)
		if ((s->sizing = s->data_bytes == PTCP_UNKNOWN))
			source_begin(s);
	work(c, fd, due);
}

static int make_dest(const struct ptcp_collect *c, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (mkdir(c->dest, 0777) == 0 || errno == EEXIST)
		return 0;
	return err_sys(e, err_from_errno(errno), "%s: cannot be made", text_escape(shown, sizeof shown, c->dest));
}

static int outcome(const struct ptcp_collect *c, struct ptcp_err *e)
{
	const struct source *s, *first = NULL;
	size_t done = 0, failed = 0;

	for (s = c->source; s < c->source + c->n; s++) {
		done += s->told->state == PTCP_COLLECT_DONE || s->told->code == PTCP_EPARTIAL;
		if (s->told->state == PTCP_COLLECT_FAILED && failed++ == 0)
			first = s;
	}
	if (c->stop.code != 0)
		return err_set(e, c->stop.code, "%s", c->stop.msg);
	if (atomic_load(&c->cancelled) && done + failed < c->n)
		return err_set(e, PTCP_ECANCELED, "collect: interrupted (run the same command again: it "
		    "goes on from here)");
	if (failed == 0)
		return 0;
	if (done == 0)
		return err_set(e, first->told->code, "collect: nothing is done, the first to fail was %s: %s",
		    first->name, first->why);
	return err_set(e, PTCP_EPARTIAL, "collect: of %zu of %zu sources not all could be had (see above, and run "
	    "the same command again)", failed, c->n);
}

static int collect(struct ptcp_collect *c, struct pollfd *fd, double *due, struct ptcp_err *e)
{
	struct source *s;
	int r;

	c->start = mono_now();
	if ((r = make_dest(c, e)) < 0)
		return r;
	measure(c, fd, due);
	if (c->stop.code != 0 || atomic_load(&c->cancelled))
		return outcome(c, e);
	c->start = mono_now();
	if ((r = allocate_first(c, e)) < 0)
		return r;
	drift_init(&c->drift, collect_now_s(c));
	c->planned_s = c->plan_start_s + c->schedule->end_s;
	for (s = c->source; s < c->source + c->n; s++) {
		s->came_at_s = collect_now_s(c);
		if (!source_is_over(s))
			source_begin(s);
	}
	work(c, fd, due);
	c->end_s = collect_now_s(c);
	collect_tell(c, PTCP_COLLECT_PROGRESS, NULL, NULL, NULL, 0);
	return outcome(c, e);
}

int ptcp_collect_run(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct pollfd *fd;
	double *due;
	int r;

	if (c->ran)
		return err_set(e, PTCP_EUSAGE, "a collection runs once");
	c->ran = true;
	fd = calloc(c->n + 1, sizeof *fd);
	due = calloc(c->n + 1, sizeof *due);
	r = fd != NULL && due != NULL ? collect(c, fd, due, e) : err_nomem(e);
	free(fd);
	free(due);
	return r;
}
