/* A daemon: how it starts and stops. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "server/server_impl.h"

#define WATCH_NS (500 * NS_PER_MS) /* authorized_clients is looked at */

void server_try_end(void *arg)
{
	struct ptcp_server *s = arg;

	if (s->stopping && s->sessions.n == 0 && s->pending.n == 0 && s->relay.n == 0 &&
	    job_set_idle(&s->errands)) {
		s->over = true;
		loop_stop(s->loop);
	}
}

/* Who is revoked loses what is running, too. */
static void on_watch(void *arg)
{
	struct ptcp_server *s = arg;

	if (authorized_changed(s->host.config_dir, &s->trusted)) {
		server_session_judge_again(&s->sessions, server_admits, s);
		relay_judge_again(&s->relay, server_admits, s);
		job_judge_again(&s->errands, server_admits, s);
	}
	timer_set(s->watch, mono_add_ns(mono_now(), WATCH_NS));
}

static void on_session_gone(void *arg, struct peer_address *from)
{
	struct ptcp_server *s = arg;

	admission_session(s->pending.admission, from, false);
	if (s->once != NULL && s->sessions.n_run > 0)
		ptcp_server_stop(s); /* that was it */
	server_try_end(s);
}

static void on_wake(void *arg)
{
	struct ptcp_server *s = arg;
	struct ptcp_err why;

	if (!atomic_load(&s->stop) || s->stopping)
		return;
	s->stopping = true;
	server_listen_end(s);
	err_set(&why, PTCP_EPEER, "transfer cut off: the server was stopped (run it again when it is back)");
	pending_empty(&s->pending);
	server_session_cancel_all(&s->sessions, &why);
	relay_stop(&s->relay);
	job_set_cancel(&s->errands, &why);
	server_try_end(s);
}

int server_check(const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	const struct {
		const char *name;
		unsigned n, most;
	} limits[] = {
		{ "streams", o->max_streams, PTCP_STREAMS_MAX },
		{ "sessions", o->max_sessions, PTCP_SESSIONS_MAX },
		{ "client-sessions", o->max_client_sessions, PTCP_SESSIONS_MAX },
		{ "startups", o->max_startups, PTCP_STARTUPS_MAX },
		{ "relayed", o->max_relayed, UINT_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].n < 1 || limits[i].n > limits[i].most)
			return err_set(e, PTCP_EUSAGE, "--max-%s %u: must be 1 to %u", limits[i].name, limits[i].n,
			    limits[i].most);
	if (!(o->timeout_s >= 0.1 && o->timeout_s <= 86400))
		return err_set(e, PTCP_EUSAGE, "--timeout %g: must be 0.1 to 86400 seconds", o->timeout_s);
	if (o->relay_storage_bytes > 0 && o->relay_storage_bytes < 2 * SPOOL_GRAIN)
		return err_set(e, PTCP_EUSAGE, "--relay-storage: less than 2 MiB holds nothing (give more, or leave it out)");
	if ((o->listen != NULL) + o->n_also_listen + o->n_sockets > PTCP_LISTEN_MAX)
		return err_set(e, PTCP_EUSAGE, "listening: at more than %d places (leave some out)",
		    PTCP_LISTEN_MAX);
	return 0;
}

int server_nexthops(struct relay_acl **out, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct relay_acl *list = NULL;
	size_t i;
	int r = 0;

	for (i = 0; i < o->n_relay_to && r == 0; i++)
		r = relay_acl_add(&list, o->relay_to[i], PTCP_PORT, e);
	if (r < 0)
		relay_acl_free(list);
	else
		*out = list;
	return r;
}

static const char *storage_dir(const struct ptcp_server_opts *o)
{
	const char *dir = o->relay_storage_dir != NULL ? o->relay_storage_dir : getenv("TMPDIR");

	return dir != NULL && dir[0] != '\0' ? dir : "/var/tmp";
}

/* As far as we may still go there. */
static int start_holding(struct ptcp_server *s, struct ptcp_err *e)
{
	int r;

	if (s->storage_dir == NULL)
		return 0;
	if ((r = spool_check(s->storage_dir, e)) < 0)
		return err_while(e, r, "--relay-storage");
	relay_storage_init(&s->relay.holding, s->o.relay_storage_bytes, s->storage_dir, s->host.io);
	return 0;
}

static int take_opts(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct tree *t;
	char shown[TEXT_NAME_BYTES];
	int r;

	ptcp_server_opts_init(&s->o);
	if (o != NULL) {
		if (o->size == 0 || o->size > sizeof s->o)
			return err_set(e, PTCP_EUSAGE, "options that ptcp_server_opts_init() has not filled in");
		memcpy(&s->o, o, o->size);
	}
	if ((r = server_check(&s->o, e)) < 0 || (r = server_nexthops(&s->nexthops, &s->o, e)) < 0 ||
	    (r = pacing_parse(&s->rate, s->o.rate, e)) < 0)
		return r;
	if ((s->o.config_dir != NULL && (s->config_dir = strdup(s->o.config_dir)) == NULL) ||
	    (s->o.root != NULL && (s->root = strdup(s->o.root)) == NULL) ||
	    (s->o.relay_storage_bytes > 0 && (s->storage_dir = strdup(storage_dir(&s->o))) == NULL))
		return err_nomem(e);
	if (s->root == NULL)
		return 0;
	if ((r = tree_open(&t, s->root, &sys_real, e)) < 0) {
		if (e != NULL)
			e->code = PTCP_ECONFIG;
		return err_while(e, PTCP_ECONFIG, "--root %s", text_escape(shown, sizeof shown, s->root));
	}
	tree_unref(t);
	return 0;
}

