/* Outages: a session whose peer is silent lives on for the time that both ends allow; a peer that answers, but does
 * nothing, is given up; time in which this process was stopped does not count. The test gives the time. */
#include "one.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/err.h"

#define LINGER_NS (600 * NS_PER_S)

static struct wire_hello hello(uint32_t timeout_ms, uint32_t linger_ms)
{
	return (struct wire_hello){ .version_min = 1, .version_max = 1, .timeout_ms = timeout_ms, .quiet_ms = 9000,
		.linger_ms = linger_ms, .max_entries = WIRE_SLOTS, .max_streams = 8 };
}

/* With a file that is being sent. */
static void begin(struct one *o, bool starter, uint64_t linger_ns, const struct wire_hello *peer)
{
	one_run_lingering(o, starter, linger_ns, peer);
	one_offer(o, WIRE_FILE, 10);
}

static void pass(struct one *o, uint64_t ns)
{
	uint64_t until = o->now_ns + ns;

	while (o->now_ns < until && o->ended == 0)
		one_tick(o, NS_PER_S / 2);
}

static void ping(struct one *o)
{
	struct wire_ping f = { WIRE_IDLE, 1 };

	ONE_PUT(o, ping, &f);
}

/* The acknowledgment of data is progress, unlike a PING. */
static void progress(struct one *o) { engine_progress(o->s, (struct mono){ o->now_ns }); }

static void silence_lasts_as_long_as_both_allow(void **state)
{
	static const struct { bool starter; uint64_t ours_ns; uint32_t peers_ms; uint64_t lasts_ns; } cases[] = {
		{ true, LINGER_NS, 3600000, LINGER_NS }, { false, 3600 * NS_PER_S, 600000, LINGER_NS },
		{ true, LINGER_NS, 60000, 60 * NS_PER_S }, { true, LINGER_NS, 0, ONE_TIMEOUT_NS },
		{ true, 0, 3600000, ONE_TIMEOUT_NS }, { true, LINGER_NS, 5000, ONE_TIMEOUT_NS },
	};
	struct wire_hello peer;
	uint64_t start;
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		peer = hello(9000, cases[i].peers_ms);
		begin(&o, cases[i].starter, cases[i].ours_ns, &peer);
		progress(&o);
		start = o.now_ns;
		pass(&o, 2 * 3600 * NS_PER_S);
		assert_int_equal(o.ended, 1);
		assert_int_equal(o.why.code, PTCP_ETIMEOUT);
		assert_int_equal(o.now_ns - start, cases[i].lasts_ns);
		one_fini(&o);
	}
}

/* After an outage the peer gets the time-out again to make progress. */
static void an_outage_is_no_lack_of_progress(void **state)
{
	struct wire_hello peer = hello(9000, 3600000);
	uint64_t since;
	struct one o;

	(void)state;
	begin(&o, true, LINGER_NS, &peer);
	progress(&o);
	pass(&o, LINGER_NS - NS_PER_S);
	assert_int_equal(o.ended, 0);
	for (since = o.now_ns; o.ended == 0 && o.now_ns - since < 2 * LINGER_NS; pass(&o, NS_PER_S))
		ping(&o);
	assert_int_equal(o.ended, 1);
	assert_in_range(o.now_ns - since, LINGER_NS - NS_PER_S, LINGER_NS + NS_PER_S);
	assert_non_null(strstr(o.why.msg, "no progress"));
	one_fini(&o);
}

/* Control frames arrive, data does not: at the start after the time-out, later as for a lost connection. */
static void a_peer_without_progress(void **state)
{
	struct wire_hello peer = hello(9000, 3600000);
	uint64_t start;
	struct one o;
	int moved;

	(void)state;
	for (moved = 0; moved < 2; moved++) {
		begin(&o, true, LINGER_NS, &peer);
		if (moved)
			progress(&o);
		for (start = o.now_ns; o.ended == 0 && o.now_ns - start < 2 * LINGER_NS; ping(&o))
			pass(&o, NS_PER_S);
		assert_int_equal(o.ended, 1);
		assert_non_null(strstr(o.why.msg, "no progress"));
		assert_int_equal(o.now_ns - start, moved ? LINGER_NS : ONE_TIMEOUT_NS);
		one_fini(&o);
	}
}

/* A client that waits is stopped, then admitted: it does not keep its place for as long as a transfer would linger. */
static void silent_from_the_start(void **state)
{
	struct wire_hello peer = hello(9000, 3600000);
	struct one o;
	uint64_t start;

	(void)state;
	begin(&o, false, LINGER_NS, &peer);
	start = o.now_ns;
	pass(&o, LINGER_NS);
	assert_int_equal(o.ended, 1);
	assert_int_equal(o.now_ns - start, ONE_TIMEOUT_NS);
	one_fini(&o);
}

/* The longer time-out of the two holds, but no peer's beyond what this end lets a session linger. */
static void the_longer_timeout(void **state)
{
	static const struct { uint32_t peers_ms; uint64_t lasts_ns; } cases[] = {
		{ 9000, ONE_TIMEOUT_NS }, { 120000, 120 * NS_PER_S }, { 86400000, LINGER_NS },
	};
	struct wire_hello peer;
	uint64_t start;
	struct one o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		peer = hello(cases[i].peers_ms, 0);
		begin(&o, false, LINGER_NS, &peer);
		start = o.now_ns;
		pass(&o, 3 * 86400 * NS_PER_S);
		assert_int_equal(o.now_ns - start, cases[i].lasts_ns);
		one_fini(&o);
	}
}

/* SIGSTOP, or the suspended laptop: the first tick after an hour finds a peer that had no chance to be heard. */
static void a_stopped_process(void **state)
{
	struct wire_hello peer = hello(9000, 0);
	uint64_t start;
	struct one o;

	(void)state;
	begin(&o, true, LINGER_NS, &peer);
	pass(&o, 2 * NS_PER_S);
	one_tick(&o, 3600 * NS_PER_S);
	assert_int_equal(o.ended, 0);
	start = o.now_ns;
	pass(&o, 2 * ONE_TIMEOUT_NS);
	assert_int_equal(o.ended, 1);
	assert_in_range(o.now_ns - start, ONE_TIMEOUT_NS - 6 * NS_PER_S, ONE_TIMEOUT_NS);
	one_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_lasts_as_long_as_both_allow),
		cmocka_unit_test(an_outage_is_no_lack_of_progress),
		cmocka_unit_test(a_peer_without_progress), cmocka_unit_test(silent_from_the_start),
		cmocka_unit_test(the_longer_timeout),
		cmocka_unit_test(a_stopped_process),
	};

	return cmocka_run_group_tests_name("engine/outages", tests, NULL, NULL);
}
