/* Options of every command that connects. */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include <ptcp/ptcp.h>

#include "cli/log_opts.h"

/* First member of the args of a command whose tables contain connect_options. */
struct connect_args {
	struct log_opts_args talk;
	const char **fingerprints; /* texts borrowed from argv */
	size_t n_fingerprints;
	double timeout_s;
	int family;             /* 0, 4 or 6 */
	const char *congestion; /* NULL: the system's */
	const char *ssh, *remote_ptcp; /* NULL: the library's */
	unsigned remote_port;   /* 0: any */
};

extern const struct opt connect_options[];
/* Beside them, where a target may be one that ssh leads to. */
extern const struct opt ssh_options[];

void connect_init(struct connect_args *a);
void connect_fini(struct connect_args *a);

/* Into the library's options, which borrow from `a`; with the trust question when there
 * is a terminal to ask on. */
void connect_apply(const struct connect_args *a, struct ptcp_transfer_opts *o);

#endif
