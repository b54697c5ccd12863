/* Random overlays; `make check-long` does the same with many more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ptcp/plan.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"

static struct inst in;

static void try_kind(const struct inst_kind *kind, uint64_t seed, enum compare_depth depth, enum compare_slots slots,
    struct compare_count *c)
{
	char what[COMPARE_WHAT_BYTES];

	inst_make(&in, kind, seed);
	if (compare(&in, depth, slots, NULL, c, what) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static void try(uint64_t first, int count, int lo, int hi, enum compare_depth depth,
    enum compare_slots slots)
{
	struct compare_count c = { 0 };
	int i;

	for (i = 0; i < count; i++) {
		struct inst_kind kind = inst_draw(first + (uint64_t)i, lo, hi);

		try_kind(&kind, first + (uint64_t)i, depth, slots, &c);
	}
	/* Overlays that are all infeasible, or nothing compared, would prove little. */
	assert_true(c.planned >= 2 * count);
	assert_true(depth == COMPARE_VERIFY || c.compared > count);
}

static void every_plan_is_verified(void **state)
{
	(void)state;
	try(100000, 200, 5, 14, COMPARE_VERIFY, COMPARE_SINGLE);
	try(150000, 60, 15, 40, COMPARE_VERIFY, COMPARE_SINGLE);
}

/* A window that ends shortly after a slot began once made a link carry a few
 * millionths too much. */
static void short_periods(void **state)
{
	static const uint64_t seeds[] = { 1003305, 1005209, 1007699 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof seeds / sizeof *seeds; i++)
		try(seeds[i], 1, 5, 40, COMPARE_VERIFY, COMPARE_SINGLE);
}

/* Slots may carry so little that each alone looks like a rounding error. */
static void many_slots_lose_nothing(void **state)
{
	(void)state;
	try(2001668, 40, 5, 10, COMPARE_VERIFY, COMPARE_MANY);
}

static bool until_called(void *arg, double cpu_s)
{
	*(double *)arg = cpu_s;
	return false;
}

/* Plans `in` without effort; 0: infeasible. */
static int plan_hurriedly(struct ptcp_plan_opts *opts, struct ptcp_plan_info *info)
{
	char *text = inst_text(&in);
	struct ptcp_overlay *o;
	struct ptcp_plan *p;
	struct ptcp_err e;
	int r;

	opts->effort_s = 0;
	assert_int_equal(ptcp_overlay_parse(&o, text, strlen(text), "random", &e), 0);
	free(text);
	if ((r = ptcp_plan_make(&p, o, opts, &e)) == 0) {
		assert_int_equal(ptcp_plan_verify(p, o, &e), 0);
		ptcp_plan_info(p, info);
		ptcp_plan_free(p);
	}
	ptcp_overlay_free(o);
	return r;
}

static void hurried_plans_are_near_their_bound(void **state)
{
	struct inst_kind kind = { .hosts = 8, .density = 0.6, .windows = 40, .span = 40 };
	struct ptcp_plan_info hurried;
	struct ptcp_plan_opts opts;
	int n = 0, inexact = 0, i;

	(void)state;
	for (i = 0; i < 60; i++) {
		inst_make(&in, &kind, 500000 + (uint64_t)i);
		ptcp_plan_opts_init(&opts);
		if (plan_hurriedly(&opts, &hurried) < 0)
			continue;
		n++;
		assert_true(hurried.makespan_s <= 1.031 * hurried.bound_s);
		inexact += hurried.makespan_s > hurried.bound_s * (1 + 1e-6);
		assert_true(hurried.bound_s > 0 && hurried.bound_s <= hurried.makespan_s * (1 + 1e-9));
	}
	assert_true(n > 30 && inexact > 0);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY_WINDOWS_CPU_S 60
#else
#define MANY_WINDOWS_CPU_S 1 /* 0.1 s here; 3 s if the program starts without a solution */
#endif

static void many_windows_take_little_time(void **state)
{
	struct inst_kind kind = { .hosts = 50, .density = 1, .windows = 40, .of_link = 20, .span = 200,
		.load = 10, .relays = true };
	struct ptcp_plan_info info;
	struct ptcp_plan_opts opts;
	clock_t began;
	double cpu_s;

	(void)state;
	inst_make(&in, &kind, 2);
	ptcp_plan_opts_init(&opts);
	began = clock();
	assert_int_equal(plan_hurriedly(&opts, &info), 0);
	cpu_s = (double)(clock() - began) / CLOCKS_PER_SEC;
	assert_true(info.makespan_s <= 1.031 * info.bound_s);
	if (cpu_s > MANY_WINDOWS_CPU_S)
		fail_msg("%g s of CPU time", cpu_s);
}

static void planning_can_be_canceled(void **state)
{
	struct inst_kind kind = { .hosts = 8, .density = 1 };
	struct ptcp_plan_info info;
	struct ptcp_plan_opts opts;
	double cpu_s = -1;

	(void)state;
	inst_make(&in, &kind, 1);
	ptcp_plan_opts_init(&opts);
	opts.go_on = until_called;
	opts.arg = &cpu_s;
	assert_int_equal(plan_hurriedly(&opts, &info), PTCP_ECANCELED);
	assert_true(cpu_s >= 0);
}

static void plans_are_optimal(void **state)
{
	(void)state;
	try(200000, 50, 5, 10, COMPARE_ALL, COMPARE_SINGLE);
}

/* Sources that also relay, over links whose rates change several times. */
static void plans_with_many_windows_are_optimal(void **state)
{
	struct inst_kind kind = { .hosts = 7, .density = 0.6, .windows = 12, .of_link = 3, .span = 60, .relays = true,
		.groups = 3, .storage = true, .limits = true };
	struct compare_count c = { 0 };
	uint64_t i;

	(void)state;
	for (i = 0; i < 20; i++)
		try_kind(&kind, 600000 + i, COMPARE_ALL, COMPARE_SINGLE, &c);
	assert_true(c.compared > 20);
}

static void plans_of_stages_are_optimal(void **state)
{
	(void)state;
	try(300000, 15, 5, 8, COMPARE_ALL, COMPARE_STAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_is_verified),
		cmocka_unit_test(short_periods),
		cmocka_unit_test(many_slots_lose_nothing),
		cmocka_unit_test(hurried_plans_are_near_their_bound),
		cmocka_unit_test(many_windows_take_little_time),
		cmocka_unit_test(planning_can_be_canceled),
		cmocka_unit_test(plans_are_optimal),
		cmocka_unit_test(plans_with_many_windows_are_optimal),
		cmocka_unit_test(plans_of_stages_are_optimal),
	};
	return cmocka_run_group_tests_name("plan/random", tests, NULL, NULL);
}
