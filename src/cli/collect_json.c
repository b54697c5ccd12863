#include <math.h>
#include <string.h>

#include "cli/collect_output.h"
#include "cli/json.h"
#include "cli/plan_output.h"

/* ---- Parts ---- */

static json_t *source(const struct collect_shown *s, const struct ptcp_collect_source *one, bool running)
{
	json_t *j = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "host", host_name(s->overlay, one->host), "state",
	    ptcp_collect_state_name(one->state), "bytes", json_count(one->progress.bytes), "total_bytes",
	    one->progress.total_known ? json_count(one->progress.total_bytes) : json_null(), "wire_bytes", json_count(one->progress.wire_bytes),
	    "resumed_bytes", json_count(one->progress.resumed_bytes));

	if (running) {
		json_object_set_new(j, "rate_bps", json_rate(one->rate_bps));
	} else {
		json_object_set_new(j, "files", json_count(one->progress.files));
		json_object_set_new(j, "failed", json_count(one->progress.failed));
		json_object_set_new(j, "error", json_text(one->state != PTCP_COLLECT_DONE ? one->why : NULL));
	}
	return j;
}

/* NULL for a link that nothing is to do with. */
static json_t *link_of(const struct collect_shown *s, size_t i, const struct ptcp_collect_link *l, bool running)
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

static json_t *sources(const struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < ev->n_sources; i++)
		json_array_append_new(list, source(s, &ev->sources[i], true));
	return json_whole(list, ev->n_sources);
}

static json_t *links(const struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < ptcp_overlay_links(s->overlay); i++)
		if ((one = link_of(s, i, &ev->links[i], true)) != NULL)
			json_array_append_new(list, one);
	return list;
}

/* ---- Objects ---- */

static void show_plan(struct collect_shown *s, const struct ptcp_collect_event *ev)
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

static void show_progress(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	json_line(json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "event", "progress", "elapsed_s",
	    json_seconds(ev->elapsed_s), "planned_s", json_seconds(ev->planned_s), "bytes", json_count(ev->bytes),
	    "total_bytes", json_count(ev->total_bytes), "rate_bps", json_rate(ev->rate_bps), "eta_s",
	    json_seconds(ev->eta_s), "planned_eta_s", json_seconds(fmax(0, ev->planned_s - ev->elapsed_s)),
	    "sources", sources(s, ev), "links", links(s, ev)));
}

static void show_source(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	const struct ptcp_collect_source *one = &ev->sources[ev->source];

	collect_text.source(s, ev);
	json_line(json_pack("{s:s, s:o, s:s, s:s, s:o}", "event", "source", "elapsed_s", json_seconds(ev->elapsed_s),
	    "host", host_name(s->overlay, one->host), "status", ptcp_collect_state_name(one->state), "error",
	    json_text(one->state == PTCP_COLLECT_DONE || one->state == PTCP_COLLECT_RUNNING ? NULL : ev->text)));
}

static void show_file(struct collect_shown *s, const struct ptcp_collect_event *ev)
{
	json_line(json_pack("{s:s, s:s, s:o, s:s, s:o}", "event", "file", "host",
	    host_name(s->overlay, ev->sources[ev->source].host), "path", json_text(ev->path), "status", "failed",
	    "error", json_text(ev->text)));
}

static void add_parts(const struct collect_shown *s, const struct ptcp_collect *c, json_t *end)
{
	json_t *all = json_array(), *used = json_array(), *j;
	struct ptcp_collect_source one;
	struct ptcp_collect_link l;
	size_t i;

	for (i = 0; i < ptcp_collect_sources(c); i++) {
		ptcp_collect_source(c, i, &one);
		json_array_append_new(all, source(s, &one, false));
	}
	for (i = 0; i < ptcp_overlay_links(s->overlay); i++) {
		ptcp_collect_link(c, i, &l);
		l.planned_bps = 0;
		if ((j = link_of(s, i, &l, false)) != NULL)
			json_array_append_new(used, j);
	}
	json_object_set_new(end, "sources", all);
	json_object_set_new(end, "links", used);
}

static void show_end(struct collect_shown *s, const struct ptcp_collect *c, int status, const char *failure)
{
	struct ptcp_collect_result r;
	json_t *end;

	ptcp_collect_result_init(&r);
	if (c != NULL)
		ptcp_collect_result(c, &r);
	end = json_pack("{s:s, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "event",
	    "end", "ok", status == 0, "exit", status, "error", json_text(failure), "bytes", json_count(r.bytes), "wire_bytes",
	    json_count(r.wire_bytes), "files", json_count(r.files), "failed", json_count(r.failed), "resumed_bytes",
	    json_count(r.resumed_bytes), "seconds", json_seconds(r.seconds), "throughput_bps",
	    json_rate(r.seconds > 0 ? (double)r.wire_bytes * 8 / r.seconds : 0), "makespan_s", json_seconds(r.seconds),
	    "planned_s", json_seconds(r.planned_s), "replans", json_count(r.replans), "sources_done",
	    json_count(r.sources_done), "sources_failed", json_count(r.sources_failed));
	if (c != NULL)
		add_parts(s, c, end);
	json_line(end);
}

const struct collect_ops collect_json = {
	.plan = show_plan,
	.progress = show_progress,
	.source = show_source,
	.file = show_file,
	.end = show_end,
};
