/* Who else is on a path, from what the kernel reports of our streams: paths of 100 Mbit/s and 58 ms as laboratories
 * have them (96 Mbit/s of payload), one test for each kind. */
#include "model/near.h"

#include <string.h>

#include "model/advice.h"
#include "model/evidence.h"

#define MBIT 1e6

static struct evidence_level level(unsigned streams, double mbps, double rtt_ms, double low_ms, double loss_ratio)
{
	return (struct evidence_level){ .probe = { streams, mbps * MBIT, 0.03 * mbps * MBIT }, .lag_ratio = 0.12,
		.rtt_s = rtt_ms / 1e3,
		.low_rtt_s = low_ms / 1e3, .loss_ratio = loss_ratio, .segments = 20000,
		.window_ratio = 0, .time_s = 10 };
}

static struct evidence path(struct evidence_level four, struct evidence_level fifteen, double peak_ms, double idle_ms,
    double burst_mbps)
{
	return (struct evidence){ .level = { four, fifteen }, .n = 2, .base_rtt_s = 0.058, .peak_rtt_s = peak_ms / 1e3,
		.idle_rtt_s = idle_ms / 1e3, .burst_bps = burst_mbps * MBIT };
}

/* Competing flows would be seen if they filled the queue; flows that are limited like our streams would not, since the
 * link is not full. */
static void expect_no_verdict(const struct advice *a)
{
	assert_true(a->seems_idle);
	assert_int_equal(a->others, ADVICE_OTHERS_UNKNOWN);
}

static struct advice judge_with(const struct evidence *e, double budget_ratio, enum advice_congestion congestion)
{
	struct advice_opts o;
	struct advice a;

	advice_opts_init(&o);
	o.budget_ratio = budget_ratio;
	o.congestion = congestion;
	assert_int_equal(advice_from_evidence(&a, e, &o, NULL), 0);
	assert_true(a.throughput_low_bps <= a.throughput_bps && a.throughput_bps <= a.throughput_high_bps);
	assert_true(a.impact_low_ratio <= a.impact_high_ratio);
	return a;
}

static struct advice judge(const struct evidence *e, double budget_ratio)
{
	return judge_with(e, budget_ratio, ADVICE_CC_CUBIC);
}

/* A queue of one bandwidth-delay product on an idle path: any number of streams fills the link. */
static void nobody_behind_a_deep_queue(void **state)
{
	struct evidence e = path(level(4, 96, 100, 75, 3e-4), level(15, 96, 108, 80, 2e-3), 116, 58, 96.5);
	struct advice a = judge(&e, 0.1);

	(void)state;
	assert_int_equal(a.others, ADVICE_OTHERS_NONE);
	assert_in_range(a.streams, 1, 3);
	assert_near(a.throughput_bps, 96 * MBIT, 0.03);
	assert_near(a.impact_high_ratio, 0, 0);
}

/* 25 packets of queue: 4 and 15 streams alone have the curve of 4 and 15 beside others, but the queue is empty. */
static void nobody_behind_a_short_queue(void **state)
{
	struct evidence e = path(level(4, 53, 58.6, 58.1, 2.6e-3), level(15, 79, 59.2, 58.2, 6e-3), 60.8, 58.1, 94);
	struct advice a = judge(&e, 0.1);

	(void)state;
	expect_no_verdict(&a);
	assert_true(a.streams > 8); /* by gain */
	assert_true(a.throughput_bps > 65 * MBIT);
}

/* Random loss: the rate is proportional to the number, the loss constant, the RTT at its minimum. */
static void nobody_but_random_loss(void **state)
{
	struct evidence e = path(level(4, 22, 58.3, 58, 1e-3), level(15, 74, 60, 58.2, 1.05e-3), 66, 58, 80);
	struct advice a = judge(&e, 0.1);
	struct advice_opts o;
	struct advice_point p;

	(void)state;
	expect_no_verdict(&a);
	assert_true(a.streams >= 20);
	advice_at(&a, 1, &p);
	assert_near(p.throughput_bps, 5.5 * MBIT, 0.15);
	advice_at(&a, 32, &p);
	assert_true(p.throughput_high_bps > 90 * MBIT);
	assert_null(a.congestion_advice); /* more streams may fill the link, and show competing flows */
	advice_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	o.max_streams = 16;
	assert_int_equal(advice_from_evidence(&a, &e, &o, NULL), 0);
	assert_string_equal(a.congestion_advice, "bbr");
}

