/* How much of an existing file is compared: all while it pays, and ever less while it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/units.h"
#include "engine/match_pace.h"

#define BLOCK (256u << 10)

/* Windows of a file of n blocks, of which `equal` of 100 in each window are equal; a window is compared at that rate.
 * Returns the number of blocks compared. */
static uint32_t compare(uint32_t n, unsigned equal, double compare_bps, double path_bps, bool always)
{
	struct match_pace p = match_pace_begin(always);
	uint32_t at = 0, compared = 0, window;
	uint64_t ns;

	while (at < n) {
		at += p.skip;
		window = at >= n ? 0 : n - at < p.window ? n - at : p.window;
		compared += window;
		at += window;
		ns = (uint64_t)(window * 8.0 * BLOCK / compare_bps * NS_PER_S);
		match_pace_judge(&p, (uint64_t)window * BLOCK * equal / 100, ns, path_bps);
	}
	return compared;
}

#define GBPS 1e9

static void all_is_compared_while_it_pays(void **state)
{
	(void)state;
	assert_int_equal(compare(100000, 99, 10 * GBPS, GBPS, false), 100000);
	assert_int_equal(compare(100000, 11, 10 * GBPS, GBPS, false), 100000);
	assert_int_equal(compare(100000, 1, 10 * GBPS, 0, false), 100000); /* the path is not known */
	assert_int_equal(compare(100000, 0, GBPS, GBPS, true), 100000);
}

/* Nothing is equal, or the path is faster than the disks: of 1 GiB a tenth is compared, of more less. */
static void little_is_compared_in_vain(void **state)
{
	(void)state;
	assert_in_range(compare(4096, 0, 10 * GBPS, GBPS, false), 64, 4096 / 10);
	assert_in_range(compare(4096, 9, 10 * GBPS, GBPS, false), 64, 4096 / 10);
	assert_in_range(compare(4096, 99, GBPS, 10 * GBPS, false), 64, 4096 / 10);
	assert_in_range(compare(1u << 27, 0, 10 * GBPS, GBPS, false), 64, 2000);
	assert_in_range(compare(100, 0, 10 * GBPS, GBPS, false), 64, 100);
}

/* Equal blocks behind others are found again, and windows grow up to their limit. */
static void it_recovers(void **state)
{
	struct match_pace p = match_pace_begin(false);
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++)
		match_pace_judge(&p, 0, NS_PER_MS, GBPS);
	assert_true(p.skip == 4 * MATCH_WINDOW_MIN && p.window == MATCH_WINDOW_MIN);
	match_pace_judge(&p, 64u * BLOCK, NS_PER_MS, GBPS);
	assert_true(p.skip == 0 && p.window == 2 * MATCH_WINDOW_MIN);
	for (i = 0; i < 40; i++)
		match_pace_judge(&p, 64u * BLOCK, NS_PER_MS, GBPS);
	assert_int_equal(p.window, MATCH_WINDOW_MAX);
	for (i = 0; i < 40; i++)
		match_pace_judge(&p, 0, NS_PER_MS, GBPS);
	assert_true(p.skip >= 1u << 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_compared_while_it_pays),
		cmocka_unit_test(little_is_compared_in_vain),
		cmocka_unit_test(it_recovers),
	};
	return cmocka_run_group_tests_name("engine/match_pace", tests, NULL, NULL);
}
