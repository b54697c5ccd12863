#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/show/terminal.h"

int command_help(const struct command *c)
{
	printf("usage: ptcp %s%s%s\n%s\n", c->name, *c->operands != '\0' ? " " : "", c->operands, c->summary);
	if (c->options != NULL) {
		printf("\n");
		options_help(stdout, c);
	}
	return 0;
}

int command_end(const struct command *c, int r, const struct ptcp_err *e)
{
	if (r == OPTIONS_HELP)
		return command_help(c);
	return r < 0 ? (int)exit_fail(e) : EXIT_DONE;
}

static const struct {
	int code;
	enum exit_status status;
} statuses[] = {
	{ 0, EXIT_DONE },
	{ PTCP_EUSAGE, EXIT_USAGE },
	{ PTCP_ECONFIG, EXIT_USAGE },
	{ PTCP_ENOTYET, EXIT_USAGE },
	{ PTCP_ERANGE, EXIT_USAGE },
	{ PTCP_ECONNECT, EXIT_CONNECT },
	{ PTCP_EREFUSED, EXIT_REFUSED },
	{ PTCP_EBUSY, EXIT_REFUSED },
	{ PTCP_EVERIFY, EXIT_VERIFY },
	{ PTCP_EPARTIAL, EXIT_PARTIAL },
	{ PTCP_EINFEASIBLE, EXIT_INFEASIBLE },
	{ PTCP_ECANCELED, EXIT_INTERRUPTED },
	{ PTCP_EVANISHED, EXIT_VANISHED },
	{ PTCP_ESTOPPED, EXIT_STOPPED },
};

enum exit_status exit_status(int code)
{
	size_t i;

	for (i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code)
			return statuses[i].status;
	return EXIT_FAILED;
}

const char *exit_sentence(const struct ptcp_err *e)
{
	return e->msg[0] != '\0' ? e->msg : ptcp_err_text(e->code);
}

enum exit_status exit_fail(const struct ptcp_err *e)
{
	terminal_line("%sptcp: %s", terminal_is_journal() ? "<3>" : "", exit_sentence(e));
	return exit_status(e->code);
}

int exit_checked(int status)
{
	int error = fflush(stdout) == 0 ? 0 : errno; /* errno of an earlier failure is lost */

	if ((error == 0 && !ferror(stdout)) || status != EXIT_DONE)
		return status;
	terminal_line("ptcp: standard output: incomplete%s%s (free disk space, or read all of the output)",
	    error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
	return EXIT_FAILED;
}
