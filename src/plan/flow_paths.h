/* Flows of a linear program's solution as paths: follows the flows from the sources; hosts forward in order
 * of arrival. */
#ifndef PLAN_FLOW_PATHS_H
#define PLAN_FLOW_PATHS_H

#include "plan/lp.h"

struct flow_path_hop {
	int arc, slot, period; /* fluid grids: the stage as slot */
};

/* Path of arrived data, hop by hop and slot by slot. */
struct flow_path {
	int source, nhops;
	const struct flow_path_hop *hop;
	double bytes;
};

/* Number of paths; allocates them in the sandbox. `g` as in pieces_trace(). */
size_t flow_paths(struct sandbox *run, const struct lp *lp, const struct graph *n, const struct time_grid *g,
    struct flow_path **out);

#endif
