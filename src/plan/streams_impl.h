/* Inside of streams.h, for streams.c (what streams make of a net) and streams_best.c. */
#ifndef PLAN_STREAMS_IMPL_H
#define PLAN_STREAMS_IMPL_H

#include "plan/streams.h"

/* The curve of a limit, or NULL. */
const struct conf_curve *streams_limit(const struct net *n, int res);

/* The most streams that an arc may have when no other has any; 0: they are not counted. */
int streams_most(const struct net *n, int arc);

/* The net with these streams of each link. */
struct net *streams_with(struct run *run, const struct net *n, const int *streams);

/* The net without windows, each arc with the highest rate it ever has. */
struct net *streams_steady(struct run *run, const struct net *n);

#endif
