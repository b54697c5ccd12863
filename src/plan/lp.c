#include "plan/lp.h"

#include <math.h>
#include <stdlib.h>

#include "core/sorted.h"
#include "plan/lp_impl.h"

/* Capacity of an arc in a period, in bytes. */
static double capacity(const struct lp *lp, int arc, int period)
{
	const struct period *p = &lp->g->period[period];

	return graph_rate(lp->n, arc, p->interval) * p->len_s;
}

double lp_flow_max(const struct lp *lp, int arc, int period)
{
	const struct graph_arc *a = &lp->n->arc[arc];
	const struct time_grid *g = lp->g;
	double cap = capacity(lp, arc, period) / lp->n->total;

	if (lp->g->slot_s > 0) {
		int s = time_grid_stage(g, period);

		/* Arrival at a relay in the last slot is too late, and in the first slot a relay has no
		 * data to forward. */
		if (a->to != lp->n->dest && s == g->nstages - 1 && g->stage[s].nslots == 1)
			return 0;
		if (!(lp->n->host[a->from].data > 0) && s == 0 && g->stage[s].nslots == 1)
			return 0;
	}
	return fmin(cap, lp->max_share);
}

/* Scales a flow's column: 1 is the largest useful flow, since the tolerances of the simplex method are
 * absolute, and rates span many powers of ten. */
static double scale(const struct lp *lp, int arc, double max)
{
	const struct graph_host *u = &lp->n->host[lp->n->arc[arc].from];
	double s = fmin(max, 1);

	return u->relay ? s : fmin(s, u->data / lp->n->total);
}

/* Scales a limit's row to a bound of 1, or 0: tolerances are absolute, and periods may be very short. */
static double limit_scale(const struct lp *lp, int limit, int period)
{
	double cap = lp->n->limit[limit].rate * lp->full_s[period];

	return cap > 0 ? lp->n->total / cap : 1;
}

int lp_column(const struct lp *lp, int arc, int period, int *ind, double *val)
{
	const struct graph_arc *a = &lp->n->arc[arc];
	int n = 0, i, s = time_grid_stage(lp->g, period), S = lp->g->nstages;
	double f = lp->flow_scale[arc * lp->g->nperiods + period];
	double data = lp->n->host[a->from].data / lp->n->total;

#define ENTRY(row, v) do { if ((row) != 0) { ind[++n] = (row); val[n] = (v); } } while (0)
	if (lp->store_row[a->from * S + s] == 0)
		ENTRY(lp->src_row[a->from], f / data);
	ENTRY(lp->store_row[a->from * S + s], -f);
	ENTRY(lp->out_row[a->from * S + s], -f);
	ENTRY(lp->out_cap[a->from * S + s], -f);
	ENTRY(lp->store_row[a->to * S + s], f);
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
	return lp->goal == LP_MIN_RELAYED ? lp->flow_scale[arc * lp->g->nperiods + period] : 0;
}

void lp_add_flow(struct lp *lp, int arc, int period, bool empty)
{
	int at = arc * lp->g->nperiods + period, c, n;
	double max = lp_flow_max(lp, arc, period);
	size_t mark;
	int *ind;
	double *val;

	if (lp->flow_col[at] != 0 || !(max > 0 || empty))
		return;
	lp->flow_scale[at] = max > 0 ? scale(lp, arc, max) : 1;
	mark = sandbox_mark(lp->run);
	n = LP_ENTRIES_MAX + lp->n->arc[arc].nlimits;
	ind = sandbox_alloc(lp->run, (size_t)n, sizeof *ind);
	val = sandbox_alloc(lp->run, (size_t)n, sizeof *val);
	n = lp_column(lp, arc, period, ind, val);
	lp->flow_col[at] = c = glpk.add_cols(lp->p, 1);
	glpk.set_col_bnds(lp->p, c, max > 0 ? GLP_DB : GLP_FX, 0, max / lp->flow_scale[at]);
	glpk.set_obj_coef(lp->p, c, lp_flow_cost(lp, arc, period));
	glpk.set_mat_col(lp->p, c, n, ind, val);
	sandbox_release(lp->run, mark);
}

