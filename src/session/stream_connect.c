/* Data connections of the TLS client: connects, joins, and reconnects after a loss. */
#include <string.h>

#include "conn/join_proof.h"
#include "core/err.h"
#include "engine/connecting.h"
#include "session/session_impl.h"

static void stop(struct session *sess, unsigned number)
{
	struct slot *s = &sess->slot[number];

	connect_cancel(s->attempt.connect);
	s->attempt.connect = NULL;
	remote_cancel(s->attempt.remote);
	s->attempt.remote = NULL;
	slot_attempt_ended(s);
}

/* NULL: direct. */
static const struct path *path_of(const struct session *sess, unsigned number)
{
	const struct paths *p = sess->o.paths;

	if (p == NULL)
		return NULL;
	return &p->at[number == SLOT_CONTROL ? sess->control.replay.path : paths_of_stream(p, number)];
}

static bool is_direct(const struct session *sess, unsigned number)
{
	const struct path *path = path_of(sess, number);

	return path == NULL || path->n_relays == 0;
}

/* The mover of the acceptor that the stream connects to; NULL: the acceptor itself. */
static struct endpoint *endpoint_of(const struct session *sess, unsigned number)
{
	if (sess->striping.endpoints == NULL || number == SLOT_CONTROL)
		return NULL;
	return endpoints_find(sess->striping.endpoints, sess->slot[number].endpoint);
}

/* The key of the stream's JOIN. */
static int join_key(uint8_t out[32], const struct session *sess, const char *endpoint)
{
	if (endpoint != NULL)
		return tls_server_mover_key(out, sess->key, endpoint);
	memcpy(out, sess->key, 32);
	return 0;
}

/* A mover makes the connection of the stream. */
static bool is_remote(const struct session *sess, unsigned number)
{
	return sess->striping.movers != NULL && number != SLOT_CONTROL;
}

/* The numeric address and the name take turns: an address goes with a network or a lease, and a name may have lost its
 * resolver, or lead to several hosts. */
static void change_address(struct session *sess, unsigned number)
{
	if (is_direct(sess, number) && endpoint_of(sess, number) == NULL && !is_remote(sess, number) &&
	    sess->peer.name[0] != '\0')
		sess->slot[number].attempt.by_name ^= true;
}

/* What the decisions of engine/connecting.h need to know of the attempt; `to`: the mover of the acceptor that it
 * connects to, or 0. */
static struct connecting facts(const struct session *sess, unsigned number, uint32_t to)
{
	const struct slot *s = &sess->slot[number];
	const struct path *path = path_of(sess, number);
	unsigned index = number == SLOT_CONTROL ? sess->control.replay.path : session_path_of(sess, number);
	const struct endpoint *endpoint = sess->striping.endpoints != NULL ? endpoints_find(sess->striping.endpoints,
	    to) : NULL;

	return (struct connecting){ .starter = sess->o.open != NULL, .control = number == SLOT_CONTROL,
		.by_mover = is_remote(sess, number), .n_paths = sess->o.paths != NULL ? sess->o.paths->n : 0,
		.n_relays = path != NULL ? path->n_relays : 0,
		.path_reported = (sess->streams.failed_paths >> index & 1) != 0,
		.path_streams = streams_on_path(sess, index), .has_name = sess->peer.name[0] != '\0',
		.by_name = s->attempt.by_name, .slow = s->attempt.slow, .to_endpoint = to != 0,
		.n_endpoints = endpoint != NULL ? sess->striping.endpoints->n : 0,
		.endpoint_failures = endpoint != NULL ? endpoint->failures : 0, .retries = s->retries };
}

static void path_failed(struct session *sess, unsigned number, const struct connect_result *r)
{
	unsigned path = session_path_of(sess, number);

	if (sess->end.over)
		return;
	sess->streams.failed_paths |= UINT64_C(1) << path;
	sess->o.ops->path_failed(sess->o.arg, path, r->hop, r->why.msg);
}

