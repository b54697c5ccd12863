/* Delegated jobs: a grant lets one of two remote hosts send to, fetch from or measure the path to the second host,
 * and the client follows the progress. Queries use the same connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/remote_job_impl.h"
#include "conn/grants.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "store/destination.h"
#include "store/expand.h"

static void aim(struct ptcp_task *t, const struct remote *at)
{
	t->target = *at;
	remote_name(at, t->known_as, sizeof t->known_as);
}

void remote_job_aim(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;

	job_frames_fini(&h->frames);
	memset(&h->frames, 0, sizeof h->frames);
	if (remote_job_is_query(h))
		return;
	aim(t, &h->other);
	if (h->audience[0] == '\0' && !task_knows_host(t, h->audience)) {
		h->audience[0] = '\0';
		return;
	}
	aim(t, &h->doer);
}

static void flush(struct ptcp_task *t)
{
	struct buf *b = &t->remote_job->frames.conn.out.b;

	if (buf_len(b) > 0)
		buf_consume(b, chan_write(t->chan, buf_head(b), buf_len(b)));
	chan_flush(t->chan);
}

static void set_timer(struct ptcp_task *t)
{
	timer_set(t->timer, frame_conn_deadline(&t->remote_job->frames.conn));
}

static void on_readable(void *arg);

static void expired(struct ptcp_task *t)
{
	const struct job_frames *j = &t->remote_job->frames;
	struct ptcp_err why;

	if (t->remote_job->work != NULL) { /* a callback may have waited, rather than the host */
		on_readable(t);
		if (t->over || t->wait.pausing)
			return;
	}

	switch (frame_conn_fault(&j->conn, mono_now())) {
	case FRAME_ALIVE:
		set_timer(t);
		return;
	case FRAME_STALLED:
		err_set(&why, PTCP_ETIMEOUT, "%s: no progress for %.3g s, although the host responds (check its load, then run it "
		    "again)", t->known_as, (double)job_frames_stall_ns(j) / 1e9);
		break;
	default:
		err_set(&why, PTCP_ETIMEOUT, "%s: no response for %.3g s (check the network and that host, then run "
		    "the same command again)",
		    t->known_as, t->o.timeout_s);
		break;
	}
	task_finish(t, &why);
}

static struct ptcp_progress last_progress(const struct remote_job *h) { return h->frames.progress; }

void remote_job_name(const struct ptcp_task *t, uint64_t id, char out[REMOTE_JOB_NAME_BYTES])
{
	snprintf(out, REMOTE_JOB_NAME_BYTES, "%0*llx@%s", REMOTE_JOB_ID_DIGITS, (unsigned long long)id, t->known_as);
}

void remote_job_reason(struct ptcp_err *out, const struct wire_why *w)
{
	outbox_reason(out, w);
	if (w->code == -PTCP_ECONNECT || w->code == -PTCP_EUSAGE || w->code == -PTCP_ECANCELED)
		out->code = -(int)w->code;
}

/* ---- Answers ---- */

static void on_started(struct ptcp_task *t, const struct wire_started *f)
{
	char name[REMOTE_JOB_NAME_BYTES];
	struct ptcp_event ev = { .type = PTCP_EVENT_DETACHED, .text = name };

	if (t->o.detach) {
		remote_job_name(t, f->id, name);
		task_emit(t, &ev);
		job_frames_close(&t->remote_job->frames);
		task_finish(t, NULL);
		return;
	}
	span_copy(t->peer, f->peer);
	strcpy(t->fingerprint, t->remote_job->audience);
	task_started(t);
}

