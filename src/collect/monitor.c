/* Observed rates, and whether the plan still fits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collect/collect_impl.h"
#include "collect/collect_parameters.h"
#include "collect/shared_cause.h"
#include "core/units.h"
#include "plan/rate_limits.h"

/* ---- Rates ---- */

/* Rate over the window, or over the available samples. */
double monitor_route_bps(const struct route *r, double now_s, double window_s)
{
	unsigned n = r->n_samples < ROUTE_SAMPLES ? r->n_samples : ROUTE_SAMPLES, i, k, oldest = 0;

	for (i = 1; i <= n; i++) {
		k = (r->n_samples - i) % ROUTE_SAMPLES;
		oldest = k;
		if (now_s - r->sample[k].at_s >= window_s - TICK_S / 2)
			break;
	}
	if (n == 0 || !(now_s > r->sample[oldest].at_s))
		return 0;
	return (double)(r->bytes - r->sample[oldest].bytes) * 8 / (now_s - r->sample[oldest].at_s);
}

static void sample_rates(struct ptcp_collect *c, double now_s)
{
	double bps, shown_s = drift_window_s(&c->drift, INFINITY);
	struct source_transfer *s;
	struct route *r;
	size_t k;

	for (k = 0; k < c->n_links; k++) {
		c->link[k].rate_bps = c->link[k].planned_bps = 0;
		c->link[k].estimate_bps = limits_bps(c->overlay, k);
	}
	for (s = c->source; s < c->source + c->n; s++) {
		s->status->rate_bps = 0;
		for (r = s->route; r < s->route + s->candidates.n; r++) {
			r->sample[r->n_samples % ROUTE_SAMPLES].at_s = now_s;
			r->sample[r->n_samples++ % ROUTE_SAMPLES].bytes = r->bytes;
			bps = monitor_route_bps(r, now_s, shown_s);
			s->status->rate_bps += bps;
			for (k = 0; k < r->n_links; k++) {
				c->link[r->link[k]].rate_bps += bps;
				c->link[r->link[k]].planned_bps += r->assigned_bps;
			}
		}
	}
}

/* Estimated time left; negative: unknown. */
static double monitor_eta_s(const struct ptcp_collect *c)
{
	const struct source_transfer *s;
	double most = 0, left;

	for (s = c->source; s < c->source + c->n; s++) {
		if ((left = (double)source_left_bytes(s)) > 0 && !(s->status->rate_bps > 0))
			return NAN;
		if (left > 0)
			most = fmax(most, left * 8 / s->status->rate_bps);
	}
	return most;
}

/* ---- Links ---- */

/* Data that a relay has stored arrives over the last link, and says nothing of the links before. */
static struct drift_flow flow_of(const struct route *r, bool stored)
{
	size_t first = stored ? r->last_limit : 0;

	return (struct drift_flow){ .limit = r->limit + first, .n_limits = r->n_limits - first,
		.assigned_bps = PACE * r->assigned_bps };
}

static size_t list_flows(struct ptcp_collect *c, double now_s)
{
	struct drift_flow *f = c->flow;
	double window, all;
	struct source_transfer *s;
	struct route *r;
	bool stored;

	for (s = c->source; s < c->source + c->n; s++) {
		for (all = 0, r = s->route; r < s->route + s->candidates.n; r++)
			all += r->assigned_bps;
		for (r = s->route; r < s->route + s->candidates.n; r++, f++) {
			/* catching up begins and ends within seconds */
			window = drift_window_s(&c->drift, r->assigned_bps > 0 ? r->assigned_bps : INFINITY);
			stored = s->candidates.at[r - s->route].stored_bytes > 0;
			*f = flow_of(r, stored);
			f->observed_bps = monitor_route_bps(r, now_s, window);
			f->valid = s->planned && s->busy && !stored &&
			    now_s - r->grown_s >= window && (double)source_left_bytes(s) * 8 > all * MONITOR_ENOUGH_S;
		}
	}
	return (size_t)(f - c->flow);
}

static bool is_starved(const struct ptcp_collect *c, double now_s)
{
	return now_s - c->starved_at_s <= MONITOR_STARVED_S;
}

