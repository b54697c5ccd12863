/* ptcp serve: a loop for the server, signals, metrics and reloads. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/confine.h"
#include "cli/metrics/scrape.h"
#include "cli/process.h"
#include "cli/running.h"
#include "cli/serve.h"
#include "cli/session_log.h"
#include "cli/show/json.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/prometheus.h"
#include "core/units.h"

#define INTERVAL_NS (5 * NS_PER_S) /* time between updates of the metrics */
#define END_S 30                   /* granted by the service manager beyond --drain */

struct serving {
	struct ptcp_server *server;
	const struct serve_args *first; /* options at the start */
	const struct serve_args *a;     /* current options: `first` or `reloaded` */
	struct serve_args *reloaded;
	const struct command *c;
	int argc;
	char **argv;
	int signals;                    /* descriptor */
	int passed[PTCP_LISTEN_MAX];    /* sockets of the service manager, until the server has duplicated them */
	size_t n_passed;
	struct link_monitor *monitor;   /* NULL: none */
	struct metrics metrics;
	struct scrape *scrape;          /* NULL: nobody asks for the metrics */
	bool metrics_failed;            /* last time; already reported */
	bool stopping;                  /* the service manager is notified */
	struct session_log sessions;
	struct running *running;        /* NULL: an ephemeral server */
};

/* The directory of a file; NULL for NULL. */
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
	char config[PTCP_PATH_BYTES], metrics[PTCP_PATH_BYTES], watched[PTCP_PATH_BYTES], log[PTCP_PATH_BYTES];
	const struct confine_tool tool = { .reads = { directory(config, a->config), directory(watched, a->watch) },
		.writes = { directory(metrics, a->metrics),
		v->monitor != NULL ? link_monitor_dir(v->monitor) : NULL,
		v->sessions.path[0] != '\0' ? directory(log, v->sessions.path) : NULL } };
	struct ptcp_server_needs all = *n;

	all.connects |= v->monitor != NULL;
	return confine(&all, &tool, CONFINE_ABI, serve_log_level(a), e);
}

/* ---- Metrics ---- */

static void add_mover(void *list, const struct ptcp_mover_stats *m)
{
	json_array_append_new(list, json_mover(m));
}

/* The clients with the most memory, in descending order: an answer has a limited length. */
#define CLIENTS_MAX (RUNNING_ANSWER_BYTES / 1024)

static void add_client(void *list, const struct ptcp_server_memory *m)
{
	size_t n = json_array_size(list), i = n;

	while (i > 0 && (uint64_t)json_integer_value(json_object_get(json_array_get(list, i - 1),
	    "memory_bytes")) < m->bytes)
		i--;
	if (i < CLIENTS_MAX)
		json_array_insert_new(list, i, json_pack("{s:o, s:o}", "client", json_text(m->client), "memory_bytes",
		    json_count(m->bytes)));
	if (json_array_size(list) > CLIENTS_MAX)
		json_array_remove(list, CLIENTS_MAX);
}

static void cmd_serve_report(struct serving *v)
{
	const struct ptcp_server_stats *n = &v->metrics.stats;
	char address[128];
	json_t *movers = json_array(), *clients = json_array();

	ptcp_server_memory_each(v->server, add_client, clients);
	ptcp_server_movers_each(v->server, add_mover, movers);
	snprintf(address, sizeof address, strchr(ptcp_server_address(v->server), ':') != NULL ? "[%s]:%u" : "%s:%u",
	    ptcp_server_address(v->server), ptcp_server_port(v->server));
	running_report(v->running, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state",
	    "serving", "address",
	    address, "sessions", json_count(n->sessions_now), "streams", json_count(n->streams_now), "waiting",
	    json_count(n->waiting_now), "received_bytes", json_count(n->received_bytes), "sent_bytes",
	    json_count(n->sent_bytes), "received_bps", json_rate(v->metrics.received_bps), "sent_bps",
	    json_rate(v->metrics.sent_bps), "memory_bytes", json_count(n->memory_bytes), "clients", clients,
	    "movers", movers));
}

