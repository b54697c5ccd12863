#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sorted.h"
#include "plan/lp_impl.h"

#define KEEP 1e-9        /* loss allowed to the next goal */
#define PRICE_EPS 1e-10  /* smaller reduced costs are noise */
#define PROVEN 1e-9      /* possible gain by missing columns */
#define PART_S 0.5       /* longest run of the simplex method */
#define BATCH 2000       /* columns added at a time */

struct column {
	double gain;
	int at;
};

static int by_gain(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	return x->at - y->at;
}

/* Reduced cost of a missing column, as a gain of the goal. */
static double gain(const struct lp *lp, int arc, int period, int *ind, double *val, const double *dual)
{
	int n = lp_column(lp, arc, period, ind, val), i;
	double d = lp_flow_cost(lp, arc, period);

	for (i = 1; i <= n; i++)
		d -= dual[ind[i]] * val[i];
	return lp->goal == LP_MAX_DATA ? d : -d;
}

/* As gain(), of the data that a relay stores after a stage. */
static double stored_gain(const struct lp *lp, int at, const double *dual)
{
	double d = dual[lp->store_row[at]] - dual[lp->store_row[at + 1]];

	return lp->goal == LP_MAX_DATA ? d : -d;
}

/* Prices all missing columns, sets lp->slack, and returns the number of improving columns, the best
 * first. */
static int price(struct lp *lp, struct column **out)
{
	int P = lp->g->nperiods, S = lp->g->nstages, nrows = glpk.get_num_rows(lp->p), most = 0, k = 0, a, p, i;
	double *dual = sandbox_alloc(lp->run, (size_t)nrows + 1, sizeof *dual), *val;
	int *ind;

	for (i = 1; i <= nrows; i++)
		dual[i] = glpk.get_row_dual(lp->p, i);
	for (a = 0; a < lp->n->narcs; a++)
		if (lp->n->arc[a].nlimits > most)
			most = lp->n->arc[a].nlimits;
	ind = sandbox_alloc(lp->run, (size_t)(most + LP_ENTRIES_MAX), sizeof *ind);
	val = sandbox_alloc(lp->run, (size_t)(most + LP_ENTRIES_MAX), sizeof *val);
	*out = sandbox_alloc(lp->run, (size_t)lp->n->narcs * (size_t)P + (size_t)lp->n->nhosts * (size_t)S,
	    sizeof **out);
	lp->slack = 0;
	for (a = 0; a < lp->n->narcs; a++)
		for (p = 0; p < P; p++) {
			double max, d;

			if (lp->flow_col[a * P + p] != 0 || !((max = lp_flow_max(lp, a, p)) > 0))
				continue;
			lp->flow_scale[a * P + p] = 1;
			d = gain(lp, a, p, ind, val, dual);
			if (d <= PRICE_EPS)
				continue;
			/* An arc carries at most the data that arrives. */
			max = fmin(max, fmax(1, lp_share(lp)));
			lp->slack += d * max;
			(*out)[k++] = (struct column){ d * max, a * P + p };
		}
	for (i = 0; i < lp->n->nhosts * S; i++) {
		double max, d;

		if (!lp_lacks_stored(lp, i / S, i % S) || (d = stored_gain(lp, i, dual)) <= PRICE_EPS)
			continue;
		max = fmin(lp->n->host[i / S].storage / lp->n->total, fmax(1, lp_share(lp)));
		lp->slack += d * max;
		(*out)[k++] = (struct column){ d * max, lp->n->narcs * P + i };
	}
	sort_array(*out, (size_t)k, sizeof **out, by_gain);
	return k;
}