static bool has_stream_at(const struct session *sess, uint32_t endpoint)
{
	unsigned i;

	for (i = 0; i < sess->streams.n_granted; i++)
		if (sess->slot[i].stream != NULL && sess->slot[i].connected_to == endpoint)
			return true;
	return false;
}

/* A host may be down, or its port closed: a site that opens only the server's port lets no client reach the movers. One
 * that other streams have reached can be reached, and a mover of this side may have no way there. */
static void endpoint_failed(struct session *sess, unsigned number, const char *why)
{
	uint32_t id = sess->slot[number].attempt.to;
	const struct endpoint *to = sess->striping.endpoints != NULL ? endpoints_find(sess->striping.endpoints, id) :
	    NULL;
	bool direct = is_direct(sess, number), first;
	char text[sizeof ((struct ptcp_err *)0)->msg + 200];

	if (to == NULL || sess->end.over || has_stream_at(sess, id))
		return;
	/* a relay may not permit any of them: that is one sentence */
	first = direct || !endpoints_told(sess->striping.endpoints);
	if (!endpoints_failed(sess->striping.endpoints, id, number, mono_now()) || !first)
		return;
	snprintf(text, sizeof text, "a mover of the server, %s port %u, cannot be reached%s%s: %s", to->host, to->port,
	    direct ? "" : " through a relay", sess->striping.endpoints->n > 1 ? "; others carry its streams" : "", why);
	sess->o.ops->warning(sess->o.arg, NULL, text);
}

static struct connecting_failure failure(const struct connect_result *r)
{
	return (struct connecting_failure){ .slow = r->cause == CONNECT_SLOW, .refused = r->why.code == PTCP_EREFUSED,
		.hop = r->hop };
}

/* Of the path, or of a mover of the acceptor behind it. */
static void report_failure(struct session *sess, unsigned number, const struct connect_result *r)
{
	struct connecting c = facts(sess, number, sess->slot[number].attempt.to);
	struct connecting_failure f = failure(r);

	if (is_remote(sess, number) && movers_find(sess->striping.movers, sess->slot[number].mover) == NULL)
		return; /* the mover of this side has been lost meanwhile */
	switch (connecting_blame(&c, &f)) {
	case CONNECTING_NOBODY:
		break;
	case CONNECTING_PATH:
		path_failed(sess, number, r);
		break;
	case CONNECTING_ENDPOINT:
		endpoint_failed(sess, number, r->why.msg);
		break;
	}
}

static void join_failed(struct session *sess, unsigned number, const struct connect_result *r)
{
	log_at(&sess->o.context->log, LOG_INFO, "stream", "stream=%u event=join-failed why=\"%s\"", number, r->why.msg);
	change_address(sess, number);
	streams_retry_later(sess, number);
	if (number == SLOT_CONTROL) {
		control_failed(sess, r);
	} else {
		sess->streams.join_why = r->why;
		report_failure(sess, number, r);
		streams_report(sess);
	}
	sess->slot[number].attempt.slow = r->cause == CONNECT_SLOW;
	session_pump(sess);
}

static void on_done(void *arg, const struct connect_result *r)
{
	struct slot *s = arg;
	struct slot_attempt *j = &s->attempt;
	struct session *sess = s->session;
	unsigned number = s->number;

	j->connect = NULL;
	slot_attempt_ended(s);
	if (r->chan == NULL) {
		join_failed(sess, number, r);
		return;
	}
	j->by_name = j->slow = false;
	if (is_direct(sess, number) && j->endpoint[0] == '\0')
		peer_reached(sess, r->address);
	if (number == SLOT_CONTROL) {
		control_take(sess, r->chan);
	} else {
		slot_reached(s);
		endpoints_reached(sess->striping.endpoints, j->to);
		streams_add(sess, number, r->chan, j->ahead);
	}
}

static int write_join(void *arg, struct chan *c, struct ptcp_err *e)
{
	struct slot *s = arg;
	struct session *sess = s->session;
	uint8_t key[32];
	int r;

	if ((r = join_key(key, sess, s->attempt.endpoint[0] != '\0' ? s->attempt.endpoint : NULL)) == 0)
		r = join_proof_write(c, sess->id, key, s->number == SLOT_CONTROL ? WIRE_JOIN_CONTROL : s->number, e);
	explicit_bzero(key, sizeof key);
	return r;
}

