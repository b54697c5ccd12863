/* The columns of flows: what each may carry, and its part in every row. */
#include <math.h>

#include "plan/lp_impl.h"

static int stage_of(const struct time_grid *g, int period)
{
	int lo = 0, hi = g->nstages - 1;

	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;

		if (g->stage[mid].first_period <= period)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

double lp_capacity(const struct lp *lp, int arc, int period)
{
	const struct period *p = &lp->g->period[period];

	return graph_rate(lp->n, arc, p->interval) * p->len_s;
}

double lp_flow_max(const struct lp *lp, int arc, int period)
{
	const struct graph_arc *a = &lp->n->arc[arc];
	const struct time_grid *g = lp->g;
	double cap = lp_capacity(lp, arc, period) / lp->n->total;

	if (lp->g->slot_s > 0) {
		int s = stage_of(g, period);

		/* What arrives at a relay in the last slot is late, and in the
		 * first slot it has nothing of others yet. */
		if (a->to != lp->n->dest && s == g->nstages - 1 && g->stage[s].nslots == 1)
			return 0;
		if (!(lp->n->host[a->from].data > 0) && s == 0 && g->stage[s].nslots == 1)
			return 0;
	}
	return fmin(cap, lp->most_share);
}

/* A flow's column is scaled so that 1 is as much as can be of use: tolerances of
 * the simplex are absolute, and rates span many powers of ten. */
static double scale(const struct lp *lp, int arc, double max)
{
	const struct graph_host *u = &lp->n->host[lp->n->arc[arc].from];
	double s = fmin(max, 1);

	return u->relay ? s : fmin(s, u->data / lp->n->total);
}

/* A limit's row is scaled so that its bound is 1, or stays 0: the tolerance of the
 * simplex is absolute, and a period may be very short. */
static double limit_scale(const struct lp *lp, int limit, int period)
{
	double cap = lp->n->limit[limit].rate * lp->g->period[period].len_s;

	return cap > 0 ? lp->n->total / cap : 1;
}

int lp_column(const struct lp *lp, int arc, int period, int *ind, double *val)
{
	const struct graph_arc *a = &lp->n->arc[arc];
	int n = 0, i, s = stage_of(lp->g, period), S = lp->g->nstages;
	double f = lp->flow_scale[arc * lp->g->nperiods + period];
	double data = lp->n->host[a->from].data / lp->n->total;

#define ENTRY(row, v) do { if ((row) != 0) { ind[++n] = (row); val[n] = (v); } } while (0)
	if (!lp->n->host[a->from].relay)
		ENTRY(lp->src_row[a->from], f / data);
	ENTRY(lp->keep_row[a->from * S + s], -f);
	ENTRY(lp->out_row[a->from * S + s], -f);
	ENTRY(lp->out_cap[a->from * S + s], -f);
	ENTRY(lp->keep_row[a->to * S + s], f);
	ENTRY(lp->in_row[a->to * S + s], -f);
	ENTRY(lp->in_cap[a->to * S + s], -f);
	for (i = 0; i < a->nlimits; i++) {
		int r = lp->n->arc_limit[a->first_limit + i];

		ENTRY(lp->limit_row[r * lp->g->nperiods + period], f * limit_scale(lp, r, period));
	}
	ENTRY(lp->relayed_row, f);
#undef ENTRY
	return n;
}

double lp_flow_cost(const struct lp *lp, int arc, int period)
{
	return lp->goal == LP_LEAST_RELAYED ? lp->flow_scale[arc * lp->g->nperiods + period] : 0;
}

void lp_add_flow(struct lp *lp, int arc, int period)
{
	int at = arc * lp->g->nperiods + period, c, n;
	double max = lp_flow_max(lp, arc, period);
	size_t mark;
	int *ind;
	double *val;

	if (lp->flow_col[at] != 0 || !(max > 0))
		return;
	lp->flow_scale[at] = scale(lp, arc, max);
	mark = sandbox_mark(lp->run);
	n = LP_ENTRIES_MAX + lp->n->arc[arc].nlimits;
	ind = sandbox_alloc(lp->run, (size_t)n, sizeof *ind);
	val = sandbox_alloc(lp->run, (size_t)n, sizeof *val);
	n = lp_column(lp, arc, period, ind, val);
	lp->flow_col[at] = c = glp_add_cols(lp->p, 1);
	glp_set_col_bnds(lp->p, c, GLP_DB, 0, max / lp->flow_scale[at]);
	glp_set_obj_coef(lp->p, c, lp_flow_cost(lp, arc, period));
	glp_set_mat_col(lp->p, c, n, ind, val);
	sandbox_release(lp->run, mark);
}
