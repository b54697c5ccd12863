/* Work on files and directories of another host: the client's side of ptcp ls, du, mkdir, rm, mv and clean. */
#include <stdlib.h>
#include <string.h>

#include "client/file_digests.h"
#include "client/manage_task.h"
#include "client/remote_job_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "store/expand.h"

void ptcp_manage_opts_init(struct ptcp_manage_opts *o)
{
	*o = (struct ptcp_manage_opts){ .size = sizeof *o };
}

void ptcp_manage_result_init(struct ptcp_manage_result *r)
{
	*r = (struct ptcp_manage_result){ .size = sizeof *r };
}

/* ---- Answers ---- */

static void manage_task_report(struct ptcp_task *t, const struct ptcp_entry *entry)
{
	const struct ptcp_manage_opts *o = &t->remote_job->manage;

	if (o->entry != NULL)
		o->entry(o->arg, entry);
}

struct ptcp_entry remote_job_entry(const struct wire_listed *f, const char *path)
{
	return (struct ptcp_entry){ .path = path, .type = (enum ptcp_entry_type)f->type, .mode = f->mode,
		.bytes = f->bytes, .disk_bytes = f->disk_bytes, .entries = f->entries, .mtime_s = f->mtime_s,
		.mtime_ns = f->mtime_ns };
}

static int on_failed(struct ptcp_task *t, const char *path, size_t url, const struct wire_listed *f,
    struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	struct ptcp_entry entry = { .path = path, .url = url };
	struct ptcp_err why;

	outbox_reason(&why, &f->why);
	why.sys = err_cause(&why);
	entry.code = why.code;
	entry.sys = why.sys;
	entry.why = why.msg;
	manage_task_report(t, &entry);
	if (h->failed_path != NULL) {
		h->failure.sys = h->failure.sys == why.sys ? why.sys : 0;
		return 0;
	}
	h->failure = why;
	return (h->failed_path = strdup(path)) != NULL ? 0 : err_nomem(e);
}

/* The number of the URL with the path; of several, *next, as a server answers in order. */
static size_t url_of(const struct ptcp_task *t, struct span path, size_t *next)
{
	struct span rest = { t->files.open_paths, t->files.open_paths_bytes }, each;
	size_t i, found = SIZE_MAX;
	uint8_t flags;

	for (i = 0; wire_path_next(&rest, &flags, &each); i++)
		if (each.n == path.n && memcmp(each.p, path.p, path.n) == 0 && (found == SIZE_MAX || i == *next))
			found = i;
	*next = found != SIZE_MAX ? found + 1 : *next;
	return found;
}

/* The answer to SUM. */
static int on_summed(struct ptcp_task *t, struct ptcp_entry *entry, const char *hex, struct ptcp_err *e)
{
	struct file_digests digests;

	if (entry->type != PTCP_ENTRY_FILE || !file_digests(&digests, t->remote_job->manage.digests, hex, entry))
		return err_set(e, PTCP_EPROTO, "unexpected LISTED frame in an answer to SUM");
	manage_task_report(t, entry);
	return 0;
}

int remote_job_listed(struct ptcp_task *t, const struct wire_listed *f, struct ptcp_err *e)
{
	struct remote_job *h = t->remote_job;
	char path[WIRE_PATH_MAX + 1], target[WIRE_PATH_MAX + 1];
	struct ptcp_entry entry = remote_job_entry(f, span_copy(path, f->path));

	entry.url = h->op == PTCP_SUM ? url_of(t, f->path, &h->next_url) : SIZE_MAX;
	if (f->why.code != 0)
		return on_failed(t, path, entry.url, f, e);
	if (f->path.n > h->known_prefix)
		entry.path += h->known_prefix;
	if (h->op == PTCP_SUM)
		return on_summed(t, &entry, span_copy(target, f->target), e);
	if (f->type == WIRE_LISTED_SYMLINK)
		entry.target = span_copy(target, f->target);
	manage_task_report(t, &entry);
	return 0;
}

static int outcome(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_manage_result *m = &t->remote_job->managed;
	char shown[TEXT_NAME_BYTES];

	if (m->failed == 0)
		return 0;
	if (m->failed == 1 && m->entries == 0 && t->files.n_open_paths == 1 + (t->remote_job->op == PTCP_RENAME) &&
	    t->remote_job->failed_path != NULL) {
		*e = t->remote_job->failure;
		return err_while(e, e->code, "%s", text_escape(shown, sizeof shown,
		    t->remote_job->failed_path[0] != '\0' ? t->remote_job->failed_path : "."));
	}
	err_set(e, m->entries > 0 ? PTCP_EPARTIAL : PTCP_EIO, "%s: %llu failure%s (see above)", t->known_as,
	    (unsigned long long)m->failed, m->failed == 1 ? "" : "s");
	e->sys = t->remote_job->failure.sys;
	e->from_peer = true;
	return e->code;
}

