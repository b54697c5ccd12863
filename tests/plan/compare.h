/* A random overlay planned by every method and checked: each plan against the
 * verifier and each method against the others; with `plain` also makespan,
 * relayed bytes and storage against the plain programmes. */
#ifndef TESTS_PLAN_COMPARE_H
#define TESTS_PLAN_COMPARE_H

#include "instance.h"

#define COMPARE_WHAT_BYTES 1024

enum compare_depth { COMPARE_VERIFY, COMPARE_MAKESPAN, COMPARE_ALL };

struct compare_count {
	int planned, infeasible, compared, unproven, relayed_unproven;
};

/* `together`: with as many slots put together as possible, as in large overlays;
 * otherwise slot by slot. 0, or -1 with `what` saying what is wrong. `solver` as in plain.h. */
int compare(const struct inst *in, enum compare_depth depth, bool together, const char *solver,
    struct compare_count *count, char what[COMPARE_WHAT_BYTES]);

#endif
