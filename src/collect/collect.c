/* What is asked of a collection, and what it tells. */
#include "collect/collect_impl.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "plan/limits.h"

const char *ptcp_collect_state_name(enum ptcp_collect_state s)
{
	static const char *const names[] = { [PTCP_COLLECT_WAITING] = "waiting", [PTCP_COLLECT_RUNNING] = "running",
		[PTCP_COLLECT_DONE] = "done", [PTCP_COLLECT_FAILED] = "failed" };

	return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}

void ptcp_collect_opts_init(struct ptcp_collect_opts *o)
{
	*o = (struct ptcp_collect_opts){ .size = sizeof *o, .method = PTCP_PLAN_PIPELINED, .streams = 4 };
}

/* ---- What it tells ---- */

void collect_tell(struct ptcp_collect *c, enum ptcp_collect_event_type type, const struct source *s,
    const char *path, const char *text, int code)
{
	struct ptcp_collect_event ev = { .type = type, .elapsed_s = collect_now_s(c), .source = -1, .path = path,
		.text = text, .code = code, .sources = c->told, .n_sources = c->n, .links = c->link,
		.plan = c->plan, .plan_start_s = c->plan_start_s };
	size_t i;

	if (c->o.event == NULL)
		return;
	if (s != NULL)
		ev.source = (int)(s - c->source);
	for (i = 0; i < c->n; i++) {
		ev.bytes += c->told[i].progress.bytes;
		ev.total_bytes += c->told[i].progress.bytes + source_left_bytes(&c->source[i]);
		ev.rate_bps += c->told[i].rate_bps;
	}
	ev.eta_s = monitor_eta_s(c);
	if (c->schedule != NULL)
		ev.planned_s = c->plan_start_s + c->schedule->end_s;
	c->o.event(c->o.arg, &ev);
}

void ptcp_collect_cancel(struct ptcp_collect *c)
{
	atomic_store(&c->cancelled, true); /* poll() is left within a tick */
}

void ptcp_collect_result_init(struct ptcp_collect_result *r)
{
	*r = (struct ptcp_collect_result){ .size = sizeof *r };
}

void ptcp_collect_result(const struct ptcp_collect *c, struct ptcp_collect_result *r)
{
	struct ptcp_collect_result all = { .size = r->size < sizeof all ? r->size : sizeof all,
		.seconds = c->end_s, .planned_s = c->planned_s, .replans = c->replans };
	size_t i;

	if (c->schedule != NULL)
		all.last_planned_s = c->plan_start_s + c->schedule->end_s;
	for (i = 0; i < c->n; i++) {
		all.bytes += c->told[i].progress.bytes;
		all.wire_bytes += c->told[i].progress.wire_bytes;
		all.resumed_bytes += c->told[i].progress.resumed_bytes;
		all.files += c->told[i].progress.files;
		all.failed += c->told[i].progress.failed;
		all.sources_done += c->told[i].state == PTCP_COLLECT_DONE;
		all.sources_failed += c->told[i].state == PTCP_COLLECT_FAILED;
	}
	memcpy(r, &all, all.size);
}

size_t ptcp_collect_sources(const struct ptcp_collect *c) { return c->n; }

void ptcp_collect_source(const struct ptcp_collect *c, size_t i, struct ptcp_collect_source *out)
{
	*out = c->told[i];
}

void ptcp_collect_link(const struct ptcp_collect *c, size_t i, struct ptcp_collect_link *out)
{
	*out = c->link[i];
}

/* ---- What is asked of it ---- */

static int add_source(struct ptcp_collect *c, int host, const struct ptcp_overlay_host *h, struct ptcp_err *e)
{
	struct source *s = &c->source[c->n];

	if (h->path == NULL)
		return err_set(e, PTCP_ECONFIG, "host %s: has data, but no path to collect it from (give it one)", h->name);
	if (h->address == NULL)
		return err_set(e, PTCP_ECONFIG, "host %s: has no address in the overlay (give it one)", h->name);
	*s = (struct source){ .c = c, .told = &c->told[c->n], .name = h->name, .address = h->address,
		.path = h->path, .data_bytes = h->data_bytes, .retry_at_s = INFINITY };
	s->told->host = host;
	c->n++;
	return 0;
}

