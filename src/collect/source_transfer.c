/* The transfer from one host: start, retries, end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect_impl.h"
#include "collect/collect_parameters.h"
#include "collect/local_host.h"
#include "core/err.h"
#include "core/text.h"
#include "plan/rate_limits.h"

static void set_state(struct source_transfer *s, enum ptcp_collect_state state)
{
	if (s->status->state == state)
		return;
	s->status->state = state;
	monitor_report(s->c, PTCP_COLLECT_SOURCE, s, NULL, s->status->why, s->status->code,
	    s->status->sys);
}

bool source_is_over(const struct source_transfer *s)
{
	return s->status->state == PTCP_COLLECT_DONE || s->status->state == PTCP_COLLECT_FAILED;
}

uint64_t source_left_bytes(const struct source_transfer *s)
{
	const struct ptcp_progress *t = &s->status->progress;
	uint64_t all = t->total_bytes;

	if (source_is_over(s))
		return 0;
	if (!t->total_known && s->data_bytes != PTCP_UNKNOWN && s->data_bytes > all)
		all = s->data_bytes;
	return all > t->bytes ? all - t->bytes : 0;
}

void source_reset(struct source_transfer *s)
{
	size_t i;

	ptcp_task_free(s->t);
	s->t = NULL;
	for (i = 0; i < s->candidates.n; i++)
		free(s->route[i].limit);
	memset(s->route, 0, sizeof s->route);
	candidates_fini(&s->candidates);
	s->busy = s->ending = false;
	s->status->rate_bps = 0;
}

/* ---- Events of the transfer ---- */

static void on_log(void *arg, enum ptcp_log_level level, const char *component, const char *msg)
{
	const struct ptcp_transfer_opts *o = &((struct source_transfer *)arg)->c->connect;

	o->log(o->arg, level, component, msg);
}

static bool on_trust(void *arg, const char *host, const char *fingerprint)
{
	const struct ptcp_transfer_opts *o = &((struct source_transfer *)arg)->c->connect;

	return o->trust(o->arg, host, fingerprint);
}

static void on_started(struct source_transfer *s)
{
	s->progress_at_s = collect_now_s(s->c);
	s->failures = 0;
	s->stalled++;
	s->status->code = s->status->sys = 0;
	s->status->why = NULL;
	if (s->sizing)
		return;
	if (!s->planned)
		s->c->unfit = "a source responds again";
	set_state(s, PTCP_COLLECT_RUNNING);
}

/* Caps a size reported by the source. */
static uint64_t cap_size(uint64_t bytes)
{
	return bytes < DATA_MAX_BYTES ? bytes : DATA_MAX_BYTES;
}

/* The source's progress over all attempts: data of earlier attempts is not counted as resumed. */
static void show_progress(struct source_transfer *s, const struct ptcp_progress *g, uint64_t wire_bytes)
{
	struct ptcp_progress *p = &s->status->progress;

	*p = *g;
	p->total_bytes = cap_size(g->total_bytes);
	p->wire_bytes = wire_bytes;
	p->resumed_bytes = g->resumed_bytes > s->wire_before ? g->resumed_bytes - s->wire_before : 0;
}

/* A path has connected, so all its links have. */
static void on_path_connected(struct ptcp_collect *c, const struct route *r)
{
	char name[200];
	size_t k, link;

	for (k = 0; k < r->n_links; k++) {
		link = (size_t)r->link[k];
		if (!c->failed_link[link])
			continue;
		c->failed_link[link] = false;
		limits_set_bps(c->overlay, link, c->limit_first_bps[link]);
		snprintf(c->unfit_text, sizeof c->unfit_text, "%s has a connection again",
		    limits_name(c->overlay, link, name, sizeof name));
		c->unfit = c->unfit_text;
	}
}

