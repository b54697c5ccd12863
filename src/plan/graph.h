/* The graph that the planner works on: what of an overlay can carry data to the
 * destination. Bytes and bytes a second, as doubles. Lives in a run's memory. */
#ifndef PLAN_GRAPH_H
#define PLAN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/overlay.h"
#include "plan/sandbox.h"

struct graph_host {
	double data;    /* bytes to deliver, 0: not a source */
	double storage; /* bytes held for others, INFINITY: no limit */
	bool relay;     /* may pass on what is not its own */
};

struct graph_arc {
	int from, to;
	int link;    /* in the overlay */
	double rate; /* outside windows */
	int first_limit, nlimits;
	int windowed; /* row of net.windowed, or -1 */
};

struct graph_limit { /* total rate of several arcs: of a bottleneck, ingress or egress */
	double rate;
	size_t of; /* limit of the overlay, see limits.h */
	int first_arc, narcs;
};

struct graph {
	const struct conf_overlay *conf;
	int nhosts, dest, narcs, nlimits, ntimes;
	double total; /* bytes of all sources */
	struct graph_host *host;
	struct graph_arc *arc;   /* by from, then to */
	int *out;              /* [nhosts + 1]: first arc of a host */
	struct graph_limit *limit;
	int *arc_limit, *limit_arc; /* what first_res and first_arc point into */
	double *time;          /* ntimes moments at which rates change; time[0] is 0 */
	double *windowed;      /* rates of arcs with windows, ntimes a row */
};

/* Fails the run with PTCP_ECONFIG where a rate or size is unknown. Arcs that no
 * plan can use are left out: into hosts that do not relay, out of hosts with
 * nothing to send, out of the destination, and those that never have a rate. */
struct graph *graph_new(struct sandbox *run, const struct conf_overlay *conf);

/* Rate of an arc from net.time[interval] on. */
double graph_rate(const struct graph *n, int arc, int interval);

/* Index of the arc, or -1. */
int graph_find(const struct graph *n, int from, int to);

/* The interval that holds t: the last with net.time[i] <= t. */
int graph_interval(const struct graph *n, double t);

const char *graph_name(const struct graph *n, int host);

#endif
