/* Planning of the remaining data, and rates of the transfers. */
#include <math.h>
#include <string.h>
#include <sys/statvfs.h>

#include "collect/collect_impl.h"
#include "collect/collect_parameters.h"
#include "core/err.h"
#include "plan/rate_limits.h"

/* min assumed space at the destination, since present files may be replaced */
#define ROOM_MIN_BYTES (UINT64_C(64) << 20)

/* ---- Rates of paths ---- */

/* Whether the path crosses a limit that is currently zero, as a closed window. */
static bool is_closed(const struct ptcp_collect *c, const struct route *r)
{
	size_t i;

	for (i = 0; i < r->n_limits; i++)
		if (!(limits_bps(c->overlay, r->limit[i]) >= 1))
			return true;
	return false;
}

/* Sums the planned rates of a source's paths, except closed paths after the end of the plan; returns the planned rate
 * on missing paths, which its paths must carry. */
static double sum_planned(struct source_transfer *s, double t_s)
{
	const struct schedule *p = s->c->schedule;
	double elsewhere = 0;
	size_t i;
	int k;

	for (i = 0; i < s->candidates.n; i++)
		s->route[i].planned_bps = 0;
	for (i = 0; i < p->n; i++) {
		if (p->path[i].source != s->status->host)
			continue;
		k = candidates_find(&s->candidates, p->path[i].hop, p->path[i].nhops);
		if (k >= 0 && t_s >= p->end_s && is_closed(s->c, &s->route[k]))
			continue;
		if (k >= 0)
			s->route[k].planned_bps += schedule_bps(p, i, t_s);
		else
			elsewhere += schedule_bps(p, i, t_s);
	}
	return elsewhere;
}

static void spread_rate(struct source_transfer *s, double bps)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->candidates.n; i++)
		sum += s->route[i].planned_bps;
	for (i = 0; i < s->candidates.n; i++)
		s->route[i].planned_bps += sum > 0 ? bps * s->route[i].planned_bps / sum : i == 0 ? bps : 0;
}

/* Whether a limit of the path was lowered below its initial rate, and may have recovered. */
static bool was_lowered(const struct ptcp_collect *c, const struct route *r)
{
	size_t i;

	for (i = 0; i < r->n_limits; i++)
		if (limits_bps(c->overlay, r->limit[i]) < c->limit_first_bps[r->limit[i]])
			return true;
	return false;
}

/* Min rate of the path's limits, by initial or current rates. */
static double min_limit_bps(const struct route *r, const double *limit_bps)
{
	double least = INFINITY;
	size_t i;

	for (i = 0; i < r->n_limits; i++)
		least = fmin(least, limit_bps[r->limit[i]]);
	return least;
}

/* Rate including extra rate for catching up. */
static double boosted_bps(const struct source_transfer *s, const struct route *r)
{
	double extra = s->extra_bps;

	if (r->bound || !(extra > 0) || (r->counted && !(r->assigned_bps > 0)))
		return 0;
	if (impact_is_limited(r))
		extra = fmin(extra, fmax(0, r->bottleneck->spare_bps) / (double)r->bottleneck->late);
	return extra > 0 ? fmin(r->assigned_bps + extra, min_limit_bps(r, s->c->limit_bps)) : 0;
}

/* Assigned rate, or the rate of a probe. */
static double rate_for(const struct source_transfer *s, const struct route *r)
{
	double bps = r->assigned_bps;

	if (drift_is_probing(&s->c->drift) && !s->c->o.no_replan && !r->bound && !impact_is_limited(r))
		bps = drift_probe_bps(&s->c->drift, bps, was_lowered(s->c, r) ? min_limit_bps(r,
		    s->c->limit_first_bps) : 0);
	return bps;
}

/* During a test for competing flows. */
static double tested_bps(const struct route *r, double bps)
{
	return !(r->test_bps > 0) ? bps : r->test_bps > 1 ? fmin(bps, r->test_bps / PACE) : 0;
}