/* ---- Rows and columns ---- */

#define SEED_RELAYS 10     /* relays reached by the first columns of a host, */
#define SEED_RELAYS_MANY 2 /* in a program of more than MANY_PERIODS: the first solution costs most */
#define MANY_PERIODS 8

static int add_row(struct lp *lp, int type, double bound)
{
	int row = glpk.add_rows(lp->p, 1);

	glpk.set_row_bnds(lp->p, row, type, bound, bound);
	return row;
}

/* Data leaving a relay in a slot was stored before; see lp.h. */
static void add_exact_rows(struct lp *lp, int host, int stage)
{
	int at = host * lp->g->nstages + stage;

	lp->out_row[at] = add_row(lp, GLP_LO, 0);
	if (lp->g->stage[stage].nslots > 1)
		lp->in_row[at] = add_row(lp, GLP_LO, 0);
}

static void add_relay_rows(struct lp *lp, int host, int stage)
{
	const struct time_grid *g = lp->g;
	int at = host * g->nstages + stage, slots = g->stage[stage].nslots;
	double limit = lp->n->host[host].storage / lp->n->total * slots;

	lp->store_row[at] = add_row(lp, GLP_FX, 0);
	if (g->slot_s == 0)
		return;
	if (slots == 1 || lp->mode == LP_SLOTS) {
		add_exact_rows(lp, host, stage);
	} else if (isfinite(limit)) {
		/* Each slot receives and forwards at most the storage. */
		lp->out_cap[at] = add_row(lp, GLP_LO, -limit);
		lp->in_cap[at] = add_row(lp, GLP_LO, -limit);
	}
}

/* Whether a host has rows and columns of each stage: a relay, and in a fluid program of several stages every
 * source, to give each period a basis of its own (lp_start.c). */
static bool has_stages(const struct lp *lp, int h)
{
	return lp->n->host[h].relay || (lp->staged && lp->g->slot_s == 0 && lp->n->host[h].data > 0);
}

static void add_host_rows(struct lp *lp)
{
	const struct graph *n = lp->n;
	int h, s;

	for (h = 0; h < n->nhosts; h++) {
		const struct graph_host *host = &n->host[h];

		/* Sources that relay, without stages, use the row of their flows. */
		if (host->data > 0 && (!host->relay || lp->staged))
			lp->src_row[h] = add_row(lp, GLP_FX, 0);
		if (has_stages(lp, h))
			for (s = 0; s < lp->g->nstages; s++)
				add_relay_rows(lp, h, s);
	}
}

static double max_rate(const struct graph *n, int arc)
{
	double max = 0;
	int i;

	for (i = 0; i < n->ntimes; i++)
		max = fmax(max, graph_rate(n, arc, i));
	return max;
}

/* Limits beyond the rates of their arcs in any interval need no row. */
static void add_limit_rows(struct lp *lp)
{
	const struct graph *n = lp->n;
	int r, p, i;

	for (r = 0; r < n->nlimits; r++) {
		const struct graph_limit *limit = &n->limit[r];
		double sum = 0;

		for (i = 0; i < limit->narcs; i++)
			sum += max_rate(n, n->limit_arc[limit->first_arc + i]);
		for (p = 0; p < lp->g->nperiods; p++) {
			double cap = limit->rate * lp->g->period[p].len_s;

			if (sum > limit->rate)
				lp->limit_row[r * lp->g->nperiods + p] = add_row(lp, GLP_UP, cap > 0 ? 1 : 0);
		}
	}
}

static void set_col(struct lp *lp, int col, int n, const int *ind, const double *val)
{
	int ind1[LP_ENTRIES_MAX + 1], k = 0, i;
	double val1[LP_ENTRIES_MAX + 1];

	for (i = 0; i < n; i++)
		if (ind[i] != 0) {
			ind1[++k] = ind[i];
			val1[k] = val[i];
		}
	glpk.set_mat_col(lp->p, col, k, ind1, val1);
}

