#include "draw.h"
#include "model/divide.h"
#include "model/near.h"

/* The paper's equation for the first of two paths. */
static double naive_first(const struct divide_part *p, double bits)
{
	double both = p[0].rate_bps + p[1].rate_bps;

	return p[0].rate_bps * bits / both +
	    p[0].rate_bps * p[1].rate_bps * (p[1].delay_s - p[0].delay_s) / both;
}

static void worked_example(void **state)
{
	/* 100 MB, 80 and 20 Mbit/s, 0.1 and 1.1 s: T = (800 + 8 + 22) / 100. */
	struct divide_part p[] = { { 80e6, 0.1, 0 }, { 20e6, 1.1, 0 } };
	size_t order[2];
	double finish;

	(void)state;
	assert_int_equal(divide_bytes(p, order, 2, 100000000, &finish, NULL), 0);
	assert_near(finish, 8.3, 1e-12);
	assert_int_equal(p[0].bytes, 82000000);
	assert_int_equal(p[1].bytes, 18000000);
	assert_near(naive_first(p, 800e6), 8.0 * 82e6, 1e-12);
	p[1].delay_s = 12; /* ends later than the first path alone: 10.1 s */
	assert_int_equal(divide_bytes(p, order, 2, 100000000, &finish, NULL), 0);
	assert_near(finish, 10.1, 1e-12);
	assert_int_equal(p[0].bytes, 100000000);
	assert_int_equal(p[1].bytes, 0);
}

/* Best finish over all sets of paths for which no part is negative. */
static double enumerate(const struct divide_part *p, size_t n, double bits)
{
	double best = INFINITY, rate, delayed, latest, finish;
	unsigned set;
	size_t i;

	for (set = 1; set < 1u << n; set++) {
		rate = delayed = latest = 0;
		for (i = 0; i < n; i++)
			if (set >> i & 1) {
				rate += p[i].rate_bps;
				delayed += p[i].rate_bps * p[i].delay_s;
				latest = fmax(latest, p[i].delay_s);
			}
		finish = (bits + delayed) / rate;
		if (finish >= latest)
			best = fmin(best, finish);
	}
	return best;
}

static void equals_enumeration(void **state)
{
	struct rng r = { 1 };
	struct divide_part p[8];
	size_t order[8], i, n;
	uint64_t size, sum;
	double finish;
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		n = 1 + rng_below(&r, 8);
		size = (uint64_t)pow(10, 3 + 7 * rng_uniform(&r));
		for (i = 0; i < n; i++)
			p[i] = (struct divide_part){ 1e6 * pow(10, 3 * rng_uniform(&r)),
			    0.001 * pow(10, 3 * rng_uniform(&r)), 7 };
		assert_int_equal(divide_bytes(p, order, n, size, &finish, NULL), 0);
		assert_near(finish, enumerate(p, n, 8 * (double)size), 1e-12);
		for (sum = 0, i = 0; i < n; i++) {
			sum += p[i].bytes;
			if (p[i].bytes > 0) /* nobody ends more than a byte late */
				assert_true((double)(p[i].bytes - 1) * 8 / p[i].rate_bps +
				    p[i].delay_s <= finish * (1 + 1e-12));
		}
		assert_int_equal(sum, size);
	}
}

/* The equations as printed give a negative part to one of two paths in about a
 * quarter of the cases (1 Mbit/s to 1 Gbit/s, 1 to 100 ms, 1 kB to 10 GB). */
static void printed_equations_go_negative(void **state)
{
	struct rng r = { 2 };
	struct divide_part p[2];
	int round, negative = 0;
	double bits, first;

	(void)state;
	for (round = 0; round < 20000; round++) {
		int i;

		for (i = 0; i < 2; i++)
			p[i] = (struct divide_part){ 1e6 * pow(10, 3 * rng_uniform(&r)),
			    0.001 * pow(10, 2 * rng_uniform(&r)), 0 };
		bits = 8 * pow(10, 3 + 7 * rng_uniform(&r));
		first = naive_first(p, bits);
		negative += first < 0 || first > bits;
	}
	print_message("# negative parts in %.1f %% of cases\n", negative / 200.0);
	assert_in_range(negative, 4000, 6000);
}

