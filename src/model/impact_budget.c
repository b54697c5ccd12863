#include "model/impact_budget.h"

#include <math.h>

void impact_budget_pass(struct impact_budget *b, unsigned streams, double seconds)
{
	double part;

	while (seconds > 0) {
		part = fmin(seconds, 1 - b->second_s);
		b->streams[b->second] += streams * part;
		b->second_s += part;
		seconds -= part;
		if (b->second_s < 1 - 1e-9)
			continue;
		b->second_s = 0;
		b->second = (b->second + 1) % IMPACT_BUDGET_S;
		b->streams[b->second] = 0;
	}
}

static double impact_of(const struct advice *a, double streams)
{
	struct advice_point p;

	if (streams < 1)
		return 0;
	advice_at(a, (unsigned)(streams + 0.5), &p);
	return p.impact_ratio;
}

/* Impact x time over the last `seconds`. */
static double spent_s(const struct impact_budget *b, const struct advice *a, double seconds)
{
	double keep = b->recovery_s > 0 ? exp(-1 / b->recovery_s) : 0, taken = 0, sum = 0, now;
	unsigned i;

	for (i = 1; i <= IMPACT_BUDGET_S; i++) { /* the current second comes last */
		now = impact_of(a, b->streams[(b->second + i) % IMPACT_BUDGET_S]);
		taken = now + keep * fmax(taken - now, 0);
		if (IMPACT_BUDGET_S - i < seconds)
			sum += taken;
	}
	return sum;
}

bool impact_budget_affords(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds)
{
	/* what was spent before will be older than a minute */
	return spent_s(b, a, IMPACT_BUDGET_S - seconds) + impact_of(a, streams) * seconds <=
	    (budget_ratio + IMPACT_BUDGET_OVER_RATIO) * IMPACT_BUDGET_S;
}

unsigned impact_budget_most(const struct impact_budget *b, const struct advice *a, double budget_ratio,
    unsigned streams, double seconds)
{
	while (streams > 1 && !impact_budget_affords(b, a, budget_ratio, streams, seconds))
		streams--;
	return streams;
}
