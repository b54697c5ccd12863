#include "store/reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/text.h"
#include "core/units.h"
#include "fs/dir_impl.h"
#include "fs/file_system.h"
#include "store/destination.h"
#include "store/manage.h"
#include "store/sink_impl.h"

static const char *const options[] = { "--link-dest", "--compare-dest", "--copy-dest" };

struct reference {
	char *path;
	struct dir *root;    /* NULL: not usable */
	struct dir *of, *at; /* the last directory of the transfer, and that of the reference */
	struct ptcp_err why; /* for the warning; code 0: none */
};

struct references {
	struct memory_account *memory;
	enum reference_kind kind;
	bool own;
	struct dir *top;
	char warning[600];
	unsigned n;
	struct reference each[REFERENCES_MAX];
};

int references_new(struct references **out, enum reference_kind kind, bool own, struct memory_account *memory,
    struct ptcp_err *e)
{
	struct references *r = memory_calloc(memory, sizeof *r, e);

	if (r == NULL)
		return PTCP_ENOMEM;
	r->memory = memory;
	r->kind = kind;
	r->own = own;
	*out = r;
	return 0;
}

static void forget(struct reference *f)
{
	dir_unref(f->root);
	dir_unref(f->of);
	dir_unref(f->at);
	f->root = f->of = f->at = NULL;
}

void references_free(struct references *r)
{
	unsigned i;

	if (r == NULL)
		return;
	for (i = 0; i < r->n; i++) {
		forget(&r->each[i]);
		memory_free(r->memory, r->each[i].path, strlen(r->each[i].path) + 1);
	}
	dir_unref(r->top);
	memory_free(r->memory, r, sizeof *r);
}

int references_add(struct references *r, const char *path, struct ptcp_err *e)
{
	const size_t n = strlen(path) + 1;

	if (r->n == REFERENCES_MAX)
		return err_set(e, PTCP_EUSAGE, "%s: more than %u directories (name fewer)", options[r->kind],
		    REFERENCES_MAX);
	if ((r->each[r->n].path = memory_realloc(r->memory, NULL, 0, n, e)) == NULL)
		return PTCP_ENOMEM;
	memcpy(r->each[r->n++].path, path, n);
	return 0;
}

void references_begin(struct references *r, struct dir *top)
{
	unsigned i;

	if (r == NULL || r->top == top)
		return;
	dir_unref(r->top);
	r->top = dir_ref(top);
	for (i = 0; i < r->n; i++) {
		forget(&r->each[i]);
		destination_other(top, r->each[i].path, r->own, false, &r->each[i].root, &r->each[i].why);
	}
}

const char *references_warning(struct references *r)
{
	char shown[TEXT_NAME_BYTES];
	unsigned i;

	for (i = 0; r != NULL && i < r->n; i++) {
		if (r->each[i].root != NULL || r->each[i].why.code == 0)
			continue;
		snprintf(r->warning, sizeof r->warning, "%s %s: %s: this directory is not used", options[r->kind],
		    text_escape(shown, sizeof shown, r->each[i].path),
		    r->each[i].why.sys == ENOENT ? "no such directory" : r->each[i].why.msg);
		r->each[i].why.code = 0;
		return r->warning;
	}
	return NULL;
}

bool references_share(const struct references *r) { return r != NULL && r->kind == REFERENCE_LINK; }

/* f->at becomes the directory that corresponds to d. */
static bool find_dir(const struct references *r, struct reference *f, struct dir *d)
{
	struct dir *c, *at, *next, **level;
	unsigned n = 0, i;

	if (f->of == d)
		return true;
	for (c = d; c != NULL && c != r->top; c = c->parent)
		n++;
	if (c == NULL || (level = calloc(n + 1, sizeof *level)) == NULL)
		return false;
	for (i = n, c = d; i > 0; c = c->parent)
		level[--i] = c;
	at = dir_ref(f->root);
	for (i = 0; i < n && at != NULL; i++) {
		next = dir_child(at, level[i]->name);
		dir_unref(at);
		at = next;
	}
	free(level);
	dir_unref(f->of);
	dir_unref(f->at);
	f->of = at != NULL ? dir_ref(d) : NULL;
	f->at = at;
	return at != NULL;
}

/* ---- What has the name at the destination ---- */

static struct rules_entry offered(const struct reference_entry *t)
{
	return (struct rules_entry){ .type = t->target != NULL ? RULES_SYMLINK : RULES_FILE,
		.size_bytes = t->size_bytes, .mtime = t->meta->mtime };
}

