/* Command lines that start a server for a single transfer, ssh's or the user's launch command, or movers. Pure. */
#ifndef CONN_START_ARGS_H
#define CONN_START_ARGS_H

#include "conn/remote.h"
#include "net/sock.h"

#define START_ARGS_MAX 64

/* NULL-terminated arguments, which point into `text` and into the sources of the arguments. */
struct start_args {
	char *at[START_ARGS_MAX];
	unsigned n;
	char text[8192], port[12], connect_timeout[40];
};

/* ssh that runs `remote`, a command for the far shell, or, for `remote` NULL, prints its configuration for the host
 * (-G). `command`: ssh's path and options, which precede ours; quoted as text_next_word() has it; "" or NULL: ssh. Of
 * `so` ssh gets the family, and the time-out for connecting (0: no limit), without the time for a password.
 * PTCP_EUSAGE. */
int ssh_args(struct start_args *out, const char *command, const struct remote *t, const struct sock_opts *so,
    const char *remote, struct ptcp_err *e);

/* The words of `command`, {host} replaced, the words of `ptcp` (NULL: "ptcp"), and the subcommand for a single
 * transfer. Quoted as text_next_word() has it; no shell of this host reads them. PTCP_EUSAGE. */
int launch_args(struct start_args *out, const char *command, const char *host, const char *ptcp, struct ptcp_err *e);

/* The words of `command` with {host} (NULL: none) replaced, then "PTCP mover --join FILE". PTCP_EUSAGE. */
int mover_args(struct start_args *out, const char *command, const char *host, const char *ptcp, const char *file,
    struct ptcp_err *e);

#endif
