/* The command line that starts the other side by a command of the user's. Pure. */
#ifndef CLIENT_LAUNCH_ARGS_H
#define CLIENT_LAUNCH_ARGS_H

#include <ptcp/err.h>

#define LAUNCH_ARGS_MAX 64

/* Arguments, ended by NULL; they point into `text` and to constants. */
struct launch_args {
	char *at[LAUNCH_ARGS_MAX];
	unsigned n;
	char text[8192];
};

/* The words of `command`, {host} in them replaced, then those of `ptcp` (NULL: "ptcp") and what makes it serve once.
 * Quoted as in core/text.h; no shell sees any of it here. PTCP_EUSAGE. */
int launch_args(struct launch_args *out, const char *command, const char *host, const char *ptcp, struct ptcp_err *e);

#endif
