/* Outages: which samples count, with those that deliver nothing before them. */
#include "model/near.h"
#include "model/outage.h"

#define STEP_S 0.1
#define RTT_S 0.055

static struct outage o;
static struct evidence_sample last; /* as outage_add() left it */

static int setup(void **state)
{
	(void)state;
	o = (struct outage){ 0 };
	return 0;
}

/* Seconds of samples with the same verdict. */
static void pass(double seconds, double rtt_s, bool silent, enum outage_verdict expected)
{
	double lost = silent ? 1 : 0;
	int i, n = (int)(seconds / STEP_S + 0.5);

	for (i = 0; i < n; i++) {
		last = (struct evidence_sample){ STEP_S, silent ? 0 : 1000, 2, lost, rtt_s, RTT_S, STEP_S, STEP_S / 2,
			lost };
		assert_int_equal(outage_add(&o, &last, silent), expected);
	}
}

static void a_short_silence_is_a_part_of_the_next_sample(void **state)
{
	(void)state;
	pass(1, RTT_S, false, OUTAGE_NONE);
	assert_near(last.interval_s, STEP_S, 1e-9);
	pass(0.9, RTT_S, true, OUTAGE_HELD);
	pass(0.1, RTT_S, false, OUTAGE_NONE);
	assert_near(last.interval_s, 1, 1e-9);
	assert_near(last.delivered_bytes, 1000, 1e-9);
	assert_near(last.sent_segments, 20, 1e-9);
	assert_near(last.lost_segments, 9, 1e-9);
	assert_near(last.loss_events, 9, 1e-9);
	assert_near(last.busy_s, 1, 1e-9);
	assert_near(last.window_s, 0.5, 1e-9);
	assert_near(last.rtt_s, RTT_S, 0);
	pass(0.1, RTT_S, false, OUTAGE_NONE);
	assert_near(last.interval_s, STEP_S, 1e-9);
	assert_near(last.lost_segments, 0, 0);
}

/* As long again for time-outs that have doubled, and slow start. */
static void an_outage_counts_for_nothing(void **state)
{
	(void)state;
	pass(1, RTT_S, true, OUTAGE_HELD);
	pass(4, RTT_S, true, OUTAGE_LASTS);
	pass(5.4, RTT_S, false, OUTAGE_LASTS);
	pass(0.2, RTT_S, false, OUTAGE_NONE);
	assert_near(last.interval_s, STEP_S, 1e-9); /* without the silence */
	assert_near(last.lost_segments, 0, 0);
}

static void silence_while_streams_recover(void **state)
{
	(void)state;
	pass(1, RTT_S, true, OUTAGE_HELD);
	pass(2, RTT_S, true, OUTAGE_LASTS);
	pass(1, RTT_S, false, OUTAGE_LASTS);
	pass(0.5, RTT_S, true, OUTAGE_LASTS);
	pass(2.4, RTT_S, false, OUTAGE_LASTS); /* of 3.44 s */
	pass(0.2, RTT_S, false, OUTAGE_NONE);
	pass(1, RTT_S, true, OUTAGE_HELD);
	pass(0.1, RTT_S, true, OUTAGE_LASTS); /* another outage */
}

/* Silence of some RTTs is usual on a long path. */
static void long_paths(void **state)
{
	(void)state;
	pass(4, 0.505, true, OUTAGE_HELD);
	pass(0.1, 0.505, false, OUTAGE_NONE);
	assert_near(last.interval_s, 4.1, 1e-9);
	pass(4, 0.505, true, OUTAGE_HELD);
	pass(0.1, 0.505, true, OUTAGE_LASTS);
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_short_silence_is_a_part_of_the_next_sample), test(an_outage_counts_for_nothing),
		test(silence_while_streams_recover), test(long_paths),
	};

	return cmocka_run_group_tests_name("model/outage", tests, NULL, NULL);
}
