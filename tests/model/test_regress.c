#include "model/near.h"
#include "model/regress.h"
#include "model/rng.h"

/* By hand: sizes 1, 2, 3, 4 MB, delays 1.1, 1.9, 3.2, 3.8 s: slope 0.94 s/MB,
 * intercept 0.15 s, residual squares 0.082, R^2 = 1 - 0.082 / 4.5. */
static void by_hand(void **state)
{
	const double size[] = { 1e6, 2e6, 3e6, 4e6 }, delay[] = { 1.1, 1.9, 3.2, 3.8 };
	struct regress r;

	(void)state;
	assert_int_equal(regress_delay(&r, size, delay, 4, NULL), 0);
	assert_int_equal(r.result, REGRESS_OK);
	assert_near(r.ebw_bps, 8e6 / 0.94, 1e-12);
	assert_near(r.d_min_s, 0.15, 1e-12);
	assert_near(r.slope_error_s, sqrt(0.082 / 2 / 5) / 1e6, 1e-9);
	assert_near(r.ebw_error_bps / r.ebw_bps, r.slope_error_s / r.slope_s, 1e-12);
	assert_near(r.d_min_error_s, sqrt(0.082 / 2 * (0.25 + 6.25 / 5)), 1e-9);
	assert_near(r.r2_ratio, 1 - 0.082 / 4.5, 1e-9);
}

/* The same: distances from the line 0.01, -0.13, 0.23 and -0.11 s, so spread 0.36 s; squares of sizes about
 * their mean 5 MB^2, of four. 0.36^2 ln 40 / (2 (0.1 * 0.94)^2 5/4) = 21.6. Through a delay of 0.15 s the slope is the
 * same, to a sum of squares of 30. */
static void needs_by_hand(void **state)
{
	const double size[] = { 1e6, 2e6, 3e6, 4e6 }, delay[] = { 1.1, 1.9, 3.2, 3.8 };
	struct regress r;

	(void)state;
	assert_int_equal(regress_delay(&r, size, delay, 4, NULL), 0);
	assert_near(r.spread_s, 0.36, 1e-9);
	assert_near(r.size_squares, 5e12, 1e-12);
	assert_near(regress_messages_bound(&r, 0.1, 0.05), 22, 1e-12);
	assert_near(regress_messages_bound(&r, 0.05, 0.05), 87, 1e-12);
	assert_near(regress_messages_bound(&r, 1, 0.05), 1, 1e-12);
	assert_int_equal(regress_through(&r, size, delay, 4, 0.15, NULL), 0);
	assert_near(r.slope_s, 0.94e-6, 1e-9);
	assert_near(r.size_squares, 30e12, 1e-12);
	assert_near(regress_messages_bound(&r, 0.1, 0.05), 4, 1e-12);
	assert_int_equal(regress_delay(&r, size, delay, 2, NULL), 0);
	assert_true(isnan(regress_messages_bound(&r, 0.1, 0.05)));
}

/* In how many of 2000 the slope of n is off by a fifth, with delays that are either of two, one rare. */
static unsigned often_off(struct rng *r, size_t n)
{
	double size[400], delay[400];
	unsigned off = 0, round;
	struct regress g;
	size_t i;

	for (round = 0; round < 2000; round++) {
		for (i = 0; i < n; i++) {
			size[i] = 1e6 / (1 << i % 4);
			delay[i] = 0.01 + size[i] / 1e6 + (rng_uniform(r) < 0.05 ? 0.3 : 0);
		}
		assert_int_equal(regress_delay(&g, size, delay, n, NULL), 0);
		off += fabs(g.slope_s * 1e6 - 1) >= 0.2;
	}
	return off;
}