/* One for a single session makes an identity for it. Either may have to connect elsewhere. What can be done only
 * once comes before the host's threads: what `confine` takes from one thread, it takes from those that are started
 * later. */
static int start_host(struct ptcp_server *s, struct ptcp_err *e)
{
	struct identity *id = &s->host.identity;
	int r;

	context_log(&s->host, s->o.log, s->o.arg, s->o.log_level);
	if ((r = userdir_config(s->host.config_dir, s->config_dir, e)) < 0 ||
	    (r = s->o.one_time ? identity_new(id, e) : identity_load(id, s->host.config_dir, false, e)) < 0 ||
	    (!s->o.one_time && (r = server_listen_all(s, &s->o, e)) < 0) || (r = server_confine(s, e)) < 0)
		return r;
	if ((r = context_init(&s->host, s->loop, s->config_dir, CONTEXT_WORKERS_MAX, s->o.ciphers, s->o.ciphers,
	    e)) < 0)
		return r;
	return pacing_start(&s->host.pacing, &s->rate, s->loop, e);
}

static int start_lobby(struct ptcp_server *s, struct ptcp_err *e)
{
	struct pending_opts o = { .host = &s->host, .timeout_ns = (uint64_t)(s->o.timeout_s * 1e9),
		.waiting = s->o.max_startups, .sessions = s->o.max_sessions, .streams = s->o.max_streams,
		.ops = &server_inbound_ops, .arg = s };

	return pending_init(&s->pending, &o, e);
}

int ptcp_server_new(struct ptcp_server **out, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct ptcp_server *s = calloc(1, sizeof *s);
	struct ptcp_err scratch;
	int r;

	if (e == NULL)
		e = &scratch;
	if (s == NULL)
		return err_nomem(e);
	atomic_init(&s->stop, false);
	link_table_init(&s->told);
	if ((r = take_opts(s, o, e)) < 0 || (r = loop_new(&s->loop, e)) < 0 || (r = start_host(s, e)) < 0 ||
	    (r = timer_new(&s->watch, s->loop, on_watch, s, e)) < 0 || (r = start_lobby(s, e)) < 0)
		goto out;
	server_session_set_init(&s->sessions, &s->host, s->root, &s->o, on_session_gone, s);
	s->sessions.one_time = s->o.one_time;
	s->sessions.roots = (const char *const *)s->roots;
	relay_init(&s->relay, &s->host, s->nexthops, s->o.max_relayed, (uint64_t)(s->o.timeout_s * 1e9),
	    server_try_end, s);
	if ((r = start_holding(s, e)) < 0)
		goto out;
	job_set_init(&s->errands, &s->host, s->root, &s->o, s->nexthops, server_try_end, s);
	s->errands.roots = s->sessions.roots;
	s->errands.told = &s->told;
	loop_on_wake(s->loop, on_wake, s);
	if (!s->o.one_time)
		on_watch(s);
	if (s->o.one_time && (r = ssh_server_start(s, e)) < 0)
		goto out;
	*out = s;
	return 0;
out:
	ptcp_server_free(s);
	return r;
}

const char *ptcp_server_fingerprint(const struct ptcp_server *s) { return s->host.identity.fingerprint; }

int ptcp_server_start(struct ptcp_server *s, struct ptcp_err *e)
{
	if (s->ran)
		return err_set(e, PTCP_EUSAGE, "a server runs once");
	s->ran = true;
	loop_wake(s->loop); /* it may have been stopped already */
	return 0;
}

int ptcp_server_fd(const struct ptcp_server *s) { return loop_fd(s->loop); }

int ptcp_server_timeout_ms(const struct ptcp_server *s)
{
	return s->over || !s->ran ? 0 : loop_timeout_ms(s->loop);
}

static int turn(struct ptcp_server *s, bool wait, struct ptcp_err *e)
{
	loop_run_once(s->loop, wait);
	if (!s->over)
		return 1;
	if (s->why.code != 0 && e != NULL)
		*e = s->why;
	return s->why.code;
}

int ptcp_server_step(struct ptcp_server *s, struct ptcp_err *e)
{
	if (!s->ran || s->over)
		return err_set(e, PTCP_EUSAGE, "a server that is not at work");
	return turn(s, false, e);
}

int ptcp_server_run(struct ptcp_server *s, struct ptcp_err *e)
{
	int r;

	if ((r = ptcp_server_start(s, e)) < 0)
		return r;
	while ((r = turn(s, true, e)) > 0)
		;
	return r;
}

void ptcp_server_stop(struct ptcp_server *s)
{
	atomic_store(&s->stop, true);
	loop_wake(s->loop);
}

void ptcp_server_free(struct ptcp_server *s)
{
	if (s == NULL)
		return;
	ssh_server_free(s->once);
	job_set_fini(&s->errands);
	grants_fini(&s->sessions.grants);
	server_listen_end(s);
	timer_free(s->watch);
	pending_fini(&s->pending);
	context_fini(&s->host);
	loop_free(s->loop);
	server_forget_needs(s);
	relay_acl_free(s->nexthops);
	link_table_fini(&s->told);
	free(s->config_dir);
	free(s->storage_dir);
	free(s->root);
	free(s);
}

void ptcp_server_opts_init(struct ptcp_server_opts *o)
{
	*o = (struct ptcp_server_opts){
		.size = sizeof *o,
		.ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
		    1u << PTCP_CIPHER_CHACHA20,
		.max_streams = PTCP_STREAMS_MAX, .max_sessions = 64, .max_client_sessions = 16, .max_startups = 512,
		.timeout_s = 30, .max_relayed = 512,
		.log_level = PTCP_LOG_WARN, .in = 0, .out = 1
	};
}