/* Keeps the solution until a better one is found. */
static void keep_values(struct lp *lp)
{
	int n = glpk.get_num_cols(lp->p), i;

	if (n >= lp->values_room) {
		lp->values_room = 2 * n + 1;
		lp->value = sandbox_alloc(lp->run, (size_t)lp->values_room, sizeof *lp->value);
	}
	lp->nvalues = n;
	lp->value[0] = glpk.get_obj_val(lp->p);
	/* The simplex method may exceed a bound by its tolerance; a link's rate must not be exceeded. */
	for (i = 1; i <= n; i++) {
		lp->value[i] = fmax(0, glpk.get_col_prim(lp->p, i));
		if (glpk.get_col_type(lp->p, i) == GLP_DB || glpk.get_col_type(lp->p, i) == GLP_FX)
			lp->value[i] = fmin(lp->value[i], glpk.get_col_ub(lp->p, i));
	}
}

enum outcome { OPTIMAL, OUT_OF_TIME, INFEASIBLE };

/* In parts, between which the run may be canceled; a part begins from the basis of the part before. */
static int run_simplex(struct lp *lp, glp_smcp *parm, double limit_s)
{
	double done_s = 0;
	int r;

	do {
		parm->tm_lim = (int)(1000 * fmin(PART_S, limit_s - done_s));
		r = glpk.simplex(lp->p, parm);
		sandbox_check(lp->run);
		done_s += PART_S;
	} while (r == GLP_ETMLIM && done_s < limit_s);
	return r;
}

/* Runs the simplex method from the present basis, then with other bases and tolerances. */
static enum outcome simplex(struct lp *lp)
{
	double until_s = lp->goal == LP_MAX_DATA ? INFINITY : fmax(1, sandbox_left_s(lp->run));
	glp_smcp parm;
	int attempt, r = 0;

	glpk.init_smcp(&parm);
	parm.msg_lev = GLP_MSG_OFF;
	parm.tol_bnd = 1e-9;
	parm.tol_dj = 1e-9;
	for (attempt = 0; attempt < 4; attempt++) {
		parm.meth = lp->dual_first || attempt >= 2 ? GLP_DUALP : GLP_PRIMAL;
		lp->dual_first = false;
		if (attempt == 1)
			glpk.adv_basis(lp->p, 0);
		else if (attempt == 2)
			glpk.std_basis(lp->p);
		else if (attempt == 3)
			parm.tol_bnd = parm.tol_dj = 1e-7;
		r = run_simplex(lp, &parm, until_s);
		if (r == 0 && glpk.get_status(lp->p) == GLP_OPT)
			return OPTIMAL;
		if (r == 0 && glpk.get_status(lp->p) == GLP_NOFEAS)
			return INFEASIBLE;
		if (r == GLP_ETMLIM)
			return OUT_OF_TIME;
	}
	sandbox_fail(lp->run, PTCP_ERANGE, "planning: the simplex method failed (%d, status %d): "
	    "rates or sizes of the overlay lie too far apart", r, glpk.get_status(lp->p));
}

/* Adds a column of price(); for storage, that of all stages of the host, since data may be stored for several. */
static void add_column(struct lp *lp, int at)
{
	int P = lp->g->nperiods, S = lp->g->nstages, nflows = lp->n->narcs * P, s;

	if (at < nflows)
		lp_add_flow(lp, at / P, at % P, false);
	for (s = 0; s < S && at >= nflows; s++)
		lp_add_stored(lp, (at - nflows) / S, s);
}

static enum outcome optimize(struct lp *lp)
{
	for (;;) {
		size_t mark;
		struct column *c;
		enum outcome outcome;
		int i, n;

		lp->slack = INFINITY;
		if ((outcome = simplex(lp)) != OPTIMAL) {
			if (glpk.get_prim_stat(lp->p) == GLP_FEAS)
				keep_values(lp);
			return outcome;
		}
		lp->slack = 0;
		keep_values(lp);
		if (lp->goal == LP_MAX_DATA && lp_share(lp) >= lp->max_share)
			return OPTIMAL;
		mark = sandbox_mark(lp->run);
		n = price(lp, &c);
		if (lp->slack > PROVEN && (lp->goal == LP_MAX_DATA || !sandbox_hurry(lp->run))) {
			for (i = 0; i < n && i < BATCH; i++)
				add_column(lp, c[i].at);
			sandbox_release(lp->run, mark);
			continue;
		}
		sandbox_release(lp->run, mark);
		return OPTIMAL;
	}
}

