#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "net/reach.h"
#include "session/session_impl.h"

#define CHECK_NS NS_PER_S
#define WAIT_NS (3 * NS_PER_S) /* patience with a server without movers: a new session is carried by its host */

void striping_init(struct session *sess, const struct session_opts *o) { sess->striping.movers = o->movers; }

/* A mover has joined or left. */
static void on_changed(void *arg)
{
	struct session *sess = arg;
	unsigned i;

	if (sess->end.over)
		return;
	for (i = 0; i < sess->streams.n_granted; i++)
		if (sess->slot[i].stream == NULL) /* another mover takes it at once */
			slot_retry_at(&sess->slot[i], (struct mono){ 0 });
	if (sess->streams.n_connected == 0 && (sess->striping.movers == NULL ||
	    movers_count(sess->striping.movers) > 0))
		streams_await(sess, mono_now());
	session_pump(sess);
}

/* ---- Movers of the acceptor ---- */

static void on_endpoint(void *arg, const struct wire_endpoint *f)
{
	struct session *sess = arg;

	engine_report_endpoint(sess->engine, f);
	session_pump(sess);
}

static void on_accepted(void *arg, unsigned number, struct remote_stream *r) { streams_add_remote(arg, number, r); }

static int open_set(struct session *sess, struct ptcp_err *e)
{
	char near[SOCK_HOST_BYTES] = "127.0.0.1";
	const struct movers_session s = { .id = sess->id, .key = sess->key, .peer = sess->peer.fingerprint,
		.near = near,
		.cipher = sess->cipher, .verify = (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0,
		.receives = engine_rcv(sess->engine) != NULL,
		.patient = engine_spooled(sess->engine) || engine_linger_ns(sess->engine) > 0,
		.streams = sess->streams.n_granted,
		.timeout_ns = sess->o.timeout_ns, .wait_ns = WAIT_NS, .endpoint = on_endpoint, .accepted = on_accepted,
		.arg = sess };
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;

	if (getsockname(session_control_fd(sess), (struct sockaddr *)&sa, &n) == 0)
		getnameinfo((struct sockaddr *)&sa, n, near, sizeof near, NULL, 0, NI_NUMERICHOST);
	return movers_open(&sess->striping.movers, sess->striping.pool, &s, e);
}

int striping_open(struct session *sess, bool movers, struct ptcp_err *e)
{
	if (!movers)
		sess->striping.pool = NULL;
	else if (sess->o.open == NULL)
		return open_set(sess, e);
	else if ((sess->striping.endpoints = calloc(1, sizeof *sess->striping.endpoints)) == NULL)
		return err_nomem(e);
	if (sess->striping.endpoints != NULL)
		peer_drop_spare(sess);
	return 0;
}

void striping_free(struct session *sess)
{
	if (sess->striping.pool != NULL)
		movers_free(sess->striping.movers);
	free(sess->striping.endpoints);
}

void session_use_movers(struct session *sess, struct movers *pool) { sess->striping.pool = pool; }

bool session_is_striped(const struct session *sess)
{
	return sess->striping.movers != NULL || sess->striping.endpoints != NULL;
}

static bool has_relays(const struct session *sess)
{
	unsigned i;

	for (i = 0; sess->o.paths != NULL && i < sess->o.paths->n; i++)
		if (sess->o.paths->at[i].n_relays > 0)
			return true;
	return false;
}

/* Behind a relay only the address that the user has given, if any, is known. */
static void acceptor_address(const struct session *sess, struct sockaddr_storage *out)
{
	const struct paths *p = sess->o.paths;
	socklen_t n = sizeof *out;

	*out = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	if (p == NULL || p->at[sess->control.replay.path].n_relays == 0)
		getpeername(session_control_fd(sess), (struct sockaddr *)out, &n);
	else if (!reach_numeric(out, sess->peer.address))
		out->ss_family = AF_UNSPEC;
}

void striping_on_endpoint(struct session *sess, const struct wire_endpoint *f)
{
	struct sockaddr_storage sa;
	char host[WIRE_HOST_MAX + 1], text[WIRE_HOST_MAX + 200];
	const char *why;

	if (sess->striping.endpoints == NULL || sess->end.over)
		return;
	acceptor_address(sess, &sa);
	if ((why = endpoints_take(sess->striping.endpoints, f, (struct sockaddr *)&sa, has_relays(sess))) != NULL) {
		snprintf(text, sizeof text, "the server names a mover at %s, which is ignored: %s",
		    span_copy(host, f->host), why);
		sess->o.ops->warning(sess->o.arg, NULL, text);
	}
	on_changed(sess);
}

/* ---- All ---- */

bool striping_sets_streams(const struct session *sess) { return session_is_striped(sess) && !sess->o.fixed_streams; }

bool striping_is_paced(const struct session *sess)
{
	return sess->striping.movers != NULL && sess->o.context->pacing.bps > 0;
}

void striping_start(struct session *sess)
{
	if (sess->striping.movers == NULL)
		return;
	movers_watch(sess->striping.movers, on_changed, sess);
	on_changed(sess);
}

void striping_stop(struct session *sess)
{
	if (sess->striping.movers != NULL && sess->running)
		movers_watch(sess->striping.movers, NULL, NULL);
}

/* A stream that another endpoint is to carry connects at once. */
static void deal_endpoints(struct session *sess, const uint8_t *path, struct mono now)
{
	uint32_t to[PTCP_STREAMS_MAX];
	unsigned i;

	for (i = 0; i < sess->streams.n_active; i++)
		to[i] = sess->slot[i].endpoint;
	if (!endpoints_deal(sess->striping.endpoints, to, sess->streams.n_active, path, now))
		return;
	for (i = 0; i < sess->streams.n_active; i++) {
		if (sess->slot[i].endpoint != to[i])
			slot_retry_at(&sess->slot[i], now);
		sess->slot[i].endpoint = to[i];
	}
}

static void deal_movers(struct session *sess, const uint8_t *path)
{
	uint32_t by[PTCP_STREAMS_MAX];
	unsigned i;

	for (i = 0; i < sess->streams.n_active; i++)
		by[i] = sess->slot[i].mover;
	movers_deal(sess->striping.movers, by, sess->streams.n_active, path);
	for (i = 0; i < sess->streams.n_active; i++)
		sess->slot[i].mover = by[i];
}

void striping_pump(struct session *sess, struct mono now)
{
	uint8_t path[PTCP_STREAMS_MAX];
	struct ptcp_err why;
	unsigned i;

	for (i = 0; session_is_striped(sess) && i < sess->streams.n_active; i++)
		path[i] = (uint8_t)session_path_of(sess, i);
	if (sess->striping.endpoints != NULL)
		deal_endpoints(sess, path, now);
	if (sess->striping.movers == NULL)
		return;
	if (sess->striping.pool == NULL)
		deal_movers(sess, path);
	movers_set_rate(sess->striping.movers, sess->o.context->pacing.bps);
	if (!engine_closing(sess->engine) && movers_fault(sess->striping.movers, now, &why) < 0)
		engine_fail(sess->engine, &why);
	else if (movers_count(sess->striping.movers) == 0)
		engine_progress(sess->engine, now); /* the movers' limit applies */
}

struct mono striping_deadline(const struct session *sess)
{
	struct mono at = sess->striping.endpoints != NULL ? endpoints_deadline(sess->striping.endpoints) : MONO_NEVER;

	if (sess->striping.movers == NULL)
		return at;
	return mono_min(at, mono_min(movers_deadline(sess->striping.movers), mono_add_ns(mono_now(), CHECK_NS)));
}
