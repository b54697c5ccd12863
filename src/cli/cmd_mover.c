/* ptcp mover: carries streams of a striped transfer on another host. */
#include <ptcp/ptcp.h>
#include <string.h>

#include "cli/command.h"
#include "cli/confine.h"
#include "cli/log_opts.h"
#include "core/err.h"

struct mover_args {
	struct log_opts log; /* first */
	const char *join;
	bool no_sandbox;
};

#define AT(member) offsetof(struct mover_args, member)

static const struct opt mover_options[] = {
	{ "join", 0, "FILE", "invitation of the transfer, which its --movers writes (-: standard input)", opt_text,
	    AT(join), 0, 0 },
	{ "no-sandbox", 0, NULL, "do not restrict the mover to the sources or the destination", opt_true,
	    AT(no_sandbox), 0, 0 },
	{ .name = NULL },
};

static int on_confine(void *arg, const struct ptcp_mover_needs *n, struct ptcp_err *e)
{
	static const char *const none[] = { NULL };
	const struct mover_args *a = arg;
	const struct ptcp_server_needs server = { .roots = none, .connects = true };
	const struct confine_tool tool = { .roots = n->roots, .n_roots = n->n_roots, .writes_roots = n->writes };

	return a->no_sandbox ? 0 : confine(&server, &tool, CONFINE_ABI, log_opts_level(&a->log, PTCP_LOG_WARN), e);
}

static int run_mover(const struct command *c, int argc, char **argv)
{
	struct ptcp_mover_opts o;
	struct mover_args a;
	struct ptcp_err e;
	int r, level;

	memset(&a, 0, sizeof a);
	log_opts_init(&a.log);
	if ((r = options_parse(c, argc, argv, &a, NULL, NULL, &e)) == 0 && a.join == NULL)
		r = err_set(&e, PTCP_EUSAGE,
		    "mover: no invitation (--join FILE, which ptcp send or recv --movers writes)");
	if (r != 0)
		return command_end(c, r, &e);
	ptcp_mover_opts_init(&o);
	o.join = a.join;
	level = log_opts_level(&a.log, PTCP_LOG_WARN);
	o.log = level != LOG_NONE ? log_print : NULL;
	o.log_level = level != LOG_NONE ? (enum ptcp_log_level)level : PTCP_LOG_ERROR;
	o.arg = &a;
	o.confine = on_confine;
	return command_end(c, ptcp_mover(&o, &e), &e);
}

static const struct opt_group tables[] = { GROUP_OWN(mover_options), GROUP_LOG, GROUP_END };

const struct command command_mover = { "mover", "--join FILE", "carry a part of a striped transfer on another host",
	run_mover, tables, 0, 0, "takes no operand" };