/* As many as are said to be needed are off in no more of the cases than the risk, a small part of them in more. */
static void needs_are_enough(void **state)
{
	struct rng r = { 3 };
	double size[400], delay[400], n;
	struct regress g;
	unsigned i;

	(void)state;
	for (i = 0; i < 400; i++) {
		size[i] = 1e6 / (1 << i % 4);
		delay[i] = 0.01 + size[i] / 1e6 + (i % 20 == 0 ? 0.3 : 0);
	}
	assert_int_equal(regress_delay(&g, size, delay, 400, NULL), 0);
	n = regress_messages_bound(&g, 0.2, 0.05);
	assert_in_range((unsigned)n, 20, 400);
	assert_in_range(often_off(&r, (size_t)n), 0, 100);
	assert_in_range(often_off(&r, 4), 101, 2000);
}

/* Messages by equation 8 of Wu, Rao, Iyengar, for an excess squared error below e with probability 1 - d, delays in [0,
 * 1]:
 * 1 - 8 ((64 e0 / e) ln(64 e0 / e))^2 exp(-e^2 k / 512), e0 = 2.718.. */
static double equation_8(double error, double risk)
{
	double x = 64 * exp(1) / error;

	return 512 / (error * error) * log(8 * pow(x * log(x), 2) / risk);
}

/* Our bound speaks of the rate itself, and needs a small part of the messages, where the squared error of a delay, on
 * the scale of its range, is not even as small as a tenth. */
static void needs_replace_equation_8(void **state)
{
	struct rng r = { 4 };
	double size[64], delay[64], n;
	struct regress g;
	unsigned i;

	(void)state;
	assert_near(equation_8(0.5, 0.05) / 41600, 1, 0.01);
	assert_near(equation_8(0.1, 0.05) / 1.23e6, 1, 0.01);
	assert_near(equation_8(0.05, 0.05) / 5.2e6, 1, 0.01);
	for (i = 0; i < 64; i++) {
		size[i] = 1e6 / (1 << i % 4);
		delay[i] = 0.01 + size[i] / 1e6 * (0.9 + 0.2 * rng_uniform(&r)); /* an ordinary link */
	}
	assert_int_equal(regress_delay(&g, size, delay, 64, NULL), 0);
	n = regress_messages_bound(&g, 0.1, 0.05);
	assert_true(n >= 9 && n <= 260);
	assert_true(n < equation_8(0.5, 0.05) / 100);
}

/* Errors are what estimates of the same link really scatter by. */
static void errors_are_honest(void **state)
{
	struct rng r = { 1 };
	double size[20], delay[20], sum = 0, squares = 0, claimed = 0, slope;
	struct regress g;
	int round, i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		for (i = 0; i < 20; i++) {
			size[i] = 1e5 * (1 + i % 5);
			delay[i] = 0.5 + size[i] / 1e6 + 0.05 * (rng_uniform(&r) - 0.5);
		}
		assert_int_equal(regress_delay(&g, size, delay, 20, NULL), 0);
		slope = g.slope_s * 1e6;
		sum += slope / 2000;
		squares += slope * slope / 2000;
		claimed += g.slope_error_s * g.slope_error_s * 1e12 / 2000;
	}
	assert_near(sum, 1, 0.002);
	assert_near(sqrt(squares - sum * sum), sqrt(claimed), 0.1);
}

static void exact_lines(void **state)
{
	struct rng r = { 2 };
	double size[6], delay[6], ebw, d_min;
	struct regress g;
	int round, i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		ebw = pow(10, 5 + 5 * rng_uniform(&r));
		d_min = 0.001 + rng_uniform(&r);
		for (i = 0; i < 6; i++) {
			size[i] = ebw / 8 * (0.1 + i * rng_uniform(&r));
			delay[i] = 8 * size[i] / ebw + d_min;
		}
		assert_int_equal(regress_delay(&g, size, delay, 6, NULL), 0);
		assert_int_equal(g.result, REGRESS_OK);
		assert_near(g.ebw_bps, ebw, 1e-9);
		assert_near(g.d_min_s, d_min, 1e-9);
		assert_near(g.r2_ratio, 1, 1e-12);
	}
}

