/* Work on files and directories below a client's root: ptcp ls, du, mkdir, rm, mv. The paths of the request are taken
 * one after the other, patterns expanded, and trees walked entry by entry. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/filter.h"
#include "core/text.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "server/managing_impl.h"
#include "store/manage.h"
#include "store/part.h"
#include "store/walk.h"

static struct managing *managing_of(const struct file_job *j) { return CONTAINER_OF(j, struct managing, job); }

/* ---- Reports ---- */

void managing_fail(struct managing *m, const char *path, const struct ptcp_err *why)
{
	m->totals.failed++;
	file_job_fail(&m->job, path, why);
}

void managing_fail_in(struct managing *m, const char *path, const struct dir *d, const char *name,
    const struct ptcp_err *why)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err stripped;

	fs_err_strip(&stripped, why, dir_path_text(d, name, text, sizeof text));
	managing_fail(m, path, &stripped);
}

void managing_put_listed(struct managing *m, struct wire_listed *f, const char *path)
{
	struct ptcp_err why;

	if (strlen(path) > WIRE_PATH_MAX) {
		err_because(&why, PTCP_EIO, ENAMETOOLONG, "a path longer than %d bytes (list the directory above it)",
		    WIRE_PATH_MAX);
		managing_fail(m, path, &why);
		return;
	}
	f->path = file_job_cut(path, WIRE_PATH_MAX);
	OUTBOX_PUT(&m->job.found, listed, LISTED, f);
	m->totals.entries += f->entries > 0 ? f->entries : 1;
	m->totals.bytes += f->bytes;
	m->totals.disk_bytes += f->disk_bytes;
}

/* The path of `name` in d (NULL: of d), as the client knows it; to be freed. */
static char *shown_path(const struct managing *m, const struct dir *d, const char *name)
{
	char *below = dir_path_below(d, m->base, name != NULL ? name : ""), *path = NULL;
	size_t n;

	if (below != NULL && (path = malloc(strlen(m->prefix) + strlen(below) + 2)) != NULL) {
		n = (size_t)sprintf(path, "%s%s", m->prefix, below);
		while (name == NULL && n > 1 && path[n - 1] == '/')
			path[--n] = '\0';
		if (n == 0)
			strcpy(path, ".");
	}
	free(below);
	return path;
}

/* ---- The entries of a tree ---- */

struct wire_listed managing_listed(const struct walk_entry *w)
{
	return (struct wire_listed){ .type = file_job_type(w->format), .mode = (uint16_t)w->mode,
		.bytes = w->size_bytes, .disk_bytes = w->disk_bytes, .mtime_s = w->mtime.tv_sec,
		.mtime_ns = (uint32_t)w->mtime.tv_nsec };
}

static void list_entry(struct managing *m, const struct walk_entry *w, const char *path)
{
	struct wire_listed f = managing_listed(w);

	if (w->target != NULL)
		f.target = file_job_cut(w->target, WIRE_PATH_MAX);
	managing_put_listed(m, &f, path);
}

static void count_entry(struct managing *m, const struct walk_entry *w)
{
	struct wire_listed *s = &m->sum;

	if (s->entries++ == 0)
		s->type = file_job_type(w->format);
	s->bytes += S_ISREG(w->format) ? w->size_bytes : 0;
	s->disk_bytes += w->disk_bytes;
}

static void remove_entry(struct managing *m, const struct walk_entry *w, const char *path)
{
	struct ptcp_err why = { 0 };
	int r;

	if (w->type == WALK_DIR)
		return; /* its WALK_DIR_END removes it */
	r = w->type == WALK_DIR_END ? manage_rmdir(w->dir, &why) : manage_clear(w->dir, w->name, &why);
	if (r == 0)
		m->totals.entries++;
	else if (why.sys != ENOENT && (why.sys != ENOTEMPTY || m->totals.failed == m->failed_before))
		managing_fail_in(m, path, w->dir, w->name, &why);
}

/* The server's own files are invisible, but where they are in the way. */
static bool is_hidden(const struct managing *m, const struct walk_entry *w)
{
	return m->op != WIRE_MANAGE_REMOVE && w->name != NULL &&
	    (w->excluded || (w->format != 0 && dir_excludes(w->dir, w->dev, w->ino)));
}

