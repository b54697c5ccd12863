#include "store/destination.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "fs/dir_impl.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/part.h"
#include "store/sink.h"

/* Splits a path into parent ("" if none, "/" for the root) and last component. */
static int split(const char *path, char **above, char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	size_t n = strlen(path), start;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (start = n; start > 0 && path[start - 1] != '/'; start--)
		;
	if (!text_name_ok(path + start, n - start))
		return err_set(e, PTCP_EUSAGE, "not the name of a file or directory (end it with one)");
	memcpy(name, path + start, n - start);
	name[n - start] = '\0';
	if ((*above = malloc(start + 1)) == NULL)
		return err_nomem(e);
	memcpy(*above, path, start);
	(*above)[start] = '\0';
	return 0;
}

/* An existing directory. */
static int open_dir(struct tree *root, const char *path, struct dir **out, struct ptcp_err *e)
{
	struct tree *t;
	struct dir *top;
	int r;

	if (root == NULL) {
		if ((r = tree_open(&t, path[0] != '\0' ? path : ".", &sys_real, e)) < 0)
			return r;
		*out = tree_root(t);
		tree_unref(t);
		return 0;
	}
	top = tree_root(root);
	r = dir_resolve(out, top, path, e);
	dir_unref(top);
	return r;
}

/* ---- Marks of unfinished directories ---- */

static int write_mark(struct dir *parent, int at, const char *mark, const char *source, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(parent);
	int fd, w, r = 0;

	/* An existing mark is stale, or belongs to a running transfer of the same name, whose part files are
	 * locked. */
	if (sys->unlinkat(at, mark, 0) != 0 && errno != ENOENT)
		return fs_err_sys(e, errno, parent, mark, "cannot remove an old mark");
	fd = sys->openat(at, mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fs_err_sys(e, errno, parent, mark, "cannot create the mark of an unfinished directory");
	/* Synced, since an empty mark after a power cut would not count. */
	if ((w = sys_write_all(sys, fd, source, strlen(source), 0)) != 0)
		r = fs_err_sys(e, w, parent, mark, "cannot write");
	if (r == 0 && sys->fsync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno))
		r = fs_err_sys(e, errno, parent, mark, "cannot sync");
	if ((w = sys->close(&fd)) != 0 && r == 0)
		r = fs_err_sys(e, w, parent, mark, "cannot write");
	if (r < 0)
		sys->unlinkat(at, mark, 0);
	return r;
}

int destination_mark(struct dir *parent, const char *name, const char *source, struct ptcp_err *e)
{
	char mark[PART_NAME_BYTES];
	int at, r;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	r = write_mark(parent, at, part_name(mark, name, PART_DIR_SUFFIX), source, e);
	dir_fd_done(parent);
	return r;
}

static bool read_mark(const struct sys *sys, int fd, char source[DESTINATION_NAME_BYTES])
{
	struct iovec v = { source, DESTINATION_NAME_BYTES };
	struct stat st;
	ssize_t n;

	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (n = sys->preadv2(fd, &v, 1, 0, 0)) <= 0 || n == DESTINATION_NAME_BYTES)
		return false;
	source[n] = '\0';
	return text_name_ok(source, (size_t)n);
}

bool destination_marked(struct dir *parent, const char *name, char source[DESTINATION_NAME_BYTES])
{
	const struct sys *sys = dir_sys(parent);
	char mark[PART_NAME_BYTES];
	struct stat st;
	bool found = false;
	int at, fd;

	if ((at = dir_fd(parent, NULL)) < 0)
		return false;
	part_name(mark, name, PART_DIR_SUFFIX);
	fd = sys->openat(at, mark, SYS_READ_FLAGS, 0);
	if (fd >= 0) {
		/* A symbolic link called `name` is not ours and does not count. */
		found = read_mark(sys, fd, source) &&
		    sys->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
		sys->close(&fd);
	}
	dir_fd_done(parent);
	return found;
}

void destination_unmark(struct dir *parent, const char *name)
{
	char mark[PART_NAME_BYTES];
	int at;

	if ((at = dir_fd(parent, NULL)) < 0)
		return;
	dir_sys(parent)->unlinkat(at, part_name(mark, name, PART_DIR_SUFFIX), 0);
	dir_fd_done(parent);
}

