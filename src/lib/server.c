/* A daemon: one port, many guests, some of them clients with sessions. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "lib/caller.h"
#include "lib/server_impl.h"

#define WATCH_NS (500 * NS_PER_MS)   /* authorized_clients is looked at */
#define CALLERS_MAX 256

static void try_end(struct ptcp_server *s)
{
	if (s->stopping && s->sessions.n == 0 && s->lobby.n == 0 && s->relay.n == 0 &&
	    errand_set_idle(&s->errands)) {
		s->over = true;
		loop_stop(s->loop);
	}
}

/* ---- Guests become sessions or streams ---- */

static void on_guest_gone(void *arg)
{
	try_end(arg);
}

static bool admits(void *arg, const char *fingerprint, struct authorization *a)
{
	struct ptcp_server *s = arg;

	if (s->once == NULL)
		return authorized_find(s->host.config_dir, fingerprint, a, &s->host.log);
	*a = (struct authorization){ .name = "ssh" };
	return one_time_admits(s->once, fingerprint);
}

static bool has_room(struct ptcp_server *s, const char *fingerprint, struct ptcp_err *why)
{
	unsigned own;

	if (s->sessions.n >= s->o.max_sessions) {
		err_set(why, PTCP_EREFUSED, "too busy: the server has %u sessions, its limit (try again later)",
		    s->sessions.n);
		return false;
	}
	if ((own = served_count(&s->sessions, fingerprint)) >= s->o.max_client_sessions) {
		err_set(why, PTCP_EREFUSED, "too busy: this client has %u sessions there, its limit (try again "
		    "when one has ended)", own);
		return false;
	}
	return true;
}

/* Who is revoked loses what is running, too. */
static void on_watch(void *arg)
{
	struct ptcp_server *s = arg;

	if (authorized_changed(s->host.config_dir, &s->trusted)) {
		served_judge_again(&s->sessions, admits, s);
		relay_judge_again(&s->relay, admits, s);
		errand_judge_again(&s->errands, admits, s);
	}
	timer_set(s->watch, mono_add_ns(mono_now(), WATCH_NS));
}

/* Else the guest has been refused. */
static bool admit_client(struct ptcp_server *s, struct guest *g, const char *fingerprint, struct authorization *a)
{
	struct ptcp_err why;

	if (admits(s, fingerprint, a))
		return true;
	s->sessions.past.refused++;
	log_at(&s->host.log, LOG_WARN, "server", "event=refused from=%s client=%s why=\"not authorized\"",
	    g->address, fingerprint);
	err_set(&why, PTCP_EREFUSED, "this client: not authorized there (have the administrator run: "
	    "ptcp key authorize %s)", fingerprint);
	g->end = DOOR_BAD;
	guest_refuse(g, &why);
	return false;
}

/* It becomes a session of who is authorised so; by virtue of a grant, with one. */
static void begin(struct ptcp_server *s, struct guest *g, const struct authorization *a,
    const struct wire_grant *grant, const char *issuer)
{
	struct served_link l = { .address = g->address, .from = g->o.from, .one_channel = g->o.one_channel,
		.grant = grant, .issuer = issuer };
	struct ptcp_err why;

	if (!has_room(s, grant != NULL ? issuer : chan_fingerprint(g->chan), &why)) {
		s->sessions.past.refused++;
		guest_refuse(g, &why);
		return;
	}
	l.control = guest_take_chan(g);
	if (served_new(&s->sessions, &l, a, &why) < 0)
		log_at(&s->host.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, why.msg);
	else
		door_session(s->lobby.door, g->o.from, true);
	guest_free(g);
}

static void on_control(void *arg, struct guest *g)
{
	struct authorization a;

	if (admit_client(arg, g, chan_fingerprint(g->chan), &a))
		begin(arg, g, &a, NULL, NULL);
}

static int check_grant(struct ptcp_server *s, struct guest *g, const struct wire_grant *grant, struct ptcp_err *e)
{
	if (s->once != NULL)
		return err_set(e, PTCP_EREFUSED, "no grant is taken here (this server was started for one client, through ssh)");
	return grants_take(&s->sessions.grants, grant, s->host.identity.fingerprint, chan_fingerprint(g->chan),
	    (uint64_t)time(NULL), e);
}

