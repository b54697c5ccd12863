#include "server/job_conn.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "engine/job_frames.h"
#include "fs/fd_budget.h"
#include "server/file_job.h"
#include "server/link_table.h"

struct job_conn {
	struct list in_list;
	struct job_set *set;
	struct chan *chan;
	struct timer *timer;
	struct authorization auth;
	char fingerprint[PTCP_FINGERPRINT_BYTES], address[SOCK_TEXT_BYTES];
	struct job_frames frames;
	struct memory_account *memory; /* NULL: no limit */
	struct job *job;      /* NULL: none yet, or over */
	struct file_job *file_job; /* the same */
	uint64_t canceled_id; /* id of the job that the client has canceled and that has not ended; 0: none */
	bool closing;
};

static void job_conn_free(struct job_conn *c)
{
	struct job_set *t = c->set;

	if (c->job != NULL)
		job_leave(c->job);
	if (c->file_job != NULL)
		file_job_leave(c->file_job);
	list_remove(&c->in_list);
	chan_free(c->chan);
	timer_free(c->timer);
	job_frames_fini(&c->frames);
	memory_account_free(c->memory);
	free(c);
	fd_budget_count(-1);
	t->n_conns--;
	t->gone(t->arg);
}

void job_conns_reauthorize(struct job_set *t, trust_admits_fn *admits, void *arg)
{
	struct job_conn *c;

	LIST_EACH(&t->conns, c, struct job_conn, in_list)
		if (c->job == NULL && c->frames.state != JOB_FRAMES_CLOSED &&
		    (admits == NULL || !admits(arg, c->fingerprint, &c->auth.proof, &c->auth) ||
		    (c->file_job != NULL && !c->file_job->ops->permits(c->file_job, &c->auth))))
			job_conn_free(c);
}

static bool is_of(const struct job_conn *c, const char *fingerprint)
{
	return fingerprint == NULL || strcmp(c->fingerprint, fingerprint) == 0;
}

unsigned job_conns_of(const struct job_set *t, const char *fingerprint)
{
	const struct job_conn *c;
	unsigned n = 0;

	LIST_EACH(&t->conns, c, struct job_conn, in_list)
		n += is_of(c, fingerprint) && c->frames.state != JOB_FRAMES_CLOSED;
	return n;
}

bool job_conns_close_idle(struct job_set *t, const char *fingerprint)
{
	struct job_conn *c, *idle = NULL;

	LIST_EACH(&t->conns, c, struct job_conn, in_list)
		if (is_of(c, fingerprint) && c->frames.state == JOB_FRAMES_AWAIT_NEXT && (idle == NULL ||
		    c->frames.conn.last_progress.ns < idle->frames.conn.last_progress.ns))
			idle = c;
	if (idle != NULL)
		job_conn_over(idle, NULL, NULL);
	return idle != NULL;
}

struct outbox *job_conn_outbox(struct job_conn *c) { return &c->frames.conn.out; }

static void write_out(struct job_conn *c)
{
	struct buf *b = &c->frames.conn.out.b;
	size_t n = buf_len(b) > 0 ? chan_write(c->chan, buf_head(b), buf_len(b)) : 0;

	buf_consume(b, n);
	chan_flush(c->chan);
	if (n > 0)
		job_frames_wrote(&c->frames, mono_now());
}

static bool flush_or_pause(struct job_conn *c)
{
	bool full;

	write_out(c);
	if ((full = buf_len(&c->frames.conn.out.b) > JOB_FRAMES_PAUSE_BYTES))
		job_frames_pause(&c->frames, mono_now());
	timer_set(c->timer, frame_conn_deadline(&c->frames.conn));
	return full;
}

void job_conn_flush(struct job_conn *c)
{
	struct buf *b = &c->frames.conn.out.b;

	write_out(c);
	if (c->frames.state == JOB_FRAMES_CLOSED && !c->closing && buf_len(b) == 0) {
		c->closing = true;
		chan_shutdown(c->chan);
	}
	timer_set(c->timer, frame_conn_deadline(&c->frames.conn));
}

