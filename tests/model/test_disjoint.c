/* Rounds of links without a common host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "model/disjoint.h"
#include "model/rng.h"

#define HOSTS 20
#define LINKS 400

static struct disjoint_link link_[LINKS];
static bool waits[LINKS];
static size_t n;

static void add(int from, int to)
{
	link_[n] = (struct disjoint_link){ from, to };
	waits[n++] = true;
}

/* Takes rounds until no link waits: each link once, no host twice in a round. Returns their number. */
static size_t rounds(size_t max)
{
	size_t out[LINKS], count, i, number = 0, left = n;
	int scratch[2 * HOSTS];
	bool used[HOSTS];

	while ((count = disjoint_round(out, max, link_, waits, n, scratch, HOSTS)) > 0) {
		assert_true(count <= max);
		memset(used, 0, sizeof used);
		for (i = 0; i < count; i++) {
			assert_true(out[i] < n && waits[out[i]]);
			assert_false(used[link_[out[i]].from] || used[link_[out[i]].to]);
			used[link_[out[i]].from] = used[link_[out[i]].to] = true;
			waits[out[i]] = false;
		}
		left -= count;
		number++;
	}
	assert_int_equal(left, 0);
	return number;
}

static void star(void **state)
{
	int i;

	(void)state;
	for (n = 0, i = 1; i < 10; i++)
		add(i, 0);
	assert_int_equal(rounds(16), 9);
}

static void pairs(void **state)
{
	int i;

	(void)state;
	for (n = 0, i = 0; i < 18; i += 2)
		add(i, i + 1);
	assert_int_equal(rounds(16), 1);
	for (n = 0, i = 0; i < 18; i += 2)
		add(i, i + 1);
	assert_int_equal(rounds(4), 3);
	n = 0;
	assert_int_equal(rounds(16), 0);
}

/* The busiest host determines the number of rounds: a relay between sources and a destination. The order of the
 * file would need 9 rounds. */
static void busiest_first(void **state)
{
	(void)state;
	n = 0;
	add(5, 6);
	add(5, 7);
	add(6, 7);
	add(1, 0);
	add(2, 0);
	add(3, 0);
	add(4, 0);
	assert_int_equal(rounds(16), 4);
}

/* Random graphs need at most twice as many rounds as the busiest host has links, less one. */
static void random_graphs(void **state)
{
	struct rng rng = { 11 };
	int degree[HOSTS], most, from, to, trial;
	size_t i;

	(void)state;
	for (trial = 0; trial < 200; trial++) {
		memset(degree, 0, sizeof degree);
		most = 0;
		for (n = 0, i = 0; i < 60; i++) {
			from = (int)(rng_uniform(&rng) * HOSTS);
			to = (int)(rng_uniform(&rng) * HOSTS);
			if (from == to)
				continue;
			add(from, to);
			degree[from]++;
			degree[to]++;
			most = degree[from] > most ? degree[from] : most;
			most = degree[to] > most ? degree[to] : most;
		}
		i = rounds(HOSTS);
		assert_true(i >= (size_t)most && i <= (size_t)(2 * most - 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(pairs),
		cmocka_unit_test(busiest_first),
		cmocka_unit_test(random_graphs),
	};

	return cmocka_run_group_tests_name("model/disjoint", tests, NULL, NULL);
}
