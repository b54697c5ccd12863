#include "core/units.h"
#include "engine/match_pace.h"

/* Of a rate that is not known, any equal byte pays. */
static bool pays(uint64_t equal_bytes, uint64_t took_ns, double path_bps)
{
	if (path_bps <= 0)
		return equal_bytes > 0;
	return (double)equal_bytes * 8 / path_bps > (double)took_ns / NS_PER_S;
}

void match_pace_judge(struct match_pace *p, uint64_t equal_bytes, uint64_t took_ns, double path_bps)
{
	if (p->always || pays(equal_bytes, took_ns, path_bps)) {
		p->window = p->window < MATCH_WINDOW_MAX / 2 ? p->window * 2 : MATCH_WINDOW_MAX;
		p->skip = 0;
		return;
	}
	p->window = MATCH_WINDOW_MIN;
	p->skip = p->skip == 0 ? MATCH_WINDOW_MIN : p->skip < UINT32_MAX / 2 ? p->skip * 2 : p->skip;
}
