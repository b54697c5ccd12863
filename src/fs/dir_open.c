/* Descriptors of directories: opened on demand, closed when many are open; resolution of paths. */
#include "fs/dir_impl.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/fd.h"
#include "core/text.h"
#include "fs/fd_budget.h"
#include "fs/fs_err.h"

/* openat2() fails with EAGAIN when a rename anywhere races with a "..". */
#define RESOLVE_TRIES 64

int dir_open_cached(const struct dir *d, int at, const char *name, int flags)
{
	struct tree *t = d->tree;
	struct open_how how = { .flags = (uint64_t)flags, .resolve = RESOLVE_CACHED };
	int fd;

	if (atomic_load_explicit(&t->no_cached, memory_order_relaxed))
		return t->sys->openat(at, name, flags, 0);
	fd = t->sys->openat2(at, name, &how, sizeof how);
	if (fd >= 0 || (errno != ENOSYS && errno != EINVAL && errno != EPERM))
		return fd;
	/* The kernel or a sandbox lacks the call or the flag, unless openat() fails as well. */
	if ((fd = t->sys->openat(at, name, flags, 0)) >= 0)
		atomic_store_explicit(&t->no_cached, true, memory_order_relaxed);
	return fd;
}

/* ---- Links ---- */

void dir_follow(struct dir *d, enum dir_follow how) { d->tree->follow = how; }

/* openat2() of a path whose links stay beneath the directory open at `at`. */
static int open_beneath(const struct sys *sys, int at, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags & ~O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd, tries;

	for (tries = 1;; tries++) {
		fd = sys->openat2(at, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN || tries == RESOLVE_TRIES)
			return fd;
	}
}

static int open_target(const struct dir *d, int at, const char *name, int flags)
{
	const struct tree *t = d->tree;
	char *path;
	int fd;

	if (t->follow == DIR_FOLLOW_ANYWHERE)
		return t->sys->openat(at, name, flags & ~O_NOFOLLOW, 0);
	if (t->follow == DIR_FOLLOW_NONE) {
		errno = ELOOP;
		return -1;
	}
	if ((path = dir_path_below(d, t->root, name)) == NULL)
		return -1;
	fd = open_beneath(t->sys, t->root->fd, path, flags);
	free(path);
	return fd;
}

int dir_open_name(const struct dir *d, int at, const char *name, int flags, bool cached)
{
	const struct tree *t = d->tree;
	int fd = cached ? dir_open_cached(d, at, name, flags) : t->sys->openat(at, name, flags, 0);

	if (fd >= 0 || t->follow == DIR_FOLLOW_NONE || (errno != ELOOP && errno != ENOTDIR))
		return fd;
	if (cached) { /* an I/O thread does it */
		errno = EAGAIN;
		return -1;
	}
	return open_target(d, at, name, flags);
}

int dir_stat_target(const struct dir *d, int at, const char *name, struct stat *st)
{
	int fd = open_target(d, at, name, O_PATH | O_CLOEXEC), r, saved;

	if (fd < 0)
		return -1;
	r = d->tree->sys->fstat(fd, st);
	saved = errno;
	d->tree->sys->close(&fd);
	errno = saved;
	return r;
}

/* ---- Opening ---- */

/* Opens d, whose parent is open at `at`. */
static int open_flags(const struct dir *d, int at, int flags, bool cached)
{
	if (!d->resolved)
		return dir_open_name(d->parent != NULL ? d->parent : d, at, d->name, flags, cached);
	if (cached) { /* rare: let an I/O thread do it */
		errno = EAGAIN;
		return -1;
	}
	return open_beneath(d->tree->sys, at, d->name, flags);
}

/* Whether the open directory is excluded, or, for the root and for a path of several components, lies beneath one that
 * is: `st` is its result of fstat. */
static bool is_excluded(const struct dir *d, int fd, struct stat st)
{
	const struct sys *sys = d->tree->sys;
	struct stat above;
	int at = fd, up;
	bool found;

	if (d->tree->excluded == NULL)
		return false;
	while (!(found = dir_excludes(d, st.st_dev, st.st_ino)) && (d->resolved || d->parent == NULL)) {
		up = sys->openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (at != fd)
			sys->close(&at);
		at = up;
		if (up < 0 || sys->fstat(up, &above) != 0 || (above.st_dev == st.st_dev && above.st_ino == st.st_ino))
			break;
		st = above;
	}
	if (at != fd && at >= 0)
		sys->close(&at);
	return found;
}

