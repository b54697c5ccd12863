#include "cli/log_opts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "cli/show/terminal.h"

static const struct {
	const char *name;
	int priority; /* level of syslog(3) */
} levels[] = { { "error", LOG_ERR }, { "warn", LOG_WARNING }, { "info", LOG_INFO }, { "debug", LOG_DEBUG },
	{ "trace", LOG_DEBUG } };
#define N_LEVELS ((int)(sizeof levels / sizeof *levels))

static int set_level(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct log_opts *a = args;
	int i;

	for (i = 0; i < N_LEVELS; i++)
		if (strcmp(text, levels[i].name) == 0) {
			a->level = i;
			return 0;
		}
	return opt_reject(o, text, e, "no such level (error, warn, info, debug or trace)");
}

/* The first -v lists files, further ones log. */
static int set_list(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct log_opts *a = args;

	(void)o;
	(void)text;
	(void)e;
	a->verbose += a->list;
	a->list = true;
	return 0;
}

#define JSON_AND_QUIET \
	{ "json", 0, NULL, "print JSON objects on standard output, one per line", opt_true, \
	    offsetof(struct log_opts, json), 0, 0 }, \
	{ "quiet", 'q', NULL, "print warnings and errors only", opt_true, offsetof(struct log_opts, quiet), 0, 0 }
#define LOG_LEVEL \
	{ "log-level", 0, "error|warn|info|debug|trace", "log messages of this level and above", set_level, \
	    0, 0, 0 }

const struct opt log_options[] = {
	JSON_AND_QUIET,
	{ "verbose", 'v', NULL, "log to standard error; repeat for more detail", opt_count,
	    offsetof(struct log_opts, verbose), 0, 0 },
	LOG_LEVEL,
	{ .name = NULL },
};

const struct opt list_options[] = {
	JSON_AND_QUIET,
	{ "verbose", 'v', NULL, "print each file as it is done; -vv: log to standard error", set_list, 0, 0, 0 },
	LOG_LEVEL,
	{ .name = NULL },
};

void log_opts_init(struct log_opts *a)
{
	*a = (struct log_opts){ .level = LOG_NONE };
}

int log_opts_level(const struct log_opts *a, int base)
{
	int level = base;

	if (a->quiet && level > PTCP_LOG_ERROR)
		level = PTCP_LOG_ERROR;
	if (a->level != LOG_NONE)
		level = a->level;
	if (a->verbose > 0 && level < PTCP_LOG_INFO)
		level = PTCP_LOG_INFO;
	return a->verbose > 1 && level < PTCP_LOG_DEBUG ? PTCP_LOG_DEBUG : level;
}

bool log_opts_status(const struct log_opts *a)
{
	return !a->json && !a->quiet && terminal_is(STDERR_FILENO);
}

void log_print(void *arg, enum ptcp_log_level level, const char *component, const char *msg)
{
	int known = (int)level < N_LEVELS ? (int)level : PTCP_LOG_TRACE;
	struct timespec now;
	struct tm tm;
	char when[32];

	(void)arg;
	if (terminal_is_journal()) {
		terminal_line("<%d>%s: %s", levels[known].priority, component, msg);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	terminal_line("%s.%03ldZ %s %s: %s", when, now.tv_nsec / 1000000, levels[known].name, component, msg);
}

void log_format(int max, enum ptcp_log_level level, const char *component, const char *fmt, ...)
{
	char msg[1024];
	va_list ap;

	if ((int)level > max)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	log_print(NULL, level, component, msg);
}
