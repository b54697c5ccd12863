#include "model/impact_budget.h"

void impact_budget_spend(struct impact_budget *b, double impact_ratio, double seconds)
{
	b->second_s += seconds;
	if (b->second_s >= 1) {
		b->second_s = 0;
		b->second = (b->second + 1) % IMPACT_BUDGET_S;
		b->spent_s[b->second] = 0;
	}
	b->spent_s[b->second] += impact_ratio * seconds;
}

void impact_budget_charge(struct impact_budget *b, double impact_ratio, double seconds)
{
	b->spent_s[b->second] += impact_ratio * seconds;
}

bool impact_budget_allows(const struct impact_budget *b, double budget_ratio, double impact_ratio, double seconds)
{
	double spent_s = 0;
	unsigned i;

	for (i = 0; i < IMPACT_BUDGET_S; i++)
		spent_s += b->spent_s[i];
	return spent_s + impact_ratio * seconds <= (budget_ratio + IMPACT_BUDGET_OVER_RATIO) * IMPACT_BUDGET_S;
}
