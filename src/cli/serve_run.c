/* A daemon at work: one loop for the server, the signals and what is written every few seconds. */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/confine.h"
#include "cli/exit.h"
#include "cli/link_monitor.h"
#include "cli/metrics.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/serve.h"
#include "cli/systemd.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/units.h"

#define INTERVAL_NS (5 * NS_PER_S) /* of the metrics */

struct serving {
	struct ptcp_server *server;
	const struct serve_args *first; /* as it was started; */
	const struct serve_args *a;     /* as it is now: that, or */
	struct serve_args *again;       /* what was read at a reload */
	const struct command *c;
	int argc;
	char **argv;
	int signals;            /* descriptor */
	struct link_monitor *watcher; /* NULL: none */
	struct metrics metrics;
	struct mono measured;   /* when they were */
	bool unwritten;         /* the last time; said once */
};

/* What a client hears from the session need not come to its terminal through ssh as well. */
static int log_level(const struct serve_args *a)
{
	return log_opts_level(&a->talk, a->one_time ? PTCP_LOG_ERROR : PTCP_LOG_WARN);
}

/* The directory that a file is in; NULL for no file. */
static const char *directory(char out[PTCP_PATH_BYTES], const char *file)
{
	const char *slash = file != NULL ? strrchr(file, '/') : NULL;

	if (file == NULL)
		return NULL;
	snprintf(out, PTCP_PATH_BYTES, "%.*s", slash == NULL || slash == file ? 1 : (int)(slash - file),
	    slash == NULL ? "." : file);
	return out;
}

static int on_confine(void *arg, const struct ptcp_server_needs *n, struct ptcp_err *e)
{
	const struct serving *v = arg;
	const struct serve_args *a = v->first;
	char config[PTCP_PATH_BYTES], metrics[PTCP_PATH_BYTES], watched[PTCP_PATH_BYTES];
	const struct confine_also also = { { directory(config, a->config), directory(watched, a->watch) },
		{ directory(metrics, a->metrics), v->watcher != NULL ? link_monitor_dir(v->watcher) : NULL } };
	struct ptcp_server_needs all = *n;

	all.connects |= v->watcher != NULL;
	return confine(&all, &also, CONFINE_ABI, log_level(a), e);
}

static void to_opts(const struct serve_args *a, struct ptcp_server_opts *o)
{
	ptcp_server_opts_init(o);
	if (a->n_listen > 0) {
		o->listen = a->listen[0];
		o->also_listen = a->listen + 1;
		o->n_also_listen = a->n_listen - 1;
	}
	o->root = a->root;
	o->rate = a->rate;
	o->one_time = a->one_time;
	if (a->ciphers != 0)
		o->ciphers = a->ciphers;
	if (a->max_sessions != 0)
		o->max_sessions = a->max_sessions;
	if (a->max_client_sessions != 0)
		o->max_client_sessions = a->max_client_sessions;
	if (a->max_startups != 0)
		o->max_startups = a->max_startups;
	if (a->max_streams != 0)
		o->max_streams = a->max_streams;
	o->relay_to = a->relay_to;
	o->n_relay_to = a->n_relay_to;
	if (a->max_relayed != 0)
		o->max_relayed = a->max_relayed;
	o->relay_storage_bytes = a->relay_storage_bytes;
	o->relay_storage_dir = a->relay_storage_dir;
	if (a->timeout_s > 0)
		o->timeout_s = a->timeout_s;
	o->log = log_opts_log;
	o->log_level = (enum ptcp_log_level)log_level(a);
}

