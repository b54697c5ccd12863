/* Between two daemons: asks one of them to send to the other, fetch from it, or measure the way there, by a grant,
 * and hears how that goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

static void aim(struct ptcp_transfer *t, const struct remote *at)
{
	t->target = *at;
	remote_name(at, t->known_as, sizeof t->known_as);
}

void remote_job_aim(struct ptcp_transfer *t)
{
	struct remote_job *h = t->third;

	buf_consume(&h->in, buf_len(&h->in));
	buf_consume(&h->out.b, buf_len(&h->out.b));
	if (h->asks != NULL)
		return;
	aim(t, &h->other);
	if (h->audience[0] == '\0' && !client_knows_host(t, h->audience)) {
		h->audience[0] = '\0';
		return;
	}
	aim(t, &h->doer);
}

/* ---- Asking ---- */

static void flush(struct ptcp_transfer *t)
{
	struct buf *b = &t->third->out.b;
	size_t n;

	while (buf_len(b) > 0 && (n = chan_write(t->chan, buf_head(b), buf_len(b))) > 0)
		buf_consume(b, n);
	chan_flush(t->chan);
}

/* What is known of links is there, and told in one go: whoever dribbles it is given up. */
static bool answers_at_once(const struct remote_job *h)
{
	return h->asks != NULL && h->asks->answer == WIRE_LINK;
}

/* How long it may come no further, as a peer that says it is busy (engine/engine.h); what is measured or asked comes sooner. */
static uint64_t patience_ns(const struct ptcp_transfer *t)
{
	const struct remote_job *h = t->third;

	return client_timeout_ns(t) * (h->asks != NULL || h->mode == WIRE_GRANT_PROBE ? TIMING_TIMEOUTS * 3 :
	    h->progress.activity == WIRE_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS : ENGINE_BUSY_TIMEOUTS);
}

/* Until we hear of it again. */
static void wait(struct ptcp_transfer *t)
{
	timer_set(t->timer, mono_add_ns(mono_now(), client_timeout_ns(t)));
}

static void silent(struct ptcp_transfer *t)
{
	struct ptcp_err why;

	err_set(&why, PTCP_ETIMEOUT, "%s: not heard of for %.3g s (check the network and that host, then run it again)",
	    t->known_as, t->o.timeout_s);
	client_finish(t, &why);
}

/* It lives, but that is all. */
static bool is_stuck(struct ptcp_transfer *t, struct ptcp_err *e)
{
	if (mono_diff_ns(mono_now(), t->third->moved) <= patience_ns(t))
		return false;
	err_set(e, PTCP_ETIMEOUT, "%s: no progress for %.3g s, though it can be heard (look what it does, then run it again)",
	    t->known_as, (double)patience_ns(t) / 1e9);
	return true;
}

/* ---- Hearing ---- */

struct session_progress remote_job_progress(const struct wire_progress *f)
{
	return (struct session_progress){
		.bytes = f->bytes, .total_bytes = f->total_bytes, .files = f->files, .total_files = f->total_files,
		.failed = f->failed, .wire_bytes = f->wire_bytes, .resumed_bytes = f->resumed_bytes,
		.file_bytes = f->file_bytes, .others = f->others, .total_known = f->total_known, .streams = f->streams,
		.streams_most = f->streams_most,
		.activity = f->activity == WIRE_SYNCING ? PTCP_SYNCING :
		    f->activity == WIRE_VERIFYING ? PTCP_VERIFYING : PTCP_TRANSFERRING
	};
}

static struct session_progress last_progress(const struct remote_job *h) { return remote_job_progress(&h->progress); }

void remote_job_name(const struct ptcp_transfer *t, uint64_t id, char out[REMOTE_JOB_NAME_BYTES])
{
	snprintf(out, REMOTE_JOB_NAME_BYTES, "%0*llx@%s", REMOTE_JOB_ID_DIGITS, (unsigned long long)id, t->known_as);
}

/* What is said of the transfer reads as if it were our own. */
void remote_job_reason(struct ptcp_err *out, uint16_t code, struct span text)
{
	outbox_reason(out, code, text);
	if (code == -PTCP_ECONNECT || code == -PTCP_EUSAGE || code == -PTCP_ECANCELED)
		out->code = -(int)code;
}

