/* The descriptors of directories: opened when they are wanted, closed when many are. */
#include "store/dir_impl.h"

#include <assert.h>
#include <errno.h>

#include "store/store_err.h"

/* openat2() gives up with EAGAIN when a rename anywhere races with a "..". */
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
	/* No such call, no such flag, or a sandbox that knows neither; or openat()
	 * is not permitted either, and then that says nothing of the kernel. */
	if ((fd = t->sys->openat(at, name, flags, 0)) >= 0)
		atomic_store_explicit(&t->no_cached, true, memory_order_relaxed);
	return fd;
}

/* Opens d, its parent being open at `at`. */
static int open_flags(const struct dir *d, int at, int flags, bool cached)
{
	const struct sys *sys = d->tree->sys;
	struct open_how how = {
		.flags = (uint64_t)(flags & ~O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd, tries;

	if (!d->resolved && cached)
		return dir_open_cached(d, at, d->name, flags);
	if (!d->resolved)
		return sys->openat(at, d->name, flags, 0);
	if (cached) { /* rare enough not to try */
		errno = EAGAIN;
		return -1;
	}
	for (tries = 1;; tries++) {
		fd = sys->openat2(at, d->name, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN || tries == RESOLVE_TRIES)
			return fd;
	}
}

static int open_node(const struct dir *d, int at, bool cached, int *out, struct stat *st,
    struct ptcp_err *e)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open_flags(d, at, flags | O_RDONLY, cached), sys;

	if (fd < 0 && errno == EACCES)
		fd = open_flags(d, at, flags | O_PATH, cached);
	if (fd < 0) {
		if (cached && errno == EAGAIN)
			return STORE_AGAIN;
		if (errno == ENOTDIR || errno == ELOOP)
			return store_err_why(e, PTCP_EIO, errno, d, NULL, "not a directory");
		if (errno == EXDEV)
			return store_err_why(e, PTCP_EIO, errno, d, NULL, "leads out of the root directory");
		return store_err_sys(e, errno, d, NULL, "cannot open the directory");
	}
	if (d->tree->sys->fstat(fd, st) != 0) {
		sys = errno;
		d->tree->sys->close(fd);
		return store_err_sys(e, sys, d, NULL, "cannot examine the directory");
	}
	*out = fd;
	return 0;
}

/* The four below: tree->lock is held. */

static void trim(struct tree *t)
{
	struct dir *d;

	while (t->open > t->most_open && !list_empty(&t->idle)) {
		d = CONTAINER_OF(t->idle.next, struct dir, idle);
		list_remove(&d->idle);
		t->sys->close(d->fd);
		d->fd = -1;
		t->open--;
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

/* Takes fd. Another thread may have opened d meanwhile. A directory that is not
 * the one of the first time was put there by somebody: what we know of its
 * content, locks of part files above all, does not hold for it. */
static int install(struct dir *d, int fd, const struct stat *st, struct ptcp_err *e)
{
	if (d->fd >= 0) {
		d->tree->sys->close(fd);
		return 0;
	}
	if (d->known && (d->dev != st->st_dev || d->ino != st->st_ino)) {
		d->tree->sys->close(fd);
		return store_err_why(e, PTCP_EIO, ESTALE, d, NULL,
		    "the directory was replaced while it was in use (leave it in place)");
	}
	d->known = true;
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	d->fd = fd;
	d->tree->open++;
	list_append(&d->tree->idle, &d->idle);
	return 0;
}

/* Opens one level after the other from the nearest ancestor that is open, with
 * no lock held while the disk is waited for. Not recursive: trees may be deep. */
static int get(struct dir *d, bool cached, int *out, struct ptcp_err *e)
{
	struct tree *t = d->tree;
	struct dir *at = d, *next;
	struct stat st;
	int fd = -1, r = 0;

	pthread_mutex_lock(&t->lock);
	while (at->fd < 0)
		at = at->parent;
	pin(at);
	while (at != d) {
		for (next = d; next->parent != at; next = next->parent)
			;
		if (next->fd < 0) {
			pthread_mutex_unlock(&t->lock);
			r = open_node(next, at->fd, cached, &fd, &st, e);
			pthread_mutex_lock(&t->lock);
			if (r == 0)
				r = install(next, fd, &st, e);
		}
		if (r == 0)
			pin(next);
		unpin(at);
		if (r != 0)
			break;
		at = next;
	}
	if (r == 0)
		*out = d->fd;
	pthread_mutex_unlock(&t->lock);
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
