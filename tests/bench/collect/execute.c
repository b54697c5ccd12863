#include "bench/collect/execute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/drift.h"
#include "collect/schedule.h"
#include "collect/shared_cause.h"
#include "conf/overlay.h"
#include "model/divide.h"
#include "plan/rate_limits.h"

/* As in src/collect: what makes its policy, beside the lookout. */
#define PACE 0.95
#define TICK_S 0.25
#define EARLY_OR_LATE_RATIO 0.25
#define EARLY_OR_LATE_S 3.0
#define PLANS_APART_S 10.0
#define ENOUGH_S 2.0
#define STEADY_RATIO 0.05
#define RATE_MIN_BPS 10000.0
#define SPARES 3

#define LANES STUDY_FLOWS_MAX
#define SEEN 64
#define UDP_S 5.0     /* on or off, on average */
#define LATEST_S 1e6
#define LANE_LIMITS 24   /* two links, each in some shared bottlenecks, and what hosts may */
#define LIMITS_MAX 128

/* A way from a source: lane source * SOURCES + relay, or + source for the direct one. */
struct lane {
	double want_bps, given_bps, due_bps, cap_bps, since_s, grown_s, bytes, seen[SEEN];
	bool used;               /* by the plan, at some time */
	bool has;                /* the transfer has this path: it can be probed */
	size_t limit[LANE_LIMITS], nlimits;
};

struct run {
	const struct study *s;
	const struct way *w;
	struct ptcp_overlay *o;
	struct ptcp_plan *plan;
	struct schedule *schedule;
	struct drift drift;
	struct lane lane[LANES];
	size_t lane_of[LANES];   /* of each path of the schedule */
	int host[SOURCES];
	double left[SOURCES], more_bps[SOURCES], now_s, plan_start_s, overlay_s, tried_s, toggle_s[POINTS];
	double first_bps[LIMITS_MAX], loss;
	bool on[POINTS], unfit;
	struct rng rng;
	unsigned ticks;
	int replans;
};

/* ---- Plans */

static int source_of(const struct run *r, int host)
{
	int i;

	for (i = 0; i < SOURCES; i++)
		if (r->host[i] == host)
			return i;
	return -1;
}

/* Least relaying leaves no path with two relays where all reach each other. */
static void use_paths(struct run *r)
{
	size_t i;

	for (i = 0; i < LANES; i++)
		r->lane[i].used = false;
	for (i = 0; i < r->schedule->n; i++) {
		const struct schedule_path *p = &r->schedule->path[i];
		int source = source_of(r, p->source);

		r->lane_of[i] = (size_t)(source * SOURCES + (p->nhops == 1 ? source : source_of(r, p->hop[0])));
		r->lane[r->lane_of[i]].used = r->lane[r->lane_of[i]].has = true;
	}
}

static void set_limits(struct run *r)
{
	int dest = ptcp_overlay_destination(r->o), i, k;
	char name[8];

	for (i = 0; i < SOURCES; i++) {
		snprintf(name, sizeof name, "S%d", i + 1);
		r->host[i] = ptcp_overlay_find_host(r->o, name);
	}
	for (i = 0; i < SOURCES; i++)
		for (k = 0; k < SOURCES; k++) {
			struct lane *l = &r->lane[i * SOURCES + k];
			int last = limits_link(r->o, r->host[k], dest);

			l->nlimits = 0;
			if (i != k)
				l->nlimits = limits_of_link(r->o, limits_link(r->o, r->host[i], r->host[k]),
				    l->limit, LANE_LIMITS);
			l->nlimits += limits_of_link(r->o, last, l->limit + l->nlimits, LANE_LIMITS - l->nlimits);
		}
}

static double width_bps(const struct run *r, const struct lane *l)
{
	double least = INFINITY;
	size_t i;

	for (i = 0; i < l->nlimits; i++)
		least = fmin(least, limits_bps(r->o, l->limit[i]));
	return least;
}

/* The width, divided among the paths of the transfer that cross the same peering point: as src/collect/candidates.c. */
static double worth_bps(const struct run *r, const struct lane *from, int relay)
{
	int k, sharing = 1;

	for (k = 0; k < SOURCES; k++)
		sharing += from[k].has && study_point(k) == study_point(relay);
	return width_bps(r, &from[relay]) / (r->s->blind ? 1 : sharing);
}

/* Beside the planned ones a transfer has the direct path and some over one relay. */
static void add_spares(struct run *r, int source)
{
	struct lane *from = &r->lane[source * SOURCES], *best;
	int n, k;

	from[source].has = true;
	for (n = 0; n < SPARES; n++) {
		for (best = NULL, k = 0; k < SOURCES; k++)
			if (!from[k].has && (best == NULL || worth_bps(r, from, k) > worth_bps(r, from,
			    (int)(best - from))))
				best = &from[k];
		if (best != NULL)
			best->has = true;
	}
}

