/* Streams of Reno over the points of a simulated collection, see collect_world.h. */
#ifndef TESTS_COLLECT_FLUID_H
#define TESTS_COLLECT_FLUID_H

#include "collect/collect_world.h"
#include "model/rng.h"

#define FLUID_STEP_S 0.01
#define FLUID_FLOWS 400
#define FLUID_BLOCK_BITS (8 * 262144.0)

/* All streams of a path, or of one competing flow. */
struct fluid_flow {
	bool used;
	size_t point;
	int source, relay;          /* of ours, relay -1: direct; competing: source -1 */
	unsigned streams;
	double base_s;              /* RTT without the queue */
	double limit_bps;           /* of its rate; INFINITY: none */
	double window_bits, unhurt_until_s;
	bool slow_start;
	double due_bits;            /* permitted by the rate limit now */
	double buffer_bits;         /* in the buffers of its sender */
	double bps, delivered_bits; /* now; so far */
	double segments, lost;
};

struct fluid {
	const struct world *w;
	struct rng rng;
	double now_s, queue_bits[WORLD_POINTS];
	struct fluid_flow flow[FLUID_FLOWS];
	size_t n;                   /* of flows, used or not */
	double left_bits[WORLD_SOURCES]; /* not yet in a buffer */
	double others_bits, others_s;   /* of all competing flows while ours flow */
};

void fluid_begin(struct fluid *f, const struct world *w);
/* The flow begins now. */
struct fluid_flow *fluid_add(struct fluid *f, size_t point, int source, int relay, unsigned streams);
/* The data in its buffers returns to its source. */
void fluid_remove(struct fluid *f, struct fluid_flow *flow);
void fluid_step(struct fluid *f);

double fluid_point_bps(const struct world *w, size_t point, double now_s);
double fluid_rtt_s(const struct fluid *f, const struct fluid_flow *flow);

#endif
