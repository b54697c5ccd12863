/* From plans to what each path carries over time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/schedule.h"
#include "plan/worked.h"

static struct ptcp_overlay *overlay;

static struct schedule *schedule_of(const char *text, enum ptcp_plan_method m, double slot_s)
{
	struct ptcp_plan_opts opts;
	struct schedule *s = NULL;
	struct ptcp_plan *p;
	struct ptcp_err e;

	if (ptcp_overlay_parse(&overlay, text, strlen(text), "test", &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_plan_opts_init(&opts);
	opts.method = m;
	opts.slot_s = slot_s;
	if (ptcp_plan_make(&p, overlay, &opts, &e) < 0 || schedule_new(&s, p, &e) < 0)
		fail_msg("%s", e.msg);
	ptcp_plan_free(p);
	return s;
}

static void done(struct schedule *s)
{
	schedule_free(s);
	ptcp_overlay_free(overlay);
}

/* What leaves a source now. */
static double leaves_bps(const struct schedule *s, int source, double t)
{
	double bps = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->path[i].source == source)
			bps += schedule_bps(s, i, t);
	return bps;
}

static void near_to(double a, double b)
{
	if (!(fabs(a - b) <= 1e-6 * fmax(fabs(b), 1)))
		fail_msg("%.10g instead of %.10g", a, b);
}

/* A unit of 8 Gbit each in 1 s: rates are constant, and whatever is late goes on as it went. */
static void pipelined_rates_are_constant(void **state)
{
	struct schedule *s = schedule_of(WORKED_OVERLAY, PTCP_PLAN_PIPELINED, 0);
	int s1 = ptcp_overlay_find_host(overlay, "S1"), s2 = ptcp_overlay_find_host(overlay, "S2");

	(void)state;
	near_to(s->end_s, 1);
	near_to(leaves_bps(s, s1, 0), 8e9);
	near_to(leaves_bps(s, s2, 0), 8e9);
	near_to(leaves_bps(s, s1, 0.999), 8e9);
	near_to(leaves_bps(s, s2, 50), 8e9);
	assert_true(schedule_next_s(s, 2) == INFINITY);
	near_to(schedule_left_bytes(s, s1, 0), 1e9);
	near_to(schedule_left_bytes(s, s1, 0.25), 0.75e9);
	near_to(schedule_left_bytes(s, s2, 3), 0);
	done(s);
}

/* Half of it goes directly, half over K, a slot later. */
static void slots_become_rates_in_time(void **state)
{
	struct schedule *s = schedule_of(WORKED_OVERLAY, PTCP_PLAN_COORDINATED, 0.5);
	int s1 = ptcp_overlay_find_host(overlay, "S1"), s2 = ptcp_overlay_find_host(overlay, "S2");
	double t, left, bytes = 0;

	(void)state;
	near_to(s->end_s, 1.5);
	for (t = 0.005; t < s->end_s; t += 0.01)
		bytes += (leaves_bps(s, s1, t) + leaves_bps(s, s2, t)) / 8 * 0.01;
	assert_true(fabs(bytes - 2e9) < 1e3);
	near_to(schedule_left_bytes(s, s1, 0) + schedule_left_bytes(s, s2, 0), 2e9);
	/* directly 0.5 GB a slot, to K as much; of which K gets only what is worth it */
	left = schedule_left_bytes(s, s1, 0.5) + schedule_left_bytes(s, s2, 0.5);
	assert_true(left > 0.999e9 && left < 1.501e9);
	assert_true(schedule_next_s(s, 0) >= 0.5 - 1e-6);
	done(s);
}

/* While a window is shut nothing goes that way, and the source waits for it. */
static void a_window_is_waited_for(void **state)
{
	static const char text[] =
	    "destination: D\n"
	    "hosts: {D: {}, S: {data: 1GB, path: /d}}\n"
	    "links: [{from: S, to: D, rate: 8Gbit/s}]\n"
	    "windows: [{link: S>D, from: 0.5s, until: 2s, rate: 0}]\n";
	struct schedule *s = schedule_of(text, PTCP_PLAN_PIPELINED, 0);
	int from = ptcp_overlay_find_host(overlay, "S");

	(void)state;
	near_to(s->end_s, 2.5);
	near_to(leaves_bps(s, from, 0.1), 8e9);
	near_to(leaves_bps(s, from, 0.6), 0);
	near_to(leaves_bps(s, from, 2.1), 8e9);
	near_to(schedule_next_s(s, 0), 0.5);
	near_to(schedule_next_s(s, 0.5), 2);
	near_to(schedule_left_bytes(s, from, 1), 0.5e9);
	done(s);
}

/* K takes in what D does not yet, and relays in a row that pass on at once hold nothing. */
static void what_relays_hold_is_known(void **state)
{
	static const char text[] =
	    "destination: D\n"
	    "hosts: {D: {}, S: {data: 1GB, path: /d}, K: {relay: true}}\n"
	    "links: [{from: S, to: K, rate: 2Gbit/s}, {from: K, to: D, rate: 8Gbit/s}]\n"
	    "windows: [{link: K>D, from: 0s, until: 3s, rate: 0}]\n";
	struct schedule *s = schedule_of(text, PTCP_PLAN_PIPELINED, 0);

	(void)state;
	near_to(s->end_s, 4);
	assert_int_equal(s->n, 1);
	assert_true(s->path[0].stored_bytes >= 0.749e9 && s->path[0].stored_bytes <= 1e9);
	near_to(schedule_link_bytes(s, ptcp_overlay_find_host(overlay, "K"), ptcp_overlay_find_host(overlay, "D")),
	    1e9);
	near_to(schedule_link_bytes(s, ptcp_overlay_find_host(overlay, "S"), ptcp_overlay_find_host(overlay, "D")), 0);
	done(s);
	s = schedule_of(WORKED_OVERLAY, PTCP_PLAN_PIPELINED, 0);
	near_to(s->path[0].stored_bytes, 0);
	done(s);
}

/* However little is left in a long slot, it has a rate. */
static void a_byte_has_a_rate(void **state)
{
	struct schedule *s = schedule_of("destination: D\nhosts: {D: {}, S: {data: 1, path: /d}}\n"
	    "links: [{from: S, to: D, rate: 1Mbit/s}]\n", PTCP_PLAN_COORDINATED, 60);

	(void)state;
	assert_int_equal(s->n, 1);
	assert_true(schedule_bps(s, 0, 0) > 0 && schedule_bps(s, 0, 100) > 0);
	near_to(schedule_bps(s, 0, -1), schedule_bps(s, 0, 0)); /* a start before the plan's */
	done(s);
}

/* Of one source the path that carries most comes first, and each goes from the source to the destination. */
static void paths_are_in_order(void **state)
{
	struct schedule *s = schedule_of(WORKED_OVERLAY, PTCP_PLAN_COORDINATED, 0.5);
	size_t i;

	(void)state;
	assert_true(s->n >= 3);
	for (i = 0; i < s->n; i++) {
		assert_int_equal(s->path[i].hop[s->path[i].nhops - 1], ptcp_overlay_destination(overlay));
		if (i > 0 && s->path[i].source == s->path[i - 1].source)
			assert_true(s->path[i].bytes <= s->path[i - 1].bytes);
	}
	done(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipelined_rates_are_constant),
		cmocka_unit_test(slots_become_rates_in_time),
		cmocka_unit_test(a_window_is_waited_for),
		cmocka_unit_test(what_relays_hold_is_known),
		cmocka_unit_test(a_byte_has_a_rate),
		cmocka_unit_test(paths_are_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