void job_conn_over(struct job_conn *c, const struct ptcp_err *why, const struct wire_end *end)
{
	struct file_job *f = c->file_job;

	c->job = NULL;
	c->file_job = NULL;
	if (f != NULL)
		file_job_leave(f);
	c->canceled_id = 0;
	job_frames_end(&c->frames, why, end, mono_now());
	job_conn_flush(c);
}

static void refuse(struct job_conn *c, const struct ptcp_err *why)
{
	c->set->n_refused++;
	log_at(&c->set->context->log, LOG_WARN, "server", "event=job-refused from=%s client=%s why=\"%s\"", c->address,
	    c->fingerprint, why->msg);
	job_conn_over(c, why, NULL);
}

/* After complete work the client may request more. */
static void filed(struct job_conn *c, const struct ptcp_err *why)
{
	c->file_job = NULL;
	if (why != NULL) {
		job_conn_over(c, why, NULL);
		return;
	}
	job_frames_await_next(&c->frames, mono_now());
	job_conn_flush(c);
}

/* ---- Requests ---- */

static void put_state(struct job_conn *c, const struct job *r)
{
	struct wire_state s;

	job_state(r, &s);
	OUTBOX_PUT(&c->frames.conn.out, state, STATE, &s);
}

static int on_status(struct job_conn *c, const struct wire_status *f, struct ptcp_err *e)
{
	struct job *r = NULL;
	struct ptcp_err why;

	if (f->id != 0 && (r = job_find(c->set, c->fingerprint, f->id, NULL)) == NULL)
		return err_set(e, PTCP_EPEER, "this transfer: unknown to the server (results are kept for a day, and "
		    "lost when the server restarts; repeat the command to resume the transfer)");
	if (f->cancel && !job_is_over(r)) {
		c->canceled_id = f->id;
		err_set(&why, PTCP_ECANCELED, "transfer: canceled by its owner (repeat the command to resume)");
		job_cancel(r, &why); /* its end calls job_conns_report() */
		return 0;
	}
	if (r != NULL)
		put_state(c, r);
	else
		while ((r = job_find(c->set, c->fingerprint, 0, r)) != NULL)
			put_state(c, r);
	job_conn_over(c, NULL, NULL);
	return 0;
}

/* Permission to connect to other hosts includes the estimates of the links. */
static int on_links(struct job_conn *c, struct ptcp_err *e)
{
	if (c->auth.no_relay)
		return err_set(e, PTCP_EREFUSED, "published links: not available to this client (have the server's "
		    "administrator authorize it without --no-relay)");
	if (!link_table_put(c->set->links, &c->frames.conn.out))
		return err_set(e, PTCP_EPEER, "published links: the server does not measure its links (have its "
		    "administrator start it with --watch)");
	job_conn_over(c, NULL, NULL);
	return 0;
}

/* One at a time: more would only divide the disk. */
static int on_clean(struct job_conn *c, const struct job_client *client, const struct wire_clean *f,
    struct ptcp_err *e)
{
	const struct job_conn *other;

	LIST_EACH(&c->set->conns, other, struct job_conn, in_list)
		if (other->file_job != NULL && other->file_job->ops->exclusive && strcmp(other->fingerprint,
		    c->fingerprint) == 0)
			return err_set(e, PTCP_EBUSY,
			    "too busy: another ptcp clean of this client runs (try again when it has ended)");
	return cleaning_new(&c->file_job, c->set, client, f, e);
}

