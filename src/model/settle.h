/* When the rate of a new flow of some streams has settled: slow start is over and the rate does not grow.
 *
 * A constant rate is not enough: a stream after an early end of slow start (HyStart) grows slowly at first, below the
 * capacity of the path. The path must also be in use: by a queue (the RTT exceeds its minimum), by losses, or by a flow
 * limited by windows or the application. Without such a sign the rate counts as settled after SETTLE_MAX_S. */
#ifndef MODEL_SETTLE_H
#define MODEL_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/parameters.h"

#define SETTLE_WINDOWS 4 /* kept */

/* Sums over the streams since they started. */
struct settle_flow {
	uint64_t delivered_bytes; /* those acknowledged out of order included: a repaired loss is no burst */
	uint64_t retransmits;
	double known_s;          /* time that the next two cover: a report by the sending side
	                            covers less than the flow */
	double busy_s, window_s; /* time with data to send; part of it limited by windows or buffers */
	double rtt_s, min_rtt_s; /* mean of the streams' smoothed RTTs, minimum; 0: unknown */
};

/* Starts as { 0 }. */
struct settle {
	unsigned windows;             /* complete */
	double rate_bps[SETTLE_WINDOWS]; /* rates of the latest windows, newest first */
	double full_at_s;             /* latest sign that the path is used; 0: none */
	double began_s, at_s;         /* the present window; the latest sample */
	struct settle_flow began;
};

/* Takes a sample at `at_s` seconds after the start; true: the rate has settled. */
bool settle_add(struct settle *s, const struct settle_flow *f, double at_s);
/* Of the latest windows; 0: none. */
double settle_rate_bps(const struct settle *s);
/* Time until the latest sample. */
double settle_took_s(const struct settle *s);

#endif
