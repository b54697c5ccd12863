/* Movers of a server. The movers join the pool, a set, by the server's invitation. INVITE, over the connection to the
 * server, lets a mover join the set of a session as well, and accept the session's data connections. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "mover/movers_impl.h"
#include "net/identity.h"

/* ---- Inviting ---- */

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

static void invite(const struct movers *m, const struct mover *v)
{
	const struct movers_session *s = &m->session;
	struct wire_invite f = { .cipher = (uint8_t)s->cipher, .streams = (uint16_t)s->streams,
		.flags = (uint8_t)((s->verify ? WIRE_STREAM_VERIFY : 0) | (s->patient ? WIRE_STREAM_PATIENT : 0) |
		    (s->receives ? WIRE_STREAM_RECEIVE : 0)),
		.timeout_ms = (uint32_t)(s->timeout_ns / NS_PER_MS) + 1, .near = span_of(s->near),
		.congestion = span_of(m->congestion) };

	memcpy(f.run, m->invitation.run, sizeof f.run);
	memcpy(f.key, m->invitation.key, sizeof f.key);
	memcpy(f.session, s->id, sizeof f.session);
	identity_digest(f.peer, s->peer);
	if (tls_server_mover_key(f.join, s->key, v->fingerprint) == 0)
		OUTBOX_PUT(mover_link_out(v->link), invite, INVITE, &f);
	explicit_bzero(&f, sizeof f);
}

void pool_joined(struct mover *v)
{
	const struct movers *m;

	LIST_EACH(&v->set->sessions, m, struct movers, in_pool)
		invite(m, v);
}

struct movers *pool_find(struct movers *m, const struct wire_join *j)
{
	struct movers *s;

	if (memcmp(m->invitation.run, j->session, sizeof j->session) == 0)
		return m;
	LIST_EACH(&m->sessions, s, struct movers, in_pool)
		if (memcmp(s->invitation.run, j->session, sizeof j->session) == 0)
			return s;
	return NULL;
}

bool pool_vouches(const struct movers *pool, const char *fingerprint)
{
	const struct mover *v;

	LIST_EACH(&pool->movers, v, struct mover, in_list)
		if (v->joined && strcmp(v->fingerprint, fingerprint) == 0)
			return true;
	return false;
}

void pool_count(const struct mover *v, bool last)
{
	const struct movers *pool = v->set->pool;
	struct mover *p;

	LIST_EACH(&pool->movers, p, struct mover, in_list)
		if (strcmp(p->fingerprint, v->fingerprint) == 0)
			p->bytes += v->bytes - v->bytes_before;
	if (last)
		log_at(pool->o.log, LOG_INFO, "movers", "event=mover-end host=\"%s\" bytes=%llu", v->host,
		    (unsigned long long)v->bytes);
}

static unsigned streams_of(const struct movers *session, const char *fingerprint)
{
	const struct mover *v;
	unsigned n = 0;

	LIST_EACH(&session->movers, v, struct mover, in_list)
		if (strcmp(v->fingerprint, fingerprint) == 0)
			n += v->n_streams;
	return n;
}

unsigned pool_streams(const struct mover *v)
{
	const struct movers *m;
	unsigned n = 0;

	LIST_EACH(&v->set->sessions, m, struct movers, in_pool)
		n += streams_of(m, v->fingerprint);
	return n;
}

/* ---- Endpoints ---- */

/* The connection proves the identity; the frame's is ignored. */
int pool_on_endpoint(struct mover *v, const struct wire_endpoint *f, struct ptcp_err *e)
{
	const struct movers_session *s = &v->set->session;
	struct wire_endpoint named = *f;

	if (v->set->pool == NULL || v->listens || f->port == 0)
		return err_set(e, PTCP_EPROTO, "unexpected ENDPOINT frame of a mover");
	v->listens = true;
	named.id = v->id;
	identity_digest(named.peer, v->fingerprint);
	s->endpoint(s->arg, &named);
	return 0;
}

void pool_left(const struct mover *v)
{
	const struct movers_session *s = &v->set->session;
	struct wire_endpoint f = { .id = v->id };

	if (!v->listens)
		return;
	identity_digest(f.peer, v->fingerprint);
	s->endpoint(s->arg, &f);
}

/* ---- Sessions ---- */

static void no_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* Key and number of a session's set; the roots are the pool's. */
static int make_invitation(struct movers *m, const struct movers *pool, struct ptcp_err *e)
{
	struct invitation *v = &m->invitation;
	unsigned i;
	int r;

	for (i = 0; i < pool->invitation.n_roots; i++, v->n_roots++)
		if ((v->root[i] = strdup(pool->invitation.root[i])) == NULL)
			return err_nomem(e);
	if ((r = tls_random(v->run, sizeof v->run, e)) < 0)
		return r;
	return tls_random(v->key, sizeof v->key, e);
}

static void copy_session(struct movers *m, const struct movers_session *s)
{
	m->session = *s;
	m->session.id = memcpy(m->session_id, s->id, sizeof m->session_id);
	m->session.key = memcpy(m->session_key, s->key, sizeof m->session_key);
	strcpy(m->session_peer, s->peer);
	strncpy(m->session_near, s->near, sizeof m->session_near - 1);
	m->session.peer = m->session_peer;
	m->session.near = m->session_near;
}

int movers_open(struct movers **out, struct movers *pool, const struct movers_session *s, struct ptcp_err *e)
{
	const struct movers_opts o = { .control = pool->o.control, .log = pool->o.log, .writes = s->receives,
		.wait_ns = s->wait_ns, .notify = no_notice };
	struct movers *m = movers_bare(&o);
	const struct mover *v;
	int r;

	if (m == NULL)
		return err_nomem(e);
	copy_session(m, s);
	m->pool = pool;
	list_append(&pool->sessions, &m->in_pool);
	pool->n_sessions++;
	if ((r = make_invitation(m, pool, e)) < 0 || (r = movers_meter(m, e)) < 0) {
		movers_free(m);
		return r;
	}
	LIST_EACH(&pool->movers, v, struct mover, in_list)
		if (v->joined)
			invite(m, v);
	*out = m;
	return 0;
}

bool movers_cover(struct movers *pool, const char *dir)
{
	uint16_t root;

	return remote_below_root(pool, remote_absolute(pool, dir), &root) != NULL;
}
