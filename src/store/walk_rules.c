#include "store/walk_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/charged.h"
#include "fs/dir_impl.h"
#include "fs/fs_err.h"

enum { FILE_MAX_BYTES = 1 << 18 };

/* The content with a NUL, on the heap; *out is NULL if the file does not exist. */
static int read_content(char **out, struct dir *d, int at, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	int fd = sys->openat(at, name, SYS_READ_FLAGS, 0), r = 0;
	struct stat st;
	char *all;
	ssize_t n = 0;
	size_t got;

	*out = NULL;
	if (fd < 0)
		return errno == ENOENT ? 0 :
		    fs_err_sys(e, errno, d, name, "cannot read the rules that leave files out");
	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES ||
	    dir_excludes(d, st.st_dev, st.st_ino))
		r = fs_err_set(e, PTCP_EIO, EINVAL, d, name,
		    "no file of at most 256 KiB with rules that leave files out (rename it)");
	else if ((all = malloc(FILE_MAX_BYTES + 1)) == NULL)
		r = err_nomem(e);
	else {
		for (got = 0; got < FILE_MAX_BYTES; got += (size_t)n) {
			const struct iovec part = { all + got, FILE_MAX_BYTES - got };

			if ((n = sys->preadv2(fd, &part, 1, (off_t)got, 0)) <= 0)
				break;
		}
		all[got] = '\0';
		*out = all;
		if (n < 0)
			r = fs_err_sys(e, errno, d, name, "cannot read the rules that leave files out");
	}
	sys->close(&fd);
	return r;
}

static int add_rules(struct filter_scope *s, unsigned file, char *content, struct dir *d, const char *name,
    struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };
	int r = filter_scope_read(s, file, content, &why);

	if (r == PTCP_ENOMEM) {
		if (e != NULL)
			*e = why;
		return r;
	}
	return r < 0 ? fs_err_set(e, PTCP_EIO, EINVAL, d, name, why.msg) : 0;
}

/* Reads the files that d has: *out is NULL if it has none. `above`: d is above the transfer. */
static int read_files(struct filter_scope **out, const struct filter *f, const struct filter_scope *up, size_t at,
    struct dir *d, bool above, struct ptcp_err *e)
{
	struct filter_scope *s = NULL;
	const char *name;
	char *content;
	unsigned i;
	int fd, r = 0;

	*out = NULL;
	if (filter_file_name(f, 0) == NULL)
		return 0;
	if ((fd = dir_fd(d, e)) < 0)
		return fd;
	for (i = 0; r == 0 && (name = filter_file_name(f, i)) != NULL; i++) {
		if (above && !filter_file_is_above(f, i))
			continue;
		if ((r = read_content(&content, d, fd, name, e)) == 0 && content != NULL &&
		    (s != NULL || (r = filter_scope_new(&s, f, up, at, e)) == 0))
			r = add_rules(s, i, content, d, name, e);
		free(content);
	}
	dir_fd_done(d);
	if (r < 0)
		filter_scope_free(s);
	else
		*out = s;
	return r;
}

static void leave_outer(struct walk_rules *w)
{
	while (w->n_outer > 0)
		filter_scope_free(w->outer[--w->n_outer]);
	free(w->outer);
	w->outer = NULL;
}

static void leave_upper(struct walk_rules *w)
{
	while (w->n_upper > 0)
		filter_scope_free(w->upper[--w->n_upper]);
	free(w->upper);
	w->upper = NULL;
	dir_unref(w->root);
	w->root = NULL;
	w->top = 0;
}

void walk_rules_fini(struct walk_rules *w)
{
	leave_outer(w);
	leave_upper(w);
	dir_unref(w->base);
	memory_free(w->memory, w->path, w->path_cap);
}

