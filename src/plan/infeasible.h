/* Explanations of infeasible plans. */
#ifndef PLAN_INFEASIBLE_H
#define PLAN_INFEASIBLE_H

#include "plan/lp.h"

/* Fails the run with PTCP_EINFEASIBLE if a source never has a path to the destination; `slots`: relays need
 * storage. */
void infeasible_unreachable(struct sandbox *run, const struct graph *n, bool slots);

/* Fails the run: in unlimited time only `share` of the data arrives. */
_Noreturn void infeasible_always(struct sandbox *run, const struct graph *n, double share, bool slots);

/* "S1>D (60 %), shared bottleneck 1 (40 %)": the bottlenecks of a plan. */
#define INFEASIBLE_TEXT_BYTES 300
void infeasible_limits(char text[INFEASIBLE_TEXT_BYTES], const struct graph *n, const struct time_grid *g,
    const struct lp *lp);

#endif