static int on_started(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	struct remote_job *h = t->third;
	char name[REMOTE_JOB_NAME_BYTES];
	struct ptcp_event ev = { .type = PTCP_EVENT_DETACHED, .text = name };
	struct wire_started f;
	int r;

	if ((r = wire_started_decode(&f, in, e)) < 0)
		return r;
	if (t->announced)
		return err_set(e, PTCP_EPROTO, "unexpected STARTED frame");
	h->moved = mono_now();
	if (t->o.detach) {
		remote_job_name(t, f.id, name);
		client_emit(t, &ev);
		client_finish(t, NULL);
		return 0;
	}
	snprintf(t->peer, sizeof t->peer, "%.*s", (int)f.peer.n, (const char *)f.peer.p);
	strcpy(t->fingerprint, h->audience);
	client_started(t);
	return 0;
}

static bool is_further(const struct wire_progress *f, const struct wire_progress *than)
{
	return f->bytes != than->bytes || f->total_bytes != than->total_bytes || f->files != than->files ||
	    f->total_files != than->total_files || f->others != than->others || f->wire_bytes != than->wire_bytes ||
	    f->failed != than->failed;
}

static int on_progress(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	struct remote_job *h = t->third;
	struct wire_progress f;
	int r;

	if ((r = wire_progress_decode(&f, in, e)) < 0)
		return r;
	if (h->mode != WIRE_GRANT_PROBE && is_further(&f, &h->progress))
		h->moved = mono_now();
	h->progress = f;
	if (t->announced)
		client_show_progress(t);
	return 0;
}

static int on_event(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	const struct session_ops *ops = &client_session_ops;
	char path[WIRE_PATH_MAX + 1];
	struct wire_event f;
	struct ptcp_err why;
	int r;

	if ((r = wire_event_decode(&f, in, e)) < 0)
		return r;
	if (!t->announced)
		return err_set(e, PTCP_EPROTO, "unexpected EVENT frame");
	memcpy(path, f.path.n > 0 ? (const char *)f.path.p : "", f.path.n);
	path[f.path.n] = '\0';
	outbox_reason(&why, f.code, f.text);
	switch (f.kind) {
	case WIRE_EVENT_DONE: ops->file(t, path, PTCP_FILE_DONE, NULL); break;
	case WIRE_EVENT_SKIPPED: ops->file(t, path, PTCP_FILE_SKIPPED, f.text.n > 0 ? &why : NULL); break;
	case WIRE_EVENT_FAILED: ops->file(t, path, PTCP_FILE_FAILED, &why); break;
	case WIRE_EVENT_WARNING: ops->warning(t, f.path.n > 0 ? path : NULL, why.msg); break;
	default: ops->streams(t, f.from, f.to, why.msg); break;
	}
	return 0;
}

static int on_end(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	struct wire_end f;
	int r;

	if ((r = wire_end_decode(&f, in, e)) < 0)
		return r;
	if (!t->announced || f.files != t->third->progress.files || f.failed != t->third->progress.failed)
		return err_set(e, PTCP_EPROTO, "unexpected END frame");
	client_outcome(t, NULL);
	return 0;
}

static int on_error(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	struct wire_error f;
	struct ptcp_err why;
	int r;

	if ((r = wire_error_decode(&f, in, e)) < 0)
		return r;
	remote_job_reason(&why, f.code, f.text);
	if (why.code == PTCP_ECONNECT || why.code == PTCP_EREFUSED)
		err_while(&why, why.code, "%s", t->known_as);
	if (remote_job_can_turn(t, &why)) {
		t->third->first = why;
		t->third->turning = true;
		return 0;
	}
	client_outcome(t, &why);
	return 0;
}

static int frame(struct ptcp_transfer *t, unsigned type, struct span in, struct ptcp_err *e)
{
	switch (type) {
	case WIRE_ERROR: return on_error(t, in, e);
	case WIRE_STARTED: return on_started(t, in, e);
	case WIRE_PROGRESS: return on_progress(t, in, e);
	case WIRE_EVENT: return on_event(t, in, e);
	case WIRE_END: return on_end(t, in, e);
	case WIRE_SAMPLE: return remote_job_sampled(t->third, in, e);
	case WIRE_STATE:
	case WIRE_LINK:
		if (t->third->asks != NULL && type == t->third->asks->answer)
			return t->third->asks->heard(t, in, e);
		/* fall through */
	default: return err_set(e, PTCP_EPROTO, "unexpected %s frame", wire_type_name(type));
	}
}

