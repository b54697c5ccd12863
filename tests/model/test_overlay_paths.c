#include "model/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/bound.h"
#include "model/divide.h"
#include "model/overlay.h"
#include "model/overlay_paths.h"

static void by_hand(void **state)
{
	/* 0 -> 3: direct 10 Mbit/s, 10 ms; over 1: 100 Mbit/s, 30 + 30 ms; over 2:
	 * 50 Mbit/s, 20 + 5 ms, whose second link is faster. */
	struct paths_link links[] = {
		{ 0, 3, 10e6, 0.010 }, { 0, 1, 100e6, 0.030 }, { 1, 3, 100e6, 0.030 },
		{ 0, 2, 50e6, 0.020 }, { 2, 3, 80e6, 0.005 },
	};
	bool relay[] = { false, true, true, false };
	struct paths_graph g = { 4, 5, relay, links };
	struct paths_node scratch[4];
	size_t found, rows[3][3];
	struct paths_path p = { .links = rows[0] };
	struct paths_path m[] = { { .links = rows[0] }, { .links = rows[1] }, { .links = rows[2] } };

	(void)state;
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 3, 1000, scratch, NULL), 0);
	assert_int_equal(p.hops, 1);
	assert_near(paths_delivery_s(&p, 1000), 0.0108, 1e-12);
	/* 100 kB: 90, 68 and 41 ms */
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 3, 100000, scratch, NULL), 0);
	assert_int_equal(p.hops, 2);
	assert_int_equal(p.links[0], 3);
	assert_int_equal(p.links[1], 4);
	assert_near(p.rate_bps, 50e6, 0);
	assert_near(p.delay_s, 0.025, 1e-12);
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 3, 10000000, scratch, NULL), 0);
	assert_int_equal(p.links[0], 1);
	/* Stored whole at 1: 0.8 + 0.03 twice; at 2: 1.6 + 0.02 + 1 + 0.005. */
	assert_int_equal(paths_quickest(&p, &g, PATHS_STORED, 0, 3, 10000000, scratch, NULL), 0);
	assert_int_equal(p.links[0], 1);
	assert_near(paths_delivery_s(&p, 10000000), 1.66, 1e-12);
	assert_near(p.rate_bps, 50e6, 1e-12);

	relay[1] = false;
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 3, 10000000, scratch, NULL), 0);
	assert_int_equal(p.links[0], 3);
	relay[1] = true;
	assert_int_equal(bound_greedy(m, 3, &found, &g, 0, 3, 100000, scratch, NULL), 0);
	assert_int_equal(found, 3);
	assert_int_equal(m[0].links[0], 3);
	assert_int_equal(m[1].links[0], 1);
	assert_int_equal(m[2].links[0], 0);
	assert_near(links[4].rate_bps, 30e6, 0);
	assert_int_equal(bound_greedy(m, 3, &found, &g, 0, 3, 100000, scratch, NULL),
	    PTCP_EINFEASIBLE);
}

/* 0.3 - 0.1 - 0.2 is not 0 in binary: nothing is left all the same. */
static void rounding_leaves_nothing(void **state)
{
	struct paths_link links[] = {
		{ 0, 1, 0.3, 0.001 }, { 1, 2, 0.1, 0.001 }, { 1, 2, 0.2, 0.002 },
		{ 1, 2, 5, 0.003 },
	};
	struct paths_graph g = { 3, 4, NULL, links };
	struct paths_node scratch[3];
	size_t one[2], two[2];
	struct paths_path p[] = {
		{ .rate_bps = 0.1, .hops = 2, .links = one }, { .rate_bps = 0.2, .hops = 2, .links = two }
	};

	(void)state;
	one[0] = two[0] = 0;
	one[1] = 1;
	two[1] = 2;
	paths_take(&g, &p[0]);
	paths_take(&g, &p[1]);
	assert_true(links[0].rate_bps == 0);
	assert_int_equal(paths_quickest(&p[0], &g, PATHS_PIPELINED, 0, 2, 1, scratch, NULL),
	    PTCP_EINFEASIBLE);
}

