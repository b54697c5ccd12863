/* How much a command says, and in which form: options of every command that runs for a
 * while. */
#ifndef CLI_LOG_OPTS_H
#define CLI_LOG_OPTS_H

#include <stdbool.h>

#include <ptcp/ptcp.h>

#include "cli/options.h"

/* First member of the args of a command whose tables contain log_opts_options. */
struct log_opts_args {
	bool json;
	bool quiet;
	unsigned verbose;
	int log_level; /* what --log-level said, or LOG_OPTS_NO_LOG */
};
#define LOG_OPTS_NO_LOG (-1)

extern const struct opt log_opts_options[];

void log_opts_init(struct log_opts_args *a);

/* The level that --log-level, -v and -q give together, `base` without any of them. Log
 * lines are wanted when it is not LOG_OPTS_NO_LOG. */
int log_opts_level(const struct log_opts_args *a, int base);

/* A ptcp_log_fn: "TIME LEVEL COMPONENT: MSG" on stderr, the time in UTC; "<PRIORITY>COMPONENT: MSG" where
 * that is the journal. */
void log_opts_log(void *arg, enum ptcp_log_level level, const char *component, const char *msg);

#endif
