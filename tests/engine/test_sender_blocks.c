/* Streams that share a rate: which blocks a stream takes, which stream repeats them, and when a stream counts as
 * stalled. */
#include "core/units.h"
#include "one.h"

#define NOTHING UINT32_MAX

/* A file that is being sent, on streams 0 to 3, of which 0 and 1 share the first rate, 2 has the second. */
static uint64_t sending(struct one *o, uint32_t n_blocks)
{
	uint64_t id = one_sending(o, 4, n_blocks, WIRE_SEND_ALL);

	snd_share(one_snd(o), 0, 1);
	snd_share(one_snd(o), 1, 1);
	snd_share(one_snd(o), 2, 2);
	return id;
}

static void sent(struct one *o, unsigned stream, uint64_t id, uint32_t block)
{
	snd_read(one_snd(o), stream, id, block, (struct digest){ 0, block + 1 }, NULL, one_now(o));
}

/* At a low rate one job at a time, of all streams that share it; at a higher one so many as go out in half a second. */
static void little_waits_behind_a_rate(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 1000), i, n;

	(void)state;
	snd_set_rate(one_snd(&o), 1, 1000000);
	snd_set_rate(one_snd(&o), 2, 8 * ONE_BLOCK * 10); /* ten a second */
	assert_int_equal(one_take(&o, 0), 0);
	assert_true(snd_stream_waits(one_snd(&o), 0) && snd_stream_waits(one_snd(&o), 1));
	assert_int_equal(one_take(&o, 0), NOTHING);
	assert_int_equal(one_take(&o, 1), NOTHING);
	for (n = 0; one_take(&o, 2) != NOTHING; n++)
		;
	assert_int_equal(n, 5);
	for (i = 0; i < 100; i++)
		assert_int_equal(one_take(&o, 3), 6 + i); /* no rate, no limit */
	sent(&o, 0, id, 0);
	assert_int_equal(one_take(&o, 1), 106);
	assert_true(snd_stream_waits(one_snd(&o), 0));
	/* It dies: what it had is the next to go. */
	snd_stream_lost(one_snd(&o), 1);
	snd_stream_up(one_snd(&o), 1, one_now(&o));
	assert_int_equal(one_take(&o, 0), 106);
	snd_set_rate(one_snd(&o), 1, 0);
	for (i = 0; i < 20; i++)
		assert_int_equal(one_take(&o, 0), 107 + i);
	one_fini(&o);
}

/* An idle rate's streams take nothing, what they have goes on, and another takes it over at the end. */
static void idle_ones_take_nothing(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 4);

	(void)state;
	snd_set_rate(one_snd(&o), 2, SND_IDLE);
	assert_int_equal(one_take(&o, 2), NOTHING);
	assert_int_equal(one_take(&o, 0), 0);
	snd_set_rate(one_snd(&o), 1, SND_IDLE);
	assert_int_equal(one_take(&o, 0), NOTHING);
	assert_int_equal(one_take(&o, 1), NOTHING);
	assert_int_equal(one_take(&o, 3), 1);
	sent(&o, 3, id, 1);
	o.now_ns += 100 * NS_PER_MS;
	one_ack(&o, id, 1);
	assert_int_equal(one_take(&o, 3), 2);
	assert_int_equal(one_take(&o, 3), 3);
	sent(&o, 3, id, 2);
	sent(&o, 3, id, 3);
	one_ack(&o, id, 2);
	one_ack(&o, id, 3);
	one_tick(&o, NS_PER_S);
	assert_int_equal(one_take(&o, 2), NOTHING); /* no copies either */
	assert_int_equal(one_take(&o, 3), 0);
	sent(&o, 3, id, 0);
	one_ack(&o, id, 0);
	assert_int_equal(o.checks, 1);
	assert_int_equal(o.stalled, 0);
	one_fini(&o);
}

/* A rate that all keep to forbids copies, but not of what another, lower one holds up. */
static void what_a_slow_path_has_is_taken_over(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 3);

	(void)state;
	snd_set_paced(one_snd(&o), true);
	snd_set_rate(one_snd(&o), 1, 10000);
	assert_int_equal(one_take(&o, 0), 0);
	assert_int_equal(one_take(&o, 3), 1);
	assert_int_equal(one_take(&o, 2), 2);
	sent(&o, 3, id, 1);
	o.now_ns += 100 * NS_PER_MS;
	one_ack(&o, id, 1);
	one_tick(&o, NS_PER_S);
	assert_int_equal(one_take(&o, 1), NOTHING); /* it shares that rate */
	assert_int_equal(one_take(&o, 3), 0);
	one_fini(&o);
}

