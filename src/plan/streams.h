/* How many streams each link gets, where an overlay has curves (curve.h).
 *
 * The streams of a link are counted if it has a curve or shares a bottleneck that has one. It gets
 * a whole number of them, from beginning to end. Those that cross a bottleneck with a curve, of all
 * sources together, are at most as many as its budget allows; each of them gets an equal share of
 * what so many bring. So a link with n of them has the least of its own rate with n and, in each
 * such bottleneck, n such shares. */
#ifndef PLAN_STREAMS_H
#define PLAN_STREAMS_H

#include "plan/methods.h"

/* Whether any link's streams are counted; if not, nothing else here is to be called. */
bool streams_counted(const struct graph *n);

/* The net, each link with as many streams as it may have when no other has any. */
struct graph *streams_alone(struct sandbox *run, const struct graph *n);

/* The net when the streams are divided evenly among the arcs with in_use[arc], and others have
 * none; NULL when some would get none. Fills streams[link]. */
struct graph *streams_even(struct sandbox *run, const struct graph *n, const char *in_use, int *streams);

/* The net with the streams by which most data arrives a second, if relays pass on as they receive
 * and every link is as it is at its best time. Fills streams[link], and the makespan below which
 * none comes by any choice. Fails the run with PTCP_EINFEASIBLE if the budget leaves too few for all
 * sources. */
struct graph *streams_best(struct sandbox *run, const struct graph *n, const struct plan_tuning *tuning,
    int *streams, double *bound_s);

#endif
