/* How much a command says, and in which form: options of every command that runs for a
 * while. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include <stdbool.h>

#include <ptcp/ptcp.h>

#include "cli/options.h"

/* First member of the args of a command whose tables contain talk_options. */
struct talk_args {
	bool json;
	bool quiet;
	unsigned verbose;
	int log_level; /* what --log-level said, or TALK_NO_LOG */
};
#define TALK_NO_LOG (-1)

extern const struct opt talk_options[];

void talk_init(struct talk_args *a);

/* The level that --log-level, -v and -q give together, `base` without any of them. Log
 * lines are wanted when it is not TALK_NO_LOG. */
int talk_level(const struct talk_args *a, int base);

/* A ptcp_log_fn: "TIME LEVEL COMPONENT: MSG" on stderr, the time in UTC; "<PRIORITY>COMPONENT: MSG" where
 * that is the journal. */
void talk_log(void *arg, enum ptcp_log_level level, const char *component, const char *msg);

#endif
