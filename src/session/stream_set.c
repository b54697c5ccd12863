/* The data streams of a session: number of active streams, connected and lost streams. */
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "fs/fd_budget.h"
#include "net/identity.h"
#include "session/session_impl.h"

#define DRAIN_NS NS_PER_S            /* a stream that leaves may need so long for its blocks */
#define SILENT_NS (2 * NS_PER_S)     /* without an answer after an outage: not alive */

/* ---- Active streams ---- */

unsigned streams_connected(const struct session *sess)
{
	unsigned i, n = 0;

	if (sess->probe != NULL)
		return sess->streams.n_connected;
	for (i = 0; i < sess->streams.n_active; i++)
		n += sess->slot[i].stream != NULL;
	return n;
}

/* Whether more active streams are being connected, as far as this end knows. */
static bool more_to_come(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < sess->streams.n_active; i++)
		if (sess->slot[i].stream == NULL && (slot_attempts(&sess->slot[i]) ||
		    (sess->o.connects && sess->slot[i].retries == 0)))
			return true;
	return false;
}

/* Once for each change of the number, not for each stream. */
static void report(struct session *sess, const char *why)
{
	unsigned from = sess->streams.n_reported;

	sess->streams.n_reported = streams_connected(sess);
	if (sess->streams.n_reported != from)
		sess->o.ops->streams(sess->o.arg, from, sess->streams.n_reported, why);
}

void streams_report(struct session *sess)
{
	if (sess->probe == NULL && more_to_come(sess))
		return;
	report(sess, sess->streams.active_why != NULL ? sess->streams.active_why : "connected");
	sess->streams.active_why = NULL;
}

bool streams_report_tcp(const struct session *sess)
{
	uint8_t role = engine_open(sess->engine)->role;

	return sess->o.open == NULL && !sess->o.one_channel &&
	    (role == WIRE_ACCEPTOR_SENDS || role == WIRE_ACCEPTOR_GENERATES);
}

/* At most half of the room, so that the next session finds some. */
unsigned session_take_fds(unsigned *fds, unsigned want, unsigned each, bool alone)
{
	unsigned left = fd_budget_left(), n;

	left = left > SESSION_FDS ? (left - SESSION_FDS) / each : 0;
	n = want <= left / 2 ? want : left / 2 > 0 ? left / 2 : 1;
	*fds = SESSION_FDS + n * each;
	if (left > 0 && fd_budget_reserve(*fds))
		return n;
	if (!alone) {
		*fds = 0;
		return 0;
	}
	fd_budget_count((int)*fds);
	return n;
}

unsigned session_reserve(struct session *sess, unsigned want, bool alone)
{
	unsigned n = session_take_fds(&sess->streams.n_fds_reserved, want, streams_report_tcp(sess) ? 2 : 1, alone);

	sess->streams.n_fds_base = SESSION_FDS;
	return n;
}

/* Reserves descriptors for streams 0 to streams - 1, connected or not. */
static void reserve_fds(struct session *sess, unsigned streams)
{
	unsigned need = sess->streams.n_fds_base + streams * (sess->streams.tapped ? 2 : 1);

	if (need > sess->streams.n_fds_reserved) {
		fd_budget_count((int)(need - sess->streams.n_fds_reserved));
		sess->streams.n_fds_reserved = need;
	}
}

void streams_init(struct session *sess, const struct session_opts *o)
{
	unsigned i;

	for (i = 0; i < SLOTS; i++)
		slot_init(&sess->slot[i], sess, i, &o->context->log);
	if (o->open == NULL) /* an acceptor: session_reserve() */
		return;
	if (o->fds == 0)
		fd_budget_count(1);
	sess->streams.n_fds_base = o->fds == 0 ? 1 : SESSION_FDS;
	sess->streams.n_fds_reserved = o->fds == 0 ? 1 : o->fds;
}

void streams_free(struct session *sess)
{
	fd_budget_count(-(int)sess->streams.n_fds_reserved);
	packing_free(sess->streams.packing);
}

static void set_congestion(const struct session *sess, int fd)
{
	const char *name = sess->streams.congestion;
	int code;

	if (name != NULL && (code = sock_set_congestion(fd, name)) != 0)
		log_at(&sess->o.context->log, LOG_WARN, "congestion", "name=%s why=\"%s\"", name, strerror(code));
}

