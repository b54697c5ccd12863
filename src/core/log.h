/* Logging through a callback of the library's user: level, component, one message of escaped "key=value" pairs,
 * without a newline. */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>

#include "core/clock.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

struct log {
	/* Any thread; must not call back into the library. */
	void (*write)(void *arg, enum log_level level, const char *component, const char *msg);
	void *arg;
	_Atomic enum log_level level; /* the most detailed level written; may change while other threads log */
};

/* A disabled level costs one comparison. `l` may be NULL. */
#define log_at(l, lv, ...) \
	do { \
		if ((l) != NULL && (lv) <= (l)->level) \
			log_write((l), (lv), __VA_ARGS__); \
	} while (0)

void log_write(const struct log *l, enum log_level level, const char *component,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Limits lines that strangers cause, so that a flood does not fill the log. Zeroed at first. One thread. */
struct log_limit {
	struct mono since;
	unsigned n, left_out; /* numbers of the current minute */
};
#define LOG_LIMIT_LINES 60 /* a minute */

/* Whether one more line may be written now. *left_out: number of lines refused in the minute before, with the first
 * line after it; else 0. */
bool log_limit_allows(struct log_limit *l, struct mono now, unsigned *left_out);

#endif
