/* A rate limit shared by several threads. A thread takes a quantum of bytes from the pacer before each
 * transfer. Unused rate expires after PACER_BURST_NS, a reserve from which a thread that wakes up late
 * catches up.
 *
 * In any time t at rate r the threads take at most r (t + PACER_BURST_NS) plus one quantum; with permanent
 * demand and threads that return in time, at least r t minus one quantum. */
#ifndef CORE_PACER_H
#define CORE_PACER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/units.h"

#define PACER_BURST_NS (50 * NS_PER_MS)
#define PACER_MAX_QUANTUM_BYTES (64u << 10)

struct pacer {
	_Atomic uint64_t bps;          /* 0: unlimited */
	_Atomic uint64_t next_ns;      /* time at which the granted bytes have passed at that rate */
	_Atomic uint64_t throttled_ns; /* last time a thread had to wait */
};

/* Before other threads use the pacer. */
void pacer_init(struct pacer *p);
/* Any thread. Waiting threads notice the new rate within 250 ms. */
void pacer_set(struct pacer *p, uint64_t bps, struct mono now);

static inline int pacer_limits(const struct pacer *p)
{
	return atomic_load_explicit(&p->bps, memory_order_relaxed) != 0;
}

/* Whether a thread had to wait within the last 500 ms, that is, whether the limit is below the demand. Any
 * thread. */
int pacer_throttles(const struct pacer *p, struct mono now);

/* An eighth more: for a receiver whose sender keeps to the rate, as data delayed in transit arrives in bursts. */
static inline uint64_t pacer_loose_bps(uint64_t bps) { return bps + bps / 8; }

/* Duration of one quantum at `bps` (not 0). */
uint64_t pacer_quantum_ns(uint64_t bps);

/* Takes a quantum: the number of bytes to transfer now, or 0: try again at *at. Any thread. */
size_t pacer_take(struct pacer *p, struct mono now, struct mono *at);

#endif