/* A relay has the blocks of stream 1 in its spool, and forwards them in their order: stream 2 takes over the last ones,
 * which would arrive last. */
static void the_last_blocks_in_a_spool_are_taken_over_first(void **state)
{
	struct one o;
	uint64_t id;
	uint32_t i;

	(void)state;
	one_run_spooled(&o);
	snd_stream_up(one_snd(&o), 1, one_now(&o));
	snd_stream_up(one_snd(&o), 2, one_now(&o));
	snd_share(one_snd(&o), 1, 1);
	snd_share(one_snd(&o), 2, 2);
	snd_set_paced(one_snd(&o), true);
	id = one_offer(&o, WIRE_FILE, 10ull * ONE_BLOCK);
	snd_listed(one_snd(&o), 1, 0, true);
	one_answer(&o, id, WIRE_SEND_ALL);
	assert_int_equal(one_take(&o, 2), 0);
	sent(&o, 2, id, 0);
	for (i = 1; i < 10; i++) {
		assert_int_equal(one_take(&o, 1), i);
		sent(&o, 1, id, i);
		o.now_ns += 100 * NS_PER_MS;
	}
	one_ack(&o, id, 0);
	assert_int_equal(one_take(&o, 2), NOTHING); /* its latency is 0.9 s */
	one_tick(&o, NS_PER_S + 200 * NS_PER_MS);
	one_ack(&o, id, 1);
	assert_int_equal(one_take(&o, 2), 3); /* the last one that waits for long enough */
	one_tick(&o, NS_PER_S);
	assert_int_equal(one_take(&o, 2), 9);
	one_ack(&o, id, 7);
	assert_int_equal(one_take(&o, 2), 8);
	assert_int_equal(one_take(&o, 2), 6);
	one_fini(&o);
}

/* What a rate holds back is no sign of a dead stream; what goes beyond is. */
static void a_rate_is_no_stall(void **state)
{
	uint64_t patience = ONE_TIMEOUT_NS / 4 * 3, block_ns = 8ull * ONE_BLOCK * NS_PER_S / 1000000, at;
	struct wire_ping alive = { WIRE_IDLE, 1 };
	struct one o;
	uint64_t id = sending(&o, 3);

	(void)state;
	o.busy = WIRE_READING; /* with that rate */
	snd_set_rate(one_snd(&o), 1, 1000000);
	assert_int_equal(one_take(&o, 0), 0);
	at = snd_deadline(one_snd(&o)).ns - o.now_ns;
	assert_in_range(at, patience + block_ns - NS_PER_MS, patience + block_ns + NS_PER_MS);
	one_tick(&o, block_ns);
	assert_int_equal(o.stalled, 0);
	sent(&o, 0, id, 0);
	ONE_PUT(&o, ping, &alive);
	one_tick(&o, patience - NS_PER_S);
	assert_int_equal(o.stalled, 0);
	one_tick(&o, 2 * NS_PER_S);
	assert_int_equal(o.stalled, 1);
	one_fini(&o);
}

static uint64_t drains_ns(struct one *o, unsigned stream)
{
	return snd_stream_drains_ns(one_snd(o), stream, one_now(o));
}

/* By the time of earlier blocks, or of the oldest one if that is longer. */
static void how_long_a_stream_drains(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 1000);
	unsigned i;

	(void)state;
	assert_int_equal(drains_ns(&o, 3), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(one_take(&o, 3), i);
	assert_int_equal(drains_ns(&o, 3), 0);
	o.now_ns += NS_PER_S; /* nothing has arrived yet */
	assert_int_equal(drains_ns(&o, 3), 3 * NS_PER_S);
	sent(&o, 3, id, 0);
	o.now_ns += NS_PER_S;
	one_ack(&o, id, 0);
	assert_in_range(drains_ns(&o, 3), 4 * NS_PER_S, 4 * NS_PER_S + 2); /* the first block took two */
	o.now_ns += 5 * NS_PER_S;
	assert_int_equal(drains_ns(&o, 3), 10 * NS_PER_S);
	snd_stream_lost(one_snd(&o), 3);
	assert_int_equal(drains_ns(&o, 3), 0);
	assert_int_equal(one_take(&o, 0), 1); /* another takes over */
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_long_a_stream_drains),
		cmocka_unit_test(little_waits_behind_a_rate),
		cmocka_unit_test(idle_ones_take_nothing),
		cmocka_unit_test(what_a_slow_path_has_is_taken_over),
		cmocka_unit_test(the_last_blocks_in_a_spool_are_taken_over_first),
		cmocka_unit_test(a_rate_is_no_stall),
	};

	return cmocka_run_group_tests_name("engine/sender_blocks", tests, NULL, NULL);
}
