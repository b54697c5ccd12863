#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exit.h"
#include "cli/json.h"
#include "cli/measure_opts.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct status_args {
	struct connect_args connect; /* first */
	bool end;
	/* what came of the one that was asked for */
	bool one;
	struct ptcp_err failed;
};

static const struct opt own_options[] = {
	{ "end", 0, NULL, "end it first; the same command goes on from there", opt_true,
	    offsetof(struct status_args, end) },
	{ .name = NULL },
};

const struct opt *const status_options[] = { own_options, connect_options, log_opts_options, NULL };

static void show_json(const struct ptcp_status *s)
{
	bool failed = s->state == PTCP_STATE_FAILED, running = s->state == PTCP_STATE_RUNNING;
	const struct ptcp_progress *g = &s->progress;

	json_line(json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "event",
	    "status", "name", s->name, "state", ptcp_state_name(s->state), "source", json_text(s->source), "peer",
	    s->peer, "destination", json_text(s->dest), "bytes", json_count(running ? g->bytes : g->file_bytes), "total_bytes",
	    g->total_known ? json_count(g->total_bytes) : json_null(), "files", json_count(g->files), "failed",
	    json_count(g->failed), "wire_bytes", json_count(g->wire_bytes), "resumed_bytes",
	    json_count(g->resumed_bytes), "streams", json_count(running ? g->streams : g->max_streams), "age_s", json_seconds(s->age_s),
	    "seconds", json_seconds(s->seconds), "exit",
	    running ? json_null() : json_integer(exit_status(s->code)), "error",
	    failed ? json_text(s->error) : json_null(), "fetched", s->fetched));
}

static void show_text(const struct ptcp_status *s)
{
	char bytes[UNITS_TEXT_BYTES], total[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];
	char from[4 * 4096 + 1], to[4 * 4096 + 1];
	bool running = s->state == PTCP_STATE_RUNNING;
	const struct ptcp_progress *g = &s->progress;

	printf("%s  %s  %llu file%s, %s", s->name, ptcp_state_name(s->state), (unsigned long long)g->files,
	    g->files == 1 ? "" : "s", units_size_text(bytes, running ? g->bytes : g->file_bytes));
	if (running)
		printf(" of %s%s", units_size_text(total, g->total_bytes), g->total_known ? "" : " so far");
	text_escape(from, sizeof from, s->source);
	text_escape(to, sizeof to, s->dest);
	printf(" in %s, %s  ", units_time_text(time, s->seconds),
	    units_rate_text(rate, s->seconds > 0 ? (double)g->wire_bytes * 8 / s->seconds : 0));
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
	if (a->connect.talk.json)
		show_json(ev->left);
	else
		show_text(ev->left);
	if (a->one && ev->left->state == PTCP_STATE_FAILED)
		err_set(&a->failed, ev->left->code, "%s: %s", ev->left->name, ev->left->error);
}

/* NAME, ID TARGET, or TARGET alone, for all. */
static int run(struct status_args *a, int n, char **operands, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_transfer *t = NULL;
	char name[512];
	int r;

	snprintf(name, sizeof name, "%s%s%s", operands[0], n > 1 ? "@" : "", n > 1 ? operands[1] : "");
	ptcp_transfer_opts_init(&o);
	connect_apply(&a->connect, &o);
	o.event = on_event;
	o.arg = a;
	a->one = strchr(name, '@') != NULL;
	if ((r = ptcp_status_new(&t, &o, name, a->end, e)) == 0)
		r = probe_run(t, e);
	ptcp_transfer_free(t);
	if (r == 0 && a->failed.code != 0) {
		*e = a->failed;
		r = e->code;
	}
	return r;
}

int cmd_status(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct status_args a;
	int n = 0, r;

	memset(&a, 0, sizeof a);
	connect_init(&a.connect);
	r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0 && (n < 1 || n > 2))
		r = err_set(&e, PTCP_EUSAGE, "%s: needs the name that --detach has printed, or the host it was left to (ptcp %s "
		    "--help)", c->name, c->name);
	if (r == 0)
		r = run(&a, n, argv, &e);
	connect_fini(&a.connect);
	return command_end(c, r, &e);
}
