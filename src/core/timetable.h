/* A rate by the time of day, as --rate takes it: "200Mbit/s", or ranges and what holds outside them,
 * "08:00-18:00=200Mbit/s,else=0". 0 is no limit, which also holds outside where nothing is said of it. A
 * range begins with its first minute and ends before its last; one whose end is earlier goes over midnight;
 * of several the first that fits counts. Times are the local clock's: where that is put forward the hour left
 * out does not occur, where it is put back the hour that comes twice counts twice. */
#ifndef CORE_TIMETABLE_H
#define CORE_TIMETABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/err.h"

#define TIMETABLE_RANGES 32
#define TIMETABLE_LEAST_BPS 10000 /* a piece of a pacer would last for seconds */

struct timetable {
	unsigned n;
	struct {
		unsigned from_s, until_s; /* of the day */
		uint64_t bps;
	} range[TIMETABLE_RANGES];
	uint64_t else_bps;
};

/* PTCP_EUSAGE with what is wrong and what is expected; *t is then undefined. */
int timetable_parse(struct timetable *t, const char *text, struct ptcp_err *e);

/* The rate at that second of the day, 0 to 86399. */
uint64_t timetable_bps(const struct timetable *t, unsigned second);
/* It is not one rate for all day. */
bool timetable_changes(const struct timetable *t);

/* The second of the day by the local clock. */
unsigned timetable_second(time_t now);

#endif
