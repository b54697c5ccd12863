#include <stdio.h>

#include <ptcp/ptcp.h>

#include "cli/command.h"
#include "cli/exit.h"
#include "cli/options.h"
#include "core/err.h"

int cmd_version(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e;
	int n, r;

	if ((r = options_parse(c, argc, argv, NULL, &n, &e)) == OPTIONS_HELP)
		return command_help(c);
	if (r < 0)
		return exit_fail(&e);
	if (n > 0) {
		err_set(&e, PTCP_EUSAGE, "%s: takes nothing (ptcp %s)", c->name, c->name);
		return exit_fail(&e);
	}
	printf("ptcp %s\n", ptcp_version());
	return 0;
}
