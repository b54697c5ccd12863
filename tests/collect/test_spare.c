/* What a plan leaves free is used, and no limit is passed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collect/spare.h"
#include "model/rng.h"

#define FLOWS 12
#define LIMITS 8

static double left[LIMITS], load[LIMITS];

static void near_to(double a, double b)
{
	if (!(fabs(a - b) <= 1e-6 * fmax(fabs(b), 1)))
		fail_msg("%.10g instead of %.10g", a, b);
}

/* Two share limit 0, of which 4 are left; the second cannot use more than 1 of them. */
static void what_is_free_is_shared(void **state)
{
	static const size_t a[] = { 0, 1 }, b[] = { 0, 2 };
	static const double limit[] = { 10, INFINITY, 4 };
	struct spare_flow f[] = { { a, 2, 3, false }, { b, 2, 3, false } };

	(void)state;
	spare_flows(f, 2, limit, 3, left, load);
	near_to(f[1].bps, 4);
	near_to(f[0].bps, 6);
}

/* What is full stays, what has nothing gets nothing, and without any limit there is an end, too. */
static void some_do_not_grow(void **state)
{
	static const size_t full[] = { 0 }, none[] = { 1 }, more[] = { 2 };
	static const double limit[] = { 5, 5, INFINITY };
	struct spare_flow f[] = { { full, 1, 5, false }, { none, 1, 0, false }, { more, 1, 2, false } };

	(void)state;
	spare_flows(f, 3, limit, 3, left, load);
	near_to(f[0].bps, 5);
	near_to(f[1].bps, 0);
	near_to(f[2].bps, 2 * SPARE_MAX);
}

/* A plan whose hops carry different things at one time may seem too much: it is left as it is. */
static void what_is_over_full_stays(void **state)
{
	static const size_t way[] = { 0 };
	static const double limit[] = { 5 };
	struct spare_flow f[] = { { way, 1, 4, false }, { way, 1, 4, false } };

	(void)state;
	spare_flows(f, 2, limit, 1, left, load);
	near_to(f[0].bps, 4);
	near_to(f[1].bps, 4);
}

/* Any flows that fit: none gets less, no limit is passed, and each that had something meets one that is used up or has
 * the most there is to get. */
static void it_is_maximal(void **state)
{
	struct spare_flow f[FLOWS];
	size_t way[FLOWS][3], i, k, round;
	double limit[LIMITS], was[FLOWS], sum[LIMITS];
	struct rng r = { 7 };
	int full;

	(void)state;
	for (round = 0; round < 2000; round++) {
		for (k = 0; k < LIMITS; k++)
			limit[k] = 1 + (double)(rng_next(&r) % 1000);
		for (i = 0; i < FLOWS; i++) {
			for (k = 0; k < 3; k++)
				way[i][k] = (rng_next(&r) % 4 + (k < 2 ? 4 * k : 0)) % LIMITS;
			if (way[i][2] == way[i][0])
				way[i][2] = way[i][0] ^ 1;
			was[i] = rng_next(&r) % 4 == 0 ? 0 : (double)(rng_next(&r) % 1000) / 1000 / FLOWS;
			f[i] = (struct spare_flow){ way[i], 3, was[i], false };
		}
		spare_flows(f, FLOWS, limit, LIMITS, left, load);
		for (k = 0; k < LIMITS; k++)
			sum[k] = 0;
		for (i = 0; i < FLOWS; i++)
			for (k = 0; k < 3; k++)
				sum[way[i][k]] += f[i].bps;
		for (k = 0; k < LIMITS; k++)
			assert_true(sum[k] <= limit[k] * (1 + 1e-9));
		for (i = 0; i < FLOWS; i++) {
			assert_true(f[i].bps >= was[i]);
			for (full = was[i] == 0 || f[i].bps >= was[i] * SPARE_MAX * (1 - 1e-9), k = 0; k < 3; k++)
				full = full || sum[way[i][k]] >= limit[way[i][k]] * (1 - 2e-6);
			assert_true(full);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_free_is_shared),
		cmocka_unit_test(some_do_not_grow),
		cmocka_unit_test(what_is_over_full_stays),
		cmocka_unit_test(it_is_maximal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
