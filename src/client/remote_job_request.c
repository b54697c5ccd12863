/* The request: third host, grant and work; or a query. */
#include <string.h>
#include <time.h>

#include "client/remote_job_impl.h"
#include "conn/grants.h"
#include "core/err.h"
#include "core/text.h"
#include "store/destination.h"
#include "store/expand.h"

static const struct remote *destination(const struct remote_job *h)
{
	return h->mode == WIRE_GRANT_READ ? &h->doer : &h->other;
}

static void put_job(struct ptcp_task *t)
{
	struct remote_job *h = t->remote_job;
	const uint8_t congestion = task_congestion(t);
	bool named = congestion > WIRE_CC_SYSTEM && congestion != WIRE_CC_YIELD; /* the user has named one */
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
	if ((r = grant_make(p, &n, &t->host.identity, &terms, (uint64_t)time(NULL), e)) < 0)
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
		.wait_ms = wait_ms(t)
	};
	uint8_t only[WIRE_PATH_MAX + 3], *p;

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

	log_at(&t->host.log, LOG_INFO, "client", "event=reversed why=\"%s\"", h->first.msg);
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
	log_at(&t->host.log, LOG_INFO, "client", "event=not-fetched why=\"%s\"", why->msg);
	return &h->first;
}
