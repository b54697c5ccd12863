#include "vclock.h"

void vclock_init(struct vclock *c, uint64_t real_ns)
{
	*c = (struct vclock){ .started_ns = real_ns, .seen_ns = real_ns };
}

uint64_t vclock_tick(struct vclock *c, uint64_t real_ns, uint64_t meant_ns)
{
	uint64_t late_ns;

	if (meant_ns < c->seen_ns)
		meant_ns = c->seen_ns;
	if (real_ns > c->seen_ns)
		c->seen_ns = real_ns;
	late_ns = real_ns > meant_ns ? real_ns - meant_ns : 0;
	if (late_ns > VCLOCK_STALL_NS) {
		c->stalls++;
		c->stalled_ns += late_ns;
		if (late_ns > c->longest_ns)
			c->longest_ns = late_ns;
	}
	return c->seen_ns - c->stalled_ns;
}

uint64_t vclock_real(const struct vclock *c, uint64_t ns)
{
	return ns > UINT64_MAX - c->stalled_ns ? UINT64_MAX : ns + c->stalled_ns;
}
