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

#define YIELD_STEP_S 0.05          /* between two steps at least; else the RTT */
#define YIELD_TARGET_MIN_S 0.002   /* min target of the queueing delay; the RTT of short bursts varies by as much */
#define YIELD_TARGET_BASE 0.03     /* min target, as part of the base RTT */
#define YIELD_TARGET_MAX_S 0.025
#define YIELD_TARGET_RATIO 0.25    /* target, as part of the longest queue */
#define YIELD_ACK_DELAY_MAX_S 0.04 /* max delay of delayed acknowledgments */
#define YIELD_QUEUE_DECAY_S 60.0   /* time constant of the longest queue and of the best rate */
#define YIELD_START_GROWTH 1.5     /* per step */
#define YIELD_START_STEPS 2u       /* steps with a queue that START ignores: first bursts delay themselves */
#define YIELD_RETURN_GROWTH 1.15   /* after WAIT, up to RETURN_RATIO of the rate that filled the path; above ROOM_RATIO */
#define YIELD_RETURN_RATIO 0.85
#define YIELD_FILL_GROWTH 1.01
#define YIELD_ROOM_RATIO 1.1       /* factor of the rate that filled the path: beyond, the path has more room */
#define YIELD_DRAIN_RATIO 0.9      /* part of the delivered rate that drains the queue */
#define YIELD_DRAIN_STEPS 5        /* a queue for longer belongs to competing flows */
#define YIELD_OTHERS_RATIO 0.75    /* a queue at less of the best rate belongs to competing flows */
#define YIELD_USED_RATIO 0.8       /* less of the rate is used: it does not grow */
#define YIELD_HOLD_MIN_S 2.0
#define YIELD_HOLD_MAX_S 32.0
#define YIELD_FILL_LONG_S 20.0     /* time in FILL that halves the hold time */
#define YIELD_LEAST_SEGMENTS 2.0   /* segments per base RTT at the least rate */

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
