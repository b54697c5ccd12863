#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draw.h"
#include "model/placement.h"

#define WORKERS 8
#define STREAMS 24

static void left_alone(void **state)
{
	const struct placement_stream of[] = { { 0, 100 }, { 0, 100 }, { 1, 100 } };
	const double spare[] = { 0.69, 0 }, alike[] = { 1, 0.9 }, single[] = { 1 };
	const struct placement_stream alone[] = { { 0, 100 }, { 0, 0 }, { 1, 0 } };
	const double full[] = { 1, 0 };
	unsigned s, to;

	(void)state;
	assert_false(placement_find(spare, 2, of, 3, &s, &to));
	assert_false(placement_find(alike, 2, of, 3, &s, &to));
	assert_false(placement_find(single, 1, of, 2, &s, &to));
	assert_false(placement_find(full, 2, of, 0, &s, &to));
	assert_false(placement_find(full, 2, alone, 3, &s, &to)); /* the load would only be elsewhere */
}

static void heavy_streams_part(void **state)
{
	const struct placement_stream of[] = { { 1, 10 }, { 0, 500 }, { 2, 90 }, { 0, 520 } };
	const double busy[] = { 0.98, 0.3, 0.02 };
	unsigned s, to;

	(void)state;
	assert_true(placement_find(busy, 3, of, 4, &s, &to));
	assert_true(s == 1 || s == 3);
	assert_int_equal(to, 2);
}

/* Streams with random demands, up to a core each: the moves end, and then no worker is overloaded while another has
 * room for one of its streams. */
static void moves_end(void **state)
{
	struct rng random = { 5 };
	unsigned round, n, i, s, to, moves;

	(void)state;
	for (round = 0; round < 500; round++) {
		struct placement_stream of[STREAMS];
		double demand[STREAMS], busy[WORKERS], sum[WORKERS], rest;

		n = 1 + rng_below(&random, STREAMS);
		for (i = 0; i < n; i++) {
			of[i].worker = rng_below(&random, WORKERS);
			demand[i] = rng_below(&random, 1000) / 1000.0;
		}
		for (moves = 0;; moves++) {
			for (i = 0; i < WORKERS; i++)
				sum[i] = 0;
			for (i = 0; i < n; i++)
				sum[of[i].worker] += demand[i];
			for (i = 0; i < WORKERS; i++)
				busy[i] = sum[i] < 1 ? sum[i] : 1;
			for (i = 0; i < n; i++) /* an overloaded worker divides itself */
				of[i].bytes = (uint64_t)(1e9 * demand[i] / (sum[of[i].worker] > 1 ? sum[of[i].worker] :
				    1));
			if (!placement_find(busy, WORKERS, of, n, &s, &to))
				break;
			assert_true(s < n && to < WORKERS && of[s].worker != to);
			of[s].worker = to;
			assert_true(moves < 10 * STREAMS);
		}
		for (i = 0; i < n; i++) {
			if (sum[of[i].worker] < 1)
				continue;
			rest = (double)of[i].bytes / 1e9; /* what the stream has of its worker */
			for (to = 0; to < WORKERS; to++)
				assert_true(busy[to] + rest > 1 - PLACEMENT_GAIN_RATIO || rest < PLACEMENT_GAIN_RATIO);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left_alone), cmocka_unit_test(heavy_streams_part), cmocka_unit_test(moves_end),
	};

	return cmocka_run_group_tests_name("model/placement", tests, NULL, NULL);
}
