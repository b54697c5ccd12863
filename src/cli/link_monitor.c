/* Background measurement of links. */
#include <ptcp/plan.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/serve.h"
#include "core/err.h"
#include "core/text.h"
#include "core/thread.h"
#include "core/userdir.h"

/* Size of the largest of four messages. A turn, with initial messages, stays below 256 MiB. */
#define MAX_MESSAGE_BYTES (64u << 20)
#define PAUSE_S 300
#define JITTER 0.5

struct link_monitor {
	const struct serve_args *a;
	struct ptcp_overlay *overlay;
	struct ptcp_links *links;
	struct ptcp_server *server;
	char dir[USERDIR_BYTES], file[USERDIR_BYTES + 8];
	struct ptcp_published_link *published;
	bool *failing;            /* already logged, by link */
	bool write_failed;        /* last time; already logged */
	atomic_bool busy;
	pthread_t thread;
	bool started;
};

#define monitor_log(w, level, ...) \
	log_format(log_opts_level(&(w)->a->log, PTCP_LOG_WARN), (level), "watch", __VA_ARGS__)

/* ---- Results ---- */

static struct ptcp_published_link known_link(const char *to, const struct ptcp_link_estimate *m)
{
	return (struct ptcp_published_link){ .to = to, .why = m->why,
		.messages = m->state == PTCP_LINK_MEASURED ? m->messages : 0, .streams = m->streams,
		.rate_bps = m->rate_bps, .rate_error_bps = m->rate_error_bps, .delay_s = m->delay_s,
		.delay_error_s = m->delay_error_s, .delay_from_round_trip = m->delay_from_round_trip,
		.age_s = m->age_s };
}

static int publish(struct link_monitor *w, struct ptcp_err *e)
{
	struct ptcp_link_estimate m;
	struct ptcp_overlay_link of;
	struct ptcp_overlay_host to;
	size_t i, n = 0;

	for (i = 0; i < ptcp_overlay_links(w->overlay); i++) {
		ptcp_links_get(w->links, i, &m);
		ptcp_overlay_link(w->overlay, i, &of);
		ptcp_overlay_host(w->overlay, (size_t)of.to, &to);
		if (m.state != PTCP_LINK_ELSEWHERE && to.address != NULL)
			w->published[n++] = known_link(to.address, &m);
	}
	return ptcp_server_set_links(w->server, w->published, n, e);
}

/* The first of successive failures is a warning. */
static void log_result(struct link_monitor *w, size_t link, const char *why)
{
	struct ptcp_link_estimate m;
	struct ptcp_overlay_link of;
	struct ptcp_overlay_host to;
	bool was = w->failing[link];

	w->failing[link] = why != NULL;
	ptcp_links_get(w->links, link, &m);
	ptcp_overlay_link(w->overlay, link, &of);
	ptcp_overlay_host(w->overlay, (size_t)of.to, &to);
	if (why != NULL)
		monitor_log(w, was ? PTCP_LOG_INFO : PTCP_LOG_WARN, "event=link-failed to=%s why=\"%s\"", to.name, why);
	else
		monitor_log(w, PTCP_LOG_INFO, "event=link to=%s rate_bps=%.0f delay_s=%.6f messages=%u", to.name,
		    m.rate_bps, m.delay_s, m.messages);
}

static int on_measured(void *arg, size_t link, const char *why, struct ptcp_err *e)
{
	struct link_monitor *w = arg;
	struct ptcp_err unwritten;
	int r;

	log_result(w, link, why);
	r = ptcp_links_keep(w->links, w->file, &unwritten);
	if (r < 0 && !w->write_failed)
		monitor_log(w, PTCP_LOG_ERROR, "event=links-unwritten why=\"%s\"", unwritten.msg);
	w->write_failed = r < 0;
	return publish(w, e);
}

static bool on_busy(void *arg)
{
	return atomic_load(&((struct link_monitor *)arg)->busy);
}

/* ---- Thread ---- */

