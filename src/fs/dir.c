#include "fs/dir_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"
#include "fs/acl.h"
#include "fs/fd_budget.h"
#include "fs/fs_err.h"

/* umask(2) returns the old mask only by setting a new one, for all threads. */
mode_t dir_process_umask(void)
{
	char text[512], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, sizeof text - 1);
		fd_close(&fd);
	}
	text[n > 0 ? n : 0] = '\0';
	if ((at = strstr(text, "\nUmask:")) == NULL)
		return 022;
	return (mode_t)strtoul(at + strlen("\nUmask:"), NULL, 8) & 0777;
}

struct dir *dir_node_new(struct tree *t, struct dir *parent, const char *name, size_t n)
{
	struct dir *d = malloc(sizeof *d + n + 1);

	if (d == NULL)
		return NULL;
	*d = (struct dir){ .tree = t, .parent = parent, .fd = -1 };
	atomic_init(&d->refs, 1);
	list_init(&d->idle);
	memcpy(d->name, name, n);
	d->name[n] = '\0';
	if (parent != NULL)
		dir_ref(parent);
	return d;
}

/* Takes the root's descriptor and path (NULL: no memory), also on failure; `below` as in struct tree. */
static int tree_new(struct tree **out, int *fd, char *path, size_t below, const struct sys *sys, struct ptcp_err *e)
{
	char text[TEXT_NAME_BYTES];
	struct tree *t = NULL;
	struct stat st;
	int r;

	if (path != NULL && sys->fstat(*fd, &st) != 0) {
		r = err_sys(e, PTCP_EIO, "%s", text_escape(text, sizeof text, path));
	} else if (path == NULL || (t = calloc(1, sizeof *t)) == NULL || (t->root = dir_node_new(t, NULL, "", 0)) == NULL) {
		r = err_nomem(e);
	} else {
		t->path = path;
		t->below = below;
		t->sys = sys;
		t->umask = dir_process_umask();
		t->max_open = fd_budget_directories(DIR_OPEN_MAX);
		pthread_mutex_init(&t->lock, NULL);
		list_init(&t->idle);
		t->root->fd = fd_take(fd);
		t->root->known = true;
		t->root->dev = st.st_dev;
		t->root->ino = st.st_ino;
		t->root->pins = 1;
		*out = t;
		return 0;
	}
	free(t);
	free(path);
	sys->close(fd);
	return r;
}

int tree_below(struct tree **out, struct dir *d, struct ptcp_err *e)
{
	const struct sys *sys = d->tree->sys;
	char path[DIR_PATH_RAW_BYTES], *whole;
	size_t above;
	int at, fd, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	fd = sys->dup(at);
	r = fd < 0 ? err_sys(e, PTCP_EIO, "opening the directory again") : 0;
	dir_fd_done(d);
	if (r < 0)
		return r;
	if (asprintf(&whole, "%s/%s", d->tree->path, dir_path_raw(d, NULL, path, sizeof path)) < 0)
		whole = NULL;
	above = strlen(d->tree->path);
	return tree_new(out, &fd, whole, d->tree->below < above ? d->tree->below : above + 1, sys, e);
}

int tree_open(struct tree **out, const char *root, const struct sys *sys, struct ptcp_err *e)
{
	const int flags = O_DIRECTORY | O_CLOEXEC;
	char text[TEXT_NAME_BYTES];
	int fd;

	if (*root == '\0')
		return err_set(e, PTCP_EUSAGE, "\"\": not a directory (use . for the current one)");
	if ((fd = sys->openat(AT_FDCWD, root, flags | O_RDONLY, 0)) < 0 && errno == EACCES)
		fd = sys->openat(AT_FDCWD, root, flags | O_PATH, 0);
	if (fd < 0)
		return err_sys(e, err_from_errno(errno), "%s", text_escape(text, sizeof text, root));
	return tree_new(out, &fd, strdup(root), strlen(root), sys, e);
}

bool dir_excludes(const struct dir *d, uint64_t dev, uint64_t ino)
{
	return d->tree->excluded != NULL && excluded_has(d->tree->excluded, dev, ino);
}

bool dir_has_excluded_below(const struct dir *d, uint64_t dev, uint64_t ino)
{
	return d->tree->excluded != NULL && excluded_below(d->tree->excluded, dev, ino);
}

void tree_unref(struct tree *t)
{
	if (t != NULL)
		dir_unref(t->root);
}

