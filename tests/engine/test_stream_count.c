/* Number of streams from observed throughput: what is sampled, when a sample counts, and where the number ends up on
 * simulated paths, also with the sender at the other end. model/stream_control has tests of its own. */
#include "engine/stream_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/units.h"

static struct {
	struct stream_count c;
	struct stream_control_opts o;
	struct stream_count_input in;
	struct mono now;
	unsigned decisions;
} fx;

static int setup(void **state)
{
	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	stream_control_opts_init(&fx.o);
	stream_count_init(&fx.c, &fx.o, fx.now);
	fx.in = (struct stream_count_input){ .sends = true, .times = { 0.1, 0.1, 0, 0 } };
	return 0;
}

static void sample(void)
{
	fx.now = stream_count_deadline(&fx.c);
	fx.decisions += stream_count_add(&fx.c, &fx.in, fx.now);
}

/* n streams deliver this much on a path with random loss and other traffic. */
static double rate_bps(unsigned n) { return 100e6 * n / (n + 4.0); }

static void pass(double seconds)
{
	struct mono end = mono_add_ns(fx.now, (uint64_t)(seconds * 1e9));

	while (fx.now.ns < end.ns) {
		fx.in.active_bytes = (uint64_t)(rate_bps(fx.c.model.streams) * 0.1 / 8);
		sample();
	}
}

/* ---- Sampling ---- */

static void samples_rates(void **state)
{
	(void)state;
	assert_int_equal(stream_count_deadline(&fx.c).ns, fx.now.ns + NS_PER_S / 10);
	fx.in.active_bytes = 1000000;
	sample();
	assert_true(fabs(fx.c.sample.rate_bps - 80e6) < 1);
	assert_true(fx.c.sample.steady && !fx.c.sample.starved && !fx.c.sample.host_limited);
	fx.now = mono_add_ns(fx.now, NS_PER_S / 2); /* late */
	stream_count_add(&fx.c, &fx.in, fx.now);
	assert_true(fabs(fx.c.sample.rate_bps - 16e6) < 1);
	assert_true(fabs(fx.c.sample.interval_s - 0.5) < 1e-6);
}

static void steady_samples(void **state)
{
	(void)state;
	fx.in.active_bytes = 1000000;
	fx.in.inactive_bytes = 20000; /* drained */
	sample();
	assert_true(fx.c.sample.steady);
	fx.in.inactive_bytes = 20001;
	sample();
	assert_false(fx.c.sample.steady);
	fx.in.inactive_bytes = 0;
	fx.in.unconnected = 1;
	sample();
	assert_int_equal(fx.c.sample.unconnected, 1);
}

/* What limits the sender's TCP connections for most of the recent time. */
static void limited_by(double busy_s, double window_s, double buffer_s)
{
	unsigned i;

	fx.in.times = (struct limit_times){ 0.1, busy_s, window_s, buffer_s };
	for (i = 0; i < 30; i++)
		sample();
}

static void starved_samples(void **state)
{
	(void)state;
	limited_by(0.1, 0, 0);
	assert_true(!fx.c.sample.starved && !fx.c.sample.host_limited); /* the network */
	limited_by(0.02, 0, 0);
	assert_true(fx.c.sample.starved && !fx.c.sample.host_limited); /* no data to send */
	limited_by(0.1, 0, 0.09);
	assert_true(!fx.c.sample.starved && fx.c.sample.host_limited); /* send buffers */
	limited_by(0.1, 0.09, 0);
	assert_true(!fx.c.sample.starved && fx.c.sample.host_limited); /* receive windows, */
	fx.in.disk_busy = true;
	sample();
	assert_true(fx.c.sample.starved); /* closed by a disk */
	limited_by(0.1, 0, 0);
	assert_false(fx.c.sample.starved); /* a busy disk that does not close windows */
	fx.in.disk_busy = false;
	fx.in.rate_limited = true;
	sample();
	assert_true(fx.c.sample.starved);
}

static void nothing_is_known_at_first(void **state)
{
	(void)state;
	fx.in.times = (struct limit_times){ 0, 0, 0, 0 };
	sample();
	assert_true(fx.c.sample.starved);
}

/* Recent times weigh more than earlier ones. */
static void earlier_times_decay(void **state)
{
	unsigned i;

	(void)state;
	limited_by(0.1, 0, 0);
	fx.in.times = (struct limit_times){ 0.1, 0.1, 0, 0.1 };
	for (i = 0; !fx.c.sample.host_limited; i++)
		sample();
	assert_in_range(i, 2, 6);
}

/* ---- The peer sends ---- */

static void reports_of_a_sending_peer(void **state)
{
	struct wire_tcp_report f = { 100000, 100000, 90000, 0, 0, { (const uint8_t *)"bbr", 3 }, 0, { 0 }, { 0 },
		{ 0 }, { 0 }, { 0 } };

	(void)state;
	fx.in.sends = false;
	stream_count_report(&fx.c, &f);
	sample();
	assert_true(fx.c.sample.host_limited);
	f.window_us = 0;
	stream_count_report(&fx.c, &f);
	sample();
	assert_true(!fx.c.sample.host_limited && !fx.c.sample.starved);
	fx.in.times = (struct limit_times){ 0.1, 0.1, 0.1, 0 }; /* those of this end are ignored */
	sample();
	assert_false(fx.c.sample.host_limited);
}

