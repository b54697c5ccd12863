/* Integer stream counts by branch and bound: the linear program of a fluid plan with one period (lp.h) and
 * all columns, plus a column for the streams of each counted arc. */
#include <math.h>

#include "plan/lp_impl.h"
#include "plan/rate_limits.h"
#include "plan/streams.h"

#define NOTHING 1e-9 /* part of the data */

struct stream_search {
	struct sandbox *run;
	const struct graph *n; /* without windows, at full rates */
	struct lp *lp;
	int *streams_col;    /* column of each arc, or 0 */
	double t;            /* length of the period */
	double bound;        /* bound of the share that arrives */
};

/* Constraint of an arc: flow / rate <= slope * streams + offset. */
static void add_line(struct stream_search *b, int arc, double rate, double slope, double more)
{
	int row = glpk.add_rows(b->lp->p, 1);
	double flow = b->lp->flow_scale[arc] * b->n->total / (b->t * rate);

	glpk.set_row_bnds(b->lp->p, row, GLP_UP, 0, more);
	glpk.set_mat_row(b->lp->p, row, 2, (int[]){ 0, b->lp->flow_col[arc], b->streams_col[arc] },
	    (double[]){ 0, flow, -slope });
}

/* A concave curve is the minimum of the lines through its points. */
static void add_curve(struct stream_search *b, int arc, const struct conf_curve *c)
{
	double x0 = 0, y0 = 0, all = curve_rate_bps(c, c->max_streams);
	size_t i;

	for (i = 0; i < c->n && x0 < c->max_streams; i++) {
		double x = c->point[i].streams, y = (double)c->point[i].rate_bps / all;
		double slope = (y - y0) / (x - x0);

		add_line(b, arc, b->n->arc[arc].rate, slope, y0 - slope * x0);
		x0 = x;
		y0 = y;
	}
}

static void add_arc(struct stream_search *b, int arc)
{
	const struct graph_arc *a = &b->n->arc[arc];
	const struct conf_curve *c = b->n->overlay->links[a->link].curve;
	int most = streams_max(b->n, arc), i, r;

	if (most == 0 || b->lp->flow_col[arc] == 0)
		return;
	b->streams_col[arc] = glpk.add_cols(b->lp->p, 1);
	glpk.set_col_kind(b->lp->p, b->streams_col[arc], GLP_IV);
	glpk.set_col_bnds(b->lp->p, b->streams_col[arc], GLP_DB, 0, most);
	if (c != NULL)
		add_curve(b, arc, c);
	for (i = 0; i < a->nlimits; i++) {
		r = b->n->arc_limit[a->first_limit + i];
		if ((c = streams_limit(b->n, r)) != NULL)
			add_line(b, arc, b->n->limit[r].rate, 1.0 / c->max_streams, 0);
	}
}

/* Limits the sum of the streams over a bottleneck. */
static void add_budget(struct stream_search *b, int limit)
{
	const struct graph_limit *r = &b->n->limit[limit];
	const struct conf_curve *c = streams_limit(b->n, limit);
	int *ind, i, col, n = 0, row;
	double *one;

	if (c == NULL)
		return;
	ind = sandbox_alloc(b->run, (size_t)r->narcs + 1, sizeof *ind);
	one = sandbox_alloc(b->run, (size_t)r->narcs + 1, sizeof *one);
	for (i = 0; i < r->narcs; i++)
		if ((col = b->streams_col[b->n->limit_arc[r->first_arc + i]]) != 0) {
			ind[++n] = col;
			one[n] = 1;
		}
	row = glpk.add_rows(b->lp->p, 1);
	glpk.set_row_bnds(b->lp->p, row, GLP_UP, 0, c->max_streams);
	glpk.set_mat_row(b->lp->p, row, n, ind, one);
}

static void keep_bound(glp_tree *tree, void *info)
{
	struct stream_search *b = info;
	int node;

	if (glpk.ios_reason(tree) == GLP_IROWGEN && (node = glpk.ios_best_node(tree)) != 0)
		b->bound = fmin(b->bound, glpk.ios_node_bound(tree, node));
}

