#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "work/work_impl.h"

#define RETRY_NS (100 * NS_PER_MS)

/* ---- Roots ---- */

/* The tree of a file is its directory, of which only the file is read. */
static int open_root(struct work_root *out, const char *path, struct ptcp_err *e)
{
	const char *name = strrchr(path, '/') + 1;
	char *above;
	struct stat st;
	int r;

	if (lstat(path, &st) != 0 || S_ISDIR(st.st_mode) || name[0] == '\0')
		return tree_open(&out->tree, path, &sys_real, e);
	if ((above = strndup(path, (size_t)(name - path))) == NULL || (out->only = strdup(name)) == NULL)
		r = err_nomem(e);
	else
		r = tree_open(&out->tree, above, &sys_real, e);
	free(above);
	return r;
}

int work_files_open(struct work_files *f, const struct invitation *v, uint64_t wait_ns, struct ptcp_err *e)
{
	struct mono until = mono_add_ns(mono_now(), wait_ns);
	const struct timespec pause = { 0, (long)RETRY_NS };
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;
	int r = 0;

	if ((f->slot = calloc(WIRE_SLOTS, sizeof *f->slot)) == NULL)
		return err_nomem(e);
	while (f->n_roots < v->n_roots && r == 0) {
		while ((r = open_root(&f->root[f->n_roots], v->root[f->n_roots], &why)) < 0 && why.sys == ENOENT &&
		    mono_now().ns < until.ns)
			nanosleep(&pause, NULL);
		f->n_roots += r == 0;
	}
	return r == 0 ? 0 : err_set(e, PTCP_ECONFIG, "source %s: %s (all movers need the file system of the sources)",
	    text_escape(shown, sizeof shown, v->root[f->n_roots]), why.msg);
}

void work_files_fini(struct work_files *f)
{
	unsigned i;

	for (i = 0; f->slot != NULL && i < WIRE_SLOTS; i++)
		source_unref(f->slot[i].source);
	free(f->slot);
	for (i = 0; i < WORK_DIRS; i++) {
		free(f->recent[i].path);
		dir_unref(f->recent[i].dir);
	}
	for (i = 0; i < f->n_roots; i++) {
		tree_unref(f->root[i].tree);
		free(f->root[i].only);
	}
}

/* ---- Files ---- */

static unsigned hash_of(const char *path, unsigned root)
{
	unsigned h = 5381 + root;

	for (; *path != '\0'; path++)
		h = h * 33 + (unsigned char)*path;
	return h % WORK_DIRS;
}

/* A node for the directory, without I/O: each component is opened without following links. Changes `path`. NULL: not a
 * path beneath a root, or no memory. */
static struct dir *walk_down(struct tree *t, char *path)
{
	struct dir *at = tree_root(t), *next;
	char *name;

	while (at != NULL && (name = strsep(&path, "/")) != NULL) {
		next = text_name_ok(name, strlen(name)) ? dir_child(at, name) : NULL;
		dir_unref(at);
		at = next;
	}
	return at;
}

/* A reference; the nodes used last are retained with their descriptors. */
static struct dir *dir_at(struct work_files *f, unsigned root, const char *path)
{
	unsigned i = hash_of(path, root);
	struct dir *d;
	char *copy;

	if (f->recent[i].path != NULL && f->recent[i].root == root && strcmp(f->recent[i].path, path) == 0)
		return dir_ref(f->recent[i].dir);
	if ((copy = strdup(path)) == NULL)
		return NULL;
	if ((d = path[0] != '\0' ? walk_down(f->root[root].tree, copy) : tree_root(f->root[root].tree)) == NULL) {
		free(copy);
		return NULL;
	}
	strcpy(copy, path);
	free(f->recent[i].path);
	dir_unref(f->recent[i].dir);
	f->recent[i].path = copy;
	f->recent[i].root = root;
	f->recent[i].dir = dir_ref(d);
	return d;
}

/* Splits the path of a file beneath a root. False: it is not the root's only file, or has no name. */
static bool split(const struct work_files *f, const struct wire_source *s, char path[WIRE_PATH_MAX + 1], char **name)
{
	const struct work_root *root = &f->root[s->root];
	char *slash;

	if (root->only != NULL) {
		path[0] = '\0';
		*name = strdup(root->only);
		return s->path.n == 0 && *name != NULL;
	}
	span_copy(path, s->path);
	slash = strrchr(path, '/');
	*name = strdup(slash != NULL ? slash + 1 : path);
	if (slash != NULL)
		*slash = '\0';
	else
		path[0] = '\0';
	return *name != NULL && text_name_ok(*name, strlen(*name)) && (slash == NULL || path[0] != '\0');
}

int work_files_add(struct work_files *f, const struct wire_source *s, struct direct_io *direct, struct ptcp_err *e)
{
	unsigned slot = wire_slot(s->id);
	struct walk_entry w = { .type = WALK_FILE, .size_bytes = s->size_bytes, .dev = SOURCE_ANY_DEV,
		.ino = s->ino, .nlink = 1, .mtime = { s->mtime_s, s->mtime_ns }, .ctime = { s->ctime_s, s->ctime_ns } };
	char path[WIRE_PATH_MAX + 1];

	if (s->root >= f->n_roots || !split(f, s, path, &w.name) || (w.dir = dir_at(f, s->root, path)) == NULL) {
		walk_entry_fini(&w);
		return err_set(e, PTCP_EPROTO, "the engine names a file that is not beneath the sources");
	}
	source_unref(f->slot[slot].source);
	f->slot[slot].id = s->id;
	if ((f->slot[slot].source = source_new(&w)) != NULL) {
		source_use_direct_io(f->slot[slot].source, direct);
		return 0;
	}
	walk_entry_fini(&w);
	f->slot[slot].id = 0;
	return err_nomem(e);
}

int work_files_target(struct work_files *f, const struct wire_target *t, struct dir **dir, char **name,
    struct ptcp_err *e)
{
	const struct wire_source s = { .root = t->root, .path = t->path };
	char path[WIRE_PATH_MAX + 1];

	*name = NULL;
	if (t->root < f->n_roots && f->root[t->root].only == NULL && split(f, &s, path, name) && sink_is_part(*name) &&
	    (*dir = dir_at(f, t->root, path)) != NULL)
		return 0;
	free(*name);
	return err_set(e, PTCP_EPROTO, "the engine names a file that is not a part beneath the destination");
}

void work_files_forget(struct work_files *f, uint64_t id)
{
	unsigned slot = wire_slot(id);

	if (f->slot[slot].id != id)
		return;
	source_unref(f->slot[slot].source);
	f->slot[slot].source = NULL;
	f->slot[slot].id = 0;
}

struct source *work_files_find(const struct work_files *f, uint64_t id)
{
	unsigned slot = wire_slot(id);

	return slot < WIRE_SLOTS && id != 0 && f->slot[slot].id == id ? f->slot[slot].source : NULL;
}