/* Whether all storage columns are 0. */
static bool stores_nothing(const struct lp *lp)
{
	int i;

	for (i = 0; i < lp->n->nhosts * lp->g->nstages; i++)
		if (lp->stored_col[i] != 0 && lp->value[lp->stored_col[i]] > PROVEN)
			return false;
	return true;
}

static void add_all_stored(struct lp *lp)
{
	int h, s;

	for (h = 0; h < lp->n->nhosts; h++)
		for (s = 0; s < lp->g->nstages; s++)
			lp_add_stored(lp, h, s);
}

/* `share`: that has to arrive, for the later goals. */
static enum outcome solve(struct lp *lp, enum lp_goal goal, double share)
{
	double relayed = goal == LP_MIN_STORAGE ? lp->value[0] : 0;
	int i;

	for (i = 1; i <= glpk.get_num_cols(lp->p); i++)
		glpk.set_obj_coef(lp->p, i, 0);
	lp->goal = goal;
	switch (goal) {
	case LP_MAX_DATA:
		glpk.set_col_bnds(lp->p, lp->share_col,
		    isfinite(lp->max_share) ? GLP_DB : GLP_LO, 0, lp->max_share);
		glpk.set_obj_dir(lp->p, GLP_MAX);
		glpk.set_obj_coef(lp->p, lp->share_col, 1);
		break;
	case LP_MIN_RELAYED:
		glpk.set_obj_dir(lp->p, GLP_MIN);
		glpk.set_col_bnds(lp->p, lp->share_col, share > 0 ? GLP_DB : GLP_FX, share * (1 - KEEP), share);
		for (i = 0; i < lp->n->narcs * lp->g->nperiods; i++)
			if (lp->flow_col[i] != 0)
				glpk.set_obj_coef(lp->p, lp->flow_col[i], lp->flow_scale[i]);
		break;
	case LP_MIN_STORAGE:
		glpk.set_obj_dir(lp->p, GLP_MIN);
		add_all_stored(lp);
		lp_add_relayed_row(lp, relayed * (1 + KEEP));
		lp_add_peaks(lp);
		break;
	}
	return optimize(lp);
}

void lp_solve(struct lp *lp, enum lp_goal goal)
{
	if (goal == LP_MIN_STORAGE && stores_nothing(lp))
		return;
	/* Later goals have a feasible solution, the previous one; if rounding makes them infeasible, the
	 * previous solution stays, without a bound. */
	if (solve(lp, goal, goal == LP_MAX_DATA ? 0 : lp_share(lp)) == INFEASIBLE && goal == LP_MAX_DATA)
		sandbox_fail(lp->run, PTCP_ERANGE, "planning: no solution: rates or sizes of the overlay "
		    "lie too far apart");
}

void lp_solve_relayed(struct lp *lp, double share)
{
	solve(lp, LP_MIN_RELAYED, share);
}

bool lp_tighten(struct lp *lp)
{
	enum outcome outcome;

	lp_make_exact(lp);
	outcome = optimize(lp);
	if (outcome == OPTIMAL || (outcome == OUT_OF_TIME && glpk.get_prim_stat(lp->p) == GLP_FEAS))
		return true;
	lp_solve(lp, LP_MAX_DATA);
	return false;
}

double lp_share(const struct lp *lp)
{
	return lp->value[lp->share_col];
}

double lp_bound(const struct lp *lp)
{
	if (lp->goal == LP_MAX_DATA)
		return fmin(lp_share(lp) + lp->slack, lp->max_share);
	return fmax(0, (lp->value[0] - lp->slack) * lp->n->total);
}

static double column_bytes(const struct lp *lp, int col, double scale)
{
	double v = col == 0 || col > lp->nvalues ? 0 : lp->value[col] * scale * lp->n->total;

	return v > 0 ? v : 0;
}

double lp_flow(const struct lp *lp, int arc, int period)
{
	int at = arc * lp->g->nperiods + period;

	return column_bytes(lp, lp->flow_col[at], lp->flow_scale[at]);
}