static void on_event(struct ptcp_task *t, const struct wire_event *f)
{
	const struct session_ops *ops = &task_session_ops;
	char path[WIRE_PATH_MAX + 1];
	struct session_file file = { .path = path, .size_bytes = SESSION_SIZE_UNKNOWN };
	struct ptcp_err why;

	span_copy(path, f->path);
	outbox_reason(&why, &f->why);
	file.status = f->kind == WIRE_EVENT_DONE ? PTCP_FILE_DONE :
	    f->kind == WIRE_EVENT_SKIPPED ? PTCP_FILE_SKIPPED : outbox_is_failure(why.code) ? PTCP_FILE_FAILED :
	    PTCP_FILE_VANISHED;
	if (f->kind == WIRE_EVENT_FAILED || (f->kind == WIRE_EVENT_SKIPPED && f->why.text.n > 0))
		file.why = &why;
	switch (f->kind) {
	case WIRE_EVENT_DONE:
	case WIRE_EVENT_SKIPPED:
	case WIRE_EVENT_FAILED: ops->file(t, &file); break;
	case WIRE_EVENT_WARNING: ops->warning(t, f->path.n > 0 ? path : NULL, why.msg); break;
	default: ops->streams(t, f->from, f->to, why.msg); break;
	}
}

static void on_error(struct ptcp_task *t, const struct wire_error *f)
{
	struct ptcp_err why;

	remote_job_reason(&why, &f->why);
	if (why.code == PTCP_ECONNECT || why.code == PTCP_EREFUSED || why.code == PTCP_EBUSY)
		err_while(&why, why.code, "%s", t->known_as);
	if (remote_job_can_reverse(t, &why)) {
		t->remote_job->first = why;
		t->remote_job->reversing = true;
		return;
	}
	task_outcome(t, &why);
}

static int on_frame(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e)
{
	struct ptcp_task *t = arg;

	t->remote_job->heard = true;
	t->remote_job->complete = (type == WIRE_MANAGED && f->managed.final) || (type == WIRE_CLEANED && f->cleaned.final);
	switch (type) {
	case WIRE_WAITING: wait_report(t, f->waiting.ahead, NULL); break;
	case WIRE_STARTED: on_started(t, &f->started); break;
	case WIRE_EVENT: on_event(t, &f->event); break;
	case WIRE_SAMPLE: remote_job_sampled(t->remote_job, &f->sample); break;
	case WIRE_STATE: remote_job_state(t, &f->state); break;
	case WIRE_LEFTOVER: remote_job_leftover(t, &f->leftover); break;
	case WIRE_CLEANED: remote_job_cleaned(t, &f->cleaned); break;
	case WIRE_LISTED:
		return t->remote_job->work != NULL ? t->remote_job->work_ops->opened(t, &f->listed, e) :
		    remote_job_listed(t, &f->listed, e);
	case WIRE_BLOCK: return t->remote_job->work_ops->piece(t, &f->piece, e);
	case WIRE_MANAGED:
		if (t->remote_job->work != NULL)
			return t->remote_job->work_ops->ended(t, &f->managed, e);
		remote_job_managed(t, &f->managed);
		break;
	case WIRE_LINK: return remote_job_link(t->remote_job, &f->link, e);
	case WIRE_END: task_outcome(t, NULL); break;
	case WIRE_ERROR: on_error(t, &f->error); break;
	default: /* PROGRESS */
		if (t->report.announced)
			task_show_progress(t);
	}
	return 0;
}

/* ---- The connection ---- */

static void on_readable(void *arg)
{
	struct ptcp_task *t = arg;
	struct remote_job *h = t->remote_job;
	struct ptcp_err why;
	uint8_t bytes[16384];
	size_t n;

	while (!t->over && !t->wait.pausing && !h->reversing && (n = chan_read(t->chan, bytes, sizeof bytes)) > 0)
		if (job_frames_input(&h->frames, bytes, n, mono_now(), &why) < 0) {
			err_while(&why, why.code, "%s", t->known_as);
			task_finish(t, &why);
		}
	if (t->over || t->wait.pausing)
		return;
	if (!h->reversing) {
		set_timer(t);
		return;
	}
	remote_job_reverse(t);
	if (task_dial(t, &why) < 0)
		task_finish(t, &why);
}

static void on_writable(void *arg) { flush(arg); }

/* Whether the request may be sent twice. */
static bool repeats(const struct remote_job *h)
{
	return h->request == JOB_FRAMES_READ_REQUESTED ||
	    (h->request == JOB_FRAMES_MANAGE_REQUESTED && (h->op == PTCP_LIST || h->op == PTCP_COUNT || h->op == PTCP_SUM));
}