static int check_relay(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
    struct ptcp_err *e)
{
	struct session *sess = ((struct slot *)arg)->session;

	return sess->o.ops->check(sess->o.arg, hop, relay, peer, e);
}

static bool permits(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	struct session *sess = ((struct slot *)arg)->session;

	return sess->o.ops->permits(sess->o.arg, all, sa);
}

/* Whether the stream sends files, encrypted; the time of a measurement begins with JOINED. */
static bool sends_files(const struct session *sess)
{
	return engine_snd(sess->engine) != NULL && sess->probe == NULL && sess->cipher != PTCP_CIPHER_NONE;
}

/* True: the connection that was made along with the control connection serves. */
static bool adopt_spare(struct session *sess, struct slot *s, const struct connect_opts *o)
{
	struct connect *spare;

	if (sess->peer.spare == NULL || s->number == SLOT_CONTROL || o->n_relays > 0)
		return false;
	spare = peer_take_spare(sess);
	if (connect_adopt(spare, o)) {
		s->attempt.connect = spare;
		return true;
	}
	connect_cancel(spare);
	return false;
}

/* ---- By movers ---- */

static void on_remote(void *arg, struct remote_stream *r, const struct connect_result *result)
{
	struct slot *s = arg;
	struct session *sess = s->session;

	s->attempt.remote = NULL;
	slot_attempt_ended(s);
	if (r == NULL) {
		join_failed(sess, s->number, result);
		return;
	}
	s->attempt.slow = false;
	slot_reached(s);
	endpoints_reached(sess->striping.endpoints, s->attempt.to);
	streams_add_remote(sess, s->number, r);
}

