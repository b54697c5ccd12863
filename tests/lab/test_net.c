/* Networks of links and the clock that stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "rng.h"
#include "vclock.h"

#define MS 1000000ull
#define LEFT 4 /* hosts are nodes 0..3, routers 4 and 5 */
#define RIGHT 5
#define MAX_PACKETS 4000

struct seen {
	uint64_t due_ns[MAX_PACKETS];
	struct packet *packet[MAX_PACKETS];
	int delivered, released;
};

static void deliver(void *arg, struct packet *p)
{
	struct seen *s = arg;

	s->due_ns[s->delivered] = p->due_ns;
	s->packet[s->delivered++] = p;
}

static void release(void *arg, struct packet *p)
{
	struct seen *s = arg;

	(void)p;
	s->released++;
}

/* 0 and 1 on the left, 2 and 3 on the right of a bottleneck of 12 Mbit/s, 10 ms. */
static void dumbbell(struct net *n, struct seen *s)
{
	struct link_conf edge = { .delay_ns = 2 * MS };
	struct link_conf middle = { .rate_bps = 12000000, .delay_ns = 10 * MS,
	    .queue_packets = 25 };

	memset(s, 0, sizeof *s);
	assert_int_equal(net_init(n, 6, 4, 10), 0);
	n->deliver = deliver;
	n->release = release;
	n->arg = s;
	for (int i = 0; i < 4; i++) {
		net_add_link(n, i, i < 2 ? LEFT : RIGHT, &edge, 1);
		net_add_link(n, i < 2 ? LEFT : RIGHT, i, &edge, 1);
	}
	net_add_link(n, LEFT, RIGHT, &middle, 1);
	net_add_link(n, RIGHT, LEFT, &middle, 1);
	assert_int_equal(net_route(n), 0);
}

static void routes(void **state)
{
	struct net n;
	struct seen s;

	(void)state;
	dumbbell(&n, &s);
	assert_int_equal(n.link[net_hop(&n, 0, 2)].to, LEFT);
	assert_int_equal(n.link[net_hop(&n, LEFT, 2)].to, RIGHT);
	assert_int_equal(n.link[net_hop(&n, LEFT, 1)].to, 1);
	assert_int_equal(n.link[net_hop(&n, RIGHT, 0)].to, LEFT);
	net_fini(&n);
}

/* 0 to 2 by way of host 1 would be two links; by the routers it is three. */
static void hosts_do_not_forward(void **state)
{
	static const int links[][2] = { { 0, 1 }, { 1, 2 }, { 0, 3 }, { 3, 4 }, { 4, 2 } };
	struct link_conf c = { .rate_bps = 0 };
	struct net n;

	(void)state;
	assert_int_equal(net_init(&n, 5, 3, 5), 0);
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		net_add_link(&n, links[i][0], links[i][1], &c, 1);
	assert_int_equal(net_route(&n), 0);
	assert_int_equal(net_hop(&n, 0, 2), 2);
	assert_int_equal(net_hop(&n, 0, 1), 0);
	assert_int_equal(net_hop(&n, 2, 0), -1);
	net_fini(&n);
}

static void shares_a_bottleneck(void **state)
{
	static struct packet p[20];
	struct net n;
	struct seen s;

	(void)state;
	dumbbell(&n, &s);
	for (int i = 0; i < 20; i++) { /* from 0 and 1 by turns, all at once */
		p[i] = (struct packet){ .bytes = 1500, .to = (uint16_t)(2 + i % 2) };
		net_inject(&n, &p[i], i % 2, 0);
	}
	/* The look-ahead knows delays, not destinations: over LEFT to 0 or 1 at least. */
	assert_int_equal(net_next_ns(&n), 4 * MS);
	net_run(&n, 4 * MS);
	assert_int_equal(net_next_ns(&n), 15 * MS);
	net_run(&n, 1000 * MS);
	assert_int_equal(s.delivered, 20);
	for (int i = 0; i < 20; i++) /* one each ms after 2 + 1 + 10 + 2 */
		assert_int_equal(s.due_ns[i], (uint64_t)(15 + i) * MS);
	net_fini(&n);
}