/* A kept connection may have been closed while the request was on its way: the server has not read it. */
static void on_remote_job_closed(void *arg, const struct ptcp_err *cause)
{
	struct ptcp_task *t = arg;
	bool query = remote_job_is_query(t->remote_job);
	struct ptcp_err why;

	if (t->remote_job->reused && !t->remote_job->heard && (cause == NULL || repeats(t->remote_job))) {
		t->remote_job->reused = false;
		chan_free(t->chan);
		t->chan = NULL;
		remote_job_aim(t);
		if (task_dial(t, &why) < 0)
			task_finish(t, &why);
		return;
	}
	if (query && !remote_job_is_on_files(t->remote_job) && cause == NULL) {
		task_finish(t, NULL); /* the answer is complete */
		return;
	}
	err_set(&why, PTCP_EPEER, "%s: %s (run the same command again when that host can be reached%s)", t->known_as,
	    cause != NULL ? cause->msg : "the host closed the connection", query ? "" : ": the transfer resumes");
	task_finish(t, &why);
}

static const struct chan_ops chan_ops = { .readable = on_readable, .writable = on_writable, .closed = on_remote_job_closed };

static int request(struct ptcp_task *t, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	int r;

	h->frames = (struct job_frames){ .frame = on_frame, .arg = t, .timeout_ns = task_timeout_ns(t),
		.messages = h->timing.messages };
	if ((r = remote_job_put(t, e)) < 0)
		return r;
	if (h->frames.conn.out.failed)
		return err_nomem(e);
	if ((r = chan_attach(t->chan, t->context.control, &chan_ops, t, e)) < 0)
		return r;
	job_frames_requested(&h->frames, h->request, mono_now());
	set_timer(t);
	flush(t);
	return 0;
}

int remote_job_fails(struct remote_job *h, const struct wire_listed *f, struct ptcp_err *e)
{
	char path[WIRE_PATH_MAX + 1];

	outbox_reason(&h->failure, &f->why);
	return (h->failed_path = strdup(span_copy(path, f->path))) != NULL ? 0 : err_nomem(e);
}

void remote_job_failed(const struct remote_job *h, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	*e = h->failure;
	err_while(e, e->code, "%s", text_escape(shown, sizeof shown, h->failed_path[0] != '\0' ? h->failed_path : "."));
}

int remote_job_request_next(struct ptcp_task *t, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	int r;

	if ((r = remote_job_put(t, e)) < 0)
		return r;
	if (h->frames.conn.out.failed)
		return err_nomem(e);
	h->complete = false;
	job_frames_requested(&h->frames, h->request, mono_now());
	flush(t);
	return 0;
}

static void opened(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;
	struct ptcp_err why;
	int r;

	if (!remote_job_is_query(h) && h->audience[0] == '\0') {
		strcpy(h->audience, t->fingerprint);
		chan_free(t->chan);
		t->chan = NULL;
		aim(t, &h->doer);
		r = task_dial(t, &why);
	} else {
		r = request(t, &why);
	}
	if (r < 0)
		task_finish(t, &why);
}

static void free_job(struct remote_job *h)
{
	size_t i;

	if (h == NULL)
		return;
	for (i = 0; i < h->n_links; i++) {
		free((char *)(uintptr_t)h->link[i].to);
		free((char *)(uintptr_t)h->link[i].why);
	}
	free(h->link);
	free(h->message);
	free(h->failed_path);
	if (h->work != NULL)
		h->work_ops->free(h->work);
	job_frames_fini(&h->frames);
	free(h);
}

static const struct remote_job_ops remote_job_ops = { .aim = remote_job_aim, .opened = opened, .silent = expired,
	.progress = last_progress, .cause = remote_job_cause, .free = free_job };

int remote_job_new(struct ptcp_task *t, const struct remote *to, struct ptcp_err *e)
{
	if ((t->remote_job = calloc(1, sizeof *t->remote_job)) == NULL)
		return err_nomem(e);
	t->job_ops = &remote_job_ops;
	t->remote_job->request = JOB_FRAMES_JOB_REQUESTED;
	t->remote_job->mode = WIRE_GRANT_WRITE;
	t->remote_job->doer = t->target;
	t->remote_job->other = *to;
	return 0;
}