static int on_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct managing *m = arg;
	struct ptcp_err why = { .code = PTCP_EIO };
	bool hidden;
	char *path;
	int r = 0;

	hidden = is_hidden(m, w);
	if ((hidden && !m->named) || (w->type == WALK_DIR_END && m->op != WIRE_MANAGE_REMOVE))
		return 0;
	if (w->type != WALK_FAILED && m->op == WIRE_MANAGE_COUNT) {
		count_entry(m, w);
		return 0;
	}
	if ((path = shown_path(m, w->dir, w->name)) == NULL)
		return err_nomem(e);
	if (w->type == WALK_FAILED || w->excluded || hidden) {
		snprintf(why.msg, sizeof why.msg, "%s", w->why != NULL ? w->why : EXCLUDED_WHY);
		why.sys = w->sys;
		managing_fail_in(m, path, w->dir, w->name, &why);
	} else if (m->op == WIRE_SUM_OP) {
		r = managing_sum_entry(m, w, path, e);
	} else if (m->op == WIRE_MANAGE_LIST) {
		list_entry(m, w, path);
	} else {
		remove_entry(m, w, path);
	}
	free(path);
	return r;
}

static void forget_path(struct managing *m)
{
	walk_free(m->walk);
	m->walk = NULL;
	dir_unref(m->base);
	m->base = NULL;
	free(m->prefix);
	m->prefix = NULL;
	free(m->path);
	m->path = NULL;
}

static void end_walk(void *arg)
{
	struct managing *m = arg;

	if (m->op == WIRE_MANAGE_COUNT && m->sum.entries > 0)
		managing_put_listed(m, &m->sum, m->path[0] != '\0' ? m->path : ".");
	forget_path(m);
}

/* A link that a path names is followed as far as the client may go. */
static void sum_itself(struct managing *m)
{
	static const struct walk_limits limits = { .links = WALK_LINKS_FOLLOW };

	dir_follow(m->base, m->job.request.own ? DIR_FOLLOW_ANYWHERE : DIR_FOLLOW_BENEATH);
	walk_limit(m->walk, &limits);
	walk_flat(m->walk);
}

/* Walks `name` in m->base, or with "" the content of m->base. */
static int begin_walk(struct managing *m, const char *name, struct ptcp_err *e)
{
	size_t n = strlen(m->path);
	int r;

	while (n > 1 && m->path[n - 1] == '/')
		n--;
	while (name[0] != '\0' && n > 0 && m->path[n - 1] != '/')
		n--;
	if (name[0] == '\0' && n == 1 && m->path[0] == '.')
		n = 0;
	if ((m->prefix = malloc(n + 2)) == NULL)
		return err_nomem(e);
	if ((r = walk_new(&m->walk, m->job.memory, e)) < 0)
		return r;
	memcpy(m->prefix, m->path, n);
	if (n > 0 && m->path[n - 1] != '/')
		m->prefix[n++] = '/';
	m->prefix[n] = '\0';
	m->failed_before = m->totals.failed;
	m->sum = (struct wire_listed){ .type = WIRE_LISTED_DIR, .entries = name[0] == '\0' };
	m->named = m->op == WIRE_SUM_OP && name[0] != '\0';
	if (m->named)
		sum_itself(m);
	if (m->op == WIRE_MANAGE_LIST && (m->flags & WIRE_MANAGE_RECURSIVE) == 0)
		walk_flat(m->walk);
	if (m->op == WIRE_MANAGE_LIST && name[0] == '\0' && (m->flags & WIRE_MANAGE_HIDDEN) == 0)
		walk_filter(m->walk, m->visible, false);
	return walk_add(m->walk, m->base, name[0] != '\0' ? name : NULL, e);
}

/* ---- Paths ---- */

/* A directory's content is listed, anything else by its name. */
static int begin_list(struct managing *m, char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	const struct request *a = &m->job.request;
	int r;

	if ((m->flags & WIRE_MANAGE_ITSELF) != 0)
		return request_source(a, m->path, false, &m->base, name, e);
	if ((r = request_source(a, m->path, true, &m->base, name, e)) == 0 ||
	    (e->sys != ENOTDIR && e->sys != ELOOP && e->sys != EXDEV && e->sys != ENOENT) ||
	    text_is_contents(m->path))
		return r;
	return request_source(a, m->path, false, &m->base, name, e);
}

static int begin_sum(struct managing *m, char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	int r = begin_list(m, name, e);

	if (r == 0 && name[0] == '\0' && (m->flags & WIRE_MANAGE_RECURSIVE) == 0)
		r = err_because(e, PTCP_EIO, EISDIR, "Is a directory (-r takes the files below it)");
	else if (r == 0 && name[0] != '\0' && part_is_own_name(name))
		r = err_set(e, PTCP_EREFUSED, "a name that ptcp reserves for unfinished files (choose another)");
	return r;
}

