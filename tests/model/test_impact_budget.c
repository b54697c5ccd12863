/* The budget of the last minute. */
#include "model/near.h"

#include "model/impact_budget.h"

static void spend(struct impact_budget *b, double impact_ratio, double seconds)
{
	double t;

	for (t = 0; t < seconds - 0.05; t += 0.1)
		impact_budget_spend(b, impact_ratio, 0.1);
}

/* An advice by which n streams take (n - 1) / 10. */
static struct advice tenths(void)
{
	struct advice a = { .n_curve = 11 };
	unsigned n;

	for (n = 1; n <= a.n_curve; n++)
		a.curve[n - 1] = (struct advice_point){ .impact_ratio = (n - 1) / 10.0 };
	return a;
}

/* A budget of 10 %, and 4 % more, of a minute: 8.4 s of all. */
static void a_minute(void **state)
{
	struct impact_budget b = { .second = 0 };
	const struct advice a = tenths();

	(void)state;
	assert_true(impact_budget_affords(&b, &a, 0.1, 11, 8.3));
	assert_false(impact_budget_affords(&b, &a, 0.1, 11, 8.5));
	spend(&b, 0.8, 5);
	assert_true(impact_budget_affords(&b, &a, 0.1, 9, 5));
	impact_budget_charge(&b, 0.5, 5);
	assert_false(impact_budget_affords(&b, &a, 0.1, 9, 5));
	assert_true(impact_budget_affords(&b, &a, 0.1, 1, 60));
	spend(&b, 0, 40);
	assert_false(impact_budget_affords(&b, &a, 0.1, 9, 5));
	spend(&b, 0, 40); /* older than a minute */
	assert_true(impact_budget_affords(&b, &a, 0.1, 11, 8.3));
}

/* What probes have taken is saved afterwards. */
static void fewer_streams(void **state)
{
	struct impact_budget b = { .second = 0 };
	const struct advice a = tenths();

	(void)state;
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 11, 12), 8);
	spend(&b, 0.85, 8);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
	spend(&b, 0.1, 6);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 1);
	spend(&b, 0, 60);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_minute),
		cmocka_unit_test(fewer_streams),
	};
	return cmocka_run_group_tests_name("model/impact_budget", tests, NULL, NULL);
}
