/* The collection handle: options, events, results, and the loop. */
#include "collect/collect_impl.h"
#include "collect/collect_parameters.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/shared_cause.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "plan/rate_limits.h"

const char *ptcp_collect_state_name(enum ptcp_collect_state s)
{
	static const char *const names[] = { [PTCP_COLLECT_WAITING] = "waiting", [PTCP_COLLECT_RUNNING] = "running",
		[PTCP_COLLECT_DONE] = "done", [PTCP_COLLECT_FAILED] = "failed" };

	return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}

void ptcp_collect_opts_init(struct ptcp_collect_opts *o)
{
	*o = (struct ptcp_collect_opts){ .size = sizeof *o, PTCP_OPTIONS_COLLECT(PTCP_NO_ROW, OPTS_INITIAL) };
}

/* ---- Events and results ---- */

void ptcp_collect_cancel(struct ptcp_collect *c)
{
	atomic_store(&c->canceled, true); /* poll() returns within a tick */
}

void ptcp_collect_result_init(struct ptcp_collect_result *r)
{
	*r = (struct ptcp_collect_result){ .size = sizeof *r };
}

void ptcp_collect_result(const struct ptcp_collect *c, struct ptcp_collect_result *r)
{
	struct ptcp_collect_result all = { .seconds = c->end_s, .planned_s = c->planned_s, .replans = c->replans };
	size_t i;

	if (c->schedule != NULL)
		all.last_planned_s = c->plan_start_s + c->schedule->end_s;
	for (i = 0; i < c->n; i++) {
		all.bytes += c->status[i].progress.bytes;
		all.wire_bytes += c->status[i].progress.wire_bytes;
		all.resumed_bytes += c->status[i].progress.resumed_bytes;
		all.files += c->status[i].progress.files;
		all.failed += c->status[i].progress.failed;
		all.sources_done += c->status[i].state == PTCP_COLLECT_DONE;
		all.sources_failed += c->status[i].state == PTCP_COLLECT_FAILED;
	}
	results_copy(r, &all, sizeof all);
}

size_t ptcp_collect_sources(const struct ptcp_collect *c) { return c->n; }

void ptcp_collect_source(const struct ptcp_collect *c, size_t i, struct ptcp_collect_source *out)
{
	*out = c->status[i];
}

void ptcp_collect_link(const struct ptcp_collect *c, size_t i, struct ptcp_collect_link *out)
{
	*out = c->link[i];
}

/* ---- The overlay file ---- */

/* Links with a rate of their own that was found to differ. */
static size_t list_found(const struct ptcp_collect *c, struct ptcp_overlay_found *out)
{
	double bps;
	size_t i, n = 0;

	for (i = 0; i < c->n_links; i++) {
		bps = limits_bps(c->overlay, i);
		if (!c->failed_link[i] && !c->limit_doubted[i] && bps >= 1 && isfinite(bps) &&
		    limits_curve(c->overlay, i) == NULL && !limits_windowed(c->overlay, (int)i) &&
		    !(fabs(bps - c->limit_first_bps[i]) <= COLLECT_CHANGED_RATIO * c->limit_first_bps[i]))
			out[n++] = (struct ptcp_overlay_found){ i, (uint64_t)bps, PTCP_UNKNOWN };
	}
	return n;
}

/* Links are written by index. */
static int check_same_links(const struct ptcp_collect *c, const char *file, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], was[200], now[200];
	struct ptcp_overlay *o;
	bool same;
	size_t i;
	int r;

	if ((r = ptcp_overlay_load(&o, file, e)) < 0)
		return r;
	same = ptcp_overlay_links(o) == c->n_links;
	for (i = 0; same && i < c->n_links; i++)
		same = strcmp(limits_name(o, i, now, sizeof now), limits_name(c->overlay, i, was, sizeof was)) == 0;
	ptcp_overlay_free(o);
	return same ? 0 : err_set(e, PTCP_ECONFIG, "%s: the links have changed during the collection, so that its rates cannot "
	    "be written", text_escape(shown, sizeof shown, file));
}

