/* Which links are blamed for what paths lack, and when. Limits: 0 S1>K, 1 S2>K, 2 K>D, 3 S1>D, 4 S2>D, 5 what both of
 * these share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collect/drift.h"

#define LIMITS 6
static const size_t s1_k_d[] = { 0, 2 }, s2_k_d[] = { 1, 2 }, s1_d[] = { 3, 5 }, s2_d[] = { 4, 5 };
static const double first_bps[LIMITS] = { 20e6, 20e6, 40e6, 20e6, 20e6, 40e6 };
static double found[LIMITS];
static size_t n_found;

struct world {
	struct drift_flow f[4];
	double limit_bps[LIMITS];
	struct drift w;
	double now_s;
};

/* The start: all as planned, 10 Mbit/s each. */
static void begin(struct world *w)
{
	static const size_t *const way[] = { s1_k_d, s2_k_d, s1_d, s2_d };
	int i;

	memcpy(w->limit_bps, first_bps, sizeof first_bps);
	for (i = 0; i < 4; i++)
		w->f[i] = (struct drift_flow){ way[i], 2, 10e6, 9.9e6, true, false };
	w->now_s = 0;
	drift_init(&w->w);
}

/* Looks four times a second, for so long or until it does something. */
static enum drift_action watch(struct world *w, double seconds, double left_s)
{
	const struct drift_limits limits = { w->limit_bps, first_bps, LIMITS };
	double until = w->now_s + seconds;
	enum drift_action a = DRIFT_NONE;

	while (a == DRIFT_NONE && w->now_s < until) {
		w->now_s += 0.25;
		a = drift_update(&w->w, w->now_s, left_s, w->f, 4, &limits, found, &n_found);
	}
	return a;
}

/* The first probe is over, and has found nothing. */
static void as_planned(struct world *w)
{
	begin(w);
	drift_flows(&w->w, 0);
	assert_int_equal(watch(w, 10, 1000), DRIFT_END_PROBE);
	assert_int_equal(n_found, 0);
}

/* Passes over the probes. */
static enum drift_action watch_links(struct world *w, double seconds)
{
	double until = w->now_s + seconds;
	enum drift_action a;

	do
		a = watch(w, until - w->now_s, 1000);
	while ((a == DRIFT_START_PROBE || (a == DRIFT_END_PROBE && n_found == 0)) && w->now_s < until);
	return a == DRIFT_SLOWER || n_found > 0 ? a : DRIFT_NONE;
}

static void only(size_t a, size_t b, double bps)
{
	size_t i;

	for (i = 0; i < LIMITS; i++) {
		if (i != a && i != b)
			assert_true(isnan(found[i]));
		else if (!(fabs(found[i] - bps) < 1))
			fail_msg("limit %zu: %g instead of %g", i, found[i], bps);
	}
}

static void all_as_planned_is_left_alone(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	assert_int_equal(watch_links(&w, 1000), DRIFT_NONE);
	w.f[0].observed_bps = 8.2e6; /* not off by more than a fifth */
	assert_int_equal(watch_links(&w, 1000), DRIFT_NONE);
}

static void the_link_of_one_path_is_blamed(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[0].observed_bps = 1e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(0, 0, 1e6); /* K>D carries what S2 has, so it is S1>K */
}

static void the_common_link_is_blamed(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[0].observed_bps = 0.4e6;
	w.f[1].observed_bps = 1.6e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(2, 2, 2e6);
	as_planned(&w);
	w.f[2].observed_bps = w.f[3].observed_bps = 3e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(5, 5, 6e6);
}

static void what_cannot_be_told_apart_is_blamed_together(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[1].assigned_bps = w.f[1].observed_bps = 0; /* only S1 goes over K */
	w.f[0].observed_bps = 2e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(0, 2, 2e6);
}

/* But for what nobody gave a rate: S1 may yet have another way than this one. */
static void what_has_no_rate_is_not_blamed_with_it(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.limit_bps[2] = INFINITY;
	w.f[1].assigned_bps = w.f[1].observed_bps = 0;
	w.f[0].observed_bps = 2e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(0, 0, 2e6);
	as_planned(&w);
	w.limit_bps[2] = INFINITY; /* what all that cross it lack is its doing all the same */
	w.f[0].observed_bps = w.f[1].observed_bps = 2e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(2, 2, 4e6);
}

