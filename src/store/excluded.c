#include "store/excluded.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool excluded_has(const struct excluded *x, uint64_t dev, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < x->n; i++)
		if (x->of[i].dev == dev && x->of[i].ino == ino)
			return true;
	return false;
}

bool excluded_below(const struct excluded *x, uint64_t dev, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < x->n_above; i++)
		if (x->above[i].dev == dev && x->above[i].ino == ino)
			return true;
	return x->too_deep;
}

static void add_above(struct excluded *x, const struct stat *st)
{
	if (excluded_below(x, st->st_dev, st->st_ino))
		return;
	if (x->n_above == EXCLUDED_ABOVE_MAX)
		x->too_deep = true;
	else
		x->above[x->n_above++] = (struct excluded_inode){ st->st_dev, st->st_ino };
}

/* The directories that the path names before its last component. */
static void add_prefixes(struct excluded *x, const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t i;

	for (i = 1; path[i] != '\0'; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (stat(part, &st) == 0)
			add_above(x, &st);
	}
}

/* The directories above the directory at `path`, whatever links lead there. */
static void add_parents(struct excluded *x, const char *path)
{
	struct stat last = { 0 }, st;
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), up;

	while (fd >= 0 && (up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0) {
		close(fd);
		fd = up;
		if (fstat(fd, &st) != 0 || (st.st_dev == last.st_dev && st.st_ino == last.st_ino))
			break;
		add_above(x, &st);
		last = st;
	}
	if (fd >= 0)
		close(fd);
}

static void add(struct excluded *x, const struct stat *st)
{
	if (excluded_has(x, st->st_dev, st->st_ino))
		return;
	assert(x->n < EXCLUDED_MAX);
	x->of[x->n].dev = st->st_dev;
	x->of[x->n++].ino = st->st_ino;
}

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

/* Adds the first link of the path that is not known, and follows it. */
static bool next_link(struct excluded *x, char path[PATH_MAX])
{
	char part[PATH_MAX];
	struct stat st;
	size_t i;

	for (i = 1; path[i - 1] != '\0'; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode)) {
			add(x, &st);
			return follow(path, i);
		}
		if (path[i] == '\0')
			break;
	}
	return false;
}

void excluded_add(struct excluded *x, const char *path)
{
	char rest[PATH_MAX];
	struct stat st;
	int links;

	if (stat(path, &st) == 0)
		add(x, &st);
	if (path[0] == '\0' || strlen(path) >= sizeof rest)
		return;
	add_parents(x, path);
	strcpy(rest, path);
	add_prefixes(x, rest);
	for (links = 0; links < EXCLUDED_LINKS_MAX && next_link(x, rest); links++)
		add_prefixes(x, rest);
}