static void say(enum ptcp_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(enum ptcp_log_level level, const char *fmt, ...)
{
	char msg[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	log_opts_log(NULL, level, "server", msg);
}

/* ---- Metrics and state ---- */

static void measure(struct serving *v)
{
	struct metrics *m = &v->metrics;
	struct ptcp_server_stats old = m->now;
	struct mono now = mono_now();
	double seconds = (double)mono_diff_ns(now, v->measured) / 1e9;

	ptcp_server_stats_init(&m->now);
	ptcp_server_stats(v->server, &m->now);
	if (seconds > 0) {
		m->received_bps = (double)(m->now.received_bytes - old.received_bytes) * 8 / seconds;
		m->sent_bps = (double)(m->now.sent_bytes - old.sent_bytes) * 8 / seconds;
	}
	if (v->watcher != NULL) /* what it measures would be little, and taken from others */
		link_monitor_busy(v->watcher, m->received_bps + m->sent_bps > 0 || m->now.relayed_now > 0);
	v->measured = now;
}

static int tell(struct serving *v, struct ptcp_err *e)
{
	int r = 0;

	measure(v);
	systemd_tell("STATUS=%u sessions, %u streams", v->metrics.now.sessions_now, v->metrics.now.streams_now);
	if (v->a->metrics != NULL)
		r = metrics_write(v->a->metrics, &v->metrics, e);
	return r;
}

static void tell_again(struct serving *v)
{
	struct ptcp_err why;
	int r = tell(v, &why);

	if (r < 0 && !v->unwritten)
		say(PTCP_LOG_ERROR, "event=metrics-failed why=\"%s\"", why.msg);
	v->unwritten = r < 0;
}

static void say_state(struct serving *v)
{
	const struct ptcp_server_stats *n = &v->metrics.now;

	measure(v);
	say(PTCP_LOG_INFO, "event=state sessions=%u streams=%u relayed=%u stored_bytes=%llu received_bytes=%llu sent_bytes=%llu "
	    "received_bps=%.0f sent_bps=%.0f sessions_total=%llu failed=%llu refused=%llu retransmits=%llu links_known=%u",
	    n->sessions_now, n->streams_now, n->relayed_now, (unsigned long long)n->stored_bytes,
	    (unsigned long long)n->received_bytes,
	    (unsigned long long)n->sent_bytes, v->metrics.received_bps, v->metrics.sent_bps,
	    (unsigned long long)n->sessions, (unsigned long long)n->sessions_failed,
	    (unsigned long long)n->refused, (unsigned long long)n->retransmits, n->links_known);
}

/* ---- Reading the configuration again ---- */

static void forget(struct serve_args *a)
{
	if (a != NULL)
		serve_args_fini(a);
	free(a);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_places(const struct serve_args *a, const struct serve_args *b)
{
	size_t i;

	for (i = 0; i < a->n_listen && i < b->n_listen; i++)
		if (!same_text(a->listen[i], b->listen[i]))
			return false;
	return a->n_listen == b->n_listen;
}

/* Connecting may have been given up at the start, and cannot be had back. */
static bool begins_to_relay(const struct serve_args *old, const struct serve_args *new)
{
	return !old->no_sandbox && old->n_relay_to == 0 && new->n_relay_to > 0;
}

static bool begins_to_watch(const struct serve_args *old, const struct serve_args *new)
{
	return !old->no_sandbox && old->watch == NULL && new->watch != NULL;
}

/* What only a restart can change stays, and is said. */
static void warn_of_changes(const struct serve_args *old, const struct serve_args *new)
{
	const struct {
		const char *name;
		bool same;
	} fixed[] = {
		{ "listen", same_places(old, new) },
		{ "root", same_text(old->root, new->root) },
		{ "cipher", old->ciphers == new->ciphers },
		{ "max-startups", old->max_startups == new->max_startups },
		{ "relay-to", !begins_to_relay(old, new) },
		{ "watch", !begins_to_watch(old, new) },
		{ "relay-storage", old->relay_storage_bytes == new->relay_storage_bytes &&
		    same_text(old->relay_storage_dir, new->relay_storage_dir) },
		{ "no-sandbox", old->no_sandbox == new->no_sandbox },
		{ "json", old->talk.json == new->talk.json },
	};
	size_t i;

	for (i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!fixed[i].same)
			say(PTCP_LOG_WARN, "event=not-reloaded key=%s why=\"it holds after a restart\"",
			    fixed[i].name);
}

/* What `fresh` says, which is not kept where it is. */
static int change(struct serving *v, const struct serve_args *fresh, struct link_monitor **watcher, struct ptcp_err *e)
{
	struct ptcp_server_opts o;
	int r;

	to_opts(fresh, &o);
	if (begins_to_relay(v->first, fresh))
		o.n_relay_to = 0;
	if (fresh->watch != NULL && !begins_to_watch(v->first, fresh) && (r = link_monitor_new(watcher, fresh, e)) < 0)
		return r;
	if ((r = ptcp_server_change(v->server, &o, e)) < 0) {
		link_monitor_free(*watcher);
		*watcher = NULL;
	}
	return r;
}

/* One that goes on from what the last one has kept. */
static void replace_watcher(struct serving *v, struct link_monitor *w)
{
	struct ptcp_err why;

	link_monitor_free(v->watcher);
	v->watcher = w;
	if (w != NULL && link_monitor_start(w, v->server, &why) < 0)
		say(PTCP_LOG_ERROR, "event=watch-ended why=\"%s\"", why.msg);
}

static void reload(struct serving *v)
{
	struct serve_args *fresh = calloc(1, sizeof *fresh);
	struct link_monitor *watcher = NULL;
	struct ptcp_err why;
	int r;

	systemd_tell("RELOADING=1");
	r = fresh == NULL ? err_nomem(&why) : serve_parse(fresh, v->c, v->argc, v->argv, &why);
	if (r == 0)
		r = change(v, fresh, &watcher, &why);
	if (r < 0) {
		forget(fresh);
		say(PTCP_LOG_ERROR, "event=reload-failed why=\"%s\" effect=\"what was read before holds\"",
		    why.msg);
	} else {
		warn_of_changes(v->first, fresh);
		replace_watcher(v, watcher);
		forget(v->again);
		v->a = v->again = fresh;
		say(PTCP_LOG_INFO, "event=reloaded");
	}
	systemd_tell("READY=1");
}

/* ---- Serving ---- */

static void heed(struct serving *v)
{
	int sig;

	while ((sig = process_signal(v->signals)) != 0)
		if (sig == SIGHUP && !v->first->one_time)
			reload(v);
		else if (sig == SIGHUP)
			ptcp_server_stop(v->server); /* ssh has gone */
		else
			say_state(v);
}

static int serve(struct serving *v, struct ptcp_err *e)
{
	struct pollfd p[2] = { { .fd = ptcp_server_fd(v->server), .events = POLLIN },
		{ .fd = v->signals, .events = POLLIN } };
	struct mono next = mono_add_ns(mono_now(), INTERVAL_NS);
	int r, ms, most;

	if ((r = ptcp_server_start(v->server, e)) < 0)
		return r;
	do {
		most = (int)(mono_diff_ns(next, mono_now()) / NS_PER_MS) + 1;
		ms = ptcp_server_timeout_ms(v->server);
		poll(p, 2, ms < 0 || ms > most ? most : ms);
		heed(v);
		if (mono_now().ns >= next.ns) {
			if (!v->first->one_time)
				tell_again(v);
			next = mono_add_ns(mono_now(), INTERVAL_NS);
		}
	} while ((r = ptcp_server_step(v->server, e)) > 0);
	return r;
}

static void say_where(const struct serving *v)
{
	const char *address;
	unsigned port;
	size_t i;

	for (i = 0; ptcp_server_listening(v->server, i, &address, &port); i++)
		output_listening(v->a->talk.json, address, port, ptcp_server_fingerprint(v->server));
	systemd_tell("READY=1");
}

static void stop(void *handle)
{
	ptcp_server_stop(handle);
}

static void end(struct serving *v)
{
	link_monitor_free(v->watcher);
	ptcp_server_free(v->server);
	forget(v->again);
	if (v->signals >= 0)
		close(v->signals);
}

static int make(struct serving *v, struct ptcp_err *e)
{
	struct ptcp_server_opts o;
	int passed[PTCP_LISTEN_MAX], first, r;
	size_t i, n;

	to_opts(v->first, &o);
	o.arg = v;
	o.confine = v->first->no_sandbox ? NULL : on_confine;
	if (!v->first->one_time && (n = systemd_sockets(&first)) > 0) {
		if (n > PTCP_LISTEN_MAX)
			return err_set(e, PTCP_ECONFIG, "%zu sockets are passed: more than %d (pass fewer)", n,
			    PTCP_LISTEN_MAX);
		for (i = 0; i < n; i++)
			passed[i] = first + (int)i;
		o.sockets = passed;
		o.n_sockets = n;
	}
	if (v->first->watch == NULL || v->first->one_time || (r = link_monitor_new(&v->watcher, v->first, e)) == 0)
		r = ptcp_server_new(&v->server, &o, e);
	for (i = 0; i < o.n_sockets; i++)
		close(passed[i]); /* the server has its own of them */
	if (r == 0 && v->watcher != NULL)
		r = link_monitor_start(v->watcher, v->server, e);
	return r;
}

int serve_run(struct serve_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e)
{
	struct serving v = { .first = a, .a = a, .c = c, .argc = argc, .argv = argv,
		.metrics = { .started = time(NULL) }, .measured = mono_now() };
	struct ptcp_err late;
	int r;

	process_catch(EXIT_DONE, NULL);
	v.signals = process_signal_fd();
	systemd_open();
	if ((r = make(&v, e)) < 0) {
		end(&v);
		return r;
	}
	process_set_stop(stop, v.server);
	if (!a->one_time && (r = tell(&v, e)) == 0) /* a file that cannot be written is better known now */
		say_where(&v);                      /* a one-time server says it to its client */
	if (r == 0 && (r = serve(&v, e)) == 0 && !a->one_time && tell(&v, &late) < 0)
		say(PTCP_LOG_ERROR, "event=metrics-failed why=\"%s\"", late.msg);
	process_set_stop(NULL, NULL);
	systemd_tell("STOPPING=1");
	end(&v);
	return r;
}