/* What S2 brings over K without having been given anything is not what K>D lacks, nor can it be. */
static void what_was_given_nothing_counts(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[1].assigned_bps = 0;
	w.f[0].observed_bps = w.f[1].observed_bps = 5e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(0, 0, 5e6);
}

static void a_relay_that_is_gone_is_found(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[0].observed_bps = w.f[1].observed_bps = 0;
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(2, 2, 0);
}

/* Others exceed their rates where this one falls short, and the link they share is full: it is no slower. */
static void what_others_take_is_not_blamed_on_a_link(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.limit_bps[5] = 30e6;
	w.f[2].observed_bps = 5e6;
	w.f[3].observed_bps = 23e6;
	assert_int_equal(watch_links(&w, 30), DRIFT_NONE);
	w.f[3].observed_bps = 12e6; /* the bottleneck has room */
	assert_int_equal(watch_links(&w, 30), DRIFT_SLOWER);
	only(3, 3, 5e6);
}

static void it_does_not_flap(void **state)
{
	struct world w;
	int i;

	(void)state;
	as_planned(&w);
	assert_int_equal(watch_links(&w, 50), DRIFT_NONE);
	for (i = 0; i < 20; i++) { /* for a moment, again and again */
		w.f[0].observed_bps = 1e6;
		assert_int_not_equal(watch(&w, 1.5, 12), DRIFT_SLOWER);
		w.f[0].observed_bps = 9.9e6;
		assert_int_not_equal(watch(&w, 2, 12), DRIFT_SLOWER);
	}
	w.f[0].observed_bps = 1e6;
	assert_int_equal(watch(&w, 10, 12), DRIFT_SLOWER);
	assert_int_equal(watch(&w, 5, 12), DRIFT_NONE); /* rates are settling */
	drift_changed(&w.w, w.now_s);
	assert_int_equal(watch(&w, 5.5, 12), DRIFT_NONE);
	assert_int_equal(watch(&w, 2, 12), DRIFT_SLOWER);
}

/* What is not judged, what is small beside the rest, and the very end are no reason for anything. */
static void what_says_nothing_is_not_heard(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.f[0].observed_bps = 0;
	w.f[0].valid = false;
	assert_int_equal(watch_links(&w, 100), DRIFT_NONE);
	as_planned(&w);
	w.f[0].assigned_bps = 0.5e6;
	w.f[0].observed_bps = 0;
	assert_int_equal(watch_links(&w, 100), DRIFT_NONE);
	as_planned(&w);
	w.f[0].observed_bps = 0;
	assert_int_equal(watch(&w, 100, 3), DRIFT_NONE);
}

static void a_probe_finds_more(void **state)
{
	struct world w;
	double begun;

	(void)state;
	as_planned(&w);
	assert_int_equal(watch(&w, 100, 1000), DRIFT_START_PROBE);
	begun = w.now_s;
	w.f[2].observed_bps = w.f[3].observed_bps = 30e6;
	assert_int_equal(watch(&w, 10, 1000), DRIFT_FASTER);
	assert_true(w.now_s - begun >= 2 && w.now_s - begun <= 4);
	assert_int_equal(n_found, 3);
	assert_true(found[3] == 30e6 && found[4] == 30e6 && found[5] == 60e6 && isnan(found[2]));
	/* It goes on, with higher rates, until nothing more is found. */
	assert_true(drift_is_probing(&w.w) && drift_ratio(&w.w) > DRIFT_RATIO);
	w.limit_bps[3] = w.limit_bps[4] = 30e6;
	w.limit_bps[5] = 60e6;
	assert_int_equal(watch(&w, 10, 1000), DRIFT_END_PROBE);
	assert_int_equal(n_found, 0);
}

/* A collection begins with a probe, which hardly limits paths, waits for data, and counts however little is left. */
static void it_begins_with_a_probe(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	assert_true(drift_is_probing(&w.w) && drift_is_starting(&w.w));
	assert_true(drift_ratio(&w.w) == DRIFT_RATIO);
	drift_changed(&w.w, 0); /* the first plan */
	assert_int_equal(watch(&w, 60, 1000), DRIFT_NONE);
	assert_true(drift_is_probing(&w.w));
	drift_flows(&w.w, w.now_s);
	w.f[2].observed_bps = w.f[3].observed_bps = 50e6;
	assert_int_equal(watch(&w, 2, 1), DRIFT_NONE);
	assert_int_equal(watch(&w, 1, 1), DRIFT_END_PROBE);
	assert_true(n_found == 3 && found[3] == 50e6 && found[5] == 100e6);
	assert_true(!drift_is_probing(&w.w) && !drift_is_starting(&w.w) && drift_ratio(&w.w) == 1);
	assert_int_equal(watch(&w, 100, 1000), DRIFT_START_PROBE);
	assert_true(drift_ratio(&w.w) == DRIFT_RATIO);
}

