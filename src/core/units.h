/* Sizes, rates and times as users write and read them; the only place that converts units. */
#ifndef CORE_UNITS_H
#define CORE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

/* Parse all of `text`: a decimal number, optional spaces, an optional unit; no sign, no exponent. Return 0,
 * or -1 if malformed or out of range, with *out untouched.
 *   size  bytes  B kB MB GB TB PB (1000), KiB MiB GiB TiB PiB (1024); bare: bytes
 *   rate  bit/s  bit/s kbit/s Mbit/s Gbit/s Tbit/s, B/s kB/s MB/s GB/s TB/s (1000), KiB/s MiB/s GiB/s TiB/s (1024);
 *                bare: bit/s
 *   time  ns     s ms m h d;                                   bare: seconds
 * Units are accepted in any case, except for the B of a rate in bytes; "m" is minutes. */
int units_parse_size(const char *text, uint64_t *bytes);
int units_parse_rate(const char *text, uint64_t *bps);
int units_parse_time(const char *text, uint64_t *ns);
/* A time in seconds since 1970: an age, as above, before `now_s`; a date YYYY-MM-DD, at its beginning, or at a time
 * HH:MM or HH:MM:SS behind a T or a blank, by the local clock or, with a final Z, UTC; "today" or "yesterday", at its
 * beginning; or @ and seconds since 1970. 0, or -1 if malformed, no time of the calendar, such as 2026-02-30 or 24:00,
 * or not from 1970 to 9999. */
int units_parse_when(const char *text, int64_t now_s, int64_t *when_s);
/* A time after `now_s`, likewise, but no age; HH:MM or HH:MM:SS is the next such time by the local clock. */
int units_parse_next(const char *text, int64_t now_s, int64_t *when_s);
/* The same, or a duration from `now_s` on, as above, of a second at least. */
int units_parse_deadline(const char *text, int64_t now_s, int64_t *when_s);

#define UNITS_TEXT_BYTES 32

/* Text of three significant digits ("1.50 GB", "412 Mbit/s", "1h02m", "0.25s"). Write at most
 * UNITS_TEXT_BYTES into `buf` and return `buf`. */
const char *units_size_text(char *buf, uint64_t bytes);
const char *units_rate_text(char *buf, double bps);
const char *units_time_text(char *buf, double s);

/* Ending of a noun after a number. */
static inline const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }
/* Of their verb: "1 stream delivers", "2 streams deliver". */
static inline const char *singular(uint64_t n) { return n == 1 ? "s" : ""; }

#endif
