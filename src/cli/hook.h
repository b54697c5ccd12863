/* Hooks: commands of the user that get the result of a transfer, as a JSON object on standard input. A hook runs after
 * the end, and changes nothing about the result: a failing hook is a warning. */
#ifndef CLI_HOOK_H
#define CLI_HOOK_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

/* Row of a table whose args begin with a struct client_opts. */
#define HOOK_OPTION \
	{ "on-end", 0, "COMMAND", "run COMMAND at the end, with the result as JSON on its standard input", opt_text, \
	    offsetof(struct client_opts, log.on_end), 0, 0 }

/* Starts the command by /bin/sh -c, in a process group; the output goes to standard error. 0 or an errno. */
int hook_start(pid_t *pid, const char *command, const json_t *object);
/* Warns about the status of waitpid(2), unless 0; `what` names the hook. */
void hook_judge(const char *what, int status);
/* Runs the command; ends the command after `limit_s` seconds. */
void hook_run(const char *what, const char *command, const json_t *object, double limit_s);
enum { HOOK_LIMIT_S = 60 };

/* The object "end" of a transfer, completed for a hook; NULL `command` or `end`: nothing happens. Takes `end`. */
void hook_end(const char *command, json_t *end, const char *action, const char *const *sources, size_t n_sources,
    const char *dest);

#endif