/* Evidence of the path is the same whichever end sends. */
static void reports_are_evidence(void **state)
{
	struct wire_tcp_report f = { .elapsed_us = 200000, .busy_us = 200000, .window_us = 40000, .m = 3,
		.rtt_us = { 60000, 0, 40000 },
		.min_rtt_us = { 30000, 0, 20000 }, .segments = { 100, 7, 50 }, .lost = { 3, 7, 2 },
		.events = { 1, 7, 1 } };
	const struct evidence_sample *k = &fx.c.sample.kernel;

	(void)state;
	fx.in.sends = false;
	fx.in.active_bytes = 1000000;
	stream_count_report(&fx.c, &f);
	sample();
	assert_true(fabs(k->rtt_s - 0.05) < 1e-9);
	assert_true(fabs(k->min_rtt_s - 0.02) < 1e-9);
	assert_true(k->sent_segments == 150 && k->lost_segments == 5 && k->loss_events == 2);
	assert_true(k->delivered_bytes == 1000000 && fabs(k->busy_s - 0.2) < 1e-9 && fabs(k->window_s - 0.04) < 1e-9);
	assert_true(fabs(k->interval_s - 0.1) < 0.01);
	sample(); /* no report since: the counters are used up, RTTs stay */
	assert_true(fabs(k->rtt_s - 0.05) < 1e-9);
	assert_true(k->sent_segments == 0 && k->loss_events == 0 && k->delivered_bytes == 1000000);
	pass(120);
	assert_true(fx.c.model.evidence.n > 0 && fx.c.model.evidence.base_rtt_s > 0);
}

static void congestion_control(void **state)
{
	(void)state;
	assert_false(stream_count_congestion(&fx.c, "", 0));
	assert_false(stream_count_congestion(&fx.c, "a name of more than 15 bytes", 28));
	assert_string_equal(fx.c.congestion, "");
	assert_true(stream_count_congestion(&fx.c, "cubic", 5));
	assert_false(stream_count_congestion(&fx.c, "cubic", 5));
	assert_int_equal(fx.c.model.o.congestion, advice_congestion_by_name("cubic"));
}

/* What CUBIC had on the path says nothing about BBR. */
static void another_congestion_control(void **state)
{
	(void)state;
	assert_true(stream_count_congestion(&fx.c, "cubic", 5));
	pass(120);
	assert_true(fx.c.model.advised && fx.c.model.answer > 0);
	assert_true(stream_count_congestion(&fx.c, "bbr", 3));
	assert_string_equal(fx.c.congestion, "bbr");
	assert_int_equal(fx.c.model.o.congestion, ADVICE_CC_BBR);
	assert_int_equal(fx.c.model.phase, STREAM_CONTROL_PROBING);
	assert_false(fx.c.model.advised);
	assert_int_equal(fx.c.model.profile.n, 0);
	assert_int_equal(fx.c.model.evidence.n, 0);
	pass(120);
	assert_true(fx.c.model.advised && fx.c.model.answer > 0);
}

/* ---- Deciding ---- */

static void settles_within_the_budget(void **state)
{
	unsigned n;

	(void)state;
	pass(120);
	assert_true(fx.decisions > 1);
	assert_true(fx.c.model.advised && fx.c.model.answer > 0);
	assert_true(fx.c.model.reason[0] != '\0');
	n = fx.c.model.answer;
	assert_in_range(n, 1, fx.o.max_streams - 1);
	pass(300);
	assert_true(fx.c.model.answer + 1 >= n && fx.c.model.answer <= n + 1);
}

/* Starved samples change nothing. */
/* A smaller budget takes streams away, and a larger one adds streams, without probing from scratch. */
static void another_budget(void **state)
{
	unsigned before, less;

	(void)state;
	pass(60);
	before = fx.c.share.streams;
	assert_true(before > 2);
	assert_false(stream_count_budget(&fx.c, fx.o.budget_ratio)); /* the same */
	stream_count_budget(&fx.c, 0.005);
	assert_true(fx.c.model.o.budget_ratio == 0.005);
	pass(60);
	less = fx.c.share.streams;
	assert_true(less < before);
	stream_count_budget(&fx.c, 0.5);
	pass(120);
	assert_true(fx.c.share.streams > less);
}

static double group_budget;
static void note_budget(void *arg, double ratio) { (void)arg, group_budget = ratio; }
static bool no_order(void *arg, struct stream_control *m, const struct stream_control_sample *x,
    struct stream_share *out)
{
	(void)arg, (void)m, (void)x, (void)out;
	return false;
}

/* The leader of a group decides. */
static void the_budget_of_a_group(void **state)
{
	(void)state;
	fx.c.group = (struct stream_count_group){ no_order, note_budget, NULL };
	assert_false(stream_count_budget(&fx.c, 0.02));
	assert_true(group_budget == 0.02 && fx.c.model.o.budget_ratio == fx.o.budget_ratio);
}

static void starved_sessions_keep_their_streams(void **state)
{
	unsigned n = fx.c.model.streams;

	(void)state;
	fx.in.rate_limited = true;
	pass(120);
	assert_int_equal(fx.decisions, 0);
	assert_int_equal(fx.c.model.streams, n);
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(samples_rates), test(steady_samples), test(starved_samples), test(nothing_is_known_at_first),
		test(earlier_times_decay), test(reports_of_a_sending_peer), test(reports_are_evidence),
		test(congestion_control), test(another_congestion_control),
		test(settles_within_the_budget), test(another_budget), test(the_budget_of_a_group),
		    test(starved_sessions_keep_their_streams),
	};

	return cmocka_run_group_tests_name("engine/stream_count", tests, NULL, NULL);
}
