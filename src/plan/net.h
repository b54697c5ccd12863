/* The graph that the planner works on: what of an overlay can carry data to the
 * destination. Bytes and bytes a second, as doubles. Lives in a run's memory. */
#ifndef PLAN_NET_H
#define PLAN_NET_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/overlay.h"
#include "plan/run.h"

struct net_host {
	double data;    /* bytes to deliver, 0: not a source */
	double storage; /* bytes held for others, INFINITY: no limit */
	bool relay;     /* may pass on what is not its own */
};

struct net_arc {
	int from, to;
	int link;    /* in the overlay */
	double rate; /* outside windows */
	int first_res, nres;
	int windowed; /* row of net.windowed, or -1 */
};

enum net_limit { NET_SHARED, NET_INGRESS, NET_EGRESS };

struct net_res { /* arcs that together have a rate */
	double rate;
	enum net_limit kind;
	int index; /* of the group or host */
	int first_arc, narcs;
};

struct net {
	const struct conf_overlay *conf;
	int nhosts, dest, narcs, nres, ntimes;
	double total; /* bytes of all sources */
	struct net_host *host;
	struct net_arc *arc;   /* by from, then to */
	int *out;              /* [nhosts + 1]: first arc of a host */
	struct net_res *res;
	int *arc_res, *res_arc; /* what first_res and first_arc point into */
	double *time;          /* ntimes moments at which rates change; time[0] is 0 */
	double *windowed;      /* rates of arcs with windows, ntimes a row */
};

/* Fails the run with PTCP_ECONFIG where a rate or size is unknown. Arcs that no
 * plan can use are left out: into hosts that do not relay, out of hosts with
 * nothing to send, out of the destination, and those that never have a rate. */
struct net *net_new(struct run *run, const struct conf_overlay *conf);

/* Rate of an arc from net.time[interval] on. */
double net_rate(const struct net *n, int arc, int interval);

/* Index of the arc, or -1. */
int net_find(const struct net *n, int from, int to);

/* The interval that holds t: the last with net.time[i] <= t. */
int net_interval(const struct net *n, double t);

const char *net_name(const struct net *n, int host);

#endif
