/* ptcp status: running commands of this user, and detached transfers. */
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/running.h"
#include "cli/show/json.h"
#include "cli/show/terminal.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct status_args {
	struct client_opts connect; /* first */
	bool cancel;
	bool single;            /* a single transfer is requested: */
	struct ptcp_err failed; /* its failure */
};

static const struct opt status_options[] = {
	{ "cancel", 0, NULL, "cancel the transfer; repeat the ptcp send command to resume", opt_true,
	    offsetof(struct status_args, cancel), 0, 0 },
	{ .name = NULL },
};

static void print_json(const struct ptcp_status *s)
{
	bool failed = s->state == PTCP_STATE_FAILED, running = s->state == PTCP_STATE_RUNNING;
	const struct ptcp_progress *g = &s->progress;

	json_line(json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
	    "s:o, s:o, s:b}",
	    "event", "status", "name", s->name, "state", ptcp_state_name(s->state), "source",
	    json_text(s->source), "peer",
	    s->peer, "destination", json_text(s->dest), "bytes", json_count(running ? g->bytes : g->file_bytes),
	    "total_bytes",
	    g->total_known ? json_count(g->total_bytes) : json_null(), "files", json_count(g->files), "failed",
	    json_count(g->failed), "wire_bytes", json_count(g->wire_bytes), "saved_bytes",
	    json_count(g->saved_bytes), "resumed_bytes", json_count(g->resumed_bytes),
	    "streams", json_count(running ? g->streams : g->max_streams), "age_s", json_seconds(s->age_s), "seconds",
	    json_seconds(s->seconds), "exit", running ? json_null() : json_integer(exit_status(s->code)), "error",
	    failed ? json_text(s->error) : json_null(), "cause", json_cause(failed ? s->sys : 0), "fetched",
	    s->fetched));
}

static void print_text(const struct ptcp_status *s)
{
	char bytes[UNITS_TEXT_BYTES], total[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];
	char from[4 * 4096 + 1], to[4 * 4096 + 1];
	bool running = s->state == PTCP_STATE_RUNNING;
	const struct ptcp_progress *g = &s->progress;

	printf("%s  %s  %llu file%s, %s", s->name, ptcp_state_name(s->state), (unsigned long long)g->files,
	    plural(g->files), units_size_text(bytes, running ? g->bytes : g->file_bytes));
	if (running)
		printf(" of %s%s", units_size_text(total, g->total_bytes), g->total_known ? "" : " so far");
	text_escape(from, sizeof from, s->source);
	text_escape(to, sizeof to, s->dest);
	printf(" in %s, %s  ", units_time_text(time, s->seconds),
	    units_rate_text(rate, connect_throughput_bps(g->wire_bytes + g->saved_bytes, s->seconds)));
	if (s->fetched)
		printf("%s %s to %s", s->peer, from, to);
	else
		printf("%s to %s %s", from, s->peer, to);
	printf("%s%s\n", s->error != NULL ? ": " : "", s->error != NULL ? s->error : "");
}

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct status_args *a = arg;

	if (ev->type != PTCP_EVENT_STATUS)
		return;
	if (a->connect.log.json)
		print_json(ev->left);
	else
		print_text(ev->left);
	if (a->single && ev->left->state == PTCP_STATE_FAILED)
		err_set(&a->failed, ev->left->code, "%s: %s", ev->left->name, ev->left->error);
}

/* ---- Running commands of this user ---- */

/* Takes the status. */
static int print_running(const struct status_args *a, json_t *j, struct ptcp_err *e)
{
	if (a->connect.log.json)
		return json_result(j, e);
	running_write(stdout, j);
	json_decref(j);
	return 0;
}

static int list_running(const struct status_args *a, struct ptcp_err *e)
{
	json_t *list = running_list();
	size_t n = json_array_size(list), i;
	int r = list != NULL ? 0 : err_nomem(e);

	for (i = 0; i < n && r == 0; i++)
		r = print_running(a, json_incref(json_array_get(list, i)), e);
	if (r == 0 && n == 0 && !a->connect.log.quiet)
		terminal_line("ptcp: no transfer or server of this user is running on this host");
	json_decref(list);
	return r;
}

static int query_running(const struct status_args *a, const char *name, struct ptcp_err *e)
{
	json_t *status;
	int r = running_request(&status, name, a->cancel ? "cancel" : "status", e);

	return r < 0 ? r : print_running(a, status, e);
}

/* ---- Detached transfers ---- */

/* The operands are NAME, ID TARGET, or TARGET for all transfers. */
static int query(struct status_args *a, int n, char **operands, struct ptcp_err *e)
{
	struct ptcp_task *t = NULL;
	char name[512];
	int r;

	snprintf(name, sizeof name, "%s%s%s", operands[0], n > 1 ? "@" : "", n > 1 ? operands[1] : "");
	a->connect.transfer.event = on_event;
	a->connect.transfer.arg = a;
	a->single = strchr(name, '@') != NULL;
	if ((r = ptcp_status_new(&t, &a->connect.transfer, name, a->cancel, e)) == 0)
		r = connect_run(t, e);
	ptcp_task_free(t);
	if (r == 0 && a->failed.code != 0) {
		*e = a->failed;
		r = e->code;
	}
	return r;
}

static int run_status(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	char shown[TEXT_NAME_BYTES];
	struct status_args a;
	int n, r;

	memset(&a, 0, sizeof a);
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		if (n == 0)
			r = a.cancel ? err_set(&e, PTCP_EUSAGE,
			    "--cancel: needs the name of a transfer (ptcp status lists the names)") :
			    list_running(&a, &e);
		else
			r = n == 1 && running_exists(argv[0]) ? query_running(&a, argv[0], &e) : query(&a, n, argv, &e);
	}
	client_opts_fini(&a.connect);
	if (r == PTCP_ECONNECT && strpbrk(argv[0], ".:@/") == NULL)
		terminal_line("ptcp: warning: no running transfer of this user has the name %s, so it is taken as a "
		    "host", text_escape(shown, sizeof shown, argv[0]));
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(status_options), GROUP_CONNECTION, GROUP_LOG, GROUP_END };

const struct command command_status = { "status", "[options] [NAME | ID HOST[:PORT] | HOST[:PORT]]",
	"show or cancel running and detached transfers", run_status, tables, 0, 2,
	"takes the name of a running transfer, the name that --detach has printed, or the host that runs the "
	"transfer" };
