/* Inside of streams.h, for streams.c (what streams make of a net) and streams_best.c. */
#ifndef PLAN_STREAMS_IMPL_H
#define PLAN_STREAMS_IMPL_H

#include "plan/streams.h"

/* The curve of a limit, or NULL. */
const struct conf_curve *streams_limit(const struct graph *n, int limit);

/* The most streams that an arc may have when no other has any; 0: they are not counted. */
int streams_most(const struct graph *n, int arc);

/* The net with these streams of each link. */
struct graph *streams_with(struct sandbox *run, const struct graph *n, const int *streams);

/* The net without windows, each arc with the highest rate it ever has. */
struct graph *streams_steady(struct sandbox *run, const struct graph *n);

#endif
