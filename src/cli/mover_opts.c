#include "cli/mover_opts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"

#define TRANSFER(member) offsetof(struct transfer_args, connect.transfer.member)

static struct ptcp_transfer_opts *opts(void *args)
{
	return &((struct transfer_args *)args)->connect.transfer;
}

static int add_mover_host(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	(void)o; /* the library checks the text */
	return opt_append_copy(&opts(args)->mover_hosts, &opts(args)->n_mover_hosts, part, e);
}

static int set_mover_hosts(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, add_mover_host);
}

const struct opt mover_options[] = {
	{ "movers", 0, "COMMAND", "start movers, which carry the data on other hosts: srun -N4, or with {host} ssh {host}",
	    opt_text, TRANSFER(movers), 0, 0 },
	{ "mover-hosts", 0, "A,B,..", "with --movers: run the command once per host, {host} replaced", set_mover_hosts, 0, 0, 0 },
	{ "mover-file", 0, "FILE", "invitation for movers, on a shared file system; -: their standard input (default: in the "
	    "configuration directory)", opt_text, TRANSFER(mover_file), 0, 0 },
	{ "mover-ptcp", 0, "PATH", "ptcp on the hosts of the movers (default: the path of this program)", opt_text,
	    TRANSFER(mover_ptcp), 0, 0 },
	{ "movers-listen", 0, "[ADDR:]PORT", "where movers connect to on this host (default: every address, a free port)",
	    opt_text, TRANSFER(movers_listen), 0, 0 },
	{ "movers-wait", 0, "TIME", "how long to wait for the first mover, or while none is left (default: 10s)", opt_seconds,
	    TRANSFER(movers_wait_s), OPT_PATIENCE },
	{ "stripe-size", 0, "SIZE", "stripe of the shared file system, if it does not divide 64 MiB", opt_bytes,
	    TRANSFER(stripe_bytes), 4096, 1 << 30 },
	{ .name = NULL },
};

void mover_options_fini(struct transfer_args *a)
{
	opt_copies_free(&opts(a)->mover_hosts, &opts(a)->n_mover_hosts);
}

const char *mover_own_path(char *out, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", out, cap - 1);

	if (n <= 0)
		return NULL;
	out[n] = '\0';
	return out;
}