static void named_results(void **state)
{
	const double size[] = { 1e6, 2e6, 3e6 }, one[] = { 1e6, 1e6, 1e6 };
	const double rising[] = { 0.5, 1.5, 2.5 }, falling[] = { 3, 2, 1 };
	const double level[] = { 2, 2, 2 };
	struct regress r;

	(void)state;
	assert_int_equal(regress_delay(&r, one, rising, 3, NULL), 0);
	assert_int_equal(r.result, REGRESS_ONE_SIZE);
	assert_true(isnan(r.ebw_bps) && isnan(r.d_min_s));
	assert_int_equal(regress_delay(&r, size, rising, 1, NULL), 0);
	assert_int_equal(r.result, REGRESS_ONE_SIZE);
	assert_int_equal(regress_delay(&r, size, rising, 0, NULL), 0);
	assert_int_equal(r.result, REGRESS_ONE_SIZE);
	assert_string_equal(regress_result_name(r.result), "one-size");

	assert_int_equal(regress_delay(&r, size, falling, 3, NULL), 0);
	assert_int_equal(r.result, REGRESS_NO_SLOPE);
	assert_true(isnan(r.ebw_bps) && r.slope_s < 0);
	assert_int_equal(regress_delay(&r, size, level, 3, NULL), 0);
	assert_int_equal(r.result, REGRESS_NO_SLOPE);
	assert_true(isnan(r.r2_ratio));

	assert_int_equal(regress_delay(&r, size, rising, 2, NULL), 0);
	assert_int_equal(r.result, REGRESS_NO_INTERCEPT); /* -0.5 s */
	assert_near(r.ebw_bps, 8e6, 1e-12);
	assert_near(r.d_min_s, -0.5, 1e-12);
	assert_true(isnan(r.ebw_error_bps)); /* two points, two coefficients */

	assert_int_equal(regress_through(&r, size, rising, 3, 0.1, NULL), 0);
	assert_int_equal(r.result, REGRESS_OK);
	assert_near(r.d_min_s, 0.1, 0);
	/* sum s (d - 0.1) / sum s^2 = (0.4 + 2.8 + 7.2) / 14 */
	assert_near(r.ebw_bps, 8e6 / (10.4 / 14), 1e-12);
	assert_near(r.slope_error_s, sqrt((7.88 - 10.4 * 10.4 / 14) / 2 / 14) / 1e6, 1e-9);
	assert_true(isnan(r.d_min_error_s));
	assert_int_equal(regress_through(&r, one, level, 3, 0.1, NULL), 0);
	assert_near(r.ebw_bps, 8e6 / 1.9, 1e-12);
	assert_int_equal(regress_through(&r, one, level, 3, 5, NULL), 0);
	assert_int_equal(r.result, REGRESS_NO_SLOPE);
}

static void what_is_no_measurement(void **state)
{
	static const double bad[] = { -1, NAN, INFINITY };
	double size[] = { 1, 2, 3 }, delay[] = { 1, 2, 3 };
	struct ptcp_err e;
	struct regress r;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		delay[1] = bad[i];
		assert_int_equal(regress_delay(&r, size, delay, 3, &e), PTCP_EUSAGE);
		assert_int_equal(regress_through(&r, size, delay, 3, 0, &e), PTCP_EUSAGE);
		delay[1] = 2;
		size[2] = bad[i];
		assert_int_equal(regress_delay(&r, size, delay, 3, &e), PTCP_EUSAGE);
		size[2] = 3;
		assert_int_equal(regress_through(&r, size, delay, 3, bad[i], &e), PTCP_EUSAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(needs_by_hand),
		cmocka_unit_test(needs_are_enough),
		cmocka_unit_test(needs_replace_equation_8),
		cmocka_unit_test(errors_are_honest),
		cmocka_unit_test(exact_lines),
		cmocka_unit_test(named_results),
		cmocka_unit_test(what_is_no_measurement),
	};
	return cmocka_run_group_tests_name("model/regress", tests, NULL, NULL);
}
