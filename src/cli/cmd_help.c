/* The table of subcommands, the commands help and version, and the sentence about an unknown command. */
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"
#include "core/err.h"
#include "core/text.h"

static int run_help(const struct command *c, int argc, char **argv);
static int run_version(const struct command *c, int argc, char **argv);

const struct command command_version = { "version", "", "print the version", run_version, NULL, 0, 0,
	"takes no operand" };
const struct command command_show_help = { "help", "[COMMAND]", "print this help, or the help of a command", run_help,
	NULL, 0, 1, "takes one command" };

static const struct command *const commands[] = {
	&command_serve, &command_log,
	&command_send, &command_recv, &command_mover, &command_key, &command_overlay, &command_plan,
	&command_collect, &command_links, &command_paths, &command_advise, &command_measure,
	&command_status, &command_rate, &command_jobs,
	&command_ls, &command_cat, &command_sum, &command_verify, &command_stat, &command_du, &command_mkdir,
	&command_rmdir, &command_rm, &command_mv, &command_clean, &command_batch,
	&command_doctor,
	&command_rsync, &command_scp, &command_sftp,
	&command_version, &command_show_help,
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

const struct command *command_at(size_t i)
{
	return i < N_COMMANDS ? commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int command_unknown(const char *name)
{
	const char *habit = name[0] != '-' ? suggest_command(name) :
	    "options follow the command, as in ptcp send -a SRC... HOST:DEST";
	char shown[TEXT_NAME_BYTES];
	struct suggest near;
	struct ptcp_err e;
	size_t i;

	suggest_init(&near, name, strlen(name));
	for (i = 0; i < N_COMMANDS; i++)
		suggest_offer(&near, commands[i]->name);
	text_escape(shown, sizeof shown, name);
	if (habit != NULL)
		err_set(&e, PTCP_EUSAGE, "%s: no such command (%s)", shown, habit);
	else if (near.best != NULL)
		err_set(&e, PTCP_EUSAGE, "%s: no such command (did you mean %s?)", shown, near.best);
	else
		err_set(&e, PTCP_EUSAGE, "%s: no such command (ptcp help lists them)", shown);
	return exit_fail(&e);
}

static int run_version(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e;
	int r;

	if ((r = options_parse(c, argc, argv, NULL, NULL, NULL, &e)) == 0)
		printf("ptcp %s\n", ptcp_version());
	return command_end(c, r, &e);
}

static int run_help(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e;
	const struct command *of;
	size_t i;
	int n, r;

	if ((r = options_parse(c, argc, argv, NULL, &n, NULL, &e)) < 0)
		return command_end(c, r, &e);
	if (r == 0 && n == 1)
		return (of = command_find(argv[0])) != NULL ? command_help(of) : command_unknown(argv[0]);
	printf("usage: ptcp COMMAND [options] [operands]\n"
	       "Transfer files and directories between hosts over parallel TLS streams.\n\n");
	for (i = 0; i < N_COMMANDS; i++)
		printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	printf("\nptcp help COMMAND and ptcp COMMAND --help print the options of a command; man ptcp is the manual.\n");
	return 0;
}
