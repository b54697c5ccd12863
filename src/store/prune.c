/* Removal of what a transfer did not bring; see manage.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/err.h"
#include "core/list.h"
#include "fs/dir_impl.h"
#include "fs/fs_err.h"
#include "store/hash.h"
#include "store/manage.h"
#include "store/walk.h"

struct prune_root {
	struct list node;
	struct dir *dir;
	uint64_t hash;
	char source[];
};

/* A directory from the root down to the present one. */
struct prune_level {
	uint64_t hash;
	bool extra;  /* the source does not have it */
	bool kept;   /* something in it stays */
	bool closed; /* the source may have more of it */
	struct manage_dir was; /* before the first removal */
};

struct prune {
	struct prune_opts o;
	struct list roots, *next;
	struct prune_root *root;     /* being walked, or with the directory that makes way */
	struct dir *way;             /* makes way, see prune_make_way(); NULL: none */
	uint32_t way_depth;          /* depth of the entries in it, below the root; 0: none */
	struct walk *walk;
	uint64_t dev;                /* file system of the root */
	bool counted, removing; /* the first of two walks has ended, and the second one has begun */
	uint64_t count;        /* entries to be removed, as far as the walk has come, and those that have made way */
	uint64_t made_way;     /* entries removed in directories that made way */
	uint64_t removed, failed;
	struct prune_level level[WALK_DEPTH_MAX + 3]; /* [depth]: the directory that has the entries of this depth */
	char path[DIR_PATH_RAW_BYTES];
};

int prune_new(struct prune **out, const struct prune_opts *o, struct ptcp_err *e)
{
	struct prune *p = memory_calloc(o->memory, sizeof *p, e);

	if (p == NULL)
		return PTCP_ENOMEM;
	p->o = *o;
	list_init(&p->roots);
	*out = p;
	return 0;
}

static size_t root_bytes(const char *source) { return sizeof(struct prune_root) + strlen(source) + 1; }

static void stop_walk(struct prune *p)
{
	size_t i;

	for (i = sizeof p->level / sizeof *p->level; i-- > 0;)
		manage_close_dir(&p->level[i].was, p->o.times);
	walk_free(p->walk);
	p->walk = NULL;
}

void prune_free(struct prune *p)
{
	struct prune_root *r;

	if (p == NULL)
		return;
	stop_walk(p);
	dir_unref(p->way);
	while (!list_empty(&p->roots)) {
		r = CONTAINER_OF(p->roots.next, struct prune_root, node);
		list_remove(&r->node);
		dir_unref(r->dir);
		memory_free(p->o.memory, r, root_bytes(r->source));
	}
	memory_free(p->o.memory, p, sizeof *p);
}

int prune_add(struct prune *p, struct dir *d, uint64_t hash, const char *source, struct ptcp_err *e)
{
	struct prune_root *r = memory_calloc(p->o.memory, root_bytes(source), e);

	if (r == NULL)
		return PTCP_ENOMEM;
	r->dir = dir_ref(d);
	r->hash = hash;
	strcpy(r->source, source);
	list_append(&p->roots, &r->node);
	p->next = p->roots.next;
	return 0;
}

uint64_t prune_dir_hash(uint64_t hash) { return hash_name(hash, "/"); }
uint64_t prune_closed_hash(uint64_t hash) { return hash_name(hash, "//"); }
uint64_t prune_removed(const struct prune *p) { return p->removed; }
uint64_t prune_failed(const struct prune *p) { return p->failed; }

/* ---- Entries ---- */

/* In directories that are being removed, perishable rules retain nothing. */
static bool excluded(const struct prune *p, const struct walk_entry *w)
{
	return w->left_out[p->level[w->depth].extra];
}

/* The name is another than the source's, as after a change of its case only, but the file is the transfer's. */
static bool is_published(const struct prune *p, const struct walk_entry *w)
{
	const struct stat st = { .st_dev = w->dev, .st_ino = w->ino, .st_nlink = w->nlink, .st_mode = w->format };
	bool yes;
	int at;

	if (p->o.published == NULL || (at = dir_fd(w->dir, NULL)) < 0)
		return p->o.published != NULL;
	yes = published_has(p->o.published, w->dir, at, w->name, &st, true);
	dir_fd_done(w->dir);
	return yes;
}

