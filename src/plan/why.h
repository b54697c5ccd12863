/* Why there is no plan, in words. */
#ifndef PLAN_WHY_H
#define PLAN_WHY_H

#include "plan/lp.h"

/* Fails the run with PTCP_EINFEASIBLE if a source has no path to the destination
 * at any time; `slots`: relays without storage cannot pass on. */
void why_unreachable(struct run *run, const struct net *n, bool slots);

/* Fails the run: with all the time there is only `share` of the data arrives. */
_Noreturn void why_never(struct run *run, const struct net *n, double share, bool slots);

/* "S1>D (60 %), shared bottleneck 1 (40 %)": what holds the data back. */
#define WHY_TEXT_BYTES 300
void why_limits(char text[WHY_TEXT_BYTES], const struct net *n, const struct grid *g,
    const struct lp *lp);

#endif
