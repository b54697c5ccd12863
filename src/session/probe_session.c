#include "session/probe_session.h"

#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define CHECK_NS (NS_PER_S / 2)

/* A measurement by levels: numbers of streams, one after the other. */
struct probe_session {
	const struct probe_session_ops *ops; /* callbacks of the starter; NULL: acceptor */
	void *arg;
	bool generates;             /* this end sends the blocks */
	struct open_files files;    /* receiver: always empty: streams discard every block */
	uint8_t *data;              /* sender: content of the blocks */
	unsigned streams;           /* streams of this level; 0: between levels */
	uint64_t stream_bytes;
	bool started;
	uint32_t generating[PTCP_STREAMS_MAX]; /* sender: generations of the connections that have started to send */
	/* starter */
	bool clearing;
	struct mono start_by;       /* deadline for the level to start */
	struct mono started_at;
	struct probe_run early[PTCP_STREAMS_MAX]; /* streams that ended before the level started here */
	unsigned n_early;
	struct mono checked_at;     /* last check for progress */
	uint64_t moved;             /* bytes at the last progress, */
	struct mono moved_at;       /* time of `moved` */
	struct limit_times times;   /* reported by the sending end since the level started */
	uint64_t retransmits;
};

static const struct payload_ops probe_payload;

static int probe_session_new(struct session *sess, bool generates, struct ptcp_err *e)
{
	struct probe_session *b = calloc(1, sizeof *b);

	if (b == NULL)
		return err_nomem(e);
	open_files_init(&b->files);
	b->generates = generates;
	b->start_by = MONO_NEVER;
	sess->probe = b;
	streams_carry(sess, &probe_payload);
	streams_tap(sess);
	if (!generates)
		return 0;
	if ((b->data = memory_realloc(sess->o.memory, NULL, 0, STREAM_GENERATED_BLOCK, e)) == NULL)
		return PTCP_ENOMEM;
	return tls_random(b->data, STREAM_GENERATED_BLOCK, e); /* incompressible */
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

int session_discard(struct session *sess, struct ptcp_err *e)
{
	return probe_session_new(sess, false, e);
}

int session_generate(struct session *sess, struct ptcp_err *e)
{
	return probe_session_new(sess, true, e);
}

void probe_session_free(struct session *sess)
{
	if (sess->probe == NULL)
		return;
	open_files_fini(&sess->probe->files);
	memory_free(sess->o.memory, sess->probe->data, STREAM_GENERATED_BLOCK);
	free(sess->probe);
	sess->probe = NULL;
}

/* ---- A level ---- */

unsigned probe_session_granted(const struct session *sess) { return sess->streams.n_granted; }
uint64_t probe_session_timeout_ns(const struct session *sess) { return sess->o.timeout_ns; }

/* Sets the number of streams here and at the peer, as either side may connect. */
static void set_streams(struct session *sess, unsigned streams)
{
	struct wire_set_streams use = { (uint16_t)streams, sess->probe->generates ? 0 : sess->probe->stream_bytes };

	sess->streams.n_active = streams;
	engine_set_streams(sess->engine, &use);
}

void probe_session_level(struct session *sess, unsigned streams, uint64_t stream_bytes)
{
	struct probe_session *b = sess->probe;
	struct mono now = mono_now();
	unsigned i;

	b->streams = streams < sess->streams.n_granted ? streams : sess->streams.n_granted;
	b->stream_bytes = stream_bytes;
	b->started = b->clearing = false;
	memset(b->early, 0, sizeof b->early);
	b->n_early = 0;
	b->start_by = mono_add_ns(now, sess->o.timeout_ns);
	for (i = 0; i < b->streams; i++)
		slot_retry_at(&sess->slot[i], now);
	set_streams(sess, b->streams);
	streams_await(sess, now);
	session_pump(sess);
}

void probe_session_on_set_streams(struct session *sess, uint64_t stream_bytes)
{
	struct probe_session *b = sess->probe;

	if (!b->generates || sess->streams.n_active == 0)
		return;
	b->streams = sess->streams.n_active;
	b->stream_bytes = stream_bytes < PROBE_SESSION_STREAM_BYTES ? stream_bytes : PROBE_SESSION_STREAM_BYTES;
	b->started = false;
}

static void set_opts(const struct session *sess, struct stream_opts *o)
{
	struct probe_session *b = sess->probe;

	if (b->generates) {
		o->generate_data = b->data;
	} else {
		o->files = &b->files;
		o->max_bytes = b->ops == NULL ? PROBE_SESSION_STREAM_BYTES :
		    b->stream_bytes < UINT64_MAX ? b->stream_bytes : 0;
	}
}

static void on_connected(struct session *sess, unsigned number)
{
	struct probe_session *b = sess->probe;
	unsigned i;

	if (b->streams == 0 || sess->streams.n_connected + b->n_early < b->streams || b->started || b->clearing)
		return;
	b->started = true;
	b->started_at = b->checked_at = b->moved_at = sess->slot[number].since;
	b->moved = 0;
	b->times = (struct limit_times){ 0 };
	b->retransmits = 0;
	sess->streams.n_active = 0; /* a stream lost from now on is not replaced */
	for (i = 0; b->generates && i < b->streams; i++)
		if (sess->slot[i].stream != NULL && b->generating[i] != sess->slot[i].generation) {
			b->generating[i] = sess->slot[i].generation;
			stream_generate(sess->slot[i].stream, b->stream_bytes);
		}
	if (b->ops == NULL)
		return;
	if (b->generates)
		set_streams(sess, 0);
	b->ops->started(b->arg);
	for (i = 0; i < b->streams && !b->clearing; i++)
		if (b->early[i].ended)
			b->ops->ended(b->arg, i, &b->early[i], NULL);
}

/* Returns true if the stream has transferred all its bytes. */
static bool is_complete(const struct probe_session *b, const struct stream *s, struct probe_run *run)
{
	struct tcpinfo last;

	run->ended = true;
	run->retransmits = b->generates && stream_tcpinfo(s, &last) ? last.retransmits : 0;
	if (b->generates)
		return stream_generated(s, &run->from, &run->until);
	if (stream_received(s, &run->from, &run->until) != b->stream_bytes)
		return false;
	if (b->started && b->started_at.ns < run->from.ns)
		run->from = b->started_at; /* include the wait for the first byte */
	return true;
}

static void on_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	struct probe_session *b = sess->probe;
	struct probe_run run;
	bool complete = is_complete(b, s, &run);

	if (b->ops == NULL || b->clearing)
		return;
	if (b->started) {
		b->ops->ended(b->arg, stream_number(s), &run, complete ? NULL : why);
	} else if (complete) { /* all streams are connected at the peer, here not yet */
		b->early[stream_number(s)] = run;
		b->n_early++;
	}
}