static void add_share(struct lp *lp)
{
	const struct graph *n = lp->n;
	int *ind = sandbox_alloc(lp->run, (size_t)n->nhosts + 1, sizeof *ind), k = 0, h;
	double *val = sandbox_alloc(lp->run, (size_t)n->nhosts + 1, sizeof *val);

	for (h = 0; h < n->nhosts; h++) {
		if (!(n->host[h].data > 0))
			continue;
		ind[++k] = lp->src_row[h] != 0 ? lp->src_row[h] : lp->store_row[h * lp->g->nstages];
		val[k] = lp->src_row[h] != 0 ? -1 : n->host[h].data / n->total;
	}
	lp->share_col = glpk.add_cols(lp->p, 1);
	glpk.set_col_bnds(lp->p, lp->share_col, isfinite(lp->max_share) ? GLP_DB : GLP_LO, 0, lp->max_share);
	glpk.set_mat_col(lp->p, lp->share_col, k, ind, val);
}

/* Fills the existing columns of a relay in a stage. */
static void set_stage_cols(struct lp *lp, int h, int s)
{
	int at = h * lp->g->nstages + s;
	double own = lp->n->host[h].data / lp->n->total;

	if (lp->own_col[at] != 0)
		set_col(lp, lp->own_col[at], 4,
		    (int[]){ lp->src_row[h], lp->store_row[at], lp->out_row[at], lp->out_cap[at] },
		    (double[]){ 1, own, own, own });
	/* Bytes stored after this stage bound the arrivals of its last slot and the departures of the next
	 * stage's first slot. */
	if (lp->stored_col[at] != 0)
		set_col(lp, lp->stored_col[at], 4,
		    (int[]){ lp->store_row[at], lp->store_row[at + 1], lp->in_row[at], lp->out_row[at + 1] },
		    (double[]){ -1, 1, lp->g->stage[s].nslots, lp->g->stage[s + 1].nslots });
}

static void add_stage_cols(struct lp *lp, int h, int s)
{
	const struct graph_host *host = &lp->n->host[h];
	int at = h * lp->g->nstages + s;

	if (host->data > 0) {
		lp->own_col[at] = glpk.add_cols(lp->p, 1);
		glpk.set_col_bnds(lp->p, lp->own_col[at], GLP_LO, 0, 0);
	}
	set_stage_cols(lp, h, s);
}

bool lp_lacks_stored(const struct lp *lp, int h, int s)
{
	return lp->stored_col[h * lp->g->nstages + s] == 0 && lp->n->host[h].relay && s + 1 < lp->g->nstages &&
	    lp->n->host[h].storage > 0;
}

void lp_add_stored(struct lp *lp, int h, int s)
{
	double most = lp->n->host[h].storage / lp->n->total;
	int col;

	if (!lp_lacks_stored(lp, h, s))
		return;
	lp->stored_col[h * lp->g->nstages + s] = col = glpk.add_cols(lp->p, 1);
	glpk.set_col_bnds(lp->p, col, isfinite(most) ? GLP_DB : GLP_LO, 0, isfinite(most) ? most : 0);
	set_stage_cols(lp, h, s);
}

static void add_arc(struct lp *lp, int arc)
{
	int p;

	for (p = 0; p < lp->g->nperiods; p++)
		lp_add_flow(lp, arc, p, false);
}

struct relay_rate {
	double rate;
	int arc;
};

static int by_rate(const void *a, const void *b)
{
	const struct relay_rate *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate > y->rate ? -1 : 1;
	return x->arc - y->arc;
}

/* The first columns: every link into the destination, and from each host the links to the relays with the
 * fastest onward links. */
static void seed(struct lp *lp)
{
	const struct graph *n = lp->n;
	struct relay_rate *best = sandbox_alloc(lp->run, (size_t)n->nhosts, sizeof *best);
	int most = lp->g->nperiods > MANY_PERIODS ? SEED_RELAYS_MANY : SEED_RELAYS;
	int h, a, i, k, d;

	for (h = 0; h < n->nhosts; h++) {
		for (k = 0, a = n->out[h]; a < n->out[h + 1]; a++) {
			if (n->arc[a].to == n->dest) {
				add_arc(lp, a);
				continue;
			}
			d = graph_find(n, n->arc[a].to, n->dest);
			best[k].rate = d < 0 ? 0 : fmin(n->arc[a].rate, n->arc[d].rate);
			best[k++].arc = a;
		}
		sort_array(best, (size_t)k, sizeof *best, by_rate);
		for (i = 0; i < k && i < most; i++)
			add_arc(lp, best[i].arc);
	}
}

