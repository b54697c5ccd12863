/* Selection of paths among candidates: the throughput of each path as sampled from its streams, and the decisions for
 * paths that are slow, dead or starved. The test plays streams and time; model/multipath has tests of its own. */
#include "engine/path_select.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/units.h"

#define CANDIDATES 4
#define PLACES 2
#define STREAMS 4        /* 0, 2 in place 0; 1, 3 in place 1 */
#define MBIT UINT64_C(1000000)

static struct {
	struct path_select c;
	struct streams_view v;
	struct path_select_input in;
	struct mono now;
	double bps[CANDIDATES];  /* that each candidate delivers; negative: no connection */
	unsigned replaced;       /* in all steps */
	uint32_t generation;     /* of the last connection */
} fx;

static int setup(void **state)
{
	static const size_t place[] = { 0, 1 };
	unsigned i;

	(void)state;
	memset(&fx, 0, sizeof fx);
	fx.now = (struct mono){ 1000 * NS_PER_S };
	fx.v.n_paths = CANDIDATES;
	fx.v.n_streams = STREAMS;
	fx.in = (struct path_select_input){ .streams = &fx.v, .left_bytes = UINT64_MAX };
	for (i = 0; i < STREAMS; i++)
		fx.v.stream[i] = (struct stream_view){ .place = i % PLACES, .since = fx.now,
		    .generation = ++fx.generation };
	path_select_init(&fx.c, CANDIDATES, place, PLACES, NULL, 7, fx.now);
	fx.c.model.trying = false; /* the others have been tried, without success */
	fx.c.model.known_bps[2] = fx.c.model.known_bps[3] = 0;
	return 0;
}

/* Until the next step is due, each stream moves its part of the candidate's rate. */
static unsigned step(void)
{
	double s = (double)mono_diff_ns(fx.c.next, fx.now) / 1e9, bps;
	unsigned i, replaced;

	for (i = 0; i < STREAMS; i++) {
		struct stream_view *x = &fx.v.stream[i];

		bps = fx.bps[fx.c.model.place[x->place]];
		if (fx.c.model.rate_bps[x->place] > 0)
			bps = fmin(bps, fx.c.model.rate_bps[x->place]);
		if (x->since.ns == 0 && bps >= 0)
			*x = (struct stream_view){ .place = x->place, .since = fx.now, .generation = ++fx.generation,
			    .acked_bytes = x->acked_bytes };
		if (bps < 0)
			x->since.ns = 0;
		else
			x->moved += (uint64_t)(bps * s / 8 / (STREAMS / PLACES));
		x->acked_bytes = x->moved;
		x->acked = bps > 0 ? fx.c.next : x->acked;
	}
	fx.now = fx.c.next;
	replaced = path_select_step(&fx.c, &fx.in, fx.now);
	for (i = 0; i < STREAMS; i++) /* the session connects these streams anew */
		if ((replaced >> i % PLACES & 1) != 0)
			fx.v.stream[i] = (struct stream_view){ .place = i % PLACES, .since = { fx.now.ns + 1 },
			    .generation = ++fx.generation };
	fx.replaced |= replaced;
	return replaced;
}

static void sampled(unsigned place, double bps)
{
	assert_true(fabs(fx.c.sample.observed_bps[place] - bps) <= 0.001 * bps + 1);
}

/* ---- Observing ---- */

static void throughput_of_a_receiver(void **state)
{
	(void)state;
	fx.bps[0] = 30e6;
	fx.bps[1] = 10e6;
	step();
	sampled(0, 30e6);
	sampled(1, 10e6);
	fx.bps[0] = 50e6;
	step();
	sampled(0, 50e6);
	/* a new connection with a counter of its own, also if the counter is larger */
	fx.v.stream[0].generation = ++fx.generation;
	step();
	assert_true(fx.c.sample.observed_bps[0] > 50e6);
	fx.v.stream[0].moved = 0;
	fx.v.stream[0].generation = ++fx.generation;
	step();
	sampled(0, 50e6);
}

/* A sender's rate counts from acknowledgment to acknowledgment, however these lie in the intervals. */
static void throughput_of_a_sender(void **state)
{
	struct stream_view *s = &fx.v.stream[0];

	(void)state;
	fx.v.sends = true;
	s->acked_bytes = 8 * MBIT / 8;
	s->acked = mono_add_ns(fx.now, 800 * NS_PER_MS);
	path_select_step(&fx.c, &fx.in, mono_add_ns(fx.now, NS_PER_S));
	sampled(0, 10e6);
	sampled(1, 0);
	path_select_step(&fx.c, &fx.in, mono_add_ns(fx.now, 2 * NS_PER_S)); /* none in this interval */
	sampled(0, 10e6);
	s->acked_bytes += 26 * MBIT / 8;
	s->acked = mono_add_ns(fx.now, 3400 * NS_PER_MS);
	path_select_step(&fx.c, &fx.in, mono_add_ns(fx.now, 4 * NS_PER_S));
	sampled(0, 10e6);
	path_select_step(&fx.c, &fx.in, mono_add_ns(fx.now, 8 * NS_PER_S));
	sampled(0, 0);
}

static void starved_intervals(void **state)
{
	(void)state;
	step();
	assert_false(fx.c.sample.starved);
	path_select_starved(&fx.c);
	step();
	assert_true(fx.c.sample.starved);
	step(); /* counts for one interval */
	assert_false(fx.c.sample.starved);
	fx.in.peer_busy = true;
	step();
	assert_true(fx.c.sample.starved);
	fx.in.peer_busy = false;
	fx.in.window_bytes = 1000; /* near the end */
	fx.in.left_bytes = 1000;
	step();
	assert_false(fx.c.sample.starved);
	fx.in.left_bytes = 999;
	step();
	assert_true(fx.c.sample.starved);
}

