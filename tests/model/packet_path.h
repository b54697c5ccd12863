/* Paths of single packets, in virtual time: the links of the laboratory (tests/lab/link.h), flows with CUBIC or Reno
 * (slow start with HyStart, selective acknowledgments, time-outs), and what the kernel would tell of ours. No formula
 * says here what a flow obtains: the limits of a path act on packets. */
#ifndef TESTS_MODEL_PACKET_PATH_H
#define TESTS_MODEL_PACKET_PATH_H

#include <stdint.h>

#include "model/evidence.h"

/* What limits our streams. */
enum packet_limit {
	PACKET_LINK,        /* nobody else, and a queue that is long enough */
	PACKET_OTHERS,      /* competing flows that stay */
	PACKET_ON_OFF,      /* competing flows with pauses */
	PACKET_POLICER,     /* and nobody else, like the following */
	PACKET_RETURN,      /* flows in the other direction fill the path of the acknowledgments */
	PACKET_SHALLOW,     /* a queue of a few packets */
	PACKET_RANDOM_LOSS,
	PACKET_LIMITS
};

extern const char *const packet_limit_name[PACKET_LIMITS];

struct packet_path {
	enum packet_limit limit;
	double rate_bps, rtt_s, loss_ratio;
	double back_bps;               /* of the other direction */
	unsigned queue, back_queue;    /* packets */
	double police_bps, police_bytes; /* 0: none */
	unsigned others, back_flows;   /* competing flows; flows in the other direction */
	double on_s, off_s;            /* mean durations of competing flows and their pauses; 0: they stay */
};

/* A path of this limit, or of any. */
struct packet_path packet_path_draw(uint64_t seed);
struct packet_path packet_path_of(enum packet_limit limit, uint64_t seed);

/* What ptcp advise observes with its default levels. */
void packet_path_evidence(const struct packet_path *p, uint64_t seed, struct evidence *out);
/* Goodput of n streams over some seconds, without the first ten, bit/s. others_bps: of the competing flows together;
 * may be NULL. */
double packet_path_truth(const struct packet_path *p, uint64_t seed, unsigned n, double seconds, double *others_bps);

#endif