/* Whoever calls often sees what one sees who calls at the latest allowed times. */
static void does_not_depend_on_when_it_runs(void **state)
{
	static struct packet p[2][2000];
	struct net n[2];
	static struct seen s[2];

	(void)state;
	for (int way = 0; way < 2; way++) {
		struct rng g;
		uint64_t t = 0;

		rng_init(&g, 9);
		dumbbell(&n[way], &s[way]);
		for (int i = 0; i < 2000; i++) {
			p[way][i] = (struct packet){ .bytes = 40 + (uint32_t)(rng_next(&g) % 1460),
			    .to = (uint16_t)(rng_next(&g) % 4) };
			t += rng_next(&g) % (MS / 2);
			for (uint64_t at = t - t % 1000; way == 1 && at < t; at += 100)
				net_run(&n[way], at);
			net_run(&n[way], t);
			net_inject(&n[way], &p[way][i], (int)(rng_next(&g) % 4), t);
		}
		net_run(&n[way], t + 1000 * MS);
		assert_int_equal(s[way].delivered + s[way].released, 2000);
	}
	assert_int_equal(s[0].delivered, s[1].delivered);
	assert_true(s[0].released > 0);
	assert_memory_equal(s[0].due_ns, s[1].due_ns, sizeof s[0].due_ns);
	net_fini(&n[0]);
	net_fini(&n[1]);
}

/* net_next_ns() promises that nothing is delivered earlier. */
static void looks_ahead_truly(void **state)
{
	static struct packet p[500];
	struct net n;
	static struct seen s;
	struct rng g;
	uint64_t t = 0;

	(void)state;
	rng_init(&g, 10);
	dumbbell(&n, &s);
	for (int i = 0; i < 500; i++) {
		uint64_t promised;
		int before;

		p[i] = (struct packet){ .bytes = 1500, .to = (uint16_t)(rng_next(&g) % 4) };
		net_inject(&n, &p[i], (int)(rng_next(&g) % 4), t);
		promised = net_next_ns(&n);
		before = s.delivered;
		t += rng_next(&g) % (3 * MS);
		if (promised > t)
			promised = t;
		net_run(&n, promised - (promised > 0));
		assert_int_equal(s.delivered, before);
		net_run(&n, t);
	}
	net_fini(&n);
}

static void cuts_and_drops(void **state)
{
	struct packet p[3] = { { .bytes = 1500, .to = 2 }, { .bytes = 1500, .to = 2 },
	    { .bytes = 1500, .to = 0 } };
	struct net n;
	struct seen s;

	(void)state;
	dumbbell(&n, &s);
	net_inject(&n, &p[0], 0, 0);
	net_run(&n, 5 * MS);
	net_cut(&n, net_hop(&n, LEFT, 2));
	assert_int_equal(s.released, 1);
	net_inject(&n, &p[1], 0, 5 * MS);
	net_run(&n, 100 * MS);
	assert_int_equal(s.released, 2);
	link_restore(&n.link[net_hop(&n, LEFT, 2)].link);
	net_inject(&n, &p[1], 0, 100 * MS);
	net_inject(&n, &p[2], 0, 100 * MS); /* to itself: nowhere to go */
	net_run(&n, 200 * MS);
	assert_int_equal(s.delivered, 1);
	assert_int_equal(n.unroutable, 1);
	net_fini(&n);
}

static void clock_stops(void **state)
{
	struct vclock c;

	(void)state;
	vclock_init(&c, 100 * MS);
	assert_int_equal(vclock_tick(&c, 101 * MS, 0), 101 * MS);
	/* A sleep as long as it was meant is none of the machine's doing. */
	assert_int_equal(vclock_tick(&c, 151 * MS, 150 * MS), 151 * MS);
	assert_int_equal(c.stalls, 0);
	/* 2 ms late is not a stall, more is: the whole of it. */
	assert_int_equal(vclock_tick(&c, 162 * MS, 160 * MS), 162 * MS);
	assert_int_equal(vclock_tick(&c, 175 * MS, 170 * MS), 170 * MS);
	assert_int_equal(c.stalls, 1);
	assert_int_equal(c.stalled_ns, 5 * MS);
	/* Busy without a sleep counts from the last look at the clock. */
	assert_int_equal(vclock_tick(&c, 178 * MS, 100 * MS), 170 * MS);
	assert_int_equal(c.longest_ns, 5 * MS);
	assert_int_equal(vclock_real(&c, 171 * MS), 179 * MS);
	assert_int_equal(vclock_real(&c, UINT64_MAX), UINT64_MAX);
	/* Woken early, by a packet. */
	assert_int_equal(vclock_tick(&c, 180 * MS, 500 * MS), 172 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes),
		cmocka_unit_test(hosts_do_not_forward),
		cmocka_unit_test(shares_a_bottleneck),
		cmocka_unit_test(does_not_depend_on_when_it_runs),
		cmocka_unit_test(looks_ahead_truly),
		cmocka_unit_test(cuts_and_drops),
		cmocka_unit_test(clock_stops),
	};
	return cmocka_run_group_tests_name("lab/net", tests, NULL, NULL);
}
