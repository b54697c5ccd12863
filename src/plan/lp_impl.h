/* Internals of struct lp, for lp.c (rows and columns) and lp_solve.c. */
#ifndef PLAN_LP_IMPL_H
#define PLAN_LP_IMPL_H

#include "plan/glpk_calls.h"
#include "plan/lp.h"

struct lp {
	struct sandbox *run;
	const struct graph *n;
	struct time_grid *g;
	double *full_s;   /* lengths of the periods at first, of which rows and columns have their scales */
	int last;         /* the last period that is not empty */
	enum lp_mode mode;
	bool staged;      /* storage and the start of own data are variables */
	double max_share;
	glp_prob *p;
	enum lp_goal goal;
	/* Rows, 0: none; [host * nstages + stage], [limit * nperiods + period] */
	int *src_row, *store_row, *out_row, *in_row, *out_cap, *in_cap, *limit_row;
	int relayed_row;
	/* Columns, 0: none; [arc * nperiods + period] */
	int share_col, *flow_col, *own_col, *stored_col;
	int *even_col;      /* [period], lp_start(): equal shares of all sources */
	double *even_per_s; /* bound of these columns, per second of the period */
	double *flow_scale; /* share of all data per unit of the column */
	double slack;       /* possible gain by the missing columns, after a solution */
	double *value;      /* columns from 1 on, the goal at [0] */
	int nvalues, values_room;
	bool dual_first;    /* the basis is dual feasible: rows were added to an optimum */
};

/* Writes the entries of a flow's column to ind[1..] and val[1..]; returns their number, at most
 * LP_ENTRIES_MAX and the limits of the arc. */
#define LP_ENTRIES_MAX 10
int lp_column(const struct lp *lp, int arc, int period, int *ind, double *val);

/* Upper bound of a flow, as a share of all data; 0: no column. */
double lp_flow_max(const struct lp *lp, int arc, int period);

/* Adds the column of a flow unless it exists or, without `empty`, can carry nothing. */
void lp_add_flow(struct lp *lp, int arc, int period, bool empty);

/* Adds the column of the data that a relay stores after a stage, unless it exists or can store nothing. */
void lp_add_stored(struct lp *lp, int host, int stage);

/* Whether the column of lp_add_stored() is missing. */
bool lp_lacks_stored(const struct lp *lp, int host, int stage);

/* Sets the bound of the equal shares of a period. */
void lp_set_even_bound(struct lp *lp, int period);

/* Sets the bounds of all flows for the present lengths and rates of the periods. */
void lp_set_flow_bounds(struct lp *lp);

/* lp_solve(LP_MIN_RELAYED) for a share known from elsewhere. */
void lp_solve_relayed(struct lp *lp, double share);

/* Coefficient of a flow in the goal. */
double lp_flow_cost(const struct lp *lp, int arc, int period);

/* LP_MIN_STORAGE: adds the peak storage of each relay, to be minimized. */
void lp_add_peaks(struct lp *lp);
/* As lp_tighten(), without solving. */
void lp_make_exact(struct lp *lp);
/* Limits relayed data to a share of all data. */
void lp_add_relayed_row(struct lp *lp, double most);

#endif
