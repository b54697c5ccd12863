#include "model/impact_budget.h"

void impact_budget_spend(struct impact_budget *b, double impact_ratio, double seconds)
{
	for (b->second_s += seconds; b->second_s >= 1; b->second_s -= 1) {
		b->second = (b->second + 1) % IMPACT_BUDGET_S;
		b->spent_s[b->second] = 0;
	}
	b->spent_s[b->second] += impact_ratio * seconds;
}

void impact_budget_charge(struct impact_budget *b, double impact_ratio, double seconds)
{
	b->spent_s[b->second] += impact_ratio * seconds;
}

bool impact_budget_affords(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds)
{
	struct advice_point p;
	double spent_s = 0;
	unsigned i;

	for (i = 0; i + seconds < IMPACT_BUDGET_S; i++) /* what was spent before will be older than a minute */
		spent_s += b->spent_s[(b->second + IMPACT_BUDGET_S - i) % IMPACT_BUDGET_S];
	advice_at(a, streams, &p);
	return spent_s + p.impact_ratio * seconds <= (budget_ratio + IMPACT_BUDGET_OVER_RATIO) * IMPACT_BUDGET_S;
}

unsigned impact_budget_most(const struct impact_budget *b, const struct advice *a, double budget_ratio, unsigned streams,
    double seconds)
{
	while (streams > 1 && !impact_budget_affords(b, a, budget_ratio, streams, seconds))
		streams--;
	return streams;
}
