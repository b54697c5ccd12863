/* The choice of a sender's congestion control, from what the kernel would report on paths of 100 Mbit/s and 58 ms. */
#include "model/near.h"

#include <string.h>

#include "model/congestion_judge.h"
#include "model/stream_control.h"

#define MBIT 1e6
#define MOST 16 /* streams */

static struct congestion_judge j;

static int setup(void **state)
{
	(void)state;
	congestion_judge_init(&j, EVIDENCE_CUBIC, MOST);
	return 0;
}

/* What n streams report in every tenth of a second. */
struct observed {
	unsigned streams;
	double mbps, rtt_ms, loss_ratio, window_ratio, burst_mbps;
};

/* So many seconds of a level; the last verdict but KEEP. */
static enum congestion_verdict pass(const struct observed *l, double seconds, bool usable)
{
	enum congestion_verdict v, last = CONGESTION_KEEP;
	double s, mbps, segments;
	int i = 0;

	for (s = 0; s < seconds - 1e-6; s += STREAM_CONTROL_SAMPLE_S, i++) {
		mbps = i < 3 && l->burst_mbps > 0 ? l->burst_mbps : l->mbps * (i % 2 == 0 ? 1.05 : 0.95);
		segments = mbps * MBIT * STREAM_CONTROL_SAMPLE_S / 8 / 1448;
		v = congestion_judge_add(&j, l->streams, &(struct evidence_sample){ STREAM_CONTROL_SAMPLE_S,
		    segments * 1448, segments,
		    segments * l->loss_ratio, l->rtt_ms / 1e3, 0.058, l->streams * STREAM_CONTROL_SAMPLE_S,
		    l->window_ratio * l->streams * STREAM_CONTROL_SAMPLE_S, 0 }, usable);
		if (v != CONGESTION_KEEP)
			last = v;
	}
	return last;
}

static const struct observed random_1 = { 1, 5.6, 58.2, 1e-3, 0, 20 }, random_4 = { 4, 22, 58.2, 1e-3, 0, 40 },
    random_15 = { 15, 74, 59, 1.05e-3, 0, 80 };

/* About as many streams as permitted do not fill the link. */
static void random_loss_and_nobody(void **state)
{
	(void)state;
	/* others behind a short queue would look like this */
	assert_int_equal(pass(&random_4, 30, true), CONGESTION_KEEP);
	assert_int_equal(pass(&random_15, 4.4, true), CONGESTION_KEEP);
	assert_int_equal(pass(&random_15, 0.2, true), CONGESTION_TO_BBR);
}

/* Flows that random loss limits like ours leave no trace while the link is not full; more streams would show them. */
static void a_link_that_is_not_full_shows_nobody(void **state)
{
	(void)state;
	congestion_judge_init(&j, EVIDENCE_CUBIC, 32);
	assert_int_equal(pass(&random_1, 30, true), CONGESTION_KEEP);
	assert_int_equal(pass(&random_4, 30, true), CONGESTION_KEEP);
	assert_int_equal(pass(&random_15, 30, true), CONGESTION_KEEP);
}

static void without_anything_to_send(void **state)
{
	(void)state;
	assert_int_equal(pass(&random_4, 10, false), CONGESTION_KEEP);
	assert_int_equal(pass(&random_15, 10, false), CONGESTION_KEEP);
	assert_int_equal(j.evidence.n, 0);
}

static void close_counts_tell_nothing(void **state)
{
	const struct observed six = { 6, 33, 58.3, 1e-3, 0, 0 };

	(void)state;
	assert_int_equal(pass(&random_4, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&six, 10, true), CONGESTION_KEEP);
}

/* 25 packets of queue: the RTT is nearly the least, and the loss that of a bad path. */
static void others_behind_a_short_queue(void **state)
{
	const struct observed four = { 4, 34, 59.6, 1e-3, 0, 40 }, fifteen = { 15, 67, 60, 3e-3, 0, 80 };

	(void)state;
	assert_int_equal(pass(&four, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&fifteen, 30, true), CONGESTION_KEEP);
}

