/* Plans of what is left, and what they make of the transfers. */
#include <math.h>
#include <string.h>
#include <sys/statvfs.h>

#include "collect/collect_impl.h"
#include "core/err.h"
#include "plan/limits.h"

#define RATE_LEAST_BPS 10000.0 /* that a transfer takes */
#define STEADY_RATIO 0.05    /* a change of less does not count as one */
#define RAISE_MAX 1e9        /* factor of the planned rate, without limits */
#define EFFORT_S 1.0         /* to look for a proof: the plan is carried out either way */
#define PLAN_AGAIN_S 3.0     /* after one was begun */
#define TOO_LATE_RATIO 0.5   /* of its makespan */
#define ELSEWHERE_RATIO 0.1  /* of a source's data over paths that its transfer has not: worth a new one */
#define ELSEWHERE_BYTES 8e6
#define ROOM_LEAST_BYTES (UINT64_C(64) << 20) /* what is here already may become less */

/* ---- What each path is to carry ---- */

/* Adds up what the plan gives the paths of a source now; returns what it gives to others, which they have to take. */
static double add_planned(struct source *s, double t_s)
{
	const struct schedule *p = s->c->schedule;
	double elsewhere = 0;
	size_t i;
	int k;

	for (i = 0; i < s->vias.n; i++)
		s->route[i].planned_bps = 0;
	for (i = 0; i < p->n; i++) {
		if (p->path[i].source != s->told->host)
			continue;
		if ((k = candidates_find(&s->vias, p->path[i].hop, p->path[i].nhops)) >= 0)
			s->route[k].planned_bps += schedule_bps(p, i, t_s);
		else
			elsewhere += schedule_bps(p, i, t_s);
	}
	return elsewhere;
}

static void spread(struct source *s, double bps)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->vias.n; i++)
		sum += s->route[i].planned_bps;
	for (i = 0; i < s->vias.n; i++)
		s->route[i].planned_bps += sum > 0 ? bps * s->route[i].planned_bps / sum : i == 0 ? bps : 0;
}

/* Some of what it crosses has been found slower than it was said to be: it may have recovered. */
static bool was_lowered(const struct ptcp_collect *c, const struct route *r)
{
	size_t i;

	for (i = 0; i < r->n_limits; i++)
		if (limits_bps(c->overlay->conf, r->limit[i]) < c->limit_first_bps[r->limit[i]])
			return true;
	return false;
}

/* The least of what it crosses, by the rates of all limits: first ones or those in force. */
static double least_bps(const struct route *r, const double *limit_bps)
{
	double least = INFINITY;
	size_t i;

	for (i = 0; i < r->n_limits; i++)
		least = fmin(least, limit_bps[r->limit[i]]);
	return least;
}

/* To make up for what is late. */
static double made_up_bps(const struct source *s, const struct route *r)
{
	if (r->bound || !(s->more_bps > 0) || (r->counted && !(r->given_bps > 0)))
		return 0;
	return fmin(r->given_bps + s->more_bps, least_bps(r, s->c->limit_bps));
}

/* By the plan, or as a probe. */
static double rate_for(const struct source *s, const struct route *r)
{
	double bps = r->given_bps;

	if (s->c->probing && !r->bound)
		bps = bps > 0 ? DRIFT_PROBE_RATIO * bps : was_lowered(s->c, r) ? least_bps(r, s->c->limit_first_bps) : 0;
	return bps;
}

static uint64_t pace(double bps)
{
	if (!(bps > 0))
		return PTCP_PATH_IDLE;
	return isfinite(bps) ? (uint64_t)fmax(PACE * bps, RATE_LEAST_BPS) : 0;
}

static bool is_steady(uint64_t bps, uint64_t before)
{
	return fabs((double)bps - (double)before) <= STEADY_RATIO * (double)before;
}

/* What is made up for changes all the time, and is told when it is worth it. */
static void set_rates(struct source *s, double now_s)
{
	uint64_t bps, due;
	struct route *r;
	size_t i;

	for (i = 0; i < s->vias.n; i++) {
		r = &s->route[i];
		due = s->planned ? pace(rate_for(s, r)) : 0;
		bps = s->planned ? pace(fmax(rate_for(s, r), made_up_bps(s, r))) : 0;
		if (!is_steady(due, r->due_bps))
			r->since_s = now_s;
		if (bps != r->set_bps && (due != r->due_bps || bps == due || !is_steady(bps, r->set_bps)) &&
		    ptcp_transfer_set_path_rate(s->t, i, bps, NULL) == 0)
			r->set_bps = bps;
		r->due_bps = due;
	}
}

