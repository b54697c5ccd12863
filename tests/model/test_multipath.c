#include "model/near.h"

#include <math.h>
#include <string.h>

#include "model/maxmin.h"
#include "model/multipath.h"

static void different(const size_t *chosen, size_t k, size_t candidates)
{
	size_t i, j;

	for (i = 0; i < k; i++) {
		assert_true(chosen[i] < candidates);
		for (j = 0; j < i; j++)
			assert_int_not_equal(chosen[i], chosen[j]);
	}
}

static void chances(void **state)
{
	const double weight[] = { 1, 2, 3, 4, 0 };
	struct rng r = { 1 };
	unsigned uniform[5] = { 0 }, first[5] = { 0 }, second_of_zero[5] = { 0 };
	size_t chosen[5];
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		choose_paths(chosen, 2, NULL, 5, &r);
		different(chosen, 2, 5);
		uniform[chosen[0]]++;
		uniform[chosen[1]]++;
		choose_paths(chosen, 2, weight, 5, &r);
		different(chosen, 2, 5);
		first[chosen[0]]++;
		if (chosen[0] == 0)
			second_of_zero[chosen[1]]++;
	}
	for (i = 0; i < 5; i++)
		assert_near(uniform[i], 40000, 0.02);
	for (i = 0; i < 4; i++)
		assert_near(first[i], 10000 * weight[i], 0.05);
	assert_int_equal(first[4], 0);
	assert_near((double)second_of_zero[3] / first[0], 4.0 / 9, 0.05);
	choose_paths(chosen, 5, weight, 5, &r);
	different(chosen, 5, 5);
	assert_int_equal(chosen[4], 4); /* no bandwidth: last */
}

static void reselection(void **state)
{
	const double seen[] = { 5, 1, 3 };
	struct rng r = { 2 };
	size_t chosen[3], old[3], changed, i;
	unsigned came[8] = { 0 };
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		choose_paths(chosen, 3, NULL, 8, &r);
		memcpy(old, chosen, sizeof old);
		assert_int_equal(reselect_paths(chosen, 3, RESELECT_WORST, seen, NULL, 8, &r), 1);
		different(chosen, 3, 8);
		assert_int_equal(chosen[0], old[0]);
		assert_int_equal(chosen[2], old[2]);
		assert_int_not_equal(chosen[1], old[1]);
		came[chosen[1]]++;
		memcpy(old, chosen, sizeof old);
		changed = reselect_paths(chosen, 3, RESELECT_ALL, seen, NULL, 8, &r);
		different(chosen, 3, 8);
		for (i = 0; i < 3; i++)
			changed -= chosen[i] != old[i];
		assert_int_equal(changed, 0);
	}
	for (i = 0; i < 8; i++)
		assert_near(came[i], 625, 0.2);
	choose_paths(chosen, 3, NULL, 3, &r);
	memcpy(old, chosen, sizeof old);
	assert_int_equal(reselect_paths(chosen, 3, RESELECT_WORST, seen, NULL, 3, &r), 0);
	assert_memory_equal(chosen, old, sizeof old);
	choose_paths(chosen, 1, NULL, 1, &r);
	assert_int_equal(reselect_paths(chosen, 1, RESELECT_WORST, seen, NULL, 1, &r), 0);
	assert_int_equal(reselect_paths(chosen, 1, RESELECT_ALL, seen, NULL, 1, &r), 0);
}

/* ---- multipath ---- */

/* Candidates that pass on so much, shared with nobody. */
static void arrives(const struct multipath *r, const double *cap, struct multipath_sample *x)
{
	double takes[RATECTL_PATHS_MAX];
	size_t i;

	for (i = 0; i < r->places; i++)
		takes[i] = cap[r->place[i]];
	maxmin(x->observed_bps, takes, r->places, x->demand_bps > 0 ? x->demand_bps : 1e12);
	for (i = 0; i < r->places && r->rate_bps[0] > 0; i++)
		x->observed_bps[i] = r->rate_bps[i] < takes[i] ? r->rate_bps[i] : takes[i];
}

static double sum(const double *v, size_t n)
{
	double s = 0;

	while (n > 0)
		s += v[--n];
	return s;
}

static void distinct(const struct multipath *r)
{
	size_t i, k;

	for (i = 0; i < r->places; i++)
		for (k = 0; k < i; k++)
			assert_int_not_equal(r->place[i], r->place[k]);
}

/* Runs it; how many times a place changed. */
static unsigned run(struct multipath *r, const double *cap, double demand_bps, unsigned steps)
{
	struct multipath_sample x = { .demand_bps = demand_bps };
	unsigned changes = 0;

	while (steps-- > 0) {
		arrives(r, cap, &x);
		changes += multipath_step(r, &x) != 0;
		distinct(r);
		if (r->rate_bps[0] > 0)
			assert_true(sum(r->rate_bps, r->places) <= demand_bps * (1 + 1e-9));
	}
	return changes;
}

/* On average of 100 intervals, in which nothing is replaced; probes that fail cost something. */
static double brings(struct multipath *r, const double *cap, double demand_bps)
{
	struct multipath_sample x = { .demand_bps = demand_bps };
	double all = 0;
	unsigned i;

	for (i = 0; i < 100; i++) {
		arrives(r, cap, &x);
		all += sum(x.observed_bps, r->places);
		assert_int_equal(multipath_step(r, &x), 0);
	}
	return all / 100;
}

