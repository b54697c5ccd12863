/* Random paths that are formulas: shares of a link that streams reach with time, noise, queues, random loss to whose
 * rate streams fall from slow start, windows; and transfers over them, whose number of streams the controller
 * chooses. */
#ifndef TESTS_MODEL_DRAWN_PATH_H
#define TESTS_MODEL_DRAWN_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/rng.h"
#include "model/stream_control.h"

#define DRAWN_BUDGET 0.10
#define DRAWN_STREAMS_MOST 32

struct drawn {
	double capacity_bps, rtt_s, queue_s;
	double loss_ratio, window_bytes; /* of random loss; 0: none */
	double others;                   /* competing flows */
	double outage_s, outages_every_s; /* duration of each outage, from the beginning of one to
	                                     that of the next; 0: none */
};

struct drawn draw_path(uint64_t seed);
/* What n streams bring after they have converged, bit/s, and the part of the other flows' traffic that they take beyond
 * what one stream takes. */
double drawn_brings(const struct drawn *p, double n);
double drawn_impact(const struct drawn *p, double n);
/* The limit of each stream by its window, bit/s. */
double drawn_windowed_bps(const struct drawn *p);
/* What the best number of streams within the budget brings. */
double drawn_best_bps(const struct drawn *p);

/* A path on which streams come and go, in steps of STREAM_CONTROL_SAMPLE_S. */
struct drawn_world {
	const struct drawn *p;
	struct rng r;
	double n;          /* streams, as far as they have their share */
	double others_bps; /* what competing flows have, as far as they have theirs back */
	double noise;
	unsigned started;  /* streams, and what random loss leaves each of them by now */
	double each_bps;
};

void drawn_begin(struct drawn_world *w, const struct drawn *p, uint64_t seed);
/* One step with n streams, as they observe it. */
struct stream_control_sample drawn_step(struct drawn_world *w, unsigned n);
/* What n streams leave to the competing flows once all have converged, bit/s. */
double drawn_leaves(const struct drawn *p, double n);

/* What ptcp advise observes with its default levels. */
void drawn_evidence(const struct drawn *p, uint64_t seed, struct evidence *out);
/* A probe of n new streams. */
void drawn_probe(const struct drawn *p, uint64_t seed, unsigned n, double seconds, struct probe *out);

struct outcome {
	double bps, above;      /* above: largest mean impact over 60 s, over the budget */
	double above_soon;      /* the same over 20 s */
	unsigned changes, in_outages; /* in_outages: from the beginning of an outage until all streams deliver again */
	unsigned answer, again; /* the last answer, and the most streams of a probe after the first answer */
	unsigned first;         /* the first answer; 0: none */
	bool unsure;            /* the probes neither showed nor ruled out other flows at that time */
	/* of the first answer: prediction over truth, as a logarithm; predicted minus true impact */
	double throughput_error, impact_error;
};

/* A transfer of 120 s, probes included. */
struct outcome drawn_transfer(const struct drawn *p, uint64_t seed);

#endif
