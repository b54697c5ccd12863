/* Why there is no plan, in words. */
#ifndef PLAN_INFEASIBLE_H
#define PLAN_INFEASIBLE_H

#include "plan/lp.h"

/* Fails the run with PTCP_EINFEASIBLE if a source has no path to the destination
 * at any time; `slots`: relays without storage cannot pass on. */
void infeasible_unreachable(struct sandbox *run, const struct graph *n, bool slots);

/* Fails the run: with all the time there is only `share` of the data arrives. */
_Noreturn void why_never(struct sandbox *run, const struct graph *n, double share, bool slots);

/* "S1>D (60 %), shared bottleneck 1 (40 %)": what holds the data back. */
#define INFEASIBLE_TEXT_BYTES 300
void infeasible_limits(char text[INFEASIBLE_TEXT_BYTES], const struct graph *n, const struct time_grid *g,
    const struct lp *lp);

#endif