/* Windows of the overlay move on; returns now. */
static double pass_time(struct ptcp_collect *c)
{
	double now_s = collect_now_s(c);

	limits_pass(c->overlay->conf, now_s - c->overlay_s);
	c->overlay_s = now_s;
	return now_s;
}

/* Gives each path its planned rate and a share of the capacity that the plan leaves free. In a plan of least makespan
 * only one source or bottleneck is busy until the end; all other sources finish with it. They may as well finish early:
 * a finished source cannot be late, and leaves its share to others. */
static void give(struct ptcp_collect *c)
{
	struct divide_flow *f = c->divided;
	struct source *s;
	struct route *r;
	size_t i;

	for (i = 0; i < c->n_limits; i++)
		c->limit_bps[i] = limits_bps(c->overlay->conf, i);
	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->vias.n; r++)
			*f++ = (struct divide_flow){ .limit = r->limit, .n_limits = r->n_limits,
				.weight = s->planned ? r->planned_bps : 0 };
	divide_fairly(c->divided, (size_t)(f - c->divided), c->limit_bps, c->n_limits, 1, RAISE_MAX, c->found_bps, c->load_bps);
	for (f = c->divided, s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->vias.n; r++)
			r->given_bps = (f++)->rate;
}

/* Whether it is behind the plan, as that goes at our pace; with data at relays that cannot be seen. Paths that have
 * just begun, or been given something else, are not asked yet. */
static void see_late(struct source *s, double now_s)
{
	const struct ptcp_collect *c = s->c;
	double given = 0, got = 0, held = 0, bps, window = drift_window_s(&c->drift, INFINITY);
	const struct route *r;

	for (r = s->route; r < s->route + s->vias.n; r++) {
		bps = PACE * r->given_bps;
		given += bps;
		if (s->more_bps > 0 || now_s - fmax(r->since_s, s->flows_since_s) >= window)
			bps = fmin(bps, monitor_route_bps(r, now_s, window));
		got += bps;
		held += (double)s->vias.at[r - s->route].held_bytes;
	}
	s->more_bps = c->o.no_replan || held > 0 ? 0 : catch_up_bps(s->more_bps, (double)source_left_bytes(s) -
	    schedule_left_bytes(c->schedule, s->told->host, PACE * (now_s - c->plan_start_s)), given, got);
}

void allocate_apply(struct ptcp_collect *c)
{
	double now_s;
	struct source *s;

	if (c->plan == NULL)
		return;
	now_s = pass_time(c);
	for (s = c->source; s < c->source + c->n; s++)
		spread(s, add_planned(s, now_s - c->plan_start_s));
	give(c);
	for (s = c->source; s < c->source + c->n; s++) {
		see_late(s, now_s);
		if (s->t != NULL && !s->sizing)
			set_rates(s, now_s);
	}
}

/* ---- Another plan ---- */

/* Every path of it crosses something that nothing comes through. */
static bool is_cut_off(const struct source *s)
{
	size_t i, k;

	for (i = 0; i < s->vias.n; i++) {
		for (k = 0; k < s->route[i].n_limits; k++)
			if (!(limits_bps(s->c->overlay->conf, s->route[i].limit[k]) >= 1))
				break;
		if (k == s->route[i].n_limits)
			return false;
	}
	return s->vias.n > 0;
}

/* To begin with all are counted on; later those that answer, and can be reached. */
static bool counts(const struct source *s)
{
	if (source_is_over(s))
		return false;
	return s->c->plan == NULL || (s->t != NULL && s->told->state == PTCP_COLLECT_RUNNING && !is_cut_off(s));
}

/* The transfer at work lacks paths that much is to go over, and another one would have. */
static bool lacks_paths(const struct source *s)
{
	const struct schedule *p = s->c->schedule;
	double all = 0, elsewhere = 0;
	struct candidates other;
	size_t i;

	if (candidates_choose(&other, s->c->overlay, p, s->told->host, NULL) < 0)
		return false;
	for (i = 0; i < p->n; i++) {
		if (p->path[i].source != s->told->host)
			continue;
		all += p->path[i].bytes;
		if (candidates_find(&s->vias, p->path[i].hop, p->path[i].nhops) < 0 &&
		    candidates_find(&other, p->path[i].hop, p->path[i].nhops) >= 0)
			elsewhere += p->path[i].bytes;
	}
	candidates_fini(&other);
	return elsewhere > ELSEWHERE_BYTES && elsewhere > ELSEWHERE_RATIO * all;
}

