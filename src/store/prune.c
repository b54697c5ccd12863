/* Removal of what a transfer did not bring; see manage.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "core/list.h"
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
	bool extra; /* the source does not have it */
	bool kept;  /* something in it stays */
};

struct prune {
	struct prune_opts o;
	struct list roots, *next;
	struct prune_root *root;     /* being walked */
	struct walk *walk;
	bool removing;         /* the second of two walks; the first one counts */
	uint64_t count;        /* entries to be removed, as far as the walk has come */
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

void prune_free(struct prune *p)
{
	struct prune_root *r;

	if (p == NULL)
		return;
	walk_free(p->walk);
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
uint64_t prune_removed(const struct prune *p) { return p->removed; }
uint64_t prune_failed(const struct prune *p) { return p->failed; }

/* ---- Entries ---- */

/* Without memory the entry counts as excluded. */
static bool excluded(struct prune *p, const struct walk_entry *w)
{
	const char *source = p->root->source;
	char *below, *path;
	bool yes;

	if (p->o.filter == NULL)
		return false;
	if ((below = dir_path_below(w->dir, p->root->dir, w->name)) == NULL)
		return true;
	path = malloc(strlen(source) + strlen(below) + 2);
	if (path != NULL)
		sprintf(path, "%s%s%s", source, source[0] != '\0' ? "/" : "", below);
	yes = path == NULL || !filter_includes(p->o.filter, path, w->type == WALK_DIR);
	free(path);
	free(below);
	return yes;
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

/* The source does not have the entry, and the transfer would have brought it. */
static bool is_extra(struct prune *p, const struct walk_entry *w, uint64_t hash)
{
	return !name_set_has(p->o.names, hash) && (w->type == WALK_DIR || w->type == WALK_FILE ||
	    (w->type == WALK_SYMLINK && p->o.links)) && !excluded(p, w) && !is_published(p, w);
}

static void prune_report(struct prune *p, struct dir *dir, const char *name, const struct ptcp_err *why)
{
	dir_path_raw(dir, name, p->path, sizeof p->path);
	p->o.entry(p->o.arg, p->path, why);
}

/* An entry is to be removed: a file or link, or, with name NULL, the emptied directory. The level above keeps it if that
 * fails. */
static void take(struct prune *p, struct dir *dir, const char *name, struct prune_level *above)
{
	struct ptcp_err why = { 0 };
	int r;

	if (p->count == p->o.max) { /* another program fills the directory meanwhile, or a dry run has listed enough */
		above->kept = true;
		p->count++;
		return;
	}
	if (p->count > p->o.max)
		return;
	p->count++;
	if (!p->removing && !p->o.dry_run)
		return;
	r = p->o.dry_run ? 0 : name != NULL ? manage_clear(dir, name, &why) : manage_rmdir(dir, &why);
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
	p->level[w->depth + 1] = (struct prune_level){ .hash = hash, .extra = extra };
}

static void leave(struct prune *p, const struct walk_entry *w)
{
	struct prune_level *l = &p->level[w->depth + 1], *above = &p->level[w->depth];

	if (!l->extra)
		return;
	if (l->kept)
		above->kept = true;
	else
		take(p, w->dir, NULL, above);
}

static int judge(struct prune *p, const struct walk_entry *w, struct ptcp_err *e)
{
	struct prune_level *l = &p->level[w->depth];
	uint64_t hash;

	if (w->type == WALK_DIR_END) {
		leave(p, w);
		return 0;
	}
	if (w->type == WALK_FAILED && !p->removing)
		return err_set(e, PTCP_EIO, "%s", w->why);
	if (w->name == NULL) { /* the listing of a directory ended early */
		p->level[w->depth].kept = p->level[w->depth + 1].kept = true;
		return 0;
	}
	hash = hash_name(l->hash, w->name);
	if (w->type == WALK_DIR && name_set_has(p->o.names, prune_dir_hash(hash))) {
		enter(p, w, hash, false);
	} else if (!is_extra(p, w, hash)) {
		l->kept = true;
		if (w->type == WALK_DIR)
			walk_skip(p->walk);
	} else if (w->type == WALK_DIR) {
		enter(p, w, hash, true);
	} else {
		take(p, w->dir, w->name, l);
	}
	return 0;
}

/* ---- Walks ---- */

/* Whether the root exists: 1, 0, or a negative PTCP_E*. */
static int exists(struct dir *d, struct ptcp_err *e)
{
	struct ptcp_err why;
	int r = dir_fd(d, &why);

	if (r < 0 && why.sys == ENOENT)
		return 0;
	if (r < 0) {
		if (e != NULL)
			*e = why;
		return r;
	}
	dir_fd_done(d);
	return 1;
}

/* The end of a walk over all roots: true: another one follows. */
static bool next_pass(struct prune *p)
{
	if (p->removing || p->o.dry_run || p->count == 0)
		return false;
	p->removing = true;
	p->count = 0;
	p->next = p->roots.next;
	return true;
}

static int begin_root(void *arg, struct ptcp_err *e)
{
	struct prune *p = arg;
	int r;

	if (list_empty(&p->roots) || (p->next == &p->roots && !next_pass(p)))
		return 0;
	p->root = CONTAINER_OF(p->next, struct prune_root, node);
	p->next = p->next->next;
	if ((r = exists(p->root->dir, e)) <= 0)
		return r < 0 ? r : 1;
	p->level[0] = (struct prune_level){ .hash = p->root->hash };
	if ((r = walk_new(&p->walk, p->o.memory, e)) == 0)
		r = walk_add(p->walk, p->root->dir, NULL, e);
	return r < 0 ? r : 1;
}

static int too_many(const struct prune *p, struct ptcp_err *e)
{
	return err_set(e, PTCP_EIO, "more than %llu files and directories to delete: none is deleted (raise --max-delete, or "
	    "list them with --dry-run)", (unsigned long long)p->o.max);
}

static int on_entry(void *arg, const struct walk_entry *w, struct ptcp_err *e)
{
	struct prune *p = arg;
	int r = judge(p, w, e);

	return r == 0 && p->count > p->o.max && !p->removing ? too_many(p, e) : r;
}

int prune_step(struct prune *p, unsigned entries, struct ptcp_err *e)
{
	static const struct walk_steps steps = { .next = begin_root, .entry = on_entry };

	return walk_step(&steps, &p->walk, entries, p, e);
}