/* A measuring starter takes only streams of the present level. */
static bool wants(const struct session *sess, unsigned number)
{
	const struct probe_session *b = sess->probe;

	return !b->early[number].ended && (b->ops == NULL || number < sess->streams.n_active);
}

static const struct payload_ops probe_payload = { .wants = wants, .opts = set_opts,
	.connected = on_connected, .lost = on_lost, .received = receive_blocks };

bool probe_session_tcpinfo(const struct session *sess, unsigned number, struct tcpinfo *out)
{
	if (!streams_tcpinfo(sess, number, out))
		return false;
	if (!sess->probe->generates) {
		out->acked_bytes = out->received_bytes;
		out->delivered_bytes = out->sent_segments = out->retransmits = 0;
		out->busy_s = out->window_s = out->buffer_s = 0;
		strcpy(out->congestion, sess->congestion.name);
	}
	return true;
}

bool probe_session_reported(const struct session *sess, struct limit_times *times, uint64_t *retransmits)
{
	*times = sess->probe->times;
	*retransmits = sess->probe->retransmits;
	return !sess->probe->generates;
}

void probe_session_on_report(struct session *sess, const struct wire_tcp_report *f)
{
	struct probe_session *b = sess->probe;

	b->times.elapsed_s += (double)f->elapsed_us / 1e6;
	b->times.busy_s += (double)f->busy_us / 1e6;
	b->times.window_s += (double)f->window_us / 1e6;
	b->times.buffer_s += (double)f->buffer_us / 1e6;
	b->retransmits += f->retransmits;
}

