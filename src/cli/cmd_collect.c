/* ptcp collect: carries out a plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/hook.h"
#include "cli/process.h"
#include "cli/running.h"
#include "cli/show/json.h"
#include "cli/show/plan_output.h"
#include "cli/show/terminal.h"
#include "core/text.h"
#include "core/units.h"

struct collect_args {
	struct client_opts connect; /* first */
	struct ptcp_collect_opts opts;
	const char *write, *name;
};

/* Text: a status line while the collection runs, and a summary, on stderr. JSON: objects on stdout, one per
 * line. In both forms, warnings and failures are lines on stderr. */
struct collect_output {
	const struct ptcp_overlay *overlay; /* NULL until loaded */
	bool json, quiet, verbose;
	bool status; /* draw the status line */
	uint64_t below; /* number of entries below directories that have failed */
	const char *file, *dest;
	const char *on_end; /* hook.h; NULL: none */
	struct running *running;
};

#define AT(member) offsetof(struct collect_args, member)

#define OPT_AT(member) AT(opts.member)

static const struct opt collect_options[] = {
	OPT_ROWS(PTCP_OPTIONS_COLLECT)
	{ "remote-ptcp", 0, "CMD", "ptcp command on hosts started by launch (default: ptcp)", opt_text,
	    AT(connect.transfer.remote.ptcp), 0, 0 },
	{ "write", 0, "FILE", "write the overlay to FILE, with the rates and shared bottlenecks found", opt_text, AT(write),
	    0, 0 },
	{ "name", 0, "NAME", "name of this collection for ptcp status (default: such as collect-4711)", running_set_name,
	    AT(name), 0, 0 },
	HOOK_OPTION,
	{ .name = NULL },
};

/* ---- Text ---- */

/* Why the plan is empty. */
static const char *empty_reason(const struct ptcp_collect_event *ev)
{
	size_t i, failed = 0;

	for (i = 0; i < ev->n_sources; i++)
		failed += ev->sources[i].state == PTCP_COLLECT_FAILED;
	return failed == 0 ? "all data is up to date" :
	    failed < ev->n_sources ? "the data of all reachable sources is up to date" : "no source could be measured";
}

static void text_plan(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	char time[UNITS_TEXT_BYTES], size[UNITS_TEXT_BYTES];

	if (s->quiet)
		return;
	if (ev->text != NULL)
		terminal_line("ptcp: new plan, since %s: completes after %s", ev->text,
		    units_time_text(time, ev->planned_s));
	else if (ev->total_bytes == 0)
		terminal_line("ptcp: planned: no transfer, %s", empty_reason(ev));
	else
		terminal_line("ptcp: planned: %s in %s", units_size_text(size, ev->total_bytes),
		    units_time_text(time, ev->planned_s));
}

static void text_progress(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	char done[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES], eta[UNITS_TEXT_BYTES];
	char plan[UNITS_TEXT_BYTES], line[250];
	unsigned width = terminal_width();
	size_t i, n, running = 0;

	if (!s->status)
		return;
	for (i = 0; i < ev->n_sources; i++)
		running += ev->sources[i].state == PTCP_COLLECT_RUNNING;
	n = (size_t)snprintf(line, sizeof line, "%3.0f%%  %s of %s  %s  ETA %s, plan %s  %zu host%s",
	    ev->total_bytes > 0 ? floor(100 * (double)ev->bytes / (double)ev->total_bytes) : 0,
	    units_size_text(done, ev->bytes), units_size_text(all, ev->total_bytes),
	    units_rate_text(rate, ev->rate_bps), ev->eta_s >= 0 ? units_time_text(eta, ev->eta_s) : "?",
	    units_time_text(plan, fmax(0, ev->planned_s - ev->elapsed_s)), running, plural(running));
	if (n >= width && width > 0)
		line[width - 1 < sizeof line ? width - 1 : sizeof line - 1] = '\0';
	terminal_status(line);
}

static void text_source(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	const struct ptcp_collect_source *source = &ev->sources[ev->source];
	const char *name = host_name(s->overlay, source->host);

	if (source->state == PTCP_COLLECT_FAILED)
		terminal_line("ptcp: %s: %s", name, ev->text);
	else if (source->state == PTCP_COLLECT_WAITING && ev->text != NULL)
		terminal_line("ptcp: warning: %s: %s; trying again", name, ev->text);
}

static void print_source(const struct collect_output *s, const struct ptcp_collect_source *source)
{
	char size[UNITS_TEXT_BYTES], resumed[UNITS_TEXT_BYTES];
	char more[UNITS_TEXT_BYTES + 32] = "";

	if (source->progress.resumed_bytes > 0)
		snprintf(more, sizeof more, " (%s already transferred)", units_size_text(resumed, source->progress.resumed_bytes));
	terminal_line("  %s: %llu file%s, %s%s", host_name(s->overlay, source->host),
	    (unsigned long long)source->progress.files,
	    plural(source->progress.files), units_size_text(size, source->progress.bytes), more);
}