/* ---- Targets and sources ---- */

/* `path` is an existing directory: looks for the mark of an interrupted transfer. */
static int find_mark(struct destination *out, struct tree *root, const char *path, struct ptcp_err *e)
{
	char *above = NULL;
	int r;

	if ((r = split(path, &above, out->name, e)) == 0 &&
	    (r = open_dir(root, above, &out->above, e)) == 0 &&
	    !destination_marked(out->above, out->name, out->source)) {
		dir_unref(out->above);
		out->above = NULL;
	}
	free(above);
	return r == PTCP_ENOMEM ? r : 0; /* other failures count as no mark */
}

/* ---- Missing parents ---- */

/* Opens the nearest existing directory at or above `path`; *rest is the missing part of the path. */
static int open_nearest(struct tree *root, char *path, struct dir **out, char **rest, struct ptcp_err *e)
{
	size_t n = strlen(path);
	char cut;
	int r;

	for (;;) {
		cut = path[n];
		path[n] = '\0';
		r = open_dir(root, path, out, e);
		path[n] = cut;
		if (r == 0 || e->sys != ENOENT || n == 0)
			break;
		while (n > 0 && path[n - 1] == '/')
			n--;
		while (n > 0 && path[n - 1] != '/')
			n--;
	}
	*rest = path + n;
	return r;
}

/* Replaces *d by the directory `name` in it, which is created except in a dry run. A link of that name is refused. */
static int make_one(struct dir **d, const char *name, bool dry_run, struct ptcp_err *e)
{
	struct dir *child;
	int r;

	if (!text_name_ok(name, strlen(name)))
		return fs_err_set(e, PTCP_EIO, 0, *d, strcmp(name, "..") == 0 ? ".." : NULL,
		    "not possible behind a missing directory (write the path without ..)");
	if (!dry_run && (r = store_mkdir(*d, name, NULL, NULL, e)) < 0)
		return r;
	if ((child = dir_child(*d, name)) == NULL)
		return err_nomem(e);
	dir_unref(*d);
	*d = child;
	return 0;
}

/* The directory at `path`, created with its parents if it is missing and the flags permit it. */
static int open_or_make(struct destination *out, struct tree *root, char *path, int flags, struct dir **d,
    struct ptcp_err *e)
{
	bool dry_run = (flags & DESTINATION_DRY_RUN) != 0;
	char *rest, *name, *save = NULL;
	struct ptcp_err why;
	int r;

	if ((r = open_dir(root, path, d, e)) == 0 || e->sys != ENOENT)
		return r;
	if ((flags & DESTINATION_MKPATH) == 0) {
		why = *e;
		return err_because(e, r, ENOENT, "%s (create the directory, or leave out --no-mkpath)", why.msg);
	}
	if ((r = open_nearest(root, path, d, &rest, e)) < 0)
		return r;
	for (name = strtok_r(rest, "/", &save); name != NULL && r == 0; name = strtok_r(NULL, "/", &save))
		if (strcmp(name, ".") != 0)
			r = make_one(d, name, dry_run, e);
	out->missing = dry_run;
	return r;
}

int destination_other(struct dir *from, const char *path, bool own, bool make, struct dir **out, struct ptcp_err *e)
{
	char below[DIR_PATH_RAW_BYTES], *whole;
	struct destination ignored = { 0 };
	int r;

	dir_path_raw(from, NULL, below, sizeof below);
	if (path[0] == '/' ? asprintf(&whole, "%s", path) < 0 : own ?
	    asprintf(&whole, "%s/%s/%s", dir_root_path(from), below, path) < 0 :
	    asprintf(&whole, "%s/%s", below, path) < 0)
		return err_nomem(e);
	r = open_or_make(&ignored, own ? NULL : from->tree, whole, DESTINATION_MKPATH |
	    (make ? 0 : DESTINATION_DRY_RUN), out, e);
	free(whole);
	if (r == 0 && ignored.missing) {
		dir_unref(*out);
		*out = NULL;
		return fs_err_set(e, PTCP_EIO, ENOENT, from, NULL, "no such directory");
	}
	return r;
}