/* Whether entries of this type may be removed. A directory that makes way loses what is in it, whether or not the
 * transfer would bring the like, but for devices. */
static bool is_removable(const struct prune *p, const struct walk_entry *w)
{
	return w->type == WALK_DIR || w->type == WALK_FILE ||
	    (w->type == WALK_SYMLINK && (p->o.links || p->way != NULL)) ||
	    (p->way != NULL && (S_ISFIFO(w->format) || S_ISSOCK(w->format)));
}

/* Deeper entries are left out. */
static bool is_deep(const struct prune *p, const struct walk_entry *w)
{
	return p->o.max_depth > 0 && (uint32_t)w->depth + p->way_depth >= p->o.max_depth;
}

/* The source does not have the entry, or as a file or link where this is a directory, and the transfer would have
 * brought it. */
static bool is_extra(struct prune *p, const struct walk_entry *w, uint64_t hash)
{
	bool known = p->way == NULL && name_set_has(p->o.names, hash), way = known && p->o.lists_ways &&
	    w->type == WALK_DIR;

	return (way || !known) && !p->level[w->depth].closed && is_removable(p, w) && !excluded(p, w) &&
	    !is_deep(p, w) && (way || !is_published(p, w)) && !backup_spares(p->o.backup, w->name, w->dev, w->ino);
}

static void prune_report(struct prune *p, struct dir *dir, const char *name, const struct ptcp_err *why)
{
	dir_path_raw(dir, name, p->path, sizeof p->path);
	p->o.entry(p->o.arg, p->path, why);
}

/* How many entries of a source will follow is unknown when a directory makes way. */
static uint64_t limit(const struct prune *p)
{
	return p->way != NULL && p->o.careful ? PRUNE_FEW : p->o.max;
}

static int clear(struct prune *p, struct dir *dir, const char *name, struct ptcp_err *e)
{
	int at, kept;

	if (p->o.backup == NULL)
		return manage_clear(dir, name, e);
	if ((at = dir_fd(dir, e)) < 0)
		return at;
	kept = backup_keep(p->o.backup, dir, at, name, p->o.published, e);
	dir_fd_done(dir);
	return kept < 0 ? kept : kept > 0 ? 0 : manage_clear(dir, name, e);
}

/* An entry is to be removed: a file or link, or, with name NULL, the emptied directory. The level above keeps it if
 * that fails. */
static void take(struct prune *p, struct dir *dir, const char *name, struct prune_level *above)
{
	struct ptcp_err why = { 0 };
	int r;

	if (p->count == limit(p)) { /* another program fills the directory meanwhile, or a dry run has listed enough */
		above->kept = true;
		p->count++;
		return;
	}
	if (p->count > limit(p))
		return;
	p->count++;
	above->kept |= name != NULL && backup_is_beside(p->o.backup);
	if (!p->removing && !p->o.dry_run)
		return;
	r = p->o.dry_run ? 0 : (name != NULL ? manage_open_dir : manage_open_above)(dir, &above->was, &why);
	if (r == 0 && !p->o.dry_run)
		r = name != NULL ? clear(p, dir, name, &why) : manage_rmdir(dir, &why);
	if (r < 0 && why.sys == ENOENT) {
		p->count--;
		return;
	}
	if (r < 0) {
		above->kept = true;
		p->failed++;
	} else {
		p->removed++;
	}
	prune_report(p, dir, name, r < 0 ? &why : NULL);
}

static void enter(struct prune *p, const struct walk_entry *w, uint64_t hash, bool extra)
{
	p->level[w->depth + 1] = (struct prune_level){ .hash = hash, .extra = extra,
		.closed = !extra && name_set_has(p->o.names, prune_closed_hash(hash)) };
}

static void leave(struct prune *p, const struct walk_entry *w)
{
	struct prune_level *l = &p->level[w->depth + 1], *above = &p->level[w->depth];

	manage_close_dir(&l->was, p->o.times);
	if (!l->extra)
		return;
	if (l->kept)
		above->kept = true;
	else
		take(p, w->dir, NULL, above);
}