static void on_progress(struct source_transfer *s, const struct ptcp_event *ev)
{
	const struct ptcp_progress *g = &ev->progress;
	uint64_t wire = s->wire_before;
	size_t i, k;

	if (g->bytes != s->status->progress.bytes || g->total_bytes != s->status->progress.total_bytes ||
	    g->activity != PTCP_TRANSFERRING)
		s->progress_at_s = collect_now_s(s->c);
	if (g->bytes > s->most_bytes || g->files > s->max_files)
		s->stalled = 0;
	s->most_bytes = g->bytes > s->most_bytes ? g->bytes : s->most_bytes;
	s->max_files = g->files > s->max_files ? g->files : s->max_files;
	s->busy = g->activity == PTCP_TRANSFERRING;
	for (i = 0; i < ev->n_paths && i < s->candidates.n; i++) {
		for (k = 0; k < s->route[i].n_links; k++)
			s->c->link[s->route[i].link[k]].bytes += ev->paths[i].bytes - s->route[i].bytes;
		if (s->route[i].streams == 0 && ev->paths[i].streams > 0) {
			drift_returned(&s->c->drift, collect_now_s(s->c));
			on_path_connected(s->c, &s->route[i]);
		}
		s->route[i].bytes = ev->paths[i].bytes;
		s->route[i].streams = ev->paths[i].streams;
		s->route[i].rtt_s = ev->paths[i].rtt_s;
		s->route[i].min_rtt_s = ev->paths[i].min_rtt_s;
		s->route[i].segments = ev->paths[i].segments;
		s->route[i].lost = ev->paths[i].retransmits;
		wire += ev->paths[i].bytes;
	}
	if (wire > s->wire_before)
		s->flows_since_s = fmin(s->flows_since_s, collect_now_s(s->c));
	show_progress(s, g, wire);
}

/* Host `hop` of a path in the direction of its connections, 0 the first after the destination. */
static int host_at(const struct source_transfer *s, const struct candidate *v, unsigned hop)
{
	return hop + 1 < v->nhops ? v->hop[v->nhops - 2 - hop] : s->status->host;
}

/* A path without connection: the link to the unreachable hop is out of the plan until it connects. */
static void on_path_failed(struct source_transfer *s, const struct ptcp_event *ev)
{
	struct ptcp_collect *c = s->c;
	size_t i = (size_t)(ev->failed_path - ev->paths);
	const struct candidate *v = &s->candidates.at[i];
	char name[200];
	int to, link;

	to = ev->failed_hop == 0 ? v->hop[v->nhops - 1] : host_at(s, v, ev->failed_hop - 1);
	if (ev->failed_hop >= v->nhops || (link = limits_link(c->overlay, host_at(s, v, ev->failed_hop), to)) < 0) {
		monitor_report(c, PTCP_COLLECT_WARNING, s, NULL, ev->text, 0, 0);
		return;
	}
	if (!s->warned[link])
		monitor_report(c, PTCP_COLLECT_WARNING, s, NULL, ev->text, 0, 0);
	s->warned[link] = true;
	if (c->failed_link[link])
		return;
	c->failed_link[link] = true;
	limits_set_bps(c->overlay, (size_t)link, 0);
	if (c->schedule != NULL && schedule_link_bytes(c->schedule, host_at(s, v, ev->failed_hop), to) == 0)
		return; /* a spare path: the plan does without */
	c->urgent = true;
	snprintf(c->unfit_text, sizeof c->unfit_text, "%s has no connection",
	    limits_name(c->overlay, (size_t)link, name, sizeof name));
	c->unfit = c->unfit_text;
}

static void on_event(void *arg, const struct ptcp_event *ev)
{
	struct source_transfer *s = arg;

	switch (ev->type) {
	case PTCP_EVENT_START:
		on_started(s);
		break;
	case PTCP_EVENT_PROGRESS:
		if (s->sizing)
			s->listed_bytes = cap_size(ev->progress.total_bytes);
		else
			on_progress(s, ev);
		break;
	case PTCP_EVENT_FILE:
		if (!s->sizing)
			monitor_report(s->c, PTCP_COLLECT_FILE, s, ev->path, ev->text, ev->code, ev->sys);
		break;
	case PTCP_EVENT_WARNING:
		if (ev->failed_path != NULL && s->candidates.n > 1)
			on_path_failed(s, ev);
		else if (!s->sizing && s->failures == 0) /* report warnings once */
			monitor_report(s->c, PTCP_COLLECT_WARNING, s, NULL, ev->text, 0, 0);
		break;
	default:
		break;
	}
}

/* ---- Start ---- */

/* "ptcp://HOST:PORT/PATH" and "DEST/NAME/", freed by the caller. */
static int name_ends(const struct source_transfer *s, char **from, char **to, struct ptcp_err *e)
{
	const char *p = s->path + strspn(s->path, "/");
	char address[LOCAL_HOST_ADDRESS_BYTES];
	int n;

	*to = NULL;
	if ((*from = malloc(LOCAL_HOST_ADDRESS_BYTES + 16 + 3 * strlen(p))) == NULL ||
	    asprintf(to, "%s/%s/", s->c->dest, s->name) < 0) {
		free(*from);
		return err_nomem(e);
	}
	n = sprintf(*from, "ptcp://%s/", local_host_authority(address, s->address));
	text_percent_encode(*from + n, p);
	return 0;
}

