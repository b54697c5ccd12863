/* The fluid of the study (tests/bench/collect) where it can be computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "bench/collect/execute.h"

static const bool off[POINTS];

static int near(double a, double b, double ratio)
{
	return fabs(a - b) <= ratio * fmax(fabs(a), fabs(b));
}

/* 10 other flows north, 5 south, sources of 50 MB. */
static void set_up(struct study *s)
{
	int i;

	*s = (struct study){ .others = { 10, 5 }, .point_factor = { 1, 1 } };
	for (i = 0; i < SOURCES; i++) {
		s->data[i] = 50e6;
		s->link_factor[i] = 1;
	}
}

static void flows_share_fairly(void **state)
{
	struct study s;
	double other[POINTS];
	/* Two flows at the north, one of them through another source; one paced flow; one flow at the south. */
	struct study_flow f[] = { { 0, -1, INFINITY, 0 }, { 5, 1, INFINITY, 0 }, { 2, -1, 100, 0 },
		{ 6, -1, INFINITY, 0 } };

	(void)state;
	set_up(&s);
	study_share(&s, f, 4, off, other);
	assert_true(near(f[0].rate, (PEERING_BPS - 100) / 12, 1e-9));
	assert_true(near(f[1].rate, f[0].rate, 1e-9));
	assert_true(near(f[2].rate, 100, 1e-9));
	assert_true(near(other[NORTH], f[0].rate, 1e-9));
	assert_true(near(f[3].rate, PEERING_BPS / 6, 1e-9));
	assert_true(near(other[SOUTH], f[3].rate, 1e-9));
}

static void ways_out_are_limits(void **state)
{
	struct study s;
	double other[POINTS];
	/* Two flows leave source 4 for relays on both sides. */
	struct study_flow f[] = { { 4, 0, INFINITY, 0 }, { 4, 5, INFINITY, 0 } };

	(void)state;
	set_up(&s);
	s.others[NORTH] = s.others[SOUTH] = 0;
	study_share(&s, f, 2, off, other);
	assert_true(near(f[0].rate, PEERING_BPS, 1e-9)); /* 2 x 20 of 100 Mbit/s */
	assert_true(near(f[1].rate, PEERING_BPS, 1e-9));
	assert_true(other[NORTH] == 0);
}

static void makespans(void **state)
{
	static const struct way direct = { PTCP_PLAN_DIRECT, false, false },
	    paced = { PTCP_PLAN_PIPELINED, true, false }, again = { PTCP_PLAN_PIPELINED, true, true };
	struct outcome o, p;
	struct study s;

	(void)state;
	set_up(&s);
	/* Each at the north gets a 14th. Of the others, 4 / 14 and 3 / 8 of their rates are lost; but the
	 * south is done before. */
	assert_int_equal(execute(&s, &direct, &o), 0);
	assert_true(near(o.makespan_s, 50e6 / (PEERING_BPS / 14), 1e-6));
	/* Planned: 2 / 12 for a link, 7 / 17 for four of them. */
	assert_true(near(o.planned_s, 50e6 / (PEERING_BPS * 7 / 17 / 4), 1e-6));
	assert_true(near(o.others_loss_ratio, (10 * 4 / 14.0 + 5 * 3 / 8.0 * (8.0 / 14)) / 15, 1e-3));
	/* 7/17 and 7/12 of the peering points together for 350 MB, at 95 % at most. */
	assert_int_equal(execute(&s, &paced, &o), 0);
	assert_true(near(o.planned_s, 350e6 / (PEERING_BPS * (7 / 17.0 + 7 / 12.0)), 1e-3));
	assert_true(o.makespan_s > o.planned_s / 0.951);
	assert_int_equal(o.replans, 0);
	/* Told a fourth of what there is it takes as long as it was told, unless it looks. */
	s.point_factor[NORTH] = s.point_factor[SOUTH] = 0.25;
	assert_int_equal(execute(&s, &paced, &p), 0);
	assert_true(near(p.makespan_s, 4 * o.planned_s / 0.95, 0.01));
	assert_int_equal(execute(&s, &again, &p), 0);
	assert_true(p.replans > 0 && p.makespan_s < 2 * o.planned_s);
}

/* A plan has fewer streams at the peering points than its rates take, so it falls behind, unless other paths make up
 * for that; and they take no more from others than the plan was to take. */
static void what_streams_lack_is_made_up_for(void **state)
{
	static const struct way paced = { PTCP_PLAN_PIPELINED, true, false },
		again = { PTCP_PLAN_PIPELINED, true, true };
	struct outcome kept, made_up;
	struct study s;

	(void)state;
	set_up(&s);
	assert_int_equal(execute(&s, &paced, &kept), 0);
	assert_int_equal(execute(&s, &again, &made_up), 0);
	assert_true(kept.makespan_s > 1.3 * kept.planned_s);
	assert_true(made_up.makespan_s < 1.15 * made_up.planned_s && made_up.makespan_s > 0.9 * made_up.planned_s);
}

/* Without others the peering points are all that limits a collection. The lower the estimates, the longer it takes to
 * find what there is. */
