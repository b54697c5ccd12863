#include "store/backup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/charged.h"
#include "fs/dir_impl.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "fs/xattr.h"
#include "store/destination.h"
#include "store/manage.h"
#include "store/named_acl.h"
#include "store/owner.h"
#include "store/part.h"
#include "store/sink.h"

struct backup {
	struct memory_account *memory;
	size_t bytes;
	bool own, durable;
	char *dir;           /* behind `suffix`; "": beside */
	struct dir *top;     /* directory of the transfer */
	struct dir *root;    /* directory of the backups; NULL: not found yet, or beside */
	struct dir *of, *at; /* the last directory of the transfer, and the directory of its backups; or NULL */
	struct dir *unsynced; /* directory with the last backup; or NULL */
	char suffix[];
};

/* Where a backup goes. */
struct backup_place {
	struct dir *dir;
	int at;
	char name[NAME_MAX + 1];
	struct published *published;
};

int backup_new(struct backup **out, const struct backup_opts *o, struct memory_account *memory, struct ptcp_err *e)
{
	const char *dir = o->dir != NULL ? o->dir : "", *suffix = o->suffix != NULL ? o->suffix : "";
	size_t bytes = sizeof(struct backup) + strlen(suffix) + strlen(dir) + 2;
	struct backup *b;

	*out = NULL;
	if (dir[0] == '\0' && suffix[0] == '\0')
		return 0;
	if ((b = memory_calloc(memory, bytes, e)) == NULL)
		return PTCP_ENOMEM;
	b->memory = memory;
	b->bytes = bytes;
	b->own = o->own;
	b->durable = o->durable;
	b->dir = stpcpy(b->suffix, suffix) + 1;
	strcpy(b->dir, dir);
	*out = b;
	return 0;
}

static void forget(struct backup *b)
{
	dir_unref(b->top);
	dir_unref(b->root);
	dir_unref(b->of);
	dir_unref(b->at);
	dir_unref(b->unsynced);
	b->top = b->root = b->of = b->at = b->unsynced = NULL;
}

void backup_free(struct backup *b)
{
	if (b == NULL)
		return;
	forget(b);
	memory_free(b->memory, b, b->bytes);
}

bool backup_is_beside(const struct backup *b) { return b != NULL && b->dir[0] == '\0'; }

static int find_root(struct backup *b, bool make, struct ptcp_err *e)
{
	char text[DIR_PATH_TEXT_BYTES];
	struct stat st, top;
	bool same = false;
	int r, at;

	if (b->root != NULL)
		return 0;
	if ((r = destination_other(b->top, b->dir, b->own, make, &b->root, e)) < 0)
		return err_while(e, r, "--backup-dir");
	if (b->suffix[0] == '\0' && (at = dir_fd(b->root, NULL)) >= 0) {
		same = dir_sys(b->root)->fstat(at, &st) == 0;
		dir_fd_done(b->root);
		if (same && (at = dir_fd(b->top, NULL)) >= 0) {
			same = dir_sys(b->top)->fstat(at, &top) == 0 && st.st_dev == top.st_dev &&
			    st.st_ino == top.st_ino;
			dir_fd_done(b->top);
		}
	}
	if (!same)
		return 0;
	err_set(e, PTCP_EUSAGE, "%s: the directory of the backups is the destination itself (name another one, or a "
	    "suffix)", dir_path_text(b->root, NULL, text, sizeof text));
	dir_unref(b->root);
	b->root = NULL;
	return PTCP_EUSAGE;
}

void backup_begin(struct backup *b, struct dir *top)
{
	struct ptcp_err ignored;

	if (b == NULL || b->top == top)
		return;
	forget(b);
	b->top = dir_ref(top);
	if (b->dir[0] != '\0')
		find_root(b, false, &ignored); /* --delete spares an existing directory */
}

/* ---- Directories ---- */

/* Sets the attributes of the original. Where the system refuses, the directory stays private. */
static void resemble(struct dir *made, struct dir *of)
{
	const struct sys *sys = dir_sys(of);
	struct stat st;
	bool known;
	int at;

	if ((at = dir_fd(of, NULL)) < 0)
		return;
	known = sys->fstat(at, &st) == 0;
	dir_fd_done(of);
	if (!known || (at = dir_fd(made, NULL)) < 0)
		return;
	owner_set(made, NULL, at, st.st_uid, st.st_gid, NULL);
	dir_sys(made)->fchmodat(at, ".", (acls_narrowed(of->parent, of->name, st.st_mode & 0777)) | S_IRWXU, 0);
	dir_fd_done(made);
}

