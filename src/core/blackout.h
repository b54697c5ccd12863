/* Windows of the week in which nothing runs: "08:00-18:00", "Mon-Fri 08:00-18:00,Sun 00:00-24:00". A window includes
 * its first minute and excludes its last; a window with its end before its beginning spans midnight, and belongs to the
 * day of its beginning. Times are local: when the clock is put forward, the skipped hour does not occur; when the clock
 * is put back, the repeated hour counts twice. */
#ifndef CORE_BLACKOUT_H
#define CORE_BLACKOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

enum { BLACKOUT_WINDOWS = 32 };

/* A span of time, in seconds since 1970, without a change; until_s is INT64_MAX without windows. */
struct blackout_span {
	bool closed; /* within a window */
	int64_t from_s, until_s;
};

struct blackout {
	unsigned n;
	struct {
		unsigned days;          /* bit 0: Sunday */
		unsigned from_s, until_s; /* second of the day */
	} window[BLACKOUT_WINDOWS];
	struct blackout_span last; /* answer of blackout_at() */
};

/* PTCP_EUSAGE: names the error and the expected form, or the windows leave no time; *b is then undefined. */
int blackout_parse(struct blackout *b, const char *text, struct ptcp_err *e);

/* The span that begins at `at_s`. */
struct blackout_span blackout_span(const struct blackout *b, int64_t at_s);
/* The span around `now_s`: computed again only after its end, or before its beginning. NULL `b`: no window. */
struct blackout_span blackout_at(struct blackout *b, int64_t now_s);

#endif
