/* Plans made beside the loop: of the overlay as it was, whatever becomes of that meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/planner_thread.h"
#include "plan/overlay_copy.h"
#include "plan/parsed.h"
#include "plan/rate_limits.h"

static const char text[] =
    "destination: D\n"
    "hosts: {D: {}, S1: {data: 100MB, path: /d}, S2: {data: 100MB, path: /d}, K: {relay: true}}\n"
    "links: [{from: S1, to: D, rate: 8Mbit/s}, {from: S2, to: D, rate: 8Mbit/s}, {from: S1, to: K, rate: 90Mbit/s},\n"
    "  {from: S2, to: K, rate: 90Mbit/s}, {from: K, to: D, rate: 8Mbit/s}]\n"
    "windows: [{link: K>D, from: 1000s, until: 2000s, rate: 1Mbit/s}]\n";

static struct planner_thread *begin_after(const struct ptcp_overlay *o, double room_s)
{
	struct ptcp_plan_opts opts;
	struct planner_thread *p;
	struct ptcp_err e;

	ptcp_plan_opts_init(&opts);
	if (planner_thread_new(&p, o, room_s, &opts, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static struct planner_thread *begin(const struct ptcp_overlay *o) { return begin_after(o, 0); }

/* The collection goes on changing it: 200 MB over 24 Mbit/s all the same. */
static void what_changes_meanwhile_changes_nothing(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);
	struct schedule *schedule;
	struct ptcp_plan *plan;
	struct planner_thread *p = begin(o);
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < limits_count(o); i++)
		limits_set_bps(o, i, 1e6);
	limits_pass(o, 1500);
	assert_int_equal(ptcp_overlay_set_data(o, "S1", 1, &e), 0);
	if (planner_thread_take(p, &plan, &schedule, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(planner_thread_is_done(p));
	if (!(fabs(schedule->end_s - 200e6 * 8 / 24e6) < 0.1))
		fail_msg("%g s", schedule->end_s);
	planner_thread_free(p);
	ptcp_plan_free(plan);
	schedule_free(schedule);
	ptcp_overlay_free(o);
}

/* K>D is at 1 Mbit/s from 1000 s on, 10 s after the start: 17 Mbit/s are left then. */
static void windows_come_earlier_than_the_start(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);
	struct planner_thread *p = begin_after(o, 990);
	struct schedule *schedule;
	struct ptcp_plan *plan;
	struct ptcp_err e;

	(void)state;
	if (planner_thread_take(p, &plan, &schedule, &e) < 0)
		fail_msg("%s", e.msg);
	if (!(fabs(schedule->end_s - (10 + (200e6 * 8 - 240e6) / 17e6)) < 0.1))
		fail_msg("%g s", schedule->end_s);
	planner_thread_free(p);
	ptcp_plan_free(plan);
	schedule_free(schedule);
	ptcp_overlay_free(o);
}

static void what_cannot_be_planned_is_told(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);
	struct schedule *schedule = NULL;
	struct ptcp_plan *plan = NULL;
	struct planner_thread *p;
	struct ptcp_err e;

	(void)state;
	limits_set_bps(o, 0, 0);
	limits_set_bps(o, 2, 0);
	p = begin(o);
	assert_int_equal(planner_thread_take(p, &plan, &schedule, &e), PTCP_EINFEASIBLE);
	assert_non_null(strstr(e.msg, "S1"));
	assert_true(plan == NULL && schedule == NULL);
	planner_thread_free(p);
	ptcp_overlay_free(o);
}

static void nobody_need_take_it(void **state)
{
	struct ptcp_overlay *o = overlay_of(text);

	(void)state;
	planner_thread_free(begin(o));
	planner_thread_free(NULL);
	ptcp_overlay_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changes_meanwhile_changes_nothing),
		cmocka_unit_test(windows_come_earlier_than_the_start),
		cmocka_unit_test(what_cannot_be_planned_is_told),
		cmocka_unit_test(nobody_need_take_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
