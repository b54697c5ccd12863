/* Answers from the history, on random paths (drawn_path.h): of paths that are as they were, and of others. */
#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/drawn_path.h"
#include "model/history.h"
#include "model/recalled.h"
#include "model/stats.h"
#include "quantile.h"

#define PATHS 100

static const double told_bps = 20e6;

static struct advice_point told(void)
{
	return (struct advice_point){ told_bps, 18e6, 22e6, 0.1, 0.06, 0.14, 0.2, told_bps };
}

/* Age leaves neither the rate nor who is there certain, and doubts both to both sides. The rate of the check counts the
 * more, the older the answer is. */
static void age_doubts_to_both_sides(void **state)
{
	static const double age_s[] = { 0, 60, 1200, 3600, 10000 };
	const struct probe faster = { 4, 24e6, 0 };
	double bps = told_bps, low = 1, high = 0;
	struct advice_point p;
	struct recalled r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof age_s / sizeof *age_s; i++) {
		p = told();
		recalled_of(&r, &p, &faster, age_s[i]);
		recalled_point(&r, &p, 4);
		assert_true(p.throughput_bps > bps && p.throughput_bps < faster.throughput_bps);
		assert_true(p.throughput_low_bps < p.throughput_bps && p.throughput_bps < p.throughput_high_bps);
		assert_true(p.impact_low_ratio <= low && p.impact_high_ratio >= high);
		assert_true(p.impact_ratio == 0.1 && p.impact_total_ratio == 0.2);
		bps = p.throughput_bps;
		low = p.impact_low_ratio;
		high = p.impact_high_ratio;
	}
	assert_true(low < 0.05 && high > 0.5); /* others may have left, or all the flows that there were but one */
	p = told();
	recalled_point(&r, &p, 1);
	assert_true(p.impact_high_ratio <= 0.14); /* one stream is what the impact is compared with */
	p = told();
	p.impact_ratio = NAN; /* a host limited */
	recalled_point(&r, &p, 4);
	assert_true(p.impact_low_ratio == 0.06);
}

static void a_check_agrees_within_its_error(void **state)
{
	struct probe check = { 16, told_bps, 0 };
	struct advice_point p = told();

	(void)state;
	assert_true(recalled_agrees(&p, &check));
	check.throughput_bps = 1.2 * told_bps;
	assert_true(recalled_agrees(&p, &check));
	check.throughput_bps = told_bps / 1.5;
	assert_false(recalled_agrees(&p, &check));
	check.streams = 1; /* scatters more */
	assert_true(recalled_agrees(&p, &check));
	check.throughput_bps = told_bps / 2.5;
	assert_false(recalled_agrees(&p, &check));
}

/* Advice of the path as it was. */
static void advise(struct advice *a, const struct drawn *was, uint64_t seed)
{
	struct advice_opts o;
	struct evidence e;

	advice_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	drawn_evidence(was, seed, &e);
	assert_int_equal(advice_from_evidence(a, &e, &o, NULL), 0);
}

/* Asked again, on the path as it is. */
static bool agrees(const struct advice *a, const struct drawn *is, uint64_t seed, struct probe *check)
{
	struct advice_point answer;

	advice_at(a, a->streams, &answer);
	drawn_probe(is, seed + 1000, a->streams, HISTORY_CHECK_S, check);
	return recalled_agrees(&answer, check);
}

/* The review's changes, in both directions: three flows come to an idle path or leave it, a rate of 40 falls to 4, one
 * of random loss and 200 ms. The old answers were wrong by 6, 10 and 30 times, with high confidence. */