static void low_estimates_cost_little(void **state)
{
	static const struct way again = { PTCP_PLAN_PIPELINED, true, true };
	static const double seconds[] = { 2, 4, 8, 15, 60 };
	static const struct { double factor, from_s; } low[] = { { 0.1, 15 }, { 0.3, 8 }, { 0.5, 4 },
		{ 0.7, 2 }, { 1, 2 },
		{ 3, 2 }, { 10, 2 } };
	struct outcome o;
	struct study s;
	size_t f, t;
	int i;

	(void)state;
	for (f = 0; f < sizeof low / sizeof *low; f++)
		for (t = 0; t < sizeof seconds / sizeof *seconds; t++) {
			if (seconds[t] < low[f].from_s)
				continue;
			set_up(&s);
			s.others[NORTH] = s.others[SOUTH] = 0;
			s.point_factor[NORTH] = s.point_factor[SOUTH] = low[f].factor;
			for (i = 0; i < SOURCES; i++) {
				s.link_factor[i] = low[f].factor;
				s.data[i] = seconds[t] * 2 * PEERING_BPS / SOURCES;
			}
			assert_int_equal(execute(&s, &again, &o), 0);
			if (o.makespan_s > 1.3 * seconds[t])
				fail_msg("estimates %g: %g s instead of %g", low[f].factor, o.makespan_s, seconds[t]);
		}
}

/* Nor beside the others of the published study, whose coordinated plans took 24 % longer. */
static void low_estimates_cost_little_beside_others(void **state)
{
	static const struct way again = { PTCP_PLAN_PIPELINED, true, true };
	static const double factor[] = { 0.3, 0.5, 0.7 };
	struct outcome told, low;
	struct study s;
	size_t f;
	int i;

	(void)state;
	set_up(&s);
	s.others[NORTH] = 40;
	s.others[SOUTH] = 20;
	assert_int_equal(execute(&s, &again, &told), 0);
	for (f = 0; f < sizeof factor / sizeof *factor; f++) {
		s.point_factor[NORTH] = s.point_factor[SOUTH] = factor[f];
		for (i = 0; i < SOURCES; i++)
			s.link_factor[i] = factor[f];
		assert_int_equal(execute(&s, &again, &low), 0);
		if (low.makespan_s > 1.24 * told.makespan_s)
			fail_msg("estimates %g: %g s, true ones %g s", factor[f], low.makespan_s, told.makespan_s);
	}
}

/* An overlay without shared bottlenecks promises more than the peering points carry; the collection finds them. */
static void shared_bottlenecks_are_found(void **state)
{
	static const struct way again = { PTCP_PLAN_PIPELINED, true, true };
	struct outcome o;
	struct study s;

	(void)state;
	set_up(&s);
	s.others[NORTH] = s.others[SOUTH] = 0;
	assert_int_equal(execute(&s, &again, &o), 0);
	assert_int_equal(o.n_shared, 0);
	s.blind = true;
	assert_int_equal(execute(&s, &again, &o), 0);
	assert_true(o.n_shared >= 1);
	assert_true(o.planned_s < 0.6 * ALL_BYTES / (2 * PEERING_BPS));
	if (o.makespan_s > 1.15 * ALL_BYTES / (2 * PEERING_BPS))
		fail_msg("%g s", o.makespan_s);
}

/* Collections of 10 s, as in the laboratory, alone and beside others: sources begin half a second after the plan, and
 * paths over relays carry less than planned. The pace of 95 % and the start alone make 1.08 of the
 * promise. */
static void short_collections_keep_their_promise(void **state)
{
	static const struct { double others, north, south, mean, worst; } at[] = { { 0, 1, 1, 1.09, 1.1 },
		{ 12, 1, 1, 1.08, 1.1 }, { 12, 2, 1, 1.08, 1.1 } };
	static const struct way again = { PTCP_PLAN_PIPELINED, true, true };
	double ratio, worst, sum;
	struct rng r = { 7 };
	struct outcome o;
	struct study s;
	size_t a;
	int d, i;

	(void)state;
	for (a = 0; a < sizeof at / sizeof *at; a++) {
		for (worst = sum = d = 0; d < 10; d++) {
			study_draw(&s, at[a].others, at[a].north, at[a].south, ERROR_NONE, 0, &r);
			for (i = 0; i < SOURCES; i++) {
				s.data[i] *= 10 * 2 * PEERING_BPS / ALL_BYTES;
				s.start_s[i] = 0.4 + 0.2 * rng_uniform(&r);
			}
			s.relayed_ratio = 0.7;
			assert_int_equal(execute(&s, &again, &o), 0);
			ratio = o.makespan_s / o.planned_s;
			sum += ratio;
			worst = fmax(worst, ratio);
		}
		if (sum > 10 * at[a].mean || worst > at[a].worst)
			fail_msg("%g others: %g times the plan, at worst %g", at[a].others, sum / 10, worst);
	}
}

static void draws_are_the_study(void **state)
{
	struct rng r = { 1 };
	struct study s;
	double sum = 0;
	int i;

	(void)state;
	study_draw(&s, 60, 2, 1, ERROR_MIXED, 0.5, &r);
	for (i = 0; i < SOURCES; i++) {
		assert_true(s.data[i] > 24e6 && s.data[i] < 76e6);
		assert_true(s.link_factor[i] == 0.5 || s.link_factor[i] == 1.5);
		sum += s.data[i];
	}
	assert_true(fabs(sum - ALL_BYTES) < 10);
	assert_true(s.others[NORTH] == 40 && s.others[SOUTH] == 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_share_fairly),
		cmocka_unit_test(ways_out_are_limits),
		cmocka_unit_test(makespans),
		cmocka_unit_test(what_streams_lack_is_made_up_for),
		cmocka_unit_test(low_estimates_cost_little),
		cmocka_unit_test(low_estimates_cost_little_beside_others),
		cmocka_unit_test(shared_bottlenecks_are_found),
		cmocka_unit_test(short_collections_keep_their_promise),
		cmocka_unit_test(draws_are_the_study),
	};
	return cmocka_run_group_tests_name("collect/study", tests, NULL, NULL);
}