/* The entry, and all in it, stays; the first walk tells why. */
static void keep(struct prune *p, const struct walk_entry *w, const struct ptcp_err *why)
{
	p->level[w->depth].kept = true;
	if (w->type == WALK_DIR)
		walk_skip(p->walk);
	if (why != NULL && !p->removing)
		prune_report(p, w->dir, w->name, why);
}

static void on_dir(struct prune *p, const struct walk_entry *w, uint64_t hash)
{
	bool known = p->way == NULL && name_set_has(p->o.names, prune_dir_hash(hash));
	struct ptcp_err why;

	if ((!known && !is_extra(p, w, hash)) || (!backup_is_beside(p->o.backup) &&
	    backup_spares(p->o.backup, w->name, w->dev, w->ino))) {
		keep(p, w, NULL);
	} else if (w->dev != p->dev) {
		fs_err_set(&why, PTCP_EIO, 0, w->dir, w->name,
		    "on another file system (name it as the destination to delete in it)");
		keep(p, w, &why);
	} else {
		enter(p, w, hash, !known);
	}
}

/* The listing of a directory ended early. */
static bool on_unlisted(struct prune *p, const struct walk_entry *w)
{
	const struct dir *top = p->way != NULL ? p->way : p->root->dir;
	struct prune_level *l = &p->level[w->dir == top ? 0 : w->depth + 1];

	l->kept = true;
	return l->closed; /* nothing would go: the mode may be the one that keeps the sender from listing */
}

static void on_failed(struct prune *p, const struct walk_entry *w)
{
	struct ptcp_err why;

	if (w->name == NULL && on_unlisted(p, w)) {
		keep(p, w, NULL);
		return;
	}
	p->failed += !p->removing;
	err_set(&why, PTCP_EIO, "%s", w->why);
	keep(p, w, &why);
}

static void judge(struct prune *p, const struct walk_entry *w)
{
	struct prune_level *l = &p->level[w->depth];

	if (w->type == WALK_DIR_END)
		leave(p, w);
	else if (w->type == WALK_FAILED)
		on_failed(p, w);
	else if (w->type == WALK_DIR)
		on_dir(p, w, hash_name(l->hash, w->name));
	else if (is_extra(p, w, hash_name(l->hash, w->name)))
		take(p, w->dir, w->name, l);
	else
		l->kept = true;
}

/* ---- Walks ---- */

/* Whether the root exists: 1, 0, or a negative PTCP_E*. */
static int exists(struct prune *p, struct dir *d, struct ptcp_err *e)
{
	struct ptcp_err why;
	struct stat st;
	int at = dir_fd(d, &why), r = 1;

	if (at < 0 && why.sys == ENOENT)
		return 0;
	if (at < 0) {
		if (e != NULL)
			*e = why;
		return at;
	}
	if (dir_sys(d)->fstat(at, &st) != 0)
		r = fs_err_sys(e, errno, d, NULL, NULL);
	else
		p->dev = st.st_dev;
	dir_fd_done(d);
	return r;
}

static int check_source(const struct prune *p, struct ptcp_err *e)
{
	uint64_t has = p->o.careful ? *p->o.source_entries : UINT64_MAX;

	if (p->count == p->made_way || (has > 0 && (p->count <= PRUNE_FEW || p->count <= has)))
		return 0;
	if (has == 0)
		return err_set(e, PTCP_EIO, "the source is empty: none of %llu files and directories is deleted (name "
		    "the right source, or a limit, as --max-delete %llu)", (unsigned long long)p->count,
		    (unsigned long long)p->count);
	return err_set(e, PTCP_EIO, "%llu files and directories to delete, more than the source has: none is deleted "
	    "(name the right source, or a limit, as --max-delete %llu)", (unsigned long long)p->count,
	    (unsigned long long)p->count);
}

/* The end of a walk over all roots: 1: another one follows. */
static int next_pass(struct prune *p, struct ptcp_err *e)
{
	int r;

	if (p->removing)
		return 0;
	if ((r = check_source(p, e)) < 0 || p->o.dry_run || p->count == p->made_way)
		return r;
	p->removing = true;
	p->count = p->made_way;
	p->next = p->roots.next;
	return 1;
}