static int plan_rest(struct run *r)
{
	struct ptcp_plan_opts opts;
	struct ptcp_plan *plan = NULL;
	struct ptcp_err e;
	char name[8];
	int k;

	r->unfit = false;
	r->tried_s = r->now_s;
	ptcp_plan_opts_init(&opts);
	opts.method = r->w->method;
	opts.effort_s = 1;
	limits_pass(r->o, r->now_s - r->overlay_s);
	r->overlay_s = r->now_s;
	for (k = 0; k < SOURCES; k++) {
		snprintf(name, sizeof name, "S%d", k + 1);
		ptcp_overlay_set_data(r->o, name, (uint64_t)ceil(r->left[k]), NULL);
	}
	if (ptcp_plan_make(&plan, r->o, &opts, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return -1;
	}
	ptcp_plan_free(r->plan);
	schedule_free(r->schedule);
	r->plan = plan;
	r->schedule = NULL;
	if (schedule_new(&r->schedule, plan, &e) < 0)
		return -1;
	r->plan_start_s = r->now_s;
	use_paths(r);
	drift_changed(&r->drift, r->now_s);
	return 0;
}

/* ---- What flows */

/* What a lane that has nothing to carry may have in a probe: if some of what it crosses has been found
 * slower than it was said to be, which may be over, what was said. */
static double first_bps(const struct run *r, const struct lane *l)
{
	double least = INFINITY;
	bool lowered = false;
	size_t i;

	for (i = 0; i < l->nlimits; i++) {
		least = fmin(least, r->first_bps[l->limit[i]]);
		lowered = lowered || limits_bps(r->o, l->limit[i]) < r->first_bps[l->limit[i]];
	}
	return lowered ? least : 0;
}

/* What the plan leaves free goes to what it uses, too. */
static void give(struct run *r)
{
	double limit[LIMITS_MAX], left[LIMITS_MAX], load[LIMITS_MAX];
	struct divide_flow f[LANES];
	size_t n = limits_count(r->o), i;
	int k;

	for (i = 0; i < n; i++)
		limit[i] = limits_bps(r->o, i);
	for (k = 0; k < LANES; k++)
		f[k] = (struct divide_flow){ .limit = r->lane[k].limit, .n_limits = r->lane[k].nlimits,
			.weight = r->left[k / SOURCES] > 0 ? r->lane[k].want_bps : 0 };
	divide_fairly(f, LANES, limit, n, 1, 1e9, left, load);
	for (k = 0; k < LANES; k++)
		r->lane[k].given_bps = f[k].rate;
}

static double seen_bps(const struct run *r, const struct lane *l, double window_s)
{
	unsigned back = (unsigned)(window_s / TICK_S + 0.5);

	back = back < r->ticks ? back : r->ticks;
	back = back < SEEN ? back : SEEN - 1;
	return back == 0 ? 0 : (l->seen[r->ticks % SEEN] - l->seen[(r->ticks - back) % SEEN]) * 8 /
	    (back * TICK_S);
}

/* Whether sources are behind the plan. */
static void see_late(struct run *r)
{
	double given, got, bps, window = drift_window_s(&r->drift, INFINITY);
	const struct lane *l;
	int i;

	for (i = 0; i < SOURCES && r->w->replan && !drift_is_starting(&r->drift); i++) {
		for (given = got = 0, l = &r->lane[i * SOURCES]; l < &r->lane[(i + 1) * SOURCES]; l++) {
			bps = PACE * l->given_bps;
			given += bps;
			if (r->more_bps[i] > 0 || r->now_s - l->since_s >= window)
				bps = fmin(bps, seen_bps(r, l, window));
			got += bps;
		}
		r->more_bps[i] = catch_up_bps(r->more_bps[i], r->left[i] - schedule_left_bytes(r->schedule,
		    r->host[i], PACE * (r->now_s - r->plan_start_s)), given, got,
		    r->schedule->end_s - (r->now_s - r->plan_start_s));
	}
}

static double made_up_bps(const struct run *r, int k)
{
	const struct lane *l = &r->lane[k];
	double more = r->more_bps[k / SOURCES];

	return more > 0 && (l->has || l->given_bps > 0) ? fmin(l->given_bps + more, width_bps(r, l)) : 0;
}

static void set_caps(struct run *r)
{
	size_t i;
	int k;

	for (k = 0; k < LANES; k++)
		r->lane[k].want_bps = 0;
	for (i = 0; i < r->schedule->n; i++)
		r->lane[r->lane_of[i]].want_bps +=
		    schedule_bps(r->schedule, i, r->now_s - r->plan_start_s);
	give(r);
	see_late(r);
	for (k = 0; k < LANES; k++) {
		struct lane *l = &r->lane[k];
		double due = l->given_bps, bps;

		if (r->w->replan && drift_is_probing(&r->drift))
			due = drift_probe_bps(&r->drift, due, l->has ? first_bps(r, l) : 0);
		if (!(fabs(due - l->due_bps) <= STEADY_RATIO * l->due_bps))
			l->since_s = r->now_s;
		if (due > l->due_bps && l->since_s == r->now_s)
			l->grown_s = r->now_s;
		l->due_bps = due;
		bps = fmax(due, made_up_bps(r, k));
		l->cap_bps = !r->w->paced ? (l->used ? INFINITY : 0) : bps > 0 ? fmax(PACE * bps, RATE_MIN_BPS) : 0;
	}
}

static double rates(struct run *r, struct study_flow *f, int *lane, int *n)
{
	double other[POINTS], loss = 0;
	int k, p;

	for (*n = k = 0; k < LANES; k++) {
		double ratio = k % SOURCES == k / SOURCES ? 1 : 1 - r->s->relayed_ratio;

		if (!(r->left[k / SOURCES] > 0) || !(r->lane[k].cap_bps > 0) || r->now_s < r->s->start_s[k / SOURCES])
			continue;
		f[*n] = (struct study_flow){ k / SOURCES, k % SOURCES == k / SOURCES ? -1 : k % SOURCES,
			ratio * r->lane[k].cap_bps / 8, 0 };
		lane[(*n)++] = k;
	}
	study_share(r->s, f, *n, r->on, other);
	for (p = 0; p < POINTS; p++)
		if (r->s->others[p] > 0)
			loss += r->s->others[p] - other[p] * r->s->others[p] * r->s->others[p] /
			    (PEERING_BPS * (r->on[p] ? 1 - 2 * r->s->udp_ratio : 1));
	return loss / fmax(1, r->s->others[NORTH] + r->s->others[SOUTH]);
}

static void toggle(struct run *r)
{
	int p;

	for (p = 0; p < POINTS && r->s->udp_ratio > 0; p++)
		if (r->now_s >= r->toggle_s[p]) {
			r->on[p] = !r->on[p];
			r->toggle_s[p] = r->now_s - UDP_S * log(1 - rng_uniform(&r->rng));
		}
}

/* Lets time pass, until the next tick or a source is done. */
static void advance(struct run *r)
{
	struct study_flow f[LANES];
	double sum[SOURCES] = { 0 }, dt = TICK_S * (r->ticks + 1) - r->now_s, loss;
	int lane[LANES], n, i;

	toggle(r);
	set_caps(r);
	loss = rates(r, f, lane, &n);
	for (i = 0; i < n; i++)
		sum[f[i].source] += f[i].rate;
	for (i = 0; i < SOURCES; i++) {
		if (r->left[i] > 0 && sum[i] > 0)
			dt = fmin(dt, r->left[i] / sum[i]);
		if (r->now_s < r->s->start_s[i])
			dt = fmin(dt, r->s->start_s[i] - r->now_s);
	}
	for (i = 0; i < n; i++)
		r->lane[lane[i]].bytes += f[i].rate * dt;
	for (i = 0; i < SOURCES; i++)
		r->left[i] = r->left[i] - sum[i] * dt > 1 ? r->left[i] - sum[i] * dt : 0;
	r->loss += loss * dt;
	r->now_s += dt;
}

/* ---- Whether the plan fits */

static double planned_bps(const struct run *r, int source, bool given)
{
	double sum = 0;
	int k;

	for (k = 0; k < SOURCES; k++)
		sum += given ? r->lane[source * SOURCES + k].given_bps : r->lane[source * SOURCES + k].want_bps;
	return sum;
}

static void look_at_links(struct run *r, double left_s)
{
	struct drift_flow f[LANES];
	double limit[LIMITS_MAX], found[LIMITS_MAX], window, all;
	size_t n = limits_count(r->o), nfound, i;
	const struct drift_limits limits = { limit, r->first_bps, n };
	enum drift_action act;
	int k;

	for (k = 0; k < LANES; k++) {
		struct lane *l = &r->lane[k];

		window = drift_window_s(&r->drift, l->given_bps > 0 ? l->given_bps : INFINITY);
		all = planned_bps(r, k / SOURCES, true);
		f[k] = (struct drift_flow){ .limit = l->limit, .n_limits = l->nlimits,
		    .assigned_bps = PACE * l->given_bps,
			.observed_bps = seen_bps(r, l, window), .valid = r->left[k / SOURCES] > 0 &&
			r->now_s - l->grown_s >= window && r->left[k / SOURCES] * 8 > all * ENOUGH_S };
	}
	for (i = 0; i < n; i++)
		limit[i] = limits_bps(r->o, i);
	act = drift_update(&r->drift, r->now_s, left_s, f, LANES, &limits, found, &nfound);
	if (act == DRIFT_SLOWER && shared_cause_conclude(r->o, f, LANES, found, &nfound, &i)) {
		r->first_bps[i] = found[i];
		set_limits(r);
	}
	if (act != DRIFT_FASTER && act != DRIFT_END_PROBE && act != DRIFT_SLOWER)
		return;
	for (i = 0; i < n && nfound > 0; i++)
		if (!isnan(found[i]))
			limits_set_bps(r->o, i, found[i]);
	r->unfit = r->unfit || nfound > 0;
}

static double off_by_s(const struct run *r, int source, double rest_s)
{
	double plan = schedule_left_bytes(r->schedule, r->host[source], r->now_s - r->plan_start_s);
	double bps = planned_bps(r, source, false);

	if (!(r->left[source] > 0))
		return plan > 0 ? rest_s : 0;
	return bps > 0 ? (r->left[source] - plan) * 8 / bps : 0;
}

static void look_at_time(struct run *r, double rest_s, double left_s)
{
	int i;

	if (left_s < EARLY_OR_LATE_S || r->now_s - r->tried_s < PLANS_APART_S)
		return;
	for (i = 0; i < SOURCES && !r->unfit; i++)
		r->unfit = off_by_s(r, i, rest_s) > fmax(EARLY_OR_LATE_S, EARLY_OR_LATE_RATIO * rest_s);
}

static void watch(struct run *r)
{
	double rest_s = fmax(0, r->plan_start_s + r->schedule->end_s - r->now_s), left_s = rest_s, bps;
	int i, k;

	for (i = 0; i < SOURCES; i++) {
		for (bps = 0, k = 0; k < SOURCES; k++)
			bps += seen_bps(r, &r->lane[i * SOURCES + k], 3);
		if (r->left[i] > 0 && bps > 0)
			left_s = fmax(left_s, r->left[i] * 8 / bps);
	}
	look_at_links(r, left_s);
	if (!drift_is_probing(&r->drift) && r->now_s >= r->drift.quiet_until_s)
		look_at_time(r, rest_s, left_s);
}

static bool is_over(const struct run *r)
{
	int i;

	for (i = 0; i < SOURCES; i++)
		if (r->left[i] > 0)
			return false;
	return true;
}

static int carry_out(struct run *r)
{
	int k;

	while (!is_over(r)) {
		advance(r);
		if (r->now_s < TICK_S * (r->ticks + 1) - 1e-9)
			continue;
		r->ticks++;
		for (k = 0; k < LANES; k++)
			r->lane[k].seen[r->ticks % SEEN] = r->lane[k].bytes;
		if (!r->w->replan || is_over(r))
			continue;
		watch(r);
		if (r->unfit && !drift_is_probing(&r->drift)) {
			if (plan_rest(r) < 0)
				return -1;
			r->replans++;
		}
		if (r->now_s > LATEST_S)
			return fprintf(stderr, "nothing moves any more\n"), -1;
	}
	return 0;
}

int execute(const struct study *s, const struct way *w, struct outcome *out)
{
	struct run r = { .s = s, .w = w, .rng = { s->seed } };
	char *text = study_overlay(s);
	struct ptcp_shared_bottleneck shared[SHARED_CAUSE_MAX];
	size_t links[SHARED_CAUSE_MAX * SOURCES], i;
	struct ptcp_plan_info info;
	struct ptcp_err e;
	int code, k;

	if ((code = ptcp_overlay_parse(&r.o, text, strlen(text), "study", &e)) < 0)
		fprintf(stderr, "%s\n", e.msg);
	free(text);
	if (code < 0)
		return -1;
	if (shared_cause_reserve(r.o, &e) < 0)
		return -1;
	memcpy(r.left, s->data, sizeof r.left);
	set_limits(&r);
	for (i = 0; i < limits_count(r.o); i++)
		r.first_bps[i] = limits_bps(r.o, i);
	drift_init(&r.drift);
	*out = (struct outcome){ 0 };
	if ((code = plan_rest(&r)) == 0) {
		drift_flows(&r.drift, 0);
		ptcp_plan_info(r.plan, &info);
		out->planned_s = info.makespan_s;
		for (i = 0; i < ptcp_overlay_hosts(r.o); i++)
			out->storage_ratio += ptcp_plan_storage_bytes(r.plan, (int)i) / ALL_BYTES;
		for (k = 0; k < SOURCES; k++)
			add_spares(&r, k);
		code = carry_out(&r);
		out->makespan_s = r.now_s;
		out->others_loss_ratio = r.loss / r.now_s;
		out->replans = r.replans;
		out->n_shared = shared_cause_list(r.o, shared, links, sizeof links / sizeof *links);
	}
	ptcp_plan_free(r.plan);
	schedule_free(r.schedule);
	ptcp_overlay_free(r.o);
	return code;
}