int ptcp_collect_save(const struct ptcp_collect *c, const char *from, const char *to, struct ptcp_err *e)
{
	struct ptcp_shared_bottleneck shared[SHARED_CAUSE_MAX];
	struct ptcp_overlay_found *found = calloc(c->n_links + 1, sizeof *found);
	size_t *links = calloc(SHARED_CAUSE_MAX * (c->n_links + 1), sizeof *links), n;
	int r;

	if (found == NULL || links == NULL)
		r = err_nomem(e);
	else if ((r = check_same_links(c, from, e)) == 0)
		r = ptcp_overlay_save(from, to, found, list_found(c, found), e);
	n = r == 0 ? shared_cause_list(c->overlay, shared, links, SHARED_CAUSE_MAX * c->n_links) : 0;
	if (n > 0)
		r = ptcp_overlay_save_shared(to, to, shared, n, e);
	free(found);
	free(links);
	return r;
}

/* ---- Creation ---- */

static int add_sources(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct ptcp_overlay_host h;
	size_t i;

	for (i = 0; i < ptcp_overlay_hosts(c->overlay); i++) {
		ptcp_overlay_host(c->overlay, i, &h);
		if ((int)i == ptcp_overlay_destination(c->overlay) || h.data_bytes == 0)
			continue;
		if (h.path == NULL)
			return err_set(e, PTCP_ECONFIG, "host %s: has data, but no path to collect it from (give it one)", h.name);
		if (h.address == NULL)
			return err_set(e, PTCP_ECONFIG, "host %s: has no address in the overlay (give it one)", h.name);
		c->source[c->n] = (struct source_transfer){ .c = c, .status = &c->status[c->n], .name = h.name,
			.address = h.address, .path = h.path, .data_bytes = h.data_bytes, .retry_at_s = INFINITY };
		c->status[c->n++].host = (int)i;
		if ((c->source[c->n - 1].warned = calloc(c->n_links + 1, sizeof(bool))) == NULL)
			return err_nomem(e);
	}
	if (c->n == 0)
		return err_set(e, PTCP_ECONFIG, "overlay: no host has data to collect (give hosts a path)");
	return 0;
}

static int take_opts(struct ptcp_collect *c, const struct ptcp_transfer_opts *connect,
    const struct ptcp_collect_opts *callers, struct ptcp_err *e)
{
	const struct ptcp_collect_opts *o = &c->o;
	int r;

	ptcp_collect_opts_init(&c->o);
	ptcp_transfer_opts_init(&c->connect);
	if ((r = opts_copy(&c->o, sizeof c->o, callers, "ptcp_collect_opts_init", e)) == 0)
		r = opts_copy(&c->connect, sizeof c->connect, connect, "ptcp_transfer_opts_init", e);
	PTCP_OPTIONS_COLLECT(PTCP_NO_ROW, OPTS_CHECK)
	return r;
}

static int make_room(struct ptcp_collect *c, const char *dest, struct ptcp_err *e)
{
	size_t hosts = ptcp_overlay_hosts(c->overlay), i;

	int r;

	if ((r = shared_cause_reserve(c->overlay, e)) < 0)
		return r;
	c->n_links = ptcp_overlay_links(c->overlay);
	c->n_limits = limits_count(c->overlay);
	c->max_bottlenecks = hosts + c->overlay->ngroups;
	if ((c->dest = strdup(dest[0] != '\0' ? dest : ".")) == NULL ||
	    (c->source = calloc(hosts, sizeof *c->source)) == NULL ||
	    (c->status = calloc(hosts, sizeof *c->status)) == NULL ||
	    (c->flow = calloc(hosts * PTCP_PATHS_MAX, sizeof *c->flow)) == NULL ||
	    (c->link = calloc(c->n_links + 1, sizeof *c->link)) == NULL ||
	    (c->failed_link = calloc(c->n_links + 1, sizeof *c->failed_link)) == NULL ||
	    (c->limit_first_bps = calloc(c->n_limits + 1, sizeof *c->limit_first_bps)) == NULL ||
	    (c->limit_doubted = calloc(c->n_limits + 1, sizeof *c->limit_doubted)) == NULL ||
	    (c->limit_bps = calloc(c->n_limits + 1, sizeof *c->limit_bps)) == NULL ||
	    (c->divided = calloc(hosts * PTCP_PATHS_MAX, sizeof *c->divided)) == NULL ||
	    (c->bottleneck = calloc(c->max_bottlenecks, sizeof *c->bottleneck)) == NULL ||
	    (c->load_bps = calloc(c->n_limits + 1, sizeof *c->load_bps)) == NULL ||
	    (c->found_bps = calloc(c->n_limits + 1, sizeof *c->found_bps)) == NULL)
		return err_nomem(e);
	for (i = 0; i < c->n_limits; i++)
		c->limit_first_bps[i] = limits_bps(c->overlay, i);
	return 0;
}

