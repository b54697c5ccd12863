/* Turns of links: shares, gaps, and errors beside turns of equal length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "model/rng.h"
#include "model/stats.h"
#include "model/turns.h"

#define LINKS 12
#define WEIGHT 0.25

static void equal_links_take_turns(void **state)
{
	struct turn t[4] = { { .sd = NAN }, { .out = true }, { .sd = -1 }, { .sd = 0 } };
	static const size_t order[] = { 0, 2, 3, 0, 2, 3, 0 };
	unsigned waited;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof order / sizeof *order; i++) {
		assert_int_equal(turns_next(t, 4, &waited), order[i]);
		assert_int_equal(waited, i < 3 ? i + 1 : 3);
	}
	t[0].out = t[2].out = t[3].out = true;
	assert_int_equal(turns_next(t, 4, &waited), 4);
	assert_int_equal(turns_next(t, 0, &waited), 0);
}

static void turns_follow_deviations(void **state)
{
	/* The mean is 0.2: the first two have a quarter of it, the unknown one the mean. */
	struct turn t[5] = { { .sd = 0 }, { .sd = 0.05 }, { .sd = 0.3 }, { .sd = 0.45 }, { .sd = NAN } };
	static const unsigned want[] = { 476, 476, 2857, 4286, 1905 };
	unsigned count[5] = { 0 }, waited, i;

	(void)state;
	for (i = 0; i < 10000; i++)
		count[turns_next(t, 5, &waited)]++;
	for (i = 0; i < 5; i++)
		if (count[i] + 1 < want[i] || count[i] > want[i] + 1)
			fail_msg("link %u: %u turns instead of %u", i, count[i], want[i]);
}

/* Whatever the deviations are, and however they change. */
static void no_link_waits_long(void **state)
{
	struct turn t[LINKS];
	struct rng r = { 3 };
	unsigned waited, round, i;
	size_t n, k;

	(void)state;
	for (round = 0; round < 300; round++) {
		memset(t, 0, sizeof t);
		n = 1 + rng_below(&r, LINKS);
		for (i = 0; i < 500; i++) {
			k = turns_next(t, n, &waited);
			assert_true(waited <= 8 * n);
			t[k].sd = rng_below(&r, 5) == 0 ? NAN : pow(rng_uniform(&r), 8);
		}
		for (k = 0; k < n; k++)
			assert_true(t[k].waited < 8 * n);
	}
}

static double gauss(struct rng *r)
{
	return sqrt(-2 * log(1 - rng_uniform(r))) * cos(6.283185307179586 * rng_uniform(r));
}

/* Mean squared relative error over all links and turns: links of rate 1, each measured with its own deviation, and
 * drifting by `drift` of the rate a turn. */
static double error_of(const double *sd, double drift, bool by_variance, uint64_t seed)
{
	struct rng r = { seed };
	struct turn t[LINKS] = { { .out = false } };
	struct ewma seen[LINKS] = { { 0 } };
	double rate[LINKS], sum = 0;
	unsigned waited, turn;
	size_t i, k;

	for (i = 0; i < LINKS; i++)
		rate[i] = 1;
	for (turn = 0; turn < 5000; turn++) {
		for (i = 0; i < LINKS; i++) {
			rate[i] *= exp(drift * gauss(&r));
			t[i].sd = by_variance && seen[i].n >= 4 ? ewma_sd(&seen[i]) / seen[i].mean : NAN;
		}
		k = turns_next(t, LINKS, &waited);
		ewma_add(&seen[k], rate[k] * (1 + sd[k] * gauss(&r)), turns_weight(WEIGHT, waited, LINKS));
		for (i = 0; turn >= 1000 && i < LINKS; i++)
			sum += pow(seen[i].mean / rate[i] - 1, 2);
	}
	return sum / 4000 / LINKS;
}

/* Error of turns by variance over the error of equal turns. */
static double ratio_of(const double *sd, double drift)
{
	double even = 0, varied = 0;
	uint64_t seed;

	for (seed = 1; seed <= 20; seed++) {
		even += error_of(sd, drift, false, seed);
		varied += error_of(sd, drift, true, seed);
	}
	return varied / even;
}

/* Nine quiet links and three noisy ones; then all alike. */
static void errors_are_smaller(void **state)
{
	static const double differ[LINKS] = { .02, .02, .02, .03, .03, .03, .04, .04, .05, .2, .3, .4 };
	double alike[LINKS], constant, drifting, same;
	size_t i;

	(void)state;
	for (i = 0; i < LINKS; i++)
		alike[i] = 0.1;
	constant = ratio_of(differ, 0);
	drifting = ratio_of(differ, 0.002);
	same = ratio_of(alike, 0);
	printf("#> squared error, turns by variance over equal turns: %.2f, drifting links %.2f, equal links %.2f\n",
	    constant, drifting, same);
	assert_true(constant < 0.6);
	assert_true(drifting < 0.7);
	assert_true(same < 1.15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_links_take_turns),
		cmocka_unit_test(turns_follow_deviations),
		cmocka_unit_test(no_link_waits_long),
		cmocka_unit_test(errors_are_smaller),
	};
	return cmocka_run_group_tests_name("model/turns", tests, NULL, NULL);
}
