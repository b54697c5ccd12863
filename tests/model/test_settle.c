/* When a flow counts as settled: a model of a flow whose rate is a function of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "model/settle.h"

#define STEP_S 0.005
#define MIN_RTT_S 0.04

enum sign { NONE, QUEUE, LOSS, IDLE, WINDOW };

/* The time until a flow settles whose rate follows rate(t), with a sign of a used path from `since` on. */
static double settles(double (*rate_bps)(double), enum sign sign, double since_s, double *found_bps)
{
	struct settle_flow f = { .rtt_s = MIN_RTT_S, .min_rtt_s = MIN_RTT_S };
	struct settle s = { .windows = 0 };
	double at, bytes = 0;

	for (at = STEP_S; at < 60; at += STEP_S) {
		bytes += rate_bps(at) / 8 * STEP_S;
		f.delivered_bytes = (uint64_t)bytes;
		f.known_s += 4 * STEP_S;
		f.busy_s += sign == IDLE && at >= since_s ? 0 : 4 * STEP_S;
		if (at >= since_s) {
			f.rtt_s = sign == QUEUE ? 1.3 * MIN_RTT_S : MIN_RTT_S;
			f.window_s += sign == WINDOW ? 3 * STEP_S : 0;
			f.retransmits += sign == LOSS;
		}
		if (settle_add(&s, &f, at)) {
			*found_bps = settle_rate_bps(&s);
			assert_true(fabs(settle_took_s(&s) - at) < 1e-9);
			return at;
		}
	}
	fail_msg("never settled");
	return 0;
}

static double constant(double at_s)
{
	(void)at_s;
	return 50e6;
}

/* Doubles each RTT up to the rate of the link. */
static double slow_start(double at_s)
{
	return fmin(50e6, 1e6 * exp2(at_s / MIN_RTT_S / 2));
}

/* Left slow start at half of the rate of the link, and grows as CUBIC does. */
static double too_early(double at_s)
{
	return fmin(50e6, 25e6 + 0.2e6 * at_s * at_s * at_s);
}

static double growing(double at_s)
{
	return 1e6 * at_s;
}

static double dead(double at_s)
{
	(void)at_s;
	return 0;
}

/* At the rate of the link, whatever the sign, and within a second. */
static void used_paths(void **state)
{
	static const enum sign signs[] = { QUEUE, LOSS, IDLE, WINDOW };
	double bps, at;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof signs / sizeof *signs; i++) {
		at = settles(slow_start, signs[i], 0.4, &bps);
		assert_true(at >= 0.6 && at < 1.5);
		assert_true(fabs(bps - 50e6) < 1e6);
		assert_true(settles(constant, signs[i], 0, &bps) < 1);
	}
}

/* Without a sign a constant rate may be that of a stream which grows slowly. */
static void unused_paths(void **state)
{
	double bps, at = settles(too_early, NONE, 0, &bps);

	(void)state;
	assert_true(at >= SETTLE_MAX_S && at < SETTLE_MAX_S + 1);
	assert_true(fabs(bps - 50e6) < 1e6);
	at = settles(too_early, QUEUE, 5, &bps); /* the link is full */
	assert_true(at >= 5 && at < 6);
	assert_true(fabs(bps - 50e6) < 2.5e6);
	assert_true(settles(constant, NONE, 0, &bps) >= SETTLE_MAX_S);
}

/* A rate that grows is not settled, losses or not; a flow without bytes neither. */
static void never_flat(void **state)
{
	double bps;

	(void)state;
	assert_true(settles(growing, LOSS, 0, &bps) >= 4);
	assert_true(settles(dead, LOSS, 0, &bps) >= SETTLE_MAX_S);
	assert_true(bps == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(used_paths),
		cmocka_unit_test(unused_paths),
		cmocka_unit_test(never_flat),
	};

	return cmocka_run_group_tests_name("model/settle", tests, NULL, NULL);
}
