#include <math.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/streams.h"

#define ROUNDS_MAX 100
#define CLOSE 1e-10 /* part of the data: tolerance of the horizon */
#define GAP 0.03    /* accepted gap between makespan and bound, once the effort is used up */
#define LONGER 1.3  /* next horizon */

struct horizon_search {
	struct sandbox *run;
	const struct graph *n;
	size_t mark; /* memory of the present program */
	struct lp *lp;
	struct time_grid *g;
	double reach_s;         /* horizon that the program has been made for */
	double t, share, per_s; /* horizon, share that arrives, its growth */
	double least_s;         /* lower bound of the makespan */
	double enough_s;        /* a sufficient horizon, or 0 */
	enum lp_arcs arcs;
	double *even_per_s;     /* [interval] share per second, see lp_start() */
};

/* Lower bound of the makespan from the rates out of each source and into the destination; 0 with windows,
 * where rates may rise. */
static double crude_bound(struct sandbox *run, const struct graph *n)
{
	double *out = sandbox_alloc(run, (size_t)n->nhosts, sizeof *out), in = 0, least;
	int a, h;

	if (n->ntimes > 1)
		return 0;
	for (a = 0; a < n->narcs; a++) {
		out[n->arc[a].from] += n->arc[a].rate;
		if (n->arc[a].to == n->dest)
			in += n->arc[a].rate;
	}
	least = n->total / in;
	for (h = 0; h < n->nhosts; h++)
		if (!n->host[h].relay && n->host[h].data > 0)
			least = fmax(least, n->host[h].data / out[h]);
	return least;
}

/* Computes how fast equal shares of all sources arrive in each interval, until all data has arrived. */
static void find_even(struct horizon_search *s)
{
	const struct graph *n = s->n;
	size_t mark;
	struct lp *one;
	double left = 1;
	int i;

	s->even_per_s = sandbox_alloc(s->run, (size_t)n->ntimes, sizeof *s->even_per_s);
	mark = sandbox_mark(s->run);
	one = lp_new_period(s->run, n, s->least_s > 0 ? s->least_s : 1, s->arcs);
	for (i = 0; i < n->ntimes; i++) {
		double until = i + 1 < n->ntimes ? n->time[i + 1] : INFINITY;

		s->even_per_s[i] = lp_share_in(one, i);
		if (s->even_per_s[i] > 0 && left <= s->even_per_s[i] * (until - n->time[i])) {
			s->enough_s = n->time[i] + left / s->even_per_s[i];
			break;
		}
		left -= s->even_per_s[i] > 0 ? s->even_per_s[i] * (until - n->time[i]) : 0;
	}
	lp_free(one);
	sandbox_release(s->run, mark);
}

/* A program for the first intervals of the graph: up to a sufficient horizon, or else some more than needed to
 * reach t. */
static void new_program(struct horizon_search *s, double t)
{
	int k = graph_interval(s->n, t) + 1, most = s->n->ntimes;
	double end_s = t;

	k += k / 4 + 2;
	if (s->enough_s > 0)
		end_s = fmax(t, s->enough_s * (1 + 1e-6));
	else if (k < most)
		end_s = s->n->time[k];
	else if (most > 1)
		end_s = fmax(t, 2 * s->n->time[most - 1]);
	if (s->lp != NULL) {
		lp_free(s->lp);
		sandbox_release(s->run, s->mark);
	}
	s->mark = sandbox_mark(s->run);
	s->g = time_grid_pipelined(s->run, s->n, end_s);
	s->lp = lp_new(s->run, s->n, s->g, LP_FLUID, INFINITY, s->enough_s > 0 ? LP_ARCS_NONE : s->arcs);
	if (s->g->nperiods > 1)
		lp_start(s->lp, s->even_per_s, s->arcs);
}

/* Solves for the share that can arrive by t. */
static void solve_at(struct horizon_search *s, double t)
{
	if (s->lp == NULL || (t > s->reach_s && s->g->nperiods < s->n->ntimes)) {
		new_program(s, t);
		s->reach_s = s->g->end_s;
	}
	if (s->n->ntimes > 1)
		lp_set_horizon(s->lp, t);
	lp_solve(s->lp, LP_MAX_DATA);
	s->t = t;
	s->share = lp_share(s->lp);
	s->per_s = lp_share_per_s(s->lp);
	if (lp_bound(s->lp) < 1)
		s->least_s = fmax(s->least_s, t);
}

/* Whether the effort is used up, and the sufficient horizon is good enough. */
static bool is_enough(const struct horizon_search *s)
{
	return s->share >= 1 && sandbox_hurry(s->run) && s->t - s->least_s <= GAP * s->t;
}

/* The first interval by whose end all data can arrive; the last has no end. Starts beyond the lower bound of the
 * makespan, since a program for a longer horizon also serves shorter horizons, from the same basis. */
