/* Options about the form and detail of output, and the log on standard error. */
#ifndef CLI_LOG_OPTS_H
#define CLI_LOG_OPTS_H

#include <ptcp/ptcp.h>
#include <stdbool.h>

#include "cli/options.h"

/* First member of the args of a command whose tables contain log_options or list_options. */
struct log_opts {
	bool list; /* files as they are done */
	bool json;
	bool quiet;
	unsigned verbose;
	int level; /* level that --log-level names, or LOG_NONE */
	const char *on_end; /* hook.h; NULL: none */
};
#define LOG_NONE (-1)

extern const struct opt log_options[];
extern const struct opt list_options[]; /* log_options, but the first -v lists files */
#define GROUP_LOG  GROUP_OF("Output", log_options)
#define GROUP_LIST GROUP_OF("Output", list_options)

void log_opts_init(struct log_opts *a);

/* The level that --log-level, -v and -q set together; `base` without these options. LOG_NONE: no log. */
int log_opts_level(const struct log_opts *a, int base);

/* Whether a status line is wanted and stderr is a terminal. */
bool log_opts_status(const struct log_opts *a);

/* A ptcp_log_fn: prints "TIME LEVEL COMPONENT: MSG" on stderr, the time in UTC; to the systemd journal
 * "<PRIORITY>COMPONENT: MSG". */
void log_print(void *arg, enum ptcp_log_level level, const char *component, const char *msg);

/* Prints a formatted message, if `level` is at most `max`. */
void log_format(int max, enum ptcp_log_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