/* An earlier backup of a file makes way for the directory. */
static int make_level(struct dir *above, struct dir *of, struct dir **out, struct ptcp_err *e)
{
	const struct meta private = { .mode = S_IRWXU };
	struct ptcp_err why = { .code = 0 };
	bool made = false;
	int r;

	r = store_mkdir(above, of->name, &private, &made, &why);
	if (r < 0 && why.sys == EEXIST && (r = manage_clear(above, of->name, &why)) == 0)
		r = store_mkdir(above, of->name, &private, &made, &why);
	if (r < 0) {
		if (e != NULL)
			*e = why;
		return err_while(e, r, "--backup-dir");
	}
	if ((*out = dir_child(above, of->name)) == NULL)
		return err_nomem(e);
	if (made)
		resemble(*out, of);
	return 0;
}

static unsigned depth_of(const struct dir *d)
{
	unsigned n = 0;

	for (; d != NULL; d = d->parent)
		n++;
	return n;
}

/* The nearest directory at or above d with a known directory of backups. */
static struct dir *find_known(const struct backup *b, struct dir *d, struct dir **at)
{
	unsigned n = depth_of(d), known = depth_of(b->of);
	struct dir *c = b->of;

	*at = b->at;
	for (; known > n; known--, c = c->parent)
		*at = (*at)->parent;
	for (; n > known; n--)
		d = d->parent;
	for (; c != d && c != NULL; c = c->parent, d = d->parent)
		*at = *at != NULL ? (*at)->parent : NULL;
	return c;
}

static bool is_below(const struct backup *b, const struct dir *d)
{
	while (d != NULL && d != b->top)
		d = d->parent;
	return d != NULL;
}

/* b->at becomes the directory for the backups of d. */
static int find_dir(struct backup *b, struct dir *d, struct ptcp_err *e)
{
	struct dir *known, *at, *c, *next = NULL, **level;
	unsigned n = 0, i;
	int r = 0;

	if (b->of == d)
		return 0;
	if (!is_below(b, d))
		return fs_err_set(e, PTCP_EIO, EEXIST, d, NULL,
		    "the destination itself would have to be backed up (move it away)");
	if ((r = find_root(b, true, e)) < 0)
		return r;
	if (b->of == NULL) {
		b->of = dir_ref(b->top);
		b->at = dir_ref(b->root);
	}
	known = find_known(b, d, &at);
	for (c = d; c != known && c != b->top; c = c->parent)
		n++;
	if (c == b->top)
		at = b->root;
	if ((level = calloc(n + 1, sizeof *level)) == NULL)
		return err_nomem(e);
	for (i = n, c = d; i > 0; c = c->parent)
		level[--i] = c;
	dir_ref(at);
	for (i = 0; i < n && r == 0; i++) {
		if ((r = make_level(at, level[i], &next, e)) == 0) {
			dir_unref(at);
			at = next;
		}
	}
	free(level);
	if (r < 0) {
		dir_unref(at);
		return r;
	}
	dir_unref(b->of);
	dir_unref(b->at);
	b->of = dir_ref(d);
	b->at = at;
	return 0;
}

/* ---- Files ---- */