/* A path of 30 Mbit/s and 86 ms, with 0.17 % random loss, which limits the one other flow, too: recorded. Its goodput
 * is
 * 3.9 Mbit/s beside one stream, 3.4 beside 8, 1.6 beside 16. */
static struct evidence few_that_losses_limit(void)
{
	struct evidence e = { .level = { level(1, 4.01, 88.5, 87.3, 1.8e-3), level(4, 15.36, 88.4, 87.7, 2.1e-3),
		level(15, 27.36, 164.5, 160.6, 1.86e-3) }, .n = 3, .base_rtt_s = 0.086, .peak_rtt_s = 0.1853,
		.idle_rtt_s = 0.0865, .burst_bps = 27.9 * MBIT };
	static const double time_s[] = { 29.9, 14.8, 5 }, events[] = { 12, 28, 15 }, segments[] = { 6676, 14200, 8076 };
	size_t i;

	for (i = 0; i < e.n; i++) {
		e.level[i].time_s = time_s[i];
		e.level[i].loss_events = events[i];
		e.level[i].segments = segments[i];
		e.level[i].segment_bytes = 1445;
	}
	return e;
}

/* Advice leaves room for a flow that the probes do not show, and warns of it; no further probe would show it. A
 * transfer does not leave room. */
static void a_flow_that_cannot_be_seen(void **state)
{
	struct evidence e = few_that_losses_limit();
	struct advice little = judge(&e, 0.1), much = judge(&e, 0.3), transfer;
	struct advice_opts o;

	(void)state;
	expect_no_verdict(&little);
	expect_no_verdict(&much);
	assert_in_range(little.streams, 4, 7); /* 8 would take 13 % */
	assert_int_equal(little.limited_by, ADVICE_BY_IMPACT);
	assert_true(little.impact_high_ratio >= 0.10);
	assert_true(little.impact_total_ratio >= little.impact_ratio);
	assert_in_range(much.streams, little.streams + 1, 10);
	assert_true(much.impact_high_ratio >= 0.18);
	assert_true(much.warnings & ADVICE_WARN_UNSEEN);
	assert_false(much.warnings & ADVICE_WARN_NOISY);
	assert_int_equal(much.next_probe, 0);
	advice_opts_init(&o);
	o.congestion = ADVICE_CC_CUBIC;
	o.unseen_flow = false;
	assert_int_equal(advice_from_evidence(&transfer, &e, &o, NULL), 0);
	assert_true(transfer.streams > little.streams);
	assert_true(transfer.impact_high_ratio < 0.05);
}

/* A path of 12.5 Mbit/s and 132 ms beside one flow, recorded: the queue never empties while 4 streams have 8 Mbit/s of
 * the 11 that 15 streams have. Nobody else would let 4 streams have as much. */
static void a_queue_that_never_empties(void **state)
{
	struct evidence e = { .level = { level(4, 8.26, 287.6, 265.3, 3.9e-3), level(15, 10.81, 284.9, 265.5, 9.6e-3) },
		.n = 2, .base_rtt_s = 0.1398, .peak_rtt_s = 0.3095, .burst_bps = 11.3 * MBIT };
	struct advice a;

	(void)state;
	e.level[0].segments = 2552;
	e.level[1].segments = 3245;
	e.level[0].loss_events = 5;
	e.level[1].loss_events = 17;
	e.level[0].segment_bytes = e.level[1].segment_bytes = 1446;
	e.level[0].time_s = e.level[1].time_s = 5;
	a = judge(&e, 0.1);
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	assert_int_equal(a.streams, 1);
	/* the same rates beside a queue that empties prove nothing */
	e.level[0].low_rtt_s = 0.145;
	assert_int_not_equal(judge(&e, 0.1).others, ADVICE_OTHERS_SOME);
}

