/* Dead paths are detected while other paths make progress, and only then. The test plays streams and time. */
#include "engine/dead_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/pacer.h"

#define TICK DEAD_PATH_CHECK_NS
#define STREAMS 6           /* 0, 2, 4 on path 0; 1, 3, 5 on path 1 */
#define FIRST 0x15u         /* as masks */
#define SECOND 0x2au

static struct {
	struct dead_path d;
	struct streams_view v;
	struct mono now;
	unsigned decisions;
	uint32_t dead;
} fx;

static int setup(void **state)
{
	unsigned i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	dead_path_init(&fx.d, true, 2);
	fx.v.n_paths = 2;
	fx.v.n_streams = STREAMS;
	for (i = 0; i < STREAMS; i++)
		fx.v.stream[i] = (struct stream_view){ .path = i % 2, .place = i % 2, .since = fx.now,
		    .generation = 1 };
	return 0;
}

/* Seconds pass; the streams of the mask make progress between two checks. Dead paths lose their streams. */
static void pass(double s, unsigned moving)
{
	struct mono end = mono_add_ns(fx.now, (uint64_t)(s * 1e9));
	uint32_t dead;
	unsigned i;

	while (fx.now.ns < end.ns) {
		fx.now = mono_add_ns(fx.now, TICK);
		for (i = 0; i < STREAMS; i++)
			fx.v.stream[i].moved += moving >> i & 1;
		assert_true(dead_path_due(&fx.d, fx.now));
		dead = dead_path_check(&fx.d, &fx.v, fx.now);
		fx.decisions += dead != 0;
		fx.dead |= dead;
		for (i = 0; i < STREAMS; i++)
			if ((dead >> i % 2 & 1) != 0)
				fx.v.stream[i].since.ns = 0;
	}
}

static void is_dead(unsigned path)
{
	assert_int_equal(fx.decisions, 1);
	assert_int_equal(fx.dead, 1u << path);
}

/* ---- The receiver ---- */

static void the_silent_path(void **state)
{
	(void)state;
	pass(10, FIRST | SECOND);
	pass(2.5, SECOND);
	assert_int_equal(fx.decisions, 0);
	pass(1, SECOND);
	is_dead(0);
	pass(10, SECOND);
	assert_int_equal(fx.decisions, 1);
}

static void the_other_path(void **state)
{
	(void)state;
	pass(3.5, FIRST);
	is_dead(1);
}

/* Any stream keeps its path alive. */
static void one_stream_suffices(void **state)
{
	(void)state;
	pass(20, FIRST | 1u << 3);
	assert_int_equal(fx.decisions, 0);
}

/* No path is to blame while none makes progress. */
static void all_paths_are_silent(void **state)
{
	(void)state;
	pass(5, FIRST | SECOND);
	pass(60, 0);
	assert_int_equal(fx.decisions, 0);
	pass(0.5, SECOND); /* the first path with progress shows that the other one is dead */
	is_dead(0);
}

/* New connections count from their start, also with a smaller counter. */
static void reconnected(void **state)
{
	unsigned i;

	(void)state;
	pass(10, FIRST | SECOND);
	pass(3.5, SECOND);
	is_dead(0);
	for (i = 0; i < STREAMS; i += 2)
		fx.v.stream[i] = (struct stream_view){ .since = fx.now, .generation = 2 };
	pass(2.5, SECOND);
	assert_int_equal(fx.decisions, 1);
	pass(1, SECOND);
	assert_int_equal(fx.decisions, 2);
}

static void disabled(void **state)
{
	struct mono later = mono_add_ns(fx.now, 3600 * NS_PER_S);

	(void)state;
	dead_path_init(&fx.d, false, 2); /* the peer opens the connections */
	assert_false(dead_path_due(&fx.d, later));
	assert_int_equal(dead_path_deadline(&fx.d, 6).ns, MONO_NEVER.ns);
	dead_path_init(&fx.d, true, 1);
	assert_false(dead_path_due(&fx.d, later));
	assert_int_equal(dead_path_deadline(&fx.d, 6).ns, MONO_NEVER.ns);
}