static void print_links(const struct collect_output *s, const struct ptcp_collect *c)
{
	struct ptcp_collect_link l;
	char name[LINK_NAME_BYTES], size[UNITS_TEXT_BYTES];
	size_t i;

	for (i = 0; i < ptcp_overlay_links(s->overlay); i++) {
		ptcp_collect_link(c, i, &l);
		if (l.bytes > 0)
			terminal_line("  %s: %s", link_name_of(name, s->overlay, i), units_size_text(size, l.bytes));
	}
}

static void text_end(const struct collect_output *s, const struct ptcp_collect *c)
{
	char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES], plan[UNITS_TEXT_BYTES];
	struct ptcp_collect_source source;
	struct ptcp_collect_result r;
	size_t i;

	ptcp_collect_result_init(&r);
	ptcp_collect_result(c, &r);
	terminal_line("collected %llu file%s, %s from %zu host%s in %s, planned %s", (unsigned long long)r.files,
	    plural(r.files), units_size_text(size, r.bytes), r.sources_done, plural(r.sources_done),
	    units_time_text(time, r.seconds), units_time_text(plan, r.planned_s));
	for (i = 0; i < ptcp_collect_sources(c); i++) {
		ptcp_collect_source(c, i, &source);
		print_source(s, &source);
	}
	if (s->verbose)
		print_links(s, c);
}

/* ---- JSON: fields and units are described in ptcp-collect(1) ---- */

static json_t *source_json(const struct collect_output *s, const struct ptcp_collect_source *source, bool running)
{
	json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "host", host_name(s->overlay, source->host), "state",
	    ptcp_collect_state_name(source->state), "bytes", json_count(source->progress.bytes), "total_bytes",
	    source->progress.total_known ? json_count(source->progress.total_bytes) : json_null(), "wire_bytes",
	    json_count(source->progress.wire_bytes), "resumed_bytes", json_count(source->progress.resumed_bytes));

	if (running) {
		json_object_set_new(j, "rate_bps", json_rate(source->rate_bps));
	} else {
		json_object_set_new(j, "files", json_count(source->progress.files));
		json_object_set_new(j, "failed", json_count(source->progress.failed));
		json_object_set_new(j, "error", json_text(source->state != PTCP_COLLECT_DONE ? source->why : NULL));
		json_object_set_new(j, "cause", json_cause(source->state != PTCP_COLLECT_DONE ? source->sys : 0));
	}
	return j;
}

/* NULL for an unused link. */
static json_t *link_json(const struct collect_output *s, size_t i, const struct ptcp_collect_link *l, bool running)
{
	struct ptcp_overlay_link of;
	json_t *j;

	if (l->bytes == 0 && !(l->planned_bps > 0))
		return NULL;
	ptcp_overlay_link(s->overlay, i, &of);
	j = json_pack("{s:s, s:s, s:o, s:o}", "from", host_name(s->overlay, of.from), "to",
	    host_name(s->overlay, of.to), "bytes", json_count(l->bytes), "estimate_bps", json_rate(l->estimate_bps));
	if (running) {
		json_object_set_new(j, "rate_bps", json_rate(l->rate_bps));
		json_object_set_new(j, "planned_bps", json_rate(l->planned_bps));
	}
	return j;
}

static json_t *sources(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < ev->n_sources; i++)
		json_array_append_new(list, source_json(s, &ev->sources[i], true));
	return json_whole(list, ev->n_sources);
}

static json_t *links(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	json_t *list = json_array(), *link;
	size_t i;

	for (i = 0; i < ptcp_overlay_links(s->overlay); i++)
		if ((link = link_json(s, i, &ev->links[i], true)) != NULL)
			json_array_append_new(list, link);
	return list;
}

static void json_plan(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	struct ptcp_plan_info info;
	json_t *j;

	ptcp_plan_info(ev->plan, &info);
	j = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "event", ev->text == NULL ? "plan" : "replan",
	    "elapsed_s", json_seconds(ev->elapsed_s), "method", ptcp_plan_method_name(info.method), "makespan_s",
	    json_seconds(info.makespan_s), "planned_s", json_seconds(ev->planned_s), "bytes", json_count(ev->bytes),
	    "total_bytes", json_count(ev->total_bytes), "schedule", plan_json_schedule(s->overlay, ev->plan));
	if (ev->text != NULL)
		json_object_set_new(j, "reason", json_text(ev->text));
	json_line(j);
}