static int start_remote(struct session *sess, unsigned number, const struct connect_opts *c, struct ptcp_err *e)
{
	struct mover *m = movers_find(sess->striping.movers, sess->slot[number].mover);
	uint8_t key[32];
	struct remote_opts o = { .number = number, .session = sess->id, .key = key, .peer = c->fingerprint,
		.cipher = sess->cipher, .verify = (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0,
		.ahead = sess->slot[number].attempt.ahead, .receives = engine_rcv(sess->engine) != NULL,
		.patient = engine_spooled(sess->engine) || engine_linger_ns(sess->engine) > 0,
		.sock = c->sock, .host = c->host, .port = c->port, .label = c->label, .relay = c->relay,
		.n_relays = c->n_relays,
		.spool_bytes = c->spool_bytes, .route_session = c->route_session, .issuer = &sess->o.context->identity,
		.connect_ns = c->timeout_ns, .check = c->check, .done = on_remote, .arg = &sess->slot[number] };
	int r;

	if (m == NULL)
		return err_set(e, PTCP_EPEER, "the mover of the stream has left");
	r = join_key(key, sess, endpoint_of(sess, number) != NULL ? c->fingerprint : NULL);
	if (r == 0)
		r = remote_connect(&sess->slot[number].attempt.remote, m, &o, e);
	explicit_bzero(key, sizeof key);
	return r;
}

/* ---- All ---- */

/* To the mover of the acceptor, whose identity the acceptor has named. */
static void connect_to(struct connect_opts *o, struct slot_attempt *j, const struct endpoint *to)
{
	strcpy(j->endpoint, to->fingerprint);
	j->to = to->id;
	j->by_name = false;
	o->host = to->host;
	o->port = to->port;
	o->fingerprint = j->endpoint;
	o->label = NULL;
}

static void give_up(struct session *sess, unsigned number, const struct ptcp_err *why)
{
	sess->streams.join_why = *why;
	change_address(sess, number);
	streams_retry_later(sess, number);
}

static void start(struct session *sess, unsigned number)
{
	struct slot *s = &sess->slot[number];
	struct slot_attempt *j = &s->attempt;
	bool control = number == SLOT_CONTROL;
	const struct endpoint *to = endpoint_of(sess, number);
	struct connecting c = facts(sess, number, to != NULL ? to->id : 0);
	struct connecting_failure f;
	struct connect_opts o = { .context = sess->o.context, .host = sess->peer.address, .port = sess->peer.port,
		.client = sess->o.client, .timeout_ns = connecting_patience_ns(&c, sess->o.timeout_ns),
		.sock = sess->peer.sock, .alpn = ALPN_DATA, .label = sess->o.label,
		.one_cipher = !control && sess->cipher != PTCP_CIPHER_NONE, .cipher = sess->cipher,
		.plaintext = !control && sess->cipher == PTCP_CIPHER_NONE, .answer = WIRE_JOINED,
		.fingerprint = sess->peer.fingerprint, .check = check_relay, .first = write_join,
		.done = on_done, .arg = s };
	const struct path *path = path_of(sess, number);
	struct connect_result r = { .cause = CONNECT_UNREACHABLE };
	struct ptcp_err e;

	j->endpoint[0] = '\0';
	j->to = 0;
	if (to != NULL && to->relays_only && is_direct(sess, number)) {
		err_set(&r.why, PTCP_ECONNECT, "a mover of the server is at %s, and it is not known whether the server "
		    "has such an address, too (name the direct path first)", to->host);
		give_up(sess, number, &r.why);
		f = failure(&r);
		if (connecting_blames_path(&c, &f))
			path_failed(sess, number, &r);
		return;
	}
	if (to != NULL)
		connect_to(&o, j, to);
	if (j->by_name) {
		o.host = sess->peer.name;
		o.permits = sess->o.ops->permits != NULL ? permits : NULL;
	}
	j->ahead = sends_files(sess) && connecting_sends_ahead(&c);
	if (j->ahead)
		o.answer = 0;
	if (path != NULL && path->n_relays > 0) {
		o.permits = NULL;
		o.relay = path->relay;
		o.n_relays = path->n_relays;
		o.route_session = sess->o.route_session;
		o.route_control = control;
		if (j->endpoint[0] == '\0') {
			o.host = sess->o.paths->host;
			o.port = sess->o.paths->port;
		}
		if (engine_spooled(sess->engine) && !control)
			o.spool_bytes = paths_stream_spool_bytes(sess->o.paths, number, sess->streams.n_active);
	}
	slot_attempt_begins(s);
	if (is_remote(sess, number) ? start_remote(sess, number, &o, &e) < 0 :
	    !adopt_spare(sess, s, &o) && connect_start(&j->connect, &o, &e) < 0) {
		slot_attempt_ended(s);
		give_up(sess, number, &e);
	}
}

/* The only stream of the session. */
static void open_one_channel(struct session *sess)
{
	struct ptcp_err why;
	struct chan *c;

	if (mux_open(sess->control.mux, &c, &why) < 0)
		engine_fail(sess->engine, &why);
	else
		streams_add(sess, 0, c, false);
}

void stream_connect_control(struct session *sess, struct mono now)
{
	if (control_wants_successor(sess) && slot_may_begin(&sess->slot[SLOT_CONTROL]) &&
	    sess->slot[SLOT_CONTROL].retry_at.ns <= now.ns)
		start(sess, SLOT_CONTROL);
}

void stream_connect_stop_control(struct session *sess) { stop(sess, SLOT_CONTROL); }

static bool is_missing(const struct session *sess, unsigned number)
{
	if (sess->slot[number].stream != NULL)
		return streams_moves(sess, number) && !engine_closing(sess->engine);
	return sess->payload->wants == NULL || sess->payload->wants(sess, number);
}

/* Some mover can carry the stream; always true without movers. */
static bool has_place(const struct session *sess, unsigned number)
{
	const struct striping *t = &sess->striping;

	return (t->movers == NULL || sess->slot[number].mover != 0) &&
	    (t->endpoints == NULL || sess->slot[number].endpoint != 0);
}

/* A firewall may let clients reach the server only. */
static bool awaits_movers(const struct session *sess)
{
	return endpoint_of(sess, 0) != NULL && !sess->streams.ever_connected;
}

static uint64_t none_limit_ns(const struct session *sess)
{
	return connecting_none_ns(awaits_movers(sess), sess->streams.ever_connected, engine_linger_ns(sess->engine),
	    sess->o.timeout_ns);
}

/* Without movers, striping_pump() has a limit of its own. */
static bool lacks_all(const struct session *sess)
{
	return sess->streams.n_active > 0 && sess->streams.n_connected == 0 && has_place(sess, 0);
}

/* The first stream is dealt to a mover, see lacks_all(). */
static void fail_without_movers(struct session *sess)
{
	const struct endpoint *to = endpoint_of(sess, 0);
	struct ptcp_err why;

	err_set(&why, PTCP_ECONNECT, "movers of the server: %s port %u: no connection for %.3g s (have the port opened "
	    "to clients, or the server started without --movers)", to->host, to->port,
	    (double)none_limit_ns(sess) / 1e9);
	sess->streams.lacks_movers = true;
	engine_fail(sess->engine, &why);
}

bool session_lacks_movers(const struct session *sess) { return sess->streams.lacks_movers; }

/* Once after each replacement of the control connection. */
static void revive(struct session *sess)
{
	if (sess->control.resumed.ns == sess->streams.revived.ns)
		return;
	sess->streams.revived = sess->control.resumed;
	streams_revive(sess);
}

void stream_connect_pump(struct session *sess, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	if (sess->o.one_channel && !sess->streams.ever_connected)
		open_one_channel(sess);
	revive(sess);
	if (!sess->o.connects)
		return;
	stream_connect_control(sess, now);
	if (!control_is_up(sess))
		return; /* one connection finds out whether the peer can be reached; revive() follows */
	for (i = 0; i < sess->streams.n_active; i++)
		if (is_missing(sess, i) && slot_may_begin(&sess->slot[i]) && has_place(sess, i) &&
		    sess->slot[i].retry_at.ns <= now.ns)
			start(sess, i);
	if (!lacks_all(sess) || mono_diff_ns(now, sess->streams.none_since) < none_limit_ns(sess))
		return;
	if (awaits_movers(sess)) {
		fail_without_movers(sess);
	} else {
		err_set(&why, sess->streams.ever_connected ? PTCP_ETIMEOUT : PTCP_ECONNECT,
		    "data connections: none for %.3g s: %s (ptcp doctor checks the path)",
		    (double)none_limit_ns(sess) / 1e9,
		    sess->streams.join_why.code != 0 ? sess->streams.join_why.msg : "no answer");
		engine_fail(sess->engine, &why);
	}
}

/* When the next attempt is due; connections in progress have their own deadlines. */
struct mono stream_connect_deadline(const struct session *sess)
{
	struct mono at = MONO_NEVER;
	unsigned i;

	if (!sess->o.connects || !sess->running)
		return at;
	if (control_wants_successor(sess) && slot_may_begin(&sess->slot[SLOT_CONTROL]))
		at = sess->slot[SLOT_CONTROL].retry_at;
	if (sess->end.over || !control_is_up(sess))
		return at;
	for (i = 0; i < sess->streams.n_active; i++)
		if (slot_may_begin(&sess->slot[i]) && is_missing(sess, i) && has_place(sess, i))
			at = mono_min(at, sess->slot[i].retry_at);
	return lacks_all(sess) ? mono_min(at, mono_add_ns(sess->streams.none_since, none_limit_ns(sess))) : at;
}

void stream_connect_move(struct session *sess, unsigned place)
{
	unsigned i;

	for (i = 0; i < sess->streams.n_granted; i++) {
		if (sess->o.paths->dealt[i] != place)
			continue;
		stop(sess, i);
		slot_retry_at(&sess->slot[i], mono_now());
	}
}

void stream_connect_stop(struct session *sess)
{
	unsigned i;

	peer_drop_spare(sess);
	for (i = 0; i < PTCP_STREAMS_MAX; i++) /* except the control connection's successor */
		stop(sess, i);
}