/* A path of 14 Mbit/s and 138 ms with RED beside one flow, recorded: a single stream still grows, without any loss.
 * Random loss that limits the stream to this rate would have caused retransmissions. */
static void losses_that_are_missing(void **state)
{
	struct evidence e = { .level = { level(4, 8.36, 149, 142, 0), level(15, 11.67, 167, 156, 0.0109),
		level(1, 2.24, 141.8, 140.8, 0) },
		.n = 3, .base_rtt_s = 0.1386, .peak_rtt_s = 0.234, .burst_bps = 12.27 * MBIT };
	static const double time_s[] = { 5, 5, 4.1 }, segments[] = { 2467, 3484, 827 },
		lag_ratio[] = { 0.152, 0.1, 0.384 };
	struct advice a;
	size_t i;

	(void)state;
	for (i = 0; i < e.n; i++) {
		e.level[i].time_s = time_s[i];
		e.level[i].segments = segments[i];
		e.level[i].lag_ratio = lag_ratio[i];
		e.level[i].segment_bytes = 1440;
	}
	e.level[1].loss_events = 30;
	a = judge(&e, 0.1);
	assert_int_not_equal(a.others, ADVICE_OTHERS_NONE);
	assert_in_range(a.streams, 1, 3);
	/* a loss every 400 segments explains the rate */
	e.level[0].loss_ratio = e.level[2].loss_ratio = 1 / 400.0;
	e.level[0].loss_events = 6;
	a = judge(&e, 0.1);
	expect_no_verdict(&a);
}

/* The loss ratio that explains a rate is the inverse of the rate that a loss ratio leaves. */
static void rates_and_loss_ratios(void **state)
{
	static const enum evidence_growth growth[] = { EVIDENCE_RENO, EVIDENCE_CUBIC };
	double loss, rtt_s;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++)
		for (loss = 1e-6; loss < 0.1; loss *= 4)
			for (rtt_s = 0.002; rtt_s < 0.4; rtt_s *= 5)
				assert_near(evidence_loss_ratio(evidence_stream_bps(loss, rtt_s, 1448, growth[i]),
				    rtt_s, 1448, growth[i]), loss, 1e-9);
}

/* Two others: five or more of them would leave less to 4 streams, and nobody would leave the queue empty. */
static void two_others(void **state)
{
	struct evidence e = path(level(4, 62, 104, 92, 4e-4), level(15, 84, 108, 96, 1.5e-3), 116, 98, 92);
	struct advice a = judge(&e, 0.1);
	struct advice_point p;

	(void)state;
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	assert_int_equal(a.streams, 1); /* a second one takes a quarter */
	assert_null(a.congestion_advice);
	assert_near(a.throughput_bps, 32 * MBIT, 0.25);
	advice_at(&a, 2, &p);
	assert_in_range((int)(100 * p.impact_ratio), 18, 32);
	advice_at(&a, 15, &p);
	assert_in_range((int)(100 * p.impact_ratio), 75, 90);
}

static void fifteen_others(void **state)
{
	struct evidence e = path(level(4, 20, 104, 98, 2e-3), level(15, 48, 109, 100, 4e-3), 116, 103, 68);
	struct advice a = judge(&e, 0.1);
	struct advice_point p;

	(void)state;
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	assert_in_range(a.streams, 2, 3);
	a = judge(&e, 0.3);
	assert_in_range(a.streams, 4, 8);
	assert_true(a.impact_high_ratio <= 0.3 + ADVICE_OVER_BUDGET);
	assert_in_range(advice_fastest(&a, 32, &p), 20, 32);
	assert_true(p.throughput_bps > 55 * MBIT && p.impact_ratio > 0.4);
}

/* A tenth of a bandwidth-delay product of queue, mostly empty: alone, one stream would use most of the link. */
static void two_others_behind_a_short_queue(void **state)
{
	struct evidence e = path(level(4, 66.1, 33.9, 33.6, 1e-3), level(15, 99.9, 34.4, 34, 4.2e-3),
	    38.3, 33.6, 108.1);
	struct advice a;

	(void)state;
	e.base_rtt_s = 0.033;
	e.level[2] = e.level[1];
	e.level[1] = e.level[0];
	e.level[0] = level(1, 43.6, 34, 33.7, 9.5e-4);
	e.n = 3;
	e.level[0].lag_ratio = e.level[1].lag_ratio = e.level[2].lag_ratio = 0.4;
	e.level[0].segment_bytes = e.level[1].segment_bytes = e.level[2].segment_bytes = 1448;
	e.level[0].loss_events = 7;
	e.level[1].loss_events = 34;
	e.level[2].loss_events = 60;
	a = judge(&e, 0.1);
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	assert_int_equal(a.streams, 1);
}

