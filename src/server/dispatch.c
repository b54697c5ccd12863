/* Turns inbound connections of a server into sessions, streams, job connections and relayed connections. */
#include <time.h>

#include "core/err.h"
#include "server/job_conn.h"
#include "server/server_impl.h"

#define JOB_CONNS_MAX 256

bool server_admits(void *arg, const char *fingerprint, struct authorization *a)
{
	struct ptcp_server *s = arg;

	if (s->ssh == NULL)
		return authorized_find(s->host.config_dir, fingerprint, a, &s->host.log);
	*a = (struct authorization){ .name = "ssh" };
	return ssh_server_admits(s->ssh, fingerprint);
}

static bool has_room(struct ptcp_server *s, const char *fingerprint, struct ptcp_err *why)
{
	unsigned own;

	if (s->sessions.n >= s->o.max_sessions) {
		err_set(why, PTCP_EREFUSED, "too busy: the server has %u sessions, its limit (try again later)",
		    s->sessions.n);
		return false;
	}
	if ((own = server_session_count(&s->sessions, fingerprint)) >= s->o.max_client_sessions) {
		err_set(why, PTCP_EREFUSED, "too busy: this client has %u sessions, its limit (try again "
		    "when one has ended)", own);
		return false;
	}
	return true;
}

/* False: the connection has been refused. */
static bool admit_client(struct ptcp_server *s, struct inbound *g, const char *fingerprint, struct authorization *a)
{
	struct ptcp_err why;

	if (server_admits(s, fingerprint, a))
		return true;
	s->sessions.past.refused++;
	log_at(&s->host.log, LOG_WARN, "server", "event=refused from=%s client=%s why=\"not authorized\"",
	    g->address, fingerprint);
	err_set(&why, PTCP_EREFUSED, "this client: not authorized (have the server's administrator run: ptcp key authorize "
	    "%s)", fingerprint);
	g->end = ADMISSION_BAD;
	inbound_refuse(g, &why);
	return false;
}

/* Starts a session for the authorized client, or for the issuer of the grant. */
static void begin(struct ptcp_server *s, struct inbound *g, const struct authorization *a,
    const struct wire_grant *grant, const char *issuer)
{
	struct server_session_link l = { .address = g->address, .from = g->from, .one_channel = g->one_channel,
		.grant = grant, .issuer = issuer };
	struct ptcp_err why;

	if (!has_room(s, grant != NULL ? issuer : chan_fingerprint(g->chan), &why)) {
		s->sessions.past.refused++;
		inbound_refuse(g, &why);
		return;
	}
	l.control = inbound_take_chan(g);
	if (server_session_new(&s->sessions, &l, a, &why) < 0)
		log_at(&s->host.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, why.msg);
	else
		admission_session(s->pending.admission, g->from, true);
	inbound_free(g);
}

static void on_control(void *arg, struct inbound *g)
{
	struct authorization a;

	if (admit_client(arg, g, chan_fingerprint(g->chan), &a))
		begin(arg, g, &a, NULL, NULL);
}

static int check_grant(struct ptcp_server *s, struct inbound *g, const struct wire_grant *grant, struct ptcp_err *e)
{
	if (s->ssh != NULL)
		return err_set(e, PTCP_EREFUSED, "the grant: not accepted (this server was started for one session, through ssh)");
	return grants_take(&s->sessions.grants, grant, s->host.identity.fingerprint, chan_fingerprint(g->chan),
	    (uint64_t)time(NULL), e);
}

static void on_granted(void *arg, struct inbound *g, const struct wire_grant *grant)
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
		g->end = r < 0 ? ADMISSION_BAD : ADMISSION_LOST;
		inbound_refuse(g, &why);
		return;
	}
	log_at(&s->host.log, LOG_INFO, "server", "event=granted from=%s client=%s by=%s", g->address, issuer,
	    chan_fingerprint(g->chan));
	begin(s, g, &a, grant, issuer);
}

static void on_job(void *arg, struct inbound *g)
{
	struct ptcp_server *s = arg;
	struct authorization a;
	struct ptcp_err why;

	if (!admit_client(s, g, chan_fingerprint(g->chan), &a))
		return;
	if (s->ssh != NULL || s->jobs.n_conns >= JOB_CONNS_MAX ||
	    job_conns_of(&s->jobs, chan_fingerprint(g->chan)) >= 2 * s->o.max_client_sessions) {
		err_set(&why, PTCP_EREFUSED, s->ssh != NULL ? "jobs: not accepted (this server was started for one "
		    "session, through ssh)" : "too busy: too many connections for jobs (try again later)");
		inbound_refuse(g, &why);
		return;
	}
	if (job_conn_new(&s->jobs, inbound_take_chan(g), g->address, &a, &why) < 0)
		log_at(&s->host.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, why.msg);
	else
		admission_session(s->pending.admission, g->from, true);
	inbound_free(g);
}

static void on_join(void *arg, struct inbound *g, const struct wire_join *j)
{
	struct ptcp_server *s = arg;
	struct session *sess = server_session_find(&s->sessions, j->session);
	struct ptcp_err why;

	/* All invalid JOINs get the same answer, without a hint for strangers. */
	if (!session_knows(sess, g->chan, j)) {
		s->sessions.past.refused++;
		log_at(&s->host.log, LOG_WARN, "server", "event=join-refused from=%s client=%s", g->address,
		    chan_fingerprint(g->chan));
		err_set(&why, PTCP_EREFUSED, "no such session or stream");
		inbound_refuse(g, &why);
		return;
	}
	inbound_welcome(g, server_session_cipher(&s->sessions, j->session) == PTCP_CIPHER_NONE);
}

static void on_stream(void *arg, struct inbound *g, const struct wire_join *j)
{
	struct ptcp_server *s = arg;
	struct session *sess = server_session_find(&s->sessions, j->session);
	struct chan *c = inbound_take_chan(g);
	uint16_t number = j->stream; /* inbound_free() frees `j` */

	if (sess != NULL)
		session_add_stream(sess, number, c);
	else
		chan_free(c); /* the session has ended */
	inbound_free(g);
}

static void on_route(void *arg, struct inbound *g, const struct wire_route *f)
{
	struct ptcp_server *s = arg;
	struct authorization a;
	struct ptcp_err why;

	if (!admit_client(s, g, chan_fingerprint(g->chan), &a))
		return;
	if (!a.no_relay) {
		relay_request(&s->relay, g, f);
		return;
	}
	s->sessions.past.refused++;
	err_set(&why, PTCP_EREFUSED, "relaying: not permitted to this client (have the relay's administrator authorize it "
	    "without --no-relay)");
	inbound_refuse(g, &why);
}

const struct inbound_ops server_inbound_ops = {
	.control = on_control, .granted = on_granted, .job = on_job, .join = on_join, .stream = on_stream, .route = on_route,
	.relay_begin = relay_begin, .relay_forget = relay_forget, .gone = server_try_end
};
