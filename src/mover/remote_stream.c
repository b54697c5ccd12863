/* Streams that a mover carries out: the engine's end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/byteorder.h"
#include "core/err.h"
#include "core/units.h"
#include "mover/movers_impl.h"
#include "wire/outbox.h"

static struct outbox *out_of(const struct mover *m) { return mover_link_out(m->link); }

/* ---- Connecting ---- */

static struct span span_of(const char *text) { return (struct span){ (const uint8_t *)text, strlen(text) }; }

static int put_stream(struct mover *m, struct remote_stream *r, const struct remote_opts *o, struct ptcp_err *e)
{
	char relays[WIRE_RELAYS_MAX + 1];
	struct wire_stream f = { .handle = r->handle, .number = (uint16_t)o->number, .cipher = (uint8_t)o->cipher,
		.family = (uint8_t)o->sock.family, .segment_bytes = (uint16_t)o->sock.segment_bytes,
		.flags = (uint8_t)((o->verify ? WIRE_STREAM_VERIFY : 0) | (o->ahead ? WIRE_STREAM_AHEAD : 0) |
		    (o->patient ? WIRE_STREAM_PATIENT : 0) | (o->receives ? WIRE_STREAM_RECEIVE : 0)),
		.timeout_ms = (uint32_t)(o->sock.timeout_ns / NS_PER_MS) + 1,
		.connect_ms = (uint32_t)(o->connect_ns / NS_PER_MS) + 1, .port = (uint16_t)o->port,
		.spool_bytes = o->spool_bytes, .route_session = o->n_relays > 0 ? o->route_session : 0,
		.relays = remote_relays(relays, o->relay, o->n_relays), .host = span_of(o->host),
		.label = span_of(o->label != NULL ? o->label : ""),
		.congestion = span_of(m->set->congestion) };
	int code;

	memcpy(f.session, o->session, sizeof f.session);
	identity_digest(f.peer, o->peer);
	r->peer = get_u32(f.peer);
	if ((code = tls_mover_key(f.key, o->key, m->fingerprint)) < 0)
		return err_nomem(e);
	OUTBOX_PUT(out_of(m), stream, STREAM, &f);
	explicit_bzero(f.key, sizeof f.key);
	return 0;
}

int remote_connect(struct remote_stream **out, struct mover *m, const struct remote_opts *o, struct ptcp_err *e)
{
	struct remote_stream *r = calloc(1, sizeof *r);
	unsigned tries;

	if (r == NULL)
		return err_nomem(e);
	for (tries = 0; tries < MOVER_HANDLES && m->remote[++m->next_handle % MOVER_HANDLES] != NULL; tries++)
		;
	r->handle = m->next_handle;
	if (tries == MOVER_HANDLES || put_stream(m, r, o, e) < 0) {
		free(r);
		return err_set(e, PTCP_EPEER, "mover %s: too many streams", m->host);
	}
	r->mover = m;
	r->done = o->done;
	r->check = o->check;
	r->arg = o->arg;
	r->relay = o->relay;
	r->n_relays = o->n_relays;
	snprintf(r->to.host, sizeof r->to.host, "%s", o->host);
	r->to.port = o->port;
	r->issuer = o->issuer;
	m->remote[r->handle % MOVER_HANDLES] = r;
	*out = r;
	return 0;
}

uint32_t remote_peer(const struct remote_stream *r) { return r->peer; }
uint32_t remote_mover(const struct remote_stream *r) { return r->mover != NULL ? r->mover->id : 0; }

void remote_count(struct remote_stream *r, uint64_t bytes)
{
	if (r->mover != NULL)
		r->mover->bytes += bytes;
}

static void drop(struct remote_stream *r)
{
	if (r->mover != NULL)
		r->mover->remote[r->handle % MOVER_HANDLES] = NULL;
	free(r);
}

static void put_stop(const struct remote_stream *r, bool reset)
{
	OUTBOX_PUT(out_of(r->mover), stop, STOP, (&(struct wire_stop){ r->handle, reset }));
}

