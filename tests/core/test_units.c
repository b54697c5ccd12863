#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "core/units.h"

static void sizes(void **state)
{
	static const struct { const char *text; uint64_t want; } good[] = {
		{ "0", 0 }, { "1", 1 }, { "1B", 1 }, { "1kB", 1000 }, { "1KB", 1000 },
		{ "1KiB", 1024 }, { "1.5GB", 1500000000 }, { "0.5 MiB", 524288 },
		{ "10TB", 10000000000000 }, { "2TiB", 2199023255552 }, { ".5kB", 500 },
	};
	static const char *const bad[] = {
		"", " ", "-1", "+1", "1e3", "inf", "nan", "0x10", "1.2.3", ".",
		"1GBB", "1 G B", "1s", "kB", "1\n", " 1", "99999999999999999999",
		"20000000TB",
	};
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(units_parse_size(good[i].text, &v), 0);
		assert_int_equal(v, good[i].want);
	}
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		v = 77;
		assert_int_equal(units_parse_size(bad[i], &v), -1);
		assert_int_equal(v, 77);
	}
}

static void rates_and_times(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(units_parse_rate("94Mbit/s", &v), 0);
	assert_int_equal(v, 94000000);
	assert_int_equal(units_parse_rate("2.5Gbit/s", &v), 0);
	assert_int_equal(v, 2500000000);
	assert_int_equal(units_parse_rate("100MB/s", &v), 0);
	assert_int_equal(v, 800000000);
	assert_int_equal(units_parse_rate("12 MiB/s", &v), 0);
	assert_int_equal(v, 12 * 8 * 1048576);
	assert_int_equal(units_parse_rate("1.5KB/s", &v), 0);
	assert_int_equal(v, 12000);
	assert_int_equal(units_parse_rate("10MB", &v), -1);
	assert_int_equal(units_parse_rate("10M", &v), -1);
	assert_int_equal(units_parse_rate("10Mb/s", &v), -1);
	assert_int_equal(units_parse_rate("10mb/s", &v), -1);
	assert_int_equal(units_parse_rate("10Mbps", &v), -1);
	assert_int_equal(units_parse_time("0.25s", &v), 0);
	assert_int_equal(v, 250000000);
	assert_int_equal(units_parse_time("30", &v), 0);
	assert_int_equal(v, 30 * NS_PER_S);
	assert_int_equal(units_parse_time("20ms", &v), 0);
	assert_int_equal(v, 20 * NS_PER_MS);
	assert_int_equal(units_parse_time("2h", &v), 0);
	assert_int_equal(v, 7200 * NS_PER_S);
	assert_int_equal(units_parse_time("3m", &v), 0);
	assert_int_equal(v, 180 * NS_PER_S);
	assert_int_equal(units_parse_time("90d", &v), 0);
	assert_int_equal(v, 90 * 86400 * NS_PER_S);
}

static int64_t when(const char *text)
{
	int64_t s = -1;

	return units_parse_when(text, 1000000000, &s) == 0 ? s : -1;
}

static void times_of_day(void **state)
{
	static const char *const bad[] = { "", "soon", "@", "@x", "@-1", "@0", "2026-13-01", "2026-11-30 ",
		"2026-11-30T",
		"2026-11-30Tnoon", "2026-11-30T12:00x", "-1d", "40000d", "1969-12-31Z" };
	size_t i;

	(void)state;
	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_int_equal(when("1d"), 1000000000 - 86400);
	assert_int_equal(when("90"), 1000000000 - 90);
	assert_int_equal(when("@1700000000"), 1700000000);
	assert_int_equal(when("2023-11-14T22:13:20Z"), 1700000000);
	assert_int_equal(when("2023-11-15 00:13:20"), 1700000000);
	assert_int_equal(when("2023-11-14T22:13Z"), 1700000000 - 20);
	assert_int_equal(when("2023-11-15"), 1700000000 - 22 * 3600 - 13 * 60 - 20 + 22 * 3600);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(when(bad[i]), -1);
}

static int64_t next_time(const char *text, int64_t now)
{
	int64_t s = -1;

	return units_parse_next(text, now, &s) == 0 ? s : -1;
}

/* By the clock of central Europe: summer time began on 2026-03-29, and ended on 2026-10-25, at 01:00 UTC. */
static void next_times(void **state)
{
	const int64_t day = 86400, hour = 3600, summer = 1774746000, winter = 1792890000;
	static const char *const bad[] = { "", "24:60", "06", "6", "1h", "06:00x", "@1774746000", "2026-03-29T01:59",
		"25:00", "-1:00" };
	size_t i;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(next_time("06:00", summer - 5 * hour), summer + 3 * hour); /* an hour earlier than before */
	assert_int_equal(next_time("06:00", winter - 5 * hour), winter + 4 * hour);
	assert_int_equal(next_time("06:00", winter + 4 * hour), winter + 4 * hour + day); /* not now */
	assert_int_equal(next_time("06:00:01", winter + 4 * hour), winter + 4 * hour + 1);
	assert_int_equal(next_time("02:30", winter - 3 * hour), winter - hour / 2); /* comes twice */
	assert_int_equal(next_time("02:30", winter), winter + hour / 2);
	assert_int_equal(next_time("02:30", winter + hour), winter + hour / 2 + day);
	assert_true(next_time("02:30", summer - hour) >= summer - hour / 2 && /* does not come */
	    next_time("02:30", summer - hour) <= summer + hour / 2);
	assert_int_equal(next_time("2026-03-29T03:00", summer - 1), summer);
	assert_int_equal(next_time("2026-03-30", summer), summer + 21 * hour);
	assert_int_equal(next_time("@1774746001", summer), summer + 1);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(next_time(bad[i], summer), -1);
}

static void texts(void **state)
{
	char b[UNITS_TEXT_BYTES];

	(void)state;
	assert_string_equal(units_size_text(b, 0), "0 B");
	assert_string_equal(units_size_text(b, 999), "999 B");
	assert_string_equal(units_size_text(b, 1500), "1.50 kB");
	assert_string_equal(units_size_text(b, 1500000000), "1.50 GB");
	assert_string_equal(units_size_text(b, 999999999), "1.00 GB");
	assert_string_equal(units_size_text(b, UINT64_MAX), "18446744 TB");
	assert_string_equal(units_rate_text(b, 412e6), "412 Mbit/s");
	assert_string_equal(units_rate_text(b, 4e12), "4000 Gbit/s");
	assert_string_equal(units_rate_text(b, -1), "0 bit/s");
	assert_string_equal(units_time_text(b, 0.25), "0.25 s");
	assert_string_equal(units_time_text(b, 59.4), "59 s");
	assert_string_equal(units_time_text(b, 61), "1 m 01 s");
	assert_string_equal(units_time_text(b, 3720), "1 h 02 m");
	assert_string_equal(units_time_text(b, 1e300), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(rates_and_times),
		cmocka_unit_test(times_of_day), cmocka_unit_test(next_times), cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests_name("core/units", tests, NULL, NULL);
}