/* ---- Against every path there is ---- */

struct search {
	const struct overlay *o;
	size_t to;
	double bits, best;
	bool stored, seen[OVERLAY_HOSTS];
};

/* Depth first; a prefix that is no better than the best is not followed: it can
 * only get slower and longer. */
static void every_path(struct search *s, size_t at, double rate, double delay)
{
	double cost = s->bits / rate + delay;
	size_t i;

	if (cost >= s->best)
		return;
	if (at == s->to) {
		s->best = cost;
		return;
	}
	s->seen[at] = true;
	for (i = 0; i < s->o->graph.link_count; i++) {
		const struct paths_link *l = &s->o->links[i];

		if (l->from != at || s->seen[l->to] || !(l->rate_bps > 0) ||
		    (at != 0 && !s->o->relay[at]))
			continue;
		every_path(s, l->to, s->stored ? 1 / (1 / rate + 1 / l->rate_bps) :
		    fmin(rate, l->rate_bps), delay + l->delay_s);
	}
	s->seen[at] = false;
}

static double enumerate(const struct overlay *o, double bits, bool stored)
{
	struct search s = { o, o->graph.hosts - 1, bits, INFINITY, stored, { false } };

	every_path(&s, 0, INFINITY, 0);
	return s.best;
}

/* Dijkstra with the paper's key, bits / (least rate so far) + delay so far. */
static double heuristic(const struct overlay *o, double bits)
{
	double rate[OVERLAY_HOSTS], delay[OVERLAY_HOSTS], key[OVERLAY_HOSTS];
	bool done[OVERLAY_HOSTS] = { false };
	size_t i, at, to = o->graph.hosts - 1;

	for (i = 0; i <= to; i++)
		key[i] = INFINITY;
	key[0] = delay[0] = 0;
	rate[0] = INFINITY;
	for (;;) {
		for (at = to + 1, i = 0; i <= to; i++)
			if (!done[i] && isfinite(key[i]) && (at > to || key[i] < key[at]))
				at = i;
		if (at > to || at == to)
			return at > to ? INFINITY : key[to];
		done[at] = true;
		for (i = 0; i < o->graph.link_count; i++) {
			const struct paths_link *l = &o->links[i];
			double r = fmin(rate[at], l->rate_bps), k;

			if (l->from != at || !(l->rate_bps > 0) || (at != 0 && !o->relay[at]))
				continue;
			k = bits / r + delay[at] + l->delay_s;
			if (k < key[l->to]) {
				key[l->to] = k;
				rate[l->to] = r;
				delay[l->to] = delay[at] + l->delay_s;
			}
		}
	}
}

static void equals_enumeration(void **state)
{
	static struct overlay o;
	struct paths_node scratch[OVERLAY_HOSTS];
	size_t links[OVERLAY_HOSTS];
	struct paths_path p = { .links = links };
	struct rng r = { 1 };
	double best, ratio, worst = 1;
	int round, rc, reached = 0, worse = 0, kind;
	uint64_t size;

	(void)state;
	for (round = 0; round < 1000; round++) {
		overlay_random(&o, 5 + rng_below(&r, 16), &r);
		size = (uint64_t)pow(10, 3 + 7 * rng_uniform(&r));
		for (kind = 0; kind < 2; kind++) {
			best = enumerate(&o, 8 * (double)size, kind == PATHS_STORED);
			rc = paths_quickest(&p, &o.graph, kind, 0, o.graph.hosts - 1, size,
			    scratch, NULL);
			assert_int_equal(rc, isfinite(best) ? 0 : PTCP_EINFEASIBLE);
			if (rc < 0)
				continue;
			assert_near(paths_delivery_s(&p, size), best, 1e-12);
			if (kind == PATHS_STORED)
				continue;
			reached++;
			ratio = heuristic(&o, 8 * (double)size) / best;
			assert_true(ratio >= 1 - 1e-12);
			worse += ratio > 1 + 1e-9;
			worst = fmax(worst, ratio);
		}
	}
	print_message("# the paper's Dijkstra is worse in %.1f %%, up to %.3f times\n",
	    100.0 * worse / reached, worst);
	assert_true(reached > 900);
	assert_true(worse > reached / 100 && worst > 1.02);
}

