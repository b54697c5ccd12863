/* A rate that several threads keep to together: whoever has something to move takes leave for a piece of it
 * first. What nobody takes is not kept for later, but for a moment, so that a thread that is woken late
 * catches up.
 *
 * In any time t at a rate r no more goes than r (t + PACER_BURST_NS) and one piece; as long as somebody always
 * wants to go, and comes back in time, no less than r t less one piece. */
#ifndef CORE_PACER_H
#define CORE_PACER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/units.h"

#define PACER_BURST_NS (50 * NS_PER_MS)
#define PACER_PIECE_BYTES (64u << 10) /* the largest */

struct pacer {
	_Atomic uint64_t bps;     /* 0: no limit */
	_Atomic uint64_t next_ns; /* when what has been let go is over at that rate */
	_Atomic uint64_t held_ns; /* when somebody had to wait last */
};

/* Not while others use it. */
void pacer_init(struct pacer *p);
/* From now on; any thread. Who waits learns of it within a quarter of a second. */
void pacer_set(struct pacer *p, uint64_t bps, struct mono now);

static inline int pacer_limits(const struct pacer *p)
{
	return atomic_load_explicit(&p->bps, memory_order_relaxed) != 0;
}

/* It holds somebody up, or has within half a second: not so where it is more than there is to move. Any thread. */
int pacer_holds(const struct pacer *p, struct mono now);

/* One piece at that rate, not 0, lasts so long. */
uint64_t pacer_piece_ns(uint64_t bps);

/* A piece that may go now, in bytes; 0: ask again at *at. Any thread. */
size_t pacer_take(struct pacer *p, struct mono now, struct mono *at);

#endif