static uint64_t pace(double bps)
{
	if (!(bps > 0))
		return PTCP_PATH_IDLE;
	return isfinite(bps) ? (uint64_t)fmax(PACE * bps, ALLOCATE_RATE_MIN_BPS) : 0;
}

static bool is_steady(uint64_t bps, uint64_t before)
{
	return fabs((double)bps - (double)before) <= ALLOCATE_STEADY_RATIO * (double)before;
}

/* Extra rate changes all the time; sets changes above ALLOCATE_STEADY_RATIO only. */
static void set_rates(struct source_transfer *s, double now_s)
{
	uint64_t bps, due;
	struct route *r;
	size_t i;

	for (i = 0; i < s->candidates.n; i++) {
		r = &s->route[i];
		due = s->planned ? pace(rate_for(s, r)) : 0;
		bps = s->planned ? pace(tested_bps(r, fmax(rate_for(s, r), boosted_bps(s, r)))) : 0;
		if (!is_steady(due, r->regular_bps))
			r->since_s = now_s;
		if (due > r->regular_bps && r->since_s == now_s)
			r->grown_s = now_s;
		if (bps != r->set_bps && (r->test_bps > 0 || due != r->regular_bps || bps == due ||
		    !is_steady(bps, r->set_bps)) && ptcp_transfer_set_path_rate(s->t, i, bps, NULL) == 0)
			r->set_bps = bps;
		r->regular_bps = due;
	}
}

/* Moves the overlay's windows; returns the present time. */
static double pass_time(struct ptcp_collect *c)
{
	double now_s = collect_now_s(c);

	limits_pass(c->overlay, now_s - c->overlay_s);
	c->overlay_s = now_s;
	return now_s;
}

/* Assigns each path its planned rate and a share of the spare capacity. In a plan with minimum makespan
 * only one source or bottleneck is busy until the end; all other sources finish with it. They may as well
 * finish early: a finished source cannot be late, and its share is free for others. */