void probe_session_clear(struct session *sess)
{
	struct probe_session *b = sess->probe;

	b->clearing = true;
	set_streams(sess, 0);
	stream_connect_stop(sess);
	streams_close(sess, true); /* megabytes in socket buffers would overlap the next level for seconds */
	session_pump(sess);
}

void probe_session_finish(struct session *sess)
{
	engine_finish(sess->engine);
	session_pump(sess);
}

/* ---- Time ---- */

/* Acceptor: closes streams that exceed the time limit. */
static void close_old(struct session *sess, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	err_set(&why, PTCP_EREFUSED, "a measurement stream exceeded this host's time limit");
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL && mono_diff_ns(now, sess->slot[i].since) >= PROBE_SESSION_STREAM_NS)
			streams_lost(sess, sess->slot[i].stream, &why);
}

/* Starter: a level is running. */
static bool is_running(const struct probe_session *b)
{
	return b->ops != NULL && b->streams > 0 && b->started && !b->clearing;
}

/* In a measurement session pings prove nothing: the peer is alive only while bytes move. */
static void watch_level(struct session *sess, struct mono now)
{
	struct probe_session *b = sess->probe;
	uint64_t moved = 0;
	struct tcpinfo at;
	struct ptcp_err why;
	unsigned i;

	b->checked_at = now;
	for (i = 0; i < b->streams; i++)
		if (sess->slot[i].stream != NULL && probe_session_tcpinfo(sess, i, &at))
			moved += at.acked_bytes;
	if (moved != b->moved) {
		b->moved = moved;
		b->moved_at = now;
	} else if (mono_diff_ns(now, b->moved_at) >= sess->o.timeout_ns) {
		err_set(&why, PTCP_ETIMEOUT, "no data transferred for %.3g s (check the network and the other host)",
		    (double)sess->o.timeout_ns / 1e9);
		b->ops->ended(b->arg, 0, NULL, &why);
	}
}

void probe_session_pump(struct session *sess, struct mono now)
{
	struct probe_session *b = sess->probe;
	struct ptcp_err why;

	if (b == NULL)
		return;
	if (b->ops == NULL) {
		close_old(sess, now);
		return;
	}
	if (b->streams > 0 && !b->started && !b->clearing && now.ns >= b->start_by.ns) {
		b->start_by = MONO_NEVER;
		err_set(&why, PTCP_ECONNECT, "only %u of %u stream%s could be connected: %s",
		    sess->streams.n_connected, b->streams, plural(b->streams),
		    sess->streams.join_why.code != 0 ? sess->streams.join_why.msg : "no answer");
		b->ops->ended(b->arg, 0, NULL, &why);
	}
	if (is_running(b) && mono_diff_ns(now, b->checked_at) >= CHECK_NS)
		watch_level(sess, now);
	if (b->clearing && sess->streams.n_connected + sess->streams.n_ending == 0) {
		b->clearing = false;
		b->streams = 0;
		b->ops->cleared(b->arg);
	}
}

struct mono probe_session_deadline(const struct session *sess)
{
	const struct probe_session *b = sess->probe;
	struct mono at = MONO_NEVER;
	unsigned i;

	if (b == NULL)
		return MONO_NEVER;
	if (is_running(b))
		return mono_add_ns(b->checked_at, CHECK_NS);
	if (b->ops != NULL)
		return b->streams > 0 && !b->started && !b->clearing ? b->start_by : at;
	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->slot[i].stream != NULL)
			at = mono_min(at, mono_add_ns(sess->slot[i].since, PROBE_SESSION_STREAM_NS));
	return at;
}