static void others_behind_a_deep_queue(void **state)
{
	const struct observed four = { 4, 42, 106, 4e-4, 0, 50 }, fifteen = { 15, 72, 110, 1.5e-3, 0, 90 };

	(void)state;
	assert_int_equal(pass(&four, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&fifteen, 30, true), CONGESTION_KEEP);
}

/* Nobody, and the streams' own losses: they fill the link as they are. */
static void nobody_and_no_random_loss(void **state)
{
	const struct observed four = { 4, 96, 100, 3e-4, 0, 96 }, fifteen = { 15, 96, 108, 2e-3, 0, 96 };

	(void)state;
	assert_int_equal(pass(&four, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&fifteen, 30, true), CONGESTION_KEEP);
}

static void windows_are_no_loss(void **state)
{
	struct observed four = random_4, fifteen = random_15;

	(void)state;
	four.window_ratio = fifteen.window_ratio = 0.9;
	assert_int_equal(pass(&four, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&fifteen, 30, true), CONGESTION_KEEP);
	four.window_ratio = fifteen.window_ratio = 0;
	four.loss_ratio = fifteen.loss_ratio = 0;
	setup(NULL);
	assert_int_equal(pass(&four, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&fifteen, 30, true), CONGESTION_KEEP);
}

/* BBR that fills a lossy link alone stays; beside others that stand in the queue it does not. */
static void beside_bbr(void **state)
{
	const struct observed alone_4 = { 4, 93, 62, 1e-3, 0, 95 }, alone_15 = { 15, 90, 64, 2e-3, 0, 95 };
	const struct observed beside_4 = { 4, 30, 104, 2e-3, 0, 40 }, beside_15 = { 15, 60, 108, 4e-3, 0, 70 };

	(void)state;
	congestion_judge_init(&j, EVIDENCE_MODEL, MOST);
	assert_int_equal(pass(&alone_4, 10, true), CONGESTION_KEEP);
	assert_int_equal(pass(&alone_15, 30, true), CONGESTION_KEEP);
	congestion_judge_init(&j, EVIDENCE_MODEL, MOST);
	assert_int_equal(pass(&beside_4, 10, true), CONGESTION_KEEP); /* the queue may be our own */
	assert_int_equal(pass(&beside_15, 10, true), CONGESTION_FROM_BBR);
}

/* One BBR stream alone keeps the queue short: a queue that does not empty within one level belongs to other flows. */
static void one_bbr_stream(void **state)
{
	const struct observed alone = { 1, 89, 61.7, 1e-3, 0, 97 }, beside = { 1, 81, 104, 8e-3, 0, 97 };

	(void)state;
	congestion_judge_init(&j, EVIDENCE_MODEL, MOST);
	assert_int_equal(pass(&alone, 30, true), CONGESTION_KEEP);
	congestion_judge_init(&j, EVIDENCE_MODEL, MOST);
	assert_int_equal(pass(&beside, 5, true), CONGESTION_FROM_BBR);
}

/* An idle link goes down while each count is observed. That the streams deliver a fraction of its rate then, and
 * retransmit, is no random loss. */
static void outages_are_no_random_loss(void **state)
{
	static const struct observed level[] = { { 4, 40, 58.2, 2e-3, 0, 40 }, { 15, 140, 58.2, 2e-3, 0, 80 } };
	struct observed down;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(pass(&level[i], 1.2, true), CONGESTION_KEEP);
		down = (struct observed){ level[i].streams, 0, 58.2, 0, 0, 0 };
		assert_int_equal(pass(&down, 2.2, true), CONGESTION_KEEP);
		assert_int_equal(pass(&level[i], 1.4, true), CONGESTION_KEEP);
	}
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(random_loss_and_nobody), test(a_link_that_is_not_full_shows_nobody), test(one_bbr_stream),
		test(without_anything_to_send), test(close_counts_tell_nothing),
		test(others_behind_a_short_queue), test(others_behind_a_deep_queue), test(nobody_and_no_random_loss),
		test(windows_are_no_loss), test(beside_bbr),
		test(outages_are_no_random_loss),
	};

	return cmocka_run_group_tests_name("model/congestion_judge", tests, NULL, NULL);
}