static void length_of_intervals(void **state)
{
	(void)state;
	assert_int_equal(fx.c.next.ns, fx.now.ns + NS_PER_S / 2); /* new paths */
	assert_true(path_select_in_trial(&fx.c));
	step();
	assert_int_equal(fx.c.next.ns, fx.now.ns + NS_PER_S);
	assert_false(path_select_in_trial(&fx.c));
	fx.in.demand_bps = 10 * MBIT; /* 8 blocks on each of two paths */
	step();
	assert_int_equal(fx.c.next.ns, fx.now.ns + (uint64_t)(8e9 * 8 * 262144 * 2 / 10e6));
	fx.in.demand_bps = 1000 * MBIT;
	step();
	assert_int_equal(fx.c.next.ns, fx.now.ns + NS_PER_S);
	fx.in.demand_bps = MBIT / 10;
	step();
	assert_int_equal(fx.c.next.ns, fx.now.ns + 10 * NS_PER_S);
}

/* ---- Deciding ---- */

/* A path without connections for three seconds makes room. */
static void a_path_is_down(void **state)
{
	unsigned i;

	(void)state;
	fx.bps[0] = 30e6;
	fx.bps[1] = -1;
	fx.bps[2] = fx.bps[3] = 20e6;
	for (i = 0; i < 5; i++)
		assert_int_equal(step(), 0);
	assert_int_equal(step(), 2);
	assert_int_equal(fx.c.model.place[0], 0);
	assert_in_range(fx.c.model.place[1], 2, 3);
	assert_non_null(fx.c.model.reason);
	for (i = 0; i < 20; i++) /* the new path has its own three seconds, and connects */
		assert_int_equal(step(), 0);
}

static void connections_come_back_in_time(void **state)
{
	unsigned i;

	(void)state;
	fx.bps[0] = fx.bps[1] = 30e6;
	for (i = 0; i < 30; i++) {
		fx.bps[1] = i % 6 > 3 ? -1 : 30e6;
		assert_int_equal(step(), 0);
	}
}

/* Untried candidates carry data for a few intervals each; the two fastest stay. */
static void the_fastest_candidates_stay(void **state)
{
	static const size_t place[] = { 1, 3 };
	unsigned i;

	(void)state;
	path_select_init(&fx.c, CANDIDATES, place, PLACES, NULL, 7, fx.now);
	fx.bps[0] = 30e6;
	fx.bps[1] = 1e6;
	fx.bps[2] = 20e6;
	fx.bps[3] = 5e6;
	for (i = 0; i < 20; i++)
		step();
	assert_false(path_select_in_trial(&fx.c));
	assert_int_equal(fx.c.model.place[0] + fx.c.model.place[1], 0 + 2);
	for (i = 0; i < 80; i++)
		assert_int_equal(step(), 0);
	assert_true(fx.c.model.rate_bps[0] == 0 && fx.c.model.rate_bps[1] == 0);
}

/* Until the new path is connected, data of the old one is not taken for the new one's. */
static void streams_that_move(void **state)
{
	(void)state;
	fx.bps[0] = fx.bps[1] = 30e6;
	step();
	fx.c.model.measured[0] = 0;
	fx.v.stream[0].moving = fx.v.stream[2].moving = true;
	step();
	assert_true(fx.c.sample.settling[0]);
	assert_false(fx.c.sample.settling[1]);
	fx.v.stream[0].moving = false;
	fx.v.stream[0].since.ns = fx.now.ns + 1;
	fx.v.stream[0].generation = ++fx.generation;
	step();
	assert_true(fx.c.sample.settling[0]); /* not yet for a whole interval */
	step();
	assert_false(fx.c.sample.settling[0]);
}

/* An unmet demand replaces the slow path, until the demand is met; the paths share it. */
static void a_demand_replaces_slow_paths(void **state)
{
	unsigned i;
	double sum;

	(void)state;
	fx.in.demand_bps = 50 * MBIT;
	fx.bps[0] = 30e6;
	fx.bps[1] = fx.bps[2] = 1e6;
	fx.bps[3] = 40e6;
	fx.c.model.known_bps[2] = fx.c.model.known_bps[3] = -1;
	for (i = 0; i < 300; i++)
		step();
	assert_int_equal(fx.replaced, 2);
	assert_int_equal(fx.c.model.place[0], 0);
	assert_int_equal(fx.c.model.place[1], 3);
	sum = fx.c.model.rate_bps[0] + fx.c.model.rate_bps[1];
	assert_true(sum > 48e6 && sum < 55e6);
	fx.replaced = 0;
	for (i = 0; i < 100; i++)
		step();
	assert_int_equal(fx.replaced, 0);
}

/* Intervals with too little data to send are no reason to leave a path. */
static void starved_paths_stay(void **state)
{
	unsigned i;

	(void)state;
	fx.in.demand_bps = 50 * MBIT;
	fx.bps[0] = fx.bps[1] = 1e6;
	fx.bps[2] = fx.bps[3] = 40e6;
	for (i = 0; i < 100; i++) {
		path_select_starved(&fx.c);
		assert_int_equal(step(), 0);
	}
}

#define test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(throughput_of_a_receiver), test(throughput_of_a_sender), test(starved_intervals),
		test(length_of_intervals), test(a_path_is_down), test(connections_come_back_in_time),
		test(the_fastest_candidates_stay), test(streams_that_move), test(a_demand_replaces_slow_paths),
		test(starved_paths_stay),
	};

	return cmocka_run_group_tests_name("engine/path_select", tests, NULL, NULL);
}