static void meets_the_demand(void **state)
{
	const double cap[] = { 6e6, 3e6, 9e6 };
	const size_t place[] = { 0, 1 };
	struct multipath r;
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < 50; seed++) {
		multipath_init(&r, 3, place, 2, NULL, seed);
		assert_int_equal(run(&r, cap, 8e6, 100), 0); /* 6 and 3 are enough */
		assert_true(brings(&r, cap, 8e6) >= 0.95 * 8e6);
	}
}

/* Two of the five are needed, and found whichever one begins with: each try takes the free sharing and the patience. */
static void finds_a_choice_that_does(void **state)
{
	const double cap[] = { 1e6, 8e6, 1e6, 8e6, 1e6 };
	const size_t place[] = { 0, 2 };
	struct multipath r;
	uint64_t seed;
	unsigned changes;

	(void)state;
	for (seed = 0; seed < 200; seed++) {
		multipath_init(&r, 5, place, 2, NULL, seed);
		changes = run(&r, cap, 12e6, 80);
		assert_true(changes >= 2 && changes <= 5);
		assert_true(brings(&r, cap, 12e6) >= 0.95 * 12e6);
	}
}

/* Nothing better is to be had: each is tried once at most, then all anew, more and more rarely. */
static void rests_where_none_does(void **state)
{
	const double cap[] = { 1e6, 1e6, 1e6, 1e6 };
	const size_t place[] = { 3, 1 };
	struct multipath r;

	(void)state;
	multipath_init(&r, 4, place, 2, NULL, 7);
	assert_in_range(run(&r, cap, 10e6, 40), 1, 2);
	run(&r, cap, 10e6, 3000);
	assert_true(run(&r, cap, 10e6, 2000) <= 2000 / MULTIPATH_REST_MAX + 1);
}

/* Two that are good together, and of which each alone spoils what the others bring: no replacement of one leads
 * there. */
static double in_company(const struct multipath *r, size_t i)
{
	size_t me = r->place[i], other = r->place[1 - i];

	if ((me >= 2) == (other >= 2))
		return me >= 2 ? 10e6 : 8e6;
	return me >= 2 ? 1e6 : 7e6;
}

static void finds_those_that_are_good_together(void **state)
{
	const size_t place[] = { 0, 1 };
	struct multipath_sample x = { .demand_bps = 19e6 };
	struct multipath r;
	unsigned steps, found = 0;
	uint64_t seed;
	size_t i;

	(void)state;
	for (seed = 0; seed < 50; seed++) {
		multipath_init(&r, 4, place, 2, NULL, seed);
		for (steps = 0; steps < 10000; steps++) {
			for (i = 0; i < 2; i++)
				x.observed_bps[i] = r.rate_bps[i] > 0 ? fmin(r.rate_bps[i], in_company(&r, i)) :
				    in_company(&r, i);
			multipath_step(&r, &x);
			distinct(&r);
		}
		found += r.place[0] >= 2 && r.place[1] >= 2;
	}
	assert_true(found >= 49);
}

/* What was tried in vain is left for what brought more. */
static void goes_back(void **state)
{
	const double cap[] = { 4e6, 4e6, 1e6, 1e6, 1e6 };
	const size_t place[] = { 0, 1 };
	struct multipath_sample x = { .demand_bps = 12e6 };
	unsigned steps, good = 0;
	struct multipath r;

	(void)state;
	multipath_init(&r, 5, place, 2, NULL, 3);
	for (steps = 0; steps < 5000; steps++) {
		arrives(&r, cap, &x);
		good += r.place[0] < 2 && r.place[1] < 2;
		multipath_step(&r, &x);
	}
	assert_true(good >= 4400);
}

static void leaves_the_dead(void **state)
{
	const double cap[] = { 5e6, 5e6, 5e6 };
	const size_t place[] = { 0, 1 };
	struct multipath_sample x = { .demand_bps = 0 };
	struct multipath r;

	(void)state;
	multipath_init(&r, 3, place, 2, NULL, 1);
	r.trying = false;
	r.known_bps[2] = 5e6;
	assert_int_equal(run(&r, cap, 0, 20), 0);
	assert_true(r.rate_bps[0] == 0 && r.rate_bps[1] == 0);
	x.down[0] = true;
	assert_int_equal(multipath_step(&r, &x), 1);
	assert_int_equal(r.place[0], 2);
	assert_int_equal(r.place[1], 1);
	/* what is dead as well is better than nothing: it may have come back */
	assert_int_equal(multipath_step(&r, &x), 1);
	assert_int_equal(r.place[0], 0);
	multipath_init(&r, 2, place, 2, NULL, 1);
	assert_int_equal(multipath_step(&r, &x), 0); /* no candidate is left */
}

static void starved(void **state)
{
	const double cap[] = { 5e6, 5e6 };
	const size_t place[] = { 0, 1 };
	struct multipath_sample x = { .demand_bps = 8e6, .starved = true };
	struct multipath r;
	unsigned i;

	(void)state;
	multipath_init(&r, 2, place, 1, NULL, 1);
	run(&r, cap, 4e6, 20);
	assert_true(r.rate_bps[0] > 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(multipath_step(&r, &x), 0);
		assert_true(r.rate_bps[0] == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chances),
		cmocka_unit_test(reselection),
		cmocka_unit_test(meets_the_demand),
		cmocka_unit_test(finds_a_choice_that_does),
		cmocka_unit_test(rests_where_none_does),
		cmocka_unit_test(finds_those_that_are_good_together),
		cmocka_unit_test(goes_back),
		cmocka_unit_test(leaves_the_dead),
		cmocka_unit_test(starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
