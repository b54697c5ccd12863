#include "store/dir.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/list.h"
#include "core/text.h"
#include "store/fail.h"
#include "store/fds.h"

/* openat2() gives up with EAGAIN when a rename anywhere races with a "..". */
#define RESOLVE_TRIES 64

struct dir {
	struct tree *tree;
	struct dir *parent; /* held; NULL for the root */
	atomic_uint refs;
	bool resolved;      /* name is a path from the root; links in it are followed */
	_Atomic uint64_t changes, synced; /* all changes up to that number are durable */
	/* Under tree->lock: */
	int fd;             /* -1 when closed */
	unsigned pins;      /* the root has one for life */
	bool known;         /* dev and ino are those of the first opening */
	dev_t dev;
	ino_t ino;
	struct list idle;   /* in tree->idle while open and not pinned */
	char name[];
};

struct tree {
	const struct sys *sys;
	pthread_mutex_t lock;
	struct list idle; /* the longest unused first */
	unsigned open, most_open;
	mode_t umask;
	atomic_bool no_cached; /* this kernel has no RESOLVE_CACHED */
	_Atomic uint64_t note;  /* dev << 2 | note */
	struct dir *root;
};

/* umask(2) can only be read by changing it, which other threads would notice. */
static mode_t read_umask(void)
{
	char text[512], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, sizeof text - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	if ((at = strstr(text, "\nUmask:")) == NULL)
		return 022;
	return (mode_t)strtoul(at + strlen("\nUmask:"), NULL, 8) & 0777;
}

static struct dir *node_new(struct tree *t, struct dir *parent, const char *name, size_t n)
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

int tree_open(struct tree **out, const char *root, const struct sys *sys, struct ptcp_err *e)
{
	const int flags = O_DIRECTORY | O_CLOEXEC;
	char text[TEXT_NAME_BYTES];
	struct tree *t;
	int fd, r;

	if (*root == '\0')
		return err_set(e, PTCP_EUSAGE, "\"\": not a directory (use . for the current one)");
	if ((fd = sys->openat(AT_FDCWD, root, flags | O_RDONLY, 0)) < 0 && errno == EACCES)
		fd = sys->openat(AT_FDCWD, root, flags | O_PATH, 0);
	if (fd < 0)
		return err_sys(e, err_from_errno(errno), "%s: cannot open the directory",
		    text_escape(text, sizeof text, root));
	if ((t = calloc(1, sizeof *t)) == NULL || (t->root = node_new(t, NULL, "", 0)) == NULL) {
		r = err_nomem(e);
		free(t);
		sys->close(fd);
		return r;
	}
	t->sys = sys;
	t->umask = read_umask();
	t->most_open = fds_directories(DIR_OPEN_MAX);
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->idle);
	t->root->fd = fd;
	t->root->pins = 1;
	*out = t;
	return 0;
}

void tree_unref(struct tree *t)
{
	if (t != NULL)
		dir_unref(t->root);
}

const struct sys *tree_sys(const struct tree *t)
{
	return t->sys;
}

struct dir *tree_root(struct tree *t)
{
	return dir_ref(t->root);
}

struct dir *dir_child(struct dir *parent, const char *name)
{
	size_t n = strlen(name);

	assert(text_name_ok(name, n));
	return node_new(parent->tree, parent, name, n);
}

struct dir *dir_ref(struct dir *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

/* Each node holds its parent, so the root, and with it the tree, goes last. */
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
			t->open--;
		pthread_mutex_unlock(&t->lock);
		if (d->fd >= 0)
			t->sys->close(d->fd);
		free(d);
		if (parent == NULL) {
			pthread_mutex_destroy(&t->lock);
			free(t);
		}
		d = parent;
	}
}

const struct sys *dir_sys(const struct dir *d)
{
	return d->tree->sys;
}

mode_t dir_umask(const struct dir *d)
{
	return d->tree->umask;
}

unsigned dir_noted(const struct dir *d, uint64_t dev)
{
	uint64_t got = atomic_load_explicit(&d->tree->note, memory_order_relaxed);

	return got >> 2 == dev ? (unsigned)(got & 3) : 0;
}

void dir_note(const struct dir *d, uint64_t dev, unsigned note)
{
	assert(note >= 1 && note <= 3);
	/* Linux has 32 bits of dev, which glibc spreads over 44. */
	if (dev <= UINT64_MAX >> 2)
		atomic_store_explicit(&d->tree->note, dev << 2 | note, memory_order_relaxed);
}