/* "K>D carries 3.1 Mbit/s instead of 40 Mbit/s", for the slowest changed limit. */
static void describe_found(struct ptcp_collect *c, bool doubted)
{
	char name[200], now[UNITS_TEXT_BYTES], then[UNITS_TEXT_BYTES] = "unlimited";
	size_t i, which = c->n_limits, n = 0;

	for (i = 0; i < c->n_limits; i++) {
		if (isnan(c->found_bps[i]))
			continue;
		n += !limits_is_host(c->overlay, i);
		if (which == c->n_limits || c->limit_bps[i] < c->limit_bps[which])
			which = i;
	}
	if (isfinite(c->limit_bps[which]))
		units_rate_text(then, c->limit_bps[which]);
	snprintf(c->unfit_text, sizeof c->unfit_text, "%s carries %s instead of %s%s%s",
	    limits_name(c->overlay, which, name, sizeof name), units_rate_text(now, c->found_bps[which]), then,
	    n > 1 ? ", and others" : "", doubted ? ", while this host lacks processor time" : "");
	c->unfit = c->unfit_text;
}

/* `doubted`: the rates may be those of this host, not of its links. They serve the next plan; probes may find more. */
static void apply_found(struct ptcp_collect *c, size_t n_found, bool doubted)
{
	size_t i;

	if (n_found <= impact_cap_found(c, c->found_bps))
		return;
	describe_found(c, doubted);
	for (i = 0; i < c->n_limits; i++) {
		if (isnan(c->found_bps[i]))
			continue;
		if (c->found_bps[i] < c->limit_bps[i])
			c->limit_doubted[i] = doubted;
		else if (c->found_bps[i] >= c->limit_first_bps[i]) /* a part of it might still be missing */
			c->limit_doubted[i] = false;
		limits_set_bps(c->overlay, i, c->found_bps[i]);
	}
}

/* Whether the slower links share a bottleneck, which all paths over them cross from now on. */
static void conclude_shared(struct ptcp_collect *c, size_t n_flows, size_t *n_found)
{
	size_t limit, most = limits_max_of_link(c->overlay), k;
	struct source_transfer *s;
	struct route *r;

	if (!shared_cause_conclude(c->overlay, c->flow, n_flows, c->found_bps, n_found, &limit))
		return;
	c->limit_first_bps[limit] = c->found_bps[limit];
	for (s = c->source; s < c->source + c->n; s++)
		for (r = s->route; r < s->route + s->candidates.n; r++)
			for (r->n_limits = k = 0; k < r->n_links; k++) {
				r->last_limit = r->n_limits;
				r->n_limits += limits_of_link(c->overlay, r->link[k], r->limit + r->n_limits, most);
			}
}

static void check_links(struct ptcp_collect *c, double now_s, double left_s)
{
	const struct drift_limits limits = { c->limit_bps, c->limit_first_bps, c->n_limits };
	size_t n = list_flows(c, now_s), n_found, i;

	for (i = 0; i < c->n_limits; i++)
		c->limit_bps[i] = limits_bps(c->overlay, i);
	switch (drift_update(&c->drift, now_s, left_s, c->flow, n, &limits, c->found_bps, &n_found)) {
	case DRIFT_SLOWER:
		if (!is_starved(c, now_s)) /* this host is a bottleneck of all its links */
			conclude_shared(c, n, &n_found);
		apply_found(c, n_found, is_starved(c, now_s));
		break;
	case DRIFT_FASTER:
	case DRIFT_END_PROBE:
		apply_found(c, n_found, false);
		break;
	case DRIFT_START_PROBE:
	case DRIFT_NONE:
		break;
	}
}

/* ---- Delays ---- */

/* Seconds behind the plan. */
static double delay_s(const struct ptcp_collect *c, const struct source_transfer *s, double now_s)
{
	double plan = schedule_left_bytes(c->schedule, s->status->host, now_s - c->plan_start_s);
	double bps = 0;
	size_t i;

	for (i = 0; i < s->candidates.n; i++)
		bps += s->route[i].planned_bps;
	if (source_is_over(s)) /* its capacity is worth replanning only if planned for long */
		return plan > 0 ? fmax(0, c->plan_start_s + c->schedule->end_s - now_s) : 0;
	if (!(bps > 0)) /* the planned paths have closed */
		return now_s > c->plan_start_s + c->schedule->end_s && source_left_bytes(s) > 0 ? INFINITY : 0;
	return ((double)source_left_bytes(s) - plan) * 8 / bps;
}

