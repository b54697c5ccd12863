/* Subcommands of the laboratory's driver; each returns the exit status. argv[0] is
 * the subcommand's name. */
#ifndef LAB_CMD_H
#define LAB_CMD_H

#include <ptcp/err.h>

#include "state.h"

#define EXIT_USAGE 2
#define EXIT_NO_NAMESPACES 77 /* namespaces may not be made here: tests skip */

int cmd_up(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_addr(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_cut(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_selftest(int argc, char **argv);

/* Print "lab: message" and return the exit status that fits. */
int cmd_fail(const struct ptcp_err *e);

/* Print the usage line of argv[0] and return EXIT_USAGE. */
int cmd_usage(char **argv);

/* Take "-n NAME" off the front of the arguments: the lab's name, checked; NULL if
 * it was not given. Returns the index of the first other argument, -1 on misuse. */
int cmd_name_option(int argc, char **argv, const char **name);

/* The state of lab `name`; if NULL of $PTCP_LAB, or of the only one that is up. */
int cmd_find_lab(struct state *s, const char *name, struct ptcp_err *e);

#endif
