/* Turns inbound connections of a server into sessions, streams, job connections and relayed connections. */
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "fs/fd_budget.h"
#include "server/job_conn.h"
#include "server/server_impl.h"

#define JOB_CONNS_MAX 256
#define SHARED_MAX 1024 /* ephemeral servers that share the port */

/* As authorized_find(). */
static int authorization_of(const struct ptcp_server *s, const struct trust_peer *peer, struct authorization *a,
    struct ptcp_err *why)
{
	why->code = 0;
	if (s->ssh == NULL)
		return authorized_find(s->context.config_dir, peer, a, why, &s->context.log);
	*a = (struct authorization){ .name = "ssh" };
	return ssh_server_admits(s->ssh, peer->fingerprint);
}

/* A certificate that has expired since then ends nothing that runs. */
bool server_admits(void *arg, const char *fingerprint, const struct trust_proof *proof, struct authorization *now)
{
	struct trust_peer peer = { fingerprint, proof->certificate, proof->n, proof->at_s };
	struct authorization a;
	struct ptcp_err why;

	if (authorization_of(arg, &peer, &a, &why) <= 0)
		return false;
	*now = a;
	return true;
}

/* Counts a refusal; returns `code`. */
static int refused(struct ptcp_server *s, int code)
{
	s->sessions.past.refused++;
	return code;
}

static int admit_client(struct ptcp_server *s, struct inbound *g, const struct trust_peer *peer,
    struct authorization *a, struct ptcp_err *e)
{
	const char *fingerprint = peer->fingerprint;
	struct ptcp_err why;
	int found = authorization_of(s, peer, a, &why);

	if (found > 0)
		return 0;
	if (found == 0 && why.code != 0) {
		inbound_log(g, LOG_WARN, "refused", "client=%s why=\"%s\"", fingerprint, why.msg);
		g->end = ADMISSION_BAD;
		return err_set(e, refused(s, PTCP_EREFUSED), "this client: %s", why.msg);
	}
	if (found < 0)
		return err_set(e, refused(s, PTCP_EREFUSED), "this client: the server cannot read its list of "
		    "authorized clients (its administrator finds the reason in the log)");
	inbound_log(g, LOG_WARN, "refused", "client=%s why=\"not authorized (to permit it: ptcp key authorize %s)\"",
	    fingerprint, fingerprint);
	g->end = ADMISSION_BAD;
	return err_set(e, refused(s, PTCP_EREFUSED), "this client: not authorized (have the server's administrator "
	    "run: ptcp key authorize %s)", fingerprint);
}

/* The client at the other end of the connection. */
static struct trust_peer peer_of(const struct inbound *g, struct certificates *c)
{
	chan_certificates(g->chan, c);
	return (struct trust_peer){ chan_fingerprint(g->chan), c->bytes, c->n, (uint64_t)time(NULL) };
}

static int admit_peer(struct ptcp_server *s, struct inbound *g, struct authorization *a, struct ptcp_err *e)
{
	struct certificates c;
	struct trust_peer peer = peer_of(g, &c);

	return admit_client(s, g, &peer, a, e);
}

/* Starts a session for the authorized client, or for the issuer of the grant. */
static int begin(struct ptcp_server *s, struct inbound *g, const struct authorization *a,
    const struct wire_grant *grant, const char *issuer, struct ptcp_err *e)
{
	struct server_session_link l = { .address = g->address, .from = g->from, .one_channel = g->one_channel,
		.grant = grant, .issuer = issuer };
	int r;

	if ((r = server_session_check_room(&s->sessions, grant != NULL ? issuer : chan_fingerprint(g->chan), e)) < 0)
		return refused(s, r);
	l.control = inbound_take_chan(g);
	if (server_session_new(&s->sessions, &l, a, e) < 0)
		log_at(&s->context.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, e->msg);
	else
		admission_session(s->pending.admission, g->from, true);
	return 0;
}

static int on_control(void *arg, struct inbound *g, struct ptcp_err *e)
{
	struct authorization a;
	int r = admit_peer(arg, g, &a, e);

	return r < 0 ? r : begin(arg, g, &a, NULL, NULL, e);
}

