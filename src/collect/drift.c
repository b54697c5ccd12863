#include "collect/drift.h"

#include <math.h>

#define WINDOW_BITS (32 << 20) /* blocks of 256 KiB arrive whole: slow paths need longer windows */

void drift_init(struct drift *w)
{
	*w = (struct drift){ .quiet_until_s = INFINITY, .off_since_s = NAN, .probe_until_s = INFINITY,
		.probe_every_s = DRIFT_PROBE_FIRST_S, .ratio = DRIFT_RATIO };
}

void drift_flows(struct drift *w, double now_s)
{
	if (isinf(w->probe_until_s))
		w->probe_until_s = now_s + DRIFT_PROBE_S;
}

bool drift_is_probing(const struct drift *w)
{
	return !isnan(w->probe_until_s);
}

bool drift_is_starting(const struct drift *w)
{
	return isinf(w->quiet_until_s);
}

double drift_ratio(const struct drift *w)
{
	return drift_is_probing(w) ? w->ratio : 1;
}

double drift_probe_bps(const struct drift *w, double assigned_bps, double recovered_bps)
{
	if (!(assigned_bps > 0))
		return recovered_bps;
	return fmax(drift_ratio(w) * assigned_bps, fmin(DRIFT_RATIO_GROWTH * assigned_bps, recovered_bps));
}

void drift_changed(struct drift *w, double now_s)
{
	if (isinf(w->probe_until_s)) /* no data flows yet */
		return;
	w->quiet_until_s = now_s + DRIFT_STEADY_S;
	w->off_since_s = NAN;
	if (drift_is_probing(w))
		w->probe_at_s = w->quiet_until_s;
	w->probe_until_s = NAN;
}

void drift_returned(struct drift *w, double now_s)
{
	w->probe_at_s = fmax(now_s, w->quiet_until_s);
	w->probe_every_s = DRIFT_PROBE_FIRST_S;
}

double drift_window_s(const struct drift *w, double assigned_bps)
{
	if (drift_is_probing(w))
		return DRIFT_PROBE_WINDOW_S;
	return fmin(DRIFT_WINDOW_MAX_S, fmax(DRIFT_WINDOW_MIN_S, WINDOW_BITS / fmax(assigned_bps, 1)));
}

/* ---- Slower limits ---- */

static bool crosses(const struct drift_flow *f, size_t limit)
{
	size_t i;

	for (i = 0; i < f->n_limits; i++)
		if (f->limit[i] == limit)
			return true;
	return false;
}

static bool is_short(const struct drift_flow *f)
{
	return f->valid && !f->contended && f->observed_bps < (1 - DRIFT_MIN_RATIO) * f->assigned_bps;
}

static bool is_explained(const struct drift_flow *f, const double *found_bps)
{
	size_t i;

	for (i = 0; i < f->n_limits; i++)
		if (!isnan(found_bps[f->limit[i]]))
			return true;
	return false;
}

static double sum_observed(const struct drift_flow *f, size_t n, size_t limit, bool only_assigned)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (crosses(&f[i], limit) && (f[i].assigned_bps > 0 || !only_assigned))
			sum += f[i].observed_bps;
	return sum;
}

/* Whether competing flows take the missing rate of this flow, and all flows together fill a limit: then no link is
 * slower than assumed. */
static bool is_contended(const struct drift_flow *f, size_t n, size_t flow, const double *limit_bps)
{
	size_t k;

	for (k = 0; k < f[flow].n_limits; k++)
		if (sum_observed(f, n, f[flow].limit[k], false) >= DRIFT_FULL_RATIO * limit_bps[f[flow].limit[k]])
			return true;
	return false;
}

/* Part of the flows' deficit explained by a lower limit. All flows across it must be short, since a flow at
 * its rate proves the capacity; and the deficit must exceed the throughput of flows without an assigned
 * rate. */
static double explains(const struct drift_flow *f, size_t n, const double *found_bps, size_t limit)
{
	double lost = 0, want = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!crosses(&f[i], limit) || is_explained(&f[i], found_bps))
			continue;
		if (f[i].assigned_bps > 0 && !is_short(&f[i]))
			return 0;
		want += f[i].assigned_bps;
		lost += f[i].assigned_bps - f[i].observed_bps;
	}
	return lost > DRIFT_MIN_RATIO * want ? lost : 0;
}

static bool same_flows(const struct drift_flow *f, size_t n, size_t a, size_t b)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (f[i].assigned_bps + f[i].observed_bps > 0 && crosses(&f[i], a) != crosses(&f[i], b))
			return false;
	return true;
}

/* The limit that explains most, and a flow that crosses it. */
static double best_cause(const struct drift_flow *f, size_t n, const double *found_bps, size_t *limit, size_t *flow)
{
	double best = 0, lost;
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; is_short(&f[i]) && k < f[i].n_limits; k++)
			if ((lost = explains(f, n, found_bps, f[i].limit[k])) > best) {
				best = lost;
				*limit = f[i].limit[k];
				*flow = i;
			}
	return best;
}

/* Fewest limits that explain all short flows, by a greedy search: common causes first. Limits crossed by
 * the same flows cannot be distinguished and all become slow, except limits without a given rate: a host
 * whose only path is short can use other paths, which will be short too if the host is the cause. */
