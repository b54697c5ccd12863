#include "session/probe_session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define LOOK_NS (NS_PER_S / 2)

/* ---- Making and freeing ---- */

static int probe_session_new(struct session *sess, bool floods, struct ptcp_err *e)
{
	struct probe_session *b = calloc(1, sizeof *b);

	if (b == NULL)
		return err_nomem(e);
	open_files_init(&b->intake);
	b->floods = floods;
	b->give_up = MONO_NEVER;
	sess->probe = b;
	sess->tapped = true;
	if (!floods)
		return 0;
	if ((b->data = malloc(STREAM_FLOOD_BLOCK)) == NULL)
		return err_nomem(e);
	/* Nothing on the way can make it smaller. */
	return tls_random(b->data, STREAM_FLOOD_BLOCK, e);
}

int session_probe(struct session *sess, const struct probe_session_ops *ops, void *arg, struct ptcp_err *e)
{
	int r;

	if ((r = probe_session_new(sess, engine_open(sess->engine)->role == WIRE_ACCEPTOR_DISCARDS, e)) < 0)
		return r;
	sess->probe->ops = ops;
	sess->probe->arg = arg;
	return 0;
}

int session_drop(struct session *sess, struct ptcp_err *e)
{
	return probe_session_new(sess, false, e);
}

int session_flood(struct session *sess, struct ptcp_err *e)
{
	return probe_session_new(sess, true, e);
}

void probe_session_free(struct session *sess)
{
	if (sess->probe == NULL)
		return;
	open_files_fini(&sess->probe->intake);
	free(sess->probe->data);
	free(sess->probe);
	sess->probe = NULL;
}

/* ---- A level ---- */

unsigned probe_session_granted(const struct session *sess) { return sess->n_granted; }
uint64_t probe_session_timeout_ns(const struct session *sess) { return sess->o.timeout_ns; }

/* Who connects may be the other side. */
static void tell_use(struct session *sess, unsigned streams)
{
	struct wire_set_streams use = { (uint16_t)streams, sess->probe->floods ? 0 : sess->probe->stream_bytes };

	sess->n_wanted = streams;
	engine_set_streams(sess->engine, &use);
}

static void begin_level(struct session *sess, unsigned streams, uint64_t stream_bytes, bool open)
{
	struct probe_session *b = sess->probe;
	struct mono now = mono_now();
	unsigned i;

	b->open = open;
	b->streams = streams < sess->n_granted ? streams : sess->n_granted;
	b->stream_bytes = stream_bytes;
	b->begun = b->clearing = false;
	memset(b->early, 0, sizeof b->early);
	b->n_early = 0;
	b->give_up = mono_add_ns(now, sess->o.timeout_ns);
	for (i = 0; i < b->streams; i++)
		sess->retry_at[i] = now;
	tell_use(sess, b->streams);
	sess->none_since = now;
	session_pump(sess);
}

void probe_session_level(struct session *sess, unsigned streams, uint64_t stream_bytes)
{
	begin_level(sess, streams, stream_bytes, false);
}

void probe_session_open(struct session *sess, unsigned streams)
{
	begin_level(sess, streams, 0, true);
}

void probe_session_message(struct session *sess, uint64_t bytes)
{
	struct probe_session *b = sess->probe;
	unsigned i;

	for (i = 0; i < b->streams; i++)
		stream_flood(sess->stream[i], bytes / b->streams + (i < bytes % b->streams));
}

void probe_session_use(struct session *sess, uint64_t stream_bytes)
{
	struct probe_session *b = sess->probe;

	if (!b->floods || sess->n_wanted == 0)
		return;
	b->streams = sess->n_wanted;
	b->stream_bytes = stream_bytes < PROBE_SESSION_STREAM_BYTES ? stream_bytes : PROBE_SESSION_STREAM_BYTES;
	b->begun = false;
}

