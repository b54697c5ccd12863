/* Rate limits of paths: which of two limits applies, when the peer receives them, and what the sender enforces. Blocks
 * pass the limits in virtual time. */
#include "engine/path_rates.h"

#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "one.h"

#define LIMIT UINT64_C(1000000)

static struct {
	struct path_rates r;
	struct wire_rate f;
	uint8_t path_of[ENGINE_STREAMS_MAX]; /* streams 0, 2 on path 0; 1, 3 on path 1 */
	struct mono now;
} fx;

static int setup(void **state)
{
	unsigned i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	path_rates_init(&fx.r);
	for (i = 0; i < ENGINE_STREAMS_MAX; i++)
		fx.path_of[i] = (uint8_t)(i % 2);
	return 0;
}

static void after_ms(uint64_t ms) { fx.now = mono_add_ns(fx.now, ms * NS_PER_MS); }

static bool reports(uint64_t all_bps)
{
	return path_rates_report(&fx.r, &fx.f, all_bps, fx.path_of, 4, 2, fx.now);
}

/* bit/s that a pacer lets pass within some seconds of virtual time. */
static double carries_bps(struct pacer *p, double seconds)
{
	struct mono end = mono_add_ns(fx.now, (uint64_t)(seconds * 1e9)), at;
	struct pacer_turn turn = { 0 };
	uint64_t bytes = 0;
	size_t n;

	while (fx.now.ns < end.ns)
		if ((n = pacer_take(p, &turn, fx.now, &at)) > 0)
			bytes += n;
		else
			fx.now = at;
	return 8 * (double)bytes / seconds;
}

static void keeps(struct pacer *p, double bps)
{
	double seen = carries_bps(p, 10);

	assert_true(seen > 0.99 * bps - 8 * PACER_MAX_QUANTUM_BYTES / 10.0 &&
	    seen < 1.01 * bps + 8 * PACER_MAX_QUANTUM_BYTES / 10.0);
}

/* ---- Which limit ---- */

static void the_lower_limit_applies(void **state)
{
	static const uint64_t I = ENGINE_PATH_IDLE, cases[][3] = { /* requested, selected, applied */
		{ 0, 0, 0 }, { 5, 0, 5 }, { 0, 5, 5 }, { 5, 7, 5 }, { 7, 5, 5 }, { I, 0, I }, { I, 5, I },
		    { 5, I, 5 }, { 0, I, I }
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx.r.requested[1] = cases[i][0] < 100 ? cases[i][0] * LIMIT : I;
		fx.r.selected[1] = cases[i][1] < 100 ? cases[i][1] * LIMIT : I;
		path_rates_apply(&fx.r, 2, false, fx.now);
		assert_int_equal(fx.r.applied[1], cases[i][2] < 100 ? cases[i][2] * LIMIT : I);
		assert_int_equal(path_rates_limited(&fx.r), cases[i][2] != 0);
		assert_int_equal(fx.r.applied[0], 0);
	}
}

static void changes_are_named_once(void **state)
{
	(void)state;
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 0);
	fx.r.requested[0] = fx.r.requested[1] = LIMIT;
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 3);
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 0);
	fx.r.selected[1] = LIMIT / 2;
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 2);
	fx.r.requested[0] = 0;
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 1);
	assert_true(path_rates_limited(&fx.r));
	fx.r.selected[1] = fx.r.requested[1] = 0;
	assert_int_equal(path_rates_apply(&fx.r, 2, false, fx.now), 2);
	assert_false(path_rates_limited(&fx.r));
}

static void pacers_follow(void **state)
{
	(void)state;
	fx.r.requested[0] = 40 * LIMIT;
	fx.r.requested[1] = 20 * LIMIT;
	path_rates_apply(&fx.r, 2, false, fx.now);
	keeps(&fx.r.of[0], 40e6);
	keeps(&fx.r.of[1], 20e6);
	fx.r.requested[0] = 20 * LIMIT;
	fx.r.requested[1] = 60 * LIMIT;
	path_rates_apply(&fx.r, 2, false, fx.now);
	keeps(&fx.r.of[0], 20e6);
	keeps(&fx.r.of[1], 60e6);
	fx.r.requested[1] = ENGINE_PATH_IDLE; /* for data in transit the old limit stays */
	path_rates_apply(&fx.r, 2, false, fx.now);
	keeps(&fx.r.of[1], 60e6);
	fx.r.requested[1] = 0;
	path_rates_apply(&fx.r, 2, false, fx.now);
	assert_false(pacer_limits(&fx.r.of[1]));
	fx.r.requested[1] = 20 * LIMIT; /* a receiver whose sender enforces the limit */
	path_rates_apply(&fx.r, 2, true, fx.now);
	keeps(&fx.r.of[1], 22.5e6);
}