static int on_frame(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e)
{
	struct job_conn *c = arg;
	const struct job_client client = { c, c->fingerprint, c->address, &c->auth,
		{ &c->frames.conn.out, flush_or_pause, filed } };

	if (c->set->ephemeral && type != WIRE_CLEAN && type != WIRE_MANAGE && type != WIRE_READ && type != WIRE_SUM &&
	    type != WIRE_WRITE && type != WIRE_BLOCK)
		return err_set(e, PTCP_EREFUSED,
		    "jobs: not accepted (this server was started for one session, through ssh)");
	switch (type) {
	case WIRE_CLEAN: return on_clean(c, &client, &f->clean, e);
	case WIRE_MANAGE: return managing_new(&c->file_job, c->set, &client, &f->manage, e);
	case WIRE_WRITE: return writing_new(&c->file_job, c->set, &client, &f->write, e);
	case WIRE_BLOCK: return writing_take(c->file_job, &f->piece, e);
	case WIRE_READ: return reading_new(&c->file_job, c->set, &client, &f->read, e);
	case WIRE_SUM: return summing_new(&c->file_job, c->set, &client, &f->sum, e);
	case WIRE_STATUS: return on_status(c, &f->status, e);
	case WIRE_LINKS: return on_links(c, e);
	default: return job_new(&c->job, c->set, &client, &f->request, e);
	}
}

void job_conns_report(struct job_set *t, const struct job *r)
{
	struct job_conn *c;

	LIST_EACH(&t->conns, c, struct job_conn, in_list)
		if (c->canceled_id != 0 && job_is(r, c->fingerprint, c->canceled_id)) {
			put_state(c, r);
			job_conn_over(c, NULL, NULL);
		}
}

/* ---- The connection ---- */

static void on_readable(void *arg)
{
	struct job_conn *c = arg;
	struct ptcp_err why;
	uint8_t bytes[4096];
	size_t n;

	while ((n = chan_read(c->chan, bytes, sizeof bytes)) > 0) {
		if (job_frames_input(&c->frames, bytes, n, mono_now(), &why) == 0)
			continue;
		if (c->job != NULL)
			job_cancel(c->job, &why);
		else
			refuse(c, &why);
	}
	timer_set(c->timer, frame_conn_deadline(&c->frames.conn));
}

static void on_writable(void *arg)
{
	struct job_conn *c = arg;

	job_conn_flush(c);
	if (job_frames_resume(&c->frames) && c->file_job != NULL)
		file_job_resume(c->file_job);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	(void)why;
	job_conn_free(arg);
}

static const struct chan_ops chan_ops = { .readable = on_readable, .writable = on_writable, .closed = on_closed };

static void on_timer(void *arg)
{
	struct job_conn *c = arg;

	if (c->frames.state == JOB_FRAMES_AWAIT_NEXT && buf_len(&c->frames.conn.out.b) == 0) {
		job_conn_over(c, NULL, NULL);
		return;
	}
	if (frame_conn_fault(&c->frames.conn, mono_now()) == FRAME_UNREAD || c->frames.paused)
		log_at(&c->set->context->log, LOG_WARN, "server", "event=job-unread from=%s client=%s why=\"the client "
		    "does not read the reports\"", c->address, c->fingerprint);
	job_conn_free(c);
}

int job_conn_new(struct job_set *t, struct chan *chan, const char *address, const struct authorization *auth,
    struct ptcp_err *e)
{
	struct job_conn *c = calloc(1, sizeof *c);
	int r;

	if (c == NULL) {
		chan_free(chan);
		return err_nomem(e);
	}
	if ((r = memory_account_new(&c->memory, t->memory, chan_fingerprint(chan), e)) < 0 ||
	    (r = memory_charge(c->memory, sizeof *c + CHAN_BYTES, e)) < 0) {
		memory_account_free(c->memory);
		chan_free(chan);
		free(c);
		return r;
	}
	c->frames.memory = c->memory;
	c->set = t;
	c->chan = chan;
	c->auth = *auth;
	c->frames.frame = on_frame;
	c->frames.arg = c;
	strcpy(c->fingerprint, chan_fingerprint(chan));
	strncpy(c->address, address, sizeof c->address - 1);
	list_append(&t->conns, &c->in_list);
	t->n_conns++;
	fd_budget_count(1);
	if ((r = chan_attach(chan, t->context->control, &chan_ops, c, e)) < 0 ||
	    (r = timer_new(&c->timer, t->context->control, on_timer, c, e)) < 0) {
		job_conn_free(c);
		return r;
	}
	job_frames_await(&c->frames, mono_now());
	timer_set(c->timer, frame_conn_deadline(&c->frames.conn));
	return 0;
}
