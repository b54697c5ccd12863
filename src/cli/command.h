/* What the table in main.c says of a subcommand. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

struct opt;
struct ptcp_err;

struct command {
	const char *name;
	const char *operands; /* as in a synopsis: "SRC... DEST" */
	const char *summary;
	/* Gets the arguments after the command's name, may reorder them; returns an exit
	 * status. NULL: comes in a later release, and says so. */
	int (*run)(const struct command *c, int argc, char **argv);
	const struct opt *const *options; /* tables (options.h), ended by NULL; or NULL */
};

/* "usage: ptcp NAME ..", the summary and the options, on stdout; returns 0. */
int command_help(const struct command *c);

/* What main() returns when options or work came to `r`: help for OPTIONS_HELP, for a negative PTCP_E* its
 * sentence in `e`. */
int command_end(const struct command *c, int r, const struct ptcp_err *e);

int cmd_serve(const struct command *c, int argc, char **argv);
int cmd_send(const struct command *c, int argc, char **argv);
int cmd_recv(const struct command *c, int argc, char **argv);
int cmd_key(const struct command *c, int argc, char **argv);
int cmd_plan(const struct command *c, int argc, char **argv);
int cmd_paths(const struct command *c, int argc, char **argv);
int cmd_links(const struct command *c, int argc, char **argv);
int cmd_advise(const struct command *c, int argc, char **argv);
int cmd_measure(const struct command *c, int argc, char **argv);
int cmd_status(const struct command *c, int argc, char **argv);
int cmd_doctor(const struct command *c, int argc, char **argv);
int cmd_version(const struct command *c, int argc, char **argv);

extern const struct opt *const serve_options[];
extern const struct opt *const send_options[], *const recv_options[];
extern const struct opt *const key_options[];
extern const struct opt *const plan_options[];
extern const struct opt *const paths_options[];
extern const struct opt *const links_options[];
extern const struct opt *const advise_options[];
extern const struct opt *const measure_options[];
extern const struct opt *const status_options[];
extern const struct opt *const doctor_options[];

#endif
