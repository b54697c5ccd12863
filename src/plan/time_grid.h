/* Time grid of a linear program: stages, each of one or more equal slots, and periods of constant rates
 * within stages. At the end of a stage a host may store data for the next.
 *
 * Fluid grid: one stage between rate changes, with one period; data may leave a relay in the stage of its
 * arrival. Slotted grid: slots of slot_s; data may leave a relay from the slot after its arrival on. A run
 * of ordinary slots forms one stage of equal slots; a slot with a rate change is a stage with several
 * periods. */
#ifndef PLAN_TIME_GRID_H
#define PLAN_TIME_GRID_H

#include "plan/graph.h"

struct stage {
	int first_slot, nslots; /* nslots 1 in a fluid grid */
	int first_period, nperiods; /* nperiods 1 if nslots > 1 */
};

struct period {
	double start_s, len_s; /* len_s of the whole stage if nslots > 1 */
	int interval;          /* index of an interval of graph.time */
};

struct time_grid {
	double slot_s; /* 0: fluid */
	double end_s;
	int nstages, nperiods;
	struct stage *stage;
	struct period *period;
};

struct time_grid *time_grid_pipelined(struct sandbox *run, const struct graph *n, double end_s);

/* One period, of the first interval of the graph. */
struct time_grid *time_grid_one(struct sandbox *run, double len_s);

/* nslots slots; single-slot stages are the first and last `fringe` slots and slots beside a rate change; no
 * stage exceeds `longest` slots. */
struct time_grid *time_grid_coordinated(struct sandbox *run, const struct graph *n, double slot_s, int nslots,
    int fringe, int longest);

/* Index of the stage of a period. */
int time_grid_stage(const struct time_grid *g, int period);

#endif
