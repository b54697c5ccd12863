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
	struct match_pace p = match_pace_begin(BLOCK, always);
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

/* Nothing is equal, or the path is faster than the disks: of 1 GiB a fiftieth is compared, of more less. */
static void little_is_compared_in_vain(void **state)
{
	(void)state;
	assert_in_range(compare(4096, 0, 10 * GBPS, GBPS, false), 8, 4096 / 50);
	assert_in_range(compare(4096, 9, 10 * GBPS, GBPS, false), 8, 4096 / 50);
	assert_in_range(compare(4096, 99, GBPS, 10 * GBPS, false), 8, 4096 / 50);
	assert_in_range(compare(1u << 27, 0, 10 * GBPS, GBPS, false), 8, 250);
	assert_in_range(compare(100, 0, 10 * GBPS, GBPS, false), 8, 32);
}

/* Equal blocks behind others are found again, and windows grow up to their limit. */
static void it_recovers(void **state)
{
	struct match_pace p = match_pace_begin(BLOCK, false);
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++)
		match_pace_judge(&p, 0, NS_PER_MS / 2, GBPS);
	assert_true(p.skip == 4 * MATCH_WINDOW_MIN && p.window == MATCH_WINDOW_MIN);
	match_pace_judge(&p, 64u * BLOCK, NS_PER_MS, GBPS);
	assert_true(p.skip == 0 && p.window == MATCH_WINDOW_GROWTH * MATCH_WINDOW_MIN);
	for (i = 0; i < 40; i++)
		match_pace_judge(&p, 64u * BLOCK, NS_PER_MS, GBPS);
	assert_int_equal(p.window, MATCH_WINDOW_MAX);
	for (i = 0; i < 40; i++)
		match_pace_judge(&p, 0, NS_PER_MS, GBPS);
	assert_true(p.skip >= 1u << 31);
}

/* On a long path the next blocks are on their way while a window is compared: it is never idle. */
static void the_path_is_busy_meanwhile(void **state)
{
	struct match_pace p = match_pace_begin(BLOCK, false);

	(void)state;
	match_pace_judge(&p, 0, 100 * NS_PER_MS, GBPS);
	assert_in_range((uint64_t)p.skip * BLOCK, 12000000, 12500000);
	match_pace_judge(&p, 0, 100 * NS_PER_MS, 1e30);
	assert_true(p.skip >= UINT32_MAX / 2);
}

/* Bytes searched in vain while so much is received over a path of this rate, a MiB at a time. */
static uint64_t searched(uint64_t bytes, double path_bps)
{
	struct search_pace p = { SEARCH_BEGIN_BYTES };
	uint64_t sum = 0, got;

	for (got = 0; got < bytes; got += 1 << 20) {
		sum += p.left_bytes;
		search_pace_done(&p, p.left_bytes, 0);
		assert_int_equal(p.left_bytes, 0);
		search_pace_received(&p, 1 << 20, path_bps);
	}
	return sum;
}

/* In vain, a search takes a small part of the time of the path, at any rate; one that finds what it looks for goes
 * on. */
static void a_search_is_paid_by_what_it_finds(void **state)
{
	static const double rates[] = { 0, 1e6, 1e8, GBPS, 8 * GBPS, 100 * GBPS };
	const uint64_t bytes = UINT64_C(10) << 30;
	struct search_pace p = { 1000 };
	double path_s, search_s;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof rates / sizeof *rates; i++) {
		path_s = (double)bytes * 8 / (rates[i] > 0 && rates[i] < 8 * GBPS ? rates[i] : 8 * GBPS);
		search_s = (double)searched(bytes, rates[i]) * 8 / (8 * GBPS);
		assert_true(search_s > path_s / 40 && search_s < path_s / 32 + 0.04);
	}
	search_pace_done(&p, 5000, 0);
	assert_int_equal(p.left_bytes, 0);
	search_pace_done(&p, 262144, 300000);
	assert_int_equal(p.left_bytes, 300000);
	for (i = 0; i < 100; i++)
		search_pace_done(&p, 0, UINT64_C(1) << 40);
	assert_int_equal(p.left_bytes, SEARCH_MAX_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_compared_while_it_pays),
		cmocka_unit_test(little_is_compared_in_vain),
		cmocka_unit_test(the_path_is_busy_meanwhile),
		cmocka_unit_test(a_search_is_paid_by_what_it_finds), cmocka_unit_test(it_recovers),
	};
	return cmocka_run_group_tests_name("engine/match_pace", tests, NULL, NULL);
}