/* What the rate of one or two streams beside others is, the levels of 4 and 15 do not tell; one of 1 stream does. */
static void one_stream_settles_it(void **state)
{
	struct evidence e = path(level(4, 62, 104, 92, 4e-4), level(15, 84, 108, 96, 1.5e-3), 116, 98, 92);
	struct advice before, after;
	double ratio;

	(void)state;
	e.level[0].lag_ratio = e.level[1].lag_ratio = 0.4;
	before = judge(&e, 0.1);
	assert_false(before.confident);
	assert_int_equal(before.next_probe, 1);
	e.level[e.n++] = level(1, 31, 100, 90, 2e-4);
	after = judge(&e, 0.1);
	ratio = before.throughput_high_bps / before.throughput_low_bps;
	assert_true(after.throughput_high_bps / after.throughput_low_bps < 0.7 * ratio);
	assert_int_equal(after.next_probe, 0);
}

/* Windows: as many streams as fill the path. */
static void windows(void **state)
{
	struct evidence e = path(level(4, 9, 58.2, 58, 0), level(15, 33.5, 58.3, 58, 0), 59, 58, 36);
	struct advice a;

	(void)state;
	e.level[0].window_ratio = e.level[1].window_ratio = 0.95;
	a = judge(&e, 0.1);
	assert_in_range(a.streams, 28, 32);
	assert_true(a.throughput_bps > 50 * MBIT);
}

/* One BBR stream alone fills the link: it says nothing about 32 Mbit/s. */
static void bbr_alone(void **state)
{
	struct evidence e = path(level(4, 93, 66, 60, 1e-4), level(15, 94, 72, 61, 2e-3), 90, 58, 95);
	struct advice a;

	(void)state;
	a = judge_with(&e, 0.1, ADVICE_CC_BBR);
	assert_in_range(a.streams, 1, 4);
	assert_true(a.throughput_high_bps > 90 * MBIT);
	assert_near(a.throughput_bps, 92 * MBIT, 0.08);
}

/* One BBR stream takes most of a link that 17 other flows share: what 4 and 15 had is the same. */
static void bbr_beside_others(void **state)
{
	struct evidence e = path(level(4, 84, 86, 85, 0.13), level(15, 86, 70, 68, 0.16), 88, 82, 92);
	struct advice a;

	(void)state;
	e.level[0].lag_ratio = e.level[1].lag_ratio = 0.5;
	a = judge_with(&e, 0.1, ADVICE_CC_BBR);
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	assert_int_equal(a.streams, 1);
	assert_true(a.throughput_bps > 50 * MBIT && a.throughput_high_bps > 80 * MBIT);
	assert_false(a.confident);
	assert_string_equal(a.congestion_advice, "cubic");
	/* A probe of one stream settles the answer: the impact of one stream is nothing by definition. */
	e.level[e.n++] = level(1, 80, 86, 85, 0.1);
	a = judge_with(&e, 0.1, ADVICE_CC_BBR);
	assert_int_equal(a.streams, 1);
	assert_true(a.confident);
	assert_string_equal(a.congestion_advice, "cubic");
}

/* 15 Reno flows behind a queue of one bandwidth-delay product of 118 ms. 4 streams that join them have 6 Mbit/s in the
 * first 10 s, and 28 in the end; 15 have 36 and 47. */
