/* The table of subcommands, a loop over it, and the help printed from it. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/exit.h"
#include "cli/options.h"
#include "cli/process.h"
#include "core/err.h"
#include "core/text.h"

static int cmd_help(const struct command *c, int argc, char **argv);

static const struct command commands[] = {
	{ "serve", "[options]", "serve files on one port, to authorised clients",
	    cmd_serve, serve_options },
	{ "send", "[options] SRC... DEST", "send files and directories to another host",
	    cmd_send, send_options },
	{ "recv", "[options] SRC... DEST", "receive files and directories from another host",
	    cmd_recv, recv_options },
	{ "key", "show | generate | authorize FINGERPRINT [options] | revoke FINGERPRINT",
	    "this host's identity, and who may connect", cmd_key, key_options },
	{ "plan", "[options] OVERLAY.yaml", "plan how to collect data from many hosts",
	    cmd_plan, plan_options },
	{ "collect", "[options] OVERLAY.yaml [DEST]", "collect data from many hosts by a plan", cmd_collect,
	    collect_options },
	{ "links", "[options] OVERLAY.yaml", "measure the links of an overlay, from here and from where they begin",
	    cmd_links, links_options },
	{ "paths", "[options] --from A --to B --size SIZE OVERLAY.yaml",
	    "quickest paths between two hosts, and what to send over each", cmd_paths, paths_options },
	{ "advise", "[options] HOST[:PORT] | [options] --from-probes N:RATE,..",
	    "how many streams to use", cmd_advise, advise_options },
	{ "measure", "[options] HOST[:PORT]", "measure a path with many streams, over many rounds",
	    cmd_measure, measure_options },
	{ "status", "[options] NAME | ID HOST[:PORT] | HOST[:PORT]", "how a detached transfer is doing",
	    cmd_status, status_options },
	{ "doctor", "[options] [TARGET]", "what slows transfers here, and what mends it", cmd_doctor,
	    doctor_options },
	{ "version", "", "print the version", cmd_version, NULL },
	{ "help", "[COMMAND]", "print this, or what a command takes", cmd_help, NULL },
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static const struct command *find(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int no_such_command(const char *name)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err e;

	err_set(&e, PTCP_EUSAGE, "%s: no such command (ptcp help lists them)",
	    text_escape(shown, sizeof shown, name));
	return exit_fail(&e);
}

static int cmd_help(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e;
	const struct command *of;
	size_t i;

	if (argc > 1) {
		err_set(&e, PTCP_EUSAGE, "%s: takes one command (ptcp help COMMAND)", c->name);
		return exit_fail(&e);
	}
	if (argc == 1 && !options_ask_help(argv[0]))
		return (of = find(argv[0])) != NULL ? command_help(of) : no_such_command(argv[0]);
	printf("usage: ptcp COMMAND [options] [operands]\n"
	       "Files and trees between hosts, over parallel TLS streams.\n\n");
	for (i = 0; i < N_COMMANDS; i++)
		printf("  %-8s  %s\n", commands[i].name, commands[i].summary);
	printf("\nptcp help COMMAND and ptcp COMMAND --help print what a command takes; "
	       "man ptcp has it all.\n");
	return 0;
}

static int run(int argc, char **argv)
{
	struct ptcp_err e;
	const struct command *c;

	if (argc == 0) {
		err_set(&e, PTCP_EUSAGE, "no command: say what to do (ptcp help lists the commands)");
		return exit_fail(&e);
	}
	if (options_ask_help(argv[0]))
		return cmd_help(find("help"), argc - 1, argv + 1);
	if (strcmp(argv[0], "--version") == 0)
		return cmd_version(find("version"), argc - 1, argv + 1);
	if ((c = find(argv[0])) == NULL)
		return no_such_command(argv[0]);
	return c->run(c, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	process_prepare();
	return exit_checked(run(argc > 0 ? argc - 1 : 0, argv + 1));
}
