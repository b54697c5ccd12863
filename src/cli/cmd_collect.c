/* ptcp collect OVERLAY.yaml [DEST]: carries a plan out. */
#include <string.h>

#include "cli/collect_output.h"
#include "cli/connect.h"
#include "cli/exit.h"
#include "cli/process.h"
#include "cli/terminal.h"
#include "core/err.h"
#include "core/units.h"

struct collect_args {
	struct connect_args connect; /* first */
	struct ptcp_collect_opts opts;
	bool no_replan;
};

static int set_method(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	int m = ptcp_plan_method_find(text);

	if (m < 0)
		return opt_reject(o, text, e, "no such method (direct, best-path, coordinated or pipelined)");
	((struct collect_args *)args)->opts.method = (enum ptcp_plan_method)m;
	return 0;
}

static int set_deadline(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || ns == 0)
		return opt_reject(o, text, e, "not a time above 0 (such as 30m or 2h)");
	((struct collect_args *)args)->opts.deadline_s = (double)ns / (double)NS_PER_S;
	return 0;
}

static int set_streams(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	if (opt_number(text, 1, PTCP_STREAMS_MAX, &((struct collect_args *)args)->opts.streams) < 0)
		return opt_reject(o, text, e, "not a number from 1 to 128");
	return 0;
}

static const struct opt own_options[] = {
	{ "method", 0, "NAME", "direct, best-path, coordinated or pipelined (pipelined)", set_method, 0 },
	{ "deadline", 0, "T", "fail when the data cannot arrive by then", set_deadline, 0 },
	{ "streams", 0, "N", "streams of each path that is planned (4)", set_streams, 0 },
	{ "remote-ptcp", 0, "CMD", "the ptcp that launch: starts (ptcp)", opt_text,
	    offsetof(struct collect_args, connect.remote_ptcp) },
	{ "no-replan", 0, NULL, "keep to the first plan, however links turn out", opt_true,
	    offsetof(struct collect_args, no_replan) },
	{ .name = NULL },
};

const struct opt *const collect_options[] = { own_options, connect_options, log_opts_options, NULL };

/* ---- Showing ---- */

static void warning(const struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	if (ev->source >= 0)
		terminal_line("ptcp: warning: %s: %s", host_name(s->overlay, ev->sources[ev->source].host), ev->text);
	else
		terminal_line("ptcp: warning: %s", ev->text);
}

static void on_event(void *arg, const struct ptcp_collect_event *ev)
{
	struct collect_shown *s = arg;

	switch (ev->type) {
	case PTCP_COLLECT_PLAN:
		s->ops->plan(s, ev);
		break;
	case PTCP_COLLECT_PROGRESS:
		s->ops->progress(s, ev);
		break;
	case PTCP_COLLECT_SOURCE:
		s->ops->source(s, ev);
		break;
	case PTCP_COLLECT_FILE:
		terminal_failed(host_name(s->overlay, ev->sources[ev->source].host), ev->path,
		    ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
		s->ops->file(s, ev);
		break;
	case PTCP_COLLECT_WARNING:
		warning(s, ev);
		break;
	}
}

/* ---- Running ---- */

static void cancel(void *handle)
{
	ptcp_collect_cancel(handle);
}

static int run(struct collect_args *a, const char *file, const char *dest, struct collect_shown *shown,
    struct ptcp_overlay **overlay, struct ptcp_collect **collection, struct ptcp_err *e)
{
	struct ptcp_transfer_opts connect;
	int r;

	process_catch(EXIT_INTERRUPTED, "\nptcp: interrupted twice: ended at once (run the same command again)\n");
	if ((r = ptcp_overlay_load(overlay, file, e)) < 0)
		return r;
	shown->overlay = *overlay;
	ptcp_transfer_opts_init(&connect);
	connect_apply(&a->connect, &connect);
	a->opts.no_replan = a->no_replan;
	a->opts.event = on_event;
	a->opts.arg = shown;
	if ((r = ptcp_collect_new(collection, *overlay, &connect, dest, &a->opts, e)) < 0)
		return r;
	process_set_stop(cancel, *collection);
	r = ptcp_collect_run(*collection, e);
	process_set_stop(NULL, NULL);
	return r;
}

static int show_end(struct collect_shown *s, const struct ptcp_collect *c, int code, const struct ptcp_err *e)
{
	int status = (int)exit_status(code);
	const char *why = e->msg[0] != '\0' ? e->msg : ptcp_err_text(code);

	terminal_status("");
	s->ops->end(s, c, status, code == 0 ? NULL : why);
	if (code != 0)
		terminal_line("ptcp: %s", why);
	return status;
}

int cmd_collect(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct ptcp_overlay *overlay = NULL;
	struct ptcp_collect *collection = NULL;
	struct collect_shown shown = { .ops = options_has_flag(argc, argv, "--json") ? &collect_json : &collect_text };
	struct collect_args a;
	int n = 0, r;

	memset(&a, 0, sizeof a);
	connect_init(&a.connect);
	ptcp_collect_opts_init(&a.opts);
	r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0 && (n < 1 || n > 2))
		r = err_set(&e, PTCP_EUSAGE, "%s: needs an overlay file, and at most a destination (ptcp %s --help)",
		    c->name, c->name);
	shown.quiet = a.connect.talk.quiet;
	shown.verbose = a.connect.talk.verbose > 0;
	shown.status = !a.connect.talk.json && !shown.quiet && terminal_is(2);
	if (r == 0)
		r = run(&a, argv[0], n == 2 ? argv[1] : ".", &shown, &overlay, &collection, &e);
	r = r == OPTIONS_HELP ? command_help(c) : show_end(&shown, collection, r, &e);
	ptcp_collect_free(collection);
	ptcp_overlay_free(overlay);
	connect_fini(&a.connect);
	return r;
}
