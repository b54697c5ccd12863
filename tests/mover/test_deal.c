/* Dealing streams and rates to movers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "mover/deal.h"

#define N 12

static unsigned of(const uint32_t *place, unsigned n, uint32_t id)
{
	unsigned i, k = 0;

	for (i = 0; i < n; i++)
		k += place[i] == id;
	return k;
}

static void evenly(void **state)
{
	const uint32_t mover[] = { 11, 12, 13, 14 };
	uint32_t place[N] = { 0 };
	unsigned m, n, i;

	(void)state;
	for (m = 1; m <= 4; m++)
		for (n = 0; n <= N; n++) {
			memset(place, 0, sizeof place);
			deal_streams(place, n, NULL, mover, m);
			for (i = 0; i < m; i++)
				assert_in_range(of(place, n, mover[i]), n / m, (n + m - 1) / m);
			assert_false(deal_streams(place, n, NULL, mover, m));
		}
}

/* A newcomer takes from those with most, and no other stream moves. */
static void a_newcomer(void **state)
{
	const uint32_t mover[] = { 11, 12, 13 };
	uint32_t place[N] = { 0 }, before[N];
	unsigned i, moved = 0;

	(void)state;
	deal_streams(place, N, NULL, mover, 2);
	memcpy(before, place, sizeof place);
	assert_true(deal_streams(place, N, NULL, mover, 3));
	for (i = 0; i < N; i++)
		if (place[i] != before[i]) {
			assert_int_equal(place[i], 13);
			moved++;
		}
	assert_int_equal(moved, 4);
}

static void a_loss(void **state)
{
	const uint32_t mover[] = { 11, 12, 13 };
	uint32_t place[N] = { 0 }, before[N];
	unsigned i;

	(void)state;
	deal_streams(place, N, NULL, mover, 3);
	memcpy(before, place, sizeof place);
	assert_true(deal_streams(place, N, NULL, mover, 2));
	for (i = 0; i < N; i++)
		assert_true(before[i] == 13 ? place[i] == 11 || place[i] == 12 : place[i] == before[i]);
	assert_int_equal(of(place, N, 11), 6);
	assert_true(deal_streams(place, N, NULL, mover, 0));
	assert_int_equal(of(place, N, 0), N);
	assert_false(deal_streams(place, N, NULL, mover, 0));
}

/* Each mover has streams of each path: the loss of a path idles none. */
static void paths(void **state)
{
	const uint32_t mover[] = { 11, 12, 13 };
	unsigned m, n_paths, n, i, k, on, least, most;
	uint8_t path[N];
	uint32_t place[N];

	(void)state;
	for (m = 1; m <= 3; m++)
		for (n_paths = 1; n_paths <= 3; n_paths++)
			for (n = m; n <= N; n++) {
				memset(place, 0, sizeof place);
				for (i = 0; i < n; i++)
					path[i] = (uint8_t)(i % n_paths);
				deal_streams(place, n, path, mover, 1); /* the others join later */
				deal_streams(place, n, path, mover, m);
				for (k = 0; k < m; k++) {
					assert_in_range(of(place, n, mover[k]), n / m, (n + m - 1) / m);
					least = N;
					most = 0;
					for (i = 0; i < n_paths; i++) {
						on = 0;
						for (unsigned j = 0; j < n; j++)
							on += place[j] == mover[k] && path[j] == i;
						least = on < least ? on : least;
						most = on > most ? on : most;
					}
					if (most > least + 2 || (n >= 2 * m * n_paths && least == 0))
						fail_msg("%u streams, %u paths, %u movers: %u to %u", n,
						    n_paths, m, least, most);
				}
				assert_false(deal_streams(place, n, path, mover, m));
			}
	/* As many movers as paths, dealt at once. */
	memset(place, 0, sizeof place);
	for (i = 0; i < N; i++)
		path[i] = (uint8_t)(i % 2);
	deal_streams(place, N, path, mover, 2);
	for (k = 0; k < 2; k++)
		for (i = 0; i < 2; i++) {
			on = 0;
			for (n = 0; n < N; n++)
				on += place[n] == mover[k] && path[n] == i;
			assert_int_equal(on, N / 4);
		}
}

static uint64_t sum(const uint64_t *share, unsigned n)
{
	uint64_t all = 0;

	while (n > 0)
		all += share[--n];
	return all;
}

static void rates(void **state)
{
	uint64_t share[3] = { 0 }, used[3] = { 0 };

	(void)state;
	deal_rate(share, used, 3, 0);
	assert_int_equal(sum(share, 3), 0);
	deal_rate(share, used, 3, 90000000);
	assert_int_equal(share[0], 30000000);
	assert_int_equal(share[2], 30000000);
	/* One is on a slow disk: the others get what it leaves, within a second. */
	used[0] = 8000000;
	used[1] = used[2] = 30000000;
	deal_rate(share, used, 3, 90000000);
	assert_int_equal(share[0], 10000000);
	assert_int_equal(share[1], 40000000);
	assert_int_equal(share[2], 40000000);
	/* It recovers: what it uses of its share shows that it wants more. */
	used[0] = 10000000;
	used[1] = used[2] = 40000000;
	deal_rate(share, used, 3, 90000000);
	assert_int_equal(share[0], 30000000);
	/* Another limit, or another mover: even shares again. */
	deal_rate(share, used, 3, 30000000);
	assert_int_equal(share[1], 10000000);
	deal_rate(share, used, 2, 30000000);
	assert_int_equal(share[1], 15000000);
}

/* Whatever the movers use, the shares never sum to more than the limit, and nobody starves. */
static void any_use(void **state)
{
	uint64_t share[5] = { 0 }, used[5] = { 0 };
	unsigned i, k;

	(void)state;
	srand(1);
	for (i = 0; i < 100000; i++) {
		for (k = 0; k < 5; k++)
			used[k] = rand() % 3 == 0 ? 0 : (uint64_t)rand() % (share[k] + share[k] / 10 + 1);
		deal_rate(share, used, 5, 1000000);
		assert_in_range(sum(share, 5), 1000000 - 30, 1000000);
		for (k = 0; k < 5; k++)
			assert_true(share[k] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evenly), cmocka_unit_test(a_newcomer), cmocka_unit_test(a_loss),
		cmocka_unit_test(paths), cmocka_unit_test(rates), cmocka_unit_test(any_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