struct lp *lp_new(struct sandbox *run, const struct graph *n, struct time_grid *g, enum lp_mode mode,
    double max_share, enum lp_arcs arcs)
{
	struct lp *lp = sandbox_alloc(run, 1, sizeof *lp);
	size_t at = (size_t)n->nhosts * (size_t)g->nstages;
	size_t flows = (size_t)n->narcs * (size_t)g->nperiods;
	int h, s, a;

	*lp = (struct lp){ .run = run, .n = n, .g = g, .mode = mode, .max_share = max_share };
	lp->staged = g->nstages > 1 || g->slot_s > 0;
	lp->full_s = sandbox_alloc(run, (size_t)g->nperiods, sizeof *lp->full_s);
	for (lp->last = 0; lp->last < g->nperiods; lp->last++)
		lp->full_s[lp->last] = g->period[lp->last].len_s;
	lp->last--;
	lp->src_row = sandbox_alloc(run, (size_t)n->nhosts, sizeof(int));
	lp->store_row = sandbox_alloc(run, at, sizeof(int));
	lp->out_row = sandbox_alloc(run, at, sizeof(int));
	lp->in_row = sandbox_alloc(run, at, sizeof(int));
	lp->out_cap = sandbox_alloc(run, at, sizeof(int));
	lp->in_cap = sandbox_alloc(run, at, sizeof(int));
	lp->limit_row = sandbox_alloc(run, (size_t)n->nlimits * (size_t)g->nperiods, sizeof(int));
	lp->own_col = sandbox_alloc(run, at, sizeof(int));
	lp->stored_col = sandbox_alloc(run, at, sizeof(int));
	lp->even_col = sandbox_alloc(run, (size_t)g->nperiods, sizeof(int));
	lp->even_per_s = sandbox_alloc(run, (size_t)g->nperiods, sizeof(double));
	lp->flow_col = sandbox_alloc(run, flows, sizeof(int));
	lp->flow_scale = sandbox_alloc(run, flows, sizeof(double));
	lp->p = glpk.create_prob();
	add_host_rows(lp);
	add_limit_rows(lp);
	add_share(lp);
	if (lp->staged)
		for (h = 0; h < n->nhosts; h++)
			for (s = 0; s < g->nstages && has_stages(lp, h); s++) {
				add_stage_cols(lp, h, s);
				if (mode != LP_FLUID || arcs == LP_ARCS_ALL)
					lp_add_stored(lp, h, s);
			}
	if (arcs == LP_ARCS_ALL)
		for (a = 0; a < n->narcs; a++)
			add_arc(lp, a);
	else if (arcs == LP_ARCS_PROMISING)
		seed(lp);
	glpk.scale_prob(lp->p, GLP_SF_AUTO);
	return lp;
}

void lp_set_flow_bounds(struct lp *lp)
{
	int nflows = lp->n->narcs * lp->g->nperiods, i, col;
	double max;

	for (i = 0; i < nflows; i++) {
		if ((col = lp->flow_col[i]) == 0)
			continue;
		max = lp_flow_max(lp, i / lp->g->nperiods, i % lp->g->nperiods) / lp->flow_scale[i];
		glpk.set_col_bnds(lp->p, col, max > 0 ? GLP_DB : GLP_FX, 0, max);
	}
}

