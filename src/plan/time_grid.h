/* Time cut for a linear programme: stages, each of one or more equal slots, and
 * periods of constant rates inside them. At the end of a stage a host may hold
 * data for the next.
 *
 * Fluid grid: one stage from each change of rates to the next, one period each;
 * what arrives in a stage may leave in the same. Slotted grid: slots of slot_s;
 * what arrives in a slot may leave from the next on. A run of slots with nothing
 * special about them makes one stage in which all slots look alike; a slot in
 * which rates change is a stage of its own with several periods. */
#ifndef PLAN_TIME_GRID_H
#define PLAN_TIME_GRID_H

#include "plan/graph.h"

struct stage {
	int first_slot, nslots; /* nslots 1 in a fluid grid */
	int first_period, nperiods; /* nperiods 1 where nslots > 1 */
};

struct period {
	double start_s, len_s; /* len_s of the whole stage where nslots > 1 */
	int interval;          /* of net.time */
};

struct time_grid {
	double slot_s; /* 0: fluid */
	double end_s;
	int nstages, nperiods;
	struct stage *stage;
	struct period *period;
};

struct time_grid *time_grid_pipelined(struct sandbox *run, const struct graph *n, double end_s);

/* nslots slots; the first and last `fringe` and those beside a change of rates
 * are stages of their own; no stage is longer than `longest` slots. */
struct time_grid *time_grid_coordinated(struct sandbox *run, const struct graph *n, double slot_s, int nslots,
    int fringe, int longest);

#endif
