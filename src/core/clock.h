/* Monotonic time. A one-field struct, so that the compiler rejects a mix with wall time or durations. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "core/units.h"

struct mono {
	uint64_t ns;
};

#define MONO_NEVER ((struct mono){ UINT64_MAX })

/* The current time of CLOCK_MONOTONIC. */
static inline struct mono mono_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){ (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec };
}

/* t + ns, saturating at MONO_NEVER. */
static inline struct mono mono_add_ns(struct mono t, uint64_t ns)
{
	return ns > UINT64_MAX - t.ns ? MONO_NEVER : (struct mono){ t.ns + ns };
}

/* ns from `since` to `t`; 0 if `t` is earlier. */
static inline uint64_t mono_diff_ns(struct mono t, struct mono since)
{
	return t.ns > since.ns ? t.ns - since.ns : 0;
}

static inline struct mono mono_min(struct mono a, struct mono b) { return a.ns < b.ns ? a : b; }

/* Pause before another attempt: first_ns, doubled after each of the `failed` attempts before, `doublings` times at
 * most; up to a quarter shorter or longer by `random`, so that the many clients that an outage has cut come back at
 * different times. */
static inline uint64_t backoff_ns(uint64_t first_ns, unsigned failed, unsigned doublings, uint8_t random)
{
	uint64_t ns = first_ns << (failed < doublings ? failed : doublings);

	return ns - ns / 4 + ns / 2 * random / 255;
}

#endif