void streams_set_congestion(struct session *sess, const char *name)
{
	unsigned i;

	sess->streams.congestion = name;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL && stream_tap(sess->slot[i].stream) >= 0)
			set_congestion(sess, stream_tap(sess->slot[i].stream));
}

void streams_carry(struct session *sess, const struct payload_ops *payload) { sess->payload = payload; }

void streams_tap(struct session *sess) { sess->streams.tapped = true; }

void streams_await(struct session *sess, struct mono now) { sess->streams.none_since = now; }

void streams_close(struct session *sess, bool reset)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL) {
			stream_stop(sess->slot[i].stream, reset);
			slot_closes(&sess->slot[i]);
		}
}

/* `why` NULL: not by a failure. */
static void disconnect(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	unsigned number = stream_number(s);

	slot_disconnected(&sess->slot[number]);
	sess->streams.n_connected--;
	sess->streams.n_ending++;
	if (sess->payload->lost != NULL)
		sess->payload->lost(sess, s, why);
	/* The data goes again on another connection, and the peer must not wait for the end of this one. */
	stream_stop(s, sess->probe == NULL && !engine_closing(sess->engine));
}

/* Each stream has about a megabyte in its buffers. Behind a slow path the streams that leave would go on taking from
 * other flows until that is delivered: their connections are reset, and the active streams carry the blocks. */
static void withdraw(struct session *sess, unsigned from, unsigned until)
{
	struct snd *snd = engine_snd(sess->engine);
	struct mono now = mono_now();
	unsigned i;

	if (snd == NULL || sess->probe != NULL || !sess->running || engine_spooled(sess->engine) ||
	    engine_closing(sess->engine))
		return;
	for (i = from; i < until; i++)
		if (sess->slot[i].stream != NULL && snd_stream_drains_ns(snd, i, now) > DRAIN_NS) {
			log_at(&sess->o.context->log, LOG_INFO, "stream", "stream=%u event=withdrawn", i);
			disconnect(sess, sess->slot[i].stream, NULL);
		}
}

void streams_activate(struct session *sess, unsigned streams, const char *why)
{
	unsigned before = streams_connected(sess), after;

	withdraw(sess, streams, sess->streams.n_active);
	sess->streams.n_active = streams;
	sess->streams.active_why = sess->adapt.adapts_streams ? why : NULL;
	reserve_fds(sess, streams);
	if (before == 0)
		streams_await(sess, mono_now());
	after = streams_connected(sess);
	if (after > sess->streams.n_peak)
		sess->streams.n_peak = after;
	if (sess->probe != NULL || why == NULL)
		return;
	if (after < before)
		report(sess, why);
	else
		streams_report(sess);
}

static bool changes_mover(const struct striping *t, const struct slot *s)
{
	if (t->endpoints != NULL && s->endpoint != 0 && s->connected_to != s->endpoint)
		return true;
	return t->pool == NULL && t->movers != NULL && s->mover != 0 &&
	    remote_mover(stream_remote(s->stream)) != s->mover;
}

bool streams_moves(const struct session *sess, unsigned number)
{
	const struct slot *s = &sess->slot[number];

	return s->stream != NULL && (changes_mover(&sess->striping, s) ||
	    (sess->adapt.selects_paths && stream_path(s->stream) != session_path_of(sess, number)));
}

unsigned streams_on_path(const struct session *sess, unsigned path)
{
	unsigned i, n = 0;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		n += sess->slot[i].stream != NULL && stream_path(sess->slot[i].stream) == path;
	return n;
}

uint64_t streams_delivered(const struct session *sess, unsigned path)
{
	const struct snd *snd = engine_snd(sess->engine);
	uint64_t bytes = 0;
	unsigned i;

	if (snd == NULL)
		return sess->carried[path];
	for (i = 0; i < sess->streams.n_granted; i++)
		if (session_path_of(sess, i) == path)
			bytes += snd_stream_acked_bytes(snd, i);
	return bytes;
}

bool streams_accepts(const struct session *sess, unsigned number)
{
	return sess->running && !sess->end.over && number < sess->streams.n_granted &&
	    (sess->payload->wants == NULL || sess->payload->wants(sess, number));
}

bool streams_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out)
{
	return sess->slot[number].stream != NULL && stream_tcpinfo(sess->slot[number].stream, out);
}

/* ---- Operations for streams ---- */

