#include "collect/drift.h"

#include <math.h>

#define STEADY_S 4.0          /* slow start, queues, and the window in which rates are seen */
#define HOLD_S 2.0            /* off for so long, before it counts */
#define WINDOW_LEAST_S 3.0
#define WINDOW_MOST_S 12.0
#define WINDOW_BITS (32 << 20) /* blocks of 256 KiB arrive whole, so slow paths are looked at for longer */
#define PROBE_S 3.0
#define PROBE_WINDOW_S 2.0    /* the end of it: flows need a moment to grow */
#define PROBE_AGAIN_S 2.0     /* after one that found more, and again */
#define PROBE_FIRST_S 10.0    /* after one that found nothing; then twice as long each time, */
#define PROBE_MAX_S 80.0     /* up to this */
#define PROBE_WORTH 5         /* times its length must be left to do */
#define WORTH_RATIO 0.03      /* of all that flows: a smaller loss is not worth a plan */

void drift_init(struct drift *w, double now_s)
{
	*w = (struct drift){ .off_since_s = NAN, .probe_session_until_s = NAN, .probe_every_s = PROBE_FIRST_S };
	drift_changed(w, now_s);
	w->probe_at_s = w->quiet_until_s;
}

void drift_changed(struct drift *w, double now_s)
{
	w->quiet_until_s = now_s + STEADY_S;
	w->off_since_s = NAN;
	w->probe_session_until_s = NAN;
}

void drift_returned(struct drift *w, double now_s)
{
	w->probe_at_s = fmax(now_s, w->quiet_until_s);
	w->probe_every_s = PROBE_FIRST_S;
}

double drift_window_s(const struct drift *w, double want_bps)
{
	if (!isnan(w->probe_session_until_s))
		return PROBE_WINDOW_S;
	return fmin(WINDOW_MOST_S, fmax(WINDOW_LEAST_S, WINDOW_BITS / fmax(want_bps, 1)));
}

/* ---- Below ---- */

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
	return f->judged && f->got_bps < (1 - DRIFT_OFF_RATIO) * f->want_bps;
}

static bool is_explained(const struct drift_flow *f, const double *found_bps)
{
	size_t i;

	for (i = 0; i < f->n_limits; i++)
		if (!isnan(found_bps[f->limit[i]]))
			return true;
	return false;
}

static double sum_got(const struct drift_flow *f, size_t n, size_t limit, bool only_given)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (crosses(&f[i], limit) && (f[i].want_bps > 0 || !only_given))
			sum += f[i].got_bps;
	return sum;
}

/* How much of what flows lack a limit being lower would explain: all that cross it must be short, for one that is not
 * has shown that there is room; and by more than others took that were given nothing. */
static double explains(const struct drift_flow *f, size_t n, const double *found_bps, size_t limit)
{
	double lost = 0, want = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!crosses(&f[i], limit) || is_explained(&f[i], found_bps))
			continue;
		if (f[i].want_bps > 0 && !is_short(&f[i]))
			return 0;
		want += f[i].want_bps;
		lost += f[i].want_bps - f[i].got_bps;
	}
	return lost > DRIFT_OFF_RATIO * want ? lost : 0;
}

static bool same_flows(const struct drift_flow *f, size_t n, size_t a, size_t b)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (f[i].want_bps + f[i].got_bps > 0 && crosses(&f[i], a) != crosses(&f[i], b))
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

/* The fewest limits that explain all flows that are short, found greedily: the common cause first. Of limits that the
 * same flows cross none can be told from the other, and all are taken for as slow, but for those that nobody gave a
 * rate: a host whose only path is short can turn to others, and if it is the host, they will be short with it. */
