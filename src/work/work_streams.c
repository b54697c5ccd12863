/* Streams of a mover: connections made for the engine, jobs, and reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn/join_proof.h"
#include "core/byteorder.h"
#include "core/err.h"
#include "core/log.h"
#include "core/text.h"
#include "core/units.h"
#include "net/identity.h"
#include "wire/block.h"
#include "work/work_impl.h"

#define STREAMS_MAX (PTCP_STREAMS_MAX * 4) /* below WIRE_MOVER_HANDLES */

struct work_stream {
	struct list in_list;
	struct work *work;
	uint32_t handle;
	unsigned number;
	uint8_t session[WIRE_SESSION_BYTES], key[32], flags;
	char label[WIRE_LABEL_MAX + 1], congestion[WIRE_CONGESTION_MAX + 1], peer[PTCP_FINGERPRINT_BYTES];
	struct connect_hop relay[CONNECT_RELAYS_MAX];
	unsigned n_relays;
	struct connect *connect;    /* connection attempt until connected */
	struct stream *stream;      /* stream, once connected */
	uint64_t awaits;            /* id of the file that the stream waits for; 0: none */
	bool stopped;
};

static struct outbox *out_of(const struct work_stream *s) { return mover_link_out(s->work->link); }

static struct work_stream *work_streams_find(struct work *w, uint32_t handle)
{
	struct work_stream *s;

	LIST_EACH(&w->streams, s, struct work_stream, in_list)
		if (s->handle == handle)
			return s;
	return NULL;
}

/* The last of the stream: GONE, unless the mover is ending. */
static void drop(struct work_stream *s)
{
	struct work *w = s->work;

	if (!w->over)
		OUTBOX_PUT(out_of(s), gone, GONE, (&(struct wire_gone){ s->handle }));
	list_remove(&s->in_list);
	explicit_bzero(s->key, sizeof s->key);
	free(s);
	w->n_streams--;
	work_step_ended(w);
}

/* `cause` and `hop` are of a connection that failed. */
static void put_lost(struct work_stream *s, unsigned cause, unsigned hop, const struct ptcp_err *why,
    const struct mtu_lost *conn)
{
	struct wire_lost f = { .handle = s->handle, .cause = (uint8_t)cause, .hop = (uint8_t)hop,
		.acked_bytes = conn->delivered_bytes, .silent_ms = (uint64_t)(conn->silent_s * 1e3),
		.why = outbox_why(why) };

	if (!s->work->over)
		OUTBOX_PUT(out_of(s), lost, LOST, &f);
}

/* ---- Results of streams ---- */

static void on_sent(void *arg, struct stream *stream, struct stream_job *job)
{
	struct work_stream *s = arg;
	uint8_t terms[SND_JOB_EXTENTS * WIRE_TERM_BYTES], *p = terms;
	struct wire_unread unread = { .handle = s->handle };
	struct ptcp_err nomem;
	unsigned i;

	(void)stream;
	if (s->work->over)
		return;
	err_nomem(&nomem);
	for (i = 0; i < job->job.n; i++, p += WIRE_TERM_BYTES) {
		put_u64(p, job->failed[i] ? 0 : job->term[i].hi);
		put_u64(p + 8, job->failed[i] ? 0 : job->term[i].lo);
		if (!job->failed[i])
			continue;
		unread.extent = (uint8_t)i;
		unread.why = outbox_why(job->why[i] != NULL ? job->why[i] : &nomem);
		OUTBOX_PUT(out_of(s), unread, UNREAD, &unread);
	}
	OUTBOX_PUT(out_of(s), sent, SENT,
	    (&(struct wire_sent){ s->handle, (uint8_t)job->job.n, { terms, job->job.n * WIRE_TERM_BYTES } }));
}

static void on_idle(void *arg, struct stream *stream)
{
	(void)arg;
	(void)stream;
}

static void on_stream_lost(void *arg, struct stream *stream, const struct ptcp_err *why)
{
	put_lost(arg, 0, 0, why, stream_lost(stream));
}

static void on_gone(void *arg, struct stream *stream)
{
	struct work_stream *s = arg;

	stream_free(stream);
	s->stream = NULL;
	drop(s);
}

static void on_received(void *arg, struct stream *stream, struct stream_results *results)
{
	struct work_stream *s = arg;

	(void)stream;
	work_targets_received(s->work, s->handle, results);
}

static void on_unknown(void *arg, struct stream *stream, uint64_t id)
{
	struct work_stream *s = arg;

	if (s->stopped || s->work->over || !work_target_missing(s->work, id)) {
		stream_known(stream);
		return;
	}
	OUTBOX_PUT(out_of(s), want, WANT, (&(struct wire_want){ s->handle, id }));
	s->awaits = id;
}