/* ---- Reporting ---- */

static void reports_changes(void **state)
{
	(void)state;
	assert_false(reports(0));
	assert_false(path_rates_exchanged(&fx.r));
	assert_true(reports(9 * LIMIT));
	assert_int_equal(fx.f.all_bps, 9 * LIMIT);
	assert_int_equal(fx.f.n, 0);
	assert_true(path_rates_exchanged(&fx.r));
	after_ms(200);
	fx.r.requested[1] = LIMIT; /* only paths with a limit are named */
	assert_true(reports(9 * LIMIT));
	assert_int_equal(fx.f.n, 1);
	assert_int_equal(fx.f.bps[0], LIMIT);
	assert_int_equal(fx.f.m, 4);
	assert_memory_equal(fx.f.of, ((uint8_t[]){ 0, 1, 0, 1 }), 4);
	after_ms(200);
	fx.r.requested[0] = ENGINE_PATH_IDLE;
	assert_true(reports(9 * LIMIT));
	assert_int_equal(fx.f.n, 2);
	assert_true(fx.f.bps[0] == WIRE_RATE_IDLE && fx.f.bps[1] == LIMIT);
	assert_memory_equal(fx.f.of, ((uint8_t[]){ 1, 2, 1, 2 }), 4);
	after_ms(200);
	fx.r.requested[1] = 0; /* the last named stream has a limit */
	assert_true(reports(0));
	assert_int_equal(fx.f.m, 3);
	after_ms(200);
	assert_false(reports(0));
	fx.r.requested[0] = 0;
	assert_true(reports(0));
	assert_false(path_rates_exchanged(&fx.r));
}

/* The sender limits the number of RATE frames. */
static void not_too_often(void **state)
{
	unsigned n = 0, i;

	(void)state;
	for (i = 1; i <= 1000; i++) { /* 10 s */
		fx.r.requested[0] = i * LIMIT;
		path_rates_apply(&fx.r, 2, false, fx.now);
		n += reports(0);
		after_ms(10);
	}
	assert_in_range(n, 90, 101);
	assert_true(n <= ENGINE_RATES_PER_S * 10);
	assert_int_equal(path_rates_deadline(&fx.r, true, false).ns, fx.r.reported.ns + PATH_RATES_REPORT_NS);
	after_ms(100);
	assert_true(reports(0)); /* the last change is not lost */
	assert_int_equal(fx.f.bps[0], 1000 * LIMIT);
	assert_int_equal(path_rates_deadline(&fx.r, true, false).ns, MONO_NEVER.ns);
}

static void rechecks(void **state)
{
	(void)state;
	path_rates_apply(&fx.r, 2, false, fx.now);
	assert_int_equal(path_rates_deadline(&fx.r, false, false).ns, MONO_NEVER.ns);
	assert_int_equal(path_rates_deadline(&fx.r, true, true).ns, fx.now.ns + NS_PER_S);       /* timetable */
	assert_int_equal(path_rates_deadline(&fx.r, false, true).ns, fx.now.ns + NS_PER_S / 4); /* own limit */
}

/* ---- The acceptor that sends ---- */

static void the_sender_enforces_reported_limits(void **state)
{
	struct path_rates sender;
	unsigned i;

	(void)state;
	path_rates_init(&sender);
	fx.r.requested[0] = 20 * LIMIT;
	fx.r.requested[1] = 60 * LIMIT;
	assert_true(reports(70 * LIMIT));
	path_rates_received(&sender, &fx.f, fx.now);
	assert_true(path_rates_exchanged(&sender));
	for (i = 0; i < 4; i++)
		assert_int_equal(path_rates_share(&sender, i), 1 + i % 2);
	assert_int_equal(path_rates_share(&sender, 4), 0);
	keeps(&sender.all, 70e6);
	keeps(&sender.of[0], 20e6);
	keeps(&sender.of[1], 60e6);
	fx.r.requested[1] = ENGINE_PATH_IDLE;
	assert_true(reports(0));
	path_rates_received(&sender, &fx.f, fx.now);
	assert_false(pacer_limits(&sender.all));
	keeps(&sender.of[1], 60e6); /* data in transit */
	fx.r.requested[0] = fx.r.requested[1] = 0;
	assert_true(reports(0));
	path_rates_received(&sender, &fx.f, fx.now);
	assert_false(path_rates_exchanged(&sender));
	for (i = 0; i < ENGINE_PATHS_MAX; i++)
		assert_false(pacer_limits(&sender.of[i]));
	assert_int_equal(path_rates_share(&sender, 0), 0);
}