struct existing {
	struct stat st;
	bool is_there, differs;
};

static bool is_file(const struct existing *x) { return x->is_there && S_ISREG(x->st.st_mode); }

/* Whether the entry is missing, or may be replaced by what a reference has. */
static bool is_wanted(const struct references *r, const struct reference_entry *t, int at, struct existing *x)
{
	const struct rules_entry o = offered(t);
	struct rules_entry there = { .type = RULES_NOTHING };
	enum rules_answer answer;

	x->is_there = dir_sys(t->dir)->fstatat(at, t->name, &x->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!x->is_there && errno != ENOENT)
		return false;
	if (x->is_there)
		there = rules_entry_of(&x->st);
	answer = rules_judge(t->rules, &o, &there);
	x->differs = answer == RULES_RECEIVE;
	if (answer != RULES_RECEIVE && answer != RULES_UNCHANGED && answer != RULES_COMPARE)
		return false;
	if (!x->is_there)
		return true;
	if (t->target != NULL || (is_file(x) && r->kind == REFERENCE_COPY) || dir_excludes(t->dir, x->st.st_dev,
	    x->st.st_ino) || published_has(t->meta->published, t->dir, at, t->name, &x->st, true))
		return false;
	return is_file(x) || S_ISLNK(x->st.st_mode) || S_ISDIR(x->st.st_mode);
}

/* ---- What a reference has ---- */

enum has { HAS_NOTHING, HAS_DATA, HAS_ALL };

struct found {
	struct dir *dir;
	int at, fd;
	struct stat st;
};

static void found_close(struct found *o)
{
	if (o->dir == NULL)
		return;
	dir_sys(o->dir)->close(&o->fd);
	dir_fd_done(o->dir);
	o->dir = NULL;
}

static bool same_time(const struct reference_entry *t, const struct stat *st)
{
	return !t->meta->set_mtime || rules_same_time(t->rules, st->st_mtim, t->meta->mtime);
}

/* The file system has rounded the time of the source to the time of the file. `finely`: hardly another content has the
 * same time; files that are left out are never compared. */
static bool is_rounded(const struct reference_entry *t, const struct found *o, bool finely)
{
	const struct file_system *f = file_system_known(o->dir);

	return f != NULL && (!finely || f->time_ns < NS_PER_S) &&
	    file_system_stores_as(f, t->meta->mtime, o->st.st_mtim);
}

static enum has judge_link(const struct reference_entry *t, const struct found *o)
{
	struct stat st;

	return store_has_target(o->dir, o->at, t->name, t->target, &st) && meta_matches_owner(t->meta, o->dir, &st) &&
	    (!t->meta->set_mtime || (st.st_mtim.tv_sec == t->meta->mtime.tv_sec &&
	    st.st_mtim.tv_nsec == t->meta->mtime.tv_nsec)) ? HAS_ALL : HAS_NOTHING;
}

/* A new link is compared afterwards, if size and time prove too little; a copy is not. */
static enum has judge_file(const struct references *r, const struct reference_entry *t, const struct found *o)
{
	const struct rules_entry of = offered(t), there = rules_entry_of(&o->st);
	const struct store_rules rules = { .window_s = t->rules->window_s, .reads = t->rules->reads,
		.flags = t->rules->flags & (RULE_CHECKSUM | RULE_IGNORE_TIMES | RULE_NO_RESUME | RULE_SIZE_ONLY) };
	enum rules_answer answer = rules_judge(&rules, &of, &there);
	bool all, looks = rules.reads || (rules.flags & RULE_CHECKSUM) != 0;

	if (!S_ISREG(o->st.st_mode) || dir_excludes(o->dir, o->st.st_dev, o->st.st_ino) || answer == RULES_RECEIVE)
		return HAS_NOTHING;
	all = (same_time(t, &o->st) || is_rounded(t, o, false)) &&
	    meta_matches(t->meta, o->dir, o->at, t->name, o->fd, &o->st);
	if (answer == RULES_COMPARE)
		return all && (r->kind == REFERENCE_LINK || (r->kind == REFERENCE_COMPARE && !looks &&
		    is_rounded(t, o, true))) ? HAS_ALL : HAS_NOTHING;
	return all ? HAS_ALL : o->fd >= 0 ? HAS_DATA : HAS_NOTHING;
}

