/* A rate by time of day, the argument of --rate: "200Mbit/s", or ranges and the rate outside of them,
 * "08:00-18:00=200Mbit/s,else=0". 0 means no limit, as does a missing `else`. A range includes its first
 * minute and excludes its last; a range with its end before its beginning spans midnight; the first matching range
 * counts. Times are local: when the clock is put forward, the skipped hour does not occur; when it is put
 * back, the repeated hour counts twice. */
#ifndef CORE_TIMETABLE_H
#define CORE_TIMETABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/err.h"

#define TIMETABLE_RANGES 32
#define TIMETABLE_BYTES 2112 /* size of the text, with the final NUL */
#define TIMETABLE_MIN_BPS 10000 /* below, a pacer's quantum would take seconds */

struct timetable {
	unsigned n;
	struct {
		unsigned from_s, until_s; /* second of the day */
		uint64_t value; /* bit/s, or thousandths of a percent */
	} range[TIMETABLE_RANGES];
	uint64_t else_value;
};

/* PTCP_EUSAGE names the error and the expected form; *t is then undefined. */
int timetable_parse(struct timetable *t, const char *text, struct ptcp_err *e);

/* The same with percentages above 0, up to 100, and with `else`: "08:00-18:00=5,else=50". */
int timetable_parse_percent(struct timetable *t, const char *text, struct ptcp_err *e);
double timetable_percent(const struct timetable *t, unsigned second);

/* The rate at `second` of the day, 0 to 86399. */
uint64_t timetable_bps(const struct timetable *t, unsigned second);
/* False: one rate all day. */
bool timetable_varies(const struct timetable *t);

/* Parses "HH:MM", up to 24:00, and returns the end, or NULL. */
const char *timetable_clock(unsigned *second, const char *p);

/* The second of the day by the local clock. */
unsigned timetable_second(time_t now);

#endif