static size_t find_below(const struct drift_flow *f, size_t n, const double *limit_bps, double *found_bps)
{
	double lost, all = 0, explained = 0;
	size_t i, limit = 0, flow = 0, other, found = 0;

	for (i = 0; i < n; i++)
		all += f[i].want_bps;
	while ((lost = best_cause(f, n, found_bps, &limit, &flow)) > 0) {
		explained += lost;
		for (i = 0; i < f[flow].n_limits; i++) {
			other = f[flow].limit[i];
			if (other != limit && (!isfinite(limit_bps[other]) || !same_flows(f, n, limit, other)))
				continue;
			found_bps[other] = sum_got(f, n, limit, false);
			found++;
		}
	}
	return explained >= WORTH_RATIO * all ? found : 0;
}

/* ---- Above ---- */

/* That more comes with the streams of paths that were given nothing says that those take more from others, not that
 * there is more; but what was lowered has recovered, if they show that. */
static double above_bps(const struct drift_flow *f, size_t n, size_t limit, double limit_bps, double first_bps)
{
	double least = limit_bps * (1 + DRIFT_OFF_RATIO), given = sum_got(f, n, limit, true), recovered;

	if (given > least)
		return given;
	recovered = fmin(sum_got(f, n, limit, false), first_bps);
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
			found_bps[limit] = above_bps(f, n, limit, limits->bps[limit], limits->first_bps[limit]);
			found += !isnan(found_bps[limit]);
		}
	return found;
}

/* ---- When ---- */

static enum drift_act end_probe(struct drift *w, double now_s, const struct drift_flow *f, size_t n,
    const struct drift_limits *limits, double *found_bps, size_t *n_found)
{
	*n_found = find_above(f, n, limits, found_bps);
	w->probe_at_s = now_s + (*n_found > 0 ? PROBE_AGAIN_S : w->probe_every_s);
	w->probe_every_s = *n_found > 0 ? PROBE_FIRST_S : fmin(2 * w->probe_every_s, PROBE_MAX_S);
	drift_changed(w, now_s);
	return DRIFT_PROBED;
}

enum drift_act drift_see(struct drift *w, double now_s, double left_s, const struct drift_flow *f, size_t n,
    const struct drift_limits *limits, double *found_bps, size_t *n_found)
{
	size_t i;

	for (i = 0; i < limits->n; i++)
		found_bps[i] = NAN;
	*n_found = 0;
	if (!isnan(w->probe_session_until_s))
		return now_s < w->probe_session_until_s ? DRIFT_GO_ON :
		    end_probe(w, now_s, f, n, limits, found_bps, n_found);
	if (left_s < STEADY_S)
		return DRIFT_GO_ON;
	if (now_s >= w->quiet_until_s && (*n_found = find_below(f, n, limits->bps, found_bps)) > 0) {
		if (isnan(w->off_since_s))
			w->off_since_s = now_s;
		if (now_s - w->off_since_s >= HOLD_S) {
			drift_changed(w, now_s);
			return DRIFT_BELOW;
		}
		return DRIFT_GO_ON;
	}
	w->off_since_s = NAN;
	if (now_s < w->probe_at_s || left_s < PROBE_WORTH * PROBE_S)
		return DRIFT_GO_ON;
	w->probe_session_until_s = now_s + PROBE_S;
	return DRIFT_PROBE;
}

/* ---- catch_up ---- */

#define MAKE_UP_S 5.0    /* as long as rates take to show */
#define AHEAD_S 1.0      /* each plan begins anew, and being ahead would add up */
#define BEGIN_RATIO 0.4  /* of what it is given: late and short by so much together, */
#define SHORT_RATIO 0.1  /* and short by so much: who only began late goes on as planned */
#define END_RATIO 0.05

double catch_up_bps(double before_bps, double behind_bytes, double given_bps, double got_bps)
{
	double lacks = fmax(0, given_bps - got_bps);
	double more = behind_bytes * 8 / (behind_bytes > 0 ? MAKE_UP_S : AHEAD_S) + lacks;

	if (!(before_bps > 0) && !(lacks > SHORT_RATIO * given_bps))
		return 0;
	return more > (before_bps > 0 ? END_RATIO : BEGIN_RATIO) * given_bps && given_bps > 0 ? more : 0;
}