int remote_job_new_task(struct ptcp_task **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	const struct remote none = { .ssh = false };
	struct ptcp_task *t;
	int r;

	if ((r = task_new(&t, o, e)) < 0)
		return r;
	return task_made(out, t, remote_job_new(t, &none, e));
}

int remote_job_new_work(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct work_ops *ops, const void *opts, struct ptcp_err *e)
{
	struct remote_job *h;
	struct ptcp_task *t;
	int r;

	if ((r = remote_job_new_task(&t, o, e)) < 0)
		return r;
	h = t->remote_job;
	h->work_ops = ops;
	if ((h->work = calloc(1, ops->bytes)) == NULL)
		r = err_nomem(e);
	else if ((r = options_check_files(&t->o, ops->request == JOB_FRAMES_WRITE_REQUESTED, e)) == 0 &&
	    (r = ops->take(t, opts, e)) == 0 && (r = remote_job_take_urls(t, &url, 1, e)) == 0 &&
	    (r = task_name_target(t, e)) == 0)
		h->request = ops->request;
	return task_made(out, t, r);
}

/* ---- The request ---- */

static const struct remote *destination(const struct remote_job *h)
{
	return h->mode == WIRE_GRANT_READ ? &h->doer : &h->other;
}

static void put_job(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;
	bool named = t->o.congestion != NULL && strcmp(t->o.congestion, "auto") != 0;
	const char *cc = named ? t->o.congestion : ""; /* field of PROBE; OPEN has its own field */
	uint64_t bps = h->mode == WIRE_GRANT_PROBE ? 0 : timetable_bps(&t->rate, 0); /* a timetable was refused */
	struct wire_job f = {
		.flags = (t->o.detach ? WIRE_JOB_DETACH : 0) | (t->o.file_events ? WIRE_JOB_FILES : 0),
		.family = (uint8_t)t->o.family, .port = (uint16_t)h->other.port,
		.timeout_ms = (uint32_t)(t->o.timeout_s * 1000), .linger_ms = (uint32_t)(t->o.retry_for_s * 1000),
		.host = { (const uint8_t *)h->other.host, strlen(h->other.host) },
		.congestion = { (const uint8_t *)cc, strlen(cc) }, .rate_bps = bps
	};

	OUTBOX_PUT(&h->frames.conn.out, job, JOB, &f);
}

static int put_grant(struct ptcp_task *t, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	uint8_t *p = outbox_room(&h->frames.conn.out, WIRE_GRANT_MAX_BYTES);
	const struct grant_terms terms = { t->fingerprint, h->audience, h->mode,
		h->mode == WIRE_GRANT_PROBE ? "" : h->other.path };
	size_t n;
	int r;

	if (p == NULL)
		return err_nomem(e);
	if ((r = grant_make(p, &n, &t->context.identity, &terms, (uint64_t)time(NULL), e)) < 0)
		return r;
	outbox_added(&h->frames.conn.out, n);
	return 0;
}

/* Flags of OPEN for the path of the destination. A pattern may stand for several sources. */
static uint32_t destination_flags(const struct ptcp_task *t)
{
	struct span rest = { t->files.open_paths, t->files.open_paths_bytes }, path;
	char text[WIRE_PATH_MAX + 1];
	uint8_t flags = 0;
	bool several;

	wire_path_next(&rest, &flags, &path);
	several = t->files.n_remote > 1 || expand_has_wildcard(span_copy(text, path));
	return (several || text_is_contents(destination(t->remote_job)->path) ? WIRE_OPEN_INTO_DIR : 0) |
	    (!several && (flags & WIRE_PATH_CONTENTS) != 0 ? WIRE_OPEN_CONTENTS : 0);
}

