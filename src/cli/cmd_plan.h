#ifndef CLI_CMD_PLAN_H
#define CLI_CMD_PLAN_H

/* argv[0] is the subcommand's name; returns an exit status. */
int cmd_plan(int argc, char **argv);

#endif