static void update_metrics(struct serving *v)
{
	struct metrics *m = &v->metrics;

	metrics_update(m, v->server);
	if (v->monitor != NULL) /* measurements would be inaccurate, and slow transfers down */
		link_monitor_busy(v->monitor, m->received_bps + m->sent_bps > 0 || m->stats.relayed_now > 0);
	if (v->running != NULL)
		cmd_serve_report(v);
}

static int publish(struct serving *v, struct ptcp_err *e)
{
	update_metrics(v);
	systemd_notify("STATUS=%u sessions, %u streams", v->metrics.stats.sessions_now, v->metrics.stats.streams_now);
	return v->a->metrics != NULL ? prometheus_write(v->a->metrics, metrics_print, &v->metrics, e) : 0;
}

/* Publishes, and logs the first of successive failures. */
static void publish_again(struct serving *v)
{
	struct ptcp_err why;
	int r = publish(v, &why);

	if (r < 0 && !v->metrics_failed)
		serve_log(PTCP_LOG_ERROR, "event=metrics-failed why=\"%s\"", why.msg);
	v->metrics_failed = r < 0;
}

/* ---- The log of sessions ---- */

/* The library logs successful work from the level info on: at the default, warn, the line is printed here. A full disk
 * stops no transfer: the first of successive failures is logged. */
static void on_record(void *arg, const struct ptcp_server_record *r)
{
	struct serving *v = arg;
	struct ptcp_err why;
	bool failed = session_log_add(&v->sessions, r, &why) < 0;

	metrics_add(&v->metrics, r);
	if (serve_log_level(v->a) == PTCP_LOG_WARN && r->level > PTCP_LOG_WARN)
		serve_log(r->level, "%s", r->text);
	if (failed && !v->sessions.failed)
		serve_log(PTCP_LOG_ERROR, "event=session-log-failed why=\"%s\"", why.msg);
	v->sessions.failed = failed;
}

/* A file that the user has named must be writable. */
static int open_sessions(struct serving *v, struct ptcp_err *e)
{
	int r = session_log_open(&v->sessions, v->first->session_log, v->first->session_log_bytes, e);

	if (r == 0 || v->first->session_log != NULL)
		return r;
	serve_log(PTCP_LOG_WARN, "event=no-session-log why=\"%s\"", e->msg);
	return 0;
}

/* ---- Reload ---- */

/* Signals before the one that ends the process: to drain, and to end the sessions. */
static void set_stops(const struct serve_args *a) { process_set_stops(a->server.drain_s > 0 ? 2 : 1); }

