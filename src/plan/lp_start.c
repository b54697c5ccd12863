#include "plan/lp.h"

#include <math.h>

#include "plan/lp_impl.h"

struct lp *lp_new_period(struct sandbox *run, const struct graph *n, double len_s, enum lp_arcs arcs)
{
	return lp_new(run, n, time_grid_one(run, len_s), LP_FLUID, INFINITY, arcs);
}

/* The basis of the interval before is dual feasible for a goal that stays the same. */
static void set_interval(struct lp *one, int interval, enum lp_goal goal)
{
	one->g->period[0].interval = interval;
	lp_set_flow_bounds(one);
	one->dual_first = one->nvalues > 0 && one->goal == goal;
}

double lp_share_in(struct lp *one, int interval)
{
	set_interval(one, interval, LP_MAX_DATA);
	lp_solve(one, LP_MAX_DATA);
	return lp_share(one) / one->g->period[0].len_s;
}

void lp_set_even_bound(struct lp *lp, int period)
{
	double max = lp->even_per_s[period] * lp->g->period[period].len_s;

	glpk.set_col_bnds(lp->p, lp->even_col[period], max > 0 ? GLP_DB : GLP_FX, 0, max);
}

/* The same share of the data of each source; bounded, since the program of the period has a basis for this share. */
static void add_even(struct lp *lp, int period, double share_per_s)
{
	const struct graph *n = lp->n;
	int *ind = sandbox_alloc(lp->run, 2 * (size_t)n->nhosts + 1, sizeof *ind), k = 0, h;
	double *val = sandbox_alloc(lp->run, 2 * (size_t)n->nhosts + 1, sizeof *val);

	for (h = 0; h < n->nhosts; h++) {
		if (!(n->host[h].data > 0))
			continue;
		ind[++k] = lp->src_row[h];
		val[k] = 1;
		ind[++k] = lp->store_row[h * lp->g->nstages + period];
		val[k] = n->host[h].data / n->total;
	}
	lp->even_col[period] = glpk.add_cols(lp->p, 1);
	lp->even_per_s[period] = share_per_s;
	lp_set_even_bound(lp, period);
	glpk.set_mat_col(lp->p, lp->even_col[period], k, ind, val);
	glpk.set_col_stat(lp->p, lp->even_col[period], GLP_NU);
}

/* Takes the basis of the period's program, with the columns that it needs. */
static void take_basis(struct lp *lp, int period, const struct lp *one)
{
	const struct graph *n = lp->n;
	int P = lp->g->nperiods, a, r, h, row;

	for (a = 0; a < n->narcs; a++) {
		int stat = one->flow_col[a] == 0 ? GLP_NL : glpk.get_col_stat(one->p, one->flow_col[a]);

		if (stat != GLP_BS && stat != GLP_NU)
			continue;
		lp_add_flow(lp, a, period, true);
		glpk.set_col_stat(lp->p, lp->flow_col[a * P + period], stat);
	}
	for (r = 0; r < n->nlimits; r++)
		if (one->limit_row[r] != 0)
			glpk.set_row_stat(lp->p, lp->limit_row[r * P + period],
			    glpk.get_row_stat(one->p, one->limit_row[r]));
	for (h = 0; h < n->nhosts; h++) {
		row = one->src_row[h] != 0 ? one->src_row[h] : one->store_row[h];
		if (row != 0)
			glpk.set_row_stat(lp->p, lp->store_row[h * P + period], glpk.get_row_stat(one->p, row));
	}
}

/* The sum of the periods is the share: one of the sources' rows defines the share, the others are met already. */
static void close_basis(struct lp *lp)
{
	int h, first = -1;

	for (h = 0; h < lp->n->nhosts; h++) {
		if (lp->src_row[h] == 0)
			continue;
		first = first < 0 ? h : first;
		glpk.set_row_stat(lp->p, lp->src_row[h], GLP_NS);
		glpk.set_col_stat(lp->p, h == first ? lp->share_col : lp->own_col[h * lp->g->nstages], GLP_BS);
	}
}

void lp_start(struct lp *lp, const double *share_per_s, enum lp_arcs arcs)
{
	double len_s = lp->g->end_s;
	struct lp *one = lp_new_period(lp->run, lp->n, len_s, arcs);
	int p, i;

	lp_share_in(one, lp->g->period[0].interval);
	for (p = 0; p < lp->g->nperiods; p++) {
		i = lp->g->period[p].interval;
		set_interval(one, i, LP_MIN_RELAYED);
		lp_solve_relayed(one, share_per_s[i] * len_s);
		add_even(lp, p, share_per_s[i]);
		take_basis(lp, p, one);
	}
	close_basis(lp);
	lp_free(one);
}