/* A file that cannot be read may be linked. */
static bool open_file(const struct reference_entry *t, struct found *o)
{
	const struct sys *sys = dir_sys(o->dir);

	if (sys->fstatat(o->at, t->name, &o->st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(o->st.st_mode))
		return false;
	o->fd = sys->openat(o->at, t->name, SYS_READ_FLAGS, 0);
	return o->fd >= 0 ? sys->fstat(o->fd, &o->st) == 0 : errno == EACCES;
}

static enum has look_into(const struct references *r, struct reference *in, const struct reference_entry *t,
    struct found *o)
{
	enum has has = HAS_NOTHING;

	*o = (struct found){ .fd = -1 };
	if (in->root == NULL || !find_dir(r, in, t->dir) || (o->at = dir_fd(in->at, NULL)) < 0)
		return HAS_NOTHING;
	o->dir = in->at;
	file_system_share(t->dir, o->dir);
	if (t->target != NULL)
		has = judge_link(t, o);
	else if (open_file(t, o))
		has = judge_file(r, t, o);
	if (has == HAS_NOTHING)
		found_close(o);
	return has;
}

/* The first with all, else the first with the data. */
static enum has look(struct references *r, const struct reference_entry *t, struct found *o)
{
	struct found now;
	enum has best = HAS_NOTHING, has;
	unsigned i;

	*o = (struct found){ .fd = -1 };
	for (i = 0; i < r->n && best != HAS_ALL; i++) {
		if ((has = look_into(r, &r->each[i], t, &now)) <= best) {
			found_close(&now);
			continue;
		}
		found_close(o);
		*o = now;
		best = has;
	}
	return best;
}

/* ---- Use ---- */

static bool make_link(const struct reference_entry *t, const struct found *o, const struct existing *x)
{
	struct ptcp_err ignored;
	struct stat st = o->st;
	struct store_file to = { .base = o->dir, .path = t->name, .published = t->meta->published,
		.backup = x->differs ? t->meta->backup : NULL };

	if (t->target != NULL && dir_sys(o->dir)->fstatat(o->at, t->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	to.dev = (uint64_t)st.st_dev;
	to.ino = (uint64_t)st.st_ino;
	return store_hardlink(&to, t->dir, t->name, &ignored) == 0;
}

/* As rsync: only files that no reference has remain. A full directory makes way for received files only. */
static bool leave_out(const struct reference_entry *t, int at, const struct existing *x)
{
	struct ptcp_err ignored;
	int r;

	if (!x->is_there)
		return true;
	if (S_ISDIR(x->st.st_mode))
		return sink_make_way(&ignored, at, t->dir, t->name, t->meta->published) == 0;
	r = x->differs ? backup_keep(t->meta->backup, t->dir, at, t->name, t->meta->published, &ignored) : 0;
	return r == 1 || (r == 0 && manage_clear(t->dir, t->name, &ignored) == 0);
}

static bool is_linked(const struct found *o, const struct existing *x)
{
	return x->is_there && o->st.st_dev == x->st.st_dev && o->st.st_ino == x->st.st_ino;
}

static enum reference_use use_all(const struct references *r, const struct reference_entry *t, int at,
    const struct found *o, const struct existing *x, bool dry)
{
	switch (r->kind) {
	case REFERENCE_LINK:
		return (t->target == NULL && is_linked(o, x)) ? REFERENCE_NONE :
		    dry || make_link(t, o, x) ? REFERENCE_LINKED : REFERENCE_DATA;
	case REFERENCE_COMPARE:
		return dry || leave_out(t, at, x) ? REFERENCE_OMITTED : REFERENCE_NONE;
	case REFERENCE_COPY:
		break;
	}
	return REFERENCE_DATA;
}

enum reference_use references_use(struct references *r, const struct reference_entry *t, bool dry, int *fd)
{
	enum reference_use use = REFERENCE_NONE;
	struct existing x;
	struct found o;
	enum has has;
	int at;

	if (r == NULL || (at = dir_fd(t->dir, NULL)) < 0)
		return REFERENCE_NONE;
	if (is_wanted(r, t, at, &x) && (has = look(r, t, &o)) != HAS_NOTHING) {
		use = has == HAS_ALL ? use_all(r, t, at, &o, &x, dry) : REFERENCE_DATA;
		if (use == REFERENCE_DATA && ((x.is_there && !S_ISLNK(x.st.st_mode)) || o.fd < 0))
			use = REFERENCE_NONE;
		if (use == REFERENCE_DATA) {
			*fd = o.fd;
			o.fd = -1;
		}
		found_close(&o);
	}
	dir_fd_done(t->dir);
	return use;
}