void lp_set_horizon(struct lp *lp, double end_s)
{
	struct time_grid *g = lp->g;
	int r, p;

	g->end_s = end_s;
	for (p = 0; p < g->nperiods; p++) {
		struct period *t = &g->period[p];
		bool endless = t->interval == lp->n->ntimes - 1;

		t->len_s = fmax(0, endless ? end_s - t->start_s : fmin(lp->full_s[p], end_s - t->start_s));
		if (t->len_s > 0)
			lp->last = p;
		if (lp->even_per_s[p] > 0)
			lp_set_even_bound(lp, p);
		for (r = 0; r < lp->n->nlimits; r++)
			if (lp->limit_row[r * g->nperiods + p] != 0 && lp->n->limit[r].rate > 0)
				glpk.set_row_bnds(lp->p, lp->limit_row[r * g->nperiods + p], GLP_UP, 0,
				    t->len_s / lp->full_s[p]);
	}
	lp_set_flow_bounds(lp);
	lp->dual_first = lp->nvalues > 0; /* solved before: the basis is dual feasible */
}

void lp_make_exact(struct lp *lp)
{
	const struct time_grid *g = lp->g;
	int nflows = lp->n->narcs * g->nperiods, h, s, i, n;
	int *ind = sandbox_alloc(lp->run, (size_t)lp->n->nlimits + LP_ENTRIES_MAX, sizeof *ind);
	double *val = sandbox_alloc(lp->run, (size_t)lp->n->nlimits + LP_ENTRIES_MAX, sizeof *val);

	lp->mode = LP_SLOTS;
	for (h = 0; h < lp->n->nhosts; h++)
		for (s = 0; s < g->nstages && lp->n->host[h].relay; s++)
			if (g->stage[s].nslots > 1)
				add_exact_rows(lp, h, s);
	for (h = 0; h < lp->n->nhosts; h++)
		for (s = 0; s < g->nstages && lp->n->host[h].relay; s++)
			set_stage_cols(lp, h, s);
	for (i = 0; i < nflows; i++)
		if (lp->flow_col[i] != 0) {
			n = lp_column(lp, i / g->nperiods, i % g->nperiods, ind, val);
			glpk.set_mat_col(lp->p, lp->flow_col[i], n, ind, val);
		}
	lp->dual_first = true;
}

void lp_free(struct lp *lp)
{
	if (lp != NULL)
		glpk.delete_prob(lp->p);
}

void lp_add_relayed_row(struct lp *lp, double most)
{
	int nflows = lp->n->narcs * lp->g->nperiods, i, k = 0;
	int *ind = sandbox_alloc(lp->run, (size_t)nflows + 1, sizeof *ind);
	double *val = sandbox_alloc(lp->run, (size_t)nflows + 1, sizeof *val);

	for (i = 0; i < nflows; i++)
		if (lp->flow_col[i] != 0) {
			ind[++k] = lp->flow_col[i];
			val[k] = lp->flow_scale[i];
		}
	lp->relayed_row = add_row(lp, GLP_UP, most);
	glpk.set_mat_row(lp->p, lp->relayed_row, k, ind, val);
}

/* Peak storage: a variable above every storage column of the host. Enters the basis for the row of the
 * largest, to keep the basis feasible. */
static void add_peak(struct lp *lp, int host)
{
	int S = lp->g->nstages, s, c = 0, row, max_row = 0;
	double most = -1;

	for (s = 0; s < S; s++) {
		int stored = lp->stored_col[host * S + s];

		if (stored == 0)
			continue;
		if (c == 0) {
			c = glpk.add_cols(lp->p, 1);
			glpk.set_col_bnds(lp->p, c, GLP_LO, 0, 0);
			glpk.set_obj_coef(lp->p, c, 1);
		}
		row = add_row(lp, GLP_LO, 0);
		glpk.set_mat_row(lp->p, row, 2, (int[]){ 0, c, stored }, (double[]){ 0, 1, -1 });
		if (glpk.get_col_prim(lp->p, stored) > most) {
			most = glpk.get_col_prim(lp->p, stored);
			max_row = row;
		}
	}
	if (c != 0) {
		glpk.set_col_stat(lp->p, c, GLP_BS);
		glpk.set_row_stat(lp->p, max_row, GLP_NL);
	}
}

void lp_add_peaks(struct lp *lp)
{
	int h;

	for (h = 0; h < lp->n->nhosts; h++)
		add_peak(lp, h);
}