int tree_exclude(struct tree *t, struct excluded *x, struct ptcp_err *e)
{
	struct stat st;

	t->excluded = x;
	if (t->sys->fstat(t->root->fd, &st) != 0)
		return fs_err_sys(e, errno, t->root, NULL, NULL);
	if (is_excluded(t->root, t->root->fd, st))
		return err_set(e, PTCP_EREFUSED, "%s", EXCLUDED_WHY);
	return 0;
}

static int open_node(const struct dir *d, int at, bool cached, int *out, struct stat *st, struct ptcp_err *e)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open_flags(d, at, flags | O_RDONLY, cached);

	if (fd < 0 && errno == EACCES)
		fd = open_flags(d, at, flags | O_PATH, cached);
	if (fd < 0) {
		if (cached && errno == EAGAIN)
			return STORE_AGAIN;
		if (errno == ENOTDIR || errno == ELOOP)
			return fs_err_set(e, PTCP_EIO, errno, d, NULL, "not a directory");
		if (errno == EXDEV)
			return fs_err_set(e, PTCP_EREFUSED, errno, d, NULL, "leads out of the root directory");
		return fs_err_sys(e, errno, d, NULL, NULL);
	}
	if (d->tree->sys->fstat(fd, st) != 0) {
		d->tree->sys->close(&fd);
		return fs_err_sys(e, errno, d, NULL, NULL);
	}
	if (is_excluded(d, fd, *st)) {
		d->tree->sys->close(&fd);
		return fs_err_set(e, PTCP_EREFUSED, EACCES, d, NULL, EXCLUDED_WHY);
	}
	*out = fd;
	return 0;
}

/* The next five with tree->lock held. */

void dir_closed(struct tree *t)
{
	t->open--;
	if (t->counted > t->open) {
		t->counted--;
		fd_budget_give_directory();
	}
}

static void trim(struct tree *t)
{
	struct dir *d;

	while ((t->open > t->max_open || t->open > t->counted) && !list_empty(&t->idle)) {
		d = CONTAINER_OF(t->idle.next, struct dir, idle);
		list_remove(&d->idle);
		t->sys->close(&d->fd);
		dir_closed(t);
	}
}

static void pin(struct dir *d)
{
	if (d->pins++ == 0)
		list_remove(&d->idle);
}

static void unpin(struct dir *d)
{
	assert(d->pins > 0);
	if (--d->pins > 0)
		return;
	list_append(&d->tree->idle, &d->idle);
	trim(d->tree);
}

/* Takes fd, a new descriptor of d (another thread may have opened d meanwhile). Refuses a directory other
 * than at the first opening: our knowledge of the content, above all locks on part files, would be wrong. */
static int install(struct dir *d, int *fd, const struct stat *st, struct ptcp_err *e)
{
	if (d->fd >= 0) {
		d->tree->sys->close(fd);
		return 0;
	}
	if (d->known && (d->dev != st->st_dev || d->ino != st->st_ino)) {
		d->tree->sys->close(fd);
		return fs_err_set(e, PTCP_EIO, ESTALE, d, NULL,
		    "the directory was replaced during the transfer (leave it in place)");
	}
	d->known = true;
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	d->fd = fd_take(fd);
	d->tree->open++;
	d->tree->counted += fd_budget_take_directory();
	list_append(&d->tree->idle, &d->idle);
	return 0;
}

/* The n directories from below `at`, a directory above d, down to d. */
static int list_below(struct dir ***out, size_t *n, const struct dir *at, struct dir *d, struct ptcp_err *e)
{
	struct dir *up;
	size_t i = 0;

	for (up = d; up != at; up = up->parent)
		i++;
	if ((*out = malloc(i * sizeof **out)) == NULL)
		return err_nomem(e);
	*n = i;
	for (up = d; up != at; up = up->parent)
		(*out)[--i] = up;
	return 0;
}

/* Writes the path of the first directories of list_below(), opened before, without the last DIR_IN_PLACE_LEVELS, up to
 * the kernel's limit of a path; returns the number of directories. With tree->lock held. */
static size_t far_path(char path[PATH_MAX], struct dir **below, size_t n)
{
	size_t i, used = 0, name;

	for (i = 0; i + DIR_IN_PLACE_LEVELS < n && below[i]->known && !below[i]->resolved; i++) {
		name = strlen(below[i]->name);
		if (used + 1 + name >= PATH_MAX)
			break;
		if (used > 0)
			path[used++] = '/';
		memcpy(path + used, below[i]->name, name);
		used += name;
	}
	path[used] = '\0';
	return i;
}