/* A probe that new rates cut short is made up for. */
static void a_probe_cut_short_is_repeated(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	drift_flows(&w.w, 0);
	assert_int_equal(watch(&w, 2, 1000), DRIFT_NONE);
	drift_changed(&w.w, w.now_s);
	assert_true(!drift_is_probing(&w.w));
	assert_int_equal(watch(&w, 3.5, 1000), DRIFT_NONE);
	assert_int_equal(watch(&w, 1, 1000), DRIFT_START_PROBE);
	assert_true(drift_ratio(&w.w) == DRIFT_RATIO);
}

/* What comes over paths that were given nothing shows no more than that a limit is what it once was. */
static void a_probe_finds_what_is_back(void **state)
{
	struct world w;

	(void)state;
	as_planned(&w);
	w.limit_bps[3] = 1e6;
	w.f[2].assigned_bps = 0;
	w.f[2].observed_bps = 60e6;
	assert_int_equal(watch(&w, 100, 1000), DRIFT_START_PROBE);
	assert_int_equal(watch(&w, 10, 1000), DRIFT_FASTER);
	only(3, 3, 20e6);
}

/* The next one comes ever later, none when little is left, and at once when something is back. */
static void probes_grow_rare(void **state)
{
	struct world w;
	int probes = 0;

	(void)state;
	as_planned(&w);
	while (w.now_s < 600)
		probes += watch(&w, 600 - w.now_s, 1000) == DRIFT_START_PROBE;
	assert_in_range(probes, 7, 14);
	assert_int_equal(watch(&w, 200, 4.5), DRIFT_NONE);
	drift_returned(&w.w, w.now_s);
	assert_int_equal(watch(&w, 1, 1000), DRIFT_START_PROBE);
	as_planned(&w); /* but not before anything can be seen */
	drift_changed(&w.w, w.now_s);
	drift_returned(&w.w, w.now_s);
	assert_int_equal(watch(&w, 3.5, 1000), DRIFT_NONE);
	assert_int_equal(watch(&w, 1, 1000), DRIFT_START_PROBE);
}

/* A limit that was lowered is tried again soon, with four times its rate and at most what it once was. */
static void what_was_lowered_is_probed_soon(void **state)
{
	struct world w;
	int probes = 0;

	(void)state;
	as_planned(&w);
	w.limit_bps[3] = w.f[2].assigned_bps = w.f[2].observed_bps = 1e6;
	while (w.now_s < 210)
		probes += watch(&w, 210 - w.now_s, 1000) == DRIFT_START_PROBE;
	assert_in_range(probes, 8, 12);
	assert_int_equal(watch(&w, 100, 1000), DRIFT_START_PROBE);
	assert_true(drift_probe_bps(&w.w, 1e6, 20e6) == 4e6);
	assert_true(drift_probe_bps(&w.w, 10e6, 20e6) == 20e6);
	assert_true(drift_probe_bps(&w.w, 10e6, 0) == DRIFT_RATIO * 10e6);
	assert_true(drift_probe_bps(&w.w, 0, 20e6) == 20e6);
	w.f[2].observed_bps = 3.8e6;
	assert_int_equal(watch(&w, 10, 1000), DRIFT_FASTER);
	only(3, 3, 3.8e6);
	assert_true(drift_probe_bps(&w.w, 3.8e6, 20e6) >= 20e6);
}

/* Blocks arrive whole: a slow path is looked at for longer. */
static void slow_paths_are_looked_at_longer(void **state)
{
	struct drift w;

	(void)state;
	drift_init(&w);
	drift_flows(&w, 0);
	drift_changed(&w, 1); /* no probe */
	assert_true(drift_window_s(&w, 1e9) == 3);
	assert_true(drift_window_s(&w, 5e6) > 6);
	assert_true(drift_window_s(&w, 0) <= 12);
}

/* ---- catch_up ---- */

