/* A rate limit shared by several users on any threads. A user takes a quantum of bytes from the pacer before each
 * transfer, in turn: a waiting user keeps its place, so that users with permanent demand get equal parts, in
 * any order of waking. Unused rate expires after PACER_BURST_NS, a reserve from which users that wake up late
 * catch up.
 *
 * In any time t at rate r the users take at most r (t + PACER_BURST_NS) plus one quantum for each user; with
 * permanent demand and users that return in time, at least r t minus one quantum. */
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
	_Atomic uint64_t next_ns;      /* time at which the reserved bytes have passed at that rate */
	_Atomic unsigned changes;      /* number of changes of the rate */
	_Atomic uint64_t throttled_ns; /* last time a user had to wait */
};

/* A user's place; zero-initialized. */
struct pacer_turn {
	const struct pacer *of; /* NULL: none */
	uint64_t at_ns;
	size_t bytes;
	unsigned changes;       /* number of changes of the rate, at the reservation */
};

/* Before the pacer has users. */
void pacer_init(struct pacer *p);
/* Any thread. Waiting users notice the new rate within 250 ms, and lose their places. */
void pacer_set(struct pacer *p, uint64_t bps, struct mono now);

static inline int pacer_limits(const struct pacer *p)
{
	return atomic_load_explicit(&p->bps, memory_order_relaxed) != 0;
}

/* The limit; 0: none. */
static inline uint64_t pacer_bps(const struct pacer *p)
{
	return atomic_load_explicit(&p->bps, memory_order_relaxed);
}

/* Whether a user had to wait within the last 500 ms, that is, whether the limit is below the demand. Any
 * thread. */
int pacer_throttles(const struct pacer *p, struct mono now);

/* An eighth more: for a receiver whose sender keeps to the rate, as data delayed in transit arrives in bursts. */
static inline uint64_t pacer_loose_bps(uint64_t bps) { return bps + bps / 8; }

/* Duration of one quantum at `bps` (not 0). */
uint64_t pacer_quantum_ns(uint64_t bps);

/* Takes a quantum: the number of bytes to transfer now, or 0: the turn holds a place, try again at *at. Any thread,
 * one at a time for each turn. */
size_t pacer_take(struct pacer *p, struct pacer_turn *turn, struct mono now, struct mono *at);

#endif
