/* A collection in a simulated network: ptcp_collect_run() itself, with plans, probes and tests for competing flows,
 * over played transfers (played_tasks.h) on a simulated clock. Seconds of simulated time take milliseconds.
 *
 * Sources reach the destination over points, the bottlenecks; a source reaches other points through relays. Flows
 * are streams of Reno over a fluid: a flow sends its window per RTT, or less by its rate limit, from the buffer of
 * the sender. A point has a queue of limited length, and drops the excess. */
#ifndef TESTS_COLLECT_COLLECT_WORLD_H
#define TESTS_COLLECT_COLLECT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_SOURCES 20
#define WORLD_POINTS 3

struct world_point {
	double bps, queue_s;           /* longest queue, at this rate */
	double later_bps, later_at_s;  /* another rate from then on; INFINITY: never */
	unsigned others;               /* competing flows, each one stream, */
	double others_from_s, others_until_s;
	double told_ratio;             /* rate in the overlay, over bps */
};

struct world_source {
	size_t point;                  /* of its direct path */
	double bytes, rtt_s;
	double start_s;                /* from the request to the first data */
};

struct world {
	struct world_point point[WORLD_POINTS];
	struct world_source source[WORLD_SOURCES];
	size_t points, sources;
	double access_bps;             /* out of and into each source */
	bool blind;                    /* the overlay names no shared bottlenecks */
	double impact_percent;
	uint64_t seed;                 /* of events */
};

struct world_outcome {
	double seconds;
	double best_s;                 /* no collection takes less */
	double found_s;                /* first report of competing flows; INFINITY: none */
	unsigned found, plans;         /* reports of competing flows; plans after the first */
	size_t shared;                 /* bottlenecks concluded */
	double others_bps;             /* mean of each competing flow */
};

/* Draws an empty network with a right overlay: 3 to 20 sources, 1 to 3 points of 5 to 300 Mbit/s, queues of 10 to
 * 250 ms, RTTs of 5 to 120 ms, data for 15 to 90 s; every third draw has a source with much data. */
void world_draw(struct world *w, uint64_t seed);

/* Prints the reports of the collection to standard error, if the environment has WORLD_TRACE. Fails the test if the
 * collection fails. */
void world_collect(const struct world *w, struct world_outcome *out);

#endif