static size_t find_slower(struct drift_flow *f, size_t n, const double *limit_bps, double *found_bps)
{
	double lost, all = 0, explained = 0;
	size_t i, limit = 0, flow = 0, other, found = 0;

	for (i = 0; i < n; i++) {
		all += f[i].assigned_bps;
		f[i].contended = is_contended(f, n, i, limit_bps);
	}
	while ((lost = best_cause(f, n, found_bps, &limit, &flow)) > 0) {
		explained += lost;
		for (i = 0; i < f[flow].n_limits; i++) {
			other = f[flow].limit[i];
			if (other != limit && (!isfinite(limit_bps[other]) || !same_flows(f, n, limit, other)))
				continue;
			found_bps[other] = sum_observed(f, n, limit, false);
			found++;
		}
	}
	return explained >= DRIFT_WORTH_RATIO * all ? found : 0;
}

/* ---- Faster limits ---- */

/* More throughput by streams without an assigned rate shows that other traffic yields, not that the limit
 * is higher; but it proves the recovery of a lowered limit. */
static double faster_bps(const struct drift_flow *f, size_t n, size_t limit, double limit_bps, double first_bps)
{
	double least = limit_bps * (1 + DRIFT_MIN_RATIO), given = sum_observed(f, n, limit, true), recovered;

	if (given > least)
		return given;
	recovered = fmin(sum_observed(f, n, limit, false), first_bps);
	return recovered > least ? recovered : NAN;
}

static size_t find_above(const struct drift_flow *f, size_t n, const struct drift_limits *limits, double *found_bps)
{
	size_t i, k, limit, found = 0;

	for (i = 0; i < n; i++)
		for (k = 0; k < f[i].n_limits; k++) {
			limit = f[i].limit[k];
			if (!isnan(found_bps[limit]))
				continue;
			found_bps[limit] = faster_bps(f, n, limit, limits->bps[limit], limits->first_bps[limit]);
			found += !isnan(found_bps[limit]);
		}
	return found;
}

static bool any_lowered(const struct drift_limits *limits)
{
	size_t i;

	for (i = 0; i < limits->n; i++)
		if (limits->bps[i] < (1 - DRIFT_MIN_RATIO) * limits->first_bps[i])
			return true;
	return false;
}

/* ---- Timing ---- */

enum drift_action drift_update(struct drift *w, double now_s, double left_s, struct drift_flow *f, size_t n,
    const struct drift_limits *limits, double *found_bps, size_t *n_found)
{
	size_t i;

	for (i = 0; i < limits->n; i++)
		found_bps[i] = NAN;
	*n_found = 0;
	if (now_s < w->probe_until_s || (!drift_is_probing(w) && left_s < DRIFT_STEADY_S))
		return DRIFT_NONE;
	if (drift_is_probing(w)) {
		*n_found = find_above(f, n, limits, found_bps);
		if (*n_found > 0 && left_s >= DRIFT_PROBE_S) { /* there may be more */
			w->probe_until_s = now_s + DRIFT_PROBE_S;
			w->ratio = fmin(w->ratio * DRIFT_RATIO_GROWTH, DRIFT_RATIO_MAX);
			return DRIFT_FASTER;
		}
		w->ratio = DRIFT_RATIO;
		w->probe_until_s = NAN;
		w->probe_at_s = now_s + (*n_found > 0 ? DRIFT_PROBE_AGAIN_S : w->probe_every_s);
		w->probe_every_s = *n_found > 0 ? DRIFT_PROBE_FIRST_S :
		    fmin(2 * w->probe_every_s, any_lowered(limits) ? DRIFT_PROBE_LOWERED_S : DRIFT_PROBE_MAX_S);
		drift_changed(w, now_s);
		/* flows have started, and were short with higher rates, too */
		w->quiet_until_s = now_s + DRIFT_STEADY_S - DRIFT_PROBE_S;
		return DRIFT_END_PROBE;
	}
	if (now_s >= w->quiet_until_s && (*n_found = find_slower(f, n, limits->bps, found_bps)) > 0) {
		if (isnan(w->off_since_s))
			w->off_since_s = now_s;
		if (now_s - w->off_since_s >= DRIFT_HOLD_S) {
			drift_changed(w, now_s);
			return DRIFT_SLOWER;
		}
		return DRIFT_NONE;
	}
	w->off_since_s = NAN;
	if (now_s < w->probe_at_s || left_s < DRIFT_PROBE_WORTH * DRIFT_PROBE_S)
		return DRIFT_NONE;
	w->probe_until_s = now_s + DRIFT_PROBE_S;
	return DRIFT_START_PROBE;
}

/* ---- Catching up ---- */

double catch_up_bps(double before_bps, double behind_bytes, double assigned_bps, double observed_bps, double left_s)
{
	double lacks = fmax(0, assigned_bps - observed_bps);
	double make_up_s = fmin(DRIFT_MAKE_UP_S, fmax(DRIFT_MAKE_UP_MIN_S, left_s));
	double more = behind_bytes * 8 / (behind_bytes > 0 ? make_up_s : DRIFT_AHEAD_S) + lacks;

	if (!(before_bps > 0) && left_s >= DRIFT_MAKE_UP_S && !(lacks > DRIFT_SHORT_RATIO * assigned_bps))
		return 0;
	return more > (before_bps > 0 ? DRIFT_END_RATIO : DRIFT_BEGIN_RATIO) * assigned_bps &&
	    assigned_bps > 0 ? more : 0;
}