static void answer(struct work_stream *s)
{
	if (s->awaits != 0)
		stream_known(s->stream);
	s->awaits = 0;
}

void work_streams_known(struct work *w, uint64_t id)
{
	struct work_stream *s;

	LIST_EACH(&w->streams, s, struct work_stream, in_list)
		if (s->awaits == id)
			answer(s);
}

bool work_stream_is_there(const struct work *w, uint32_t handle)
{
	const struct work_stream *s;

	LIST_EACH(&w->streams, s, struct work_stream, in_list)
		if (s->handle == handle)
			return !s->stopped;
	return false;
}

static const struct stream_ops stream_ops = { .sent = on_sent, .idle = on_idle, .received = on_received,
	.unknown = on_unknown, .lost = on_stream_lost, .gone = on_gone };

/* ---- Connecting ---- */

static int write_join(void *arg, struct chan *c, struct ptcp_err *e)
{
	const struct work_stream *s = arg;

	return join_proof_write(c, s->session, s->key, s->number, e);
}

/* Takes `c`, also on failure. */
static int attach(struct work_stream *s, struct chan *c, struct ptcp_err *e)
{
	struct work *w = s->work;
	struct stream_opts o = { .context = &w->process->context, .number = s->number, .chan = c, .tapped = true,
		.pacer = &w->pacer, .joining = (s->flags & WIRE_STREAM_AHEAD) != 0,
		.verify = (s->flags & WIRE_STREAM_VERIFY) != 0, .only_stream = true,
		.files = w->receives ? &w->targets.files : NULL, .ops = &stream_ops, .arg = s };
	int r;

	if ((s->flags & WIRE_STREAM_PATIENT) != 0)
		sock_no_user_timeout(chan_fd(c));
	if ((r = stream_new(&s->stream, &o, e)) < 0)
		s->stream = NULL;
	return r;
}

static void on_connected(void *arg, const struct connect_result *r)
{
	const struct mtu_lost none = { 0 };
	struct work_stream *s = arg;
	struct ptcp_err why;

	s->connect = NULL;
	if (r->chan == NULL) {
		put_lost(s, r->cause, r->hop, &r->why, &none);
		return; /* the stream waits for STOP */
	}
	if (attach(s, r->chan, &why) < 0) {
		put_lost(s, CONNECT_UNREACHABLE, s->n_relays, &why, &none);
		return;
	}
	OUTBOX_PUT(out_of(s), connected, CONNECTED, (&(struct wire_connected){ s->handle }));
}

/* Differs modulo WIRE_MOVER_HANDLES from those in use. */
static uint32_t free_handle(struct work *w)
{
	const struct work_stream *s;
	bool used;

	do {
		used = false;
		w->last_handle++;
		LIST_EACH(&w->streams, s, struct work_stream, in_list)
			used |= s->handle % WIRE_MOVER_HANDLES == w->last_handle % WIRE_MOVER_HANDLES;
	} while (used);
	return w->last_handle;
}

void work_accept(struct work *w, struct chan *c, unsigned number)
{
	struct work_stream *s = w->n_streams < STREAMS_MAX ? calloc(1, sizeof *s) : NULL;
	struct wire_accepted f = { .number = (uint16_t)number };
	struct ptcp_err why;

	if (s == NULL) {
		chan_free(c);
		return;
	}
	s->work = w;
	s->handle = free_handle(w);
	s->number = number;
	s->flags = w->session->flags;
	f.handle = s->handle;
	identity_digest(f.peer, chan_fingerprint(c));
	if (w->session->congestion[0] != '\0')
		sock_set_congestion(chan_fd(c), w->session->congestion);
	list_append(&w->streams, &s->in_list);
	w->n_streams++;
	if (attach(s, c, &why) < 0) {
		list_remove(&s->in_list);
		w->n_streams--;
		free(s);
		return; /* the client will notice and connect again */
	}
	OUTBOX_PUT(out_of(s), accepted, ACCEPTED, &f);
}

/* The engine, which knows the user's hosts, decides whether the relay is trusted. */
static void on_relay(void *arg, unsigned hop, const struct connect_peer *peer)
{
	struct work_stream *s = arg;
	struct wire_hop f = { .handle = s->handle, .hop = (uint8_t)hop,
		.certificates = { peer->certificates.bytes, peer->certificates.n } };

	identity_digest(f.peer, peer->fingerprint);
	OUTBOX_PUT(out_of(s), hop, HOP, &f);
}

