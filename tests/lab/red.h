/* Random early detection: Floyd and Jacobson, "Random Early Detection Gateways
 * for Congestion Avoidance" (1993), with the later "gentle" ramp from max to
 * 2 max. Counts packets, drops and never marks. */
#ifndef LAB_RED_H
#define LAB_RED_H

#include <stdint.h>

#include "rng.h"

struct red_conf {
	double min_packets, max_packets; /* thresholds of the average; max 0: RED off */
	double max_ratio;                /* dropping probability at max_packets */
	double weight;                   /* of the newest sample in the average */
};

struct red {
	double avg;             /* average queue, packets */
	int since_drop;         /* packets let in since the last drop; -1 below min */
	uint64_t idle_since_ns; /* when the queue became empty */
};

void red_init(struct red *r);

/* Count an arrival that finds `waiting` packets; 1 if it is to be dropped. An
 * empty queue ages the average by one sample per `service_ns` of idling. */
int red_drop(struct red *r, const struct red_conf *c, uint64_t waiting,
    uint64_t now_ns, uint64_t service_ns, struct rng *rng);

/* The queue became empty. */
void red_idle(struct red *r, uint64_t now_ns);

#endif
