/* The command line of ssh. Pure. */
#ifndef CLIENT_SSH_ARGS_H
#define CLIENT_SSH_ARGS_H

#include "conn/remote.h"
#include "net/sock.h"

#define SSH_ARGS_MAX 64

/* Arguments, ended by NULL; they point into `text` and to what it was made from. */
struct ssh_args {
	char *at[SSH_ARGS_MAX];
	unsigned n;
	char text[4096], port[12], patience[40];
};

/* Starts `remote` there (a command of the far shell), or with `remote` NULL asks ssh what it makes of the
 * host (-G). `command`: its words, quoted with ' or " or \ where they have blanks; "" or NULL: ssh; what it sets
 * stands before ours. Of `so`, the family counts, and the time-out (0: none), in which ssh has to connect, without
 * the time that it asks for a password. PTCP_EUSAGE. */
int ssh_args(struct ssh_args *out, const char *command, const struct remote *t, const struct sock_opts *so,
    const char *remote, struct ptcp_err *e);

#endif