static int check_launch(const struct ptcp_overlay *o, struct ptcp_err *e)
{
	if (o->launch == NULL || o->fault == NULL)
		return 0;
	return err_set(e, PTCP_ECONFIG, "%s, whose launch command runs programs here: %s", o->file, o->fault);
}

int ptcp_collect_new(struct ptcp_collect **out, struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const char *dest, const struct ptcp_collect_opts *opts,
    struct ptcp_err *e)
{
	struct ptcp_collect *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL)
		return err_nomem(e);
	atomic_init(&c->canceled, false);
	c->overlay = o;
	c->starved_at_s = -INFINITY;
	drift_init(&c->drift);
	if ((r = check_launch(o, e)) == 0 && (r = take_opts(c, connect, opts, e)) == 0 && (r = make_room(c, dest, e)) == 0)
		r = add_sources(c, e);
	if (r < 0)
		ptcp_collect_free(c);
	else
		*out = c;
	return r;
}

void ptcp_collect_free(struct ptcp_collect *c)
{
	size_t i;

	if (c == NULL)
		return;
	atomic_store(&c->canceled, true); /* ends the planner */
	for (i = 0; i < c->n; i++) {
		source_reset(&c->source[i]);
		free(c->source[i].warned);
	}
	planner_thread_free(c->planner);
	ptcp_plan_free(c->plan);
	schedule_free(c->schedule);
	free(c->dest);
	free(c->source);
	free(c->status);
	free(c->flow);
	free(c->link);
	free(c->failed_link);
	free(c->limit_first_bps);
	free(c->limit_doubted);
	free(c->limit_bps);
	free(c->found_bps);
	free(c->load_bps);
	free(c->divided);
	free(c->bottleneck);
	free(c);
}

/* ---- The loop: one thread steps all transfers ---- */

/* Waits until until_s for due transfers, and steps them. */
static void turn(struct ptcp_collect *c, struct pollfd *fd, double *due, double until_s)
{
	double now_s = collect_now_s(c), first = until_s;
	struct source_transfer *s;
	size_t i;
	int ms;

	for (i = 0; i < c->n; i++) {
		s = &c->source[i];
		ms = s->t != NULL ? ptcp_task_timeout_ms(s->t) : -1;
		due[i] = s->t == NULL ? s->retry_at_s : ms < 0 ? INFINITY : now_s + ms / 1e3;
		first = fmin(first, due[i]);
		fd[i] = (struct pollfd){ .fd = s->t != NULL ? ptcp_task_fd(s->t) : -1, .events = POLLIN };
	}
	poll(fd, c->n, (int)ceil(fmax(0, fmin(first - now_s, TICK_S)) * 1e3));
	now_s = collect_now_s(c);
	for (i = 0; i < c->n; i++) {
		s = &c->source[i];
		if (s->t != NULL && (fd[i].revents != 0 || now_s >= due[i]))
			source_step(s);
		else if (s->t == NULL && now_s >= due[i] && !source_is_over(s))
			source_start(s);
	}
}

static bool any_at_work(const struct ptcp_collect *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->source[i].t != NULL || (!source_is_over(&c->source[i]) && isfinite(c->source[i].retry_at_s)))
			return true;
	return false;
}