#define GIVEN 8e6 /* bit/s: a megabyte a second */

static void who_is_about_on_time_keeps_to_the_plan(void **state)
{
	(void)state;
	assert_true(catch_up_bps(0, 0, GIVEN, 0.7 * GIVEN, 100) == 0);
	assert_true(catch_up_bps(0, 1e6, GIVEN, 0.85 * GIVEN, 100) == 0);
	assert_true(catch_up_bps(0, 5e6, GIVEN, GIVEN, 100) == 0); /* it began late */
	assert_true(catch_up_bps(0, -5e6, GIVEN, 0.2 * GIVEN, 100) == 0);
	assert_true(catch_up_bps(0, 5e6, 0, 0, 100) == 0); /* nothing is planned for it now */
}

static void who_is_late_may_have_more(void **state)
{
	(void)state;
	assert_true(catch_up_bps(0.1 * GIVEN, 2.5e6, GIVEN, GIVEN, 100) == 0.5 * GIVEN); /* already */
	assert_true(catch_up_bps(0, 0, GIVEN, 0.5 * GIVEN, 100) == 0.5 * GIVEN);
	assert_true(catch_up_bps(0, 1.25e6, GIVEN, 0.75 * GIVEN, 100) == 0.5 * GIVEN);
}

/* The last seconds are too few to make up for a delay later, even if it began late only; after the end, too. */
static void delays_count_more_near_the_end(void **state)
{
	(void)state;
	assert_true(catch_up_bps(0, 0.5e6, GIVEN, GIVEN, 6) == 0);
	assert_true(catch_up_bps(0, 0.5e6, GIVEN, GIVEN, 2) == 0); /* 0.25 of GIVEN for 2 s */
	assert_true(catch_up_bps(0, 0.5e6, GIVEN, GIVEN, 1) == 0.5 * GIVEN);
	assert_true(catch_up_bps(0, 0.5e6, GIVEN, GIVEN, -3) == 0.5 * GIVEN);
	assert_true(catch_up_bps(0, 1e6, GIVEN, 0.95 * GIVEN, 2) == 0.55 * GIVEN);
	assert_true(catch_up_bps(0, -1e6, GIVEN, GIVEN, 1) == 0);
}

/* Where its own paths fall short by a third for good, and it gets what it may have, it is soon on time, and stays so
 * without being ahead by more than moments. */
static void it_goes_on_until_it_is_on_time(void **state)
{
	double behind = 3e6, more = 0, s;

	(void)state;
	for (s = 0; s < 60; s += 0.25) {
		more = catch_up_bps(more, behind, GIVEN, 0.67 * GIVEN, 100);
		behind += (0.33 * GIVEN - more) / 8 * 0.25;
		assert_true(s < 20 || (behind > -0.4e6 && behind < 0.4e6));
	}
	assert_true(more > 0.3 * GIVEN && more < 0.36 * GIVEN);
	assert_true(catch_up_bps(more, -0.3e6, GIVEN, GIVEN, 100) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_as_planned_is_left_alone),
		cmocka_unit_test(the_link_of_one_path_is_blamed),
		cmocka_unit_test(the_common_link_is_blamed),
		cmocka_unit_test(what_cannot_be_told_apart_is_blamed_together),
		cmocka_unit_test(what_has_no_rate_is_not_blamed_with_it),
		cmocka_unit_test(what_was_given_nothing_counts),
		cmocka_unit_test(a_relay_that_is_gone_is_found),
		cmocka_unit_test(what_others_take_is_not_blamed_on_a_link),
		cmocka_unit_test(it_does_not_flap),
		cmocka_unit_test(what_says_nothing_is_not_heard),
		cmocka_unit_test(a_probe_finds_more),
		cmocka_unit_test(it_begins_with_a_probe),
		cmocka_unit_test(a_probe_cut_short_is_repeated),
		cmocka_unit_test(a_probe_finds_what_is_back),
		cmocka_unit_test(probes_grow_rare), cmocka_unit_test(what_was_lowered_is_probed_soon),
		cmocka_unit_test(slow_paths_are_looked_at_longer),
		cmocka_unit_test(who_is_about_on_time_keeps_to_the_plan),
		cmocka_unit_test(who_is_late_may_have_more), cmocka_unit_test(delays_count_more_near_the_end),
		cmocka_unit_test(it_goes_on_until_it_is_on_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