static void json_progress(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	json_line(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "event", "progress", "elapsed_s",
	    json_seconds(ev->elapsed_s), "planned_s", json_seconds(ev->planned_s), "bytes", json_count(ev->bytes),
	    "total_bytes", json_count(ev->total_bytes), "rate_bps", json_rate(ev->rate_bps), "eta_s",
	    json_seconds(ev->eta_s), "planned_eta_s", json_seconds(fmax(0, ev->planned_s - ev->elapsed_s)),
	    "sources", sources(s, ev), "links", links(s, ev)));
}

static void json_source(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	const struct ptcp_collect_source *source = &ev->sources[ev->source];
	bool failed = source->state != PTCP_COLLECT_DONE && source->state != PTCP_COLLECT_RUNNING;

	json_line(json_pack("{s:s, s:o, s:s, s:s, s:o, s:o}", "event", "source", "elapsed_s", json_seconds(ev->elapsed_s),
	    "host", host_name(s->overlay, source->host), "status", ptcp_collect_state_name(source->state), "error",
	    json_text(failed ? ev->text : NULL), "cause", json_cause(failed ? ev->sys : 0)));
}

static void json_file(const struct collect_output *s, const struct ptcp_collect_event *ev)
{
	json_line(json_pack("{s:s, s:s, s:o, s:s, s:o, s:o}", "event", "file", "host",
	    host_name(s->overlay, ev->sources[ev->source].host), "path", json_text(ev->path), "status",
	    ev->code == PTCP_EVANISHED ? "vanished" : "failed", "error", json_text(ev->text), "cause", json_cause(ev->sys)));
}

static void add_parts(const struct collect_output *s, const struct ptcp_collect *c, json_t *end)
{
	json_t *all = json_array(), *used = json_array(), *j;
	struct ptcp_collect_source source;
	struct ptcp_collect_link l;
	size_t i;

	for (i = 0; i < ptcp_collect_sources(c); i++) {
		ptcp_collect_source(c, i, &source);
		json_array_append_new(all, source_json(s, &source, false));
	}
	for (i = 0; i < ptcp_overlay_links(s->overlay); i++) {
		ptcp_collect_link(c, i, &l);
		l.planned_bps = 0;
		if ((j = link_json(s, i, &l, false)) != NULL)
			json_array_append_new(used, j);
	}
	json_object_set_new(end, "sources", all);
	json_object_set_new(end, "links", used);
}

static json_t *collect_json_end(const struct collect_output *s, const struct ptcp_collect *c, int code,
    const struct ptcp_err *e)
{
	struct ptcp_collect_result r;
	json_t *end;

	ptcp_collect_result_init(&r);
	if (c != NULL)
		ptcp_collect_result(c, &r);
	end = json_end(code, e, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes",
	    json_count(r.bytes), "wire_bytes", json_count(r.wire_bytes), "files", json_count(r.files), "failed", json_count(r.failed), "resumed_bytes",
	    json_count(r.resumed_bytes), "seconds", json_seconds(r.seconds), "throughput_bps",
	    json_rate(connect_throughput_bps(r.wire_bytes, r.seconds)), "makespan_s", json_seconds(r.seconds),
	    "planned_s", json_seconds(r.planned_s), "replans", json_count(r.replans), "sources_done",
	    json_count(r.sources_done), "sources_failed", json_count(r.sources_failed)));
	if (c != NULL)
		add_parts(s, c, end);
	return end;
}

/* ---- Events ---- */

static void cmd_collect_report(const struct collect_output *o, const struct ptcp_collect_event *ev)
{
	struct running_transfer t = { .state = ev->plan != NULL ? "running" : "connecting", .source = o->file, .sources = 1,
		.destination = o->dest, .rate_bps = ev->rate_bps, .eta_s = ev->eta_s };
	struct ptcp_progress *sum = &t.progress;
	size_t i;

	sum->bytes = ev->bytes;
	sum->total_bytes = ev->total_bytes;
	sum->total_known = true;
	for (i = 0; i < ev->n_sources; i++) {
		const struct ptcp_progress *g = &ev->sources[i].progress;

		sum->wire_bytes += g->wire_bytes;
		sum->resumed_bytes += g->resumed_bytes;
		sum->files += g->files;
		sum->failed += g->failed;
		sum->streams += g->streams;
	}
	running_report_transfer(o->running, &t);
}

static void on_event(void *arg, const struct ptcp_collect_event *ev)
{
	struct collect_output *o = arg;
	const char *name = o->overlay != NULL && ev->source >= 0 && (size_t)ev->source < ev->n_sources ?
	    host_name(o->overlay, ev->sources[ev->source].host) : NULL;

	switch (ev->type) {
	case PTCP_COLLECT_PLAN:
		(o->json ? json_plan : text_plan)(o, ev);
		break;
	case PTCP_COLLECT_PROGRESS:
		(o->json ? json_progress : text_progress)(o, ev);
		cmd_collect_report(o, ev);
		break;
	case PTCP_COLLECT_SOURCE:
		text_source(o, ev);
		if (o->json)
			json_source(o, ev);
		break;
	case PTCP_COLLECT_FILE:
		o->below += ev->code == PTCP_EPARENT;
		if (ev->code != PTCP_EPARENT)
			terminal_failed(name, ev->path, ev->text != NULL ? ev->text : ptcp_err_text(ev->code));
		if (o->json)
			json_file(o, ev);
		break;
	case PTCP_COLLECT_WARNING:
		terminal_line("ptcp: warning: %s%s%s", name != NULL ? name : "", name != NULL ? ": " : "", ev->text);
		break;
	}
}

