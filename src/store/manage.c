#include "store/manage.h"

#include <errno.h>
#include <stdio.h> /* RENAME_NOREPLACE */
#include <unistd.h>

#include "fs/dir_impl.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "store/part.h"

#define RESERVED_WHY "a name that ptcp reserves for unfinished files (ptcp clean removes these)"

static int check_name(const struct dir *d, const char *name, struct ptcp_err *e)
{
	return part_is_own_name(name) ? fs_err_set(e, PTCP_EREFUSED, EACCES, d, name, RESERVED_WHY) : 0;
}

/* The entry, unless it is excluded. */
static int examine(const struct dir *d, int at, const char *name, struct stat *st, struct ptcp_err *e)
{
	if (dir_sys(d)->fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, d, name, NULL);
	return dir_excludes(d, st->st_dev, st->st_ino) ?
	    fs_err_set(e, PTCP_EREFUSED, EACCES, d, name, EXCLUDED_WHY) : 0;
}

static int mkdir_at(struct dir *d, int at, const char *name, bool existing, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct stat st;
	int err;

	if ((err = quota_take(dir_quota(d), QUOTA_GRAIN, e)) < 0)
		return err;
	if (sys->mkdirat(at, name, 0777) == 0) {
		dir_changed(d);
		return 0;
	}
	err = errno;
	quota_give(dir_quota(d), QUOTA_GRAIN);
	if (err == EEXIST && existing && sys->fstatat(at, name, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return fs_err_sys(e, err, d, name, NULL);
}

int manage_mkdir(struct dir *d, const char *name, bool existing, struct ptcp_err *e)
{
	int at, r;

	if ((r = check_name(d, name, e)) < 0 || (at = r = dir_fd(d, e)) < 0)
		return r;
	r = mkdir_at(d, at, name, existing, e);
	dir_fd_done(d);
	return r;
}

static int create_at(struct dir *d, int at, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	int fd, err;

	if ((err = quota_take(dir_quota(d), QUOTA_GRAIN, e)) < 0)
		return err;
	if ((fd = sys->openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) >= 0) {
		sys->close(&fd);
		dir_changed(d);
		return 0;
	}
	err = errno;
	quota_give(dir_quota(d), QUOTA_GRAIN);
	return fs_err_sys(e, err, d, name, NULL);
}

static int touch_at(struct dir *d, int at, const char *name, struct ptcp_err *e)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct stat st;
	int r;

	if ((r = examine(d, at, name, &st, e)) < 0)
		return e->sys == ENOENT ? create_at(d, at, name, e) : r;
	if (S_ISLNK(st.st_mode))
		return fs_err_set(e, PTCP_EIO, ELOOP, d, name, "a symbolic link (name its target)");
	return dir_sys(d)->utimensat(at, name, now, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : fs_err_sys(e, errno, d, name, NULL);
}

int manage_touch(struct dir *d, const char *name, struct ptcp_err *e)
{
	int at, r;

	if ((r = check_name(d, name, e)) < 0 || (at = r = dir_fd(d, e)) < 0)
		return r;
	r = touch_at(d, at, name, e);
	dir_fd_done(d);
	return r;
}

/* ---- Removal ---- */

/* unlinkat(2), for a tree that may have a quota. */
static int unlink_at(struct dir *d, int at, const char *name, int flags)
{
	uint64_t freed;
	int r, err;

	quota_names_begin(dir_quota(d), dir_sys(d), at, name, &freed);
	r = dir_sys(d)->unlinkat(at, name, flags);
	err = errno;
	quota_names_end(dir_quota(d), r == 0, freed);
	errno = err;
	return r;
}

int manage_clear(struct dir *d, const char *name, struct ptcp_err *e)
{
	struct stat st;
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	if ((r = examine(d, at, name, &st, e)) == 0) {
		if (S_ISDIR(st.st_mode))
			r = fs_err_sys(e, EISDIR, d, name, NULL);
		else if (unlink_at(d, at, name, 0) != 0)
			r = fs_err_sys(e, errno, d, name, NULL);
		else
			dir_changed(d);
	}
	dir_fd_done(d);
	return r;
}

int manage_remove(struct dir *d, const char *name, struct ptcp_err *e)
{
	int r = check_name(d, name, e);

	return r < 0 ? r : manage_clear(d, name, e);
}

int manage_stamp(struct dir *d, const char *name, struct manage_stamp *out, struct ptcp_err *e)
{
	struct stat st;
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	if ((r = examine(d, at, name, &st, e)) == 0)
		*out = (struct manage_stamp){ st.st_dev, st.st_ino, st.st_nlink, (uint64_t)st.st_size,
		    st.st_mtim, st.st_ctim };
	dir_fd_done(d);
	return r;
}

static bool same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

static bool is_unchanged(const struct stat *st, const struct manage_stamp *was)
{
	return st->st_dev == was->dev && st->st_ino == was->ino && (uint64_t)st->st_size == was->size_bytes &&
	    same_time(st->st_mtim, was->mtime) &&
	    (was->nlink > 1 || st->st_nlink > 1 || same_time(st->st_ctim, was->ctime));
}

int manage_remove_unchanged(struct dir *d, const char *name, const struct manage_stamp *was, struct ptcp_err *e)
{
	struct stat st;
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	if ((r = examine(d, at, name, &st, e)) == 0) {
		if (!is_unchanged(&st, was))
			r = fs_err_set(e, PTCP_ECHANGED, 0, d, name, "changed since");
		else if (unlink_at(d, at, name, 0) != 0)
			r = fs_err_sys(e, errno, d, name, NULL);
		else
			dir_changed(d);
	}
	dir_fd_done(d);
	return r;
}

static int sync_file(const struct dir *d, int at, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	int fd = sys->openat(at, name, SYS_READ_FLAGS, 0), r = 0;

	if (fd < 0) /* a link, or already gone */
		return errno == ELOOP ? 0 : fs_err_sys(e, errno, d, name, "cannot sync");
	if (sys->fsync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno))
		r = fs_err_sys(e, errno, d, name, "cannot sync");
	sys->close(&fd);
	return r;
}

int manage_sync(struct dir *d, const char *name, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	r = sync_file(d, at, name, e);
	dir_fd_done(d);
	if (r < 0)
		return r;
	dir_changed(d); /* an earlier run, or another program, has made it */
	return dir_sync(d, e);
}

int manage_rmdir(struct dir *d, struct ptcp_err *e)
{
	struct dir *parent = d->parent;
	int at, r = 0;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	if (unlink_at(d, at, d->name, AT_REMOVEDIR) != 0)
		r = fs_err_sys(e, errno, d, NULL, NULL);
	else
		dir_changed(parent);
	dir_fd_done(parent);
	return r;
}

int manage_remove_dir(struct dir *d, const char *name, struct ptcp_err *e)
{
	struct stat st;
	int at, r;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	if ((r = examine(d, at, name, &st, e)) == 0) {
		if (unlink_at(d, at, name, AT_REMOVEDIR) != 0)
			r = fs_err_sys(e, errno, d, name, NULL);
		else
			dir_changed(d);
	}
	dir_fd_done(d);
	return r;
}

int manage_open_dir(struct dir *d, struct manage_dir *was, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct stat st;
	int at, r = 0;

	if (was->dir != NULL)
		return 0;
	if ((at = dir_fd(d, e)) < 0)
		return at;
	if (sys->fstat(at, &st) != 0) {
		r = fs_err_sys(e, errno, d, NULL, NULL);
	} else {
		*was = (struct manage_dir){ .dir = dir_ref(d), .mode = st.st_mode & 07777, .atime = st.st_atim,
		    .mtime = st.st_mtim };
		was->opened = (st.st_mode & S_IRWXU) != S_IRWXU && st.st_uid == geteuid() &&
		    sys->fchmodat(at, ".", was->mode | S_IRWXU, 0) == 0; /* else the removal tells why it fails */
	}
	dir_fd_done(d);
	return r;
}

int manage_open_above(struct dir *d, struct manage_dir *was, struct ptcp_err *e)
{
	return manage_open_dir(d->parent, was, e);
}

void manage_close_dir(struct manage_dir *was, bool times)
{
	const struct timespec ts[2] = { was->atime, was->mtime };
	struct dir *d = was->dir;
	int at;

	if (d != NULL && (at = dir_fd(d, NULL)) >= 0) {
		if (times)
			dir_sys(d)->utimensat(at, ".", ts, 0);
		if (was->opened)
			dir_sys(d)->fchmodat(at, ".", was->mode, 0);
		dir_fd_done(d);
	}
	dir_unref(d);
	was->dir = NULL;
}

/* ---- Renaming ---- */

static int check_source(const struct dir *d, int at, const char *name, struct ptcp_err *e)
{
	struct stat st;
	int r;

	if ((r = examine(d, at, name, &st, e)) < 0)
		return r;
	if (S_ISDIR(st.st_mode) && dir_has_excluded_below(d, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, d, name,
		    "contains the server's own configuration or state: not renamed");
	return 0;
}

static int check_target(const struct dir *d, int at, const char *name, bool replace, struct ptcp_err *e)
{
	struct stat st;
	int r = examine(d, at, name, &st, e);

	if (r < 0)
		return e->sys == ENOENT ? 0 : r;
	return replace ? 0 : fs_err_sys(e, EEXIST, d, name, NULL);
}

/* Without RENAME_NOREPLACE, which some file systems lack, the check of the target has to do. An errno, or 0. */
static int rename_at(const struct sys *sys, int at, const char *name, int to, const char *new_name, bool replace)
{
	if (!replace && sys->renameat2(at, name, to, new_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (!replace && !fs_cannot(ABILITY_NO_REPLACE, errno))
		return errno;
	return sys->renameat2(at, name, to, new_name, 0) == 0 ? 0 : errno;
}

/* Renaming a file to itself removes nothing. */
static bool is_same(const struct sys *sys, int at, const char *name, int to, const char *new_name)
{
	struct stat a, b;

	return sys->fstatat(at, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && sys->fstatat(to, new_name, &b,
	    AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int rename_failed(struct ptcp_err *e, int sys, struct dir *from, const char *name, struct dir *to,
    const char *new_name)
{
	switch (sys) {
	case EXDEV:
		return fs_err_set(e, PTCP_EIO, sys, from, name,
		    "on another file system (copy the files, then remove them)");
	case EINVAL:
		return fs_err_set(e, PTCP_EIO, sys, from, name, "cannot be moved below itself");
	case EEXIST:
	case ENOTEMPTY:
	case EISDIR:
	case ENOTDIR:
		return fs_err_sys(e, sys, to, new_name, NULL);
	default:
		return fs_err_sys(e, sys, from, name, NULL);
	}
}

/* Both directories are open. */
static int rename_in(struct dir *from, int at, const char *name, struct dir *to, int dest, const char *new_name,
    bool replace, struct ptcp_err *e)
{
	uint64_t freed;
	int r, sys;
	bool same;

	if ((r = check_source(from, at, name, e)) < 0 || (r = check_target(to, dest, new_name, replace, e)) < 0)
		return r;
	quota_names_begin(dir_quota(to), dir_sys(to), dest, new_name, &freed);
	same = freed > 0 && is_same(dir_sys(from), at, name, dest, new_name);
	sys = rename_at(dir_sys(from), at, name, dest, new_name, replace);
	quota_names_end(dir_quota(to), sys == 0 && !same, freed);
	if (sys != 0)
		return rename_failed(e, sys, from, name, to, new_name);
	dir_changed(from);
	dir_changed(to);
	return 0;
}

int manage_rename(struct dir *from, const char *name, struct dir *to, const char *new_name, bool replace,
    struct ptcp_err *e)
{
	struct ptcp_err why = { 0 };
	int at, dest, r;

	if ((r = check_name(from, name, &why)) == 0 && (r = check_name(to, new_name, &why)) == 0 &&
	    (r = at = dir_fd(from, &why)) >= 0) {
		if ((r = dest = dir_fd(to, &why)) >= 0) {
			r = rename_in(from, at, name, to, dest, new_name, replace, &why);
			dir_fd_done(to);
		}
		dir_fd_done(from);
	}
	if (r < 0 && e != NULL)
		*e = why;
	return r;
}
