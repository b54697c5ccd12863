#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/timetable.h"

#define AT(h, m) (3600u * (h) + 60u * (m))
#define MBIT 1000000ull

static struct timetable parse(const char *text)
{
	struct timetable t;
	struct ptcp_err e;

	if (timetable_parse(&t, text, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return t;
}

static void one_rate(void **state)
{
	struct timetable t = parse("1.5Mbit/s");

	(void)state;
	assert_false(timetable_varies(&t));
	assert_int_equal(timetable_bps(&t, 0), 1500000);
	assert_int_equal(timetable_bps(&t, 86399), 1500000);
	t = parse("0");
	assert_int_equal(timetable_bps(&t, 12), 0);
	t = parse("else=2 Mbit/s");
	assert_int_equal(timetable_bps(&t, 12), 2 * MBIT);
}

static void by_day(void **state)
{
	struct timetable t = parse("08:00-18:00=200Mbit/s,else=0");

	(void)state;
	assert_true(timetable_varies(&t));
	assert_int_equal(timetable_bps(&t, AT(8, 0) - 1), 0);
	assert_int_equal(timetable_bps(&t, AT(8, 0)), 200 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(18, 0) - 1), 200 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(18, 0)), 0);
	t = parse("08:00-18:00=1Mbit/s"); /* nothing said of the rest */
	assert_int_equal(timetable_bps(&t, AT(19, 0)), 0);
	t = parse("else=3Mbit/s,12:00-13:00=2Mbit/s,08:00-24:00=1Mbit/s"); /* the first that fits */
	assert_int_equal(timetable_bps(&t, AT(12, 30)), 2 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(13, 0)), 1 * MBIT);
	assert_int_equal(timetable_bps(&t, 86399), 1 * MBIT);
	assert_int_equal(timetable_bps(&t, 0), 3 * MBIT);
}

static void over_midnight(void **state)
{
	struct timetable t = parse("22:30-06:00=5Mbit/s,else=1Mbit/s");

	(void)state;
	assert_int_equal(timetable_bps(&t, AT(22, 30) - 1), 1 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(22, 30)), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, 86399), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, 0), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(6, 0) - 1), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, AT(6, 0)), 1 * MBIT);
	t = parse("18:00-00:00=5Mbit/s");
	assert_int_equal(timetable_bps(&t, AT(17, 59)), 0);
	assert_int_equal(timetable_bps(&t, 86399), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, 0), 0);
}

/* Europe/Berlin, written out so that no zone files are needed. On 29 March 2026 there is no 02:30, on 25
 * October 2026 it is there twice. */
static void daylight_saving(void **state)
{
	struct timetable t = parse("02:00-03:00=5Mbit/s,else=1Mbit/s");
	const time_t spring = 1774746000, autumn = 1792890000; /* 01:00 UTC of those days */
	int i;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(timetable_second(spring - 1), AT(2, 0) - 1);
	assert_int_equal(timetable_second(spring), AT(3, 0));
	for (i = -3600; i < 3600; i += 60)
		assert_int_equal(timetable_bps(&t, timetable_second(spring + i)), 1 * MBIT);
	assert_int_equal(timetable_second(autumn - 1), AT(3, 0) - 1);
	assert_int_equal(timetable_second(autumn), AT(2, 0));
	for (i = -3600; i < 3600; i += 60)
		assert_int_equal(timetable_bps(&t, timetable_second(autumn + i)), 5 * MBIT);
	assert_int_equal(timetable_bps(&t, timetable_second(autumn - 3601)), 1 * MBIT);
	assert_int_equal(timetable_bps(&t, timetable_second(autumn + 3600)), 1 * MBIT);
	unsetenv("TZ");
	tzset();
}

static void malformed(void **state)
{
	static const struct { const char *text, *part; } bad[] = {
		{ "", "''" }, { "fast", "'fast'" }, { "-1", "'-1'" }, { "9kbit/s", "'9kbit/s'" },
		{ "08:00-18:00", "" }, { "08:00-18:00=", "''" }, { "8:00-18:00=1Mbit/s", "'8:00-18:00=1Mbit/s'" },
		{ "08:00-18:60=1Mbit/s", "18:60" }, { "08:00-25:00=1Mbit/s", "25:00" },
		{ "08:00-24:01=1Mbit/s", "24:01" }, { "08:00_18:00=1Mbit/s", "08:00_18:00" },
		{ "08:00-18:00x=1Mbit/s", "18:00x" }, { "08:00-08:00=1Mbit/s", "begins when it ends" },
		{ "00:00-24:00=1Mbit/s", "begins when it ends" }, { "else=0,else=0", "'else=0'" },
		{ "else=x", "'x'" }, { "08:00-18:00=1Mbit/s,", "''" }, { ",", "''" }, { "=1Mbit/s", "'=1Mbit/s'" },
		{ "els=1Mbit/s", "'els=1Mbit/s'" }, { "08:00-18:00=1Mbit/s,else\n=0", "'else\\012=0'" },
		{ "08:00-18:00=1Mbit/s,5Mbit/s", "'5Mbit/s'" },
	};
	char many[40 * (TIMETABLE_RANGES + 1)] = "", zeros[TIMETABLE_BYTES + 1];
	struct timetable t;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(timetable_parse(&t, bad[i].text, &e), PTCP_EUSAGE);
		if (strstr(e.msg, bad[i].part) == NULL || strchr(e.msg, '(') == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
	}
	for (i = 0; i <= TIMETABLE_RANGES; i++)
		strcat(many, i > 0 ? ",01:00-02:00=0" : "01:00-02:00=0");
	assert_int_equal(timetable_parse(&t, many, &e), PTCP_EUSAGE);
	many[strlen(many) - strlen(",01:00-02:00=0")] = '\0';
	assert_int_equal(timetable_parse(&t, many, &e), 0);
	memset(zeros, '0', TIMETABLE_BYTES);
	zeros[TIMETABLE_BYTES] = '\0';
	assert_int_equal(timetable_parse(&t, zeros, &e), PTCP_EUSAGE);
	assert_int_equal(timetable_parse(&t, zeros + 1, &e), 0);
}

static void percentages(void **state)
{
	static const struct { const char *text, *part; } bad[] = {
		{ "", "''" }, { "0", "'0'" }, { "101", "'101'" }, { "1e1", "'1e1'" }, { "5%", "'5%'" }, { ".", "'.'" },
		{ "08:00-18:00=5", "add else=PCT" }, { "08:00-18:00=0,else=5", "'0'" }, { "else=5Mbit/s", "'5Mbit/s'" },
	};
	struct timetable t;
	struct ptcp_err e;
	size_t i;

	(void)state;
	assert_int_equal(timetable_parse_percent(&t, "08:00-18:00=2.5,else=50", &e), 0);
	assert_true(timetable_varies(&t));
	assert_true(timetable_percent(&t, AT(8, 0)) == 2.5 && timetable_percent(&t, AT(18, 0)) == 50);
	assert_int_equal(timetable_parse_percent(&t, "100", &e), 0);
	assert_true(!timetable_varies(&t) && timetable_percent(&t, 0) == 100);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(timetable_parse_percent(&t, bad[i].text, &e), PTCP_EUSAGE);
		if (strstr(e.msg, bad[i].part) == NULL || strchr(e.msg, '(') == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rate),
		cmocka_unit_test(by_day),
		cmocka_unit_test(over_midnight),
		cmocka_unit_test(daylight_saving),
		cmocka_unit_test(malformed),
		cmocka_unit_test(percentages),
	};

	return cmocka_run_group_tests_name("core/timetable", tests, NULL, NULL);
}
