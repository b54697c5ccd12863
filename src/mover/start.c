/* The command lines that start movers. */
#include "conn/start_args.h"
#include "mover/movers.h"

static int start(struct movers *m, const char *command, const char *host, const char *ptcp, struct ptcp_err *e)
{
	struct start_args args;
	int r = mover_args(&args, command, host, ptcp, movers_invitation(m), e);

	return r < 0 ? r : movers_launch(m, args.at, e);
}

int movers_start(struct movers *m, const char *command, const char *const *host, size_t n_hosts, const char *ptcp,
    struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	if (n_hosts == 0)
		return start(m, command, NULL, ptcp, e);
	for (i = 0; i < n_hosts && r == 0; i++)
		r = start(m, command, host[i], ptcp, e);
	return r;
}