/* Opens the last directory of far_path() without the directories between, which a deep tree would open again and again;
 * returns the number of levels. 0: the caller opens one by one, and finds any fault. With tree->lock held. */
static size_t leap(const struct dir *at, struct dir **below, size_t n, bool cached)
{
	struct open_how how = { .flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_RDONLY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | (cached ? RESOLVE_CACHED : 0u) };
	struct tree *t = at->tree;
	char path[PATH_MAX];
	size_t levels = far_path(path, below, n);
	struct dir *d;
	struct stat st;
	int fd;

	if (levels < 2)
		return 0;
	d = below[levels - 1];
	pthread_mutex_unlock(&t->lock);
	fd = t->sys->openat2(at->fd, path, &how, sizeof how);
	if (fd >= 0 && (t->sys->fstat(fd, &st) != 0 || st.st_dev != d->dev || st.st_ino != d->ino))
		t->sys->close(&fd);
	pthread_mutex_lock(&t->lock);
	return fd >= 0 && install(d, &fd, &st, NULL) == 0 ? levels : 0;
}

/* Opens the directories of list_below() in turn, without the lock while the disk may block. Unpins `at`, and pins the
 * last directory. */
static int open_below(struct dir *at, struct dir **below, size_t n, bool cached, struct ptcp_err *e)
{
	struct tree *t = at->tree;
	struct stat st;
	size_t i, levels;
	int fd = -1, r = 0;

	for (i = 0; i < n && r == 0; at = below[i - 1]) {
		if ((levels = leap(at, below + i, n - i, cached)) == 0 && below[i]->fd < 0) {
			pthread_mutex_unlock(&t->lock);
			r = open_node(below[i], at->fd, cached, &fd, &st, e);
			pthread_mutex_lock(&t->lock);
			if (r == 0)
				r = install(below[i], &fd, &st, e);
		}
		i += levels > 0 ? levels : 1;
		if (r == 0)
			pin(below[i - 1]);
		unpin(at);
	}
	return r;
}

/* Opens the directories from the nearest open one above: trees may be deep. */
static int get(struct dir *d, bool cached, int *out, struct ptcp_err *e)
{
	struct tree *t = d->tree;
	struct dir *at = d, **below = NULL;
	size_t n = 0;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	while (at->fd < 0)
		at = at->parent;
	pin(at);
	if (at != d && (r = list_below(&below, &n, at, d, e)) == 0)
		r = open_below(at, below, n, cached, e);
	else if (r < 0)
		unpin(at);
	if (r == 0)
		*out = d->fd;
	pthread_mutex_unlock(&t->lock);
	free(below);
	return r;
}

int dir_fd(struct dir *d, struct ptcp_err *e)
{
	int fd, r = get(d, false, &fd, e);

	return r == 0 ? fd : r;
}

int dir_fd_cached(struct dir *d, int *fd, struct ptcp_err *e)
{
	int got, r = get(d, true, &got, e);

	if (r == 0)
		*fd = got;
	return r;
}

void dir_fd_done(struct dir *d)
{
	pthread_mutex_lock(&d->tree->lock);
	unpin(d);
	pthread_mutex_unlock(&d->tree->lock);
}

/* ---- Directories that are moved ---- */

/* The directory that has the name of d now; `at` is the parent of d. Links are followed in the path of the root. */
static int stat_name(const struct dir *d, int at, struct stat *st)
{
	const struct sys *sys = d->tree->sys;
	int fd, r;

	if (d->parent == NULL)
		return sys->fstatat(AT_FDCWD, d->tree->path, st, 0);
	if (!d->resolved)
		return sys->fstatat(at, d->name, st, AT_SYMLINK_NOFOLLOW);
	if ((fd = open_flags(d, at, O_PATH | O_DIRECTORY | O_CLOEXEC, false)) < 0)
		return -1;
	r = sys->fstat(fd, st);
	sys->close(&fd);
	return r;
}

int dir_has_name(struct dir *d, struct ptcp_err *e)
{
	struct stat st = { 0 };
	int at = -1, r;

	if (d->parent != NULL && (at = dir_fd(d->parent, e)) < 0)
		return at;
	r = stat_name(d, at, &st);
	if (r != 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EXDEV)
		r = fs_err_sys(e, errno, d, NULL, NULL);
	else if (r != 0 || (d->known && (st.st_dev != d->dev || st.st_ino != d->ino)))
		r = fs_err_set(e, PTCP_EIO, ESTALE, d, NULL,
		    "the directory was moved or replaced during the transfer (run the same command again, and ptcp "
		    "clean where it is now)");
	if (d->parent != NULL)
		dir_fd_done(d->parent);
	return r;
}

