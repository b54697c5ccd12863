/* The study of Chou, Wan, Cheng, Golubchik and Khuller, "A Performance Study of a Large-scale Data
 * Collection Problem", as a fluid: seven sources in one provider's network, the destination in
 * another's, two peering points between them, at which other TCP flows pass.
 *
 * The network is that of tests/lab/topologies/peering.yaml. Its truth: flows share each bottleneck
 * max-min fairly, those of others like ours, none takes more than it is paced to. Bytes, bytes a
 * second, seconds. */
#ifndef TESTS_BENCH_COLLECT_STUDY_H
#define TESTS_BENCH_COLLECT_STUDY_H

#include <stdbool.h>

#include "draw.h"

#define SOURCES 7
#define NORTH_SOURCES 4              /* the first ones; the others are south */
#define PEERING_BPS (20e6 / 8)       /* of each peering point */
#define ACCESS_BPS (100e6 / 8)       /* in and out of each source, and into the destination */
#define ALL_BYTES 350e6
#define SLOT_S 20.0                  /* of coordinated plans, some 50 of direct makespans */

enum point { NORTH, SOUTH, POINTS };

enum error { ERROR_NONE, ERROR_OVER, ERROR_UNDER, ERROR_MIXED };

struct study {
	double data[SOURCES];
	double others[POINTS];       /* flows that are not ours */
	double udp_ratio;            /* of a peering point that on/off traffic takes, on average */
	/* What a plan is told, over what is so; see study_overlay(). */
	double link_factor[SOURCES], point_factor[POINTS];
	bool blind;                  /* the overlay names no shared bottlenecks */
	double start_s[SOURCES];     /* first data */
	double relayed_ratio;        /* of its rate, lost by a path over a relay beside direct ones:
	                                young, and two hops */
	uint64_t seed;               /* of what happens in it */
};

enum point study_point(int source);

/* Sizes of 25 to 75 MB, 350 MB in all; `total` other flows, `north` parts of them to `south`;
 * estimates off by the ratio as `error` says, mixed: each by itself, up or down. */
void study_draw(struct study *s, double total, double north, double south, enum error error,
    double ratio, struct rng *r);

/* The overlay as measured before the start; sources relay. Each source may have one stream over each
 * peering point, direct or through a relay there: seven at each, and some two on each of the seven
 * links that lead there. So what a point is said to bring is what seven streams get, and a link what
 * two do. free() it. */
#define POINT_STREAMS 7
#define LINK_STREAMS 2
char *study_overlay(const struct study *s);

/* ---- Fair shares */

#define STUDY_FLOWS_MAX (SOURCES * SOURCES) /* a source's direct one, and through each other source */

struct study_flow {
	int source;
	int relay;                   /* a source, or -1: direct */
	double cap;                  /* it is paced to; INFINITY: not */
	double rate;                 /* out */
};

/* Rates of flows that all have something to send, and of one of the others at each point. on[point]:
 * on/off traffic is on. */
void study_share(const struct study *s, struct study_flow *f, int n, const bool on[POINTS],
    double other_rate[POINTS]);

#endif