static int find_interval(struct horizon_search *s, double *share_before)
{
	int lo = graph_interval(s->n, s->least_s * (1 - 1e-9)), hi = s->n->ntimes - 1, mid;
	double guess_s = LONGER * s->least_s;

	*share_before = 0;
	if (s->enough_s > 0) {
		hi = graph_interval(s->n, s->enough_s);
		solve_at(s, s->enough_s);
		if (fabs(s->share - 1) <= CLOSE && s->per_s > 0)
			return hi;
	}
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (!(s->enough_s > 0)) {
			mid = graph_interval(s->n, guess_s);
			mid = mid < lo ? lo : mid < hi ? mid : hi - 1;
		}
		solve_at(s, s->n->time[mid + 1]);
		guess_s = fmax(LONGER * s->t, s->t / s->share);
		if (s->share >= 1) {
			hi = mid;
			s->enough_s = s->t;
			if (is_enough(s))
				break;
		} else {
			lo = mid + 1;
			*share_before = s->share;
		}
	}
	return hi;
}

/* Within an interval the share is a concave function of the horizon: a tangent never overshoots (Newton), a
 * chord never undershoots the wanted horizon. */
static void find_horizon(struct horizon_search *s, int interval, double share_before)
{
	const struct graph *n = s->n;
	double lo = n->time[interval], flo = share_before;
	double hi = s->enough_s > 0 ? s->enough_s : INFINITY;
	double step_s = s->per_s > 0 && flo < 1 ? (1 - flo) / s->per_s : lo > 0 ? lo : 1;
	double t = isfinite(hi) ? hi : lo + step_s;
	int i;

	for (i = 0; i < ROUNDS_MAX; i++) {
		solve_at(s, t);
		if (fabs(s->share - 1) <= CLOSE || is_enough(s))
			return;
		if (s->share < 1 && !(s->per_s > 0)) {
			if (isinf(hi))
				infeasible_always(s->run, n, s->share, false);
			t = t + (hi - t) / 2;
			continue;
		}
		if (s->share < 1) {
			lo = t;
			flo = s->share;
			t = fmin(t + (1 - s->share) / s->per_s, hi);
		} else {
			double tangent = s->per_s > 0 ? t - (s->share - 1) / s->per_s : lo;

			hi = t;
			t = tangent > lo ? tangent : lo + (1 - flo) / (s->share - flo) * (t - lo);
		}
		if (t <= lo || (isfinite(hi) && (t > hi || hi - lo <= CLOSE * hi)))
			break;
	}
	if (!(s->share >= 1) && isfinite(hi)) /* the last sufficient horizon */
		solve_at(s, hi);
	if (!(s->share >= 1 - 1e-9))
		sandbox_fail(s->run, PTCP_ERANGE, "planning: no horizon found within %d rounds: rates "
		    "or sizes of the overlay lie too far apart", ROUNDS_MAX);
}

/* Lower bound of the makespan: each link at its highest rate throughout. */
static void find_least(struct horizon_search *s)
{
	struct graph *steady = streams_steady(s->run, s->n);
	struct horizon_search best = { .run = s->run, .n = steady, .arcs = s->arcs };

	solve_at(&best, crude_bound(s->run, steady));
	s->least_s = lp_bound(best.lp) > 0 ? best.t / lp_bound(best.lp) : 0;
	lp_free(best.lp);
}

static void find_shortest(struct horizon_search *s)
{
	double before;
	int interval;

	find_least(s);
	find_even(s);
	interval = find_interval(s, &before);
	find_horizon(s, interval, before);
}

void method_pipelined(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    struct pieces *pieces, struct method_result *out)
{
	struct horizon_search s = { .run = run, .n = n, .arcs = tuning->all_arcs ? LP_ARCS_ALL : LP_ARCS_PROMISING };
	double over;
	size_t i;

	infeasible_unreachable(run, n, false);
	*out = (struct method_result){ .hops = 1 };
	if (n->ntimes == 1)
		solve_at(&s, crude_bound(run, n));
	else
		find_shortest(&s);
	infeasible_limits(out->limits, n, s.g, s.lp);
	over = lp_bound(s.lp) - s.share;
	if (n->ntimes == 1)
		out->bound_s = s.t / (s.share + over);
	else
		out->bound_s = fmax(s.least_s, fabs(s.share - 1) > 1e-9 ? 0 :
		    over > 0 && s.per_s > 0 ? s.t - over / s.per_s : s.t);
	out->makespan_s = n->ntimes == 1 ? s.t / s.share : s.t;
	if (pieces != NULL) {
		lp_solve(s.lp, LP_MIN_RELAYED);
		if (n->ntimes == 1) /* constant rates: a plan can be stretched to any horizon */
			s.g->end_s = s.g->period[0].len_s = s.t / lp_share(s.lp);
		out->relayed_bound_bytes = fmax(0, lp_bound(s.lp) / lp_share(s.lp) - n->total);
		if (s.g->nstages > 1)
			lp_solve(s.lp, LP_MIN_STORAGE);
		out->makespan_s = s.g->end_s;
		pieces_trace(pieces, s.lp, n, s.g);
		for (i = 0; i < pieces->n; i++)
			if ((int)pieces->piece[i].nhops > out->hops)
				out->hops = (int)pieces->piece[i].nhops;
	}
	lp_free(s.lp);
}