static int begin_walk(struct prune *p, struct dir *d, struct ptcp_err *e)
{
	int r = walk_new(&p->walk, p->o.memory, e);

	if (r == 0 && p->o.filter != NULL)
		walk_judge(p->walk, p->o.filter, p->o.own, p->root->dir, p->root->source);
	if (r == 0)
		r = walk_add(p->walk, d, NULL, e);
	return r < 0 ? r : 1;
}

static int begin_root(struct prune *p, struct ptcp_err *e)
{
	int r;

	manage_close_dir(&p->level[0].was, p->o.times);
	if (list_empty(&p->roots) || (p->next == &p->roots && (r = next_pass(p, e)) <= 0))
		return list_empty(&p->roots) ? 0 : r;
	p->root = CONTAINER_OF(p->next, struct prune_root, node);
	p->next = p->next->next;
	p->level[0] = (struct prune_level){ .hash = p->root->hash,
		.closed = name_set_has(p->o.names, prune_closed_hash(p->root->hash)) };
	if ((r = exists(p, p->root->dir, e)) <= 0)
		return r < 0 ? r : 1;
	return begin_walk(p, p->root->dir, e);
}

/* 1: a walk begins; 0: the directory is empty. */
static int begin_way(struct prune *p, struct ptcp_err *e)
{
	uint64_t above;
	int r;

	manage_close_dir(&p->level[0].was, p->o.times);
	if (p->counted && p->level[0].kept)
		return fs_err_set(e, PTCP_EIO, EISDIR, p->way, NULL, "a nonempty directory has this name, with entries "
		    "that --delete retains (move it away)");
	if (p->removing)
		return 0;
	if ((r = exists(p, p->way->parent, e)) <= 0)
		return r;
	above = p->dev;
	if ((r = exists(p, p->way, e)) <= 0)
		return r;
	if (p->dev != above)
		return fs_err_set(e, PTCP_EIO, EISDIR, p->way, NULL,
		    "a directory of another file system has this name (move it away)");
	p->removing = p->counted;
	p->counted = true;
	p->count = p->made_way;
	p->level[0] = (struct prune_level){ .extra = true };
	return begin_walk(p, p->way, e);
}

static int too_many(const struct prune *p, struct ptcp_err *e)
{
	return err_set(e, PTCP_EIO, "more than %llu files and directories to delete: none is deleted (raise "
	    "--max-delete, or list them with --dry-run)", (unsigned long long)limit(p));
}

static int on_entry(void *arg, struct walk_entry *w, struct ptcp_err *e)
{
	struct prune *p = arg;
	judge(p, w);
	return p->count > limit(p) && !p->removing ? too_many(p, e) : 0;
}

static int begin_next(void *arg, struct ptcp_err *e)
{
	struct prune *p = arg;
	return p->way != NULL ? begin_way(p, e) : begin_root(p, e);
}

int prune_step(struct prune *p, unsigned entries, struct ptcp_err *e)
{
	static const struct walk_steps steps = { .next = begin_next, .entry = on_entry };

	return walk_step(&steps, &p->walk, entries, p, e);
}

/* ---- A directory that makes way ---- */

static struct prune_root *root_of(const struct prune *p, const struct dir *d)
{
	struct prune_root *r;
	struct list *at;

	for (; d != NULL; d = d->parent)
		for (at = p->roots.next; at != &p->roots; at = at->next)
			if ((r = CONTAINER_OF(at, struct prune_root, node))->dir == d)
				return r;
	return NULL;
}

bool prune_make_way(struct prune *p, struct dir *parent, const char *name)
{
	const struct dir *d;

	p->root = root_of(p, parent);
	if ((p->way = p->root != NULL ? dir_child(parent, name) : NULL) == NULL)
		return false;
	for (d = parent, p->way_depth = 1; d != p->root->dir; d = d->parent)
		p->way_depth++;
	return true;
}

void prune_made_way(struct prune *p)
{
	stop_walk(p);
	dir_unref(p->way);
	p->way = NULL;
	p->way_depth = 0;
	if (p->removing)
		p->made_way = p->count;
	p->count = p->made_way;
	p->counted = p->removing = false;
	p->failed = 0;
}