static int add_sources(struct ptcp_collect *c, struct ptcp_err *e)
{
	struct ptcp_overlay_host h;
	size_t i;
	int r;

	for (i = 0; i < ptcp_overlay_hosts(c->overlay); i++) {
		ptcp_overlay_host(c->overlay, i, &h);
		if ((int)i != ptcp_overlay_destination(c->overlay) && h.data_bytes > 0 &&
		    (r = add_source(c, (int)i, &h, e)) < 0)
			return r;
	}
	if (c->n == 0)
		return err_set(e, PTCP_ECONFIG, "overlay: no host has anything to collect (give hosts a path)");
	return 0;
}

static int take_opts(struct ptcp_collect *c, const struct ptcp_transfer_opts *connect,
    const struct ptcp_collect_opts *o, struct ptcp_err *e)
{
	if (o->size < offsetof(struct ptcp_collect_opts, arg) + sizeof o->arg)
		return err_set(e, PTCP_EUSAGE, "options that ptcp_collect_opts_init() has not filled in");
	c->o = *o;
	c->connect = *connect;
	if (c->o.streams < 1 || c->o.streams > PTCP_STREAMS_MAX)
		return err_set(e, PTCP_EUSAGE, "streams of a path: must be 1 to %d", PTCP_STREAMS_MAX);
	return 0;
}

static int make_room(struct ptcp_collect *c, const char *dest, struct ptcp_err *e)
{
	size_t hosts = ptcp_overlay_hosts(c->overlay), i;

	c->n_links = ptcp_overlay_links(c->overlay);
	c->n_limits = limits_count(c->overlay->conf);
	if ((c->dest = strdup(dest[0] != '\0' ? dest : ".")) == NULL ||
	    (c->source = calloc(hosts, sizeof *c->source)) == NULL ||
	    (c->told = calloc(hosts, sizeof *c->told)) == NULL ||
	    (c->flow = calloc(hosts * PTCP_PATHS_MAX, sizeof *c->flow)) == NULL ||
	    (c->link = calloc(c->n_links + 1, sizeof *c->link)) == NULL ||
	    (c->limit_first_bps = calloc(c->n_limits + 1, sizeof *c->limit_first_bps)) == NULL ||
	    (c->limit_bps = calloc(c->n_limits + 1, sizeof *c->limit_bps)) == NULL ||
	    (c->divided = calloc(hosts * PTCP_PATHS_MAX, sizeof *c->divided)) == NULL ||
	    (c->load_bps = calloc(c->n_limits + 1, sizeof *c->load_bps)) == NULL ||
	    (c->found_bps = calloc(c->n_limits + 1, sizeof *c->found_bps)) == NULL)
		return err_nomem(e);
	for (i = 0; i < c->n_limits; i++)
		c->limit_first_bps[i] = limits_bps(c->overlay->conf, i);
	return 0;
}

int ptcp_collect_new(struct ptcp_collect **out, struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const char *dest, const struct ptcp_collect_opts *opts,
    struct ptcp_err *e)
{
	struct ptcp_collect *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL)
		return err_nomem(e);
	atomic_init(&c->cancelled, false);
	c->overlay = o;
	c->drift.off_since_s = c->drift.probe_session_until_s = NAN;
	if ((r = take_opts(c, connect, opts, e)) == 0 && (r = make_room(c, dest, e)) == 0)
		r = add_sources(c, e);
	if (r < 0)
		ptcp_collect_free(c);
	else
		*out = c;
	return r;
}

void ptcp_collect_free(struct ptcp_collect *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n; i++)
		source_forget(&c->source[i]);
	planner_thread_free(c->planner);
	ptcp_plan_free(c->plan);
	schedule_free(c->schedule);
	free(c->dest);
	free(c->source);
	free(c->told);
	free(c->flow);
	free(c->link);
	free(c->limit_first_bps);
	free(c->limit_bps);
	free(c->found_bps);
	free(c->load_bps);
	free(c->divided);
	free(c);
}
