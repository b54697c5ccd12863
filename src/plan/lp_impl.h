/* Inside of struct lp, for lp.c (rows, and columns beside those of flows), lp_flow.c (those) and lp_solve.c. */
#ifndef PLAN_LP_IMPL_H
#define PLAN_LP_IMPL_H

#include <glpk.h>

#include "plan/lp.h"

struct lp {
	struct sandbox *run;
	const struct graph *n;
	const struct time_grid *g;
	enum lp_mode mode;
	bool staged;      /* holding and starting on own data are variables */
	double most_share;
	glp_prob *p;
	enum lp_goal goal;
	/* Rows, 0 where there is none; [host * nstages + stage], [res * nperiods + period] */
	int *src_row, *keep_row, *out_row, *in_row, *out_cap, *in_cap, *limit_row;
	int relayed_row;
	/* Columns, likewise; [arc * nperiods + period] */
	int share_col, *flow_col, *own_col, *held_col;
	double *flow_scale; /* of total data, for one unit of the column */
	double slack;       /* what the columns left out could add, after a solution */
	double *value;      /* of the columns, from 1, and of the goal at [0] */
	int nvalues, values_room;
	bool dual_first;    /* the basis is dual feasible: rows were added to an optimum */
};

/* ---- lp_flow.c ---- */

/* Entries of the column of a flow, in ind[1..] and val[1..]; returns how many.
 * LP_ENTRIES_MAX bounds them beside the arc's limits. */
#define LP_ENTRIES_MAX 10
int lp_column(const struct lp *lp, int arc, int period, int *ind, double *val);

/* Most of one unit of the column that can flow; 0: there is no such column. */
double lp_flow_max(const struct lp *lp, int arc, int period);

/* Adds the column of a flow unless it is there or can carry nothing. */
void lp_add_flow(struct lp *lp, int arc, int period);

/* What one unit of the column adds to the goal. */
double lp_flow_cost(const struct lp *lp, int arc, int period);
/* Bytes that the arc can carry in the period. */
double lp_capacity(const struct lp *lp, int arc, int period);

/* ---- lp.c ---- */

/* For LP_LEAST_STORAGE: the most that each relay holds, to be minimised. */
void lp_add_peaks(struct lp *lp);
/* As lp_tighten() has it, without solving. */
void lp_make_exact(struct lp *lp);
/* No more than `most` of all data is relayed. */
void lp_add_relayed_row(struct lp *lp, double most);

#endif