/* The path of the latest entry: `name` behind `above` bytes, which stay. */
static int set_path(struct walk_rules *w, size_t above, const char *name, struct ptcp_err *why)
{
	size_t n = strlen(name), cap = 2 * (above + n + 2);
	char *path;

	if (w->path_cap < above + n + 2) { /* a '/' may follow */
		if ((path = memory_realloc(w->memory, w->path, w->path_cap, cap, why)) == NULL)
			return PTCP_ENOMEM;
		w->path = path;
		w->path_cap = cap;
	}
	memcpy(w->path + above, name, n + 1);
	return 0;
}

static const struct filter_scope *innermost(const struct walk_rules *w)
{
	return w->n_outer > 0 ? w->outer[w->n_outer - 1] : w->n_upper > 0 ? w->upper[w->n_upper - 1] : NULL;
}

/* ---- Directories above the transfer ---- */

/* A directory that cannot be opened has no rules. */
static int read_upper(struct walk_rules *w, struct dir *d, struct ptcp_err *e)
{
	struct filter_scope *s, **more;
	int r;

	if (dir_fd(d, NULL) < 0)
		return 0;
	r = read_files(&s, w->filter, innermost(w), w->top, d, true, e);
	dir_fd_done(d);
	if (r < 0 || s == NULL)
		return r;
	if ((more = realloc(w->upper, (w->n_upper + 1) * sizeof(struct filter_scope *))) == NULL) {
		filter_scope_free(s);
		return err_nomem(e);
	}
	w->upper = more;
	w->upper[w->n_upper++] = s;
	return 0;
}

/* The path of d below the root of its tree, or of the system. */
static int find_path(const struct walk_rules *w, struct dir *d, char path[DIR_PATH_RAW_BYTES], struct ptcp_err *e)
{
	char link[40];
	ssize_t n;
	int at;

	if (!w->own) {
		dir_path_raw(d, NULL, path, DIR_PATH_RAW_BYTES);
		return 0;
	}
	if ((at = dir_fd(d, e)) < 0)
		return at;
	snprintf(link, sizeof link, "/proc/self/fd/%d", at);
	n = dir_sys(d)->readlinkat(AT_FDCWD, link, path, DIR_PATH_RAW_BYTES - 1);
	dir_fd_done(d);
	if (n < 0 || path[0] != '/')
		return fs_err_set(e, PTCP_EIO, n < 0 ? errno : ENOENT, d, NULL,
		    "cannot find the directories above, which may have rules (mount /proc, or write : NAME)");
	path[n] = '\0';
	return 0;
}

/* d becomes its child. */
static int go_down(struct walk_rules *w, struct dir **d, const char *at, size_t n, struct ptcp_err *e)
{
	char name[NAME_MAX + 1];
	struct dir *child;
	int r;

	if (n > NAME_MAX)
		return err_set(e, PTCP_EIO, "the directory was renamed meanwhile (run the same command again)");
	memcpy(name, at, n);
	name[n] = '\0';
	if ((r = set_path(w, w->top, name, e)) < 0)
		return r;
	w->top += n + 1;
	w->path[w->top - 1] = '/';
	w->path[w->top] = '\0';
	if ((child = dir_child(*d, name)) == NULL)
		return err_nomem(e);
	dir_unref(*d);
	*d = child;
	return 0;
}

/* Reads the rules of the directories above `root`, and with `inclusive` its own. */
static int enter_upper(struct walk_rules *w, struct dir *root, bool inclusive, struct ptcp_err *e)
{
	char path[DIR_PATH_RAW_BYTES];
	struct tree *whole = NULL;
	const char *at = path;
	struct dir *d;
	size_t n;
	int r;

	if ((r = find_path(w, root, path, e)) < 0 || (w->own && (r = tree_open(&whole, "/", dir_sys(root), e)) < 0))
		return r;
	d = tree_root(w->own ? whole : root->tree);
	tree_unref(whole);
	for (; r >= 0; at += n) {
		at += strspn(at, "/");
		if ((n = strcspn(at, "/")) == 1 && *at == '.')
			continue;
		if ((n > 0 || inclusive) && (r = read_upper(w, d, e)) < 0)
			break;
		if (n == 0)
			break;
		r = go_down(w, &d, at, n, e);
	}
	dir_unref(d);
	return r < 0 ? r : 0;
}