/* Runs all transfers to their end. */
static void work(struct ptcp_collect *c, struct pollfd *fd, double *due)
{
	double tick_at_s = 0, report_at_s = 0, next_s;
	struct source_transfer *s;
	bool ending;

	while (any_at_work(c)) {
		ending = collect_is_ending(c);
		for (s = c->source; s < c->source + c->n && ending; s++)
			source_end(s);
		if (c->schedule == NULL || ending) {
			turn(c, fd, due, INFINITY);
			for (s = c->source; s < c->source + c->n && collect_now_s(c) >= c->sizing_until_s; s++)
				if (s->t != NULL && s->sizing)
					ptcp_task_cancel(s->t); /* its result so far counts */
			continue;
		}
		next_s = c->plan_start_s + schedule_next_s(c->schedule, collect_now_s(c) - c->plan_start_s);
		turn(c, fd, due, fmin(tick_at_s, next_s));
		if (collect_now_s(c) >= tick_at_s) {
			monitor_update(c);
			if (!c->o.no_replan)
				allocate_replan(c);
			allocate_rates(c);
			if (collect_now_s(c) >= report_at_s) {
				report_at_s = collect_now_s(c) + COLLECT_REPORT_S;
				monitor_report(c, PTCP_COLLECT_PROGRESS, NULL, NULL, NULL, 0, 0);
			}
			tick_at_s = collect_now_s(c) + TICK_S;
		} else if (collect_now_s(c) >= next_s) {
			allocate_rates(c);
		}
	}
}

static int outcome(const struct ptcp_collect *c, struct ptcp_err *e)
{
	const struct source_transfer *s, *first = NULL;
	size_t done = 0, failed = 0, vanished = 0;

	for (s = c->source; s < c->source + c->n; s++) {
		done += s->status->state == PTCP_COLLECT_DONE || s->status->code == PTCP_EPARTIAL;
		vanished += s->status->code == PTCP_EVANISHED;
		if (s->status->state == PTCP_COLLECT_FAILED && failed++ == 0)
			first = s;
	}
	if (atomic_load(&c->canceled) && done < c->n)
		return err_set(e, PTCP_ECANCELED, "collect: interrupted (run the same command again to resume)");
	if (c->fatal.code != 0) {
		if (e != NULL)
			*e = c->fatal;
		return c->fatal.code;
	}
	if (failed == 0)
		return vanished == 0 ? 0 : err_set(e, PTCP_EVANISHED, "collect: files of %zu of %zu sources vanished, the "
		    "remaining files are complete (run the same command again)", vanished, c->n);
	if (done == 0) {
		err_set(e, first->status->code, "collect: no source is done, the first failure: %s: %s", first->name, first->why);
		if (e != NULL)
			e->sys = first->status->sys;
		return first->status->code;
	}
	return err_set(e, PTCP_EPARTIAL, "collect: %zu of %zu sources are incomplete (see above, and run "
	    "the same command again)", failed, c->n);
}

static int collect(struct ptcp_collect *c, struct pollfd *fd, double *due, struct ptcp_err *e)
{
	struct source_transfer *s;
	int r;

	c->start = mono_now();
	c->sizing_until_s = collect_now_s(c) + COLLECT_SIZING_TIMEOUTS * c->connect.timeout_s;
	for (s = c->source; s < c->source + c->n; s++)
		if ((s->sizing = s->data_bytes == PTCP_UNKNOWN))
			source_start(s);
	work(c, fd, due); /* counts the data of sources with unknown size */
	if (collect_is_ending(c))
		return outcome(c, e);
	c->start = mono_now();
	if ((r = allocate_first(c, e)) < 0)
		return r == PTCP_ECANCELED ? outcome(c, e) : r;
	c->planned_s = c->plan_start_s + c->schedule->end_s;
	for (s = c->source; s < c->source + c->n; s++) {
		s->progress_at_s = collect_now_s(c);
		if (!source_is_over(s))
			source_start(s);
	}
	work(c, fd, due);
	c->end_s = collect_now_s(c);
	impact_end(c);
	monitor_report(c, PTCP_COLLECT_PROGRESS, NULL, NULL, NULL, 0, 0);
	return outcome(c, e);
}

/* A collection that fails without data, for instance for lack of a plan, leaves no directory. */
static int collect_into_dest(struct ptcp_collect *c, struct pollfd *fd, double *due, struct ptcp_err *e)
{
	bool made = mkdir(c->dest, 0777) == 0;
	char shown[TEXT_NAME_BYTES];
	int r;

	if (!made && errno != EEXIST)
		return err_sys(e, err_from_errno(errno), "%s", text_escape(shown, sizeof shown, c->dest));
	if ((r = collect(c, fd, due, e)) < 0 && made)
		rmdir(c->dest); /* removes an empty directory only */
	return r;
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
	r = fd != NULL && due != NULL ? collect_into_dest(c, fd, due, e) : err_nomem(e);
	free(fd);
	free(due);
	return r;
}
