/* The planner's problems in their plain form, for comparison: every link, slot and
 * host has its variables, nothing is pruned, merged or scaled, own data and that
 * of others are apart. Shares no code with the planner. Solved by GLPK's dual
 * simplex after its presolver, or by another program from an LP file. */
#ifndef TESTS_PLAN_PLAIN_H
#define TESTS_PLAN_PLAIN_H

#include "instance.h"

struct plain {
	bool feasible;
	double makespan_s, relayed_mb, storage_mb;
};

/* With solver NULL GLPK in this process; "glpsol" or "clp" runs that program
 * (which then computes the makespan only). `goals` 1: makespan; 2: and the least
 * relayed; 3: and then the least storage. */
void plain_fluid(const struct inst *in, int goals, const char *solver, struct plain *out);
/* The least number of slots up to `most_slots`; relays pass on in later slots. */
void plain_slots(const struct inst *in, double slot_s, int least_slots, int most_slots,
    int goals, const char *solver, struct plain *out);

#endif