/* 0: the backup may get its name. */
static int in_way(const struct backup_place *to, struct ptcp_err *e)
{
	struct stat st;

	if (dir_sys(to->dir)->fstatat(to->at, to->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : fs_err_sys(e, errno, to->dir, to->name, NULL);
	if (dir_excludes(to->dir, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, to->dir, to->name, EXCLUDED_WHY);
	if (published_has(to->published, to->dir, to->at, to->name, &st, true))
		return fs_err_set(e, PTCP_EREFUSED, EEXIST, to->dir, to->name, "a backup would replace this file of "
		    "the same transfer (name another suffix, or another directory for the backups)");
	if (!S_ISDIR(st.st_mode) || dir_sys(to->dir)->unlinkat(to->at, to->name, AT_REMOVEDIR) == 0)
		return 0;
	return fs_err_set(e, PTCP_EIO, ENOTEMPTY, to->dir, to->name,
	    "a directory has the name of a backup (move it away, or name another directory for the backups)");
}

/* Renames `temp`, in the directory of the backups. */
static int give_name(const struct backup_place *to, const char *temp, struct ptcp_err *e)
{
	struct quota *q = dir_quota(to->dir);
	uint64_t freed;
	int r;

	quota_names_begin(q, dir_sys(to->dir), to->at, to->name, &freed);
	if ((r = in_way(to, e)) == 0 && dir_sys(to->dir)->renameat(to->at, temp, to->at, to->name) != 0)
		r = fs_err_sys(e, errno, to->dir, to->name, "cannot name the backup");
	quota_names_end(q, r == 0, freed);
	return r;
}

/* Makes a second link, under a temporary name. 0, or -1 with errno. */
static int link_old(const struct sys *sys, int at, const char *name, const struct backup_place *to, const char *temp)
{
	if (sys->linkat(at, name, to->at, temp, 0) == 0)
		return 0;
	if (errno != EEXIST || sys->unlinkat(to->at, temp, 0) != 0)
		return -1;
	return sys->linkat(at, name, to->at, temp, 0);
}

static int copy_data(const struct sys *sys, int to, int from, uint64_t size)
{
	off_t off = 0;
	ssize_t n = 1;

	if (size > 0 && sys->clonerange(to, from, 0, size) == 0)
		return 0;
	while (n > 0)
		if ((n = sys->sendfile(to, from, &off, 1 << 30)) < 0 && errno == EINTR)
			n = 1;
	return n < 0 ? errno : 0;
}

/* The copy lacks attributes if its file system refuses them. */
static void copy_attributes(struct dir *d, const char *name, const struct backup_place *to, int fd,
    const struct stat *st)
{
	const struct timespec ts[2] = { st->st_atim, st->st_mtim };
	const struct sys *sys = dir_sys(to->dir);
	struct xattrs x = XATTRS_INIT;
	bool owner_ok;

	xattrs_read(&x, d, name, XATTR_USER | XATTR_PRIVILEGED, NULL);
	xattrs_set(&x, to->dir, to->name, fd, XATTR_USER, NULL);
	owner_ok = owner_set(to->dir, to->name, fd, st->st_uid, st->st_gid, NULL) > 0;
	xattrs_set(&x, to->dir, to->name, fd, XATTR_PRIVILEGED, NULL);
	xattrs_fini(&x);
	sys->fchmod(fd, owner_mode(acls_narrowed(d, name, st->st_mode & 07777), true, owner_ok));
	sys->futimens(fd, ts);
}

static int copy_file(struct dir *d, int at, const char *name, const struct backup_place *to, const char *temp,
    struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d), *there = dir_sys(to->dir);
	int from, fd = -1, err = 0;
	struct stat st;

	if ((from = sys->openat(at, name, SYS_READ_FLAGS, 0)) < 0)
		return fs_err_sys(e, errno, d, name, "cannot back the file up");
	if ((there->unlinkat(to->at, temp, 0) != 0 && errno != ENOENT) || sys->fstat(from, &st) != 0 ||
	    (fd = there->openat(to->at, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0) {
		err = errno;
	} else if ((err = copy_data(there, fd, from, (uint64_t)st.st_size)) == 0) {
		copy_attributes(d, name, to, fd, &st);
		if (there->fsync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno))
			err = errno;
	}
	sys->close(&from);
	if (fd >= 0 && there->close(&fd) != 0 && err == 0)
		err = EIO;
	return err == 0 ? 0 : fs_err_sys(e, err, to->dir, to->name, "cannot write the backup");
}

static int copy_link(struct dir *d, int at, const char *name, const struct stat *st, const struct backup_place *to,
    const char *temp, struct ptcp_err *e)
{
	const struct timespec ts[2] = { st->st_atim, st->st_mtim };
	const struct sys *sys = dir_sys(to->dir);
	char target[PATH_MAX + 1];
	ssize_t n = dir_sys(d)->readlinkat(at, name, target, sizeof target - 1);

	if (n < 0)
		return fs_err_sys(e, errno, d, name, "cannot back the link up");
	target[n] = '\0';
	if ((sys->unlinkat(to->at, temp, 0) != 0 && errno != ENOENT) || sys->symlinkat(target, to->at, temp) != 0)
		return fs_err_sys(e, errno, to->dir, to->name, "cannot write the backup");
	owner_set_at(to->dir, temp, to->at, st->st_uid, st->st_gid, NULL);
	sys->utimensat(to->at, temp, ts, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* For a backup on a different file system. */
static int copy_old(struct dir *d, int at, const char *name, const struct stat *st, const struct backup_place *to,
    const char *temp, struct ptcp_err *e)
{
	struct quota *q = dir_quota(to->dir);
	uint64_t bytes = usage_of_entry(st->st_mode, (uint64_t)st->st_blocks * 512, 1);
	int r;

	if ((r = quota_take(q, bytes, e)) < 0)
		return r;
	r = S_ISREG(st->st_mode) ? copy_file(d, at, name, to, temp, e) : copy_link(d, at, name, st, to, temp, e);
	if (r < 0 || (r = give_name(to, temp, e)) < 0) {
		dir_sys(to->dir)->unlinkat(to->at, temp, 0);
		quota_give(q, bytes);
	}
	return r;
}

/* The file system has no hard links: the file has one name at each moment. */
static int move_old(struct dir *d, int at, const char *name, const struct backup_place *to, struct ptcp_err *e)
{
	struct quota *q = dir_quota(to->dir);
	uint64_t freed;
	int r;

	quota_names_begin(q, dir_sys(to->dir), to->at, to->name, &freed);
	if ((r = in_way(to, e)) == 0 && dir_sys(d)->renameat(at, name, to->at, to->name) != 0)
		r = fs_err_sys(e, errno, d, name, "cannot rename the file to its backup");
	quota_names_end(q, r == 0, freed);
	if (r == 0)
		dir_changed(d);
	return r == 0 ? 1 : r;
}

/* 1: moved. */
static int keep_at(struct dir *d, int at, const char *name, const struct stat *st, const struct backup_place *to,
    struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(to->dir);
	char temp[PART_NAME_BYTES];
	struct stat now;
	int r;

	/* A killed run has made the backup. */
	if (sys->fstatat(to->at, to->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st->st_dev &&
	    now.st_ino == st->st_ino && st->st_nlink > 1)
		return 0;
	part_name(temp, to->name, PART_LINK_SUFFIX);
	if ((r = quota_take(dir_quota(to->dir), QUOTA_GRAIN, e)) < 0)
		return r;
	if (link_old(sys, at, name, to, temp) == 0) {
		if ((r = give_name(to, temp, e)) == 0)
			return 0;
		sys->unlinkat(to->at, temp, 0);
	} else {
		r = errno == ENOENT ? 1 : errno == EXDEV ? copy_old(d, at, name, st, to, temp, e) :
		    fs_cannot(ABILITY_HARD_LINKS, errno) ? move_old(d, at, name, to, e) :
		    fs_err_sys(e, errno, d, name, "cannot back the file up");
	}
	quota_give(dir_quota(to->dir), QUOTA_GRAIN);
	return r;
}

/* Directory d has changed. */
static int changed(struct backup *b, struct dir *d, struct ptcp_err *e)
{
	int r = b->unsynced != NULL && b->unsynced != d ? backup_sync(b, e) : 0;

	dir_changed(d);
	if (b->unsynced == NULL && b->durable)
		b->unsynced = dir_ref(d);
	return r;
}

static int name_backup(const struct backup *b, const struct dir *d, const char *name, struct backup_place *to,
    struct ptcp_err *e)
{
	if (strlen(name) + strlen(b->suffix) >= sizeof to->name)
		return fs_err_set(e, PTCP_EIO, ENAMETOOLONG, d, name,
		    "the name of its backup would be too long (shorten the suffix, or name a directory for the "
		    "backups)");
	stpcpy(stpcpy(to->name, name), b->suffix);
	return 0;
}

int backup_keep(struct backup *b, struct dir *d, int at, const char *name, struct published *published,
    struct ptcp_err *e)
{
	struct backup_place to = { .dir = d, .at = at, .published = published };
	struct stat st;
	int r;

	if (b == NULL || part_is_own_name(name))
		return 0;
	if (dir_sys(d)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : fs_err_sys(e, errno, d, name, NULL);
	if ((!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) || dir_excludes(d, st.st_dev, st.st_ino) ||
	    published_has(published, d, at, name, &st, true))
		return 0;
	if ((r = name_backup(b, d, name, &to, e)) < 0)
		return r;
	if (!backup_is_beside(b)) {
		if ((r = find_dir(b, d, e)) < 0 || (r = to.at = dir_fd(b->at, e)) < 0)
			return r;
		to.dir = b->at;
	}
	if ((r = keep_at(d, at, name, &st, &to, e)) >= 0) {
		int synced = changed(b, to.dir, e);

		r = synced < 0 ? synced : r;
	}
	if (to.dir != d)
		dir_fd_done(to.dir);
	return r;
}

int backup_sync(struct backup *b, struct ptcp_err *e)
{
	int r = 0;

	if (b == NULL || b->unsynced == NULL)
		return 0;
	r = dir_sync(b->unsynced, e);
	dir_unref(b->unsynced);
	b->unsynced = NULL;
	return r;
}

bool backup_spares(struct backup *b, const char *name, uint64_t dev, uint64_t ino)
{
	size_t n, suffix;
	struct stat st;
	bool is_root;
	int at;

	if (b == NULL)
		return false;
	n = strlen(name);
	suffix = strlen(b->suffix);
	if (backup_is_beside(b))
		return n >= suffix && strcmp(name + n - suffix, b->suffix) == 0;
	if (b->root == NULL || (at = dir_fd(b->root, NULL)) < 0)
		return false;
	is_root = dir_sys(b->root)->fstat(at, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	dir_fd_done(b->root);
	return is_root;
}
