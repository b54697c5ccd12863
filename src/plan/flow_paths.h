/* What arrived, hop by hop, as it is traced slot by slot; and its turning into
 * pieces: what takes the same course in slots one after the other is one piece. */
#ifndef PLAN_FLOW_PATHS_H
#define PLAN_FLOW_PATHS_H

#include "plan/pieces.h"

struct flow_path_hop {
	int arc, slot, period; /* fluid grids: the stage as slot */
};

struct flow_path {
	int source, nhops;
	const struct flow_path_hop *hop;
	double bytes;
};

/* Sorts `c`. `share` is the part of the data that the courses should carry. */
void flow_paths_to_pieces(struct pieces *out, const struct graph *n, const struct time_grid *g,
    struct flow_path *c, size_t nc, double share);

#endif
