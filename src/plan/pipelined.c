#include <math.h>
#include <string.h>

#include "plan/plan.h"

#define ROUNDS_MAX 100
#define CLOSE 1e-10 /* of the data: tolerance of the horizon */

struct horizon_search {
	struct sandbox *run;
	const struct graph *n;
	const struct plan_tuning *tuning;
	size_t mark; /* memory of the present program */
	struct lp *lp;
	struct time_grid *g;
	double t, share, per_s; /* horizon, share that arrives, its growth */
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

/* Solves for the share that can arrive by t. */
static void solve_at(struct horizon_search *s, double t)
{
	if (s->lp != NULL) {
		lp_free(s->lp);
		sandbox_release(s->run, s->mark);
	}
	s->mark = sandbox_mark(s->run);
	s->g = time_grid_pipelined(s->run, s->n, t);
	s->lp = lp_new(s->run, s->n, s->g, LP_FLUID, INFINITY, s->tuning->all_arcs);
	lp_solve(s->lp, LP_MAX_DATA);
	s->t = t;
	s->share = lp_share(s->lp);
	s->per_s = lp_share_per_s(s->lp);
}

/* The first interval by whose end all data can arrive; the last has no end. */
static int find_interval(struct horizon_search *s, double *share_before)
{
	int lo = 0, hi = s->n->ntimes - 1;

	*share_before = 0;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		solve_at(s, s->n->time[mid + 1]);
		if (s->share >= 1) {
			hi = mid;
		} else {
			lo = mid + 1;
			*share_before = s->share;
		}
	}
	return lo;
}

/* Within an interval the share is a concave function of the horizon: a tangent never overshoots (Newton), a
 * chord never undershoots the wanted horizon. */
static void find_horizon(struct horizon_search *s, int interval, double share_before)
{
	const struct graph *n = s->n;
	double lo = n->time[interval], flo = share_before;
	double hi = interval + 1 < n->ntimes ? n->time[interval + 1] : INFINITY;
	double t = isfinite(hi) ? hi : lo + (lo > 0 ? lo : 1);
	int i;

	for (i = 0; i < ROUNDS_MAX; i++) {
		solve_at(s, t);
		if (fabs(s->share - 1) <= CLOSE)
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

void method_pipelined(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    struct pieces *pieces, struct method_result *out)
{
	struct horizon_search s = { .run = run, .n = n, .tuning = tuning };
	double before = 0, over;
	size_t i;

	infeasible_unreachable(run, n, false);
	*out = (struct method_result){ .hops = 1 };
	if (n->ntimes == 1)
		solve_at(&s, crude_bound(run, n));
	else
		find_horizon(&s, find_interval(&s, &before), before);
	infeasible_limits(out->limits, n, s.g, s.lp);
	over = lp_bound(s.lp) - s.share;
	if (n->ntimes == 1)
		out->bound_s = s.t / (s.share + over);
	else
		out->bound_s = over > 0 && s.per_s > 0 ? s.t - over / s.per_s : s.t;
	out->makespan_s = n->ntimes == 1 ? s.t / s.share : s.t;
	if (pieces != NULL) {
		lp_solve(s.lp, LP_MIN_RELAYED);
		if (n->ntimes == 1) /* with constant rates a plan can be stretched to any horizon */
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