/* Constant facts of a path. */
static int make_route(struct route *r, const struct candidate *v, const struct source_transfer *s, struct ptcp_err *e)
{
	const struct ptcp_overlay *o = s->c->overlay;
	size_t i, k, most = limits_max_of_link(o);
	int from = s->status->host, link;

	*r = (struct route){ .since_s = collect_now_s(s->c), .grown_s = collect_now_s(s->c) };
	if ((r->limit = malloc(v->nhops * most * sizeof *r->limit)) == NULL)
		return err_nomem(e);
	for (i = 0; i < v->nhops; from = v->hop[i++]) {
		if ((link = limits_link(o, from, v->hop[i])) < 0)
			continue; /* only for the direct path of an overlay without any path */
		r->link[r->n_links++] = link;
		r->last_limit = r->n_limits;
		r->n_limits += limits_of_link(o, link, r->limit + r->n_limits, most);
	}
	for (k = 0; k < r->n_limits; k++) {
		r->bound |= limits_is_host(o, r->limit[k]) && isfinite(s->c->limit_first_bps[r->limit[k]]);
		r->counted |= limits_curve(o, r->limit[k]) != NULL;
	}
	return 0;
}

static int make_routes(struct source_transfer *s, struct ptcp_err *e)
{
	size_t i;
	int r;

	r = candidates_choose(&s->candidates, s->c->overlay, s->sizing ? NULL : s->c->schedule, s->status->host, e);
	if (r < 0)
		return r;
	for (i = 0; i < s->candidates.n && r == 0; i++)
		r = make_route(&s->route[i], &s->candidates.at[i], s, e);
	return r;
}

/* A launched server listens on the port of the address, else on the default port if that port is free: the port that
 * relays and firewalls permit. */
static void set_port(struct ptcp_transfer_opts *o, const struct source_transfer *s)
{
	o->remote.port = local_host_port(s->address);
	if (o->remote.port == 0) {
		o->remote.port = PTCP_PORT;
		o->remote.port_or_any = true;
	}
}

static int source_transfer_start(struct source_transfer *s, struct ptcp_err *e)
{
	const char *command = ptcp_overlay_launch(s->c->overlay);
	struct ptcp_transfer_opts o = s->c->connect;
	const char *paths[PTCP_PATHS_MAX];
	double shares[PTCP_PATHS_MAX];
	uint64_t spool_bytes[PTCP_PATHS_MAX];
	char *from, *to, *launch = NULL;
	const struct candidate *v;
	size_t i, cap, streams = 0;
	int r;

	if ((r = make_routes(s, e)) < 0 || (r = name_ends(s, &from, &to, e)) < 0)
		return r;
	for (i = 0; i < s->candidates.n; i++) {
		v = &s->candidates.at[i];
		paths[i] = v->text;
		shares[i] = s->sizing || !v->planned ? 1 : v->streams > 0 ? v->streams : s->c->o.streams;
		streams += (size_t)shares[i];
		spool_bytes[i] = s->sizing ? 0 : v->stored_bytes;
	}
	o.retry_for_s = o.timeout_s; /* afterwards the collection plans again */
	o.paths = paths;
	o.n_paths = s->candidates.n;
	o.path.shares = shares;
	o.path.spool_bytes = spool_bytes;
	o.streams = streams < PTCP_STREAMS_MAX ? (unsigned)streams : PTCP_STREAMS_MAX;
	o.dry_run = o.wire.no_preflight = s->sizing;
	o.wire.compress = 0; /* plan and links count bytes of files */
	if (command != NULL && o.remote.port == 0)
		set_port(&o, s);
	o.event = on_event;
	o.file_events = false;
	o.log = o.log != NULL ? on_log : NULL;
	o.trust = o.trust != NULL ? on_trust : NULL;
	o.arg = s;
	if (command != NULL) { /* {name} is the overlay's name of the host */
		cap = strlen(command) * (strlen(s->name) + 1) + 1;
		if ((launch = malloc(cap)) != NULL)
			text_substitute(launch, cap, command, "{name}", s->name);
		else
			r = err_nomem(e);
	}
	o.remote.launch = launch;
	if (r == 0 && (r = ptcp_recv_new(&s->t, &o, (const char *const *)&from, 1, to, e)) == 0) {
		allocate_rates(s->c); /* before the start: data in transit cannot be recalled */
		r = ptcp_task_start(s->t, e);
	}
	free(from);
	free(to);
	free(launch);
	return r;
}