static void on_granted(void *arg, struct guest *g, const struct wire_grant *grant)
{
	struct ptcp_server *s = arg;
	char issuer[PTCP_FINGERPRINT_BYTES] = "";
	struct authorization a;
	struct ptcp_err why;
	int r = grant_issuer(issuer, grant, &why);

	if (r == 0 && !admit_client(s, g, issuer, &a))
		return;
	if (r < 0 || check_grant(s, g, grant, &why) < 0) {
		log_at(&s->host.log, LOG_WARN, "server", "event=grant-refused from=%s client=%s by=%s why=\"%s\"", g->address,
		    issuer, chan_fingerprint(g->chan), why.msg);
		g->end = r < 0 ? DOOR_BAD : DOOR_LOST;
		guest_refuse(g, &why);
		return;
	}
	log_at(&s->host.log, LOG_INFO, "server", "event=granted from=%s client=%s by=%s", g->address, issuer,
	    chan_fingerprint(g->chan));
	begin(s, g, &a, grant, issuer);
}

static void on_errand(void *arg, struct guest *g)
{
	struct ptcp_server *s = arg;
	struct authorization a;
	struct ptcp_err why;

	if (!admit_client(s, g, chan_fingerprint(g->chan), &a))
		return;
	if (s->once != NULL || s->errands.n_callers >= CALLERS_MAX ||
	    callers_of(&s->errands, chan_fingerprint(g->chan)) >= 2 * s->o.max_client_sessions) {
		err_set(&why, PTCP_EREFUSED, s->once != NULL ? "no errands are done here (this server was started for one "
		    "session, through ssh)" : "too busy: too many connections about errands (try again later)");
		guest_refuse(g, &why);
		return;
	}
	if (caller_new(&s->errands, guest_take_chan(g), g->address, &a, &why) < 0)
		log_at(&s->host.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, why.msg);
	else
		door_session(s->lobby.door, g->o.from, true);
	guest_free(g);
}

static void on_join(void *arg, struct guest *g, const struct wire_join *j)
{
	struct ptcp_server *s = arg;
	struct party *p = served_find(&s->sessions, j->session);
	struct ptcp_err why;

	/* One answer for all that can be wrong: a stranger learns nothing. */
	if (!party_knows(p, g->chan, j)) {
		s->sessions.past.refused++;
		log_at(&s->host.log, LOG_WARN, "server", "event=join-refused from=%s client=%s", g->address,
		    chan_fingerprint(g->chan));
		err_set(&why, PTCP_EREFUSED, "no such session or stream");
		guest_refuse(g, &why);
		return;
	}
	guest_welcome(g, served_cipher(&s->sessions, j->session) == PTCP_CIPHER_NONE);
}

static void on_stream(void *arg, struct guest *g, const struct wire_join *j)
{
	struct ptcp_server *s = arg;
	struct party *p = served_find(&s->sessions, j->session);
	struct chan *c = guest_take_chan(g);
	uint16_t number = j->stream; /* j is the guest's */

	if (p != NULL)
		party_add_stream(p, number, c);
	else
		chan_free(c); /* it ended in between */
	guest_free(g); /* and with it `j` */
}

static void on_route(void *arg, struct guest *g, const struct wire_route *f)
{
	struct ptcp_server *s = arg;
	struct authorization a;
	struct ptcp_err why;

	if (!admit_client(s, g, chan_fingerprint(g->chan), &a))
		return;
	if (!a.no_relay) {
		relay_ask(&s->relay, g, f);
		return;
	}
	s->sessions.past.refused++;
	err_set(&why, PTCP_EREFUSED, "this client: may not be relayed (have its administrator authorize it without "
	    "--no-relay)");
	guest_refuse(g, &why);
}

static const struct guest_ops guest_ops = {
	on_control, on_granted, on_errand, on_join, on_stream, on_route, on_guest_gone
};

static void on_session_gone(void *arg, struct source *from)
{
	struct ptcp_server *s = arg;

	door_session(s->lobby.door, from, false);
	if (s->once != NULL && s->sessions.n_run > 0)
		ptcp_server_stop(s); /* that was it */
	try_end(s);
}

static void on_errand_gone(void *arg)
{
	try_end(arg);
}

/* ---- Start and stop ---- */

static void on_wake(void *arg)
{
	struct ptcp_server *s = arg;
	struct ptcp_err why;

	if (!atomic_load(&s->stop) || s->stopping)
		return;
	s->stopping = true;
	server_listen_end(s);
	err_set(&why, PTCP_EPEER, "transfer cut off: the server was stopped (run it again when it is back)");
	lobby_empty(&s->lobby);
	served_cancel_all(&s->sessions, &why);
	relay_stop(&s->relay);
	errand_set_cancel(&s->errands, &why);
	try_end(s);
}

static bool in_range(unsigned n, unsigned most)
{
	return n > 0 && n <= most;
}

