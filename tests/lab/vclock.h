/* The laboratory's clock: real time less the time in which the machine was taken
 * away from the emulator. A lateness over VCLOCK_STALL_NS stops the clock for all
 * of it, so that links neither drop nor deliver in a burst what they could not
 * serve in time; it is counted, for whoever judges the measurement. Pure: the
 * caller reads the real clock. */
#ifndef LAB_VCLOCK_H
#define LAB_VCLOCK_H

#include <stdint.h>

#define VCLOCK_STALL_NS 2000000u

struct vclock {
	uint64_t started_ns;   /* real */
	uint64_t seen_ns;      /* real time of the last tick */
	uint64_t stalls;       /* how often */
	uint64_t stalled_ns;   /* how long in all */
	uint64_t longest_ns;
};

void vclock_init(struct vclock *c, uint64_t real_ns);

/* It is `real_ns`, and the emulator meant to run by `meant_ns` (real; anything
 * not after the last tick means "without a break since then"). Returns virtual
 * time, which never goes back. */
uint64_t vclock_tick(struct vclock *c, uint64_t real_ns, uint64_t meant_ns);

/* Real time at which virtual `ns` is reached if nothing stalls. */
uint64_t vclock_real(const struct vclock *c, uint64_t ns);

#endif
