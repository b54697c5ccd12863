/* The link model under a clock of our own: exact times, limits and statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "link.h"

#define MS 1000000ull
#define PACKETS 20000

static struct packet packets[PACKETS];

static struct packet *packet(int i, uint32_t bytes)
{
	packets[i] = (struct packet){ .bytes = bytes };
	return &packets[i];
}

/* Step until nothing is due by now; the arrivals' times go to due[], in order. */
static int drain(struct link *l, uint64_t now_ns, uint64_t *due, int max)
{
	struct packet *p;
	enum link_event ev;
	int n = 0;

	while ((ev = link_step(l, now_ns, &p)) != LINK_NOTHING)
		if (ev == LINK_ARRIVED) {
			assert_true(n < max);
			due[n++] = p->due_ns;
		}
	return n;
}

static void serialises(void **state)
{
	/* 1500 bytes at 12 Mbit/s take exactly 1 ms. */
	struct link_conf c = { .rate_bps = 12000000, .delay_ns = 5 * MS };
	struct link l;
	uint64_t due[3];

	(void)state;
	link_init(&l, &c, 1);
	assert_int_equal(link_next_ns(&l), NEVER_NS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(link_offer(&l, packet(i, 1500), 10 * MS), 1);
	assert_int_equal(l.waiting, 2);
	assert_int_equal(link_next_ns(&l), 11 * MS);
	assert_int_equal(link_arrival_ns(&l), 16 * MS);
	/* A caller that is late by seconds gets the same times. */
	assert_int_equal(drain(&l, 5000 * MS, due, 3), 3);
	assert_int_equal(due[0], 16 * MS);
	assert_int_equal(due[1], 17 * MS);
	assert_int_equal(due[2], 18 * MS);
	assert_int_equal(l.stats.busy_ns, 3 * MS);
	/* The transmitter is idle: the next one starts when it comes. */
	link_offer(&l, packet(0, 750), 6000 * MS);
	assert_int_equal(drain(&l, 7000 * MS, due, 3), 1);
	assert_int_equal(due[0], 6000 * MS + MS / 2 + 5 * MS);
}

static void limits_packets_and_bytes(void **state)
{
	struct link_conf c = { .rate_bps = 12000000, .queue_packets = 25 };
	struct link l;
	int taken = 0;

	(void)state;
	link_init(&l, &c, 1);
	for (int i = 0; i < 40; i++)
		taken += link_offer(&l, packet(i, 1500), 0);
	assert_int_equal(taken, 26); /* 25 wait, one is being sent */
	assert_int_equal(l.stats.drop_queue, 14);
	assert_int_equal(l.stats.most_waiting, 25);

	c = (struct link_conf){ .rate_bps = 12000000, .queue_bytes = 4000 };
	link_init(&l, &c, 1);
	taken = 0;
	for (int i = 0; i < 10; i++)
		taken += link_offer(&l, packet(i, 1500), 0);
	assert_int_equal(taken, 3); /* 3000 bytes wait, 4500 would be too many */
	assert_int_equal(link_offer(&l, packet(11, 1000), 0), 1);
	assert_int_equal(link_offer(&l, packet(12, 1), 0), 0);
}

static void changes_rate_midway(void **state)
{
	struct link_conf c = { .rate_bps = 12000000 };
	struct link l;
	uint64_t due[3];

	(void)state;
	link_init(&l, &c, 1);
	for (int i = 0; i < 2; i++)
		link_offer(&l, packet(i, 1500), 0);
	c.rate_bps = 6000000; /* after a quarter of the first: 3/4 ms become 3/2 */
	link_change(&l, &c, MS / 4);
	assert_int_equal(drain(&l, 100 * MS, due, 3), 2);
	assert_int_equal(due[0], MS / 4 + 3 * MS / 2);
	assert_int_equal(due[1], MS / 4 + 3 * MS / 2 + 2 * MS);
	assert_int_equal(l.stats.busy_ns, due[1]);

	for (int i = 0; i < 3; i++)
		link_offer(&l, packet(i, 1500), 200 * MS);
	c.rate_bps = 0; /* no bottleneck: all at once */
	link_change(&l, &c, 200 * MS);
	assert_int_equal(drain(&l, 200 * MS, due, 3), 3);
	assert_int_equal(due[2], 200 * MS);
	assert_int_equal(link_offer(&l, packet(0, 1500), 300 * MS), 1);
	assert_int_equal(drain(&l, 300 * MS, due, 3), 1);
}

/* 250 kB pass at once, then 1 Mbit/s: 12 packets of 1,000 bytes in 96 ms; what was dropped takes no tokens. */
static void polices(void **state)
{
	struct link_conf c = { .police_bps = 1000000, .police_bytes = 250000 };
	struct link l;
	int i, passed;

	(void)state;
	link_init(&l, &c, 1);
	for (passed = i = 0; i < 1000; i++)
		passed += link_offer(&l, packet(i, 1000), MS);
	assert_int_equal(passed, 250);
	for (passed = i = 0; i < 96; i++)
		passed += link_offer(&l, packet(i, 1000), (uint64_t)(2 + i) * MS);
	assert_int_equal(passed, 12);
	assert_int_equal(l.stats.drop_police, 1000 + 96 - 262);
	for (passed = i = 0; i < 1000; i++) /* no more than the burst, however long nothing comes */
		passed += link_offer(&l, packet(i, 1000), 3600000 * MS);
	assert_int_equal(passed, 250);
}

static void loses_at_random(void **state)
{
	const double n = PACKETS, p = 0.01, sigma = sqrt(n * p * (1 - p));
	struct link_conf c = { .loss_ratio = p };
	struct link l;
	int arrived = 0, runs = 0, was_lost = 0;

	(void)state;
	link_init(&l, &c, 42);
	for (int i = 0; i < PACKETS; i++) {
		int taken = link_offer(&l, packet(i, 100), (uint64_t)i);

		arrived += taken;
		runs += !taken && was_lost;
		was_lost = !taken;
	}
	assert_true(fabs(n - arrived - n * p) < 3 * sigma);
	assert_int_equal(l.stats.drop_loss, PACKETS - arrived);
	assert_true(runs <= 10); /* independent: n p^2 = 2 are expected in a row */

	c.loss_ratio = 1;
	link_init(&l, &c, 42);
	assert_int_equal(link_offer(&l, packet(0, 100), 0), 0);
}

static void lost_packets_use_capacity(void **state)
{
	struct link_conf c = { .rate_bps = 12000000, .loss_ratio = 1 };
	struct link l;
	struct packet *p;

	(void)state;
	link_init(&l, &c, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_offer(&l, packet(i, 1500), 0), 1);
	assert_int_equal(link_step(&l, MS, &p), LINK_LOST);
	assert_ptr_equal(p, &packets[0]);
	assert_int_equal(link_step(&l, MS, &p), LINK_NOTHING);
	assert_int_equal(link_step(&l, 2 * MS, &p), LINK_LOST);
}

/* Jitter of 0..10 ms on packets 1 ms apart; how many come out of order? */
static int jittered(int reorder, double *mean_ms)
{
	struct link_conf c = { .delay_ns = 20 * MS, .jitter_ns = 10 * MS, .reorder = reorder };
	struct link l;
	struct packet *p;
	uint64_t last_ns = 0;
	double sum = 0;
	int overtaken = 0, newest = -1;

	link_init(&l, &c, 7);
	for (int i = 0; i < 5000; i++) {
		link_offer(&l, packet(i, 100), (uint64_t)i * MS);
		while (link_step(&l, (uint64_t)i * MS, &p) == LINK_ARRIVED) {
			int at = (int)(p - packets);
			uint64_t delay_ns = p->due_ns - (uint64_t)at * MS;

			assert_true(p->due_ns >= last_ns); /* in the order of time, always */
			assert_true(delay_ns >= 20 * MS && delay_ns <= 30 * MS);
			last_ns = p->due_ns;
			sum += (double)delay_ns / 1e6;
			overtaken += at < newest;
			newest = at > newest ? at : newest;
		}
	}
	*mean_ms = sum / (double)l.stats.out_packets;
	return overtaken;
}

static void jitters(void **state)
{
	double mean_ms;

	(void)state;
	assert_int_equal(jittered(0, &mean_ms), 0);
	assert_true(jittered(1, &mean_ms) > 1000);
	assert_true(fabs(mean_ms - 25) < 0.2); /* uniform: 5 ms on average */
}

static void is_cut_and_restored(void **state)
{
	struct link_conf c = { .rate_bps = 12000000, .delay_ns = 50 * MS };
	struct link l;
	struct packet *p;
	uint64_t due[3];
	int lost = 0;

	(void)state;
	link_init(&l, &c, 1);
	for (int i = 0; i < 5; i++)
		link_offer(&l, packet(i, 1500), 0);
	assert_int_equal(drain(&l, 2 * MS, due, 0), 0); /* two travel, one is sent, two wait */
	for (p = link_cut(&l); p; p = p->next)
		lost++;
	assert_int_equal(lost, 5);
	assert_int_equal(link_offer(&l, packet(0, 1500), 3 * MS), 0);
	assert_int_equal(l.stats.drop_cut, 6);
	assert_null(link_cut(&l));
	assert_int_equal(link_next_ns(&l), NEVER_NS);
	link_restore(&l);
	link_offer(&l, packet(0, 1500), 10 * MS);
	assert_int_equal(drain(&l, 100 * MS, due, 3), 1);
	assert_int_equal(due[0], 61 * MS);
}

/* ---------------------------------------------------------------- RED */

/* Of n arrivals at a constant queue, the share dropped after the average settled. */
static double red_share(double waiting)
{
	struct red_conf c = { 5, 15, 0.1, 0.02 };
	struct red r;
	struct rng g;
	int dropped = 0;

	red_init(&r);
	rng_init(&g, 3);
	for (int i = 0; i < 2000; i++)
		red_drop(&r, &c, (uint64_t)waiting, (uint64_t)i, 1, &g);
	for (int i = 0; i < PACKETS; i++)
		dropped += red_drop(&r, &c, (uint64_t)waiting, (uint64_t)i, 1, &g);
	return (double)dropped / PACKETS;
}

static void red_drops_early(void **state)
{
	(void)state;
	assert_true(red_share(4) == 0);
	/* p_b = 0.1 * (10-5)/(15-5) = 0.05; spread evenly, gaps are uniform in
	 * 1..1/p_b, so drops come once in (1 + 1/p_b) / 2. */
	assert_true(fabs(red_share(10) - 2 / 21.0) < 0.01);
	assert_true(red_share(20) > 0.3); /* gentle: p_b = 0.1 + 0.9/3 = 0.4 */
	assert_true(red_share(31) == 1);
}

static void red_forgets_when_idle(void **state)
{
	struct red_conf c = { 5, 15, 0.1, 0.02 };
	struct red r;
	struct rng g;

	(void)state;
	red_init(&r);
	rng_init(&g, 3);
	for (int i = 0; i < 2000; i++)
		red_drop(&r, &c, 12, (uint64_t)i, 1, &g);
	assert_true(fabs(r.avg - 12) < 0.01);
	red_idle(&r, 2000);
	/* 100 packet times of silence: 12 * 0.98^101. */
	red_drop(&r, &c, 0, 2100, 1, &g);
	assert_true(fabs(r.avg - 12 * pow(0.98, 101)) < 0.01);
}

static void red_is_part_of_the_link(void **state)
{
	struct link_conf c = { .rate_bps = 12000000, .queue_packets = 1000,
	    .red = { 5, 15, 0.1, 0.02 } };
	struct link l;
	struct packet *p;

	(void)state;
	link_init(&l, &c, 5);
	for (int i = 0; i < 5000; i++) { /* offered 1.25 times the rate */
		link_offer(&l, packet(i, 1500), (uint64_t)i * MS * 8 / 10);
		while (link_step(&l, (uint64_t)i * MS * 8 / 10, &p) != LINK_NOTHING)
			;
	}
	assert_true(l.stats.drop_red > 900 && l.stats.drop_red < 1100);
	assert_int_equal(l.stats.drop_queue, 0);
	assert_true(l.stats.most_waiting < 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serialises),
		cmocka_unit_test(limits_packets_and_bytes),
		cmocka_unit_test(changes_rate_midway),
		cmocka_unit_test(polices),
		cmocka_unit_test(loses_at_random),
		cmocka_unit_test(lost_packets_use_capacity),
		cmocka_unit_test(jitters),
		cmocka_unit_test(is_cut_and_restored),
		cmocka_unit_test(red_drops_early),
		cmocka_unit_test(red_forgets_when_idle),
		cmocka_unit_test(red_is_part_of_the_link),
	};
	return cmocka_run_group_tests_name("lab/link", tests, NULL, NULL);
}