static int check_grant(struct ptcp_server *s, struct inbound *g, const struct wire_grant *grant, struct ptcp_err *e)
{
	if (s->ssh != NULL)
		return err_set(e, PTCP_EREFUSED,
		    "the grant: not accepted (this server was started for one session, through ssh)");
	return grants_take(&s->sessions.grants, grant, s->context.identity.fingerprint, chan_fingerprint(g->chan),
	    (uint64_t)time(NULL), e);
}

static int refuse_grant(struct inbound *g, const char *issuer, const struct ptcp_err *why)
{
	inbound_log(g, LOG_WARN, "grant-refused", "client=%s by=%s why=\"%s\"", issuer,
	    chan_fingerprint(g->chan), why->msg);
	return why->code;
}

/* The signature, then what the issuer may do here. */
static int admit_issuer(struct ptcp_server *s, struct inbound *g, const struct wire_grant *grant,
    char issuer[PTCP_FINGERPRINT_BYTES], struct authorization *a, struct ptcp_err *e)
{
	struct trust_peer peer = { issuer, grant->certificates.p, grant->certificates.n, (uint64_t)time(NULL) };

	issuer[0] = '\0';
	if (grant_issuer(issuer, grant, e) == 0)
		return admit_client(s, g, &peer, a, e);
	g->end = ADMISSION_BAD;
	return refuse_grant(g, issuer, e);
}

static int on_granted(void *arg, struct inbound *g, const struct wire_grant *grant, struct ptcp_err *e)
{
	struct ptcp_server *s = arg;
	char issuer[PTCP_FINGERPRINT_BYTES];
	struct authorization a;
	int r = admit_issuer(s, g, grant, issuer, &a, e);

	if (r < 0)
		return r;
	if (check_grant(s, g, grant, e) < 0)
		return refuse_grant(g, issuer, e);
	log_at(&s->context.log, LOG_INFO, "server", "event=granted from=%s client=%s by=%s", g->address, issuer,
	    chan_fingerprint(g->chan));
	return begin(s, g, &a, grant, issuer, e);
}

/* Connections that clients keep for their next request make room for others. */
static bool has_job_room(struct ptcp_server *s, const char *fingerprint, unsigned max)
{
	return s->jobs.n_conns < 2 * JOB_CONNS_MAX && (job_conns_of(&s->jobs, fingerprint) < max ||
	    job_conns_close_idle(&s->jobs, fingerprint));
}

static int on_job(void *arg, struct inbound *g, struct ptcp_err *e)
{
	struct ptcp_server *s = arg;
	struct authorization a;
	int r;

	if ((r = admit_peer(s, g, &a, e)) < 0)
		return r;
	if (!has_job_room(s, NULL, JOB_CONNS_MAX) ||
	    !has_job_room(s, chan_fingerprint(g->chan), 2 * s->o.max_client_sessions))
		return err_set(e, refused(s, PTCP_EBUSY), "too busy: too many connections for jobs (try again later)");
	if (job_conn_new(&s->jobs, inbound_take_chan(g), g->address, &a, e) < 0)
		log_at(&s->context.log, LOG_ERROR, "server", "event=failed from=%s why=\"%s\"", g->address, e->msg);
	else
		admission_session(s->pending.admission, g->from, true);
	return 0;
}

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e)
{
	struct ptcp_server *s = arg;
	struct session *sess = server_session_find(&s->sessions, j->session);
	struct authorization a;
	struct certificates c;
	struct ptcp_err why;
	enum session_join join;

	/* All invalid JOINs get the same answer, without a hint for strangers. */
	if ((join = session_join(sess, g->chan, j)) != SESSION_JOIN_VALID) {
		struct trust_peer peer = peer_of(g, &c);
		bool known = authorization_of(s, &peer, &a, &why) > 0;

		if (known && (sess == NULL || join == SESSION_JOIN_LATE)) { /* the session ended meanwhile */
			inbound_log(g, LOG_INFO, "join-late", "client=%s", chan_fingerprint(g->chan));
			return err_set(e, PTCP_EREFUSED, "no such session or stream");
		}
		if (!known)
			g->end = ADMISSION_BAD;
		inbound_log(g, LOG_WARN, "join-refused", "client=%s", chan_fingerprint(g->chan));
		return err_set(e, refused(s, PTCP_EREFUSED), "no such session or stream");
	}
	*plaintext = server_session_cipher(&s->sessions, j->session) == PTCP_CIPHER_NONE;
	return 0;
}