/* OPEN with the client in place of the third host. */
static void put_open(struct ptcp_task *t)
{
	const char *dest = destination(t->remote_job)->path;
	unsigned streams = t->o.streams > 0 ? t->o.streams : task_yields(t) ? 1 : ADVICE_START;
	struct wire_open f = {
		.role = WIRE_ACCEPTOR_SENDS, .cipher = (uint8_t)t->o.cipher, .fsync = task_fsync(t),
		.congestion = task_congestion(t),
		.flags = task_open_flags(t) | destination_flags(t), .streams = (uint16_t)streams,
		.n_paths = t->files.n_open_paths, .paths = { t->files.open_paths, t->files.open_paths_bytes },
		.wait_ms = wait_ms(t), .compress = task_compress(t), .preserve = options_preserve(&t->o),
		.modify_window_s = t->o.older.modify_window_s
	};
	uint8_t only[WIRE_PATH_MAX + 3], *p;

	limits_put(t, &f);
	if (t->remote_job->mode == WIRE_GRANT_READ) {
		f.role = WIRE_ACCEPTOR_RECEIVES;
		f.n_paths = 1;
		f.paths = (struct span){ only, wire_path_encode(only, 0,
		    (struct span){ (const uint8_t *)dest, strlen(dest) }) };
	}
	if ((p = outbox_room(&t->remote_job->frames.conn.out, WIRE_OPEN_BYTES(f.paths.n))) != NULL)
		outbox_added(&t->remote_job->frames.conn.out, wire_open_encode(p, &f));
}

static void put_probe(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;
	struct wire_probe f = { (uint16_t)h->timing.streams, (uint16_t)h->timing.messages, (uint8_t)t->o.cipher,
		wait_ms(t) };

	OUTBOX_PUT(&h->frames.conn.out, probe, PROBE, &f);
}

static void put_links(struct outbox *out)
{
	uint8_t *p = outbox_room(out, WIRE_LINKS_MAX_BYTES);

	if (p != NULL)
		outbox_added(out, wire_links_encode(p));
}

int remote_job_put(struct ptcp_task *t, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	int r;

	if (h->request == JOB_FRAMES_LINKS_REQUESTED) {
		put_links(&h->frames.conn.out);
		return 0;
	}
	if (h->request == JOB_FRAMES_CLEAN_REQUESTED) {
		remote_job_put_clean(h, t->target.path);
		return 0;
	}
	if (h->request == JOB_FRAMES_MANAGE_REQUESTED) {
		remote_job_put_manage(t);
		return 0;
	}
	if (h->work != NULL) {
		h->work_ops->put(t);
		return 0;
	}
	if (h->request == JOB_FRAMES_STATUS_REQUESTED) {
		OUTBOX_PUT(&h->frames.conn.out, status, STATUS, &h->status);
		return 0;
	}
	if (strcmp(h->audience, t->fingerprint) == 0)
		return err_set(e, PTCP_EUSAGE, h->mode == WIRE_GRANT_PROBE ? "both hosts are the same, %s (give each its own "
		    "address)" : "both hosts are the same, %s (copy the files locally there)", t->fingerprint);
	put_job(t);
	if ((r = put_grant(t, e)) < 0)
		return r;
	if (h->mode == WIRE_GRANT_PROBE)
		put_probe(t);
	else
		put_open(t);
	return 0;
}

/* ---- The receiver fetches, after the sender has refused ---- */

/* A grant has one path, and a receiver applies no rules at the sender. */
bool remote_job_can_reverse(const struct ptcp_task *t, const struct ptcp_err *why)
{
	const struct remote_job *h = t->remote_job;

	return !remote_job_is_query(h) && h->mode == WIRE_GRANT_WRITE && !t->report.announced &&
	    t->files.n_open_paths == 1 && (why->code == PTCP_ECONNECT || why->code == PTCP_EREFUSED);
}

void remote_job_reverse(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;
	struct remote sender = h->doer;

	log_at(&t->context.log, LOG_INFO, "client", "event=reversed why=\"%s\"", h->first.msg);
	h->mode = WIRE_GRANT_READ;
	h->doer = h->other;
	h->other = sender;
	strcpy(h->audience, t->fingerprint);
	h->reversing = false;
	chan_free(t->chan);
	t->chan = NULL;
	remote_job_aim(t);
}

const struct ptcp_err *remote_job_cause(const struct ptcp_task *t, const struct ptcp_err *why)
{
	const struct remote_job *h = t->remote_job;

	if (h == NULL || h->first.code == 0 || t->report.announced || why->code == PTCP_ECANCELED)
		return why;
	log_at(&t->context.log, LOG_INFO, "client", "event=not-fetched why=\"%s\"", why->msg);
	return &h->first;
}
