/* The linear programme of a collection over a grid of time, solved by GLPK's
 * simplex with columns added as they are needed.
 *
 * Variables: the flow over each arc in each period; at relays, what is held for
 * others at the end of a stage; at sources that relay as well, what of their own
 * data they start on in a stage; and the share of all data that arrives.
 * Only arcs that look useful have columns at first. After each solution the
 * reduced cost of every column left out is computed from the duals: those that
 * could improve the solution are added, and what the others could add at most
 * (their reduced cost times their upper bound) is the proof of optimality, up to
 * lp_bound(). Nothing is lost by the pruning beyond that.
 *
 * On a slotted grid the exact programme says that what leaves a host in a slot
 * was there when the slot began. In a stage of n equal slots with flows in and
 * out of a and b a slot that is: held before >= b and held after >= a. That
 * holds of no optimum by itself, so such a programme is a restriction, its
 * solutions are plans. The loose programme leaves it out in stages of several
 * slots (the mean over the slots of any plan satisfies it), its optimum bounds
 * that of every plan. */
#ifndef PLAN_LP_H
#define PLAN_LP_H

#include <stdbool.h>

#include "plan/time_grid.h"

enum lp_mode { LP_FLUID, LP_SLOTS, LP_SLOTS_LOOSE };

enum lp_goal {
	LP_MOST_DATA,    /* most of the data arrives; each source the same share */
	LP_LEAST_RELAYED,
	LP_LEAST_STORAGE,
};

struct lp;

/* `most_share` caps the share; 1 where only feasibility matters. `all_arcs`: no
 * pruning. */
struct lp *lp_new(struct sandbox *run, const struct graph *n, const struct time_grid *g, enum lp_mode mode,
    double most_share, bool all_arcs);
/* Makes a loose programme exact that has been solved for LP_LEAST_RELAYED, and
 * solves it for that again, going on from the solution it has. If that share cannot
 * be reached any more, solves for LP_MOST_DATA and returns false. */
bool lp_tighten(struct lp *lp);
void lp_free(struct lp *lp); /* NULL is fine; a failed run frees it by itself */

/* The goals in this order; each keeps what the one before reached, up to 1e-9.
 * The second and third end when the run's effort does, with what they have, but
 * not before they had a second. */
void lp_solve(struct lp *lp, enum lp_goal goal);

double lp_bound(const struct lp *lp); /* proven bound of the optimum by any columns */
double lp_share(const struct lp *lp); /* share that arrives in the current solution */

/* How much faster the share grows when the last period grows, a second. */
double lp_share_per_s(const struct lp *lp);

/* The solution, in bytes: over an arc in a period; of its own data started by a
 * source that relays. */
double lp_flow(const struct lp *lp, int arc, int period);
double lp_own(const struct lp *lp, int host, int stage);

/* What limits the share: the limits with a price, by what they hold back. Valid
 * after LP_MOST_DATA. Returns how many were written. */
struct lp_limit {
	int arc;     /* or -1 */
	int limit;     /* or -1 */
	int host;    /* its storage, or -1 */
	int period;  /* of the largest part, for an arc or res */
	double part; /* of the share, 0..1 */
};
int lp_limits(const struct lp *lp, struct lp_limit *out, int max);

#endif
