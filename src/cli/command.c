#include "cli/command.h"

#include <stdio.h>

#include "cli/exit.h"
#include "cli/options.h"

int command_help(const struct command *c)
{
	printf("usage: ptcp %s%s%s\n", c->name, *c->operands != '\0' ? " " : "", c->operands);
	printf("%s%s\n", c->summary, c->run == NULL ? " (not available yet)" : "");
	if (c->options != NULL) {
		printf("\n");
		options_help(stdout, c->options);
	}
	return 0;
}

int command_end(const struct command *c, int r, const struct ptcp_err *e)
{
	if (r == OPTIONS_HELP)
		return command_help(c);
	return r < 0 ? (int)exit_fail(e) : EXIT_DONE;
}
