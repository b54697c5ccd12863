/* Time that never jumps. A one-field struct, so that it cannot be mixed with
 * wall time or with a duration. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>

struct mono {
	uint64_t ns;
};

/* Now, by CLOCK_MONOTONIC. */
struct mono mono_now(void);

/* The moment `ns` later; saturates at MONO_NEVER. */
struct mono mono_add_ns(struct mono t, uint64_t ns);

/* The earlier of both. */
static inline struct mono mono_min(struct mono a, struct mono b) { return a.ns < b.ns ? a : b; }

/* ns from `since` to `t`; 0 if `t` is earlier. */
uint64_t mono_diff_ns(struct mono t, struct mono since);

#define MONO_NEVER ((struct mono){ UINT64_MAX })

#endif