static void changed_paths_are_probed_again(void **state)
{
	static const struct drawn idle = { .capacity_bps = 40e6, .rtt_s = 0.058, .queue_s = 0.058 },
		shared = { .capacity_bps = 40e6, .rtt_s = 0.058, .queue_s = 0.058, .others = 5 },
		slow = { .capacity_bps = 4e6, .rtt_s = 0.058, .queue_s = 0.058 },
		lossy = { .capacity_bps = 40e6, .rtt_s = 0.2, .queue_s = 0.058, .loss_ratio = 0.01 };
	static const struct { const struct drawn *was, *is; double times; } change[] = {
		{ &idle, &shared, 6 }, { &idle, &slow, 10 }, { &idle, &lossy, 30 }, { &shared, &idle, 6 },
		{ &slow, &idle, 10 } };
	unsigned kept;
	uint64_t seed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof change / sizeof *change; i++) {
		struct advice a;
		struct probe check;

		for (kept = 0, seed = 1; seed <= 10; seed++) {
			advise(&a, change[i].was, seed);
			kept += agrees(&a, change[i].is, seed, &check);
		}
		printf("#> changed by about %.0f times: told %.1f, checked %.1f Mbit/s with %u streams, %u of 10 "
		    "kept\n",
		    change[i].times, a.throughput_bps / 1e6, check.throughput_bps / 1e6, a.streams, kept);
		assert_int_equal(kept, 0);
	}
}

/* What the path is after `age_s`: rate and others may be different ones. */
static struct drawn aged(const struct drawn *p, struct rng *r, double age_s)
{
	double u = rng_uniform(r), v = rng_uniform(r), normal = sqrt(-2 * log(1 - u)) * cos(2 * 3.14159265 * v);
	struct drawn now = *p;

	now.capacity_bps *= pow(history_doubt(age_s), 0.5 * normal / ADVICE_RANGE_SD);
	if (rng_uniform(r) < 1 - exp(-age_s / HISTORY_OTHERS_S))
		now.others = floor(8 * rng_uniform(r));
	return now;
}

static void ranges_hold_what_the_path_is(void **state)
{
	static double error[PATHS];
	unsigned agreed = 0, same = 0, in_rate = 0, in_impact = 0, with_impact = 0;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= PATHS; seed++) {
		struct drawn was = draw_path(seed), is;
		struct rng r = { seed };
		double age_s = HISTORY_MAX_S * pow(rng_uniform(&r), 3), truth_bps, impact;
		struct advice_point answer;
		struct probe check;
		struct recalled now;
		struct advice a;

		advise(&a, &was, seed);
		same += agrees(&a, &was, seed, &check);
		is = aged(&was, &r, age_s);
		if (!agrees(&a, &is, seed, &check))
			continue;
		advice_at(&a, a.streams, &answer);
		recalled_of(&now, &answer, &check, age_s);
		recalled_point(&now, &answer, a.streams);
		truth_bps = drawn_brings(&is, a.streams);
		impact = drawn_impact(&is, a.streams);
		error[agreed++] = fabs(log(answer.throughput_bps / truth_bps));
		in_rate += truth_bps >= answer.throughput_low_bps && truth_bps <= answer.throughput_high_bps;
		with_impact += a.streams > 1;
		in_impact += a.streams > 1 && impact >= answer.impact_low_ratio - 0.01 &&
		    impact <= answer.impact_high_ratio + 0.01;
	}
	stats_sort(error, agreed);
	printf("#> unchanged paths: %u of %u agree\n", same, PATHS);
	printf("#> after up to three hours: %u of %u agree; rate off by %.0f %% in the median, %.0f in 9 of 10; in the "
	    "range: rate %u of %u, impact %u of %u\n", agreed, PATHS, 100 * expm1(quantile(error, agreed, 0.5)),
	    100 * expm1(quantile(error, agreed, 0.9)), in_rate, agreed, in_impact, with_impact);
	assert_true(same >= 0.85 * PATHS);
	assert_true(agreed > PATHS / 3);
	assert_true(in_rate >= 0.7 * agreed && in_impact >= 0.7 * with_impact);
	assert_true(quantile(error, agreed, 0.9) < log(2.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(age_doubts_to_both_sides),
		cmocka_unit_test(a_check_agrees_within_its_error),
		cmocka_unit_test(changed_paths_are_probed_again),
		cmocka_unit_test(ranges_hold_what_the_path_is),
	};

	return cmocka_run_group_tests_name("model/recalled", tests, NULL, NULL);
}