double lp_own(const struct lp *lp, int host, int stage)
{
	double data = lp->n->host[host].data / lp->n->total;

	if (!lp->staged)
		return lp_share(lp) * lp->n->host[host].data;
	return column_bytes(lp, lp->own_col[host * lp->g->nstages + stage], data) +
	    column_bytes(lp, lp->even_col[stage], data);
}

/* Dual of a column at its upper bound, else 0. */
static double price_of_bound(const struct lp *lp, int col)
{
	return col != 0 && glpk.get_col_stat(lp->p, col) == GLP_NU ? fmax(0, glpk.get_col_dual(lp->p, col)) : 0;
}

double lp_share_per_s(const struct lp *lp)
{
	int P = lp->g->nperiods, last = lp->last, a, r;
	int interval = lp->g->period[last].interval;
	double sum = 0;

	for (a = 0; a < lp->n->narcs; a++)
		if (lp->flow_col[a * P + last] != 0)
			sum += price_of_bound(lp, lp->flow_col[a * P + last]) /
			    lp->flow_scale[a * P + last] * graph_rate(lp->n, a, interval) / lp->n->total;
	for (r = 0; r < lp->n->nlimits; r++)
		if (lp->limit_row[r * P + last] != 0)
			sum += fmax(0, glpk.get_row_dual(lp->p, lp->limit_row[r * P + last])) *
			    glpk.get_row_ub(lp->p, lp->limit_row[r * P + last]) / lp->g->period[last].len_s;
	return sum;
}

static int add_limit(struct lp_limit *out, int n, int max, struct lp_limit l)
{
	int i;

	if (!(l.part > 1e-6) || (n == max && out[max - 1].part >= l.part))
		return n;
	for (i = n < max ? n : max - 1; i > 0 && out[i - 1].part < l.part; i--)
		out[i] = out[i - 1];
	out[i] = l;
	return n < max ? n + 1 : max;
}

static double best_of(const double *part, int n, int *period)
{
	double sum = 0;
	int p;

	for (*period = 0, p = 0; p < n; p++) {
		sum += part[p];
		if (part[p] > part[*period])
			*period = p;
	}
	return sum;
}

int lp_limits(const struct lp *lp, struct lp_limit *out, int max)
{
	int P = lp->g->nperiods, S = lp->g->nstages, n = 0, a, r, p, h, s;
	double *part = sandbox_alloc(lp->run, (size_t)P, sizeof *part);
	struct lp_limit l;

	for (a = 0; a < lp->n->narcs; a++) {
		for (p = 0; p < P; p++)
			part[p] = lp->flow_col[a * P + p] == 0 ? 0 :
			    price_of_bound(lp, lp->flow_col[a * P + p]) *
			    glpk.get_col_ub(lp->p, lp->flow_col[a * P + p]);
		l = (struct lp_limit){ a, -1, -1, 0, 0 };
		l.part = best_of(part, P, &l.period);
		n = add_limit(out, n, max, l);
	}
	for (r = 0; r < lp->n->nlimits; r++) {
		for (p = 0; p < P; p++) {
			int row = lp->limit_row[r * P + p];

			part[p] = row == 0 ? 0 : fmax(0, glpk.get_row_dual(lp->p, row)) *
			    glpk.get_row_ub(lp->p, row);
		}
		l = (struct lp_limit){ -1, r, -1, 0, 0 };
		l.part = best_of(part, P, &l.period);
		n = add_limit(out, n, max, l);
	}
	for (h = 0; h < lp->n->nhosts; h++) {
		l = (struct lp_limit){ -1, -1, h, 0, 0 };
		for (s = 0; s < S; s++)
			if (lp->stored_col[h * S + s] != 0)
				l.part += price_of_bound(lp, lp->stored_col[h * S + s]) *
				    glpk.get_col_ub(lp->p, lp->stored_col[h * S + s]);
		n = add_limit(out, n, max, l);
	}
	return n;
}