/* `c` is NULL if collecting has not started. Returns the exit status. */
static int print_end(const struct collect_output *o, const struct ptcp_collect *c, int code, const struct ptcp_err *e)
{
	int status = (int)exit_status(code);
	const char *failure = code != 0 ? exit_sentence(e) : NULL;

	terminal_status("");
	if (o->json)
		json_line(collect_json_end(o, c, code, e));
	else if (status == 0 && !o->quiet && c != NULL)
		text_end(o, c);
	terminal_failed_below(o->below);
	if (failure != NULL)
		terminal_line("ptcp: %s", failure);
	if (o->on_end != NULL)
		hook_end(o->on_end, collect_json_end(o, c, code, e), "collect", &o->file, o->file != NULL, o->dest);
	return status;
}

/* ---- The command ---- */

static void cancel(void *handle)
{
	ptcp_collect_cancel(handle);
}

/* Writes the overlay after any collection; `result` is the collection's, a failure of which comes first. */
static int save(const struct collect_args *a, const char *file, const struct ptcp_collect *c, int result,
    struct ptcp_err *e)
{
	struct ptcp_err why;
	int r;

	if (a->write == NULL)
		return result;
	if ((r = ptcp_collect_save(c, file, a->write, &why)) > 0)
		terminal_line("ptcp: warning: %s: has shared bottlenecks already, which were not changed (remove 'shared' to have "
		    "those found)", a->write);
	if (r < 0 && result < 0)
		terminal_line("ptcp: warning: %s", why.msg);
	else if (r < 0)
		*e = why;
	return r < 0 && result == 0 ? r : result;
}

static int run_observed(const struct collect_args *a, struct collect_output *out, struct ptcp_collect *c, struct ptcp_err *e)
{
	const struct running_opts opts = { .command = "collect", .name = a->name };
	const struct ptcp_collect_event none = { .eta_s = -1 };
	int r;

	if ((r = running_new(&out->running, &opts, e)) < 0)
		return r;
	cmd_collect_report(out, &none);
	process_set_stop(cancel, c);
	if ((r = running_start(out->running, e)) == 0)
		r = ptcp_collect_run(c, e);
	process_set_stop(NULL, NULL);
	running_free(out->running);
	return r;
}

static int collect(struct collect_args *a, const char *file, const char *dest, struct collect_output *out,
    struct ptcp_overlay **overlay, struct ptcp_collect **collection, struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_overlay_load(overlay, file, e)) < 0)
		return r;
	out->overlay = *overlay;
	a->opts.event = on_event;
	a->opts.arg = out;
	if ((r = ptcp_collect_new(collection, *overlay, &a->connect.transfer, dest, &a->opts, e)) < 0)
		return r;
	out->file = file;
	out->dest = dest;
	r = run_observed(a, out, *collection, e);
	return save(a, file, *collection, process_result(r, e), e);
}

static int run_collect(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct ptcp_overlay *overlay = NULL;
	struct ptcp_collect *collection = NULL;
	struct collect_output out = { .overlay = NULL };
	struct collect_args a;
	int n, r;

	process_catch(EXIT_INTERRUPTED, INTERRUPTED_TWICE);
	memset(&a, 0, sizeof a);
	ptcp_collect_opts_init(&a.opts);
	r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e);
	out.json = a.connect.log.json;
	out.quiet = a.connect.log.quiet;
	out.verbose = a.connect.log.verbose > 0;
	out.status = log_opts_status(&a.connect.log);
	if (r == 0)
		out.on_end = a.connect.log.on_end;
	if (r == 0)
		r = collect(&a, argv[0], n == 2 ? argv[1] : ".", &out, &overlay, &collection, &e);
	r = r == OPTIONS_HELP ? command_help(c) : print_end(&out, collection, r, &e);
	ptcp_collect_free(collection);
	ptcp_overlay_free(overlay);
	client_opts_fini(&a.connect);
	return r;
}

static const struct opt_group tables[] = { GROUP_OWN(collect_options), GROUP_CONNECTION, GROUP_LOG, GROUP_END };

const struct command command_collect = { "collect", "[options] OVERLAY.yaml [DEST]",
	"collect data from many hosts by a plan", run_collect, tables, 1, 2,
	"needs an overlay file, and at most a destination" };
