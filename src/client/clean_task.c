/* Leftovers on another host: the client's side of ptcp clean. */
#include "client/clean_task.h"

#include <string.h>

#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"

#define OLDER_DEFAULT_S 86400.0
#define OLDER_MAX_S 1e12

void ptcp_clean_opts_init(struct ptcp_clean_opts *o)
{
	*o = (struct ptcp_clean_opts){ .size = sizeof *o, .older_s = OLDER_DEFAULT_S };
}

void ptcp_clean_result_init(struct ptcp_clean_result *r)
{
	*r = (struct ptcp_clean_result){ .size = sizeof *r };
}

int clean_take_opts(struct ptcp_clean_opts *out, const struct ptcp_clean_opts *o, struct ptcp_err *e)
{
	int r;

	ptcp_clean_opts_init(out);
	if ((r = opts_copy(out, sizeof *out, o, "ptcp_clean_opts_init", e)) < 0)
		return r;
	if (!(out->older_s >= 0 && out->older_s <= OLDER_MAX_S))
		return err_set(e, PTCP_EUSAGE, "minimum age %g: must be 0 to %g seconds", out->older_s, OLDER_MAX_S);
	return 0;
}

int clean_outcome(const char *dir, const struct ptcp_clean_result *r, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (r->failed == 0)
		return 0;
	return err_set(e, r->files > 0 ? PTCP_EPARTIAL : PTCP_EIO, "%s: %llu leftover%s could not be removed (see above)",
	    text_escape(shown, sizeof shown, dir), (unsigned long long)r->failed, r->failed == 1 ? "" : "s");
}

/* ---- A server's answers ---- */

void remote_job_leftover(struct ptcp_task *t, const struct wire_leftover *f)
{
	const struct ptcp_clean_opts *o = &t->remote_job->clean;
	char path[WIRE_PATH_MAX + 1], raw[WIRE_TEXT_MAX + 1], why[TEXT_NAME_BYTES];
	struct ptcp_leftover l = { .path = span_copy(path, f->path), .bytes = f->bytes, .age_s = (double)f->age_ms / 1e3 };

	if (f->text.n > 0)
		l.why = text_escape(why, sizeof why, span_copy(raw, f->text));
	if (o->found != NULL)
		o->found(o->arg, &l);
}

void remote_job_cleaned(struct ptcp_task *t, const struct wire_cleaned *f)
{
	struct remote_job *h = t->remote_job;
	struct ptcp_err why;

	h->cleaned = (struct ptcp_clean_result){ .files = f->files, .bytes = f->bytes, .in_use = f->in_use,
		.recent = f->recent, .failed = f->failed, .unlisted = f->files + f->failed - h->frames.n_listed };
	if (f->final)
		task_finish(t, clean_outcome(t->known_as, &h->cleaned, &why) < 0 ? &why : NULL);
}

void remote_job_put_clean(struct remote_job *h, const char *path)
{
	struct wire_clean f = { .older_ms = (uint64_t)(h->clean.older_s * 1e3), .dry_run = h->clean.dry_run,
		.path = { (const uint8_t *)path, strlen(path) } };

	OUTBOX_PUT(&h->frames.conn.out, clean, CLEAN, &f);
}

/* ---- The task ---- */

bool ptcp_is_remote(const char *path)
{
	struct remote ignored;

	return remote_parse(&ignored, path, NULL) > 0;
}

int ptcp_clean_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_clean_opts *clean, struct ptcp_err *e)
{
	struct remote none = { .ssh = false };
	char shown[TEXT_NAME_BYTES];
	struct ptcp_task *t;
	int r;

	if ((r = task_new(&t, o, e)) < 0)
		return r;
	if ((r = remote_job_new(t, &none, e)) == 0 && (r = clean_take_opts(&t->remote_job->clean, clean, e)) == 0 &&
	    (r = remote_parse(&t->target, url, e)) == 0)
		r = err_set(e, PTCP_EUSAGE, "%s: not on another host (write ptcp://HOST/DIRECTORY or HOST:DIRECTORY)",
		    text_escape(shown, sizeof shown, url));
	if (r > 0 && strlen(t->target.path) > WIRE_PATH_MAX)
		r = err_set(e, PTCP_EUSAGE, "directory: path longer than %d bytes", WIRE_PATH_MAX);
	if (r > 0 && (r = task_name_target(t, e)) == 0)
		t->remote_job->request = JOB_FRAMES_CLEAN_REQUESTED;
	return task_made(out, t, r);
}

void ptcp_clean_totals(const struct ptcp_task *t, struct ptcp_clean_result *r)
{
	struct ptcp_clean_result all = { 0 };

	if (t->remote_job != NULL)
		all = t->remote_job->cleaned;
	results_copy(r, &all, sizeof all);
}
