/* The planner's graph: the part of an overlay that can carry data to the destination. Bytes and bytes per
 * second, as doubles. Allocated in a sandbox. */
#ifndef PLAN_GRAPH_H
#define PLAN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/overlay.h"
#include "plan/sandbox.h"

struct graph_host {
	double data;    /* bytes to deliver, 0: not a source */
	double storage; /* bytes stored for other hosts, INFINITY: no limit */
	bool relay;     /* forwards data of other hosts */
};

struct graph_arc {
	int from, to;
	int link;    /* index in the overlay */
	double rate; /* outside windows */
	int first_limit, nlimits;
	int windowed; /* row of graph.windowed, or -1 */
};

struct graph_limit { /* total rate of several arcs: of a bottleneck, ingress or egress */
	double rate;
	size_t of; /* index of the overlay's limit, see rate_limits.h */
	int first_arc, narcs;
};

struct graph {
	const struct ptcp_overlay *overlay;
	int nhosts, dest, narcs, nlimits, ntimes;
	double total; /* bytes of all sources */
	struct graph_host *host;
	struct graph_arc *arc;   /* arcs in the order of from, then to */
	int *out;              /* [nhosts + 1]: first arc of a host */
	struct graph_limit *limit;
	int *arc_limit, *limit_arc; /* lists, from first_limit and first_arc on */
	double *time;          /* ntimes moments of rate changes; time[0] is 0 */
	double *windowed;      /* rates of arcs with windows, ntimes per row */
};

/* Fails the run with PTCP_ECONFIG for an unknown rate or size. Leaves out arcs of no use to any plan: into
 * hosts that do not relay, out of hosts without data to send, out of the destination, and arcs that never
 * have a rate, or cross a limit of 0. */
struct graph *graph_new(struct sandbox *run, const struct ptcp_overlay *o);

/* Rate of an arc from graph.time[interval] on. */
double graph_rate(const struct graph *n, int arc, int interval);

/* Index of the arc, or -1. */
int graph_find(const struct graph *n, int from, int to);

/* The interval that contains t: the last with graph.time[i] <= t. */
int graph_interval(const struct graph *n, double t);

const char *graph_name(const struct graph *n, int host);

#endif