static void on_stream(void *arg, struct chan *c, const struct wire_join *j)
{
	struct ptcp_server *s = arg;
	struct session *sess = server_session_find(&s->sessions, j->session);

	if (sess != NULL)
		session_add_stream(sess, j->stream, c);
	else
		chan_free(c); /* the session has ended */
}

/* A mover is relayed as the client that vouches for it, and only where the grant says. */
static int admit_mover(struct ptcp_server *s, struct inbound *g, const struct wire_route *f,
    const struct wire_grant *grant, char client[PTCP_FINGERPRINT_BYTES], struct authorization *a, struct ptcp_err *e)
{
	char host[SOCK_HOST_BYTES], hop[GRANT_HOP_BYTES];
	int r = admit_issuer(s, g, grant, client, a, e);

	if (r < 0)
		return r;
	grant_hop(hop, span_copy(host, f->host), f->port);
	r = grant_relays(grant, s->context.identity.fingerprint, chan_fingerprint(g->chan), hop,
	    (uint64_t)time(NULL), e);
	return r < 0 ? refuse_grant(g, client, e) : 0;
}

static int on_route(void *arg, struct inbound *g, const struct wire_route *f, const struct wire_grant *grant,
    struct ptcp_err *e)
{
	char client[PTCP_FINGERPRINT_BYTES];
	struct ptcp_server *s = arg;
	struct authorization a;
	int r;

	strcpy(client, chan_fingerprint(g->chan));
	if ((r = grant != NULL ? admit_mover(s, g, f, grant, client, &a, e) : admit_peer(s, g, &a, e)) < 0)
		return r;
	if (a.no_relay)
		return err_set(e, refused(s, PTCP_EREFUSED), "relaying: not permitted to this client (have the relay's "
		    "administrator authorize it without --no-relay)");
	return relay_request(&s->relay, g, f, client, &a.proof, e);
}

/* ---- A shared port ---- */

static enum inbound_lend on_lend(void *arg, const char *label, int fd)
{
	struct ptcp_server *s = arg;

	return port_share_lend(s->share, label, fd);
}

/* Without labels, connections are not examined. */
static void on_labels(void *arg, unsigned labels)
{
	struct ptcp_server *s = arg;

	s->pending.peeks = labels > 0;
	if (labels == 0)
		pending_lend_again(&s->pending);
}

static void on_lend_again(void *arg)
{
	struct ptcp_server *s = arg;

	pending_lend_again(&s->pending);
}

/* A server that cannot lend its port still serves its own clients. */
void server_share(struct ptcp_server *s)
{
	struct port_share_opts o = { .loop = s->loop, .log = &s->context.log, .path = s->o.share_socket,
		.port = ptcp_server_port(s), .max_user = s->o.share_sessions,
		.max = fd_budget_unauthenticated(SHARED_MAX), .changed = on_labels, .again = on_lend_again, .arg = s };
	struct ptcp_err why;

	if (s->o.share_socket != NULL && port_share_new(&s->share, &o, &why) < 0)
		log_at(&s->context.log, LOG_WARN, "server", "event=not-sharing why=\"%s (make the folder writable for "
		    "the server's user and stop other servers that share, or leave out share-port)\"", why.msg);
}

const struct inbound_ops server_inbound_ops = {
	.control = on_control, .granted = on_granted, .job = on_job, .join = on_join, .stream = on_stream,
	.route = on_route,
	.relay_begin = relay_begin, .relay_forget = relay_forget, .gone = server_try_end, .lend = on_lend
};