static void shares_not_reached_yet(void **state)
{
	struct evidence e = path(level(4, 6, 215, 200, 2e-4), level(15, 36, 220, 205, 1e-3), 236, 210, 60);
	struct advice a;
	struct advice_point p;

	(void)state;
	e.base_rtt_s = 0.118;
	a = judge_with(&e, 0.1, ADVICE_CC_RENO);
	assert_int_equal(a.others, ADVICE_OTHERS_SOME);
	advice_at(&a, 15, &p);
	assert_true(p.throughput_bps > 40 * MBIT && p.throughput_high_bps > 47 * MBIT);
	advice_at(&a, 4, &p);
	assert_true(p.throughput_bps > 10 * MBIT && p.throughput_high_bps > 20 * MBIT);
	assert_false(a.confident);
}

/* 4 streams had half of the link and a queue of half of the longest: somebody else filled it. */
static void others_fill_the_queue(void **state)
{
	struct evidence e = path(level(4, 14, 163, 124, 1.15e-3), level(15, 27, 189, 164, 3e-3), 263, 0, 29);
	struct advice a;

	(void)state;
	e.base_rtt_s = 0.109;
	a = judge_with(&e, 0.3, ADVICE_CC_RENO);
	assert_int_not_equal(a.others, ADVICE_OTHERS_NONE);
	assert_in_range(a.streams, 1, 2);
}

static double impact_of_eight(const struct evidence *e, unsigned *streams)
{
	struct advice a = judge(e, 0.1);
	struct advice_point p;

	advice_at(&a, 8, &p);
	*streams = a.streams;
	return p.impact_ratio;
}

/* Many others that fill the link keep a queue that is long enough for their windows. Without it they do not compete,
 * even if
 * 15 streams have less each than 4. */
static void no_queue_without_a_full_link(void **state)
{
	struct evidence empty = path(level(4, 32, 61, 58.6, 1e-3), level(15, 75, 62.5, 59, 1.1e-3), 82, 58, 94);
	struct evidence standing = path(level(4, 32, 70, 62, 1e-3), level(15, 75, 71, 62, 1.1e-3), 82, 58, 94);
	unsigned many, few;

	(void)state;
	assert_true(impact_of_eight(&empty, &many) < 0.07);
	assert_true(impact_of_eight(&standing, &few) > 0.12);
	assert_true(many > few);
}

static void watches_levels(void **state)
{
	struct evidence e = { .n = 0 };
	struct evidence_watch w = { .n = 0 };
	const struct steady_result s = { 0, 80 * MBIT, MBIT };
	char text[EVIDENCE_TEXT_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < 60; i++) {
		double surge = i == 10 || i == 11 ? 1.2 : 1;

		evidence_watch_add(&w, &e, &(struct evidence_sample){ 0.1, surge * 1e6, 700, i < 20 ? 50 : 7, 0.06,
		    i == 3 ? 0.05 : 0.055, 0.4, i < 20 ? 0.4 : 0.1, i < 20 ? 4 : 1 });
	}
	evidence_add_level(&e, &w, 4, &s, 0);
	assert_int_equal(e.n, 1);
	assert_near(e.burst_bps, 96 * MBIT, 1e-9);
	assert_near(e.base_rtt_s, 0.05, 1e-12);
	assert_near(e.peak_rtt_s, 0.06, 1e-12);
	assert_near(e.level[0].loss_ratio, 0.01, 1e-9); /* without slow start */
	assert_near(e.level[0].window_ratio, 0.25, 1e-9);
	assert_near(e.level[0].loss_events, 40, 1e-9);
	assert_near(e.level[0].segment_bytes, 1e6 / 700, 1e-9);
	assert_near(e.level[0].time_s, 6, 1e-9);
	assert_near(e.level[0].lag_ratio, 0.1 * pow(2, 0.6), 1e-9);
	evidence_add_level(&e, &w, 4, &s, 0);
	assert_int_equal(e.n, 1);
	assert_non_null(strstr(evidence_text(text, &e, 4), "streams=4 rate_bps=80000000 error_bps=1000000 "));
	assert_non_null(strstr(text,
	    " base_rtt_s=0.050000 peak_rtt_s=0.060000 idle_rtt_s=0.000000 burst_bps=96000000"));
	assert_string_equal(evidence_text(text, &e, 5), "");
	evidence_add_level(&e, &w, 15, &s, exp(0.4)); /* the older streams have more */
	assert_int_equal(e.n, 2);
	assert_near(e.level[0].lag_ratio, hypot(0.1 * pow(2, 0.6), 0.2), 1e-9);
	assert_near(e.level[1].lag_ratio, hypot(0.1, 0.2), 1e-9);
}

