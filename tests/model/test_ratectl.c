#include "model/maxmin.h"

#include <stdbool.h>
#include <string.h>

#include "draw.h"
#include "model/near.h"
#include "model/ratectl.h"

static struct ratectl_opts exact(double beta)
{
	struct ratectl_opts o;

	ratectl_opts_init(&o);
	o.beta = beta;
	o.delta_ratio = 0;
	return o;
}

/* The start equals going round the sockets with a small unit. */
static void maxmin_start(void **state)
{
	const double unit = 1e-4;
	struct rng r = { 1 };
	double takes[5], rate[5], wrote[5], left;
	size_t i, n;
	int round;
	bool moved;

	(void)state;
	for (round = 0; round < 200; round++) {
		n = 1 + rng_below(&r, 5);
		for (i = 0; i < n; i++) {
			takes[i] = rng_below(&r, 4) > 0 ? rng_uniform(&r) : 0;
			wrote[i] = 0;
		}
		left = 2 * rng_uniform(&r);
		maxmin(rate, takes, n, left);
		do {
			moved = false;
			for (i = 0; i < n; i++)
				if (left >= unit && wrote[i] + unit <= takes[i]) {
					wrote[i] += unit;
					left -= unit;
					moved = true;
				}
		} while (moved);
		for (i = 0; i < n; i++)
			assert_true(fabs(rate[i] - wrote[i]) < 6 * unit);
	}
}

static void printed_steps(void **state)
{
	const double start[] = { 40, 30 };
	struct ratectl_opts o = exact(0.1);
	struct ratectl c;
	double seen[2];

	(void)state;
	ratectl_init(&c, &o, 2, 100, start);
	ratectl_step(&c, NULL, 0.4); /* path 0: 40 x 1.1 + 1 */
	assert_int_equal(c.probed, 0);
	assert_near(c.rate_bps[0], 45, 1e-12);
	assert_near(c.rate_bps[1], 30, 0);
	memcpy(seen, c.rate_bps, sizeof seen);
	ratectl_step(&c, seen, 0); /* all arrived: p 0.5 -> 1, of 1.5; beta x 1.1 */
	assert_int_equal(c.probed, 0);
	assert_near(c.chance[0], 2.0 / 3, 1e-12);
	assert_near(c.beta[0], 0.11, 1e-12);
	assert_near(c.rate_bps[0], 45 * 1.11 + 1, 1e-12);
	seen[0] = 45; /* not more than before: back, p / 2, beta / 2, the other path */
	ratectl_step(&c, seen, 0);
	assert_int_equal(c.probed, 1);
	assert_near(c.rate_bps[0], 45, 0);
	assert_near(c.chance[0], 0.5, 1e-12);
	assert_near(c.beta[0], 0.055, 1e-12);
	assert_near(c.rate_bps[1], 30 * 1.1 + 1, 1e-12);
}

/* A step that the demand caps scales the other path down, sets beta to what the
 * step was, and is taken back whole when it fails. */
static void capped_probe_is_restored(void **state)
{
	const double start[] = { 95, 5 };
	struct ratectl_opts o = exact(0.1);
	double seen[] = { 95, 0 };
	struct ratectl c;

	(void)state;
	ratectl_init(&c, &o, 2, 100, start);
	ratectl_step(&c, NULL, 0);
	assert_near(c.rate_bps[0], 100, 0);
	assert_near(c.rate_bps[1], 0, 0);
	assert_near(c.beta[0], 99.0 / 95 - 1, 1e-12);
	ratectl_step(&c, seen, 0);
	assert_near(c.kept_bps[0], 95, 0);
	assert_near(c.kept_bps[1], 5, 0);
}

static void tolerances(void **state)
{
	const double start[] = { 50, 10 };
	struct ratectl_opts o = exact(0);
	struct ratectl c;
	double seen[] = { 51 * (1 - 1e-12), 10 };

	(void)state;
	ratectl_init(&c, &o, 2, 100, start);
	ratectl_step(&c, NULL, 0);
	ratectl_step(&c, seen, 0); /* rounding is no failure */
	assert_near(c.kept_bps[0], 51, 0);
	o.delta_ratio = 0.03;
	ratectl_init(&c, &o, 2, 100, start);
	ratectl_step(&c, NULL, 0);
	seen[0] = 51 * 0.975; /* within delta */
	ratectl_step(&c, seen, 0);
	assert_near(c.kept_bps[0], 51, 0);
	ratectl_init(&c, &o, 2, 100, start);
	ratectl_step(&c, NULL, 0);
	seen[0] = 51 * 0.965;
	ratectl_step(&c, seen, 0);
	assert_near(c.kept_bps[0], 50, 0);
}

static void one_path(void **state)
{
	const double start[] = { 30 };
	struct ratectl_opts o = exact(0);
	struct rng r = { 1 };
	double seen[1], most = 0;
	struct ratectl c;
	int i;

	(void)state;
	ratectl_init(&c, &o, 1, 100, start);
	for (i = 0; i < 200; i++) {
		seen[0] = fmin(c.rate_bps[0], 50);
		ratectl_step(&c, seen, rng_uniform(&r));
		assert_int_equal(c.probed, 0);
		most = fmax(most, c.rate_bps[0]);
		if (i > 30)
			assert_true(seen[0] > 49 && seen[0] <= 50);
	}
	assert_true(most <= 51 + 1e-9);
}

static void invariants(void **state)
{
	struct rng r = { 3 };
	double start[RATECTL_PATHS_MAX], seen[RATECTL_PATHS_MAX];
	double kept[RATECTL_PATHS_MAX], sum, chance;
	struct ratectl_opts o = exact(0);
	struct ratectl c;
	size_t i, n;
	int round, step, before;
	bool failed;

	(void)state;
	for (round = 0; round < 300; round++) {
		n = 1 + rng_below(&r, RATECTL_PATHS_MAX);
		o.beta = rng_below(&r, 2) * 0.1;
		for (i = 0; i < n; i++)
			start[i] = rng_uniform(&r) * 3;
		ratectl_init(&c, &o, n, 1 + rng_uniform(&r) * 9, start);
		for (step = 0; step < 200; step++) {
			for (i = 0; i < n; i++)
				seen[i] = c.rate_bps[i] * (rng_below(&r, 2) ? 1 : rng_uniform(&r));
			before = c.probed;
			failed = before >= 0 && seen[before] < c.rate_bps[before] - 1e-6;
			memcpy(kept, c.kept_bps, sizeof kept);
			ratectl_step(&c, seen, rng_uniform(&r));
			if (failed && n > 1)
				assert_int_not_equal(c.probed, before);
			if (failed)
				assert_memory_equal(c.kept_bps, kept, n * sizeof *kept);
			for (sum = chance = 0, i = 0; i < n; i++) {
				assert_true(c.rate_bps[i] >= 0 && c.beta[i] >= 0);
				assert_true(c.chance[i] > 0.0005 / (double)n);
				sum += c.rate_bps[i];
				chance += c.chance[i];
			}
			assert_true(sum <= c.demand_bps * (1 + 1e-12));
			assert_near(chance, 1, 1e-12);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maxmin_start),
		cmocka_unit_test(printed_steps),
		cmocka_unit_test(capped_probe_is_restored),
		cmocka_unit_test(tolerances),
		cmocka_unit_test(one_path),
		cmocka_unit_test(invariants),
	};
	return cmocka_run_group_tests_name("model/ratectl", tests, NULL, NULL);
}