/* ---- A file over two limited paths, in virtual time ---- */

/* Takes what each stream may, paces each block by its path, acknowledges it; seconds until all blocks are there. */
static double transfer_s(uint32_t n_blocks, uint64_t bytes[2])
{
	struct one o;
	uint64_t id = one_sending(&o, 2, n_blocks, WIRE_SEND_ALL), left[2] = { 0, 0 };
	uint32_t block[2], arrived = 0, i;
	bool *seen = calloc(n_blocks, sizeof *seen);
	struct mono from = fx.now, at;
	struct pacer_turn turn[2] = { 0 };
	size_t n;

	bytes[0] = bytes[1] = 0;
	for (i = 0; i < 2; i++) {
		snd_share(one_snd(&o), i, i + 1);
		snd_set_rate(one_snd(&o), i + 1, fx.r.applied[i]);
	}
	while (arrived < n_blocks && mono_diff_ns(fx.now, from) < 3600 * NS_PER_S) {
		for (i = 0; i < 2; i++) {
			if (left[i] == 0 && !snd_stream_waits(one_snd(&o), i) &&
			    (block[i] = one_take(&o, i)) != UINT32_MAX)
				left[i] = ONE_BLOCK;
			if (left[i] == 0 || (n = pacer_take(&fx.r.of[i], &turn[i], fx.now, &at)) == 0)
				continue;
			left[i] -= n < left[i] ? n : left[i];
			if (left[i] > 0)
				continue;
			bytes[i] += ONE_BLOCK;
			snd_read(one_snd(&o), i, id, block[i], (struct digest){ 0, block[i] + 1 }, NULL, one_now(&o));
			if (!seen[block[i]]) {
				seen[block[i]] = true;
				arrived++;
				one_ack(&o, id, block[i]);
			}
		}
		fx.now = mono_add_ns(fx.now, NS_PER_MS);
		one_tick(&o, NS_PER_MS);
	}
	assert_int_equal(arrived, n_blocks);
	free(seen);
	one_fini(&o);
	return (double)mono_diff_ns(fx.now, from) / 1e9;
}

static void limits(uint64_t first_bps, uint64_t second_bps)
{
	fx.r.requested[0] = first_bps;
	fx.r.requested[1] = second_bps;
	path_rates_apply(&fx.r, 2, false, fx.now);
}

static void a_file_over_two_limited_paths(void **state)
{
	uint64_t bytes[2];
	double s, bits = 8.0 * 256 * ONE_BLOCK;

	(void)state;
	limits(40 * LIMIT, 20 * LIMIT);
	s = transfer_s(256, bytes);
	assert_true(s > 0.95 * bits / 60e6 && s < 1.1 * bits / 60e6);
	assert_true((double)bytes[0] > 1.9 * (double)bytes[1] && (double)bytes[0] < 2.1 * (double)bytes[1]);
}

static void an_idle_path_carries_nothing(void **state)
{
	uint64_t bytes[2];
	double s, bits = 8.0 * 256 * ONE_BLOCK;

	(void)state;
	limits(ENGINE_PATH_IDLE, 40 * LIMIT);
	s = transfer_s(256, bytes);
	assert_int_equal(bytes[0], 0);
	assert_true(s > 0.95 * bits / 40e6 && s < 1.1 * bits / 40e6);
}

/* The other path copies the blocks of a path at 10 kbit/s (a block in 210 s). */
static void the_tail_does_not_wait_for_a_slow_path(void **state)
{
	uint64_t bytes[2];

	(void)state;
	limits(0, 10000);
	assert_true(transfer_s(256, bytes) < 20);
	assert_true(bytes[1] == 0);
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_lower_limit_applies), test(changes_are_named_once), test(pacers_follow), test(reports_changes),
		test(not_too_often), test(rechecks), test(the_sender_enforces_reported_limits),
		test(a_file_over_two_limited_paths), test(an_idle_path_carries_nothing),
		test(the_tail_does_not_wait_for_a_slow_path),
	};

	return cmocka_run_group_tests_name("engine/path_rates", tests, NULL, NULL);
}
