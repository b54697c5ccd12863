/* Prints the table of commands and options that the completions contain, from the tables of the commands: a line
 *
 *   COMMAND~OPTION~LETTER~VALUE~HELP
 *
 * for each listed option, and before these a line with the summary of the command as HELP, and no OPTION. OPTION and
 * LETTER have no dashes; VALUE is as in <ptcp/options.h>, empty for a switch. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"

static void print_option(const struct command *c, const struct opt *o)
{
	printf("%s~%s~%.1s~%s~%s\n", c->name, o->name, &o->letter, o->value != NULL ? o->value : "", o->help);
}

int main(void)
{
	static const struct opt help = { "help", 'h', NULL, "print the options of the command", NULL, 0, 0, 0 };
	const struct command *c;
	const struct opt_group *g;
	const struct opt *o;
	size_t i;

	for (i = 0; (c = command_at(i)) != NULL; i++) {
		printf("%s~~~~%s\n", c->name, c->summary);
		for (g = c->options; g != NULL && g->options != NULL && g->title != NULL; g++)
			for (o = g->options; o->name != NULL; o++)
				if (o->name[0] != '\0' && o->help != NULL)
					print_option(c, o);
		print_option(c, &help);
	}
	return ferror(stdout) || fflush(stdout) != 0;
}