/* A path without large packets delivers nothing on all its streams. */
static void suspect(struct session *sess, const struct stream *s)
{
	struct mtu_lost lost = *stream_lost(s);
	uint64_t before = sess->slot[stream_number(s)].path_bytes, bytes = streams_delivered(sess, stream_path(s));

	if (bytes > before + lost.delivered_bytes) /* fewer than before: streams have moved to another path */
		lost.delivered_bytes = bytes - before;
	peer_suspect(sess, &lost);
}

/* Through TLS, a wrong frame is the peer's own fault, and a new connection would repeat the fault. In plaintext the
 * path may have damaged the frame. */
static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	struct session *sess = arg;

	if (why->code == PTCP_EPROTO && sess->cipher != PTCP_CIPHER_NONE && !sess->end.over)
		engine_fail(sess->engine, why);
	if (sess->slot[stream_number(s)].stream == s && why->code != PTCP_EREFUSED && sess->running &&
	    !engine_closing(sess->engine) && sess->probe == NULL && stream_number(s) < sess->streams.n_active &&
	    !streams_moves(sess, stream_number(s)))
		suspect(sess, s);
	streams_lost(sess, s, why);
}

static void on_gone(void *arg, struct stream *s)
{
	struct session *sess = arg;
	unsigned number = stream_number(s);

	if (sess->slot[number].stream == s) { /* stopped with the session */
		slot_disconnected(&sess->slot[number]);
		sess->streams.n_connected--;
	} else {
		sess->streams.n_ending--;
	}
	sess->streams.retransmits += stream_retransmits(s);
	stream_free(s);
	session_pump(sess);
}

static void on_idle(void *arg, struct stream *s) { session_reported(arg, s); }

static void on_sent(void *arg, struct stream *s, struct stream_job *job)
{
	((struct session *)arg)->payload->sent(arg, s, job);
}

static void on_received(void *arg, struct stream *s, struct stream_results *results)
{
	((struct session *)arg)->payload->received(arg, s, results);
}

static enum part_holder on_locked(void *arg, uint64_t dev, uint64_t ino, struct mono since, bool alone)
{
	struct session *sess = arg;

	return sess->payload->locked != NULL ? sess->payload->locked(sess, dev, ino, since, alone) : PART_OF_OTHERS;
}

static const struct stream_ops stream_ops = { .sent = on_sent, .idle = on_idle, .received = on_received,
	.locked = on_locked, .lost = on_lost, .gone = on_gone };

/* ---- Connections lost and made ---- */

void streams_share_rate(struct session *sess, unsigned number)
{
	struct path_rates *r = &sess->adapt.path_rates;
	unsigned share = sess->o.open != NULL ? session_path_of(sess, number) + 1 : path_rates_share(r, number);

	stream_share(sess->slot[number].stream, share > 0 ? &r->of[share - 1] : NULL);
	if (engine_snd(sess->engine) != NULL)
		snd_share(engine_snd(sess->engine), number, share);
}

void streams_retry_later(struct session *sess, unsigned number)
{
	struct slot *s = &sess->slot[number];

	slot_retry_later(s, mono_now(), sess->id[s->retries % sizeof sess->id]); /* the id is random */
}

void streams_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	unsigned number = stream_number(s), before = streams_connected(sess);
	bool moves = streams_moves(sess, number);

	if (sess->slot[number].stream != s)
		return;
	disconnect(sess, s, why);
	if (sess->streams.n_connected == 0)
		streams_await(sess, mono_now());
	if (sess->o.one_channel && !sess->end.over)
		engine_fail(sess->engine, why);
	if (!engine_closing(sess->engine) && number >= sess->streams.n_active) { /* the sender has withdrawn it */
		log_at(&sess->o.context->log, LOG_INFO, "stream", "stream=%u event=left why=\"%s\"", number, why->msg);
	} else if (!engine_closing(sess->engine)) { /* else the peer closes streams that have done their work */
		sess->streams.join_why = *why;
		log_at(&sess->o.context->log, LOG_INFO, "stream", "stream=%u event=lost why=\"%s\"", number, why->msg);
		if (streams_connected(sess) < before && !moves)
			report(sess, why->msg);
		streams_retry_later(sess, number);
	}
	session_pump(sess);
}

void streams_revive(struct session *sess)
{
	unsigned i;

	if (sess->streams.n_connected == 0)
		streams_await(sess, mono_now());
	for (i = 0; i < sess->streams.n_granted && sess->o.connects; i++) {
		slot_retry_at(&sess->slot[i], (struct mono){ 0 });
		if (sess->slot[i].stream != NULL)
			stream_check(sess->slot[i].stream, SILENT_NS, false);
	}
}