int server_check(const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	if (!in_range(o->max_streams, PTCP_STREAMS_MAX) || !in_range(o->max_sessions, PTCP_SESSIONS_MAX) ||
	    !in_range(o->max_client_sessions, PTCP_SESSIONS_MAX) ||
	    !in_range(o->max_startups, PTCP_STARTUPS_MAX) || o->max_relayed == 0 ||
	    !(o->timeout_s >= 0.1 && o->timeout_s <= 86400))
		return err_set(e, PTCP_EUSAGE, "limits of streams, sessions, startups, relaying or timeout out of range");
	if (o->relay_storage_bytes > 0 && o->relay_storage_bytes < 2 * SPOOL_GRAIN)
		return err_set(e, PTCP_EUSAGE, "--relay-storage: less than 2 MiB holds nothing");
	if ((o->listen != NULL) + o->n_also_listen + o->n_sockets > PTCP_LISTEN_MAX)
		return err_set(e, PTCP_EUSAGE, "listening: at more than %d places (leave some out)",
		    PTCP_LISTEN_MAX);
	return 0;
}

static void on_relayed_gone(void *arg)
{
	try_end(arg);
}

int server_nexthops(struct nexthops **out, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct nexthops *list = NULL;
	size_t i;
	int r = 0;

	for (i = 0; i < o->n_relay_to && r == 0; i++)
		r = nexthops_add(&list, o->relay_to[i], PTCP_PORT, e);
	if (r < 0)
		nexthops_free(list);
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
	holding_init(&s->relay.holding, s->o.relay_storage_bytes, s->storage_dir, s->host.io);
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

	host_log(&s->host, s->o.log, s->o.arg, s->o.log_level);
	if ((r = userdir_config(s->host.config_dir, s->config_dir, e)) < 0 ||
	    (r = s->o.one_time ? identity_new(id, e) : identity_load(id, s->host.config_dir, false, e)) < 0 ||
	    (!s->o.one_time && (r = server_listen_all(s, &s->o, e)) < 0) || (r = server_confine(s, e)) < 0)
		return r;
	if ((r = host_init(&s->host, s->loop, s->config_dir, HOST_WORKERS_MAX, s->o.ciphers, s->o.ciphers,
	    e)) < 0)
		return r;
	return pacing_start(&s->host.pacing, &s->rate, s->loop, e);
}

static int start_lobby(struct ptcp_server *s, struct ptcp_err *e)
{
	struct lobby_opts o = { .host = &s->host, .timeout_ns = (uint64_t)(s->o.timeout_s * 1e9),
		.waiting = s->o.max_startups, .sessions = s->o.max_sessions, .streams = s->o.max_streams,
		.ops = &guest_ops, .arg = s };

	return lobby_init(&s->lobby, &o, e);
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
	learnt_init(&s->learnt);
	if ((r = take_opts(s, o, e)) < 0 || (r = loop_new(&s->loop, e)) < 0 || (r = start_host(s, e)) < 0 ||
	    (r = timer_new(&s->watch, s->loop, on_watch, s, e)) < 0 || (r = start_lobby(s, e)) < 0)
		goto out;
	served_set_init(&s->sessions, &s->host, s->root, &s->o, on_session_gone, s);
	s->sessions.one_time = s->o.one_time;
	s->sessions.roots = (const char *const *)s->roots;
	relay_init(&s->relay, &s->host, s->nexthops, s->o.max_relayed, (uint64_t)(s->o.timeout_s * 1e9),
	    on_relayed_gone, s);
	if ((r = start_holding(s, e)) < 0)
		goto out;
	errand_set_init(&s->errands, &s->host, s->root, &s->o, s->nexthops, on_errand_gone, s);
	s->errands.roots = s->sessions.roots;
	s->errands.learnt = &s->learnt;
	loop_on_wake(s->loop, on_wake, s);
	if (!s->o.one_time)
		on_watch(s);
	if (s->o.one_time && (r = one_time_start(s, e)) < 0)
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
	loop_turn(s->loop, wait);
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
	one_time_free(s->once);
	errand_set_fini(&s->errands);
	grants_fini(&s->sessions.grants);
	server_listen_end(s);
	timer_free(s->watch);
	lobby_fini(&s->lobby);
	host_fini(&s->host);
	loop_free(s->loop);
	server_forget_needs(s);
	nexthops_free(s->nexthops);
	learnt_fini(&s->learnt);
	free(s->config_dir);
	free(s->storage_dir);
	free(s->root);
	free(s);
}
