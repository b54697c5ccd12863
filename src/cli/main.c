/* Runs the subcommand that the command line names. */
#include <string.h>

#include "cli/client_opts.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/err.h"

static int run(int argc, char **argv)
{
	struct ptcp_err e;
	const struct command *c;

	if (argc == 0) {
		err_set(&e, PTCP_EUSAGE, "no command: name a command (ptcp help lists them)");
		return exit_fail(&e);
	}
	if (options_is_help(argv[0]))
		return command_show_help.run(&command_show_help, argc - 1, argv + 1);
	if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-V") == 0)
		return command_version.run(&command_version, argc - 1, argv + 1);
	if ((c = command_find(argv[0])) == NULL)
		return command_unknown(argv[0]);
	return c->run(c, argc - 1, argv + 1);
}

/* A link to ptcp that is named rsync or scp takes their command lines. */
static const struct command *command_named(const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct command *c = command_find(slash != NULL ? slash + 1 : path);

	return c == &command_rsync || c == &command_scp ? c : NULL;
}

int main(int argc, char **argv)
{
	const struct command *c = argc > 0 ? command_named(argv[0]) : NULL;
	int status;

	process_prepare();
	status = c != NULL ? c->run(c, argc - 1, argv + 1) : run(argc > 0 ? argc - 1 : 0, argv + 1);
	connect_end();
	return exit_checked(status);
}