void dir_changed(struct dir *d)
{
	atomic_fetch_add(&d->changes, 1);
}

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
	/* EBADF: it may not be read, so we have it by O_PATH only. */
	if (d->tree->sys->fsync(at) == 0 || errno == EBADF || sys_cannot_sync(errno))
		atomic_store(&d->synced, upto); /* of two at once the later may say less: no harm */
	else
		r = fail_sys(e, errno, d, NULL, "cannot make the directory's entries durable");
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
			return fail_why(e, PTCP_EIO, errno, d, NULL, "not a directory");
		if (errno == EXDEV)
			return fail_why(e, PTCP_EIO, errno, d, NULL, "leads out of the root directory");
		return fail_sys(e, errno, d, NULL, "cannot open the directory");
	}
	if (d->tree->sys->fstat(fd, st) != 0) {
		sys = errno;
		d->tree->sys->close(fd);
		return fail_sys(e, sys, d, NULL, "cannot examine the directory");
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
		return fail_why(e, PTCP_EIO, ESTALE, d, NULL,
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

/* Names of d's ancestors and d, from the root, each followed by '/', written so
 * that they end before `end`; returns where they start. */
static char *names_before(const struct dir *d, char *end)
{
	size_t n;

	for (; d->parent != NULL; d = d->parent) {
		n = strlen(d->name);
		*--end = '/';
		end -= n;
		memcpy(end, d->name, n);
	}
	return end;
}

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

/* Without openat2(): a node for each component of `path`, which is tidied. */
static int resolve_plain(struct dir **out, struct dir *base, char *path, struct ptcp_err *e)
{
	struct dir *d = dir_ref(base), *child;
	char *save = NULL, *name;

	for (name = strtok_r(path, "/", &save); name != NULL; name = strtok_r(NULL, "/", &save)) {
		if (!text_name_ok(name, strlen(name))) {
			int up = strcmp(name, "..") == 0, r;

			r = up ? fail_why(e, PTCP_EIO, EXDEV, d, "..",
				     "not followed (this kernel has no openat2)")
			       : fail_sys(e, ENAMETOOLONG, d, name, "cannot open the directory");
			dir_unref(d);
			return r;
		}
		child = dir_child(d, name);
		dir_unref(d);
		if ((d = child) == NULL)
			return err_nomem(e);
	}
	*out = d;
	return 0;
}

/* Is it there, and a directory? Takes d; on success it is *out. */
static int probe(struct dir **out, struct dir *d, struct ptcp_err *e)
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
	char *full, *tail;
	int r;

	for (up = base; up->parent != NULL; up = up->parent)
		above += strlen(up->name) + 1;
	if ((full = malloc(above + strlen(path) + 1)) == NULL)
		return err_nomem(e);
	tail = full + above;
	names_before(base, tail);
	n = tidy(tail, path);
	if (n == 0) {
		free(full);
		return probe(out, dir_ref(base), e);
	}
	if ((d = node_new(t, t->root, full, above + n)) == NULL) {
		free(full);
		return err_nomem(e);
	}
	d->resolved = true;
	r = probe(out, d, &why);
	if (r < 0 && (why.sys == ENOSYS || why.sys == EPERM)) {
		if ((r = resolve_plain(&d, base, tail, &why)) == 0)
			r = probe(out, d, &why);
	}
	free(full);
	if (r < 0 && e != NULL)
		*e = why;
	return r;
}

const char *dir_path_text(const struct dir *d, const char *name, char *out, size_t cap)
{
	char one[4 * 255 + 1];
	size_t at = cap - 1, n;
	size_t keep;
	bool first = true;

	assert(cap >= 16);
	out[at] = '\0';
	for (;;) {
		if (name != NULL) {
			/* The last name is cut behind, what is above it in front. */
			keep = d->parent != NULL ? strlen("../") : 0;
			text_escape(one, first && cap - keep < sizeof one ? cap - keep : sizeof one, name);
			n = strlen(one);
			if (!first && n + 1 + keep > at) {
				memcpy(out + (at -= 3), "../", 3);
				break;
			}
			if (!first)
				out[--at] = '/';
			memcpy(out + (at -= n), one, n);
			first = false;
		}
		if (d->parent == NULL)
			break;
		name = d->name;
		d = d->parent;
	}
	if (first)
		out[--at] = '.'; /* the root itself */
	return memmove(out, out + at, cap - at);
}

const char *dir_path_raw(const struct dir *d, const char *name, char *out, size_t cap)
{
	size_t at = cap - 1, n;

	assert(cap >= 16);
	out[at] = '\0';
	for (;;) {
		if (name != NULL) {
			n = strlen(name);
			if (n + 5 > at) {
				memcpy(out + (at -= 3), "../", 3);
				break;
			}
			if (at < cap - 1)
				out[--at] = '/';
			memcpy(out + (at -= n), name, n);
		}
		if (d->parent == NULL)
			break;
		name = d->name;
		d = d->parent;
	}
	if (at == cap - 1)
		out[--at] = '.'; /* the root itself */
	return memmove(out, out + at, cap - at);
}
