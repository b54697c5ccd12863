/* Logging through a callback of the library's user: level, component, one message of escaped "key=value" pairs,
 * without a newline. */
#ifndef CORE_LOG_H
#define CORE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

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

#endif
