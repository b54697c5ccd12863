/* A plan that is made beside the loop: by a thread, of the overlay as it was when that began. */
#ifndef COLLECT_PLANNER_THREAD_H
#define COLLECT_PLANNER_THREAD_H

#include <stdbool.h>

#include "collect/schedule.h"

struct planner_thread_thread;

/* Begins. What never changes of the overlay has to outlive it (plan/snapshot.h). */
int planner_thread_new(struct planner_thread_thread **out, const struct ptcp_overlay *o, const struct ptcp_plan_opts *opts,
    struct ptcp_err *e);

bool planner_thread_is_done(const struct planner_thread_thread *p);

/* Waits until it is done. The plan is the caller's then, or the error. */
int planner_thread_take(struct planner_thread_thread *p, struct ptcp_plan **plan, struct schedule **schedule, struct ptcp_err *e);

void planner_thread_free(struct planner_thread_thread *p); /* waits; NULL is fine */

#endif
