/* Windows in which nothing runs: over days on which clocks are put forward or back, in several zones; the ends of spans
 * are those that a walk from minute to minute finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/blackout.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0" /* half an hour */
#define NUUK "<-02>2<-01>,M3.5.0/-1,M10.5.0/0"           /* puts its clock forward on Saturday evening */
#define KOLKATA "IST-5:30"

static void set_zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static struct blackout parse(const char *text)
{
	struct blackout b;
	struct ptcp_err e;

	if (blackout_parse(&b, text, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return b;
}

static int64_t utc(const char *text)
{
	struct tm tm = { 0 };

	assert_non_null(strptime(text, "%Y-%m-%d %H:%M", &tm));
	return (int64_t)timegm(&tm);
}

static const struct row { const char *zone, *windows, *from, *begin, *end; } rows[] = {
	/* an ordinary day: the next window after `from`, in UTC */
	{ "UTC0", "08:00-18:00", "2026-06-01 00:00", "2026-06-01 08:00", "2026-06-01 18:00" },
	{ KOLKATA, "08:00-18:00", "2026-06-01 00:00", "2026-06-01 02:30", "2026-06-01 12:30" },
	{ "UTC0", "22:30-06:00", "2026-06-01 12:00", "2026-06-01 22:30", "2026-06-02 06:00" },
	{ "UTC0", "Mon-Fri 08:00-18:00", "2026-06-05 18:00", "2026-06-08 08:00", "2026-06-08 18:00" }, /* Friday */
	{ "UTC0", "Sat-Sun 00:00-24:00", "2026-06-05 18:00", "2026-06-06 00:00", "2026-06-08 00:00" },
	{ "UTC0", "Sat 00:00-24:00,Sun 00:00-24:00", "2026-06-05 18:00", "2026-06-06 00:00", "2026-06-08 00:00" },
	{ "UTC0", "Fri 22:00-02:00", "2026-06-06 03:00", "2026-06-12 22:00", "2026-06-13 02:00" },
	{ "UTC0", "Sun 23:00-01:00", "2026-06-06 03:00", "2026-06-07 23:00", "2026-06-08 01:00" },
	{ "UTC0", "12:00-13:00,13:00-14:00", "2026-06-06 03:00", "2026-06-06 12:00", "2026-06-06 14:00" },
	/* forward: 02:00 is 03:00 */
	{ BERLIN, "01:00-02:30", "2026-03-28 23:00", "2026-03-29 00:00", "2026-03-29 01:00" },
	{ BERLIN, "02:30-04:00", "2026-03-28 23:00", "2026-03-29 01:00", "2026-03-29 02:00" },
	{ BERLIN, "02:00-03:00", "2026-03-28 23:00", "2026-03-30 00:00", "2026-03-30 01:00" }, /* not that day */
	{ BERLIN, "08:00-18:00", "2026-03-28 23:00", "2026-03-29 06:00", "2026-03-29 16:00" },
	{ BERLIN, "22:00-08:00", "2026-03-28 12:00", "2026-03-28 21:00", "2026-03-29 06:00" }, /* 9 hours */
	{ NEW_YORK, "22:00-08:00", "2026-03-07 20:00", "2026-03-08 03:00", "2026-03-08 12:00" },
	{ LORD_HOWE, "02:10-03:00", "2026-10-03 00:00", "2026-10-03 15:30", "2026-10-03 16:00" },
	{ NUUK, "23:30-24:00", "2026-03-28 12:00", "2026-03-30 00:30", "2026-03-30 01:00" }, /* no 23:00 to 24:00 */
	/* back: 02:00 to 03:00 comes twice */
	{ BERLIN, "02:00-03:00", "2026-10-24 20:00", "2026-10-25 00:00", "2026-10-25 02:00" },
	{ BERLIN, "02:30-03:00", "2026-10-24 20:00", "2026-10-25 00:30", "2026-10-25 01:00" },
	{ BERLIN, "02:30-03:00", "2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00" }, /* again */
	{ BERLIN, "22:00-08:00", "2026-10-24 12:00", "2026-10-24 20:00", "2026-10-25 07:00" }, /* 11 hours */
	{ NEW_YORK, "00:30-01:30", "2026-11-01 03:00", "2026-11-01 04:30", "2026-11-01 05:30" },
	{ LORD_HOWE, "01:00-02:00", "2026-04-04 06:00", "2026-04-04 14:00", "2026-04-04 15:30" },
};

static void days_of_shifts(void **state)
{
	struct blackout_span before, within;
	struct blackout b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_zone(rows[i].zone);
		b = parse(rows[i].windows);
		before = blackout_span(&b, utc(rows[i].from));
		within = blackout_span(&b, before.until_s);
		if (before.closed || !within.closed || before.until_s != utc(rows[i].begin) ||
		    within.until_s != utc(rows[i].end))
			fail_msg("row %zu: %s after %s: from %lld to %lld, should be %lld to %lld", i, rows[i].windows,
			    rows[i].from, (long long)before.until_s, (long long)within.until_s,
			    (long long)utc(rows[i].begin), (long long)utc(rows[i].end));
	}
}

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static void draw_window(char *text, size_t cap)
{
	static const char *const days[] = { "", "Mon ", "Sun ", "Mon-Fri ", "Sat-Sun ", "Sat ", "Fri-Mon " };
	unsigned from = draw(1440), until = draw(1440);

	snprintf(text, cap, "%s%02u:%02u-%02u:%02u", days[draw(7)], from / 60, from % 60,
	    until == from ? 24 : until / 60, until == from ? 0 : until % 60);
}

/* Ends of spans, also where windows overlap or touch. */
static void minute_by_minute(void **state)
{
	static const char *const zones[] = { "UTC0", BERLIN, NEW_YORK, LORD_HOWE, NUUK, KOLKATA };
	static const char *const shifts[] = { "2026-03-28 00:00", "2026-10-24 00:00", "2026-03-07 12:00",
		"2026-10-31 12:00", "2026-10-03 00:00", "2026-04-04 00:00" };
	char text[128], one[64];
	struct blackout b, cached;
	struct ptcp_err e;
	unsigned i, k;

	(void)state;
	for (i = 0; i < 600; i++) {
		int64_t at_s = utc(shifts[draw(6)]) + 60 * (int64_t)draw(3000), walk_s;
		struct blackout_span s;

		set_zone(zones[i % 6]);
		draw_window(text, sizeof text);
		for (k = draw(3); k > 0; k--) {
			draw_window(one, sizeof one);
			snprintf(text + strlen(text), sizeof text - strlen(text), ",%s", one);
		}
		if (blackout_parse(&b, text, &e) < 0)
			continue; /* covers the week */
		s = blackout_span(&b, at_s);
		for (walk_s = at_s; walk_s < s.until_s && walk_s < at_s + 8 * 86400; walk_s += 60)
			if (blackout_span(&b, walk_s).closed != s.closed)
				fail_msg("%s in %s: changes at %lld, not %lld", text, zones[i % 6], (long long)walk_s,
				    (long long)s.until_s);
		assert_true(s.until_s == INT64_MAX || blackout_span(&b, s.until_s).closed != s.closed);
		cached = b;
		for (k = 0; k < 20; k++) { /* also if the clock is put back */
			walk_s = at_s + draw(400000);
			assert_int_equal(blackout_at(&cached, walk_s).until_s, blackout_span(&b, walk_s).until_s);
			assert_int_equal(blackout_at(&cached, walk_s).closed, blackout_span(&b, walk_s).closed);
		}
	}
	assert_false(blackout_at(NULL, 1).closed);
}

static void malformed(void **state)
{
	static const struct { const char *text, *part; } bad[] = {
		{ "", "''" }, { "8:00-18:00", "'8:00-18:00'" }, { "08:00-18:60", "not a window" },
		{ "08:00-24:01", "not a window" }, { "08:00-08:00", "begins when it ends" },
		{ "24:00-08:00", "begins when it ends" }, { "Mon", "'Mon'" }, { "Mon-Fri08:00-18:00", "not a window" },
		{ "Mo 08:00-18:00", "not a window" }, { "mon 08:00-18:00", "not a window" },
		{ "Mon-Fry 08:00-18:00", "not a window" }, { "08:00-18:00,", "''" }, { "08:00-18:00 ", "not a window" },
		{ "00:00-24:00", "covers the week" }, { "00:00-12:00,12:00-24:00", "covers the week" },
		{ "Mon-Sun 18:00-06:00,06:00-18:00", "covers the week" }, { "08:00-18:00\n", "\\012" },
	};
	char many[64 * (BLACKOUT_WINDOWS + 1)] = "08:00-09:00";
	struct blackout b;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(blackout_parse(&b, bad[i].text, &e), PTCP_EUSAGE);
		if (strstr(e.msg, bad[i].part) == NULL || strchr(e.msg, '(') == NULL)
			fail_msg("%s: %s", bad[i].text, e.msg);
	}
	for (i = 1; i < BLACKOUT_WINDOWS; i++)
		strcat(many, ",08:00-09:00");
	assert_int_equal(blackout_parse(&b, many, &e), 0);
	strcat(many, ",08:00-09:00");
	assert_int_equal(blackout_parse(&b, many, &e), PTCP_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(days_of_shifts),
		cmocka_unit_test(minute_by_minute),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
