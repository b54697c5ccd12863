/* A growing list of pieces, while a plan is made; see <ptcp/plan.h> for what a
 * piece is. Lives in a run's memory. */
#ifndef PLAN_PIECES_H
#define PLAN_PIECES_H

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

/* Hops are copied. */
void pieces_add(struct pieces *p, int source, double bytes, const struct ptcp_plan_hop *hops, size_t nhops);

/* Adds the pieces of the solution of a programme over the grid `g` (the one it was
 * made for, or one with other lengths of periods): flows are followed from the
 * sources, a host passes on first what it got first. Each source's pieces are
 * scaled to sum to its data. Fails the run if the solution leaves out more than a
 * part in a million of a source's data. */
void pieces_trace(struct pieces *out, const struct lp *lp, const struct graph *n,
    const struct time_grid *g);

#endif
