/* Which of several paths each stream takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "session/paths.h"

static const struct remote there = { .host = "h", .port = 7811 };

static void count(const struct paths *p, unsigned streams, unsigned has[PTCP_PATHS_MAX])
{
	unsigned i;

	memset(has, 0, PTCP_PATHS_MAX * sizeof *has);
	for (i = 0; i < streams; i++)
		has[paths_of_stream(p, i)]++;
}

static void in_turn(void **state)
{
	const char *const names[] = { "direct", "a", "b:1,c" };
	struct paths p = { .n = 0 };
	unsigned i;

	(void)state;
	assert_int_equal(paths_parse(&p, names, 3, &there, NULL), 0);
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		assert_int_equal(paths_of_stream(&p, i), i % 3);
	paths_fini(&p);
	assert_int_equal(paths_parse(&p, NULL, 0, &there, NULL), 0);
	assert_int_equal(p.n, 1);
	assert_int_equal(paths_of_stream(&p, PTCP_STREAMS_MAX - 1), 0);
	paths_fini(&p);
}

/* However many streams there are: one each first, and then nobody is a whole stream away from what is due, beyond those
 * that each path has in any case. */
static void in_proportion(void **state)
{
	static const double shares[][3] = { { 3, 1, 0 }, { 1, 1, 1 }, { 5e9, 4e9, 1e9 },
		{ 1, 1e-9, 1e6 }, { 0, 0, 0 } };
	const char *const names[] = { "direct", "a", "b" };
	unsigned has[PTCP_PATHS_MAX], n, i, k, j;
	struct paths p = { .n = 0 };

	(void)state;
	assert_int_equal(paths_parse(&p, names, 3, &there, NULL), 0);
	for (i = 0; i < sizeof shares / sizeof *shares; i++) {
		paths_deal(&p, shares[i]);
		for (n = 3; n <= PTCP_STREAMS_MAX; n++) {
			count(&p, n, has);
			for (k = 0; k < 3; k++) {
				assert_true(has[k] >= 1);
				/* a stream moved from k to j would make them no more even */
				for (j = 0; j < 3; j++)
					if (has[k] > 1)
						assert_true(shares[i][k] / has[k] >= shares[i][j] / (has[j] + 1));
			}
		}
	}
	paths_deal(&p, shares[0]);
	count(&p, 9, has);
	assert_int_equal(has[0], 6);
	assert_int_equal(has[1], 2);
	assert_int_equal(has[2], 1);
	paths_fini(&p);
}

/* The first path is drawn by the bandwidths; unknown ones count as the mean of the known. */
static void drawn_by_bandwidth(void **state)
{
	const char *const names[] = { "a", "b", "c" };
	const double bps[] = { 3e6, 1e6, 0 }, wrong[] = { 1, -1, 1 };
	struct paths p = { .n = 0 };
	unsigned came[3] = { 0 };
	struct ptcp_err e;
	uint64_t seed;

	(void)state;
	assert_int_equal(paths_parse(&p, names, 3, &there, NULL), 0);
	for (seed = 0; seed < 6000; seed++) {
		assert_int_equal(paths_choose(&p, 1, bps, seed, &e), 0);
		came[paths_of_stream(&p, 0)]++;
	}
	assert_in_range(came[0], 2850, 3150);
	assert_in_range(came[1], 900, 1100);
	assert_in_range(came[2], 1850, 2150);
	assert_int_equal(paths_choose(&p, 1, wrong, 1, &e), PTCP_EUSAGE);
	paths_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(in_proportion),
		cmocka_unit_test(drawn_by_bandwidth),
	};

	return cmocka_run_group_tests_name("session/paths", tests, NULL, NULL);
}
