/* The budget of the last minute. */
#include "model/impact_budget.h"
#include "model/near.h"

static void pass(struct impact_budget *b, unsigned streams, double seconds)
{
	double t;

	for (t = 0; t < seconds - 0.05; t += 0.1)
		impact_budget_pass(b, streams, 0.1);
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

/* A budget of 10 %, and 2 % more, of a minute: 7.2 s of all. */
static void a_minute(void **state)
{
	struct impact_budget b = { .second = 0 };
	const struct advice a = tenths();

	(void)state;
	assert_true(impact_budget_affords(&b, &a, 0.1, 11, 7.1));
	assert_false(impact_budget_affords(&b, &a, 0.1, 11, 7.3));
	pass(&b, 9, 4);
	assert_true(impact_budget_affords(&b, &a, 0.1, 9, 4));
	pass(&b, 6, 5);
	assert_false(impact_budget_affords(&b, &a, 0.1, 9, 5));
	assert_true(impact_budget_affords(&b, &a, 0.1, 1, 60));
	pass(&b, 1, 40);
	assert_false(impact_budget_affords(&b, &a, 0.1, 9, 5));
	pass(&b, 1, 40); /* older than a minute */
	assert_true(impact_budget_affords(&b, &a, 0.1, 11, 7.1));
}

/* What probes have taken is saved afterwards. */
static void fewer_streams(void **state)
{
	struct impact_budget b = { .second = 0 };
	const struct advice a = tenths();

	(void)state;
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 11, 11), 7);
	pass(&b, 9, 7);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
	pass(&b, 2, 9);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 1);
	pass(&b, 1, 60);
	assert_int_equal(impact_budget_most(&b, &a, 0.1, 2, 12), 2);
}

/* The first levels have no advice, and a later advice may be another: what they have taken follows from the latest. */
static void the_latest_advice_counts(void **state)
{
	struct impact_budget b = { .second = 0 };
	struct advice a = tenths();

	(void)state;
	pass(&b, 9, 10);
	assert_false(impact_budget_affords(&b, &a, 0.1, 2, 10));
	a.curve[8].impact_ratio = 0.2;
	assert_true(impact_budget_affords(&b, &a, 0.1, 2, 10));
}

/* Other flows need about 5 s to recover: their loss outlasts the streams. */
static void others_recover_by_and_by(void **state)
{
	struct impact_budget b = { .recovery_s = 5 };
	const struct advice a = tenths();

	(void)state;
	pass(&b, 9, 5);
	pass(&b, 1, 20);
	assert_false(impact_budget_affords(&b, &a, 0.1, 4, 10)); /* 4 s, and as much afterwards, leave nothing */
	b.recovery_s = 0;
	assert_true(impact_budget_affords(&b, &a, 0.1, 4, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_minute),
		cmocka_unit_test(fewer_streams),
		cmocka_unit_test(the_latest_advice_counts),
		cmocka_unit_test(others_recover_by_and_by),
	};
	return cmocka_run_group_tests_name("model/impact_budget", tests, NULL, NULL);
}