static void whole_bytes(void **state)
{
	struct divide_part p[] = { { 1e6, 0, 0 }, { 1e6, 0, 0 }, { 1e6, 0, 0 } };
	struct divide_part dead[] = { { 0, 0, 9 }, { 5, 1, 9 } };
	size_t order[3];
	double finish;

	(void)state;
	assert_int_equal(divide_bytes(p, order, 3, 10, &finish, NULL), 0);
	assert_int_equal(p[0].bytes + p[1].bytes + p[2].bytes, 10);
	assert_true(p[0].bytes >= 3 && p[1].bytes >= 3 && p[2].bytes >= 3);
	assert_int_equal(divide_bytes(p, order, 3, 0, &finish, NULL), 0);
	assert_near(finish, 0, 0);
	assert_int_equal(divide_bytes(p, order, 3, 1, &finish, NULL), 0);
	assert_int_equal(p[0].bytes + p[1].bytes + p[2].bytes, 1);
	assert_int_equal(divide_bytes(p, order, 3, UINT64_MAX, &finish, NULL), 0);
	assert_true(p[0].bytes + p[1].bytes + p[2].bytes == UINT64_MAX);
	assert_near((double)p[1].bytes, 0x1p64 / 3, 1e-9);
	assert_int_equal(divide_bytes(dead, order, 2, 100, &finish, NULL), 0);
	assert_int_equal(dead[0].bytes, 0);
	assert_int_equal(dead[1].bytes, 100);
}

static void what_is_no_path(void **state)
{
	struct divide_part p[] = { { 1e6, 0, 0 }, { 0, 0, 0 } };
	size_t order[2];
	double finish = 77;

	(void)state;
	assert_int_equal(divide_bytes(p + 1, order, 1, 10, &finish, NULL), PTCP_EINFEASIBLE);
	assert_int_equal(divide_bytes(p, order, 0, 10, &finish, NULL), PTCP_EINFEASIBLE);
	p[1].rate_bps = -1;
	assert_int_equal(divide_bytes(p, order, 2, 10, &finish, NULL), PTCP_EUSAGE);
	p[1].rate_bps = NAN;
	assert_int_equal(divide_bytes(p, order, 2, 10, &finish, NULL), PTCP_EUSAGE);
	p[1] = (struct divide_part){ 1, INFINITY, 0 };
	assert_int_equal(divide_bytes(p, order, 2, 10, &finish, NULL), PTCP_EUSAGE);
	assert_near(finish, 77, 0);
}

/* ---- Measurements ---- */

static void in_proportion(void **state)
{
	const double sd[] = { 1, 2, 3, 4 }, thirds[] = { 1, 1, 1 };
	unsigned n[4];
	double scratch[4];

	(void)state;
	divide_measurements(n, sd, scratch, 4, 100, 0);
	assert_int_equal(n[0], 10);
	assert_int_equal(n[1], 20);
	assert_int_equal(n[2], 30);
	assert_int_equal(n[3], 40);
	divide_measurements(n, sd, scratch, 4, 108, 2);
	assert_int_equal(n[0], 12);
	assert_int_equal(n[3], 42);
	divide_measurements(n, thirds, scratch, 3, 10, 0);
	assert_int_equal(n[0] + n[1] + n[2], 10);
	assert_true(n[0] >= 3 && n[1] >= 3 && n[2] >= 3);
	divide_measurements(n, thirds, scratch, 3, 2, 5); /* the minimum, as far as it goes */
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1] + n[2], 0);
	divide_measurements(n, thirds, scratch, 0, 10, 1);
}

static void unknown_errors(void **state)
{
	const double sd[] = { NAN, 1, 3, INFINITY, -1 }, zero[] = { 0, 0, 0 };
	unsigned n[5];
	double scratch[5];

	(void)state;
	divide_measurements(n, sd, scratch, 5, 130, 0);
	assert_int_equal(n[0], 30);
	assert_int_equal(n[1], 10);
	assert_int_equal(n[2], 30);
	assert_int_equal(n[3], 30);
	assert_int_equal(n[4], 30);
	divide_measurements(n, zero, scratch, 3, 9, 0);
	assert_int_equal(n[0], 3);
	assert_int_equal(n[2], 3);
}

static double variance(const unsigned *n, const double *sd, size_t links)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < links; i++)
		sum += sd[i] * sd[i] / n[i];
	return sum;
}

/* Sums to the total, and no even split does better. */
static void sums_and_beats_even(void **state)
{
	struct rng r = { 1 };
	unsigned n[12], even[12], sum;
	double sd[12], scratch[12];
	size_t i, links;
	int round;

	(void)state;
	for (round = 0; round < 5000; round++) {
		links = 1 + rng_below(&r, 12);
		for (i = 0; i < links; i++)
			sd[i] = pow(10, 4 * rng_uniform(&r));
		divide_measurements(n, sd, scratch, links, rng_below(&r, 3000), 0);
		divide_measurements(n, sd, scratch, links, (unsigned)links * 1000, 1);
		for (sum = 0, i = 0; i < links; i++) {
			sum += n[i];
			even[i] = 1000;
			assert_true(n[i] >= 1);
		}
		assert_int_equal(sum, links * 1000);
		assert_true(variance(n, sd, links) <= variance(even, sd, links) * 1.001);
	}
	for (round = 0; round < 5000; round++) {
		unsigned total = rng_below(&r, 100);

		links = 1 + rng_below(&r, 12);
		for (i = 0; i < links; i++)
			sd[i] = rng_uniform(&r);
		divide_measurements(n, sd, scratch, links, total, rng_below(&r, 4));
		for (sum = 0, i = 0; i < links; i++)
			sum += n[i];
		assert_int_equal(sum, total);
	}
}