/* What may come on a stream: the starter says how much that is. */
static uint64_t most_bytes(const struct probe_session *b)
{
	if (b->ops == NULL)
		return PROBE_SESSION_STREAM_BYTES;
	return b->stream_bytes < UINT64_MAX ? b->stream_bytes : 0;
}

void probe_session_stream_opts(const struct session *sess, struct stream_opts *o)
{
	struct probe_session *b = sess->probe;

	if (b->floods) {
		o->flood_data = b->data;
		o->flood_open = b->open;
	} else {
		o->intake = &b->intake;
		o->most_bytes = most_bytes(b);
	}
}

void probe_session_stream_up(struct session *sess, unsigned number)
{
	struct probe_session *b = sess->probe;
	unsigned i;

	b->since[number] = mono_now();
	b->flooding[number] = false;
	if (b->streams == 0 || sess->n_up + b->n_early < b->streams || b->begun || b->clearing)
		return;
	b->begun = true;
	b->from = b->looked = b->moved_at = b->since[number];
	b->moved = 0;
	b->times = (struct limit_times){ 0 };
	b->retransmits = 0;
	sess->n_wanted = 0; /* who is lost from now on is not replaced */
	for (i = 0; b->floods && !b->open && i < b->streams; i++)
		if (sess->stream[i] != NULL && !b->flooding[i]) {
			b->flooding[i] = true;
			stream_flood(sess->stream[i], b->stream_bytes);
		}
	if (b->ops == NULL)
		return;
	if (b->floods)
		tell_use(sess, 0);
	b->ops->begun(b->arg);
	for (i = 0; i < b->streams && !b->clearing; i++)
		if (b->early[i].is)
			b->ops->ended(b->arg, i, b->early[i].from, b->early[i].until, NULL);
}

/* Whether a stream has carried all that it was to, and when. */
static bool is_whole(const struct probe_session *b, const struct stream *s, struct mono *from, struct mono *until)
{
	if (b->floods)
		return stream_flooded(s, from, until);
	if (stream_taken(s, from, until) != b->stream_bytes)
		return false;
	if (b->begun && b->from.ns < from->ns)
		*from = b->from; /* it had to wait for its first byte */
	return true;
}

void probe_session_stream_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	struct probe_session *b = sess->probe;
	struct mono from, until;
	bool whole = is_whole(b, s, &from, &until);

	if (b->ops == NULL || b->clearing)
		return;
	if (b->begun) {
		b->ops->ended(b->arg, stream_number(s), from, until, whole ? NULL : why);
	} else if (whole) { /* whoever connects begins when the last stream is up there, and may be done before we see that */
		b->early[stream_number(s)] = (struct probe_session_run){ true, from, until };
		b->n_early++;
	}
}

bool probe_session_look(const struct session *sess, unsigned number, struct tcpinfo *out)
{
	if (!session_look(sess, number, out))
		return false;
	if (!sess->probe->floods) {
		out->acked_bytes = out->received_bytes;
		out->retransmits = 0;
		out->busy_s = out->window_s = out->buffer_s = 0;
		strcpy(out->congestion, sess->probe->congestion);
	}
	return true;
}

bool probe_session_told(const struct session *sess, struct limit_times *times, uint64_t *retransmits)
{
	*times = sess->probe->times;
	*retransmits = sess->probe->retransmits;
	return !sess->probe->floods;
}

void probe_session_seen(struct session *sess, const struct wire_tcp_report *f)
{
	struct probe_session *b = sess->probe;

	b->times.elapsed_s += (double)f->elapsed_us / 1e6;
	b->times.busy_s += (double)f->busy_us / 1e6;
	b->times.window_s += (double)f->window_us / 1e6;
	b->times.buffer_s += (double)f->buffer_us / 1e6;
	b->retransmits += f->retransmits;
	if (f->congestion.n == 0)
		return;
	memcpy(b->congestion, f->congestion.p, f->congestion.n);
	b->congestion[f->congestion.n] = '\0';
}

