#include "core/blackout.h"

#include <string.h>
#include <time.h>

#include "core/text.h"
#include "core/timetable.h"

enum { DAY_S = 86400, WEEK_DAYS = 7, ALL_DAYS = 0x7f, WINDOW_BYTES = 64 };

static int bad(struct ptcp_err *e, const char *part, const char *why)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "'%s': %s", text_escape(shown, sizeof shown, part), why);
}

/* Parses "Mon", and returns the end, or NULL. */
static const char *parse_day(unsigned *day, const char *p)
{
	static const char names[] = "SunMonTueWedThuFriSat";

	for (*day = 0; *day < WEEK_DAYS; ++*day)
		if (strncmp(p, names + (size_t)3 * *day, 3) == 0)
			return p + 3;
	return NULL;
}

/* Parses "Mon " or "Fri-Mon "; a text without days means all of them. */
static const char *parse_days(unsigned *days, const char *p)
{
	unsigned first, last;

	*days = ALL_DAYS;
	if (*p >= '0' && *p <= '9')
		return p;
	if ((p = parse_day(&first, p)) == NULL)
		return NULL;
	last = first;
	if (*p == '-' && (p = parse_day(&last, p + 1)) == NULL)
		return NULL;
	for (*days = 1u << first; first != last; *days |= 1u << first)
		first = (first + 1) % WEEK_DAYS;
	return *p == ' ' ? p + 1 : NULL;
}

static int parse_window(struct blackout *b, const char *part, struct ptcp_err *e)
{
	unsigned days, from, until;
	const char *p = parse_days(&days, part);

	if (p == NULL || (p = timetable_clock(&from, p)) == NULL || *p != '-' ||
	    (p = timetable_clock(&until, p + 1)) == NULL || *p != '\0')
		return bad(e, part, "not a window (such as 08:00-18:00 or 'Mon-Fri 08:00-18:00')");
	if (from == until || from == DAY_S)
		return bad(e, part, "begins when it ends (write 00:00-24:00 for a day)");
	if (b->n == BLACKOUT_WINDOWS)
		return bad(e, part, "more than 32 windows (use fewer)");
	b->window[b->n].days = days;
	b->window[b->n].from_s = from;
	b->window[b->n++].until_s = until;
	return 0;
}

/* ---- Local time ---- */

static bool is_within(const struct blackout *b, unsigned day, unsigned second)
{
	unsigned i, today = 1u << day, yesterday = 1u << (day + WEEK_DAYS - 1) % WEEK_DAYS;

	for (i = 0; i < b->n; i++) {
		unsigned days = b->window[i].days, from = b->window[i].from_s, until = b->window[i].until_s;

		if (from < until ? (days & today) != 0 && second >= from && second < until :
		    ((days & today) != 0 && second >= from) || ((days & yesterday) != 0 && second < until))
			return true;
	}
	return false;
}

static unsigned second_of(const struct tm *local)
{
	return (unsigned)(3600 * local->tm_hour + 60 * local->tm_min + (local->tm_sec < 60 ? local->tm_sec : 59));
}

static bool local_at(struct tm *local, int64_t at_s)
{
	const time_t t = (time_t)at_s;

	return localtime_r(&t, local) != NULL;
}

/* The next second of the day at which a window may begin or end, at most midnight. */
static unsigned next_edge(const struct blackout *b, unsigned second)
{
	unsigned next = DAY_S, i;

	for (i = 0; i < b->n; i++) {
		if (b->window[i].from_s > second && b->window[i].from_s < next)
			next = b->window[i].from_s;
		if (b->window[i].until_s > second && b->window[i].until_s < next)
			next = b->window[i].until_s;
	}
	return next;
}

/* The first time after `from_s`, at most `until_s`, at which the offset from UTC is another than before. */
static int64_t next_shift(int64_t from_s, int64_t until_s, long offset)
{
	struct tm local;
	int64_t middle_s;

	while (until_s - from_s > 1) {
		middle_s = from_s + (until_s - from_s) / 2;
		if (local_at(&local, middle_s) && local.tm_gmtoff == offset)
			from_s = middle_s;
		else
			until_s = middle_s;
	}
	return until_s;
}

struct blackout_span blackout_span(const struct blackout *b, int64_t at_s)
{
	struct blackout_span s = { .from_s = at_s, .until_s = at_s };
	struct tm local, then;
	int64_t next_s;

	if (!local_at(&local, at_s))
		return s.until_s = INT64_MAX, s;
	s.closed = is_within(b, (unsigned)local.tm_wday, second_of(&local));
	while (s.until_s < at_s + (WEEK_DAYS + 2) * DAY_S) {
		next_s = s.until_s + next_edge(b, second_of(&local)) - second_of(&local);
		if (!local_at(&then, next_s))
			break;
		if (then.tm_gmtoff != local.tm_gmtoff) {
			next_s = next_shift(s.until_s, next_s, local.tm_gmtoff);
			local_at(&then, next_s);
		}
		s.until_s = next_s;
		local = then;
		if (is_within(b, (unsigned)local.tm_wday, second_of(&local)) != s.closed)
			return s;
	}
	s.until_s = INT64_MAX;
	return s;
}

struct blackout_span blackout_at(struct blackout *b, int64_t now_s)
{
	if (b == NULL)
		return (struct blackout_span){ .until_s = INT64_MAX };
	if (now_s < b->last.from_s || now_s >= b->last.until_s)
		b->last = blackout_span(b, now_s);
	return b->last;
}

/* Whether a minute of the week is outside all windows. */
static bool leaves_time(const struct blackout *b)
{
	unsigned minute;

	for (minute = 0; minute < WEEK_DAYS * DAY_S / 60; minute++)
		if (!is_within(b, minute / (DAY_S / 60), minute % (DAY_S / 60) * 60))
			return true;
	return false;
}

int blackout_parse(struct blackout *b, const char *text, struct ptcp_err *e)
{
	char part[WINDOW_BYTES];
	const char *p = text;
	size_t n;
	int r;

	*b = (struct blackout){ .n = 0 };
	for (;; p += n + 1) {
		n = strcspn(p, ",");
		if (n >= sizeof part)
			return bad(e, p, "not a window (such as 08:00-18:00 or 'Mon-Fri 08:00-18:00')");
		memcpy(part, p, n);
		part[n] = '\0';
		if ((r = parse_window(b, part, e)) < 0)
			return r;
		if (p[n] == '\0')
			return leaves_time(b) ? 0 : bad(e, text, "covers the week (leave some time for jobs)");
	}
}
