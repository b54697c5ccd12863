#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
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
		"2026-11-30Tnoon", "2026-11-30T12:00x", "-1d", "40000d", "1969-12-31Z", "2026-02-29", "2100-02-29",
		"2026-02-31", "2026-04-31T10:00", "2026-00-10", "2026-01-00", "2026-11-30T24:00", "2026-11-30T25:00",
		"2026-11-30T12:60", "2026-11-30T12:00:60", "2026-1-30", "2026-01-3", "26-01-03", " 2026-01-03",
		"2026- 1-03", "+2026-01-03", "2026-11-30T1:00", "2026-11-30TT01:00", "@253402300800",
		"@99999999999999999999", "Today", "yesterday ", "tomorrow" };
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
	assert_int_equal(when("2024-02-29"), 1709164800 - 7200);
	assert_int_equal(when("2000-02-29Z"), 951782400);
	assert_int_equal(when("today"), 1000000000 - 1000000000 % 86400 - 7200); /* 2001-09-09T03:46 here */
	assert_int_equal(when("yesterday"), when("today") - 86400);
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(when(bad[i]), -1);
}

/* Each day of the calendar, and no other, against gmtime(). */
static void days_of_the_calendar(void **state)
{
	int year, month, day, good = 0;
	char text[48];
	struct tm tm;
	time_t t;

	(void)state;
	for (year = 1970; year < 2210; year++)
		for (month = 0; month < 15; month++)
			for (day = 0; day < 35; day++) {
				tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
				t = timegm(&tm);
				snprintf(text, sizeof text, "%04d-%02d-%02dT00:00:01Z", year, month, day);
				if (tm.tm_mday == day && tm.tm_mon == month - 1) {
					assert_int_equal(when(text), t + 1);
					good++;
				} else {
					assert_int_equal(when(text), -1);
				}
			}
	assert_int_equal(good, 240 * 365 + 58); /* leap years from 1972 to 2208, without 2100 and 2200 */
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
		"25:00", "24:00", "-1:00", "6:00", "06:0", "06:00:60", " 06:00", "2026-04-31", "2027-02-29T06:00",
		"yesterday" };
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

static void deadlines(void **state)
{
	static const char *const bad[] = { "", "0", "0.5s", "-1h", "2026-03-29T01:59", "25:00", "2026-02-31", "soon" };
	const int64_t summer = 1774746000;
	int64_t s;
	size_t i;

	(void)state;
	assert_int_equal(units_parse_deadline("90m", summer, &s), 0);
	assert_int_equal(s, summer + 5400);
	assert_int_equal(units_parse_deadline("06:00", summer - 5 * 3600, &s), 0);
	assert_int_equal(s, summer + 3 * 3600); /* the night has an hour less */
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(units_parse_deadline(bad[i], summer, &s), -1);
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
	assert_string_equal(units_size_text(b, UINT64_MAX), "18447 PB");
	assert_string_equal(units_rate_text(b, 412e6), "412 Mbit/s");
	assert_string_equal(units_rate_text(b, 4e12), "4.00 Tbit/s");
	assert_string_equal(units_rate_text(b, -1), "0 bit/s");
	for (uint64_t v = 1; v < UINT64_MAX / 20; v *= 10) { /* each unit that is shown is read */
		uint64_t size, rate;

		assert_int_equal(units_parse_size(units_size_text(b, v), &size), 0);
		assert_int_equal(units_parse_rate(units_rate_text(b, (double)v), &rate), 0);
		assert_true(size == v && rate == v);
	}
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
		cmocka_unit_test(times_of_day),
		cmocka_unit_test(days_of_the_calendar),
		cmocka_unit_test(next_times),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests_name("core/units", tests, NULL, NULL);
}