static void args_free(struct serve_args *a)
{
	if (a != NULL)
		serve_args_fini(a);
	free(a);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The sandbox may have forbidden connections at the start. */
static bool begins_to_relay(const struct serve_args *old, const struct serve_args *new)
{
	return !old->no_sandbox && old->server.n_relay_to == 0 && new->server.n_relay_to > 0;
}

static bool begins_to_watch(const struct serve_args *old, const struct serve_args *new)
{
	return !old->no_sandbox && old->watch == NULL && new->watch != NULL;
}

static bool same_texts(const char *const *a, size_t n, const char *const *b, size_t n_b)
{
	size_t i;

	for (i = 0; i < n && i < n_b; i++)
		if (!same_text(a[i], b[i]))
			return false;
	return n == n_b;
}

static void warn_unless(bool same, const char *name)
{
	if (!same)
		serve_log(PTCP_LOG_WARN, "event=not-reloaded key=%s why=\"requires a restart\"", name);
}

/* Rows of <ptcp/options.h> whose value only a restart can apply; `a` and `b` are the options before and after. */
#define SAME_UNSIGNED(member) (a->member == b->member)
#define SAME_BYTES(member)    (a->member == b->member)
#define SAME_STORAGE(member)  (a->member == b->member && same_text(a->relay_storage_dir, b->relay_storage_dir))
#define SAME_TEXT(member)     same_text(a->member, b->member)
#define WARN_LIVE(...)
#define WARN_RESTART(same, name) warn_unless(same, name);
#define WARN_SWITCH(when, member, name, help) WARN_##when(a->member == b->member, name)
#define WARN_VALUE(TYPE, when, member, initial, min, max, name, value, help) WARN_##when(SAME_##TYPE(member), name)
#define WARN_TEXTS(TYPE, when, member, count, name, value, help) \
	WARN_##when(same_texts(a->member, a->count, b->member, b->count), name)

/* Logs changed options that only a restart can apply. */
static void warn_of_changes(const struct serve_args *old, const struct serve_args *new)
{
	const struct ptcp_server_opts *a = &old->server, *b = &new->server;

	PTCP_SERVER_OPTIONS(WARN_SWITCH, WARN_VALUE, WARN_TEXTS)
	warn_unless(same_texts(old->listen, old->n_listen, new->listen, new->n_listen), "listen");
	warn_unless(old->ciphers == new->ciphers, "cipher");
	warn_unless(!begins_to_relay(old, new), "relay-to");
	warn_unless(!begins_to_watch(old, new), "watch");
	warn_unless(old->no_sandbox == new->no_sandbox, "no-sandbox");
	warn_unless(old->share_port == new->share_port, "share-port");
	warn_unless(same_text(old->session_log, new->session_log), "session-log");
	warn_unless(old->session_log_bytes == new->session_log_bytes, "session-log-size");
	warn_unless(same_text(old->metrics_listen, new->metrics_listen), "metrics-listen");
	warn_unless(old->log.json == new->log.json, "json");
}

/* Applies `fresh` to the server; *monitor: a new monitor, to be started. */
static int apply(struct serving *v, const struct serve_args *fresh, struct link_monitor **monitor, struct ptcp_err *e)
{
	struct ptcp_server_opts o = fresh->server;
	int r;

	if (begins_to_relay(v->first, fresh))
		o.n_relay_to = 0;
	if (fresh->watch != NULL && !begins_to_watch(v->first, fresh) && (r = link_monitor_new(monitor, fresh, e)) < 0)
		return r;
	if ((r = ptcp_server_change(v->server, &o, e)) < 0) {
		link_monitor_free(*monitor);
		*monitor = NULL;
	}
	return r;
}

/* The new monitor continues from the stored estimates. */
static void replace_monitor(struct serving *v, struct link_monitor *w)
{
	struct ptcp_err why;

	link_monitor_free(v->monitor);
	v->monitor = w;
	if (w != NULL && link_monitor_start(w, v->server, &why) < 0)
		serve_log(PTCP_LOG_ERROR, "event=watch-ended why=\"%s\"", why.msg);
}

static void reload(struct serving *v)
{
	struct serve_args *fresh = calloc(1, sizeof *fresh);
	struct link_monitor *monitor = NULL;
	struct ptcp_err why;
	int r;

	systemd_notify("RELOADING=1");
	r = fresh == NULL ? err_nomem(&why) : serve_parse(fresh, v->c, v->argc, v->argv, &why);
	if (r == 0)
		r = apply(v, fresh, &monitor, &why);
	if (r < 0) {
		args_free(fresh);
		serve_log(PTCP_LOG_ERROR, "event=reload-failed why=\"%s\" effect=\"the previous configuration "
		    "remains\"", why.msg);
	} else {
		warn_of_changes(v->first, fresh);
		replace_monitor(v, monitor);
		args_free(v->reloaded);
		v->a = v->reloaded = fresh;
		set_stops(fresh);
		serve_log(PTCP_LOG_INFO, "event=reloaded");
	}
	systemd_notify("READY=1");
}

/* ---- Serving ---- */

static void handle_signals(struct serving *v)
{
	int sig;

	while ((sig = process_signal(v->signals)) != 0)
		if (sig == SIGHUP && !v->first->server.ephemeral) {
			reload(v);
		} else if (sig == SIGHUP) {
			ptcp_server_stop(v->server); /* ssh has ended */
		} else {
			update_metrics(v);
			metrics_log_state(&v->metrics);
		}
}

static void notify_stop(struct serving *v)
{
	if (!v->stopping)
		systemd_notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=%.0f", (v->a->server.drain_s + END_S) * 1e6);
	v->stopping = true;
}

static int serve(struct serving *v, struct ptcp_err *e)
{
	struct pollfd p[2 + SCRAPE_FDS] = { { .fd = ptcp_server_fd(v->server), .events = POLLIN },
		{ .fd = v->signals, .events = POLLIN } };
	struct mono next = mono_add_ns(mono_now(), INTERVAL_NS);
	int r, ms, max_ms;

	if ((r = ptcp_server_start(v->server, e)) < 0)
		return r;
	do {
		max_ms = (int)(mono_diff_ns(next, mono_now()) / NS_PER_MS) + 1;
		ms = ptcp_server_timeout_ms(v->server);
		poll(p, 2 + scrape_polled(v->scrape, p + 2), ms < 0 || ms > max_ms ? max_ms : ms);
		handle_signals(v);
		scrape_step(v->scrape, p + 2, metrics_print, &v->metrics);
		if (process_stopping())
			notify_stop(v);
		if (mono_now().ns >= next.ns) {
			if (!v->first->server.ephemeral)
				publish_again(v);
			next = mono_add_ns(mono_now(), INTERVAL_NS);
		}
	} while ((r = ptcp_server_step(v->server, e)) > 0);
	return r;
}

static void print_listening(const struct serving *v)
{
	const char *address, *fingerprint = ptcp_server_fingerprint(v->server);
	unsigned port;
	size_t i;

	for (i = 0; ptcp_server_listening(v->server, i, &address, &port); i++) {
		bool bracket = strchr(address, ':') != NULL;

		if (v->a->log.json)
			json_line(json_pack("{s:s, s:s, s:i, s:s}", "event", "listening", "address", address,
			    "port", (int)port, "fingerprint", fingerprint));
		else
			printf("listening %s%s%s:%u %s\n", bracket ? "[" : "", address, bracket ? "]" : "",
			    port, fingerprint);
	}
	fflush(stdout);
	systemd_notify("READY=1");
}

struct clients {
	unsigned n;
	bool have_roots;
};

static void count_client(void *arg, const struct ptcp_permission *p)
{
	struct clients *c = arg;

	c->n++;
	c->have_roots |= p->root != NULL;
}

/* A server that serves nobody, or nothing, is a common mistake of a first try. */
static void warn_of_idle_server(const struct ptcp_server_opts *o)
{
	struct clients c = { .n = 0 };

	if (ptcp_authorized_each(NULL, count_client, &c, NULL) < 0)
		return; /* logged at the first connection */
	if (c.n == 0)
		serve_log(PTCP_LOG_WARN, "event=nobody-authorized why=\"no client may connect yet (ptcp key show "
		    "prints the fingerprint of a client, ptcp key authorize FINGERPRINT permits it)\"");
	if (o->root == NULL && !c.have_roots && o->n_relay_to == 0)
		serve_log(PTCP_LOG_WARN, "event=no-root why=\"clients may only measure the path (--root DIR serves a "
		    "directory, --relay-to HOST relays)\"");
}

/* The first signal lets sessions end, a second signal ends them. */
static void stop(void *handle)
{
	static atomic_bool again;

	if (atomic_exchange(&again, true))
		ptcp_server_stop(handle);
	else
		ptcp_server_drain(handle);
}

static void close_passed(struct serving *v)
{
	while (v->n_passed > 0)
		fd_close(&v->passed[--v->n_passed]);
}

static void end(struct serving *v)
{
	running_free(v->running);
	scrape_free(v->scrape);
	link_monitor_free(v->monitor);
	ptcp_server_free(v->server);
	args_free(v->reloaded);
	fd_close(&v->signals);
	close_passed(v);
}

static int make(struct serving *v, struct ptcp_err *e)
{
	struct ptcp_server_opts o = v->first->server;
	char own[PTCP_PATH_BYTES];
	int r;

	o.arg = v;
	o.confine = v->first->no_sandbox ? NULL : on_confine;
	if (!o.ephemeral && (r = open_sessions(v, e)) < 0)
		return r;
	o.record = o.ephemeral ? NULL : on_record;
	if (o.mover_ptcp == NULL && o.movers != NULL)
		o.mover_ptcp = process_own_path(own, sizeof own);
	if (v->first->metrics_listen != NULL && !o.ephemeral &&
	    (r = scrape_new(&v->scrape, v->first->metrics_listen, e)) < 0)
		return r;
	o.sockets = v->passed;
	o.n_sockets = v->n_passed;
	if (v->first->watch == NULL || v->first->server.ephemeral ||
	    (r = link_monitor_new(&v->monitor, v->first, e)) == 0)
		r = ptcp_server_new(&v->server, &o, e);
	close_passed(v);
	if (r == 0 && v->monitor != NULL)
		r = link_monitor_start(v->monitor, v->server, e);
	return r;
}

static int serve_args(const struct serve_args *a, const struct command *c, int argc, char **argv, struct ptcp_err *e)
{
	struct serving v = { .first = a, .a = a, .c = c, .argc = argc, .argv = argv,
		.metrics = { .started = time(NULL), .when = mono_now() } };
	struct ptcp_err late;
	const struct running_opts running = { .command = "serve" };
	bool ephemeral = a->server.ephemeral;
	int r;

	/* First: the numbers of further descriptors follow those of the passed sockets. */
	if (!ephemeral && (r = systemd_sockets(v.passed, PTCP_LISTEN_MAX, &v.n_passed, e)) < 0)
		return r;
	process_catch(EXIT_DONE, NULL);
	v.signals = process_signal_fd();
	systemd_open();
	if ((!ephemeral && (r = running_new(&v.running, &running, e)) < 0) || (r = make(&v, e)) < 0 ||
	    (!ephemeral && (r = running_start(v.running, e)) < 0)) { /* after make(): the sandbox
	                                                                covers the thread, too */
		end(&v);
		return r;
	}
	set_stops(a);
	process_set_stop(stop, v.server);
	if (!ephemeral && (r = publish(&v, e)) == 0) { /* fails now if the metrics file cannot be written */
		warn_of_idle_server(&a->server);
		if (v.scrape != NULL)
			serve_log(PTCP_LOG_INFO, "event=metrics-listening address=%s", scrape_address(v.scrape));
		print_listening(&v); /* an ephemeral server reports to its client instead */
	}
	if (r == 0 && (r = serve(&v, e)) == 0 && !ephemeral && publish(&v, &late) < 0)
		serve_log(PTCP_LOG_ERROR, "event=metrics-failed why=\"%s\"", late.msg);
	process_set_stop(NULL, NULL);
	notify_stop(&v);
	end(&v);
	return r;
}

static int run_serve(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct serve_args a;
	int r;

	if ((r = serve_parse(&a, c, argc, argv, &e)) == 0)
		r = serve_args(&a, c, argc, argv, &e);
	serve_args_fini(&a);
	return command_end(c, r, &e);
}

const struct command command_serve = { "serve", "[options]", "serve files to authorized clients on one port",
	run_serve, serve_groups, 0, 0, "takes no operand; --root DIR names the directory to serve" };