static void assign_rates(struct ptcp_collect *c)
{
	struct divide_flow *f = c->divided;
	struct source_transfer *s;
	struct route *r;
	size_t i;

	for (i = 0; i < c->n_limits; i++)
		c->limit_bps[i] = limits_bps(c->overlay, i);
	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			*f++ = (struct divide_flow){ .limit = r->limit, .n_limits = r->n_limits,
				.weight = s->planned ? r->planned_bps : 0 };
	divide_fairly(c->divided, (size_t)(f - c->divided), c->limit_bps, c->n_limits, 1, ALLOCATE_RAISE_MAX,
	    c->found_bps, c->load_bps);
	for (f = c->divided, s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			r->assigned_bps = (f++)->rate;
}

/* Updates the extra rate of a source behind the plan (at our pace), unless its data may be stored at
 * relays. Ignores paths with a recent start or change. During the first probe, sources compete and none is late. */
static void update_extra(struct source_transfer *s, double now_s)
{
	const struct ptcp_collect *c = s->c;
	double given = 0, got = 0, stored_bytes = 0, bps, window = drift_window_s(&c->drift, INFINITY);
	double passed_s = now_s - c->plan_start_s;
	const struct route *r;

	if (drift_is_starting(&c->drift))
		return;
	for (r = s->route; r < s->route + s->candidates.n; r++) {
		bps = PACE * r->assigned_bps;
		given += bps;
		if (s->extra_bps > 0 || now_s - fmax(r->since_s, s->flows_since_s) >= window)
			bps = fmin(bps, monitor_route_bps(r, now_s, window));
		got += bps;
		stored_bytes += (double)s->candidates.at[r - s->route].stored_bytes;
	}
	s->extra_bps = c->o.no_replan || stored_bytes > 0 ? 0 : catch_up_bps(s->extra_bps,
	    (double)source_left_bytes(s) -
	    schedule_left_bytes(c->schedule, s->status->host, PACE * passed_s), given, got,
	    c->schedule->end_s - passed_s);
}

void allocate_rates(struct ptcp_collect *c)
{
	double now_s;
	struct source_transfer *s;

	if (c->plan == NULL)
		return;
	now_s = pass_time(c);
	for (s = c->source; s < c->source + c->n; s++)
		spread_rate(s, sum_planned(s, now_s - c->plan_start_s));
	assign_rates(c);
	for (s = c->source; s < c->source + c->n; s++)
		update_extra(s, now_s);
	impact_spare(c);
	for (s = c->source; s < c->source + c->n; s++) {
		if (s->t != NULL && !s->sizing)
			set_rates(s, now_s);
	}
}

/* ---- Replanning ---- */

/* Whether all of the source's paths cross a limit that is currently zero. */
static bool is_cut_off(const struct source_transfer *s)
{
	size_t i;

	for (i = 0; i < s->candidates.n; i++)
		if (!is_closed(s->c, &s->route[i]))
			return false;
	return s->candidates.n > 0;
}

/* Sources in the plan: initially all, later those connected and reachable. */
static bool is_included(const struct source_transfer *s)
{
	if (source_is_over(s))
		return false;
	return s->c->plan == NULL || (s->t != NULL && s->status->state == PTCP_COLLECT_RUNNING && !is_cut_off(s));
}

/* Whether the transfer lacks paths with much planned data that a restarted transfer would have. */
static bool lacks_paths(const struct source_transfer *s)
{
	const struct schedule *p = s->c->schedule;
	double all = 0, elsewhere = 0;
	struct candidates other;
	size_t i;

	if (candidates_choose(&other, s->c->overlay, p, s->status->host, NULL) < 0)
		return false;
	for (i = 0; i < p->n; i++) {
		if (p->path[i].source != s->status->host)
			continue;
		all += p->path[i].bytes;
		if (candidates_find(&s->candidates, p->path[i].hop, p->path[i].nhops) < 0 &&
		    candidates_find(&other, p->path[i].hop, p->path[i].nhops) >= 0)
			elsewhere += p->path[i].bytes;
	}
	candidates_fini(&other);
	return elsewhere > ALLOCATE_ELSEWHERE_BYTES && elsewhere > ALLOCATE_ELSEWHERE_RATIO * all;
}

/* Sets the data of each source, at most the free space at the destination. */
static int set_data(struct ptcp_collect *c, struct ptcp_err *e)
{
	uint64_t room = DATA_MAX_BYTES, left;
	struct source_transfer *s;
	struct statvfs v;
	int r;

	if (statvfs(c->dest, &v) == 0 && (room = (uint64_t)v.f_bavail * v.f_frsize) < ROOM_MIN_BYTES)
		room = ROOM_MIN_BYTES;
	for (s = c->source; s < c->source + c->n; s++) {
		left = is_included(s) ? source_left_bytes(s) : 0;
		s->truncated = left > room;
		if ((r = ptcp_overlay_set_data(c->overlay, s->name, s->truncated ? room : left, e)) < 0)
			return r;
	}
	return 0;
}

/* Checks the paths of all sources before any transfer starts. */
static int check_paths(const struct ptcp_collect *c, const struct schedule *schedule, struct ptcp_err *e)
{
	struct candidates v;
	size_t i;
	int r;

	for (i = 0; i < c->n; i++) {
		if ((r = candidates_choose(&v, c->overlay, schedule, c->source[i].status->host, e)) < 0)
			return r;
		candidates_fini(&v);
	}
	return 0;
}

/* Adopts a plan from its time 0 on, the start of planning: sources continued meanwhile. */
static void adopt(struct ptcp_collect *c, struct ptcp_plan *plan, struct schedule *schedule, const char *why)
{
	struct source_transfer *s;

	for (s = c->source; s < c->source + c->n; s++)
		s->planned = is_included(s) && source_left_bytes(s) > 0;
	ptcp_plan_free(c->plan);
	schedule_free(c->schedule);
	c->plan = plan;
	c->schedule = schedule;
	c->plan_start_s = c->next_start_s;
	for (s = c->source; s < c->source + c->n; s++)
		if (s->t != NULL && s->planned && lacks_paths(s))
			source_restart(s);
	drift_changed(&c->drift, collect_now_s(c));
	allocate_rates(c);
	monitor_report(c, PTCP_COLLECT_PLAN, NULL, NULL, why, 0, 0);
}

static bool go_on(void *arg, double cpu_s)
{
	(void)cpu_s;
	return !collect_is_canceled(arg);
}

static int start_planning(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct ptcp_plan_opts o;
	double room_s;
	int r;

	c->unfit = NULL;
	c->urgent = false;
	c->planning_at_s = c->next_start_s = pass_time(c);
	ptcp_plan_opts_init(&o);
	o.method = c->o.method;
	o.deadline_s = c->plan == NULL ? c->o.deadline_s : INFINITY; /* a late plan is better than none */
	o.effort_s = ALLOCATE_EFFORT_S;
	o.go_on = go_on;
	o.arg = c;
	if ((r = set_data(c, e)) < 0)
		return r;
	room_s = c->plan == NULL && c->overlay->nwindows > 0 ? ALLOCATE_START_ROOM_S : 0;
	c->next_start_s += room_s;
	return planner_thread_new(&c->planner, c->overlay, room_s, &o, e);
}

/* Waits for the planner and takes its result. */
static int finish_planning(struct ptcp_collect *c, struct ptcp_plan **plan, struct schedule **schedule,
    struct ptcp_err *e)
{
	int r = planner_thread_take(c->planner, plan, schedule, e);

	planner_thread_free(c->planner);
	c->planner = NULL;
	if (r == 0 && (r = check_paths(c, *schedule, e)) < 0) {
		ptcp_plan_free(*plan);
		schedule_free(*schedule);
	}
	return r;
}

int allocate_first(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct schedule *schedule;
	struct ptcp_plan *plan;
	int r;

	if ((r = start_planning(c, e)) < 0 || (r = finish_planning(c, &plan, &schedule, e)) < 0)
		return r;
	if (c->overlay->nwindows == 0)
		c->next_start_s = collect_now_s(c);
	adopt(c, plan, schedule, NULL);
	return 0;
}

static int end_replanning(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct schedule *schedule;
	struct ptcp_plan *plan;
	int r;

	if ((r = finish_planning(c, &plan, &schedule, e)) < 0)
		return r;
	if (c->unfit == NULL && collect_now_s(c) - c->next_start_s > ALLOCATE_TOO_LATE_RATIO * schedule->end_s)
		c->unfit = "planning took too long";
	if (c->unfit != NULL) { /* sources were lost or found since */
		ptcp_plan_free(plan);
		schedule_free(schedule);
		return 0;
	}
	c->replans++;
	adopt(c, plan, schedule, c->replan_reason);
	return 0;
}

void allocate_replan(struct ptcp_collect *c)
{
	struct ptcp_err why;
	int r = 0;

	if (c->planner != NULL) {
		if (planner_thread_is_done(c->planner))
			r = end_replanning(c, &why);
	} else if (c->unfit != NULL &&
	    (c->urgent || (!drift_is_probing(&c->drift) &&
	    collect_now_s(c) - c->planning_at_s >= ALLOCATE_PLAN_AGAIN_S))) {
		strcpy(c->replan_reason, c->unfit);
		r = start_planning(c, &why);
	}
	if (r < 0 && r != PTCP_EINFEASIBLE && r != PTCP_ECANCELED)
		monitor_report(c, PTCP_COLLECT_WARNING, NULL, NULL, why.msg, r, why.sys);
}