void remote_cancel(struct remote_stream *r)
{
	if (r == NULL)
		return;
	r->state = REMOTE_ORPHAN; /* REMOTE_ORPHAN until GONE */
	if (r->mover == NULL)
		drop(r);
	else
		put_stop(r, true);
}

/* ---- Operations of a stream ---- */

void remote_attach(struct remote_stream *r, struct stream *s)
{
	r->stream = s;
	r->state = REMOTE_STREAM;
	r->mover->n_streams++;
}

/* The longest root that the path is, or lies beneath; NULL: none. */
const char *remote_below_root(const struct movers *set, const char *path, uint16_t *root)
{
	const char *rest = NULL;
	size_t best = 0, n;
	unsigned i;

	for (i = 0; i < set->invitation.n_roots; i++) {
		n = strlen(set->invitation.root[i]);
		while (n > 0 && set->invitation.root[i][n - 1] == '/')
			n--;
		if ((rest == NULL || n > best) && strncmp(path, set->invitation.root[i], n) == 0 &&
		    (path[n] == '/' || path[n] == '\0')) {
			best = n;
			*root = (uint16_t)i;
			rest = path[n] == '/' ? path + n + 1 : path + n;
		}
	}
	return rest;
}

const char *remote_absolute(struct movers *set, const char *given)
{
	struct movers_base *b = &set->into;
	size_t i;

	for (i = 0; i < set->o.n_bases; i++)
		if (strcmp(set->base[i].given, given) == 0)
			return set->base[i].absolute;
	if (b->given != NULL && strcmp(b->given, given) == 0)
		return b->absolute;
	free(b->given);
	free(b->absolute);
	b->given = strdup(given);
	b->absolute = realpath(given[0] != '\0' ? given : ".", NULL);
	if (b->given == NULL || b->absolute == NULL) {
		free(b->given);
		b->given = NULL;
		return "";
	}
	return b->absolute;
}

/* A path that is too long, or in no root, becomes one that the mover cannot open: the file fails there. */
static void put_source(struct mover *m, uint64_t id, const struct walk_entry *w)
{
	char path[2 * DIR_PATH_RAW_BYTES], below[DIR_PATH_RAW_BYTES];
	const char *rest;
	struct wire_source f = { .id = id, .size_bytes = w->size_bytes, .ino = w->ino, .mtime_s = w->mtime.tv_sec,
		.mtime_ns = (uint32_t)w->mtime.tv_nsec, .ctime_s = w->ctime.tv_sec,
		.ctime_ns = (uint32_t)w->ctime.tv_nsec };

	snprintf(path, sizeof path, "%s/%s", remote_absolute(m->set, dir_root_path(w->dir)),
	    dir_path_raw(w->dir, w->name, below, sizeof below));
	rest = remote_below_root(m->set, path, &f.root);
	f.path = span_of(rest == NULL || strlen(rest) > WIRE_PATH_MAX ? "." : rest);
	OUTBOX_PUT(out_of(m), source, SOURCE, &f);
}

static void on_send(struct stream *s, struct stream_job *job)
{
	struct remote_stream *r = stream_remote(s);
	uint8_t extents[SND_JOB_EXTENTS * WIRE_EXTENT_BYTES], *p = extents;
	const struct snd_extent *x;
	uint64_t *known;
	unsigned i;

	if (r->mover == NULL)
		return; /* the engine sends the blocks on another stream */
	for (i = 0; i < job->job.n; i++, p += WIRE_EXTENT_BYTES) {
		job->job.extent[i].omit = 0; /* movers send whole blocks */
		x = &job->job.extent[i];
		known = &r->mover->known[wire_slot(x->id)];
		if (*known != x->id)
			put_source(r->mover, x->id, source_entry(job->source[i]));
		*known = x->id;
		put_u64(p, x->id);
		put_u64(p + 8, x->offset);
		put_u32(p + 16, x->block);
		put_u32(p + 20, x->length);
	}
	OUTBOX_PUT(out_of(r->mover), send, SEND,
	    (&(struct wire_send){ r->handle, (uint8_t)job->job.n, { extents, job->job.n * WIRE_EXTENT_BYTES } }));
}