static void checks_twice_a_second(void **state)
{
	(void)state;
	assert_true(dead_path_due(&fx.d, fx.now));
	dead_path_check(&fx.d, &fx.v, fx.now);
	assert_int_equal(dead_path_deadline(&fx.d, STREAMS).ns, fx.now.ns + TICK);
	assert_false(dead_path_due(&fx.d, mono_add_ns(fx.now, TICK - 1)));
	assert_true(dead_path_due(&fx.d, mono_add_ns(fx.now, TICK)));
	assert_int_equal(dead_path_deadline(&fx.d, 0).ns, MONO_NEVER.ns); /* no stream is connected */
}

/* Spooled data arrives late. */
static void spooling_relays(void **state)
{
	(void)state;
	fx.v.path[0].spools = true;
	pass(60, SECOND);
	assert_int_equal(fx.decisions, 0);
	pass(3.5, FIRST);
	is_dead(1);
}

/* A low rate leaves gaps between blocks. */
static void rate_limits(void **state)
{
	uint64_t bps = 10000, extra_ns = 2 * pacer_quantum_ns(bps);

	(void)state;
	assert_true(extra_ns > 5 * NS_PER_S);
	fx.v.path[0].rate_bps = bps;
	fx.v.path[1].rate_bps = ENGINE_PATH_IDLE; /* nothing is expected */
	pass(2.5 + (double)extra_ns / 1e9 - 0.5, SECOND);
	assert_int_equal(fx.decisions, 0);
	pass(60, FIRST);
	assert_int_equal(fx.decisions, 0);
	pass(4 + (double)extra_ns / 1e9, SECOND);
	is_dead(0);
}

/* A changed limit restarts the time of its path. */
static void excused(void **state)
{
	(void)state;
	pass(2.5, SECOND);
	dead_path_excuse(&fx.d, 0, fx.now);
	pass(2.5, SECOND);
	assert_int_equal(fx.decisions, 0);
	pass(1, SECOND);
	is_dead(0);
}

/* ---- The sender ---- */

static int setup_sender(void **state)
{
	unsigned i;

	setup(state);
	fx.v.sends = true;
	for (i = 0; i < STREAMS; i++)
		fx.v.stream[i].carries = true;
	return 0;
}

/* A stream without data in transit is not silent. */
static void idle_streams(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < STREAMS; i += 2)
		fx.v.stream[i].carries = false;
	pass(60, SECOND);
	assert_int_equal(fx.decisions, 0);
	fx.v.stream[0].carries = true; /* the others of the path keep it alive, */
	pass(10, SECOND);
	assert_int_equal(fx.decisions, 0);
	fx.v.stream[0].acked = fx.now;
	fx.v.stream[2].carries = fx.v.stream[4].carries = true; /* while they are idle */
	pass(2.5, SECOND);
	assert_int_equal(fx.decisions, 0);
	pass(1, SECOND);
	is_dead(0);
}

/* Acknowledged blocks are progress, without bytes through the connection. */
static void acknowledgments(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		fx.v.stream[1].acked = fx.v.stream[2].acked = fx.now;
		pass(0.5, 0);
	}
	assert_int_equal(fx.decisions, 0);
	for (i = 0; i < 7; i++) {
		fx.v.stream[1].acked = fx.now;
		pass(0.5, 0);
	}
	is_dead(0);
}

#define test(f) cmocka_unit_test_setup(f, setup)
#define test_sender(f) cmocka_unit_test_setup(f, setup_sender)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_silent_path), test(the_other_path), test(one_stream_suffices), test(all_paths_are_silent),
		test(reconnected), test(disabled), test(checks_twice_a_second), test(spooling_relays),
		test(rate_limits), test(excused), test_sender(idle_streams), test_sender(acknowledgments),
	};

	return cmocka_run_group_tests_name("engine/dead_path", tests, NULL, NULL);
}
