#include "core/timetable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"

#define PART_BYTES 64

static int bad(struct ptcp_err *e, const char *part, const char *why)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "'%s': %s", text_escape(shown, sizeof shown, part), why);
}

typedef int value_fn(uint64_t *value, const char *text, struct ptcp_err *e);

static int parse_rate(uint64_t *bps, const char *text, struct ptcp_err *e)
{
	if (units_parse_rate(text, bps) < 0)
		return bad(e, text, "not a rate (such as 200Mbit/s or, in bytes, 25MB/s; 0: no limit)");
	if (*bps > 0 && *bps < TIMETABLE_MIN_BPS)
		return bad(e, text, "below 10kbit/s (0: no limit)");
	return 0;
}

/* In thousandths of a percent. */
static int parse_percent(uint64_t *value, const char *text, struct ptcp_err *e)
{
	char *end;
	double v = strtod(text, &end);

	if (text[0] == '\0' || text[strspn(text, "0123456789.")] != '\0' || *end != '\0' || v < .001 || v > 100)
		return bad(e, text, "not a percentage above 0 (such as 5)");
	*value = (uint64_t)(v * 1000 + .5);
	return 0;
}

const char *timetable_clock(unsigned *second, const char *p)
{
	unsigned v[5], i;

	for (i = 0; i < 5; i++) {
		if (i == 2 ? p[i] != ':' : p[i] < '0' || p[i] > '9')
			return NULL;
		v[i] = (unsigned)(p[i] - '0');
	}
	if (v[3] > 5)
		return NULL;
	*second = 3600 * (10 * v[0] + v[1]) + 60 * (10 * v[3] + v[4]);
	return *second <= 86400 ? p + 5 : NULL;
}

static int parse_range(struct timetable *t, const char *part, const char *rate, value_fn *value, struct ptcp_err *e)
{
	unsigned from, until;
	const char *p = timetable_clock(&from, part);

	if (p == NULL || *p != '-' || (p = timetable_clock(&until, p + 1)) == NULL || p + 1 != rate)
		return bad(e, part, "not a range and its rate (such as 08:00-18:00=200Mbit/s)");
	if (from % 86400 == until % 86400)
		return bad(e, part, "begins when it ends (write else=RATE for the whole day)");
	if (t->n == TIMETABLE_RANGES)
		return bad(e, part, "more than 32 ranges (use fewer)");
	t->range[t->n].from_s = from % 86400;
	t->range[t->n].until_s = until;
	return value(&t->range[t->n++].value, rate, e);
}

static int parse_part(struct timetable *t, const char *part, bool *has_else, value_fn *value, struct ptcp_err *e)
{
	const char *eq = strchr(part, '=');

	if (eq == NULL || strncmp(part, "else", (size_t)(eq - part)) != 0 || eq - part != 4)
		return parse_range(t, part, eq != NULL ? eq + 1 : "", value, e);
	if (*has_else)
		return bad(e, part, "a second 'else' (keep one)");
	*has_else = true;
	return value(&t->else_value, eq + 1, e);
}

static int parse_table(struct timetable *t, const char *text, bool *has_else, value_fn *value, struct ptcp_err *e)
{
	char part[PART_BYTES];
	size_t n;
	int r;

	*t = (struct timetable){ .n = 0 };
	*has_else = false;
	if (strlen(text) >= TIMETABLE_BYTES)
		return err_set(e, PTCP_EUSAGE, "longer than %d bytes (use fewer ranges)", TIMETABLE_BYTES - 1);
	if (strpbrk(text, "=,") == NULL)
		return value(&t->else_value, text, e);
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		if (n >= sizeof part)
			return bad(e, text, "not a range and its rate (such as 08:00-18:00=200Mbit/s)");
		memcpy(part, text, n);
		part[n] = '\0';
		if ((r = parse_part(t, part, has_else, value, e)) < 0)
			return r;
		if (text[n] == '\0')
			return 0;
	}
}

int timetable_parse(struct timetable *t, const char *text, struct ptcp_err *e)
{
	bool has_else;

	return parse_table(t, text, &has_else, parse_rate, e);
}

int timetable_parse_percent(struct timetable *t, const char *text, struct ptcp_err *e)
{
	bool has_else;
	int r = parse_table(t, text, &has_else, parse_percent, e);

	return r == 0 && t->n > 0 && !has_else ? bad(e, text,
	    "has no percentage outside of the ranges (add else=PCT)") : r;
}

double timetable_percent(const struct timetable *t, unsigned second) { return (double)timetable_bps(t, second) / 1000; }

uint64_t timetable_bps(const struct timetable *t, unsigned second)
{
	unsigned i;

	for (i = 0; i < t->n; i++) {
		unsigned from = t->range[i].from_s, until = t->range[i].until_s;

		if (from < until ? second >= from && second < until : second >= from || second < until)
			return t->range[i].value;
	}
	return t->else_value;
}

bool timetable_varies(const struct timetable *t) { return t->n > 0; }

unsigned timetable_second(time_t now)
{
	struct tm local;

	if (localtime_r(&now, &local) == NULL)
		return 0;
	/* A leap second counts as the last second of its minute. */
	return (unsigned)(3600 * local.tm_hour + 60 * local.tm_min + (local.tm_sec < 60 ? local.tm_sec : 59));
}
