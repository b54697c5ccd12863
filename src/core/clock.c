#include "core/clock.h"

#include <time.h>

#include "core/units.h"

struct mono mono_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){ (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec };
}

struct mono mono_add_ns(struct mono t, uint64_t ns)
{
	if (ns > UINT64_MAX - t.ns)
		return MONO_NEVER;
	return (struct mono){ t.ns + ns };
}

uint64_t mono_diff_ns(struct mono t, struct mono since)
{
	return t.ns > since.ns ? t.ns - since.ns : 0;
}