static void *work(void *arg)
{
	struct link_monitor *w = arg;
	struct ptcp_links_watch o;
	struct ptcp_err why;

	ptcp_links_watch_init(&o);
	o.pause_s = w->a->watch_interval_s > 0 ? w->a->watch_interval_s : PAUSE_S;
	o.jitter_ratio = JITTER;
	o.seen = on_measured;
	o.busy = on_busy;
	o.arg = w;
	if (ptcp_links_watch(w->links, &o, &why) != PTCP_ECANCELED)
		monitor_log(w, PTCP_LOG_ERROR, "event=watch-ended why=\"%s\"", why.msg);
	return NULL;
}

/* Requires a link that can be measured. */
static int check_any(const struct link_monitor *w, struct ptcp_err *e)
{
	struct ptcp_link_estimate m;
	const char *why = "no link begins at this host";
	size_t i;

	for (i = 0; i < ptcp_overlay_links(w->overlay); i++) {
		ptcp_links_get(w->links, i, &m);
		if (m.state == PTCP_LINK_FAILED && m.why == NULL)
			return 0;
		if (m.state == PTCP_LINK_FAILED)
			why = m.why;
	}
	return err_set(e, PTCP_ECONFIG, "no link can be measured: %s", why);
}

static int find_links(struct link_monitor *w, struct ptcp_err *e)
{
	struct ptcp_transfer_opts connect;
	struct ptcp_links_opts o;
	int r;

	ptcp_transfer_opts_init(&connect);
	connect.rate = w->a->server.rate;
	connect.no_history = true;
	ptcp_links_opts_init(&o);
	o.local_host = w->a->watch_as;
	o.local_only = true;
	o.most_bytes = MAX_MESSAGE_BYTES;
	if ((r = ptcp_overlay_load(&w->overlay, w->a->watch, e)) < 0 ||
	    (r = ptcp_links_new(&w->links, w->overlay, &connect, &o, e)) < 0)
		return r;
	return check_any(w, e);
}

static int find_state(struct link_monitor *w, struct ptcp_err *e)
{
	int r;

	if ((r = userdir_state(w->dir, NULL, e)) < 0 || (r = userdir_make(w->dir, e)) < 0)
		return r;
	snprintf(w->file, sizeof w->file, "%s/links", w->dir);
	return 0;
}

int link_monitor_new(struct link_monitor **out, const struct serve_args *a, struct ptcp_err *e)
{
	struct link_monitor *w = calloc(1, sizeof *w);
	char shown[TEXT_NAME_BYTES];
	size_t n;
	int r;

	if (w == NULL)
		return err_nomem(e);
	w->a = a;
	atomic_init(&w->busy, false);
	if ((r = find_state(w, e)) == 0 && (r = find_links(w, e)) == 0) {
		n = ptcp_overlay_links(w->overlay) + 1;
		if ((w->published = calloc(n, sizeof *w->published)) == NULL ||
		    (w->failing = calloc(n, sizeof *w->failing)) == NULL)
			r = err_nomem(e);
	}
	if (r < 0) {
		link_monitor_free(w);
		return err_while(e, r, "--watch %s", text_escape(shown, sizeof shown, a->watch));
	}
	*out = w;
	return 0;
}

const char *link_monitor_dir(const struct link_monitor *w) { return w->dir; }

int link_monitor_start(struct link_monitor *w, struct ptcp_server *s, struct ptcp_err *e)
{
	struct ptcp_err why;
	int r;

	w->server = s;
	if (ptcp_links_recall(w->links, w->file, &why) < 0)
		monitor_log(w, PTCP_LOG_WARN, "event=links-unread why=\"%s\"", why.msg);
	if ((r = publish(w, e)) == 0 && (r = thread_start(&w->thread, work, w, e)) == 0)
		w->started = true;
	return r;
}

void link_monitor_busy(struct link_monitor *w, bool busy)
{
	atomic_store(&w->busy, busy);
}

void link_monitor_free(struct link_monitor *w)
{
	if (w == NULL)
		return;
	if (w->started) {
		ptcp_links_cancel(w->links);
		pthread_join(w->thread, NULL);
	}
	if (w->server != NULL)
		ptcp_server_set_links(w->server, NULL, 0, NULL);
	ptcp_links_free(w->links);
	ptcp_overlay_free(w->overlay);
	free(w->published);
	free(w->failing);
	free(w);
}
