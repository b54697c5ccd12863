/* Removal of leftovers beneath a client's root, for ptcp clean. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "server/file_job.h"
#include "store/leftover.h"

struct cleaning {
	struct file_job job; /* first */
	struct leftover_opts opts;
	struct leftovers *leftovers;
	struct dir *base;    /* the request's */
	unsigned n_listed;
};

static struct cleaning *cleaning_of(const struct file_job *j) { return CONTAINER_OF(j, struct cleaning, job); }

static const struct leftover_totals *totals_of(const struct file_job *j)
{
	static const struct leftover_totals none;
	const struct cleaning *k = cleaning_of(j);

	return k->leftovers != NULL ? leftovers_totals(k->leftovers) : &none;
}

static void on_leftover(void *arg, const struct leftover *l)
{
	struct cleaning *k = arg;
	struct wire_leftover f = { .bytes = l->size_bytes, .age_ms = l->age_s > 0 ? (uint64_t)(l->age_s * 1e3) : 0 };
	struct ptcp_err why;
	char *path;

	if (k->n_listed == WIRE_LEFTOVERS_MAX ||
	    (path = dir_path_below(l->dir, k->base, l->name != NULL ? l->name : ".")) == NULL)
		return;
	k->n_listed++;
	f.path = file_job_cut(path, WIRE_PATH_MAX);
	if (l->why != NULL) {
		err_set(&why, PTCP_EIO, "%s", l->why);
		why.sys = l->sys;
		f.why = outbox_why(&why);
	}
	OUTBOX_PUT(&k->job.found, leftover, LEFTOVER, &f);
	free(path);
}

static int step(struct file_job *j, struct ptcp_err *e)
{
	return leftovers_step(cleaning_of(j)->leftovers, FILE_JOB_STEP_ENTRIES, e);
}

static void put_totals(const struct file_job *j, struct outbox *out, bool final)
{
	const struct leftover_totals *t = totals_of(j);
	struct wire_cleaned f = { t->files, t->bytes, t->in_use, t->recent, t->failed, final };

	OUTBOX_PUT(out, cleaned, CLEANED, &f);
}

static void cleaning_record(const struct file_job *j, struct ptcp_server_record *r)
{
	const struct leftover_totals *t = totals_of(j);

	r->work = "clean";
	r->files = t->files;
	r->bytes = t->bytes;
	r->failed = t->failed;
}

static int begin(struct file_job *j, struct ptcp_err *e)
{
	struct cleaning *k = cleaning_of(j);
	char shown[TEXT_NAME_BYTES];

	if ((k->base = request_dir(&j->request, e)) == NULL)
		return err_while(e, e->code, "%s", text_escape(shown, sizeof shown, request_first(&j->request)));
	return leftovers_new(&k->leftovers, k->base, &k->opts, e);
}

static bool permits(const struct file_job *j, const struct authorization *now)
{
	return !now->read_only && !now->write_once && authorization_same_place(now, &j->request.auth);
}

static void cleaning_free(struct file_job *j)
{
	struct cleaning *k = cleaning_of(j);

	leftovers_free(k->leftovers);
	free(k);
}

static const struct file_job_ops ops = { .exclusive = true, .begin = begin, .step = step,
	.put_totals = put_totals, .record = cleaning_record, .permits = permits, .free = cleaning_free };

int cleaning_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_clean *f,
    struct ptcp_err *e)
{
	struct cleaning *k = calloc(1, sizeof *k);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (k == NULL)
		return err_nomem(e);
	if ((r = file_job_init(&k->job, &ops, t, c, sizeof *k, e)) < 0)
		goto out;
	k->opts = (struct leftover_opts){ .older_s = (double)f->older_ms / 1e3, .dry_run = f->dry_run,
	    .memory = k->job.memory,
		.found = on_leftover, .arg = k };
	clock_gettime(CLOCK_REALTIME, &k->opts.now);
	if ((r = request_take_clean(&k->job.request, f->path, e)) < 0)
		goto out;
	log_at(&t->context->log, LOG_INFO, "server",
	    "event=clean from=%s client=%s path=\"%s\" older_s=%.0f dry_run=%d",
	    c->address, c->fingerprint, text_escape_quoted(shown, sizeof shown, request_first(&k->job.request)),
	    k->opts.older_s, k->opts.dry_run);
	*out = &k->job;
	file_job_start(&k->job);
	return 0;
out:
	file_job_fini(&k->job);
	free(k);
	return r;
}
