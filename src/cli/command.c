#include "cli/command.h"

#include <stdio.h>

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