/* Whether integer stream counts were found in time. */
static bool search(struct stream_search *b, double time_s)
{
	glp_iocp parm;
	int r;

	glpk.init_iocp(&parm);
	parm.msg_lev = GLP_MSG_OFF;
	parm.presolve = GLP_ON;
	parm.fp_heur = GLP_ON;
	parm.mip_gap = 1e-9;
	parm.cb_func = keep_bound;
	parm.cb_info = b;
	parm.tm_lim = (int)(1000 * time_s); /* 0: at once */
	r = glpk.intopt(b->lp->p, &parm);
	if (r != 0 && r != GLP_ETMLIM)
		sandbox_fail(b->run, PTCP_ERANGE, "planning: choosing streams failed (%d): rates or sizes of "
		    "the overlay lie too far apart", r);
	if (glpk.mip_status(b->lp->p) == GLP_OPT)
		b->bound = glpk.mip_obj_val(b->lp->p);
	return glpk.mip_status(b->lp->p) == GLP_OPT || glpk.mip_status(b->lp->p) == GLP_FEAS;
}

/* Fallback without a result: divides the streams among the links in use when each has the maximum. */
static struct graph *divided(struct stream_search *b, const struct graph *n, int *streams)
{
	char *in_use = sandbox_alloc(b->run, (size_t)n->narcs, sizeof *in_use);
	struct graph *own;
	int a;

	for (a = 0; a < n->narcs; a++)
		in_use[a] = lp_flow(b->lp, a, 0) > 0;
	if ((own = streams_even(b->run, n, in_use, streams)) == NULL)
		sandbox_fail(b->run, PTCP_ERANGE, "planning: no whole numbers of streams were found in time "
		    "(give a 'rate' where streams need not be counted, or raise 'impact')");
	return own;
}

static _Noreturn void too_few(struct stream_search *b)
{
	const struct conf_curve *c, *least = NULL;
	int r, at = 0;

	for (r = 0; r < b->n->nlimits; r++)
		if ((c = streams_limit(b->n, r)) != NULL && (least == NULL || c->max_streams < least->max_streams)) {
			least = c;
			limits_kind(b->n->overlay, b->n->limit[r].of, &at);
		}
	sandbox_fail(b->run, PTCP_EINFEASIBLE, "the impact budget leaves too few streams for all sources: "
	    "shared bottleneck %d may carry %u together (raise 'impact')", at + 1,
	    least != NULL ? least->max_streams : 0);
}

/* Drops streams of arcs without flow at steady rates; with windows they may be needed at other times. */
static void keep_streams(struct stream_search *b, const struct graph *n, int *streams)
{
	struct glp_prob *p = b->lp->p;
	int a;

	for (a = 0; a < n->narcs; a++) {
		int col = b->streams_col[a], *k = &streams[n->arc[a].link];

		if (col == 0)
			continue;
		*k = (int)floor(glpk.mip_col_val(p, col) + 0.5);
		if (n->ntimes == 1 && !(glpk.mip_col_val(p, b->lp->flow_col[a]) > 0))
			*k = 0;
	}
}

struct graph *streams_best(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    int *streams, double *bound_s)
{
	struct graph *alone = streams_with(run, n, NULL);
	struct stream_search b = { .run = run, .n = streams_steady(run, n) };
	struct method_result fluid;
	struct graph *chosen;
	double in = 0;
	int a, r;

	infeasible_unreachable(run, alone, false);
	for (a = 0; a < n->narcs; a++)
		if (n->arc[a].to == n->dest)
			in += b.n->arc[a].rate;
	b.t = n->total / in;
	b.streams_col = sandbox_alloc(run, (size_t)n->narcs, sizeof *b.streams_col);
	b.lp = lp_new(run, streams_with(run, b.n, NULL), time_grid_pipelined(run, b.n, b.t), LP_FLUID, INFINITY,
	    LP_ARCS_ALL);
	lp_solve(b.lp, LP_MAX_DATA);
	b.bound = lp_bound(b.lp);
	for (a = 0; a < n->narcs; a++)
		add_arc(&b, a);
	for (r = 0; r < n->nlimits; r++)
		add_budget(&b, r);
	if (!search(&b, fmin(1e6, fmax(tuning->streams_s, sandbox_left_s(run) / 2)))) {
		chosen = divided(&b, n, streams);
	} else {
		if (!(glpk.mip_obj_val(b.lp->p) > NOTHING))
			too_few(&b);
		keep_streams(&b, n, streams);
		chosen = streams_with(run, n, streams);
	}
	lp_free(b.lp);
	*bound_s = b.t / b.bound;
	if (n->ntimes > 1) {
		method_pipelined(run, alone, tuning, NULL, &fluid);
		*bound_s = fluid.bound_s;
	}
	return chosen;
}
