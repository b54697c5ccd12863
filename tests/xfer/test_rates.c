/* Streams that share a rate: who may take what, who takes it over, and when they count as stalled. */
#include "one.h"

#include "core/units.h"

#define BLOCK (256u << 10)
#define NOTHING UINT32_MAX

static struct snd *snd_of(struct one *o) { return session_snd(o->s); }
static struct mono now(const struct one *o) { return (struct mono){ o->now_ns }; }

/* A file that is being sent, on streams 0 to 3, of which 0 and 1 share the first rate, 2 has the second. */
static uint64_t sending(struct one *o, uint32_t n_blocks)
{
	uint64_t id;
	unsigned i;

	one_run(o, true, true);
	snd_share(snd_of(o), 0, 1);
	snd_share(snd_of(o), 1, 1);
	snd_share(snd_of(o), 2, 2);
	for (i = 0; i < 4; i++)
		snd_stream_up(snd_of(o), i, now(o));
	id = one_offer(o, WIRE_FILE, (uint64_t)n_blocks * BLOCK);
	snd_listed(snd_of(o), 1, 0, true);
	one_answer(o, id, WIRE_SEND_ALL);
	return id;
}

static uint32_t take(struct one *o, unsigned stream)
{
	struct snd_job job;

	if (!snd_take(snd_of(o), stream, now(o), &job))
		return NOTHING;
	assert_int_equal(job.n, 1);
	return job.extent[0].block;
}

static void sent(struct one *o, unsigned stream, uint64_t id, uint32_t block)
{
	snd_read(snd_of(o), stream, id, block, (struct digest){ 0, block + 1 }, NULL, now(o));
}

/* At a low rate one job at a time, of all streams that share it; at a higher one so many as go out in half a second. */
static void little_waits_behind_a_rate(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 1000), i, n;

	(void)state;
	snd_set_rate(snd_of(&o), 1, 1000000);
	snd_set_rate(snd_of(&o), 2, 8 * BLOCK * 10); /* ten a second */
	assert_int_equal(take(&o, 0), 0);
	assert_true(snd_stream_waits(snd_of(&o), 0) && snd_stream_waits(snd_of(&o), 1));
	assert_int_equal(take(&o, 0), NOTHING);
	assert_int_equal(take(&o, 1), NOTHING);
	for (n = 0; take(&o, 2) != NOTHING; n++)
		;
	assert_int_equal(n, 5);
	for (i = 0; i < 100; i++)
		assert_int_equal(take(&o, 3), 6 + i); /* no rate, no limit */
	sent(&o, 0, id, 0);
	assert_int_equal(take(&o, 1), 106);
	assert_true(snd_stream_waits(snd_of(&o), 0));
	/* It dies: what it had is the next to go. */
	snd_stream_lost(snd_of(&o), 1);
	snd_stream_up(snd_of(&o), 1, now(&o));
	assert_int_equal(take(&o, 0), 106);
	snd_set_rate(snd_of(&o), 1, 0);
	for (i = 0; i < 20; i++)
		assert_int_equal(take(&o, 0), 107 + i);
	one_fini(&o);
}

/* An idle rate's streams take nothing, what they have goes on, and another takes it over at the end. */
static void idle_ones_take_nothing(void **state)
{
	struct one o;
	uint64_t id = sending(&o, 4);

	(void)state;
	snd_set_rate(snd_of(&o), 2, SND_IDLE);
	assert_int_equal(take(&o, 2), NOTHING);
	assert_int_equal(take(&o, 0), 0);
	snd_set_rate(snd_of(&o), 1, SND_IDLE);
	assert_int_equal(take(&o, 0), NOTHING);
	assert_int_equal(take(&o, 1), NOTHING);
	assert_int_equal(take(&o, 3), 1);
	sent(&o, 3, id, 1);
	o.now_ns += 100 * NS_PER_MS;
	one_ack(&o, id, 1);
	assert_int_equal(take(&o, 3), 2);
	assert_int_equal(take(&o, 3), 3);
	sent(&o, 3, id, 2);
	sent(&o, 3, id, 3);
	one_ack(&o, id, 2);
	one_ack(&o, id, 3);
	one_tick(&o, NS_PER_S);
	assert_int_equal(take(&o, 2), NOTHING); /* no copies either */
	assert_int_equal(take(&o, 3), 0);
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
	snd_set_paced(snd_of(&o), true);
	snd_set_rate(snd_of(&o), 1, 10000);
	assert_int_equal(take(&o, 0), 0);
	assert_int_equal(take(&o, 3), 1);
	assert_int_equal(take(&o, 2), 2);
	sent(&o, 3, id, 1);
	o.now_ns += 100 * NS_PER_MS;
	one_ack(&o, id, 1);
	one_tick(&o, NS_PER_S);
	assert_int_equal(take(&o, 1), NOTHING); /* it shares that rate */
	assert_int_equal(take(&o, 3), 0);
	one_fini(&o);
}

/* What a rate holds back is no sign of a dead stream; what goes beyond is. */
static void a_rate_is_no_stall(void **state)
{
	uint64_t patience = ONE_TIMEOUT_NS / 4 * 3, block_ns = 8ull * BLOCK * NS_PER_S / 1000000, at;
	struct wire_ping alive = { WIRE_IDLE, 1 };
	struct one o;
	uint64_t id = sending(&o, 3);

	(void)state;
	o.busy = WIRE_READING; /* with that rate */
	snd_set_rate(snd_of(&o), 1, 1000000);
	assert_int_equal(take(&o, 0), 0);
	at = snd_deadline(snd_of(&o)).ns - o.now_ns;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_waits_behind_a_rate),
		cmocka_unit_test(idle_ones_take_nothing),
		cmocka_unit_test(what_a_slow_path_has_is_taken_over),
		cmocka_unit_test(a_rate_is_no_stall),
	};

	return cmocka_run_group_tests_name("xfer/rates", tests, NULL, NULL);
}