/* The rate of few streams scatters from second to second: four times as long, half as much. */
static void long_levels_scatter_less(void **state)
{
	struct evidence e = { .n = 0 };
	struct evidence_watch w = { .n = 0 };
	const struct steady_result s = { 0, 8 * MBIT, MBIT };
	size_t i;

	(void)state;
	for (i = 0; i < 400; i++)
		evidence_watch_add(&w, &e, &(struct evidence_sample){ 0.1, 1e5, 70, 0, 0.06, 0.05, 0.1, 0, 0 });
	evidence_add_level(&e, &w, 1, &s, 0);
	assert_near(e.level[0].lag_ratio, 0.1 * pow(8, 0.6) / 2, 1e-9);
}

/* A level with loss events: rate and RTT of a level that falls from slow start. */
static struct evidence_level falling(struct evidence_level l, double seconds, double events)
{
	l.segment_bytes = 1448;
	l.segments = l.probe.throughput_bps * seconds / 8 / 1448;
	l.loss_events = events;
	l.loss_ratio = events / l.segments;
	l.time_s = 1.5 * seconds;
	return l;
}

/* 100 ms, 0.1 % random loss on an idle path: CUBIC keeps 4.2 Mbit/s per stream (RFC 9438), but 4 streams still have 40
 * after
 * 5 s, and 15 streams fill link and queue with windows that they cannot keep. */
static void streams_that_fall_from_slow_start(void **state)
{
	struct evidence e = path(falling(level(4, 40, 101, 100.6, 0), 3.3, 12), falling(level(15, 96, 155, 139, 0), 3.3,
	    27), 177, 0, 98);
	struct advice_point at;
	struct advice a;

	(void)state;
	e.base_rtt_s = 0.1;
	a = judge(&e, 0.1);
	assert_int_not_equal(a.others, ADVICE_OTHERS_SOME);
	advice_at(&a, 4, &at);
	assert_in_range(at.throughput_bps, 14 * MBIT, 28 * MBIT);
	assert_in_range(a.streams, 6, 32);
	/* Without the losses they look like streams beside others. */
	e.level[0].loss_events = e.level[1].loss_events = 0;
	a = judge(&e, 0.1);
	advice_at(&a, 4, &at);
	assert_true(at.throughput_bps > 30 * MBIT);
}

/* One loss per RTT at most is an event. */
static void loss_events(void **state)
{
	struct loss_events l = { 1 };

	(void)state;
	assert_near(loss_events_of(&l, 0, 0.25, 0.1), 0, 0);
	assert_near(loss_events_of(&l, 7, 0.25, 0.1), 1, 0);   /* a burst */
	assert_near(loss_events_of(&l, 3, 0.25, 0.1), 0, 0);   /* its retransmissions go on for an RTT */
	assert_near(loss_events_of(&l, 3, 0.25, 0.1), 0, 0);
	assert_near(loss_events_of(&l, 3, 0.25, 0.1), 1, 0);
	assert_near(loss_events_of(&l, 2, 0.01, 0.1), 2, 0);   /* a short RTT: single losses */
	assert_near(loss_events_of(&l, 50, 0.01, 0.1), 10, 0);
	assert_near(loss_events_of(&l, 2, 0, 0.1), 2, 0);      /* an unknown RTT */
}

