/* Planning in a thread, on a copy of the overlay. */
#ifndef COLLECT_PLANNER_THREAD_H
#define COLLECT_PLANNER_THREAD_H

#include <stdbool.h>

#include "collect/schedule.h"

struct planner_thread;

/* Starts planning from room_s after the overlay's time 0. The overlay's constant parts must outlive the planner
 * (plan/overlay_copy.h). */
int planner_thread_new(struct planner_thread **out, const struct ptcp_overlay *o, double room_s,
    const struct ptcp_plan_opts *opts, struct ptcp_err *e);

bool planner_thread_is_done(const struct planner_thread *p);

/* Waits for the end; passes the plan to the caller, or the error. */
int planner_thread_take(struct planner_thread *p, struct ptcp_plan **plan, struct schedule **schedule,
    struct ptcp_err *e);

void planner_thread_free(struct planner_thread *p); /* waits; NULL is fine */

#endif
