/* Queries of a server: the detached jobs of the client, and the published links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"

/* A task for a query of the server `at`, "HOST[:PORT]". */
static int query_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    enum job_frames_state request, const char *at, struct ptcp_err *e)
{
	struct ptcp_task *t;
	int r;

	if ((r = remote_job_new_task(&t, o, e)) < 0)
		return r;
	if ((r = remote_parse_host(&t->target, at, e)) == 0)
		r = task_name_target(t, e);
	if (r == 0)
		t->remote_job->request = request;
	return task_made(out, t, r);
}

/* ---- Jobs ---- */

static enum ptcp_state outcome(const struct wire_state *f, struct ptcp_err *why)
{
	struct ptcp_err reason;

	if (f->kind == WIRE_STATE_RUNNING)
		return PTCP_STATE_RUNNING;
	remote_job_reason(&reason, &f->why);
	return task_failed(why, &f->progress, f->why.code != 0 ? &reason : NULL) ? PTCP_STATE_FAILED : PTCP_STATE_DONE;
}

void remote_job_state(struct ptcp_task *t, const struct wire_state *f)
{
	char name[REMOTE_JOB_NAME_BYTES], peer[SOCK_HOST_BYTES + 10], host[WIRE_HOST_MAX + 1];
	char source[WIRE_PATH_MAX + 1], dest[WIRE_PATH_MAX + 1];
	struct ptcp_err why;
	struct ptcp_status s = { .name = name, .peer = peer, .state = outcome(f, &why),
		.source = span_copy(source, f->from),
		.dest = span_copy(dest, f->to), .fetched = f->mode == WIRE_GRANT_READ, .progress = f->progress,
		.age_s = (double)f->age_ms / 1e3, .seconds = (double)f->took_ms / 1e3 };
	struct ptcp_event ev = { .type = PTCP_EVENT_STATUS, .left = &s };

	remote_job_name(t, f->id, name);
	sock_join(peer, sizeof peer, span_copy(host, f->host), f->port);
	if (s.state == PTCP_STATE_FAILED) {
		s.code = why.code;
		s.sys = err_cause(&why);
		s.error = why.msg;
	}
	task_emit(t, &ev);
}

/* "ID@HOST[:PORT]", or "HOST[:PORT]" with id 0; the host at *at. */
static int parse_name(const char *name, uint64_t *id, const char **at, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], digits[REMOTE_JOB_ID_DIGITS + 1] = "";

	*id = 0;
	if ((*at = strchr(name, '@')) == NULL) {
		*at = name;
		return 0;
	}
	if (*at - name != REMOTE_JOB_ID_DIGITS || strspn(name, "0123456789abcdef") != REMOTE_JOB_ID_DIGITS)
		return err_set(e, PTCP_EUSAGE, "%s: not the name of a transfer (--detach prints it: ID@HOST:PORT)",
		    text_escape(shown, sizeof shown, name));
	memcpy(digits, name, REMOTE_JOB_ID_DIGITS);
	*id = strtoull(digits, NULL, 16);
	++*at;
	return 0;
}

int ptcp_status_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *name,
    bool cancel, struct ptcp_err *e)
{
	const char *at;
	uint64_t id;
	int r;

	if ((r = parse_name(name, &id, &at, e)) < 0)
		return r;
	if (cancel && id == 0)
		return err_set(e, PTCP_EUSAGE, "the transfer to be canceled is missing (give its name: ID@HOST:PORT)");
	if ((r = query_new(out, o, JOB_FRAMES_STATUS_REQUESTED, at, e)) < 0)
		return r;
	(*out)->remote_job->status = (struct wire_status){ id, cancel };
	return 0;
}

static const char *const state_names[] = { [PTCP_STATE_RUNNING] = "running", [PTCP_STATE_DONE] = "done",
	[PTCP_STATE_FAILED] = "failed" };

const char *ptcp_state_name(enum ptcp_state s) { return state_names[s]; }

/* ---- Links ---- */

static char *address(const struct wire_link *f)
{
	char host[WIRE_HOST_MAX + 1], out[WIRE_HOST_MAX + 10];

	sock_join(out, sizeof out, span_copy(host, f->host), f->port);
	return strdup(out);
}

static char *text(struct span s)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof ((struct ptcp_err *)0)->msg];

	return strdup(text_escape(shown, sizeof shown, span_copy(raw, s)));
}

static double error_of(uint64_t v, double units)
{
	return v == WIRE_LINK_NOT_KNOWN ? NAN : (double)v / units;
}

int remote_job_link(struct remote_job *h, const struct wire_link *f, struct ptcp_err *e)
{
	struct ptcp_published_link *l;

	if (h->n_links == PTCP_PUBLISHED_LINKS_MAX)
		return err_set(e, PTCP_EPROTO, "more than %d LINK frames", PTCP_PUBLISHED_LINKS_MAX);
	l = &h->link[h->n_links++];
	*l = (struct ptcp_published_link){
		.to = address(f), .why = f->text.n > 0 ? text(f->text) : NULL, .messages = f->messages,
		.streams = f->streams,
		.rate_bps = (double)f->rate_bps, .rate_error_bps = error_of(f->rate_error_bps, 1),
		.delay_s = (double)f->delay_ns / 1e9, .delay_error_s = error_of(f->delay_error_ns, 1e9),
		.delay_from_round_trip = (f->flags & WIRE_LINK_ROUND_TRIP) != 0, .age_s = (double)f->age_ms / 1e3
	};
	return l->to == NULL || (f->text.n > 0 && l->why == NULL) ? err_nomem(e) : 0;
}

int ptcp_link_query_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *from,
    struct ptcp_err *e)
{
	struct ptcp_task *t;
	int r;

	if ((r = query_new(&t, o, JOB_FRAMES_LINKS_REQUESTED, from, e)) < 0)
		return r;
	if (t->target.ssh)
		r = err_set(e, PTCP_EUSAGE,
		    "%s: a link query needs a server, which ssh does not start (write HOST[:PORT])", from);
	else if ((t->remote_job->link = calloc(PTCP_PUBLISHED_LINKS_MAX, sizeof *t->remote_job->link)) == NULL)
		r = err_nomem(e);
	return task_made(out, t, r);
}

size_t ptcp_link_query_links(const struct ptcp_task *t, struct ptcp_published_link *out, size_t most)
{
	const struct remote_job *h = t->remote_job;

	if (h == NULL || h->n_links == 0)
		return 0;
	if (most > 0)
		memcpy(out, h->link, (h->n_links < most ? h->n_links : most) * sizeof *out);
	return h->n_links;
}