static void on_check(struct stream *s, uint64_t silent_ns, bool unacked)
{
	const struct remote_stream *r = stream_remote(s);

	if (r->mover != NULL)
		OUTBOX_PUT(out_of(r->mover), check, CHECK, (&(struct wire_check){ r->handle, silent_ns, unacked }));
}

static void on_stop(struct stream *s, bool reset)
{
	struct remote_stream *r = stream_remote(s);

	r->state = REMOTE_STOPPING;
	if (r->mover != NULL)
		put_stop(r, reset);
}

/* The stream is being freed. */
static void on_forget(struct stream *s)
{
	struct remote_stream *r = stream_remote(s);

	if (r->mover != NULL)
		r->mover->n_streams--;
	drop(r);
}

const struct stream_kind remote_stream_kind = { on_send, on_check, on_stop, on_forget };

/* ---- Frames of the mover ---- */

int remote_no_such(struct ptcp_err *e) { return err_set(e, PTCP_EPROTO, "a frame about an unknown stream or job"); }

struct remote_stream *remote_find(const struct mover *m, uint32_t handle)
{
	struct remote_stream *r = m->remote[handle % MOVER_HANDLES];

	return r != NULL && r->handle == handle ? r : NULL;
}

int remote_on_connected(struct mover *m, const struct wire_connected *f, struct ptcp_err *e)
{
	struct remote_stream *r = remote_find(m, f->handle);

	if (r == NULL || (r->state != REMOTE_CONNECTING && r->state != REMOTE_ORPHAN))
		return remote_no_such(e);
	if (r->state == REMOTE_CONNECTING) {
		r->state = REMOTE_CONNECTED;
		r->done(r->arg, r, NULL);
	}
	return 0;
}

/* The session attaches a stream, or cancels. */
int remote_on_accepted(struct mover *m, const struct wire_accepted *f, struct ptcp_err *e)
{
	struct remote_stream **at = &m->remote[f->handle % MOVER_HANDLES];
	const struct movers_session *s = &m->set->session;

	if (!m->listens || *at != NULL || f->number >= s->streams)
		return remote_no_such(e);
	if ((*at = calloc(1, sizeof **at)) == NULL)
		return err_nomem(e);
	(*at)->handle = f->handle;
	(*at)->peer = get_u32(f->peer);
	(*at)->mover = m;
	(*at)->state = REMOTE_CONNECTED;
	s->accepted(s->arg, f->number, *at);
	return 0;
}

void remote_reason(struct ptcp_err *why, const struct mover *m, const struct wire_why *w)
{
	outbox_reason(why, w);
	why->from_peer = false; /* a mover is of this end */
	err_while(why, why->code, "mover %s", m->host);
}

void remote_fail(struct remote_stream *r, const struct connect_result *result)
{
	r->state = REMOTE_ORPHAN;
	r->done(r->arg, NULL, result);
	put_stop(r, true);
}

/* A connection that was never made is over; a stream is stopped by its owner. */
int remote_on_lost(struct mover *m, const struct wire_lost *f, struct ptcp_err *e)
{
	const struct mtu_lost conn = { f->acked_bytes, (double)f->silent_ms / 1e3 };
	struct remote_stream *r = remote_find(m, f->handle);
	struct connect_result result = { .cause = f->cause, .hop = f->hop };

	if (r == NULL || (r->state == REMOTE_CONNECTING && (f->cause > CONNECT_RELAY || f->hop > r->n_relays)))
		return remote_no_such(e);
	remote_reason(&result.why, m, &f->why);
	if (r->state == REMOTE_CONNECTING)
		remote_fail(r, &result);
	else if (r->state == REMOTE_STREAM)
		stream_end(r->stream, &result.why, &conn);
	return 0;
}

int remote_on_gone(struct mover *m, const struct wire_gone *f, struct ptcp_err *e)
{
	struct remote_stream *r = remote_find(m, f->handle);

	if (r == NULL || (r->state != REMOTE_STOPPING && r->state != REMOTE_ORPHAN))
		return remote_no_such(e);
	if (r->state == REMOTE_ORPHAN)
		drop(r);
	else
		stream_gone(r->stream);
	return 0;
}