/* Before the stream is made: a peer may join more than the active streams. */
static void make_room(struct session *sess, unsigned number)
{
	struct ptcp_err e;

	if (sess->slot[number].stream != NULL) { /* the peer noticed its death first */
		err_set(&e, PTCP_EPEER, streams_moves(sess, number) ? "moved to another path" : "replaced by the peer");
		streams_lost(sess, sess->slot[number].stream, &e);
	}
	reserve_fds(sess, number + 1);
}

/* The socket of a stream on this host. */
static void prepare_socket(const struct session *sess, int fd)
{
	if (engine_spooled(sess->engine) || engine_linger_ns(sess->engine) > 0)
		sock_no_user_timeout(fd); /* a receiver may pause; see stalls.c for dead connections */
	set_congestion(sess, fd);
}

static uint32_t far_mover(const struct session *sess, const struct chan *c)
{
	uint8_t digest[32];

	if (sess->o.one_channel || strcmp(chan_fingerprint(c), sess->peer.fingerprint) == 0)
		return 0;
	identity_digest(digest, chan_fingerprint(c));
	return get_u32(digest);
}

static void added(struct session *sess, unsigned number, struct stream *s, uint32_t far, unsigned before)
{
	slot_connected(&sess->slot[number], s, far, streams_delivered(sess, session_path_of(sess, number)), mono_now());
	sess->streams.n_connected++;
	sess->streams.failed_paths &= ~(UINT64_C(1) << session_path_of(sess, number));
	sess->streams.ever_connected = true;
	if (streams_connected(sess) > sess->streams.n_peak)
		sess->streams.n_peak = streams_connected(sess);
	if (sess->payload->connected != NULL)
		sess->payload->connected(sess, number);
	if (sess->probe == NULL)
		streams_share_rate(sess, number);
	else
		sess->streams.n_reported = before; /* levels are not reported */
	if (streams_connected(sess) != before)
		streams_report(sess);
	session_pump(sess);
}

static struct stream_opts opts_of(const struct session *sess, unsigned number)
{
	struct stream_opts o = {
		.context = sess->o.context, .number = number, .path = session_path_of(sess, number),
		.memory = sess->o.memory, .only_stream = sess->o.one_channel,
		.packing = sess->probe == NULL ? sess->streams.packing : NULL,
		.verify = (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0, .users = session_is_users(sess),
		.ops = &stream_ops
	};

	if (sess->payload->opts != NULL)
		sess->payload->opts(sess, &o);
	return o;
}

void streams_add(struct session *sess, unsigned number, struct chan *c, bool joining)
{
	struct stream_opts o;
	struct stream *s;
	unsigned before;
	uint32_t far;
	struct ptcp_err e;

	if (!streams_accepts(sess, number)) {
		chan_free(c);
		return;
	}
	make_room(sess, number);
	o = opts_of(sess, number);
	o.chan = c;
	o.joining = joining;
	o.tapped = sess->streams.tapped;
	o.pacer = &sess->adapt.path_rates.all;
	o.arg = sess;
	before = streams_connected(sess);
	far = far_mover(sess, c);
	prepare_socket(sess, chan_fd(c));
	if (stream_new(&s, &o, &e) < 0) {
		engine_fail(sess->engine, &e); /* no more memory would be there after a new attempt */
		return;
	}
	added(sess, number, s, far, before);
}

void streams_add_remote(struct session *sess, unsigned number, struct remote_stream *r)
{
	struct stream_opts o;
	struct stream *s;
	unsigned before;
	uint32_t far;
	struct ptcp_err e;

	if (!streams_accepts(sess, number)) {
		remote_cancel(r);
		return;
	}
	make_room(sess, number);
	o = opts_of(sess, number);
	o.kind = &remote_stream_kind;
	o.remote = r;
	o.arg = sess;
	before = streams_connected(sess);
	far = remote_peer(r);
	if (stream_new(&s, &o, &e) < 0) {
		remote_cancel(r);
		engine_fail(sess->engine, &e);
		return;
	}
	remote_attach(r, s);
	added(sess, number, s, far, before);
}

uint64_t session_moved_bytes(const struct session *sess)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL)
			n += stream_moved(sess->slot[i].stream);
	return n;
}

uint64_t session_retransmits(struct session *sess)
{
	uint64_t n = sess->streams.retransmits;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL)
			n += stream_retransmits(sess->slot[i].stream);
	return n;
}
