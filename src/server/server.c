/* A server: start, listeners, stop. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/fd_budget.h"
#include "mover/movers.h"
#include "server/server_impl.h"

#define WATCH_NS (500 * NS_PER_MS) /* time between checks of the files of trust */

/* ---- Listeners ---- */

static void on_accepted(void *arg, int *fd, const char *address)
{
	struct ptcp_server *s = arg;
	unsigned i;

	s->sessions.past.connections++;
	pending_take(&s->pending, fd, address, false);
	for (i = 0; i < s->n_at && fd_budget_inbound_full(); i++)
		listener_rest(s->at[i].listener);
}

static int listen_on(struct ptcp_server *s, int passed, struct listener **out, struct ptcp_err *e)
{
	int fd = fcntl(passed, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(e, PTCP_ECONFIG, "listening: the passed socket");
	return listener_take(out, s->loop, &fd, on_accepted, s, e);
}

static void add_listener(struct ptcp_server *s, struct listener *l)
{
	struct server_listener *p = &s->at[s->n_at++];

	p->listener = l;
	snprintf(p->address, sizeof p->address, "%s", listener_address(l));
	p->port = listener_port(l);
}

int server_listen(struct ptcp_server *s, const char *where, struct ptcp_err *e)
{
	struct listener *l;
	int r;

	if ((r = listener_new(&l, s->loop, where, PTCP_PORT, on_accepted, s, e)) == 0)
		add_listener(s, l);
	return r;
}

static int listen_all(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct listener *l;
	size_t i;
	int r = 0;

	for (i = 0; i < o->n_sockets && r == 0; i++)
		if ((r = listen_on(s, o->sockets[i], &l, e)) == 0)
			add_listener(s, l);
	if (r == 0 && (o->listen != NULL || o->n_sockets + o->n_also_listen == 0))
		r = server_listen(s, o->listen, e);
	for (i = 0; i < o->n_also_listen && r == 0; i++)
		r = server_listen(s, o->also_listen[i], e);
	return r;
}

void server_unlisten(struct ptcp_server *s)
{
	while (s->n_at > 0)
		listener_free(s->at[--s->n_at].listener);
}

static void server_unshare(struct ptcp_server *s)
{
	port_share_free(s->share);
	s->share = NULL;
	s->pending.peeks = false;
}

/* ---- Stopping ---- */

void server_try_end(void *arg)
{
	struct ptcp_server *s = arg;

	if (s->stopping && s->sessions.n == 0 && s->pending.n == 0 && s->relay.n == 0 &&
	    job_set_idle(&s->jobs)) {
		s->over = true;
		loop_stop(s->loop);
	}
}

/* Revoking a client ends the running sessions of the client, too. */
static void on_watch(void *arg)
{
	struct ptcp_server *s = arg;

	const char *dir = s->context.config_dir;
	bool trusted = trust_changed(dir, "authorized_clients", &s->trusted);

	if (trust_changed(dir, "revoked", &s->revoked) || trusted) {
		server_session_reauthorize(&s->sessions, server_admits, s);
		relay_reauthorize(&s->relay, server_admits, s);
		job_set_reauthorize(&s->jobs, server_admits, s);
	}
	if (trust_changed(dir, "certificates", &s->certificates))
		context_renew_certificates(&s->context);
	if (s->memory != NULL) {
		memory_budget_check(s->memory, mono_now());
		spare_memory_check(&s->spare_memory, memory_budget_used(s->memory), s->context.io);
	}
	timer_set(s->watch, mono_add_ns(mono_now(), WATCH_NS));
}

static void on_session_gone(void *arg, struct peer_address *from)
{
	struct ptcp_server *s = arg;

	admission_session(s->pending.admission, from, false);
	/* a refused second one does not end the first */
	if (s->ssh != NULL && s->sessions.n_run > 0 && s->sessions.n == 0)
		ptcp_server_stop(s);
	server_try_end(s);
}

static void end_sessions(struct ptcp_server *s)
{
	struct ptcp_err why;

	err_set(&why, PTCP_EPEER, "transfer: interrupted, because the server was stopped (run the same "
	    "command again when the server is back)");
	pending_empty(&s->pending);
	server_session_cancel_all(&s->sessions, &why);
	relay_stop(&s->relay);
	job_set_cancel(&s->jobs, &why);
	server_try_end(s);
}

static void on_drained(void *arg)
{
	struct ptcp_server *s = arg;

	log_at(&s->context.log, LOG_INFO, "server", "event=drained sessions=%u effect=\"their clients continue when "
	    "the server is back\"", s->sessions.n);
	end_sessions(s);
}

/* False: there is nothing to wait for. */
static bool drain(struct ptcp_server *s)
{
	if (s->o.drain_s <= 0 || timer_new(&s->drain, s->loop, on_drained, s, NULL) < 0)
		return false;
	log_at(&s->context.log, LOG_INFO, "server", "event=draining sessions=%u relayed=%u seconds=%g",
	    s->sessions.n, s->relay.n, s->o.drain_s);
	timer_set(s->drain, mono_add_ns(mono_now(), (uint64_t)(s->o.drain_s * 1e9)));
	server_try_end(s);
	return true;
}

static void on_wake(void *arg)
{
	struct ptcp_server *s = arg;
	enum server_stop stop = (enum server_stop)atomic_load(&s->stop);

	if (stop == SERVER_RUNS || (s->stopping && (stop == SERVER_DRAINS || s->drain == NULL)))
		return;
	if (!s->stopping) {
		s->stopping = true;
		server_unlisten(s);
		server_unshare(s);
		if (stop == SERVER_DRAINS && drain(s))
			return;
	}
	timer_free(s->drain);
	s->drain = NULL;
	end_sessions(s);
}

/* ---- Starting ---- */

static const char *storage_dir(const struct ptcp_server_opts *o)
{
	const char *dir = o->relay_storage_dir != NULL ? o->relay_storage_dir : getenv("TMPDIR");

	return dir != NULL && dir[0] != '\0' ? dir : "/var/tmp";
}

/* After confinement, which may exclude the directory. */
static int start_storage(struct ptcp_server *s, struct ptcp_err *e)
{
	int r;

	if (s->storage_dir == NULL)
		return 0;
	if ((r = spool_check(s->storage_dir, e)) < 0)
		return err_while(e, r, "--relay-storage");
	relay_set_storage(&s->relay, s->o.relay_storage_bytes, s->storage_dir, s->context.io);
	return 0;
}

static int take_opts(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct tree *t;
	char shown[TEXT_NAME_BYTES];
	int r;

	if ((r = server_check_opts(&s->o, &s->next_hops, &s->rate, o, e)) < 0 ||
	    (r = context_check_fds(s->next_hops != NULL ? relay_min_fds(s->o.relay_storage_bytes > 0) : 0, e)) < 0)
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

/* An ephemeral server makes an identity of its own. Both kinds may connect to further hosts. Listening and
 * confinement come before the threads of the context, because threads inherit the restrictions of the starting
 * thread. */
static int start_context(struct ptcp_server *s, struct ptcp_err *e)
{
	struct identity *id = &s->context.identity;
	int r;

	context_log(&s->context, s->o.log, s->o.arg, s->o.log_level);
	if ((r = userdir_config(s->context.config_dir, s->config_dir, e)) < 0 ||
	    (r = s->o.ephemeral ? identity_new(id, e) : identity_load(id, s->context.config_dir, false, e)) < 0 ||
	    (!s->o.ephemeral && ((r = listen_all(s, &s->o, e)) < 0 ||
	    (r = own_dirs_open(&s->own_dirs, s->context.config_dir, e)) < 0)))
		return r;
	if (!s->o.ephemeral)
		server_share(s);
	if ((r = server_start_movers(s, e)) < 0 || (r = server_confine(s, e)) < 0)
		return r;
	if (!s->o.ephemeral && s->root != NULL && (r = own_dirs_check_root(&s->own_dirs, s->root,
	    &s->context.log, e)) < 0)
		return r;
	if ((r = context_init(&s->context, s->loop, s->config_dir, CONTEXT_WORKERS_MAX, s->o.ciphers, s->o.ciphers,
	    e)) < 0)
		return r;
	if ((r = pacing_set(&s->context.pacing, &s->rate, s->loop, e)) < 0)
		return r;
	return relay_acl_resolve(s->next_hops, s->loop, s->context.names, &s->context.log, e);
}

static int start_pending(struct ptcp_server *s, struct ptcp_err *e)
{
	struct pending_opts o = { .context = &s->context, .timeout_ns = (uint64_t)(s->o.timeout_s * 1e9),
		.waiting = s->o.max_startups,
		.sessions = s->o.max_sessions + (s->next_hops != NULL ? s->o.max_relayed : 0),
		.streams = s->o.max_streams, .memory = s->memory, .ops = &server_inbound_ops, .arg = s };

	if (admission_patience() > 1)
		log_at(&s->context.log, LOG_WARN, "server", "event=patience factor=%u why=\"" ADMISSION_PATIENCE
		    " extends the time that strangers have (unset the variable, which is for tests)\"",
		    admission_patience());
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
	atomic_init(&s->stop, SERVER_RUNS);
	link_table_init(&s->links);
	if ((r = take_opts(s, o, e)) < 0 || (r = loop_new(&s->loop, e)) < 0 ||
	    (!s->o.ephemeral && ((r = memory_budget_new(&s->memory, s->o.max_memory_bytes, e)) < 0 ||
	    (r = quota_table_new(&s->quotas, &s->context.log, e)) < 0)) ||
	    (r = start_context(s, e)) < 0 || (r = timer_new(&s->watch, s->loop, on_watch, s, e)) < 0 ||
	    (r = start_pending(s, e)) < 0)
		goto out;
	if ((r = server_session_set_init(&s->sessions, &s->context, s->root, &s->o, on_session_gone, s, e)) < 0)
		goto out;
	s->sessions.ephemeral = s->o.ephemeral;
	s->sessions.memory = s->memory;
	s->sessions.movers = s->movers;
	s->sessions.roots = (const char *const *)s->roots;
	s->sessions.own_dirs = &s->own_dirs;
	s->sessions.quotas = s->quotas;
	relay_init(&s->relay, &s->context, s->next_hops, s->o.max_relayed, (uint64_t)(s->o.timeout_s * 1e9),
	    server_try_end, s);
	s->relay.memory = s->sessions.grants.memory = s->memory;
	if ((r = start_storage(s, e)) < 0)
		goto out;
	job_set_init(&s->jobs, &s->context, s->root, &s->o, s->next_hops,
	    s->o.ephemeral ? ssh_server_job_gone : server_try_end, s);
	s->jobs.ephemeral = s->o.ephemeral;
	s->jobs.roots = s->sessions.roots;
	s->jobs.own_dirs = &s->own_dirs;
	s->jobs.quotas = s->quotas;
	s->jobs.links = &s->links;
	s->jobs.memory = s->memory;
	loop_on_wake(s->loop, on_wake, s);
	if (!s->o.ephemeral)
		on_watch(s);
	if (s->o.ephemeral && (r = ssh_server_start(s, e)) < 0)
		goto out;
	*out = s;
	return 0;
out:
	ptcp_server_free(s);
	return r;
}

const char *ptcp_server_address(const struct ptcp_server *s) { return s->at[0].address; }
unsigned ptcp_server_port(const struct ptcp_server *s) { return s->at[0].port; }

bool ptcp_server_listening(const struct ptcp_server *s, size_t i, const char **address, unsigned *port)
{
	if (i >= s->n_at)
		return false;
	*address = s->at[i].address;
	*port = s->at[i].port;
	return true;
}
const char *ptcp_server_fingerprint(const struct ptcp_server *s) { return s->context.identity.fingerprint; }

/* ---- Running ---- */

int ptcp_server_start(struct ptcp_server *s, struct ptcp_err *e)
{
	if (s->ran)
		return err_set(e, PTCP_EUSAGE, "the server: runs once per handle");
	s->ran = true;
	loop_wake(s->loop); /* a ptcp_server_stop() may have come before */
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
		return err_set(e, PTCP_EUSAGE, "the server: not running");
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

void ptcp_server_drain(struct ptcp_server *s)
{
	int runs = SERVER_RUNS;

	atomic_compare_exchange_strong(&s->stop, &runs, SERVER_DRAINS);
	loop_wake(s->loop);
}

void ptcp_server_stop(struct ptcp_server *s)
{
	atomic_store(&s->stop, SERVER_STOPS);
	loop_wake(s->loop);
}

void ptcp_server_free(struct ptcp_server *s)
{
	if (s == NULL)
		return;
	ssh_server_free(s->ssh);
	job_set_fini(&s->jobs);
	server_session_set_fini(&s->sessions);
	movers_free(s->movers);
	server_unlisten(s);
	server_unshare(s);
	timer_free(s->watch);
	timer_free(s->drain);
	relay_fini(&s->relay);
	pending_fini(&s->pending);
	relay_acl_free(s->next_hops);
	context_fini(&s->context);
	quota_table_free(s->quotas);
	memory_budget_free(s->memory);
	loop_free(s->loop);
	server_forget_needs(s);
	link_table_fini(&s->links);
	own_dirs_close(&s->own_dirs);
	free(s->config_dir);
	free(s->storage_dir);
	free(s->root);
	free(s);
}
