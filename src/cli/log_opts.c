#include "cli/log_opts.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "cli/terminal.h"

static const char *const level_names[] = { "error", "warn", "info", "debug" };
#define N_LEVELS ((int)(sizeof level_names / sizeof *level_names))

static int set_level(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct log_opts_args *a = args;
	int i;

	for (i = 0; i < N_LEVELS; i++)
		if (strcmp(text, level_names[i]) == 0) {
			a->log_level = i;
			return 0;
		}
	return opt_reject(o, text, e, "no such level (error, warn, info or debug)");
}

const struct opt log_opts_options[] = {
	{ "json", 0, NULL, "one JSON object a line on stdout", opt_true,
	    offsetof(struct log_opts_args, json) },
	{ "quiet", 'q', NULL, "only warnings and errors", opt_true,
	    offsetof(struct log_opts_args, quiet) },
	{ "verbose", 'v', NULL, "log to stderr; twice: more", opt_count,
	    offsetof(struct log_opts_args, verbose) },
	{ "log-level", 0, "LEVEL", "what is logged: error, warn, info or debug", set_level, 0 },
	{ .name = NULL },
};

void log_opts_init(struct log_opts_args *a)
{
	memset(a, 0, sizeof *a);
	a->log_level = LOG_OPTS_NO_LOG;
}

int log_opts_level(const struct log_opts_args *a, int base)
{
	int level = base;

	if (a->quiet && level > PTCP_LOG_ERROR)
		level = PTCP_LOG_ERROR;
	if (a->log_level != LOG_OPTS_NO_LOG)
		level = a->log_level;
	if (a->verbose > 0 && level < PTCP_LOG_INFO)
		level = PTCP_LOG_INFO;
	if (a->verbose > 1)
		level = PTCP_LOG_DEBUG;
	return level;
}

/* syslog's, as the journal takes them. */
static const int priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

void log_opts_log(void *arg, enum ptcp_log_level level, const char *component, const char *msg)
{
	struct timespec now;
	struct tm tm;
	char when[32];

	(void)arg;
	if (terminal_is_journal()) {
		terminal_line("<%d>%s: %s", (int)level < N_LEVELS ? priorities[level] : LOG_INFO, component, msg);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	terminal_line("%s.%03ldZ %s %s: %s", when, now.tv_nsec / 1000000,
	    (int)level < N_LEVELS ? level_names[level] : "?", component, msg);
}
