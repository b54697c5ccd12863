/* Asking a daemon how the transfers are doing that were left to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/text.h"

static const char *path_of(char out[WIRE_PATH_MAX + 1], struct span s)
{
	memcpy(out, s.n > 0 ? (const char *)s.p : "", s.n);
	out[s.n] = '\0';
	return out;
}

/* What it has come to, if it is over. */
static enum ptcp_state outcome(const struct wire_state *f, const struct session_progress *g, struct ptcp_err *why)
{
	struct ptcp_err told;

	if (f->kind == WIRE_STATE_RUNNING)
		return PTCP_STATE_RUNNING;
	remote_job_reason(&told, f->code, f->text);
	return client_failed(why, g, f->code != 0 ? &told : NULL) ? PTCP_STATE_FAILED : PTCP_STATE_DONE;
}

static int on_state(struct ptcp_transfer *t, struct span in, struct ptcp_err *e)
{
	char name[REMOTE_JOB_NAME_BYTES], peer[SOCK_HOST_BYTES + 10], host[WIRE_HOST_MAX + 1];
	char source[WIRE_PATH_MAX + 1], dest[WIRE_PATH_MAX + 1];
	struct ptcp_status s = { .name = name, .peer = peer };
	struct ptcp_event ev = { .type = PTCP_EVENT_STATUS, .left = &s };
	struct session_progress g;
	struct ptcp_err why;
	struct wire_state f;
	int r;

	if ((r = wire_state_decode(&f, in, e)) < 0)
		return r;
	remote_job_name(t, f.id, name);
	snprintf(host, sizeof host, "%.*s", (int)f.host.n, (const char *)f.host.p);
	sock_join(peer, sizeof peer, host, f.port);
	s.source = path_of(source, f.from);
	s.dest = path_of(dest, f.to);
	s.fetched = f.mode == WIRE_GRANT_READ;
	g = remote_job_progress(&f.progress);
	if ((s.state = outcome(&f, &g, &why)) == PTCP_STATE_FAILED) {
		s.code = why.code;
		s.error = why.msg;
	}
	s.bytes = s.state == PTCP_STATE_RUNNING ? g.bytes : g.file_bytes;
	s.total_bytes = g.total_bytes;
	s.files = g.files;
	s.total_files = g.total_files;
	s.failed = g.failed;
	s.total_known = g.total_known;
	s.wire_bytes = g.wire_bytes;
	s.resumed_bytes = g.resumed_bytes;
	s.streams = s.state == PTCP_STATE_RUNNING ? g.streams : g.streams_most;
	s.age_s = (double)f.age_ms / 1e3;
	s.seconds = (double)f.took_ms / 1e3;
	client_emit(t, &ev);
	return 0;
}

/* "ID@HOST[:PORT]", or "HOST[:PORT]". */
static int take_name(struct ptcp_transfer *t, struct wire_status *status, const char *name, struct ptcp_err *e)
{
	const char *at = strchr(name, '@');
	char shown[TEXT_NAME_BYTES], id[REMOTE_JOB_ID_DIGITS + 1];

	if (at == NULL)
		return remote_parse_host(&t->target, name, e);
	if (at - name != REMOTE_JOB_ID_DIGITS || strspn(name, "0123456789abcdef") != REMOTE_JOB_ID_DIGITS)
		return err_set(e, PTCP_EUSAGE, "%s: not the name of a transfer (it is what --detach has printed, ID@HOST:PORT)",
		    text_escape(shown, sizeof shown, name));
	memcpy(id, name, REMOTE_JOB_ID_DIGITS);
	id[REMOTE_JOB_ID_DIGITS] = '\0';
	status->id = strtoull(id, NULL, 16);
	return remote_parse_host(&t->target, at + 1, e);
}

int ptcp_status_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, const char *name,
    bool end, struct ptcp_err *e)
{
	struct remote_job_asks *a = calloc(1, sizeof *a);
	struct remote none = { .ssh = false };
	struct ptcp_transfer *t;
	struct ptcp_err scratch;
	int r;

	if (e == NULL)
		e = &scratch;
	if (a == NULL)
		return err_nomem(e);
	if ((r = client_new(&t, o, e)) < 0) {
		free(a);
		return r;
	}
	a->answer = WIRE_STATE;
	a->heard = on_state;
	a->status.cancel = end;
	if ((r = remote_job_new(t, &none, e)) < 0) {
		free(a);
		client_fini(t);
		return r;
	}
	t->third->asks = a;
	if ((r = take_name(t, &a->status, name, e)) == 0 && end && a->status.id == 0)
		r = err_set(e, PTCP_EUSAGE, "which transfer is to be ended is missing (name it: ID@HOST:PORT)");
	if (r < 0 || (r = client_name_target(t, e)) < 0) {
		client_fini(t);
		return r;
	}
	*out = t;
	return 0;
}

static const char *const state_names[] = { [PTCP_STATE_RUNNING] = "running", [PTCP_STATE_DONE] = "done",
	[PTCP_STATE_FAILED] = "failed" };

const char *ptcp_state_name(enum ptcp_state s)
{
	return state_names[s];
}
