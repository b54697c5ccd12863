#include "campaign/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

const char *const mode_name[MODES] = {
#define X(id, name) name,
	PLAN_MODES(X)
#undef X
};

enum what { DRAW_MODES, DRAW_LINK, DRAW_WAIT, DRAW_UP, DRAW_DOWN };

/* A generator of its own for each question, so that answers do not depend on the order of asking. */
static struct rng rng_for(uint64_t seed, enum what what, unsigned number)
{
	struct rng r = { seed };

	r.state = rng_next(&r) ^ ((uint64_t)what << 32 | number);
	rng_next(&r);
	return r;
}

static bool has(const struct plan *p, enum mode m)
{
	return (p->modes & 1u << m) != 0;
}

unsigned plan_draw_modes(uint64_t seed)
{
	struct rng r = rng_for(seed, DRAW_MODES, 0);
	unsigned n = 1 + rng_below(&r, 3), modes = 0;

	while (n-- > 0)
		modes |= 1u << rng_below(&r, MODES);
	return modes;
}

bool plan_parse_modes(const char *text, unsigned *modes)
{
	size_t n;
	int m;

	*modes = 0;
	if (strcmp(text, "clean") == 0)
		return true;
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		for (m = 0; m < MODES; m++)
			if (strlen(mode_name[m]) == n && strncmp(text, mode_name[m], n) == 0)
				break;
		if (m == MODES)
			return false;
		*modes |= 1u << m;
		if (text[n] == '\0')
			return true;
	}
}

void plan_draw_link(struct plan *p)
{
	struct rng r = rng_for(p->seed, DRAW_LINK, 0);
	unsigned delay = 1 + rng_below(&r, 15);
	uint64_t rate = 3000000 + rng_below(&r, 20000000);

	p->delay_ms = has(p, MODE_DELAY) ? delay : 0;
	if (p->rate_Bps == 0 && has(p, MODE_RATE))
		p->rate_Bps = rate;
}

unsigned plan_draw_wait_ms(const struct plan *p, unsigned number)
{
	struct rng r = rng_for(p->seed, DRAW_WAIT, number);

	return has(p, MODE_REORDER) ? rng_below(&r, 200) : 0;
}

static unsigned draw_amount(struct rng *r, enum mode kind)
{
	switch (kind) {
	case MODE_CRAWL:
		return 100 + rng_below(r, 4000);
	case MODE_STALL: /* one in three is longer than the time-out of any run */
		return rng_below(r, 3) == 0 ? 60000 : 20 + rng_below(r, 600);
	case MODE_CORRUPT:
		return rng_below(r, 8);
	case MODE_LOSE:
		return 1 + rng_below(r, 3000);
	default:
		return 0;
	}
}

/* Half of them anywhere, half by orders of magnitude: so handshakes and first frames get theirs. */
static uint64_t draw_offset(struct rng *r, uint64_t span)
{
	double u = rng_uniform(r);

	return rng_below(r, 2) == 0 ? (uint64_t)(u * (double)span) : (uint64_t)pow((double)span, u);
}

static int by_offset(const void *a, const void *b)
{
	uint64_t x = ((const struct fault *)a)->at_bytes, y = ((const struct fault *)b)->at_bytes;

	return (x > y) - (x < y);
}

unsigned plan_draw_faults(const struct plan *p, unsigned number, int direction,
    struct fault out[MOST_FAULTS])
{
	struct rng r = rng_for(p->seed, direction == 0 ? DRAW_UP : DRAW_DOWN, number);
	unsigned n = 0;
	int m;

	for (m = MODE_CRAWL; m < MODES; m++) {
		if (!has(p, (enum mode)m) || rng_below(&r, 2) == 0)
			continue;
		out[n].kind = (enum mode)m;
		out[n].at_bytes = draw_offset(&r, p->span_bytes);
		out[n].amount = draw_amount(&r, (enum mode)m);
		n++;
	}
	qsort(out, n, sizeof *out, by_offset);
	return n;
}
