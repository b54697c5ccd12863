/* The transfers of a simulated collection: the tasks of libptcp, on a simulated clock and network. One world at
 * a time, on the thread of played_begin(). */
#ifndef TESTS_COLLECT_PLAYED_TASKS_H
#define TESTS_COLLECT_PLAYED_TASKS_H

#include "collect/collect_world.h"

struct ptcp_collect;

/* Time begins with 0. */
void played_begin(const struct world *w);
void played_end(void);
/* The collection whose planner is awaited: plans take no simulated time. */
void played_collection(struct ptcp_collect *c);
double played_now_s(void);
/* Mean rate of each competing flow. */
double played_others_bps(void);

#endif