/* At the destination: no more can come of what any source says it has. */
static uint64_t room_bytes(const struct ptcp_collect *c)
{
	struct statvfs v;
	uint64_t bytes;

	if (statvfs(c->dest, &v) < 0)
		return DATA_MOST_BYTES;
	bytes = (uint64_t)v.f_bavail * v.f_frsize;
	return bytes > ROOM_LEAST_BYTES ? bytes : ROOM_LEAST_BYTES;
}

static int set_data(struct ptcp_collect *c, struct ptcp_err *e)
{
	uint64_t room = room_bytes(c), left;
	struct source *s;
	int r;

	for (s = c->source; s < c->source + c->n; s++) {
		left = counts(s) ? source_left_bytes(s) : 0;
		s->beyond = left > room;
		if ((r = ptcp_overlay_set_data(c->overlay, s->name, s->beyond ? room : left, e)) < 0)
			return r;
	}
	return 0;
}

/* They can be had: before anything is begun. */
static int check_paths(const struct ptcp_collect *c, const struct schedule *schedule, struct ptcp_err *e)
{
	struct candidates v;
	size_t i;
	int r;

	for (i = 0; i < c->n; i++) {
		if ((r = candidates_choose(&v, c->overlay, schedule, c->source[i].told->host, e)) < 0)
			return r;
		candidates_fini(&v);
	}
	return 0;
}

static void take(struct ptcp_collect *c, struct ptcp_plan *plan, struct schedule *schedule)
{
	struct source *s;

	for (s = c->source; s < c->source + c->n; s++)
		s->planned = counts(s) && source_left_bytes(s) > 0;
	ptcp_plan_free(c->plan);
	schedule_free(c->schedule);
	c->plan = plan;
	c->schedule = schedule;
	for (s = c->source; s < c->source + c->n; s++)
		if (s->t != NULL && s->planned && lacks_paths(s))
			source_begin_again(s);
}

static int begin(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct ptcp_plan_opts o;
	int r;

	c->unfit = NULL;
	c->tried_at_s = c->planner_thread_start_s = pass_time(c);
	ptcp_plan_opts_init(&o);
	o.method = c->o.method;
	o.deadline_s = c->plan == NULL ? c->o.deadline_s : INFINITY; /* late is better than never */
	o.effort_s = EFFORT_S;
	if ((r = set_data(c, e)) < 0)
		return r;
	return planner_thread_new(&c->planner, c->overlay, &o, e);
}

/* What came of it; waits where it is not done. */
static int end(struct ptcp_collect *c, struct ptcp_plan **plan, struct schedule **schedule, struct ptcp_err *e)
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

/* The sources have gone on meanwhile, and are as far into it as it took to make. */
static void carry_out(struct ptcp_collect *c, struct ptcp_plan *plan, struct schedule *schedule, const char *why)
{
	c->plan_start_s = c->planner_thread_start_s;
	take(c, plan, schedule);
	drift_changed(&c->drift, collect_now_s(c));
	allocate_apply(c);
	collect_tell(c, PTCP_COLLECT_PLAN, NULL, NULL, why, 0);
}

int allocate_first(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct schedule *schedule;
	struct ptcp_plan *plan;
	int r;

	if ((r = begin(c, e)) < 0 || (r = end(c, &plan, &schedule, e)) < 0)
		return r;
	c->planner_thread_start_s = collect_now_s(c);
	carry_out(c, plan, schedule, NULL);
	return 0;
}

/* It tells of sources that have been lost or found since, or of a time that is mostly over. */
static bool is_too_late(struct ptcp_collect *c, const struct schedule *schedule)
{
	if (c->unfit == NULL && collect_now_s(c) - c->planner_thread_start_s > TOO_LATE_RATIO * schedule->end_s)
		c->unfit = "planning took too long";
	return c->unfit != NULL;
}

static int end_again(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct schedule *schedule;
	struct ptcp_plan *plan;
	int r;

	if ((r = end(c, &plan, &schedule, e)) < 0)
		return r;
	if (is_too_late(c, schedule)) {
		ptcp_plan_free(plan);
		schedule_free(schedule);
		return 0;
	}
	c->replans++;
	carry_out(c, plan, schedule, c->planner_thread_why);
	return 0;
}

void allocate_again(struct ptcp_collect *c)
{
	struct ptcp_err why;
	int r = 0;

	if (c->planner != NULL) {
		if (planner_thread_is_done(c->planner))
			r = end_again(c, &why);
	} else if (c->unfit != NULL && !c->probing && collect_now_s(c) - c->tried_at_s >= PLAN_AGAIN_S) {
		strcpy(c->planner_thread_why, c->unfit);
		r = begin(c, &why);
	}
	if (r < 0 && r != PTCP_EINFEASIBLE)
		collect_tell(c, PTCP_COLLECT_WARNING, NULL, NULL, why.msg, r);
}
