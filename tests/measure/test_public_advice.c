/* Advice for callers of libptcp, from the evidence of live probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "measure/prober.h"

/* A path of 30 Mbit/s and 86 ms with random loss, on which no other flows are seen: recorded. Whether an answer
 * supposes a flow that cannot be seen decides between seven streams and nine. */
static void leaves_room_for_an_unseen_flow(void **state)
{
	const struct evidence e = { .level = {
		{ .probe = { 1, 4.01e6, 4.2e5 }, .lag_ratio = 0.2, .rtt_s = 0.0885, .low_rtt_s = 0.0873,
		    .loss_ratio = 1.8e-3, .segments = 6676, .time_s = 29.9, .loss_events = 12, .segment_bytes = 1445 },
		{ .probe = { 4, 15.36e6, 8.8e5 }, .lag_ratio = 0.126, .rtt_s = 0.0884, .low_rtt_s = 0.0877,
		    .loss_ratio = 2.1e-3, .segments = 14200, .time_s = 14.8, .loss_events = 28, .segment_bytes = 1454 },
		{ .probe = { 15, 27.36e6, 1.3e5 }, .lag_ratio = 0.1, .rtt_s = 0.1645, .low_rtt_s = 0.1606,
		    .loss_ratio = 1.86e-3, .segments = 8076, .time_s = 5, .loss_events = 15, .segment_bytes = 1436 } },
		.n = 3, .base_rtt_s = 0.086, .peak_rtt_s = 0.1853, .idle_rtt_s = 0.0865, .burst_bps = 27.9e6 };
	struct ptcp_probe p[3];
	struct ptcp_advice_opts o;
	struct ptcp_advice a;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		p[i] = (struct ptcp_probe){ e.level[i].probe.streams, e.level[i].probe.throughput_bps, NAN };
	ptcp_advice_opts_init(&o);
	o.congestion = "cubic";
	ptcp_advice_init(&a);
	assert_int_equal(advice_of_probes(&a, p, 3, &e, &o, NULL), 0);
	assert_int_equal(a.others, PTCP_OTHERS_UNKNOWN);
	assert_int_equal(a.limited_by, PTCP_LIMITED_BY_IMPACT);
	assert_in_range(a.streams, 4, 7);
	assert_true(a.impact_high_percent >= 10 && a.impact_total_percent >= a.impact_percent);
}

/* Loopback, whose hosts limit: measured. The path of 5.67 Gbit/s with 32 streams, and competing flows, do not exist. */
static void hosts_show_no_impact(void **state)
{
	const struct ptcp_probe p[] = { { 1, 518e6, NAN }, { 2, 1120e6, NAN }, { 4, 1370e6, NAN },
		{ 15, 1550e6, 20e6 } };
	struct ptcp_advice_point at;
	struct ptcp_advice_opts o;
	struct ptcp_advice a;
	size_t i, n;

	(void)state;
	for (n = 2; n <= 4; n++) {
		ptcp_advice_opts_init(&o);
		ptcp_advice_init(&a);
		assert_int_equal(advice_of_probes(&a, p, n, NULL, &o, NULL), 0);
		a.limit = PTCP_LIMIT_RECEIVE_WINDOW;
		a.limit_advice = "raise";
		advice_of_hosts(&a);
		assert_int_equal(a.max_streams, p[n - 1].streams);
		assert_true(a.streams <= a.max_streams && a.throughput_bps <= p[n - 1].throughput_bps);
		assert_true(a.throughput_bps >= 0.93 * p[n - 1].throughput_bps);
		assert_true(a.throughput_low_bps < a.throughput_bps && a.throughput_bps < a.throughput_high_bps);
		assert_true(isnan(a.impact_percent) && isnan(a.impact_total_percent));
		assert_true(!a.confident && a.next_probe == 0 && a.others == PTCP_OTHERS_UNKNOWN);
		for (i = 0; i < n; i++) {
			ptcp_advice_at(&a, p[i].streams, &at);
			assert_true(at.throughput_bps == p[i].throughput_bps && isnan(at.impact_percent));
		}
		ptcp_advice_at(&a, 128, &at);
		assert_true(at.throughput_bps == p[n - 1].throughput_bps && isnan(at.impact_percent));
		for (i = 0; i < PTCP_CHOICES; i++)
			assert_int_equal(a.choices[i].streams, a.streams);
	}
	assert_in_range(a.streams, 5, 12); /* 93 % of 1550 lies between 4 and 15 */
	o.max_streams = 3; /* less than measured */
	assert_int_equal(advice_of_probes(&a, p, 4, NULL, &o, NULL), 0);
	a.limit_advice = "raise";
	advice_of_hosts(&a);
	assert_int_equal(a.streams, 3);
	assert_true(a.throughput_bps == (1120e6 + 1370e6) / 2);
	o.max_streams = 32;
	assert_int_equal(advice_of_probes(&a, p + 2, 2, NULL, &o, NULL), 0);
	a.limit_advice = "raise";
	advice_of_hosts(&a);
	ptcp_advice_at(&a, 1, &at); /* fewer than measured */
	assert_true(at.throughput_bps == 1370e6 / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(leaves_room_for_an_unseen_flow),
		cmocka_unit_test(hosts_show_no_impact) };

	return cmocka_run_group_tests_name("measure/public_advice", tests, NULL, NULL);
}
