/* The command lines that start movers. */
#include <string.h>

#include "conn/start_args.h"
#include "core/err.h"
#include "core/text.h"
#include "mover/movers.h"

int movers_check(const char *command, size_t n_hosts, const char *file, const char *ptcp, const char *listen,
    struct ptcp_err *e)
{
	if (command == NULL && ptcp != NULL)
		return err_set(e, PTCP_EUSAGE, "--mover-ptcp: only with --movers (give the command)");
	if (command == NULL && file == NULL && listen != NULL)
		return err_set(e, PTCP_EUSAGE, "--movers-listen: without movers (give --movers or --mover-file)");
	if (command == NULL && file == NULL)
		return n_hosts == 0 ? 0 : err_set(e, PTCP_EUSAGE,
		    "--mover-hosts: only with --movers (give the command)");
	if (command == NULL && (n_hosts > 0 || text_is_stdio(file)))
		return err_set(e, PTCP_EUSAGE,
		    "--mover-hosts, --mover-file -: need the command that starts movers (give --movers)");
	if (command != NULL && command[strspn(command, " \t\n")] == '\0')
		return err_set(e, PTCP_EUSAGE, "--movers: the command is empty (name the command that starts movers, "
		    "such as 'srun -N4')");
	if (command != NULL && n_hosts > 0 && strstr(command, "{host}") == NULL)
		return err_set(e, PTCP_EUSAGE,
		    "--mover-hosts: the command of --movers has no {host} (write it, such as 'ssh {host}')");
	if (command != NULL && n_hosts == 0 && strstr(command, "{host}") != NULL)
		return err_set(e, PTCP_EUSAGE, "--movers: {host} without hosts (give --mover-hosts A,B,..)");
	return 0;
}

int movers_check_stripe(uint64_t bytes, bool striped, struct ptcp_err *e)
{
	if (bytes > 0 && !striped)
		return err_set(e, PTCP_EUSAGE, "--stripe-size: without movers (give --movers or --mover-file)");
	if (bytes % WIRE_STRIPE_BYTES != 0 || bytes / WIRE_STRIPE_BYTES > WIRE_STRIPES_MAX)
		return err_set(e, PTCP_EUSAGE, "--stripe-size %llu: not a multiple of 4 KiB up to 1 GiB (on Lustre, "
		    "lfs getstripe -S shows the stripe size)", (unsigned long long)bytes);
	return 0;
}

static int start_start(struct movers *m, const char *command, const char *host, const char *ptcp, struct ptcp_err *e)
{
	struct start_args args;
	int r = mover_args(&args, command, host, ptcp, movers_invitation(m), e);

	return r < 0 ? r : movers_launch(m, args.at, host, e);
}

int movers_start(struct movers *m, const char *command, const char *const *host, size_t n_hosts, const char *ptcp,
    struct ptcp_err *e)
{
	size_t i;
	int r = 0;

	if (n_hosts == 0)
		return start_start(m, command, NULL, ptcp, e);
	for (i = 0; i < n_hosts && r == 0; i++)
		r = start_start(m, command, host[i], ptcp, e);
	return r;
}