uint64_t dir_check_new(const struct dir *d) { return atomic_fetch_add(&d->tree->checks, 1) + 1; }

static bool seen_in_place(const struct dir *d, uint64_t check) { return atomic_load(&d->in_place) >= check; }

int dir_in_place(struct dir *d, uint64_t check, struct ptcp_err *e)
{
	struct dir *up;
	unsigned n = 0;
	int r = 0;

	for (up = d; up != NULL && n < DIR_IN_PLACE_LEVELS && !seen_in_place(up, check) && r == 0; up = up->parent, n++)
		r = dir_has_name(up, e);
	for (; r == 0 && n > 0; d = d->parent, n--)
		atomic_store(&d->in_place, check);
	return r;
}

/* ---- Paths of several components ---- */

/* Copies `path` to `out` without empty and "." components; returns its length. */
static size_t tidy(char *out, const char *path)
{
	size_t n, used = 0;

	for (; *path != '\0'; path += n) {
		if (*path == '/') {
			n = 1;
			continue;
		}
		n = strcspn(path, "/");
		if (n == 1 && *path == '.')
			continue;
		if (used > 0)
			out[used++] = '/';
		memcpy(out + used, path, n);
		used += n;
	}
	out[used] = '\0';
	return used;
}

/* *d becomes its child, or its parent for "..", which is what the path says: no link was followed to *d. */
static int step_plain(struct dir **d, const char *name, struct ptcp_err *e)
{
	struct dir *from = *d, *to;
	int r;

	if (strcmp(name, "..") == 0) {
		if (from->parent == NULL || from->resolved)
			return fs_err_set(e, PTCP_EREFUSED, EXDEV, from, "..", "leads out of the root directory");
		if ((r = dir_fd(from, e)) < 0)
			return r;
		dir_fd_done(from);
		to = dir_ref(from->parent);
	} else {
		if (!text_name_ok(name, strlen(name)))
			return fs_err_sys(e, ENAMETOOLONG, from, name, NULL);
		if ((to = dir_child(from, name)) == NULL)
			return err_nomem(e);
	}
	dir_unref(from);
	*d = to;
	return 0;
}

/* Without openat2(): a node for each component of `path`, a result of tidy(). */
static int resolve_plain(struct dir **out, struct dir *base, char *path, struct ptcp_err *e)
{
	struct dir *d = dir_ref(base);
	char *save = NULL, *name;
	int r = 0;

	for (name = strtok_r(path, "/", &save); name != NULL && r == 0; name = strtok_r(NULL, "/", &save))
		r = step_plain(&d, name, e);
	if (r == 0)
		*out = d;
	else
		dir_unref(d);
	return r;
}

/* Opens d to check for an existing directory. Takes d; on success *out is d. */
static int check_dir(struct dir **out, struct dir *d, struct ptcp_err *e)
{
	int r = dir_fd(d, e);

	if (r < 0) {
		dir_unref(d);
		return r;
	}
	dir_fd_done(d);
	*out = d;
	return 0;
}

int dir_resolve(struct dir **out, struct dir *base, const char *path, struct ptcp_err *e)
{
	struct tree *t = base->tree;
	const struct dir *up;
	struct ptcp_err why = { 0 };
	struct dir *d;
	size_t above = 0, n;
	char *full, *tail, *p;
	int r;

	for (up = base; up->parent != NULL; up = up->parent)
		above += strlen(up->name) + 1;
	if ((full = malloc(above + strlen(path) + 1)) == NULL)
		return err_nomem(e);
	tail = p = full + above;
	for (up = base; up->parent != NULL; up = up->parent) { /* the names from the root to base, written backwards */
		*--p = '/';
		p -= strlen(up->name);
		memcpy(p, up->name, strlen(up->name));
	}
	if ((n = tidy(tail, path)) == 0) {
		free(full);
		return check_dir(out, dir_ref(base), e);
	}
	if ((d = dir_node_new(t, t->root, full, above + n)) == NULL) {
		free(full);
		return err_nomem(e);
	}
	d->resolved = true;
	r = check_dir(out, d, &why);
	if (r < 0 && (why.sys == ENOSYS || why.sys == EPERM) && (r = resolve_plain(&d, base, tail, &why)) == 0)
		r = check_dir(out, d, &why);
	free(full);
	if (r < 0 && e != NULL)
		*e = why;
	return r;
}
