#include "fs/excluded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"

#define LINKS_MAX 40 /* symbolic links of one path, as for the kernel */
#define DEPTH_MAX 16 /* nesting of directories in one of ours */

struct inode {
	uint64_t dev, ino;
};

struct inodes {
	struct inode *of; /* sorted */
	size_t n, cap;
};

struct excluded {
	struct inodes set;
	struct inodes above; /* directories that lead there */
};

int excluded_new(struct excluded **out, struct ptcp_err *e)
{
	return (*out = calloc(1, sizeof **out)) != NULL ? 0 : err_nomem(e);
}

void excluded_free(struct excluded *x)
{
	if (x != NULL) {
		free(x->set.of);
		free(x->above.of);
	}
	free(x);
}

/* The place of the inode: the first that is not before it. */
static size_t excluded_find(const struct inodes *x, uint64_t dev, uint64_t ino)
{
	size_t low = 0, high = x->n, at;

	while (low < high) {
		at = low + (high - low) / 2;
		if (x->of[at].dev < dev || (x->of[at].dev == dev && x->of[at].ino < ino))
			low = at + 1;
		else
			high = at;
	}
	return low;
}

static bool contains(const struct inodes *x, uint64_t dev, uint64_t ino)
{
	size_t at = excluded_find(x, dev, ino);

	return at < x->n && x->of[at].dev == dev && x->of[at].ino == ino;
}

bool excluded_has(const struct excluded *x, uint64_t dev, uint64_t ino) { return contains(&x->set, dev, ino); }
bool excluded_below(const struct excluded *x, uint64_t dev, uint64_t ino) { return contains(&x->above, dev, ino); }

static int insert(struct inodes *x, const struct stat *st, struct ptcp_err *e)
{
	size_t at = excluded_find(x, st->st_dev, st->st_ino);
	struct inode *more;

	if (at < x->n && x->of[at].dev == st->st_dev && x->of[at].ino == st->st_ino)
		return 0;
	if (x->n == EXCLUDED_MAX)
		return err_set(e, PTCP_ECONFIG, "configuration and state: more than %u files (remove some)",
		    EXCLUDED_MAX);
	if (x->n == x->cap) {
		if ((more = realloc(x->of, (x->cap * 2 + 64) * sizeof *more)) == NULL)
			return err_nomem(e);
		x->of = more;
		x->cap = x->cap * 2 + 64;
	}
	memmove(&x->of[at + 1], &x->of[at], (x->n++ - at) * sizeof *x->of);
	x->of[at] = (struct inode){ st->st_dev, st->st_ino };
	return 0;
}

static int add(struct excluded *x, const struct stat *st, struct ptcp_err *e) { return insert(&x->set, st, e); }

/* ---- What lies in a directory ---- */

static int add_open(struct excluded *x, int fd, int depth, struct ptcp_err *e);

static int add_entry(struct excluded *x, int at, const char *name, int depth, struct ptcp_err *e)
{
	struct stat st, to;
	int fd, r;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0; /* removed meanwhile */
	if (S_ISLNK(st.st_mode) && fstatat(at, name, &to, 0) == 0 && S_ISREG(to.st_mode) && (r = add(x, &to, e)) < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return add(x, &st, e);
	if (depth == DEPTH_MAX || (fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return add(x, &st, e);
	r = add_open(x, fd, depth + 1, e);
	fd_close(&fd);
	return r;
}

/* A shortage of descriptors must not end in a smaller set; directories that this process may not list are closed to
 * its clients, too. */
static int list_failed(struct ptcp_err *e)
{
	if (errno == EACCES || errno == EPERM || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_sys(e, PTCP_EIO, "listing the server's configuration and state");
}

static int add_open(struct excluded *x, int fd, int depth, struct ptcp_err *e)
{
	struct dirent *entry;
	struct stat st;
	int at, r = 0;
	DIR *d;

	if (fstat(fd, &st) != 0)
		return err_sys(e, PTCP_EIO, "the server's configuration and state");
	if ((r = add(x, &st, e)) < 0)
		return r;
	if ((at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return list_failed(e);
	if ((d = fd_dir(&at)) == NULL)
		return err_nomem(e);
	for (errno = 0; r == 0 && (entry = readdir(d)) != NULL; errno = 0)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = add_entry(x, dirfd(d), entry->d_name, depth, e);
	if (r == 0 && errno != 0)
		r = list_failed(e);
	closedir(d);
	return r;
}

/* The directories above the directory open at `at`, whatever links lead there. */
static int add_parents(struct excluded *x, int at, struct ptcp_err *e)
{
	struct stat last = { 0 }, st;
	int fd = at, up, r = 0;

	while (r == 0 && (up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0) {
		if (fd != at)
			fd_close(&fd);
		fd = up;
		if (fstat(fd, &st) != 0 || (st.st_dev == last.st_dev && st.st_ino == last.st_ino))
			break;
		r = insert(&x->above, &st, e);
		last = st;
	}
	if (fd != at)
		fd_close(&fd);
	return r;
}

int excluded_add_open(struct excluded *x, int fd, struct ptcp_err *e)
{
	int r = add_open(x, fd, 0, e);

	return r < 0 ? r : add_parents(x, fd, e);
}

/* ---- Links on the path of a directory ---- */

/* Replaces the link, the first `n` bytes of `path`, by its target. */
static bool follow(char path[PATH_MAX], size_t n)
{
	char to[PATH_MAX], link[PATH_MAX], out[PATH_MAX];
	const char *end;
	ssize_t got;
	int dir = 0;

	memcpy(link, path, n);
	link[n] = '\0';
	if ((got = readlink(link, to, sizeof to - 1)) < 0)
		return false;
	to[got] = '\0';
	if (to[0] != '/' && (end = strrchr(link, '/')) != NULL)
		dir = (int)(end - link) + 1;
	if ((size_t)snprintf(out, sizeof out, "%.*s%s%s", dir, link, to, path + n) >= sizeof out)
		return false;
	strcpy(path, out);
	return true;
}

/* The directories that the path names before its last component. */
static int add_prefixes(struct excluded *x, const char *path, struct ptcp_err *e)
{
	char part[PATH_MAX];
	struct stat st;
	size_t i;
	int r = 0;

	for (i = 1; path[0] != '\0' && path[i] != '\0' && r == 0; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (stat(part, &st) == 0)
			r = insert(&x->above, &st, e);
	}
	return r;
}

/* Adds the first link of the path, and follows it: 1; or 0 without a link. */
static int next_link(struct excluded *x, char path[PATH_MAX], struct ptcp_err *e)
{
	char part[PATH_MAX];
	struct stat st;
	size_t i;
	int r;

	for (i = 1; path[i - 1] != '\0'; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode)) {
			if ((r = add(x, &st, e)) < 0)
				return r;
			return follow(path, i);
		}
		if (path[i] == '\0')
			break;
	}
	return 0;
}

int excluded_add(struct excluded *x, const char *path, struct ptcp_err *e)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), links, r;
	char rest[PATH_MAX];

	r = fd >= 0 ? excluded_add_open(x, fd, e) : list_failed(e);
	fd_close(&fd);
	if (r < 0 || path[0] == '\0' || strlen(path) >= sizeof rest)
		return r;
	strcpy(rest, path);
	for (links = 0, r = 1; links < LINKS_MAX && r > 0; links++)
		if ((r = add_prefixes(x, rest, e)) == 0)
			r = next_link(x, rest, e);
	return r < 0 ? r : 0;
}
