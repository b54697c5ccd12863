#include "cli/exit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/terminal.h"

static const struct {
	int code;
	enum exit_status status;
} statuses[] = {
	{ 0, EXIT_DONE },
	{ PTCP_ENOMEM, EXIT_FAILED },
	{ PTCP_EUSAGE, EXIT_USAGE },
	{ PTCP_ECONFIG, EXIT_USAGE },
	{ PTCP_ECONNECT, EXIT_CONNECT },
	{ PTCP_EREFUSED, EXIT_REFUSED },
	{ PTCP_EVERIFY, EXIT_VERIFY },
	{ PTCP_EPARTIAL, EXIT_PARTIAL },
	{ PTCP_EINFEASIBLE, EXIT_INFEASIBLE },
	{ PTCP_ECANCELED, EXIT_INTERRUPTED },
	{ PTCP_EPROTO, EXIT_FAILED },
	{ PTCP_EPEER, EXIT_FAILED },
	{ PTCP_ETIMEOUT, EXIT_FAILED },
	{ PTCP_EIO, EXIT_FAILED },
	{ PTCP_ENOSPC, EXIT_FAILED },
	{ PTCP_ECHANGED, EXIT_FAILED },
	{ PTCP_ENOTYET, EXIT_USAGE },
	{ PTCP_ERANGE, EXIT_USAGE },
};

enum exit_status exit_status(int code)
{
	size_t i;

	for (i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code)
			return statuses[i].status;
	return EXIT_FAILED;
}

enum exit_status exit_fail(const struct ptcp_err *e)
{
	terminal_line("%sptcp: %s", terminal_is_journal() ? "<3>" : "",
	    e->msg[0] != '\0' ? e->msg : ptcp_err_text(e->code));
	return exit_status(e->code);
}

int exit_checked(int status)
{
	int now = fflush(stdout) == 0 ? 0 : errno; /* of an earlier failure errno is gone */

	if ((now == 0 && !ferror(stdout)) || status != EXIT_DONE)
		return status;
	terminal_line("ptcp: standard output: not all of it could be written%s%s "
	    "(make room, or read it to its end)",
	    now != 0 ? ": " : "", now != 0 ? strerror(now) : "");
	return EXIT_FAILED;
}