/* 1 when a frame was taken, 0 when more bytes are needed. */
static int next_frame(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct buf *b = &t->third->in;
	struct wire_header h;
	struct span in;
	int r;

	if ((r = wire_frame_next(&h, &in, (struct span){ buf_head(b), buf_len(b) }, e)) <= 0)
		return r;
	if (wire_type_known(h.type) && (r = frame(t, h.type, in, e)) < 0)
		return r;
	buf_consume(b, WIRE_HEADER_BYTES + h.length);
	return 1;
}

static void on_readable(void *arg)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;
	uint8_t *room;
	size_t n;
	int r;

	do {
		if ((room = buf_reserve(&t->third->in, 16384)) == NULL) {
			err_nomem(&why);
			client_finish(t, &why);
			return;
		}
		n = chan_read(t->chan, room, 16384);
		buf_added(&t->third->in, n);
		for (r = 1; r > 0 && !t->over && !t->third->turning; )
			if ((r = next_frame(t, &why)) < 0)
				client_finish(t, &why);
	} while (n > 0 && !t->over && !t->third->turning);
	if (!t->over && !t->third->turning && is_stuck(t, &why))
		client_finish(t, &why);
	else if (!t->third->turning && !answers_at_once(t->third))
		wait(t);
	else if (t->third->turning && (remote_job_turn(t), client_dial(t, &why) < 0))
		client_finish(t, &why);
}

static void on_writable(void *arg)
{
	flush(arg);
}

static void on_closed(void *arg, const struct ptcp_err *cause)
{
	struct ptcp_transfer *t = arg;
	struct ptcp_err why;

	if (t->third->asks != NULL && cause == NULL) {
		client_finish(t, NULL); /* it has told all */
		return;
	}
	err_set(&why, PTCP_EPEER, "%s: %s (run it again when that host can be reached: it goes on from there)",
	    t->known_as, cause != NULL ? cause->msg : "it closed the connection");
	client_finish(t, &why);
}

static const struct chan_ops job_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };

static void put_links(struct remote_job *h)
{
	uint8_t *p = outbox_room(&h->out, WIRE_LINKS_MAX_BYTES);

	if (p != NULL)
		outbox_added(&h->out, wire_links_encode(p));
}

static int ask(struct ptcp_transfer *t, struct ptcp_err *e)
{
	struct remote_job *h = t->third;
	int r;

	if (answers_at_once(h))
		put_links(h);
	else if (h->asks != NULL)
		OUTBOX_PUT(&h->out, status, STATUS, &h->asks->status);
	else if ((r = remote_job_put(t, e)) < 0)
		return r;
	if (h->out.failed)
		return err_nomem(e);
	chan_detach(t->chan);
	if ((r = chan_attach(t->chan, t->host.control, &job_ops, t, e)) < 0)
		return r;
	h->asked_at = h->moved = mono_now();
	wait(t);
	flush(t);
	return 0;
}

static void opened(struct ptcp_transfer *t)
{
	struct remote_job *h = t->third;
	struct ptcp_err why;
	int r;

	if (h->asks == NULL && h->audience[0] == '\0') {
		strcpy(h->audience, t->fingerprint);
		chan_free(t->chan);
		t->chan = NULL;
		aim(t, &h->doer);
		r = client_dial(t, &why);
	} else {
		r = ask(t, &why);
	}
	if (r < 0)
		client_finish(t, &why);
}

static void asks_free(struct remote_job_asks *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->n_known; i++) {
		free((char *)(uintptr_t)a->known[i].to);
		free((char *)(uintptr_t)a->known[i].why);
	}
	free(a->known);
	free(a);
}

static void free_job(struct remote_job *h)
{
	if (h == NULL)
		return;
	buf_fini(&h->in);
	buf_fini(&h->out.b);
	asks_free(h->asks);
	free(h->message);
	free(h);
}

static const struct client_remote_ops remote_ops = { .aim = remote_job_aim, .opened = opened, .silent = silent,
	.progress = last_progress, .cause = remote_job_cause, .free = free_job };

int remote_job_new(struct ptcp_transfer *t, const struct remote *to, struct ptcp_err *e)
{
	if ((t->third = calloc(1, sizeof *t->third)) == NULL)
		return err_nomem(e);
	t->remote = &remote_ops;
	t->third->mode = WIRE_GRANT_WRITE;
	t->third->doer = t->target;
	t->third->other = *to;
	return 0;
}
