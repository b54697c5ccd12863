/* What arrived, hop by hop, as it is traced slot by slot; and its turning into
 * pieces: what takes the same course in slots one after the other is one piece. */
#ifndef PLAN_COURSES_H
#define PLAN_COURSES_H

#include "plan/pieces.h"

struct course_hop {
	int arc, slot, period; /* fluid grids: the stage as slot */
};

struct course {
	int source, nhops;
	const struct course_hop *hop;
	double bytes;
};

/* Sorts `c`. `share` is the part of the data that the courses should carry. */
void courses_to_pieces(struct pieces *out, const struct net *n, const struct grid *g,
    struct course *c, size_t nc, double share);

#endif
