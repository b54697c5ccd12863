#include "core/units.h"
#include "engine/match_pace.h"

/* Of a rate that is not known, any equal byte pays. */
static bool pays(uint64_t equal_bytes, uint64_t took_ns, double path_bps)
{
	if (path_bps <= 0)
		return equal_bytes > 0;
	return (double)equal_bytes * 8 / path_bps > (double)took_ns / NS_PER_S;
}

/* Number of blocks that the path carries in that time. */
static uint32_t carried(const struct match_pace *p, uint64_t ns, double path_bps)
{
	double blocks = path_bps * (double)ns / NS_PER_S / 8 / p->block_bytes;

	return blocks < UINT32_MAX / 2 ? (uint32_t)blocks : UINT32_MAX / 2;
}

void match_pace_judge(struct match_pace *p, uint64_t equal_bytes, uint64_t took_ns, double path_bps)
{
	uint32_t meanwhile = carried(p, took_ns, path_bps);

	if (p->always || pays(equal_bytes, took_ns, path_bps)) {
		p->window = p->window < MATCH_WINDOW_MAX / MATCH_WINDOW_GROWTH ? p->window * MATCH_WINDOW_GROWTH :
		    MATCH_WINDOW_MAX;
		p->skip = 0;
		return;
	}
	p->window = MATCH_WINDOW_MIN;
	p->skip = p->skip == 0 ? MATCH_WINDOW_MIN : p->skip < UINT32_MAX / 2 ? p->skip * 2 : p->skip;
	p->skip = p->skip > meanwhile ? p->skip : meanwhile;
}

static void add(struct search_pace *p, double bytes)
{
	double left = (double)p->left_bytes + bytes;

	p->left_bytes = left < (double)SEARCH_MAX_BYTES ? (uint64_t)left : SEARCH_MAX_BYTES;
}

void search_pace_received(struct search_pace *p, uint64_t bytes, double path_bps)
{
	const double search_bps = SEARCH_GBPS * 1e9;
	double searched_meanwhile = path_bps > 0 && path_bps < search_bps ? search_bps / path_bps : 1;

	add(p, (double)bytes * searched_meanwhile / SEARCH_SHARE);
}

void search_pace_done(struct search_pace *p, uint64_t searched_bytes, uint64_t found_bytes)
{
	p->left_bytes -= searched_bytes < p->left_bytes ? searched_bytes : p->left_bytes;
	add(p, (double)found_bytes);
}