void remote_job_managed(struct ptcp_task *t, const struct wire_managed *f)
{
	struct ptcp_err why;

	t->remote_job->managed = (struct ptcp_manage_result){ .entries = f->entries, .bytes = f->bytes,
		.disk_bytes = f->disk_bytes, .failed = f->failed,
		.quota_used_bytes = f->quota_used_bytes, .quota_bytes = f->quota_bytes };
	if (f->final)
		task_finish(t, outcome(t, &why) < 0 ? &why : NULL);
}

/* ---- The request ---- */

static void put_sum(struct ptcp_task *t)
{
	const struct ptcp_manage_opts *o = &t->remote_job->manage;
	struct wire_range range = manage_range(o);
	const struct wire_sum f = { .flags = o->recursive ? WIRE_MANAGE_RECURSIVE : 0, .digests = (uint16_t)o->digests,
		.start = range.start, .end = range.end, .n_paths = t->files.n_open_paths,
		.paths = { t->files.open_paths, t->files.open_paths_bytes } };

	OUTBOX_PUT(&t->remote_job->frames.conn.out, sum, SUM, &f);
}

void remote_job_put_manage(struct ptcp_task *t)
{
	static const uint8_t op[] = { [PTCP_LIST] = WIRE_MANAGE_LIST, [PTCP_COUNT] = WIRE_MANAGE_COUNT,
		[PTCP_MKDIR] = WIRE_MANAGE_MKDIR, [PTCP_REMOVE] = WIRE_MANAGE_REMOVE,
		[PTCP_RENAME] = WIRE_MANAGE_RENAME, [PTCP_SUM] = WIRE_SUM_OP, [PTCP_RMDIR] = WIRE_MANAGE_RMDIR,
		[PTCP_TOUCH] = WIRE_MANAGE_TOUCH };
	const struct ptcp_manage_opts *o = &t->remote_job->manage;
	const struct wire_manage f = { .op = op[t->remote_job->op],
		.flags = (o->recursive ? WIRE_MANAGE_RECURSIVE : 0) | (o->hidden ? WIRE_MANAGE_HIDDEN : 0) |
		    (o->itself ? WIRE_MANAGE_ITSELF : 0) | (o->parents ? WIRE_MANAGE_PARENTS : 0) |
		    (o->replace ? WIRE_MANAGE_REPLACE : 0) | (o->literal ? WIRE_MANAGE_LITERAL : 0),
		.n_paths = t->files.n_open_paths, .paths = { t->files.open_paths, t->files.open_paths_bytes } };

	if (t->remote_job->op == PTCP_SUM)
		put_sum(t);
	else
		OUTBOX_PUT(&t->remote_job->frames.conn.out, manage, MANAGE, &f);
}

static int manage_opts_check(enum ptcp_manage_op op, size_t n, const struct ptcp_manage_opts *o, struct ptcp_err *e)
{
	if (op < PTCP_LIST || op > PTCP_TOUCH || n == 0 || (op == PTCP_RENAME && n != 2) ||
	    (o->recursive && op != PTCP_LIST && op != PTCP_REMOVE && op != PTCP_SUM) ||
	    (op != PTCP_SUM && (o->digests != 0 || o->start != 0 || o->end != 0)) ||
	    (o->digests & ~(unsigned)PTCP_DIGESTS_ALL) != 0 || ((o->hidden || o->itself) && op != PTCP_LIST) ||
	    (o->literal && op != PTCP_LIST && op != PTCP_COUNT && op != PTCP_REMOVE) ||
	    (o->parents && op != PTCP_MKDIR) || (o->replace && op != PTCP_RENAME))
		return err_set(e, PTCP_EUSAGE, "an operation without its URLs, or an option of another operation");
	return 0;
}

int manage_take_opts(struct ptcp_manage_opts *out, enum ptcp_manage_op op, size_t n,
    const struct ptcp_manage_opts *callers, struct ptcp_err *e)
{
	int r;

	ptcp_manage_opts_init(out);
	if ((r = opts_copy(out, sizeof *out, callers, "ptcp_manage_opts_init", e)) < 0 ||
	    (r = manage_opts_check(op, n, out, e)) < 0)
		return r;
	if (op == PTCP_SUM && out->digests == 0)
		out->digests = PTCP_SHA256;
	return 0;
}

struct wire_range manage_range(const struct ptcp_manage_opts *o)
{
	static const struct wire_range whole = { 0, WIRE_RANGE_REST };

	return o->start == 0 && o->end == 0 ? whole : (struct wire_range){ o->start, o->end };
}