/* Whether relays may store data of the source for long. */
static bool is_stored(const struct source_transfer *s)
{
	size_t i;

	for (i = 0; i < s->candidates.n; i++)
		if (s->candidates.at[i].stored_bytes > 0)
			return true;
	return false;
}

static void check_delays(struct ptcp_collect *c, double now_s, double left_s)
{
	double rest_s = fmax(0, c->plan_start_s + c->schedule->end_s - now_s);
	const struct source_transfer *s;

	if (left_s < MONITOR_EARLY_OR_LATE_S || now_s - c->planning_at_s < MONITOR_PLANS_APART_S)
		return;
	for (s = c->source; s < c->source + c->n && c->unfit == NULL; s++)
		if (s->planned && !s->truncated && (rest_s == 0 || !is_stored(s)) &&
		    delay_s(c, s, now_s) > fmax(MONITOR_EARLY_OR_LATE_S, MONITOR_EARLY_OR_LATE_RATIO * rest_s))
			c->unfit = source_is_over(s) ? "a source finished early" : "more data is left than planned";
}

/* Time of the first data of all sources. */
static double first_data_s(const struct ptcp_collect *c)
{
	const struct source_transfer *s;
	double first = INFINITY;

	for (s = c->source; s < c->source + c->n; s++)
		first = fmin(first, s->flows_since_s);
	return first;
}

void monitor_update(struct ptcp_collect *c)
{
	double now_s = collect_now_s(c), late_s = now_s - c->ticked_at_s - TICK_S, eta_s, left_s;

	c->ticked_at_s = now_s;
	sample_rates(c, now_s);
	if ((c->starved = processor_is_starved(&c->processor, now_s)))
		c->starved_at_s = now_s;
	if (c->schedule == NULL || c->o.no_replan || c->planner != NULL)
		return;
	if (first_data_s(c) <= now_s - MONITOR_START_S)
		drift_flows(&c->drift, now_s);
	if (late_s > MONITOR_STALL_S)
		drift_changed(&c->drift, now_s);
	eta_s = monitor_eta_s(c);
	left_s = isnan(eta_s) ? INFINITY : fmax(c->plan_start_s + c->schedule->end_s - now_s, eta_s);
	if (drift_is_probing(&c->drift) && impact_comes_first(c, now_s, left_s))
		drift_changed(&c->drift, now_s); /* more than planned may be the rate of competing flows */
	check_links(c, now_s, left_s);
	impact_update(c, now_s, left_s);
	if (!drift_is_probing(&c->drift) && now_s >= c->drift.quiet_until_s)
		check_delays(c, now_s, left_s);
}

void monitor_report(struct ptcp_collect *c, enum ptcp_collect_event_type type, const struct source_transfer *s,
    const char *path, const char *text, int code, int sys)
{
	struct ptcp_collect_event ev = { .type = type, .elapsed_s = collect_now_s(c), .source = -1, .path = path,
		.text = text, .code = code, .sys = sys, .sources = c->status, .n_sources = c->n, .links = c->link,
		.plan = c->plan, .plan_start_s = c->plan_start_s };
	size_t i;

	if (c->o.event == NULL)
		return;
	if (s != NULL)
		ev.source = (int)(s - c->source);
	for (i = 0; i < c->n; i++) {
		ev.bytes += c->status[i].progress.bytes;
		ev.total_bytes += c->status[i].progress.bytes + source_left_bytes(&c->source[i]);
		ev.rate_bps += c->status[i].rate_bps;
	}
	ev.eta_s = monitor_eta_s(c);
	if (c->schedule != NULL)
		ev.planned_s = c->plan_start_s + c->schedule->end_s;
	c->o.event(c->o.arg, &ev);
}
