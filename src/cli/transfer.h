/* What send and recv share: options, run and output. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "cli/connect.h"
#include "cli/output.h"
#include "cli/overlay_paths.h"

struct transfer_args {
	struct connect_args connect; /* first */
	unsigned streams;            /* 0: auto; then: */
	double impact_percent;
	unsigned max_streams;
	bool no_history;
	enum ptcp_cipher cipher;
	bool no_verify;
	bool times, mode, links, owner, xattr, setid; /* --preserve */
	struct ptcp_rule *rules; /* --exclude, --include in their order; patterns borrowed from argv */
	size_t n_rules;
	bool no_resume, dry_run, detach;
	enum ptcp_fsync fsync;
	const char *rate;        /* NULL: no limit */
	const char **vias;       /* --via; texts borrowed from argv */
	size_t n_vias;
	const char *overlay;     /* NULL: none; with it: */
	const char *local_host;       /* NULL: by its address */
	const char **relays;     /* --relays; texts are owned */
	size_t n_relays;
	unsigned n_paths;        /* 0: not said */
	struct overlay_paths routes;    /* found there */
	const char *const *srcs; /* borrowed from argv */
	size_t n_srcs;
	const char *dest;
};

/* Options and operands of `c`; 0, OPTIONS_HELP or a negative PTCP_E*. Call
 * transfer_args_fini() whatever it returns. */
int transfer_parse(struct transfer_args *a, const struct command *c, int argc, char **argv,
    struct ptcp_err *e);
void transfer_args_fini(struct transfer_args *a);

/* What the library is given; borrows from `a`. */
void transfer_opts(const struct transfer_args *a, struct ptcp_transfer_opts *o);

/* ptcp_send_new or ptcp_recv_new */
typedef int transfer_new_fn(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e);

/* The whole command; returns its exit status. */
int transfer_command(const struct command *c, int argc, char **argv, transfer_new_fn *make);

#endif