void probe_session_clear(struct session *sess)
{
	struct probe_session *b = sess->probe;
	struct linger now = { 1, 0 };
	unsigned i;

	b->clearing = true;
	tell_use(sess, 0);
	stream_connect_stop(sess);
	for (i = 0; i < PTCP_STREAMS_MAX; i++) {
		/* Megabytes in buffers would go on for seconds, into the next level. */
		if (sess->tap[i] >= 0)
			setsockopt(sess->tap[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		session_close_tap(sess, i);
		if (sess->stream[i] != NULL)
			stream_stop(sess->stream[i]);
	}
	session_pump(sess);
}

void probe_session_finish(struct session *sess)
{
	engine_finish(sess->engine);
	session_pump(sess);
}

/* ---- Time ---- */

/* An acceptor closes streams that have gone on for too long. */
static void close_old(struct session *sess, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->stream[i] != NULL && mono_diff_ns(now, sess->probe->since[i]) >= PROBE_SESSION_STREAM_NS) {
			err_set(&why, PTCP_EREFUSED, "a stream of a probe has lasted for longer than this host takes");
			session_stream_lost(sess, sess->stream[i], &why);
		}
}

static void begin_late(struct session *sess, struct mono now)
{
	struct probe_session *b = sess->probe;
	struct ptcp_err why;

	b->give_up = MONO_NEVER;
	err_set(&why, PTCP_ECONNECT, "only %u of %u streams could be had: %s", sess->n_up, b->streams,
	    sess->join_why.code != 0 ? sess->join_why.msg : "no answer");
	b->ops->ended(b->arg, 0, now, now, &why);
}

/* A level under way, that the starter waits for. */
static bool under_way(const struct probe_session *b)
{
	return b->ops != NULL && b->streams > 0 && b->begun && !b->clearing;
}

/* The peer owes us nothing in such a session, and may ping for ever: that bytes move is what tells. */
static void watch_level(struct session *sess, struct mono now)
{
	struct probe_session *b = sess->probe;
	uint64_t moved = 0;
	struct tcpinfo at;
	struct ptcp_err why;
	unsigned i;

	b->looked = now;
	for (i = 0; i < b->streams; i++)
		if (sess->stream[i] != NULL && probe_session_look(sess, i, &at))
			moved += at.acked_bytes;
	if (moved != b->moved) {
		b->moved = moved;
		b->moved_at = now;
	} else if (mono_diff_ns(now, b->moved_at) >= sess->o.timeout_ns) {
		err_set(&why, PTCP_ETIMEOUT, "nothing has come through for %.3g s (check the network and the other host)",
		    (double)sess->o.timeout_ns / 1e9);
		b->ops->ended(b->arg, 0, now, now, &why);
	}
}

void probe_session_pump(struct session *sess, struct mono now)
{
	struct probe_session *b = sess->probe;

	if (b == NULL)
		return;
	if (b->ops == NULL) {
		close_old(sess, now);
		return;
	}
	if (b->streams > 0 && !b->begun && !b->clearing && now.ns >= b->give_up.ns)
		begin_late(sess, now);
	if (under_way(b) && mono_diff_ns(now, b->looked) >= LOOK_NS)
		watch_level(sess, now);
	if (b->clearing && sess->n_up + sess->n_ending == 0) {
		b->clearing = false;
		b->streams = 0;
		b->ops->clear(b->arg);
	}
}

struct mono probe_session_deadline(const struct session *sess)
{
	const struct probe_session *b = sess->probe;
	struct mono at = MONO_NEVER;
	unsigned i;

	if (b == NULL)
		return MONO_NEVER;
	if (under_way(b))
		return mono_add_ns(b->looked, LOOK_NS);
	if (b->ops != NULL)
		return b->streams > 0 && !b->begun && !b->clearing ? b->give_up : at;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->stream[i] != NULL)
			at = mono_min(at, mono_add_ns(b->since[i], PROBE_SESSION_STREAM_NS));
	return at;
}