static void rate_that_losses_explain(void **state)
{
	struct evidence_level l = falling(level(4, 40, 101, 100.6, 0), 100, 0);

	(void)state;
	l.loss_events = l.segments / 1000;
	l.loss_ratio = 1e-3;
	/* sqrt(1.5 / 0.001) segments */
	assert_near(evidence_loss_bps(&l, 0.1, EVIDENCE_CUBIC) / (4 * 4.49 * MBIT), 1, 0.01);
	assert_near(evidence_loss_bps(&l, 0.1, EVIDENCE_RENO) / (4 * 4.49 * MBIT), 1, 0.01);
	l.loss_events = l.segments / 10000;
	l.loss_ratio = 1e-4;
	/* beyond Reno: RFC 9438, 5.1 */
	assert_near(evidence_loss_bps(&l, 0.1, EVIDENCE_CUBIC) / (4 * 21.7 * MBIT), 1, 0.01);
	assert_true(evidence_loss_bps(&l, 0.1, EVIDENCE_MODEL) == 0);
	l.loss_events = 4;
	assert_true(evidence_loss_bps(&l, 0.1, EVIDENCE_CUBIC) == 0);
	l.loss_events = 400;
	l.loss_ratio = 0.1;
	assert_true(evidence_loss_bps(&l, 0.1, EVIDENCE_CUBIC) == 0);
	l.loss_ratio = 1e-3;
	l.window_ratio = 0.5;
	assert_true(evidence_loss_bps(&l, 0.1, EVIDENCE_CUBIC) == 0);
}

/* 100 Mbit/s at 50 ms are 432 segments of 1448 bytes: (0.75 x 432)^(1/3) = 6.9 s. A quarter of that each: 54 round
 * trips. */
static void cycle_of_a_level(void **state)
{
	struct evidence_sample s = { .interval_s = 0.1, .delivered_bytes = 1.25e6, .sent_segments = 1.25e6 / 1448,
		.rtt_s = 0.06, .min_rtt_s = 0.05 };
	static struct evidence_watch w;
	struct evidence e = { .n = 0 };

	(void)state;
	assert_true(evidence_watch_cycle_s(&w, &e, 1) == 0);
	evidence_watch_add(&w, &e, &s);
	evidence_watch_add(&w, &e, &s);
	assert_near(evidence_watch_cycle_s(&w, &e, 1), 6.87, 0.01);
	assert_near(evidence_watch_cycle_s(&w, &e, 4), 2.7, 0.01);
}

/* By hand: 10 Mbit/s each at 100 ms are 83 packets of 1500 bytes. CUBIC regains the 30 % that a loss takes in
 * (0.75 x 83)^(1/3) = 4 s, and at 10 ms, with 8 packets, Reno's growth is faster: 4.2 packets, one per RTT. */
static void displaced_flows_recover(void **state)
{
	struct evidence e = { .n = 0 };

	(void)state;
	assert_true(evidence_recovery_s(&e) == 0);
	e.n = 1;
	e.level[0] = (struct evidence_level){ .probe = { .streams = 4, .throughput_bps = 40e6 }, .rtt_s = 0.1,
		.segment_bytes = 1500 };
	assert_near(evidence_recovery_s(&e), 3.97, 0.01);
	e.level[0].rtt_s = 0.01;
	assert_near(evidence_recovery_s(&e), 0.0417, 0.01);
	e.level[0].segment_bytes = 0;
	assert_true(evidence_recovery_s(&e) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(displaced_flows_recover),
		cmocka_unit_test(cycle_of_a_level),
		cmocka_unit_test(nobody_behind_a_deep_queue),
		cmocka_unit_test(nobody_behind_a_short_queue),
		cmocka_unit_test(nobody_but_random_loss),
		cmocka_unit_test(a_flow_that_cannot_be_seen),
		cmocka_unit_test(a_queue_that_never_empties),
		cmocka_unit_test(losses_that_are_missing),
		cmocka_unit_test(rates_and_loss_ratios),
		cmocka_unit_test(two_others),
		cmocka_unit_test(fifteen_others), cmocka_unit_test(one_stream_settles_it),
		cmocka_unit_test(windows),
		cmocka_unit_test(two_others_behind_a_short_queue),
		cmocka_unit_test(bbr_alone),
		cmocka_unit_test(bbr_beside_others),
		cmocka_unit_test(shares_not_reached_yet),
		cmocka_unit_test(others_fill_the_queue), cmocka_unit_test(no_queue_without_a_full_link),
		cmocka_unit_test(watches_levels), cmocka_unit_test(long_levels_scatter_less),
		cmocka_unit_test(streams_that_fall_from_slow_start),
		cmocka_unit_test(loss_events),
		cmocka_unit_test(rate_that_losses_explain),
	};
	return cmocka_run_group_tests_name("model/evidence", tests, NULL, NULL);
}