int work_on_pass(struct work *w, const struct wire_pass *f, struct ptcp_err *e)
{
	struct work_stream *s = work_streams_find(w, f->handle);

	if (s == NULL || s->n_relays == 0)
		return err_set(e, PTCP_EPROTO, "PASS of an unknown stream");
	if (s->connect != NULL) /* else lost, and the engine does not know yet */
		connect_pass(s->connect, f->grant.p, f->grant.n);
	return 0;
}

static bool take_relays(struct work_stream *s, const struct wire_stream *f)
{
	char text[WIRE_RELAYS_MAX + 1], *rest = f->relays.n > 0 ? span_copy(text, f->relays) : NULL, *part;

	while ((part = strsep(&rest, ",")) != NULL) {
		struct connect_hop *h = &s->relay[s->n_relays++];

		if (s->n_relays > CONNECT_RELAYS_MAX || sock_split(part, h->host, &h->port, 0, NULL) < 0 ||
		    h->port == 0)
			return false;
	}
	return true;
}

static int start_connect(struct work_stream *s, const struct wire_stream *f, struct ptcp_err *e)
{
	char host[WIRE_HOST_MAX + 1];
	bool ahead = (f->flags & WIRE_STREAM_AHEAD) != 0, plaintext = f->cipher == PTCP_CIPHER_NONE;
	struct connect_opts o = { .context = &s->work->process->context, .host = span_copy(host, f->host),
		.port = f->port,
		.relay = s->relay, .n_relays = s->n_relays, .spool_bytes = f->spool_bytes,
		.route_session = f->route_session,
		.ask = on_relay, .timeout_ns = f->connect_ms * NS_PER_MS, .alpn = ALPN_DATA,
		.label = s->label[0] != '\0' ? s->label : NULL,
		.sock = { .family = f->family, .timeout_ns = f->timeout_ms * NS_PER_MS,
		    .congestion = s->congestion[0] != '\0' ? s->congestion : NULL, .segment_bytes = f->segment_bytes },
		.one_cipher = !plaintext, .cipher = (enum ptcp_cipher)f->cipher, .plaintext = plaintext,
		.answer = ahead ? 0 : WIRE_JOINED, .fingerprint = s->peer, .first = write_join,
		.done = on_connected, .arg = s };

	return connect_start(&s->connect, &o, e);
}

int work_on_stream(struct work *w, const struct wire_stream *f, struct ptcp_err *e)
{
	const struct mtu_lost none = { 0 };
	struct work_stream *s;
	struct ptcp_err why;

	if (w->session != NULL || work_streams_find(w, f->handle) != NULL || w->n_streams >= STREAMS_MAX ||
	    f->cipher > PTCP_CIPHER_NONE ||
	    (f->cipher == PTCP_CIPHER_NONE && (f->flags & WIRE_STREAM_AHEAD) != 0) ||
	    ((f->flags & WIRE_STREAM_RECEIVE) != 0) != w->receives)
		return err_set(e, PTCP_EPROTO, "an impossible STREAM");
	if ((s = calloc(1, sizeof *s)) == NULL)
		return err_nomem(e);
	if (!take_relays(s, f)) {
		free(s);
		return err_set(e, PTCP_EPROTO, "an impossible STREAM");
	}
	s->work = w;
	s->handle = f->handle;
	s->number = f->number;
	s->flags = f->flags;
	memcpy(s->session, f->session, sizeof s->session);
	memcpy(s->key, f->key, sizeof s->key);
	identity_digest_text(s->peer, f->peer);
	span_copy(s->label, f->label);
	span_copy(s->congestion, f->congestion);
	list_append(&w->streams, &s->in_list);
	w->n_streams++;
	if (start_connect(s, f, &why) < 0)
		put_lost(s, CONNECT_UNREACHABLE, 0, &why, &none);
	return 0;
}

static void stop(struct work_stream *s, bool reset)
{
	s->stopped = true;
	connect_cancel(s->connect);
	s->connect = NULL;
	if (s->stream == NULL) {
		drop(s);
		return;
	}
	answer(s);
	stream_stop(s->stream, reset);
}

int work_on_stop(struct work *w, const struct wire_stop *f, struct ptcp_err *e)
{
	struct work_stream *s = work_streams_find(w, f->handle);

	if (s == NULL)
		return err_set(e, PTCP_EPROTO, "STOP of an unknown stream");
	stop(s, f->reset != 0);
	return 0;
}

void work_stop_streams(struct work *w)
{
	struct work_stream *s;

	LIST_EACH(&w->streams, s, struct work_stream, in_list)
		stop(s, true);
}

/* ---- Jobs ---- */

