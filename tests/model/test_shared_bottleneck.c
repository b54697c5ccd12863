/* Shared bottlenecks of networks with max-min fair links, found from the rates of the tests alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "model/rng.h"
#include "model/shared_bottleneck.h"

#define LINKS 8
#define PIPES 3

static double own[LINKS];            /* rate of each link's own bottleneck */
static double pipe_bps[PIPES];
static int pipe_of[LINKS];           /* -1: none */
static size_t n;
static double noise;
static struct rng rng;
static unsigned tests;

static void network(size_t links)
{
	size_t i;

	n = links;
	noise = 0;
	rng = (struct rng){ 3 };
	for (i = 0; i < LINKS; i++) {
		own[i] = 100e6;
		pipe_of[i] = -1;
	}
}

/* Max-min fair rates of the active links. */
static void carry(const bool *active, double *rate)
{
	double left, need;
	size_t i, count;
	int p;

	for (i = 0; i < n; i++)
		rate[i] = active[i] ? own[i] : 0;
	for (p = 0; p < PIPES; p++) {
		bool capped[LINKS] = { false };

		for (;;) { /* links below the equal share keep their rate */
			bool changed = false;

			left = pipe_bps[p];
			count = 0;
			for (i = 0; i < n; i++)
				if (active[i] && pipe_of[i] == p) {
					left -= capped[i] ? own[i] : 0;
					count += !capped[i];
				}
			need = count > 0 ? left / (double)count : INFINITY;
			for (i = 0; i < n; i++)
				if (active[i] && pipe_of[i] == p && !capped[i] && own[i] <= need)
					capped[i] = changed = true;
			if (!changed)
				break;
		}
		for (i = 0; i < n; i++)
			if (active[i] && pipe_of[i] == p && !capped[i])
				rate[i] = need;
	}
	for (i = 0; i < n; i++)
		rate[i] *= 1 + noise * (2 * rng_uniform(&rng) - 1);
}

static void find(struct shared *s)
{
	double apart[LINKS], rate[LINKS], alone[LINKS];
	bool run[LINKS] = { false };
	size_t i;

	for (i = 0; i < n; i++) {
		memset(run, 0, sizeof run);
		run[i] = true;
		carry(run, alone);
		apart[i] = alone[i];
	}
	shared_init(s, apart, n);
	for (tests = 0; shared_next(s, run); tests++) {
		assert_true(tests < LINKS * LINKS);
		carry(run, rate);
		shared_take(s, rate);
	}
}

/* The groups are the pipes. */
static void assert_found(const struct shared *s)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		assert_int_equal(s->group[i] >= 0, pipe_of[i] >= 0);
		for (j = 0; j < i; j++)
			if (pipe_of[i] >= 0 && pipe_of[j] >= 0)
				assert_int_equal(s->group[i] == s->group[j], pipe_of[i] == pipe_of[j]);
		if (pipe_of[i] >= 0)
			assert_true(fabs(s->groups[s->group[i]].rate_bps / pipe_bps[pipe_of[i]] - 1) <
			    0.01 + 2 * noise);
	}
}

static void independent(void **state)
{
	struct shared s;

	(void)state;
	network(LINKS);
	noise = 0.03;
	find(&s);
	assert_int_equal(s.n_groups, 0);
	assert_int_equal(tests, 1);
	network(1);
	find(&s);
	assert_int_equal(tests, 0);
}

static void one_pipe(void **state)
{
	struct shared s;

	(void)state;
	network(4);
	pipe_bps[0] = 100e6;
	pipe_of[1] = pipe_of[3] = 0;
	find(&s);
	assert_found(&s);
	assert_int_equal(tests, 2);
	pipe_of[0] = 0;
	noise = 0.03;
	find(&s);
	assert_found(&s);
}

static void two_pipes(void **state)
{
	struct shared s;

	(void)state;
	network(7);
	pipe_bps[0] = 80e6;
	pipe_bps[1] = 120e6;
	pipe_of[0] = pipe_of[2] = pipe_of[5] = 0;
	pipe_of[1] = pipe_of[6] = 1;
	noise = 0.02;
	find(&s);
	assert_found(&s);
	assert_int_equal(s.n_groups, 2);
}

/* A link that is slow by itself loses less, but belongs to the pipe. */
static void unequal(void **state)
{
	struct shared s;

	(void)state;
	network(3);
	pipe_bps[0] = 100e6;
	pipe_of[0] = pipe_of[2] = 0;
	own[2] = 55e6;
	find(&s);
	assert_found(&s);
	assert_int_equal(s.n_groups, 1);
}

/* No two of them fill the pipe. */
static void only_many(void **state)
{
	struct shared s;

	(void)state;
	network(5);
	pipe_bps[0] = 200e6;
	pipe_of[0] = pipe_of[1] = pipe_of[2] = pipe_of[4] = 0;
	find(&s);
	assert_found(&s);
	assert_int_equal(s.n_groups, 1);
	assert_int_equal(tests, 5); /* all, three pairs, the four */
}

/* A measurement that fails proves nothing. */
static void failures(void **state)
{
	double apart[] = { 1e6, 1e6, 1e6 }, lost[] = { NAN, NAN, NAN }, half[] = { 0.5e6, 0.5e6, 1e6 };
	bool run[3];
	struct shared s;

	(void)state;
	shared_init(&s, apart, 3);
	assert_true(shared_next(&s, run));
	shared_take(&s, lost);
	assert_false(shared_next(&s, run));
	shared_init(&s, apart, 3);
	shared_take(&s, half);
	assert_true(shared_next(&s, run));
	assert_true(run[0] && run[1] && !run[2]);
	shared_take(&s, lost);
	assert_false(shared_next(&s, run));
	assert_int_equal(s.n_groups, 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(independent),
		cmocka_unit_test(one_pipe),
		cmocka_unit_test(two_pipes),
		cmocka_unit_test(unequal),
		cmocka_unit_test(only_many),
		cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests_name("model/shared_bottleneck", all, NULL, NULL);
}