/* ---- Capacity ---- */

#define FLOWS 12
#define LIMITS 8
#define RAISE_MAX 1e9

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
	struct divide_flow f[] = { { a, 2, 3, 0, false }, { b, 2, 3, 0, false } };

	(void)state;
	divide_fairly(f, 2, limit, 3, 1, RAISE_MAX, left, load);
	near_to(f[1].rate, 4);
	near_to(f[0].rate, 6);
}

/* What is full stays, what has nothing gets nothing, and without any limit there is an end, too. */
static void some_do_not_grow(void **state)
{
	static const size_t full[] = { 0 }, none[] = { 1 }, more[] = { 2 };
	static const double limit[] = { 5, 5, INFINITY };
	struct divide_flow f[] = { { full, 1, 5, 0, false }, { none, 1, 0, 0, false }, { more, 1, 2, 0, false } };

	(void)state;
	divide_fairly(f, 3, limit, 3, 1, RAISE_MAX, left, load);
	near_to(f[0].rate, 5);
	near_to(f[1].rate, 0);
	near_to(f[2].rate, 2 * RAISE_MAX);
}

/* A plan whose hops carry different things at one time may seem too much: it is left as it is. */
static void what_is_over_full_stays(void **state)
{
	static const size_t way[] = { 0 };
	static const double limit[] = { 5 };
	struct divide_flow f[] = { { way, 1, 4, 0, false }, { way, 1, 4, 0, false } };

	(void)state;
	divide_fairly(f, 2, limit, 1, 1, RAISE_MAX, left, load);
	near_to(f[0].rate, 4);
	near_to(f[1].rate, 4);
}

/* Any flows that fit: none gets less, no limit is passed, and each that had something meets one that is used up or has
 * the most there is to get. */
static void it_is_maximal(void **state)
{
	struct divide_flow f[FLOWS];
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
			f[i] = (struct divide_flow){ way[i], 3, was[i], 0, false };
		}
		divide_fairly(f, FLOWS, limit, LIMITS, 1, RAISE_MAX, left, load);
		for (k = 0; k < LIMITS; k++)
			sum[k] = 0;
		for (i = 0; i < FLOWS; i++)
			for (k = 0; k < 3; k++)
				sum[way[i][k]] += f[i].rate;
		for (k = 0; k < LIMITS; k++)
			assert_true(sum[k] <= limit[k] * (1 + 1e-9));
		for (i = 0; i < FLOWS; i++) {
			assert_true(f[i].rate >= was[i]);
			for (full = was[i] == 0 || f[i].rate >= was[i] * RAISE_MAX * (1 - 1e-9), k = 0; k < 3; k++)
				full = full || sum[way[i][k]] >= limit[way[i][k]] * (1 - 2e-6);
			assert_true(full);
		}
	}
}

/* From nothing, without an end: one bottleneck is shared equally, and its rest goes to the flow with room elsewhere. */
static void max_min_fair(void **state)
{
	static const size_t both[] = { 0, 1 }, one[] = { 0 }, twice[] = { 1, 1 };
	static const double limit[] = { 10, 3 };
	struct divide_flow f[] = { { both, 2, 1, 0, false }, { one, 1, 1, 0, false }, { twice, 2, 1, 0, false } };

	(void)state;
	divide_fairly(f, 3, limit, 2, 0, INFINITY, left, load);
	near_to(f[0].rate, 1);
	near_to(f[1].rate, 9);
	near_to(f[2].rate, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_example),
		cmocka_unit_test(equals_enumeration),
		cmocka_unit_test(printed_equations_go_negative),
		cmocka_unit_test(whole_bytes),
		cmocka_unit_test(what_is_no_path),
		cmocka_unit_test(in_proportion),
		cmocka_unit_test(unknown_errors),
		cmocka_unit_test(sums_and_beats_even),
		cmocka_unit_test(what_is_free_is_shared),
		cmocka_unit_test(some_do_not_grow),
		cmocka_unit_test(what_is_over_full_stays),
		cmocka_unit_test(it_is_maximal),
		cmocka_unit_test(max_min_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
