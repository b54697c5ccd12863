/* The course of a job: finds the sources, dials the third host, runs the session with it, and reports to the
 * client. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "server/job_conn.h"
#include "server/job_impl.h"

#define REPORT_NS (200 * NS_PER_MS)

/* ---- Reports to the client ---- */

static void report_samples(struct job *r)
{
	struct ptcp_message all[PTCP_MESSAGES_MAX];
	double round_trip_s;
	size_t n = timing_messages(r->prober, all, PTCP_MESSAGES_MAX, &round_trip_s);
	struct wire_sample f;

	for (; r->n_samples < n; r->n_samples++) {
		f = (struct wire_sample){ all[r->n_samples].bytes, (uint64_t)(all[r->n_samples].delay_s * 1e9),
			isnan(round_trip_s) ? 0 : (uint64_t)(round_trip_s * 1e9) };
		OUTBOX_PUT(job_conn_outbox(r->conn), sample, SAMPLE, &f);
	}
}

void job_report(struct job *r)
{
	if (r->session != NULL)
		r->last = session_progress(r->session);
	if (r->conn == NULL)
		return;
	if (r->prober != NULL)
		report_samples(r);
	OUTBOX_PUT(job_conn_outbox(r->conn), progress, PROGRESS, &r->last);
	job_conn_flush(r->conn);
}

static struct span cut(const char *text, size_t max)
{
	return (struct span){ (const uint8_t *)text, text != NULL ? strnlen(text, max) : 0 };
}

static void report_event(struct job *r, struct wire_event *f, const char *path, const char *text)
{
	f->path = cut(path, WIRE_PATH_MAX);
	f->why.text = cut(text, WIRE_TEXT_MAX);
	if (r->conn == NULL)
		return;
	OUTBOX_PUT(job_conn_outbox(r->conn), event, EVENT, f);
	job_conn_flush(r->conn);
}

void job_state(const struct job *r, struct wire_state *out)
{
	struct mono now = mono_now(), until = r->over ? r->ended : now;

	*out = (struct wire_state){
		.id = r->id, .kind = r->over ? WIRE_STATE_OVER : WIRE_STATE_RUNNING, 
		.port = (uint16_t)r->port, .age_ms = mono_diff_ns(now, r->requested) / NS_PER_MS,
		.took_ms = mono_diff_ns(until, r->requested) / NS_PER_MS, .host = cut(r->host, WIRE_HOST_MAX),
		.mode = (uint8_t)r->mode, .from = cut(r->from, WIRE_PATH_MAX), .to = cut(r->to, WIRE_PATH_MAX),
		.why = outbox_why(&r->why), .progress = r->last
	};
}

/* ---- The session with the third host ---- */

static void on_running(void *arg, struct session *sess)
{
	struct job *r = arg;
	struct wire_started f = { .id = r->id, .peer = cut(r->peer, WIRE_HOST_MAX) };
	struct ptcp_err why;

	r->session = sess;
	if (r->conn != NULL) {
		OUTBOX_PUT(job_conn_outbox(r->conn), started, STARTED, &f);
		job_conn_flush(r->conn);
	}
	if (r->rate_bps > 0)
		session_set_path_rate(sess, 0, r->rate_bps);
	if (r->prober != NULL)
		r->prober->ops->running(r->prober, sess);
	else if (request_begin(&r->request, sess, &why) < 0)
		engine_fail(session_engine(sess), &why);
}

static void on_file(void *arg, const struct session_file *file)
{
	enum ptcp_file_status status = file->status;
	const struct ptcp_err *why = file->why;
	const char *path = file->path;
	struct job *r = arg;
	struct wire_event f = { .kind = status == PTCP_FILE_DONE ? WIRE_EVENT_DONE :
	    status == PTCP_FILE_SKIPPED ? WIRE_EVENT_SKIPPED : WIRE_EVENT_FAILED };
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err named;

	if (why != NULL && why->from_peer) { /* the client does not know on which of two hosts */
		named = *why;
		err_while(&named, why->code, "%s", r->host);
		why = &named;
	}
	if (status == PTCP_FILE_FAILED && r->failures++ < LOGGED_FAILURES) /* event=end counts all of them */
		log_at(&r->set->context->log, LOG_WARN, "server", "event=file-failed client=%s path=\"%s\" why=\"%s\"", r->client,
		    text_escape_quoted(shown, sizeof shown, path), why->msg);
	if (status != PTCP_FILE_FAILED && status != PTCP_FILE_VANISHED && !r->report_files)
		return;
	if (why != NULL)
		f.why = outbox_why(why);
	report_event(r, &f, path, why != NULL ? why->msg : NULL);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct wire_event f = { .kind = WIRE_EVENT_WARNING };

	report_event(arg, &f, path, text);
}