int remote_job_take_urls(struct ptcp_task *t, const char *const *urls, size_t n, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct remote each;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		text_escape(shown, sizeof shown, urls[i]);
		if ((r = remote_parse(&each, urls[i], e)) < 0)
			return r;
		if (r == 0)
			return err_set(e, PTCP_EUSAGE, "%s: not on another host (write ptcp://HOST/PATH or HOST:PATH)",
			    shown[0] != '\0' ? shown : "''");
		if (i == 0)
			t->target = each;
		else if (!remote_same_host(&each, &t->target))
			return err_set(e, PTCP_EUSAGE, "%s: on another host than the first (both must be on one host)",
			    shown);
		if ((r = task_add_path(t, 0, each.path, e)) < 0)
			return r;
	}
	return 0;
}

/* One directory: its content is shown relative to it. */
static size_t prefix_of(const char *path)
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		n--;
	if (strcmp(path, ".") == 0 || path[0] == '\0')
		return 0;
	return n + 1; /* a slash follows */
}

int ptcp_manage_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, enum ptcp_manage_op op,
    const char *const *urls, size_t n, const struct ptcp_manage_opts *m, struct ptcp_err *e)
{
	struct remote_job *h;
	struct ptcp_task *t;
	int r;

	if ((r = remote_job_new_task(&t, o, e)) < 0)
		return r;
	h = t->remote_job;
	if ((r = options_check_files(&t->o, false, e)) == 0 &&
	    (r = manage_take_opts(&h->manage, op, n, m, e)) == 0 &&
	    (r = remote_job_take_urls(t, urls, n, e)) == 0 && (r = task_name_target(t, e)) == 0) {
		h->request = JOB_FRAMES_MANAGE_REQUESTED;
		h->op = op;
		if (op == PTCP_LIST && n == 1 && (h->manage.literal || !expand_has_wildcard(t->target.path)))
			h->known_prefix = prefix_of(t->target.path);
	}
	return task_made(out, t, r);
}

void ptcp_manage_totals(const struct ptcp_task *t, struct ptcp_manage_result *r)
{
	struct ptcp_manage_result all = { 0 };

	if (t->remote_job != NULL)
		all = t->remote_job->managed;
	results_copy(r, &all, sizeof all);
}

size_t ptcp_same_host(const char *const *urls, size_t n)
{
	struct remote first, each;
	size_t i = n > 0;

	if (n > 0 && remote_parse(&first, urls[0], NULL) > 0)
		while (i < n && remote_parse(&each, urls[i], NULL) > 0 && remote_same_host(&first, &each))
			i++;
	return i;
}

/* ---- Leftovers on another host ---- */

void ptcp_clean_opts_init(struct ptcp_clean_opts *o)
{
	*o = (struct ptcp_clean_opts){ .size = sizeof *o, PTCP_OPTIONS_CLEAN(PTCP_NO_ROW, OPTS_INITIAL) };
}

void ptcp_clean_result_init(struct ptcp_clean_result *r)
{
	*r = (struct ptcp_clean_result){ .size = sizeof *r };
}

int clean_take_opts(struct ptcp_clean_opts *o, const struct ptcp_clean_opts *callers, struct ptcp_err *e)
{
	int r;

	ptcp_clean_opts_init(o);
	r = opts_copy(o, sizeof *o, callers, "ptcp_clean_opts_init", e);
	PTCP_OPTIONS_CLEAN(PTCP_NO_ROW, OPTS_CHECK)
	return r;
}

int clean_outcome(const char *dir, const struct ptcp_clean_result *r, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (r->failed == 0)
		return 0;
	return err_set(e, r->files > 0 ? PTCP_EPARTIAL : PTCP_EIO,
	    "%s: %llu leftover%s could not be removed (see above)",
	    text_escape(shown, sizeof shown, dir), (unsigned long long)r->failed, r->failed == 1 ? "" : "s");
}

/* ---- A server's answers ---- */

void remote_job_leftover(struct ptcp_task *t, const struct wire_leftover *f)
{
	const struct ptcp_clean_opts *o = &t->remote_job->clean;
	char path[WIRE_PATH_MAX + 1];
	struct ptcp_leftover l = { .path = span_copy(path, f->path), .bytes = f->bytes,
		.age_s = (double)f->age_ms / 1e3 };
	struct ptcp_err why;

	if (f->why.code != 0) {
		outbox_reason(&why, &f->why);
		l.why = why.msg;
		l.sys = err_cause(&why);
	}
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
	char shown[TEXT_NAME_BYTES];
	struct ptcp_task *t;
	int r;

	if ((r = remote_job_new_task(&t, o, e)) < 0)
		return r;
	if ((r = options_check_files(&t->o, false, e)) == 0 &&
	    (r = clean_take_opts(&t->remote_job->clean, clean, e)) == 0 && (r = remote_parse(&t->target, url, e)) == 0)
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
