/* Rate of a stream that yields to all competing flows: it takes only what the path has left, and leaves when a queue
 * shows competing flows (in the manner of LEDBAT, RFC 6817, and LEDBAT++, as a rate instead of a window).
 *
 *   START    the rate grows by half per step, until a queue stands
 *   FILL     the rate grows in small steps; a queue above the target: next DRAIN
 *   DRAIN    below the delivered rate, the stream's own queue is gone within a few RTTs: next FILL; a queue that
 *            stays belongs to competing flows: next WAIT
 *   WAIT     the least rate, until no queue has been seen for the hold time; next FILL. The hold time doubles each
 *            time competing flows return, since a sawtooth leaves the queue empty for seconds
 *
 * Competing flows also show as a queue at a rate clearly below the best so far. The target is a quarter of the
 * longest queue seen, within bounds: behind a short queue 25 ms of queueing delay would never be seen. Each DRAIN
 * empties the stream's own queue, so that the base RTT needs no pauses of its own. */
#ifndef MODEL_YIELD_H
#define MODEL_YIELD_H

#include <stdbool.h>

#include "model/parameters.h"

enum yield_phase { YIELD_START, YIELD_FILL, YIELD_DRAIN, YIELD_WAIT };

/* Zero-initialize. */
struct yield {
	enum yield_phase phase;
	double rate_bps;               /* the result; 0: before the first step */
	double base_s, longest_s;      /* RTT without a queue; longest queueing delay, decaying */
	double best_bps;               /* delivered; decaying */
	double full_bps;               /* delivered when the path was full last; 0: not yet */
	double hold_s, calm_s, filled_s;
	unsigned steps;                /* steps of this DRAIN; in START: steps with a queue */
};

/* Over one step. */
struct yield_sample {
	double interval_s;
	double rtt_s;                  /* least smoothed RTT of the step; 0: unknown */
	double min_rtt_s;              /* smallest RTT of the connection; 0: unknown */
	double delivered_bps;
	double segment_bits;
	bool lost;                     /* segments were retransmitted */
};

/* Every RTT, or YIELD_STEP_S if that is longer. */
void yield_step(struct yield *y, const struct yield_sample *s);
double yield_target_s(const struct yield *y);

#endif
