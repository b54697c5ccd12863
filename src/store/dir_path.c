/* Paths of several names: looked up as somebody asked for them, and told. */
#include "store/dir_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "store/store_err.h"

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

			r = up ? store_err_why(e, PTCP_EIO, EXDEV, d, "..",
				     "not followed (this kernel has no openat2)")
			       : store_err_sys(e, ENAMETOOLONG, d, name, "cannot open the directory");
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
	if ((d = dir_node_new(t, t->root, full, above + n)) == NULL) {
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