/* A link that the user names, such as /dev/stdout, is judged by what it leads to: one to a device, FIFO or socket, or
 * to a descriptor of a process, is not replaced. */
static int check_link(struct dir *parent, const char *name, struct ptcp_err *e)
{
	static const char descriptors[] = "/proc/";
	const struct sys *sys = dir_sys(parent);
	char to[sizeof descriptors - 1] = { 0 };
	struct stat st;
	bool special;
	int at;

	if ((at = dir_fd(parent, NULL)) < 0) /* missing, in a dry run */
		return 0;
	special = sys->readlinkat(at, name, to, sizeof to) > 0 &&
	    (strncmp(to, descriptors, sizeof to) == 0 || (sys->fstatat(at, name, &st, 0) == 0 && !S_ISREG(st.st_mode) &&
	    !S_ISDIR(st.st_mode)));
	dir_fd_done(parent);
	return !special ? 0 : fs_err_set(e, PTCP_EUSAGE, 0, parent, name,
	    "a link to a device, FIFO or socket, which is not replaced (write - for standard output)");
}

/* `path` is missing or not a directory. */
static int use_parent(struct destination *out, struct tree *root, const char *path, bool into, int flags,
    struct ptcp_err *e)
{
	bool dry_run = (flags & DESTINATION_DRY_RUN) != 0;
	char name[DESTINATION_NAME_BYTES], *above = NULL;
	struct dir *parent = NULL;
	int r;

	if ((r = split(path, &above, name, e)) < 0 || (r = open_or_make(out, root, above, flags, &parent, e)) < 0)
		goto out;
	if (!into) {
		if ((r = check_link(parent, name, e)) < 0)
			goto out;
		strcpy(out->rename, name);
		out->base = dir_ref(parent);
		goto out;
	}
	if (!dry_run && (r = store_mkdir(parent, name, NULL, &out->made, e)) < 0)
		goto out;
	out->missing = dry_run;
	if ((out->base = dir_child(parent, name)) == NULL)
		r = err_nomem(e);
out:
	dir_unref(parent);
	free(above);
	return r;
}

static const char names_no_file[] = "Is a directory (add the name of the file)";

int destination_target(struct destination *out, struct tree *root, const char *path, int flags, struct ptcp_err *e)
{
	bool into = (flags & (DESTINATION_INTO_DIR | DESTINATION_CONTENTS)) != 0 || text_is_contents(path);
	char text[DIR_PATH_TEXT_BYTES];
	int r;

	*out = (struct destination){ 0 };
	if ((flags & DESTINATION_FILE) != 0 && into)
		return err_because(e, PTCP_EUSAGE, EISDIR, "%s", names_no_file);
	if ((r = open_dir(root, path, &out->base, e)) == 0 && (flags & DESTINATION_FILE) != 0)
		r = err_because(e, PTCP_EUSAGE, EISDIR, "%s", names_no_file);
	else if (r == 0)
		r = into ? 0 : find_mark(out, root, path, e);
	/* Existing files, and links that leave the root, will be replaced. */
	else if (e->sys == ENOENT || (!into && (e->sys == ENOTDIR || e->sys == EXDEV || e->sys == ELOOP)))
		r = use_parent(out, root, path, into, flags, e);
	if (r < 0) {
		destination_fini(out);
		return r;
	}
	room_look(&out->room, out->base);
	out->contents = (flags & DESTINATION_CONTENTS) != 0;
	out->served = root != NULL && strcmp(dir_path_text(out->base, NULL, text, sizeof text), ".") == 0;
	return 0;
}

void destination_fini(struct destination *p)
{
	dir_unref(p->base);
	dir_unref(p->above);
	*p = (struct destination){ 0 };
}

int destination_source(struct tree *root, const char *path, bool contents, struct dir **dir,
    char name[DESTINATION_NAME_BYTES], struct ptcp_err *e)
{
	char *above = NULL;
	int r;

	if (contents || text_is_contents(path)) {
		name[0] = '\0';
		return open_dir(root, path, dir, e);
	}
	if ((r = split(path, &above, name, e)) == 0)
		r = open_dir(root, above, dir, e);
	free(above);
	return r;
}
