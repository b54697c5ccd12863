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

/* How the slots of coordinated plans are handled: one by one, merged into stages as in large overlays, or so
 * many that only stages can be solved. */
enum compare_slots { COMPARE_SINGLE, COMPARE_STAGES, COMPARE_MANY };

/* 0, or -1 with the fault in `what`. `solver` as in plain.h. */
int compare(const struct inst *in, enum compare_depth depth, enum compare_slots slots, const char *solver,
    struct compare_count *count, char what[COMPARE_WHAT_BYTES]);

#endif