static int enter_transfer(struct walk_rules *w, struct dir *root, bool inclusive, struct ptcp_err *e)
{
	bool wants = false;
	unsigned i;
	int r;

	for (i = 0; filter_file_name(w->filter, i) != NULL; i++)
		wants |= filter_file_is_above(w->filter, i);
	if (!wants || w->root == root)
		return 0;
	leave_upper(w);
	if ((r = set_path(w, 0, "", e)) < 0 || (r = enter_upper(w, root, inclusive, e)) < 0) {
		leave_upper(w);
		return r;
	}
	w->root = dir_ref(root);
	return 0;
}

/* Below the base: the rules of files in the directory above d, and the name of d in the path. */
static int enter_outer_dir(struct walk_rules *w, struct dir *d, struct ptcp_err *e)
{
	size_t end = strlen(w->path), above = end + (end > w->top);
	struct filter_scope *own;
	int r = read_files(&own, w->filter, innermost(w), above, d->parent, false, e);

	if (r < 0)
		return r;
	if (own != NULL)
		w->outer[w->n_outer++] = own;
	if (above > end)
		w->path[end] = '/';
	return set_path(w, above, d->name, e);
}

/* With a base: the path of the added directory d, and the rules of files from the base to the directory above. */
static int enter_outer(struct walk_rules *w, struct dir *d, struct ptcp_err *e)
{
	struct dir *up, *at;
	size_t n = 0, i, k;
	bool whole;
	int r;

	leave_outer(w);
	if (w->base == NULL)
		return enter_transfer(w, d, false, e);
	whole = w->base_path[0] == '\0';
	if ((r = enter_transfer(w, whole ? w->base : w->base->parent, !whole, e)) < 0)
		return r;
	for (up = d; up != w->base; up = up->parent)
		n++;
	if ((w->outer = calloc(n + 1, sizeof(struct filter_scope *))) == NULL)
		return err_nomem(e);
	r = set_path(w, w->top, w->base_path, e);
	for (i = n; i > 0 && r >= 0; i--) {
		for (at = d, k = 1; k < i; k++)
			at = at->parent;
		r = enter_outer_dir(w, at, e);
	}
	return r;
}

int walk_rules_enter(struct walk_rules *w, struct level_rules *l, const struct level_rules *up, struct dir *d,
    bool added, struct ptcp_err *why)
{
	int r;

	if (w->filter == NULL)
		return 0;
	if (added && (r = enter_outer(w, d, why)) < 0)
		return r;
	l->scope = up != NULL ? up->scope : innermost(w);
	l->above = w->top;
	if ((!added || w->base != NULL) && w->path != NULL && w->path[w->top] != '\0') {
		l->above = strlen(w->path) + 1;
		w->path[l->above - 1] = '/';
	}
	if ((r = read_files(&l->own, w->filter, l->scope, l->above, d, false, why)) < 0)
		return r;
	l->scope = l->own != NULL ? l->own : l->scope;
	return 0;
}

static bool is_left_out(const struct walk_rules *w, const struct level_rules *in, bool is_dir, bool removed)
{
	return !filter_includes(w->filter, in != NULL ? in->scope : innermost(w), w->base != NULL ? FILTER_RECEIVER :
	    FILTER_SENDER, w->path, w->top, in != NULL ? in->above : w->top, is_dir, removed);
}

int walk_rules_judge(struct walk_rules *w, const struct level_rules *in, struct dir *d, const char *name, bool is_dir,
    bool left_out[2], struct ptcp_err *why)
{
	int r;

	if (w->filter == NULL)
		return 0;
	if ((in == NULL && (r = enter_transfer(w, d, true, why)) < 0) ||
	    (r = set_path(w, in != NULL ? in->above : w->top, name, why)) < 0)
		return r;
	if (w->base == NULL)
		return is_left_out(w, in, is_dir, false);
	left_out[false] = is_left_out(w, in, is_dir, false);
	left_out[true] = is_left_out(w, in, is_dir, true);
	return 0;
}