/* Only the third host has an address here. A longer URL would be cut. */
static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	char where[WIRE_TEXT_MAX - 200], text[SESSION_LEFTOVERS_BYTES];
	const struct job *r = arg;
	struct remote to = { .port = r->port };

	snprintf(to.host, sizeof to.host, "%s", r->host);
	snprintf(to.path, sizeof to.path, "%s", r->to);
	if (r->mode != WIRE_GRANT_WRITE || !remote_url(&to, where, sizeof where))
		strcpy(where, "URL");
	on_warning(arg, NULL, session_leftovers_text(text, f, where));
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct wire_event f = { .kind = WIRE_EVENT_STREAMS, .from = (uint16_t)from, .to = (uint16_t)to };

	report_event(arg, &f, NULL, why);
}

static void on_gone(void *arg, struct session *sess, const struct ptcp_err *why)
{
	struct job *r = arg;
	struct ptcp_err copy;

	if (why != NULL)
		copy = *why; /* session_free() frees the original */
	r->last = session_progress(sess);
	session_free(sess);
	r->session = NULL;
	job_over(r, why != NULL ? &copy : NULL);
}

static void on_waiting(void *arg, uint32_t ahead)
{
	struct wire_waiting f = { ahead };
	struct job *r = arg;

	if (r->conn == NULL)
		return;
	OUTBOX_PUT(job_conn_outbox(r->conn), waiting, WAITING, &f);
	job_conn_flush(r->conn);
}

static bool permits(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	const struct job *r = arg;

	return relay_acl_permit(r->set->next_hops, r->host, r->port, r->sock.family == 0 ? all : NULL, sa);
}

static const struct session_ops session_ops = {
	.waiting = on_waiting, .running = on_running, .file = on_file, .warning = on_warning,
	.leftovers = on_leftovers, .streams = on_streams, .permits = permits, .gone = on_gone
};

static int start_session(struct job *r, struct chan *control, struct ptcp_err *e)
{
	char address[SOCK_HOST_BYTES];
	struct session_opts o = {
		.context = r->set->context, .control = control, .connects = true, .address = address, .sock = r->sock,
		.open = &r->open, .max_streams = PTCP_STREAMS_MAX, .fds = r->fds, .timeout_ns = r->sock.timeout_ns,
		.linger_ns = r->linger_ns, .name = r->host, .client = r->client, .direct_io = r->set->o->direct_io,
		.ops = &session_ops, .arg = r
	};
	int err;

	if ((err = sock_split(r->peer, address, &o.port, r->port, e)) < 0) {
		chan_free(control);
		return err;
	}
	memory_account_admit(r->memory, true);
	r->fds = 0;
	o.memory = r->memory;
	return session_new(&r->session, &o, e);
}

/* ---- Connecting to the third host ---- */

int job_refuse_host(const struct job *r, struct ptcp_err *e)
{
	char where[SOCK_HOST_BYTES + 10];

	sock_join(where, sizeof where, r->host, r->port);
	return err_set(e, PTCP_EREFUSED, "does not connect to %s for its clients (its administrator can allow that with "
	    "--relay-to %s)", where, where);
}

static int write_grant(void *arg, struct chan *c, struct ptcp_err *e)
{
	const struct job *r = arg;

	(void)e;
	chan_write(c, r->grant, r->grant_bytes);
	return 0;
}

static void on_connected(void *arg, const struct connect_result *c)
{
	struct job *r = arg;
	struct ptcp_err why = c->why;

	r->connect = NULL;
	if (c->chan == NULL) {
		if (c->cause == CONNECT_REFUSED) /* no permitted address: nothing was requested of the host yet */
			job_refuse_host(r, &why);
		job_over(r, &why);
		return;
	}
	strcpy(r->peer, c->address);
	if (start_session(r, c->chan, &why) < 0)
		job_over(r, &why);
}

static int connect_there(struct job *r, struct ptcp_err *e)
{
	struct connect_opts o = { .context = r->set->context, .host = r->host, .port = r->port, .client = r->client,
		.timeout_ns = r->sock.timeout_ns, .sock = r->sock, .alpn = ALPN_GRANT, .permits = permits,
		.fingerprint = r->audience, .first = write_grant, .done = on_connected, .arg = r };

	return connect_start(&r->connect, &o, e);
}

static void on_found(struct request *a, const struct ptcp_err *cause)
{
	struct job *r = CONTAINER_OF(a, struct job, request);
	struct ptcp_err why;

	if (r->why.code != 0)
		cause = &r->why; /* canceled meanwhile */
	if (cause != NULL) {
		why = *cause;
		job_over(r, &why);
	} else if (connect_there(r, &why) < 0) {
		job_over(r, &why);
	}
}

static void on_timer(void *arg)
{
	struct job *r = arg;

	timer_set(r->timer, mono_add_ns(mono_now(), REPORT_NS));
	job_report(r);
}

int job_begin(struct job *r, struct ptcp_err *e)
{
	int err = timer_new(&r->timer, r->set->context->control, on_timer, r, e);

	if (err < 0)
		return err;
	timer_set(r->timer, mono_add_ns(mono_now(), REPORT_NS));
	if (r->prober != NULL)
		return connect_there(r, e);
	request_find(&r->request, on_found);
	return 0;
}