/* The oldest job of a stream. 1: results after STOP, to be ignored. */
static int job_of(const struct mover *m, uint32_t handle, struct stream_job **out, struct ptcp_err *e)
{
	const struct remote_stream *r = remote_find(m, handle);

	if (r != NULL && (r->state == REMOTE_STOPPING || r->state == REMOTE_ORPHAN))
		return 1;
	*out = r != NULL && r->state == REMOTE_STREAM ? stream_oldest_job(r->stream) : NULL;
	return *out != NULL ? 0 : remote_no_such(e);
}

int remote_on_unread(struct mover *m, const struct wire_unread *f, struct ptcp_err *e)
{
	struct stream_job *job;
	int code = job_of(m, f->handle, &job, e);

	if (code != 0)
		return code < 0 ? code : 0;
	if (f->extent >= job->job.n || job->failed[f->extent])
		return remote_no_such(e);
	job->failed[f->extent] = true;
	if ((job->why[f->extent] = malloc(sizeof *e)) != NULL)
		remote_reason(job->why[f->extent], m, &f->why);
	return 0;
}

int remote_on_sent(struct mover *m, const struct wire_sent *f, struct ptcp_err *e)
{
	struct stream_job *job;
	int code = job_of(m, f->handle, &job, e);
	unsigned i;

	if (code != 0)
		return code < 0 ? code : 0;
	if (f->n != job->job.n)
		return remote_no_such(e);
	for (i = 0; i < f->n; i++) {
		job->term[i] = (struct digest){ get_u64(f->terms.p + i * WIRE_TERM_BYTES),
			get_u64(f->terms.p + i * WIRE_TERM_BYTES + 8) };
		if (!job->failed[i])
			m->bytes += job->job.extent[i].length;
	}
	stream_job_done(remote_find(m, f->handle)->stream);
	return 0;
}

int remote_on_traffic(struct mover *m, const struct wire_traffic *f, struct ptcp_err *e)
{
	const struct remote_stream *r = remote_find(m, f->handle);
	struct tcpinfo t = { .acked_bytes = f->acked_bytes, .received_bytes = f->received_bytes,
		.sacked_bytes = f->sacked_bytes,
		.delivered_bytes = f->delivered_bytes, .sent_segments = f->sent_segments, .retransmits = f->retransmits,
		.rtt_s = (double)f->rtt_us / 1e6, .min_rtt_s = (double)f->min_rtt_us / 1e6,
		.silent_s = (double)f->silent_us / 1e6,
		.no_data_s = (double)f->no_data_us / 1e6, .busy_s = (double)f->busy_us / 1e6,
		.window_s = (double)f->window_us / 1e6, .buffer_s = (double)f->buffer_us / 1e6, .timeouts = f->timeouts,
		.unacked = f->unacked != 0 };

	if (r == NULL)
		return remote_no_such(e);
	span_copy(t.congestion, f->congestion);
	if (r->state == REMOTE_STREAM)
		stream_observe(r->stream, f->moved_bytes, f->on_disk != 0, &t);
	return 0;
}

/* ---- The end of a mover ---- */

void remote_end_all(struct mover *m, const struct ptcp_err *why)
{
	const struct connect_result result = { .cause = CONNECT_UNREACHABLE, .why = *why };
	const struct mtu_lost unknown = { 0 };
	struct remote_stream *r;
	unsigned i;

	for (i = 0; i < MOVER_HANDLES; i++) {
		if ((r = m->remote[i]) == NULL)
			continue;
		m->remote[i] = NULL;
		r->mover = NULL;
		switch (r->state) {
		case REMOTE_CONNECTING:
			r->done(r->arg, NULL, &result);
			free(r);
			break;
		case REMOTE_CONNECTED:
		case REMOTE_ORPHAN:
			free(r);
			break;
		case REMOTE_STREAM:
			stream_end(r->stream, why, &unknown); /* its owner stops the stream */
			/* fall through */
		case REMOTE_STOPPING:
			stream_gone(r->stream);
		}
	}
}
