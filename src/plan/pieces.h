/* A growing list of pieces of a plan under construction; <ptcp/plan.h> defines pieces. Allocated in a
 * sandbox. */
#ifndef PLAN_PIECES_H
#define PLAN_PIECES_H

#include <ptcp/plan.h>

#include "plan/lp.h"

struct piece {
	int source;
	size_t first_hop, nhops;
	double bytes;
};

struct pieces {
	struct sandbox *run;
	struct piece *piece;
	struct ptcp_plan_hop *hop;
	size_t n, room, nhops, hop_room;
};

struct pieces *pieces_new(struct sandbox *run);

/* Copies the hops. */
void pieces_add(struct pieces *p, int source, double bytes, const struct ptcp_plan_hop *hops, size_t nhops);

/* Adds the pieces of a program's solution over the grid `g` (the program's grid, or one with other period
 * lengths): follows the flows from the sources; hosts forward in order of arrival. Scales the pieces of
 * each source to its data. Fails the run if the solution lacks more than a part in a million of a source's
 * data. */
void pieces_trace(struct pieces *out, const struct lp *lp, const struct graph *n, const struct time_grid *g);

#endif