/* A block of a file that the engine has described. */
static bool take_extent(const struct work *w, struct stream_job *job, unsigned i, const uint8_t *p)
{
	struct snd_extent *x = &job->job.extent[i];
	struct source *source;
	struct wire_grid grid;

	*x = (struct snd_extent){ .id = get_u64(p), .offset = get_u64(p + 8), .block = get_u32(p + 16),
		.length = get_u32(p + 20) };
	if ((source = work_files_find(&w->files, x->id)) == NULL)
		return false;
	grid = wire_grid_of(source_size_bytes(source));
	if (x->length != wire_grid_length(grid, x->block) || x->length == 0 ||
	    x->offset != (uint64_t)x->block * grid.block_bytes)
		return false;
	job->source[i] = source_ref(source);
	job->job.n = i + 1;
	return true;
}

int work_on_send(struct work *w, const struct wire_send *f, struct ptcp_err *e)
{
	struct work_stream *s = work_streams_find(w, f->handle);
	struct stream_job *job;
	unsigned i;

	if (s == NULL)
		return err_set(e, PTCP_EPROTO, "a job for an unknown stream");
	if (s->stream == NULL)
		return 0; /* lost, and the engine does not know yet */
	if (w->receives)
		return err_set(e, PTCP_EPROTO, "a job for a receiving stream");
	if ((job = stream_free_job(s->stream)) == NULL)
		return err_set(e, PTCP_EPROTO, "too many jobs for a stream");
	job->job.n = 0;
	for (i = 0; i < f->n; i++)
		if (!take_extent(w, job, i, f->extents.p + i * WIRE_EXTENT_BYTES))
			return err_set(e, PTCP_EPROTO, "a block of an unknown file, or off its grid");
	stream_send(s->stream);
	return 0;
}

int work_on_check(struct work *w, const struct wire_check *f, struct ptcp_err *e)
{
	struct work_stream *s = work_streams_find(w, f->handle);

	if (s == NULL)
		return err_set(e, PTCP_EPROTO, "CHECK of an unknown stream");
	if (s->stream != NULL)
		stream_check(s->stream, f->silent_ns, f->unacked != 0);
	return 0;
}

int work_on_pace(struct work *w, const struct wire_pace *f, struct ptcp_err *e)
{
	char name[WIRE_CONGESTION_MAX + 1];
	struct work_stream *s;

	(void)e;
	pacer_set(&w->pacer, f->bps, mono_now());
	span_copy(name, f->congestion);
	if (name[0] != '\0' && w->session != NULL)
		strcpy(w->session->congestion, name); /* later connections use it */
	LIST_EACH(&w->streams, s, struct work_stream, in_list)
		if (name[0] != '\0' && s->stream != NULL && stream_tap(s->stream) >= 0)
			sock_set_congestion(stream_tap(s->stream), name);
	return 0;
}

/* ---- Reports ---- */

static uint64_t us(double s) { return s > 0 ? (uint64_t)(s * 1e6) : 0; }

void work_report_traffic(struct work *w)
{
	struct work_stream *s;
	struct wire_traffic f;
	char shown[TEXT_NAME_BYTES];
	struct tcpinfo t;

	if (direct_io_report(&w->direct_io))
		log_at(&w->process->context.log, LOG_WARN, "mover", "event=no-direct-io file=%s why=\""
		    DIRECT_IO_REFUSED_WHY "\"", text_escape_quoted(shown, sizeof shown, w->direct_io.path));
	LIST_EACH(&w->streams, s, struct work_stream, in_list) {
		if (s->stream == NULL || !stream_tcpinfo(s->stream, &t))
			continue;
		f = (struct wire_traffic){ .handle = s->handle, .moved_bytes = stream_moved(s->stream),
			.on_disk = stream_on_disk(s->stream) || w->targets.flush != NULL, .acked_bytes = t.acked_bytes,
			.received_bytes = t.received_bytes, .sacked_bytes = t.sacked_bytes,
			.delivered_bytes = t.delivered_bytes,
			.sent_segments = t.sent_segments, .retransmits = t.retransmits, .rtt_us = us(t.rtt_s),
			.min_rtt_us = us(t.min_rtt_s), .silent_us = us(t.silent_s),
			.no_data_us = us(t.no_data_s), .busy_us = us(t.busy_s), .window_us = us(t.window_s),
			.buffer_us = us(t.buffer_s), .timeouts = t.timeouts, .unacked = t.unacked,
			.congestion = { (const uint8_t *)t.congestion, strlen(t.congestion) } };
		OUTBOX_PUT(out_of(s), traffic, TRAFFIC, &f);
	}
}
