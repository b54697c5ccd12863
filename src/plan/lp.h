/* The linear program of a collection over a time grid, solved by GLPK's simplex method with column
 * generation.
 *
 * Variables: the flow over each arc in each period; for relays, the bytes stored at the end of a stage; for
 * sources that relay as well, the part of their own data that starts in a stage; and the share of all data
 * that arrives. Initially only promising arcs have columns, and in fluid programs no storage has. After each
 * solution the duals give the reduced cost of every missing column: columns that could improve the solution
 * are added, and the possible gain by the rest (reduced cost times upper bound) proves optimality, up to
 * lp_bound(). The pruning has no other effect.
 *
 * On a slotted grid the exact program requires that data leaving a host in a slot was present at the start
 * of the slot. In a stage of n equal slots with flows in and out of a and b per slot the condition is:
 * stored before >= b and stored after >= a. An optimum of all plans need not satisfy the condition, hence
 * the exact program is a restriction, and its solutions are plans. The loose program omits the condition in
 * stages of several slots (the mean over the slots of any plan satisfies the loose program); its optimum
 * bounds the optimum of all plans. */
#ifndef PLAN_LP_H
#define PLAN_LP_H

#include <stdbool.h>

#include "plan/time_grid.h"

enum lp_mode { LP_FLUID, LP_SLOTS, LP_SLOTS_LOOSE };

enum lp_goal {
	LP_MAX_DATA,    /* maximizes the share of the data, equal for all sources */
	LP_MIN_RELAYED,
	LP_MIN_STORAGE,
};

struct lp;

/* The columns to begin with. */
enum lp_arcs {
	LP_ARCS_NONE, /* lp_start() adds columns */
	LP_ARCS_PROMISING,
	LP_ARCS_ALL, /* no pruning */
};

/* `max_share` caps the share; 1 if only feasibility matters. */
struct lp *lp_new(struct sandbox *run, const struct graph *n, struct time_grid *g, enum lp_mode mode,
    double max_share, enum lp_arcs arcs);
/* Fluid programs: changes the horizon of the grid and of the program, which keeps its basis. Periods after the
 * horizon are empty; only the last period of the graph can become longer than at first. */
void lp_set_horizon(struct lp *lp, double end_s);
/* Makes a loose program, solved for LP_MIN_RELAYED, exact, and solves again from the present solution. If
 * the share becomes unreachable, solves for LP_MAX_DATA and returns false. */
bool lp_tighten(struct lp *lp);
void lp_free(struct lp *lp); /* NULL is fine; a failed run frees its program */

/* Goals in ascending order; each keeps the result of the previous goal up to 1e-9. The second and third end
 * with the effort of the run, after at least a second, with their best solution. */
void lp_solve(struct lp *lp, enum lp_goal goal);

double lp_bound(const struct lp *lp); /* proven bound of the optimum with all columns */
double lp_share(const struct lp *lp); /* share that arrives in the present solution */

/* ---- lp_start.c: a first solution of a fluid program of several periods ----
 *
 * Without storage, and with equal shares of all sources in each period, the periods are separate small programs.
 * Their solutions are together a solution of the whole program, often an optimal one, and their bases together are
 * its basis. */

/* A program of one period of len_s; the caller frees it. */
struct lp *lp_new_period(struct sandbox *run, const struct graph *n, double len_s, enum lp_arcs arcs);
/* Solves it with the rates of an interval of the graph: share per second. */
double lp_share_in(struct lp *one, int interval);
/* Before the first lp_solve(), with the results of lp_share_in(). */
void lp_start(struct lp *lp, const double *share_per_s, enum lp_arcs arcs);

/* Growth of the share per second of the last period that is not empty. */
double lp_share_per_s(const struct lp *lp);

/* The solution in bytes: flow over an arc in a period; own data started by a source that relays. */
double lp_flow(const struct lp *lp, int arc, int period);
double lp_own(const struct lp *lp, int host, int stage);

/* Limits with a positive price, by their part of the share; valid after LP_MAX_DATA. Returns the number
 * written. */
struct lp_limit {
	int arc;     /* index of the arc, or -1 */
	int limit;     /* index of the limit, or -1 */
	int host;    /* limit is its storage, or -1 */
	int period;  /* period with the largest part, of an arc or limit */
	double part; /* part of the share, 0 to 1 */
};
int lp_limits(const struct lp *lp, struct lp_limit *out, int max);

#endif
