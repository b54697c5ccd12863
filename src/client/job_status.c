/* Queries a server for the jobs that this client left to it, or cancels one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"

static enum ptcp_state outcome(const struct wire_state *f, struct ptcp_err *why)
{
	struct ptcp_err reason;

	if (f->kind == WIRE_STATE_RUNNING)
		return PTCP_STATE_RUNNING;
	remote_job_reason(&reason, f->code, f->text);
	return client_failed(why, &f->progress, f->code != 0 ? &reason : NULL) ? PTCP_STATE_FAILED : PTCP_STATE_DONE;
}

void remote_job_state(struct ptcp_transfer *t, const struct wire_state *f)
{
	char name[REMOTE_JOB_NAME_BYTES], peer[SOCK_HOST_BYTES + 10], host[WIRE_HOST_MAX + 1];
	char source[WIRE_PATH_MAX + 1], dest[WIRE_PATH_MAX + 1];
	struct ptcp_err why;
	struct ptcp_status s = { .name = name, .peer = peer, .state = outcome(f, &why), .source = span_copy(source, f->from),
		.dest = span_copy(dest, f->to), .fetched = f->mode == WIRE_GRANT_READ, .progress = f->progress,
		.age_s = (double)f->age_ms / 1e3, .seconds = (double)f->took_ms / 1e3 };
	struct ptcp_event ev = { .type = PTCP_EVENT_STATUS, .left = &s };

	remote_job_name(t, f->id, name);
	sock_join(peer, sizeof peer, span_copy(host, f->host), f->port);
	if (s.state == PTCP_STATE_FAILED) {
		s.code = why.code;
		s.error = why.msg;
	}
	client_emit(t, &ev);
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

int ptcp_status_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *name,
    bool cancel, struct ptcp_err *e)
{
	const char *at;
	uint64_t id;
	int r;

	if ((r = parse_name(name, &id, &at, e)) < 0)
		return r;
	if (cancel && id == 0)
		return err_set(e, PTCP_EUSAGE, "the transfer to be canceled is missing (give its name: ID@HOST:PORT)");
	if ((r = remote_job_query_new(out, o, JOB_FRAMES_STATUS_REQUESTED, at, e)) < 0)
		return r;
	(*out)->third->status = (struct wire_status){ id, cancel };
	return 0;
}

static const char *const state_names[] = { [PTCP_STATE_RUNNING] = "running", [PTCP_STATE_DONE] = "done",
	[PTCP_STATE_FAILED] = "failed" };

const char *ptcp_state_name(enum ptcp_state s)
{
	return state_names[s];
}