struct dir *tree_root(struct tree *t) { return dir_ref(t->root); }

struct dir *dir_child(struct dir *parent, const char *name)
{
	size_t n = strlen(name);

	assert(text_name_ok(name, n));
	return dir_node_new(parent->tree, parent, name, n);
}

struct dir *dir_ref(struct dir *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

/* Nodes have references to their parents, so the root is freed last, and then the tree. */
void dir_unref(struct dir *d)
{
	struct dir *parent;
	struct tree *t;

	while (d != NULL && atomic_fetch_sub(&d->refs, 1) == 1) {
		t = d->tree;
		parent = d->parent;
		pthread_mutex_lock(&t->lock);
		assert(d->pins == (parent == NULL));
		list_remove(&d->idle);
		if (d->fd >= 0 && parent != NULL)
			dir_closed(t);
		pthread_mutex_unlock(&t->lock);
		t->sys->close(&d->fd);
		free(d);
		if (parent == NULL) {
			pthread_mutex_destroy(&t->lock);
			excluded_free(t->excluded);
			quota_free(t->quota);
			free(t->path);
			free(t);
		}
		d = parent;
	}
}

const struct sys *dir_sys(const struct dir *d) { return d->tree->sys; }
mode_t dir_umask(const struct dir *d) { return d->tree->umask; }

mode_t dir_new_mode(struct dir *d, mode_t mode)
{
	uint8_t acl[4 + 8 * 256];
	int at = dir_fd(d, NULL);
	ssize_t n = -1;
	mode_t most;

	if (at >= 0) {
		n = d->tree->sys->fgetxattr(at, ACL_DEFAULT, acl, sizeof acl);
		dir_fd_done(d);
	}
	return mode & 0777 & (n > 0 && acl_mode(acl, (size_t)n, &most) ? most : ~d->tree->umask);
}

unsigned dir_fs_hint(const struct dir *d, uint64_t dev)
{
	uint64_t got = atomic_load_explicit(&d->tree->fs_hint, memory_order_relaxed);

	return got >> 2 == dev ? (unsigned)(got & 3) : 0;
}

void dir_set_fs_hint(const struct dir *d, uint64_t dev, unsigned hint)
{
	assert(hint >= 1 && hint <= 3);
	/* Linux has 32 bits of dev, which glibc spreads over 44. */
	if (dev <= UINT64_MAX >> 2)
		atomic_store_explicit(&d->tree->fs_hint, dev << 2 | hint, memory_order_relaxed);
}

void dir_changed(struct dir *d) { atomic_fetch_add(&d->changes, 1); }

bool dir_unsynced(const struct dir *d)
{
	return atomic_load(&d->changes) != atomic_load(&d->synced);
}

static int sync_one(struct dir *d, struct ptcp_err *e)
{
	uint64_t upto = atomic_load(&d->changes);
	int at, r = 0;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	/* EBADF: an unreadable directory, opened by O_PATH. */
	if (d->tree->sys->fsync(at) == 0 || errno == EBADF || fs_cannot(ABILITY_SYNC, errno))
		atomic_store(&d->synced, upto); /* a concurrent call may set less: costs one more sync */
	else
		r = fs_err_sys(e, errno, d, NULL, "cannot sync the directory");
	dir_fd_done(d);
	return r;
}

int dir_sync(struct dir *d, struct ptcp_err *e)
{
	int r = 0;

	for (; d != NULL && r == 0; d = d->parent)
		if (dir_unsynced(d))
			r = sync_one(d, e);
	return r;
}

uint64_t dir_dev(struct dir *d)
{
	uint64_t dev;

	pthread_mutex_lock(&d->tree->lock);
	dev = d->known ? (uint64_t)d->dev : 0;
	pthread_mutex_unlock(&d->tree->lock);
	return dev;
}

char *dir_path_below(const struct dir *d, const struct dir *base, const char *name)
{
	size_t n = strlen(name) + 1;
	const struct dir *up;
	char *path, *p;

	for (up = d; up != base; up = up->parent)
		n += strlen(up->name) + 1;
	if ((path = malloc(n)) == NULL)
		return NULL;
	p = path + n - strlen(name) - 1;
	strcpy(p, name);
	for (up = d; up != base; up = up->parent) {
		*--p = '/';
		p -= strlen(up->name);
		memcpy(p, up->name, strlen(up->name));
	}
	return path;
}
