/* ptcp rate: changes the limit of a running transfer. */
#include <stdio.h>
#include <string.h>

#include "cli/log_opts.h"
#include "cli/running.h"
#include "cli/show/json.h"
#include "core/err.h"
#include "core/text.h"
#include "core/timetable.h"

struct rate_args {
	struct log_opts log; /* first */
};

/* Errors of the local command come first: the running one has its own words for --rate. */
static int check(const char *name, const char *rate, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct timetable table;
	struct ptcp_err why;

	if (!running_name_ok(name))
		return err_set(e, PTCP_EUSAGE, "%s: not the name of a transfer (ptcp status lists the names)",
		    text_escape(shown, sizeof shown, name));
	if (strcmp(rate, "none") == 0 || timetable_parse(&table, rate, &why) == 0)
		return 0;
	return err_set(e, PTCP_EUSAGE, "rate: %s", why.msg);
}

static int change(const struct rate_args *a, const char *name, const char *rate, struct ptcp_err *e)
{
	char request[TIMETABLE_BYTES + 16];
	json_t *answer;
	int r;

	if ((r = check(name, rate, e)) < 0)
		return r;
	snprintf(request, sizeof request, "rate %s", rate);
	if ((r = running_request(&answer, name, request, e)) < 0)
		return r;
	if (a->log.json)
		return json_result(answer, e);
	json_decref(answer);
	return 0;
}

static int run_rate(const struct command *c, int argc, char **argv)
{
	struct rate_args a;
	struct ptcp_err e;
	int r;

	log_opts_init(&a.log);
	if ((r = options_parse(c, argc, argv, &a, NULL, NULL, &e)) == 0)
		r = change(&a, argv[0], argv[1], &e);
	return command_end(c, r, &e);
}

static const struct opt rate_options[] = {
	{ "json", 0, NULL, "print the status with the new limit as a JSON object", opt_true,
	    offsetof(struct rate_args, log.json), 0, 0 },
	{ .name = NULL },
};
static const struct opt_group tables[] = { GROUP_OWN(rate_options), GROUP_END };

const struct command command_rate = { "rate", "[--json] NAME RATE|none", "change the rate limit of a running transfer",
	run_rate, tables, 2, 2, "needs the name of a running transfer (ptcp status lists them), and a rate or none" };