static int begin_remove(struct managing *m, char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	struct ptcp_err why;
	int r;

	if ((r = managing_find_name(m, m->path, &m->base, name, e)) < 0)
		return r;
	if ((r = manage_remove(m->base, name, &why)) == 0) {
		m->totals.entries++;
		return 1;
	}
	if (why.sys == EISDIR && (m->flags & WIRE_MANAGE_RECURSIVE) != 0)
		return 0;
	if (why.sys == EISDIR)
		err_because(&why, PTCP_EIO, EISDIR, "Is a directory (remove it with all content by -r)");
	managing_fail_in(m, m->path, m->base, name, &why);
	return 1;
}

/* A directory itself, without a name in another. */
static void list_self(struct managing *m)
{
	struct walk_entry w = { .type = WALK_DIR };
	struct stat st;
	int at;

	if ((at = dir_fd(m->base, NULL)) < 0)
		return;
	if (dir_sys(m->base)->fstat(at, &st) == 0) {
		w.format = st.st_mode & S_IFMT;
		w.mode = st.st_mode & 07777;
		w.size_bytes = (uint64_t)st.st_size;
		w.disk_bytes = (uint64_t)st.st_blocks * 512;
		w.mtime = st.st_mtim;
		list_entry(m, &w, m->path[0] != '\0' ? m->path : ".");
	}
	dir_fd_done(m->base);
}

/* LIST, COUNT, SUM or REMOVE of a path. A path that cannot be found is reported, and the work goes on. */
static int begin_path(struct managing *m, const char *path, struct ptcp_err *e)
{
	char name[DESTINATION_NAME_BYTES];
	struct ptcp_err why = { 0 };
	int r;

	if ((m->path = strdup(path)) == NULL)
		return err_nomem(e);
	if (m->op == WIRE_MANAGE_LIST)
		r = begin_list(m, name, &why);
	else if (m->op == WIRE_SUM_OP)
		r = begin_sum(m, name, &why);
	else if (m->op == WIRE_MANAGE_COUNT)
		r = request_source(&m->job.request, path, false, &m->base, name, &why);
	else
		r = begin_remove(m, name, &why);
	if (r < 0)
		managing_fail(m, path, &why);
	else if (r == 0 && m->op == WIRE_MANAGE_LIST && name[0] == '\0' && (m->flags & WIRE_MANAGE_ITSELF) != 0)
		list_self(m);
	else if (r == 0)
		return begin_walk(m, name, e);
	forget_path(m);
	return 0;
}

/* ---- Steps ---- */

static int change(struct managing *m, struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };
	const char *path;
	int r = managing_change(m, &path, &why);

	if (r == PTCP_ENOMEM && why.sys == 0)
		return err_nomem(e);
	if (r < 0)
		managing_fail(m, path, &why);
	else
		m->totals.entries++;
	return 1;
}

/* The next path of the request, or of its matches. 1; 0: none is left. */
static int next_path(void *arg, struct ptcp_err *e)
{
	struct managing *m = arg;
	struct request *a = &m->job.request;
	struct ptcp_err why;
	int r;

	if (m->expand != NULL && m->expanded && m->next_match < expand_n(m->expand))
		return (r = begin_path(m, expand_path(m->expand, m->next_match++), e)) < 0 ? r : 1;
	if (m->expand != NULL && !m->expanded) {
		if ((r = expand_step(m->expand, FILE_JOB_STEP_ENTRIES, &why)) > 0)
			return 1;
		if ((m->expanded = r == 0))
			return 1;
		managing_fail(m, request_path(a, m->next - 1), &why);
	}
	expand_free(m->expand);
	m->expand = NULL;
	m->expanded = false;
	m->next_match = 0;
	if (m->next == a->n_paths)
		return 0;
	if (m->op > WIRE_MANAGE_COUNT && m->op != WIRE_MANAGE_REMOVE)
		return change(m, e);
	if ((m->flags & WIRE_MANAGE_LITERAL) != 0)
		return (r = begin_path(m, request_path(a, m->next++), e)) < 0 ? r : 1;
	return (r = expand_new(&m->expand, request_path(a, m->next++), request_open, a, a->memory, e)) < 0 ? r : 1;
}

static bool is_full(const void *arg)
{
	const struct managing *m = arg;

	return buf_len(&m->job.found.b) >= FILE_JOB_STEP_BYTES || (m->op == WIRE_SUM_OP && managing_sum_full(m));
}

static int step(struct file_job *j, struct ptcp_err *e)
{
	static const struct walk_steps steps = { .next = next_path, .entry = on_entry, .end = end_walk,
		.full = is_full };
	struct managing *m = managing_of(j);
	int r;

	m->sums.room = FILE_SUMS_STEP_BYTES;
	if (m->sums.path != NULL && (r = managing_sum_more(m, e)) < 0)
		return r;
	return walk_step(&steps, &m->walk, FILE_JOB_STEP_ENTRIES, m, e);
}

