/* The budget of the last minute. */
#include "model/near.h"

#include "model/impact_budget.h"

static void spend(struct impact_budget *b, double impact_ratio, double seconds)
{
	double t;

	for (t = 0; t < seconds - 0.05; t += 0.1)
		impact_budget_spend(b, impact_ratio, 0.1);
}

/* A budget of 10 %, and 4 % more, of a minute: 8.4 s of all. */
static void a_minute(void **state)
{
	struct impact_budget b = { .second = 0 };

	(void)state;
	assert_true(impact_budget_allows(&b, 0.1, 1, 8.3));
	assert_false(impact_budget_allows(&b, 0.1, 1, 8.5));
	spend(&b, 0.8, 5);
	assert_true(impact_budget_allows(&b, 0.1, 0.8, 5));
	impact_budget_charge(&b, 0.5, 5);
	assert_false(impact_budget_allows(&b, 0.1, 0.8, 5));
	assert_true(impact_budget_allows(&b, 0.1, 0, 60));
	spend(&b, 0, 40);
	assert_false(impact_budget_allows(&b, 0.1, 0.8, 5));
	spend(&b, 0, 40); /* older than a minute */
	assert_true(impact_budget_allows(&b, 0.1, 1, 8.3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_minute),
	};
	return cmocka_run_group_tests_name("model/impact_budget", tests, NULL, NULL);
}
