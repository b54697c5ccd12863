/* Random paths: a bottleneck between a host `src` that sends, a host `dst` that receives, and the hosts of other flows.
 * Pure: the same seed and maximum rate give the same path. */
#ifndef LAB_RANDOM_PATH_H
#define LAB_RANDOM_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RANDOM_GROUPS_MAX 3

/* Flows of one host pair, xN to yN: of one congestion control and RTT. */
struct random_group {
	unsigned flows;
	const char *congestion;
	double rtt_ms;
	double on_s, off_s; /* mean duration of a flow, and of the pause after it; 0: the flows stay */
};

struct random_path {
	uint64_t seed;
	double rate_mbps;
	double rtt_ms;           /* between src and dst, without queues */
	unsigned queue_packets;
	bool red;
	double loss_percent;     /* random, from src to dst */
	unsigned window_bytes;   /* maximum receive window of dst; 0: no limit */
	bool all_windows;        /* the window applies to the receivers of other flows, too */
	const char *congestion;  /* of src */
	struct random_group group[RANDOM_GROUPS_MAX];
	unsigned groups;
};

#define RANDOM_RATE_MIN_MBPS 5.0
#define RANDOM_RATE_MAX_MBPS 300.0
#define RANDOM_RTT_MIN_MS 5.0
#define RANDOM_RTT_MAX_MS 250.0
#define RANDOM_QUEUE_MIN_PACKETS 25u
#define RANDOM_OTHERS_MAX 20u

/* Draws the path of a seed, with a rate from RANDOM_RATE_MIN_MBPS to max_rate_mbps. */
void random_path_draw(struct random_path *p, uint64_t seed, double max_rate_mbps);

/* Flows of all groups. */
unsigned random_path_others(const struct random_path *p);

/* Packets of 1500 bytes that fill the path between src and dst. */
double random_path_bdp_packets(const struct random_path *p);

/* Prints the path as a topology file (topo.h), and as one line of JSON. */
void random_path_topology(const struct random_path *p, FILE *to);
void random_path_json(const struct random_path *p, FILE *to);

#endif