static void put_totals(const struct file_job *j, struct outbox *out, bool final)
{
	struct wire_managed f = managing_of(j)->totals;

	if (managing_of(j)->op == WIRE_MANAGE_COUNT && j->request.tree != NULL)
		tree_quota(j->request.tree, &f.quota_used_bytes, &f.quota_bytes);
	f.final = final;
	OUTBOX_PUT(out, managed, MANAGED, &f);
}

static const char *const works[] = { [WIRE_SUM_OP] = "sum", [WIRE_MANAGE_LIST] = "list", [WIRE_MANAGE_COUNT] = "count",
	[WIRE_MANAGE_MKDIR] = "mkdir", [WIRE_MANAGE_REMOVE] = "remove", [WIRE_MANAGE_RENAME] = "rename",
	[WIRE_MANAGE_RMDIR] = "rmdir", [WIRE_MANAGE_TOUCH] = "touch" };

static void managing_record(const struct file_job *j, struct ptcp_server_record *r)
{
	const struct wire_managed *t = &managing_of(j)->totals;

	r->work = works[managing_of(j)->op];
	r->files = t->entries;
	r->bytes = t->bytes;
	r->failed = t->failed;
}

static int begin(struct file_job *j, struct ptcp_err *e)
{
	struct managing *m = managing_of(j);
	int r;

	return (r = filter_new(&m->visible, NULL, e)) < 0 ? r : filter_add_pattern(m->visible, false, ".*", e);
}

static bool permits(const struct file_job *j, const struct authorization *now)
{
	enum wire_manage_op op = managing_of(j)->op;

	return (op == WIRE_MANAGE_LIST || op == WIRE_MANAGE_COUNT || op == WIRE_SUM_OP || !now->read_only) &&
	    !now->write_once &&
	    authorization_same_place(now, &j->request.auth);
}

static void managing_free(struct file_job *j)
{
	struct managing *m = managing_of(j);

	managing_sum_fini(m);
	forget_path(m);
	expand_free(m->expand);
	filter_free(m->visible);
	free(m);
}

static const struct file_job_ops ops = { .begin = begin, .step = step, .put_totals = put_totals,
	.record = managing_record, .permits = permits, .free = managing_free };
static const struct file_job_ops sum_ops = { .takes_turns = true, .begin = begin, .step = step,
	.put_totals = put_totals, .record = managing_record, .permits = permits, .free = managing_free };

/* `what`: the operation in the log. */
static int managing_start(struct file_job **out, struct job_set *t, const struct job_client *c,
    const struct wire_manage *f, const struct file_job_ops *of, const char *what, const struct managing_sums *sums,
    struct ptcp_err *e)
{
	struct managing *m = calloc(1, sizeof *m);
	char shown[TEXT_NAME_BYTES];
	int r;

	if (m == NULL)
		return err_nomem(e);
	if ((r = file_job_init(&m->job, of, t, c, sizeof *m, e)) < 0)
		goto out;
	m->op = f->op;
	m->flags = f->flags;
	m->sums = *sums;
	if ((r = request_take_manage(&m->job.request, f, e)) < 0 ||
	    (sums->digests != 0 && (r = file_sums_new(&m->sums.at, sums->digests, m->job.memory, e)) < 0))
		goto out;
	log_at(&t->context->log, LOG_INFO, "server",
	    "event=manage from=%s client=%s op=%s flags=%u paths=%u path=\"%s\"",
	    c->address, c->fingerprint, what, m->flags, m->job.request.n_given,
	    text_escape_quoted(shown, sizeof shown, request_first(&m->job.request)));
	*out = &m->job;
	file_job_start(&m->job);
	return 0;
out:
	file_job_fini(&m->job);
	free(m);
	return r;
}

int managing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_manage *f,
    struct ptcp_err *e)
{
	static const struct managing_sums none = { .digests = 0 };

	return managing_start(out, t, c, f, &ops, works[f->op], &none, e);
}

int summing_new(struct file_job **out, struct job_set *t, const struct job_client *c, const struct wire_sum *f,
    struct ptcp_err *e)
{
	const struct wire_manage q = { .op = WIRE_SUM_OP, .flags = f->flags, .n_paths = f->n_paths,
		.paths = f->paths };
	const struct managing_sums sums = { .digests = f->digests, .range = { f->start, f->end } };

	return managing_start(out, t, c, &q, &sum_ops, "sum", &sums, e);
}
