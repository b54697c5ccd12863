#include "core/units.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit size_units[] = {
	{ "", 1 }, { "B", 1 },
	{ "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 }, { "PB", 1e15 },
	{ "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 },
	{ "TiB", 1099511627776.0 }, { "PiB", 1125899906842624.0 },
	{ NULL, 0 }
};
static const struct unit rate_units[] = {
	{ "", 1 }, { "bit/s", 1 }, { "kbit/s", 1e3 }, { "Mbit/s", 1e6 },
	{ "Gbit/s", 1e9 }, { "Tbit/s", 1e12 },
	{ "B/s", 8 }, { "kB/s", 8e3 }, { "MB/s", 8e6 }, { "GB/s", 8e9 }, { "TB/s", 8e12 },
	{ "KiB/s", 8 * 1024.0 }, { "MiB/s", 8 * 1048576.0 }, { "GiB/s", 8 * 1073741824.0 },
	{ "TiB/s", 8 * 1099511627776.0 },
	{ NULL, 0 }
};
static const struct unit time_units[] = {
	{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
	{ NULL, 0 }
};

/* Digits with at most one dot: strtod() alone would accept "1e3", "inf", "0x1". */
static int parse(const char *text, const struct unit *u, uint64_t *out)
{
	const char *p = text;
	int digits = 0, dots = 0;
	double v;

	for (; isdigit((unsigned char)*p) || *p == '.'; p++)
		if (*p == '.')
			dots++;
		else
			digits++;
	if (digits == 0 || dots > 1)
		return -1;
	v = strtod(text, NULL);
	if (*p == ' ')
		while (*++p == ' ')
			;
	for (; u->name != NULL; u++)
		if (strcasecmp(u->name, p) == 0)
			break;
	if (u->name == NULL)
		return -1;
	v *= u->factor;
	if (!(v < 18446744073709549568.0))
		return -1;
	*out = (uint64_t)(v + 0.5);
	return 0;
}

int units_parse_size(const char *text, uint64_t *bytes) { return parse(text, size_units, bytes); }

/* "Mb/s" may mean bits: bytes need a capital B. */
int units_parse_rate(const char *text, uint64_t *bps)
{
	return strstr(text, "b/s") == NULL ? parse(text, rate_units, bps) : -1;
}

int units_parse_time(const char *text, uint64_t *ns) { return parse(text, time_units, ns); }

#define LAST_S INT64_C(253402300799) /* the end of 9999 */

/* N digits, as a number up to `most`; NULL: malformed. */
static const char *digits(const char *p, int n, int most, int *out)
{
	for (*out = 0; n > 0; n--, p++) {
		if (!isdigit((unsigned char)*p))
			return NULL;
		*out = 10 * *out + (*p - '0');
	}
	return *out <= most ? p : NULL;
}

/* Each of these returns the rest of the text, or NULL: malformed. HH:MM or HH:MM:SS: */
static const char *read_clock(const char *p, struct tm *tm)
{
	if ((p = digits(p, 2, 23, &tm->tm_hour)) == NULL || *p != ':' ||
	    (p = digits(p + 1, 2, 59, &tm->tm_min)) == NULL)
		return NULL;
	return *p != ':' ? p : digits(p + 1, 2, 59, &tm->tm_sec);
}

/* YYYY-MM-DD, of the calendar: mktime() would take February 30 for a day in March. */
static const char *read_day(const char *p, struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, most;

	if ((p = digits(p, 4, 9999, &year)) == NULL || *p != '-' || (p = digits(p + 1, 2, 12, &month)) == NULL ||
	    month == 0 || *p != '-')
		return NULL;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	most = days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
	p = digits(p + 1, 2, most, &tm->tm_mday);
	return p != NULL && tm->tm_mday > 0 ? p : NULL;
}

static const char *read_date(const char *p, struct tm *tm)
{
	p = read_day(p, tm);
	return p != NULL && (*p == 'T' || *p == ' ') ? read_clock(p + 1, tm) : p;
}

/* The beginning of a day: "today", "yesterday". */
static const char *read_word(const char *text, int64_t now_s, struct tm *tm)
{
	const time_t now = (time_t)now_s;
	bool yesterday = strcmp(text, "yesterday") == 0;
	struct tm today;

	if ((!yesterday && strcmp(text, "today") != 0) || localtime_r(&now, &today) == NULL)
		return NULL;
	tm->tm_year = today.tm_year;
	tm->tm_mon = today.tm_mon;
	tm->tm_mday = today.tm_mday - yesterday;
	return "";
}

int units_parse_when(const char *text, int64_t now_s, int64_t *when_s)
{
	struct tm tm = { .tm_isdst = -1 };
	uint64_t age_ns;
	const char *end;
	char *rest;
	int64_t s;

	if (text[0] == '@') {
		s = strtoll(text + 1, &rest, 10);
		end = isdigit((unsigned char)text[1]) ? rest : NULL;
	} else if (units_parse_time(text, &age_ns) == 0) {
		s = now_s - (int64_t)(age_ns / NS_PER_S);
		end = "";
	} else if ((end = read_word(text, now_s, &tm)) != NULL || (end = read_date(text, &tm)) != NULL) {
		s = *end == 'Z' ? timegm(&tm) : mktime(&tm);
		end += *end == 'Z';
	}
	if (end == NULL || *end != '\0' || s <= 0 || s > LAST_S)
		return -1;
	*when_s = s;
	return 0;
}

/* The next time of the day: where a clock is put back, some times come twice, in summer time first; where a clock is
 * put forward, some do not come, and mktime() takes a time close by. */
static int parse_clock(const char *text, int64_t now_s, int64_t *when_s)
{
	const time_t now = (time_t)now_s;
	struct tm clock = { 0 }, today, tm;
	const char *end = read_clock(text, &clock);
	int i, dst, shifted;

	if (end == NULL || *end != '\0' || localtime_r(&now, &today) == NULL)
		return -1;
	for (i = 0; i < 6; i++) {
		dst = 1 - i % 3; /* summer time, none, whichever */
		tm = today;
		tm.tm_mday += i / 3;
		tm.tm_hour = clock.tm_hour;
		tm.tm_min = clock.tm_min;
		tm.tm_sec = clock.tm_sec;
		tm.tm_isdst = dst;
		*when_s = mktime(&tm);
		shifted = tm.tm_isdst != dst || tm.tm_hour != clock.tm_hour || tm.tm_min != clock.tm_min;
		if (*when_s > now_s && (dst < 0 || !shifted))
			return 0;
	}
	return -1;
}

int units_parse_next(const char *text, int64_t now_s, int64_t *when_s)
{
	uint64_t age_ns;
	int64_t s;

	if (parse_clock(text, now_s, &s) < 0 &&
	    (units_parse_time(text, &age_ns) == 0 || units_parse_when(text, now_s, &s) < 0 || s <= now_s))
		return -1;
	*when_s = s;
	return 0;
}

int units_parse_deadline(const char *text, int64_t now_s, int64_t *when_s)
{
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0)
		return units_parse_next(text, now_s, when_s);
	if (ns < NS_PER_S)
		return -1;
	*when_s = now_s + (int64_t)(ns / NS_PER_S);
	return 0;
}

/* v to three digits, in the largest unit of which v is at least 1. */
static const char *scaled(char *buf, double v, const struct unit *first)
{
	const struct unit *u = first;

	while (u[1].name != NULL && v >= u[1].factor * 0.9995)
		u++;
	v /= u->factor;
	snprintf(buf, UNITS_TEXT_BYTES, "%.*f %s",
	    u == first || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, u->name);
	return buf;
}

const char *units_size_text(char *buf, uint64_t bytes)
{
	static const struct unit shown[] = {
		{ "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 },
		{ "TB", 1e12 }, { "PB", 1e15 }, { NULL, 0 }
	};
	return scaled(buf, (double)bytes, shown);
}

const char *units_rate_text(char *buf, double bps)
{
	static const struct unit shown[] = {
		{ "bit/s", 1 }, { "kbit/s", 1e3 }, { "Mbit/s", 1e6 }, { "Gbit/s", 1e9 },
		{ "Tbit/s", 1e12 }, { NULL, 0 }
	};
	return scaled(buf, bps > 0 ? bps : 0, shown);
}

const char *units_time_text(char *buf, double s)
{
	unsigned long t;

	if (!(s < 1e9)) {
		snprintf(buf, UNITS_TEXT_BYTES, "?");
		return buf;
	}
	if (s < 10) {
		snprintf(buf, UNITS_TEXT_BYTES, "%.2f s", s > 0 ? s : 0);
		return buf;
	}
	t = (unsigned long)(s + 0.5);
	if (t < 60)
		snprintf(buf, UNITS_TEXT_BYTES, "%lu s", t);
	else if (t < 3600)
		snprintf(buf, UNITS_TEXT_BYTES, "%lu m %02lu s", t / 60, t % 60);
	else
		snprintf(buf, UNITS_TEXT_BYTES, "%lu h %02lu m", t / 3600, t / 60 % 60);
	return buf;
}
