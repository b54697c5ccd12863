#include "model/yield.h"

#include <math.h>

double yield_target_s(const struct yield *y)
{
	double least_s = fmax(YIELD_TARGET_MIN_S, YIELD_TARGET_BASE * y->base_s);

	return fmin(fmax(YIELD_TARGET_RATIO * y->longest_s, least_s), YIELD_TARGET_MAX_S);
}

/* Receivers delay acknowledgments until the second segment, and the sender sees that in the RTT. */
static double ack_delay_s(const struct yield *y, const struct yield_sample *s)
{
	double bps = s->delivered_bps > 0 ? s->delivered_bps : y->rate_bps;

	return bps > 0 ? fmin(2 * s->segment_bits / bps, YIELD_ACK_DELAY_MAX_S) : YIELD_ACK_DELAY_MAX_S;
}

static void drain(struct yield *y, double delivered_bps)
{
	y->phase = YIELD_DRAIN;
	y->steps = 0;
	y->full_bps = delivered_bps;
	y->rate_bps = YIELD_DRAIN_RATIO * fmin(y->rate_bps, delivered_bps);
}

static void wait(struct yield *y)
{
	y->phase = YIELD_WAIT;
	y->rate_bps = 0; /* the least */
	y->hold_s = fmin(y->hold_s > 0 ? 2 * y->hold_s : YIELD_HOLD_MIN_S, YIELD_HOLD_MAX_S);
	y->calm_s = y->filled_s = 0;
}

static void grow(struct yield *y, const struct yield_sample *s, double growth)
{
	if (s->delivered_bps >= YIELD_USED_RATIO * y->rate_bps)
		y->rate_bps *= growth;
}

static void fill(struct yield *y, const struct yield_sample *s, bool queue)
{
	bool near;

	if (queue && s->delivered_bps < YIELD_OTHERS_RATIO * y->best_bps) {
		wait(y);
		return;
	}
	if (queue) {
		drain(y, s->delivered_bps);
		return;
	}
	y->filled_s += s->interval_s;
	if (y->filled_s >= YIELD_FILL_LONG_S) {
		y->filled_s = 0;
		y->hold_s = y->hold_s > YIELD_HOLD_MIN_S ? y->hold_s / 2 : y->hold_s;
	}
	near = y->rate_bps >= YIELD_RETURN_RATIO * y->full_bps && y->rate_bps <= YIELD_ROOM_RATIO * y->full_bps;
	grow(y, s, near ? YIELD_FILL_GROWTH : YIELD_RETURN_GROWTH);
}

static void yield_start(struct yield *y, const struct yield_sample *s)
{
	y->steps = 0;
	grow(y, s, YIELD_START_GROWTH);
}

static void empty(struct yield *y, bool queue)
{
	if (++y->steps < 2)
		return; /* the RTT belongs to earlier data */
	if (!queue)
		y->phase = YIELD_FILL;
	else if (y->steps > YIELD_DRAIN_STEPS)
		wait(y);
	else
		y->rate_bps *= YIELD_DRAIN_RATIO;
}

static void pause(struct yield *y, double interval_s, bool queue)
{
	y->calm_s = queue ? 0 : y->calm_s + interval_s;
	if (y->calm_s >= y->hold_s)
		y->phase = YIELD_FILL;
}

void yield_step(struct yield *y, const struct yield_sample *s)
{
	double queue_s, fade = exp(-s->interval_s / YIELD_QUEUE_DECAY_S), least_bps;
	bool queue;

	if (!(s->rtt_s > 0))
		return;
	if (!(y->base_s > 0) || s->rtt_s < y->base_s)
		y->base_s = s->rtt_s;
	if (s->min_rtt_s > 0)
		y->base_s = fmin(y->base_s, s->min_rtt_s);
	queue_s = fmax(s->rtt_s - y->base_s - ack_delay_s(y, s), 0);
	y->longest_s = fmax(y->longest_s * fade, queue_s);
	y->best_bps = fmax(y->best_bps * fade, s->delivered_bps);
	queue = queue_s > yield_target_s(y) || (s->lost && queue_s > yield_target_s(y) / 2);
	least_bps = YIELD_LEAST_SEGMENTS * s->segment_bits / y->base_s;
	if (!(y->rate_bps > 0))
		y->rate_bps = 5 * least_bps;
	switch (y->phase) {
	case YIELD_START:
		if (queue && ++y->steps >= YIELD_START_STEPS)
			drain(y, s->delivered_bps);
		else if (!queue)
			yield_start(y, s);
		break;
	case YIELD_FILL:
		fill(y, s, queue);
		break;
	case YIELD_DRAIN:
		empty(y, queue);
		break;
	case YIELD_WAIT:
		pause(y, s->interval_s, queue);
		break;
	}
	y->rate_bps = fmax(y->rate_bps, least_bps);
}