/* ---- End ---- */

/* Whether all that the source still had, and could send, has arrived. */
static bool has_arrived(int code) { return code == 0 || code == PTCP_EPARTIAL || code == PTCP_EVANISHED; }

/* Whether a retry may help. */
static bool is_temporary(int code)
{
	return code == PTCP_ECONNECT || code == PTCP_EPEER || code == PTCP_EPROTO || code == PTCP_ETIMEOUT;
}

static void keep_result(struct source_transfer *s, int code)
{
	const struct ptcp_progress *before = &s->status->progress;
	struct ptcp_result r;

	if (s->t == NULL)
		return;
	ptcp_result_init(&r);
	ptcp_transfer_result(s->t, &r);
	if (s->sizing) {
		if (has_arrived(code))
			s->data_bytes = cap_size(r.progress.file_bytes - r.progress.resumed_bytes);
		else if (code == PTCP_ECANCELED)
			s->data_bytes = s->listed_bytes;
		return;
	}
	r.progress.bytes = has_arrived(code) ? r.progress.file_bytes : before->bytes;
	r.progress.total_bytes = before->total_bytes;
	r.progress.total_known = before->total_known;
	show_progress(s, &r.progress, s->wire_before + r.progress.wire_bytes);
	s->wire_before += r.progress.wire_bytes;
}

static void ended(struct source_transfer *s, int code, const struct ptcp_err *why)
{
	double now_s = collect_now_s(s->c);
	bool sizing = s->sizing, restart = s->restart, complete;

	keep_result(s, code);
	source_reset(s);
	s->sizing = s->restart = false;
	if (code < 0 && code != PTCP_ECANCELED) {
		snprintf(s->why, sizeof s->why, "%s", why->msg);
		s->status->code = code;
		s->status->sys = why->sys;
		s->status->why = s->why;
	}
	if (code == PTCP_ECANCELED || (is_temporary(code) && collect_is_ending(s->c))) {
		if (restart && !collect_is_ending(s->c))
			source_start(s);
	} else if (sizing && (has_arrived(code) || is_temporary(code))) {
		s->progress_at_s = now_s; /* the transfer itself reports the error */
	} else if (is_temporary(code) && now_s - s->progress_at_s < s->c->connect.timeout_s && s->stalled < SOURCE_STALLED_MAX) {
		s->retry_at_s = now_s + fmin(SOURCE_RETRY_FIRST_S * (double)(1u << (s->failures < 5 ? s->failures : 5)),
		    SOURCE_RETRY_MAX_S);
		s->failures++;
		if (s->planned)
			s->c->unfit = "a source is lost";
		set_state(s, PTCP_COLLECT_WAITING);
	} else {
		complete = code == 0 || code == PTCP_EVANISHED;
		set_state(s, complete ? PTCP_COLLECT_DONE : PTCP_COLLECT_FAILED);
		if (code == PTCP_ENOSPC)
			s->c->fatal = *why;
		s->c->unfit = s->c->unfit != NULL || complete ? s->c->unfit : "a source has failed";
	}
}

void source_start(struct source_transfer *s)
{
	struct ptcp_err why = { .code = 0 };
	int r;

	s->retry_at_s = s->flows_since_s = INFINITY;
	if (collect_is_ending(s->c))
		return;
	if ((r = source_transfer_start(s, &why)) < 0)
		ended(s, r, &why);
}

void source_end(struct source_transfer *s)
{
	s->restart = false;
	s->retry_at_s = INFINITY;
	if (s->t != NULL && !s->ending)
		ptcp_task_cancel(s->t);
	s->ending = true;
}

void source_step(struct source_transfer *s)
{
	struct ptcp_err why = { .code = 0 };
	int r;

	if ((r = ptcp_task_step(s->t, &why)) <= 0)
		ended(s, r, &why);
}

void source_restart(struct source_transfer *s)
{
	s->restart = true;
	s->stalled = 0;
	ptcp_task_cancel(s->t);
}
