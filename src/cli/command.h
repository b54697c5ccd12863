/* Subcommands: their table, their help, and exit statuses. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include <ptcp/err.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CONNECT = 3,
	EXIT_REFUSED = 4,
	EXIT_VERIFY = 5,
	EXIT_PARTIAL = 6,
	EXIT_INFEASIBLE = 7,
	EXIT_INTERRUPTED = 8,
	/* as rsync's: */
	EXIT_VANISHED = 24,
	EXIT_STOPPED = 30
};

struct opt_group;

struct command {
	const char *name;
	const char *operands; /* operands as a synopsis shows them: "SRC... DEST" */
	const char *summary;
	/* Runs the command on the arguments after its name, which may be reordered; returns an exit status. */
	int (*run)(const struct command *c, int argc, char **argv);
	const struct opt_group *options; /* ended by an empty group (options.h); or NULL */
	int min_operands, max_operands;
	const char *needs;    /* error for a wrong number of operands: "needs one overlay file" */
};

extern const struct command command_advise, command_batch, command_collect, command_doctor, command_jobs, command_key, command_links,
    command_cat, command_clean, command_du, command_log, command_ls, command_measure, command_mkdir, command_mover,
    command_mv,
    command_rm, command_rmdir, command_stat, command_overlay, command_paths, command_plan, command_rate, command_recv, command_rsync, command_scp, command_send,
    command_serve,
    command_sftp, command_show_help, command_status, command_sum, command_verify,
    command_version;

/* The i-th subcommand in the order of the help, or NULL behind the last one; the subcommand of this name, or NULL. */
const struct command *command_at(size_t i);
const struct command *command_find(const char *name);

/* Prints that no subcommand has this name, with a remedy, on stderr; returns the exit status. */
int command_unknown(const char *name);

/* Prints usage, summary and options on stdout; returns 0. */
int command_help(const struct command *c);

/* Exit status for the result `r` of parsing or work: prints the help for OPTIONS_HELP, and the sentence in `e`
 * for a negative PTCP_E*. */
int command_end(const struct command *c, int r, const struct ptcp_err *e);

/* Exit status of a PTCP_E*, or of 0; EXIT_FAILED for an unknown code. */
enum exit_status exit_status(int code);

/* The sentence in `e`, or the default text of its code. */
const char *exit_sentence(const struct ptcp_err *e);

/* Prints "ptcp: SENTENCE" on stderr and returns the exit status. */
enum exit_status exit_fail(const struct ptcp_err *e);

/* `status`, unless writing to stdout has failed: prints an error and returns EXIT_FAILED if `status` was 0. */
int exit_checked(int status);

#endif