/* Each of m paths is the quickest on what those before it left, a path is a walk
 * from one end to the other, and no link carries more than it has. */
static void each_next_is_exact(void **state)
{
	static struct overlay o, left;
	struct paths_node scratch[OVERLAY_HOSTS];
	size_t rows[4][OVERLAY_HOSTS], found, i, j, at;
	struct paths_path p[4];
	double used[OVERLAY_LINKS];
	struct rng r = { 2 };
	int round;

	(void)state;
	for (i = 0; i < 4; i++)
		p[i].links = rows[i];
	for (round = 0; round < 300; round++) {
		overlay_random(&o, 5 + rng_below(&r, 16), &r);
		left = o;
		left.graph.links = left.links;
		if (bound_greedy(p, 4, &found, &left.graph, 0, o.graph.hosts - 1, 10000000,
		    scratch, NULL) < 0)
			continue;
		left = o;
		left.graph.links = left.links;
		memset(used, 0, sizeof used);
		for (i = 0; i < found; i++) {
			assert_near(paths_delivery_s(&p[i], 10000000),
			    enumerate(&left, 80e6, false), 1e-9);
			paths_take(&left.graph, &p[i]);
			for (at = 0, j = 0; j < p[i].hops; j++) {
				assert_int_equal(o.links[p[i].links[j]].from, at);
				at = o.links[p[i].links[j]].to;
				used[p[i].links[j]] += p[i].rate_bps;
			}
			assert_int_equal(at, o.graph.hosts - 1);
		}
		for (i = 0; i < o.graph.link_count; i++)
			assert_true(used[i] <= o.links[i].rate_bps * (1 + 1e-9));
		if (found < 4)
			assert_true(isinf(enumerate(&left, 80e6, false)));
	}
}

static void what_is_no_overlay(void **state)
{
	struct paths_link links[] = { { 0, 1, 1e6, 0.1 } };
	struct paths_graph g = { 2, 1, NULL, links };
	struct paths_node scratch[2];
	size_t hop[2];
	struct paths_path p = { .rate_bps = 7, .links = hop };
	double flow[1];

	(void)state;
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 0, 9, scratch, NULL), PTCP_EUSAGE);
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 2, 9, scratch, NULL), PTCP_EUSAGE);
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 1, 0, 9, scratch, NULL),
	    PTCP_EINFEASIBLE);
	links[0].rate_bps = NAN;
	assert_int_equal(paths_quickest(&p, &g, PATHS_PIPELINED, 0, 1, 9, scratch, NULL), PTCP_EUSAGE);
	links[0] = (struct paths_link){ 0, 1, 1e6, -1 };
	assert_int_equal(paths_quickest(&p, &g, PATHS_STORED, 0, 1, 9, scratch, NULL), PTCP_EUSAGE);
	links[0] = (struct paths_link){ 0, 5, 1e6, 1 };
	assert_int_equal(paths_quickest(&p, &g, PATHS_STORED, 0, 1, 9, scratch, NULL), PTCP_EUSAGE);
	links[0] = (struct paths_link){ 0, 1, 0, 1 };
	assert_int_equal(paths_quickest(&p, &g, PATHS_STORED, 0, 1, 9, scratch, NULL),
	    PTCP_EINFEASIBLE);
	assert_true(isinf(bound_s(&g, 0, 1, 9, flow, scratch)));
	assert_near(p.rate_bps, 7, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(rounding_leaves_nothing),
		cmocka_unit_test(equals_enumeration),
		cmocka_unit_test(each_next_is_exact),
		cmocka_unit_test(what_is_no_overlay),
	};
	return cmocka_run_group_tests_name("model/overlay_paths", tests, NULL, NULL);
}
