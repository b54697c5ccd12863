/* Directories and links, see sink.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "store/manage.h"
#include "store/named_acl.h"
#include "store/part.h"
#include "store/sink_impl.h"

#define TRIES 16
#define FILE_IN_WAY "cannot create the directory: a file has this name (move it away)"

int sink_make_way(struct ptcp_err *e, int at, const struct dir *d, const char *name,
    struct published *published)
{
	struct stat st;

	if (dir_sys(d)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : fs_err_sys(e, errno, d, name, NULL);
	if (dir_excludes(d, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, d, name, EXCLUDED_WHY);
	if (published_has(published, d, at, name, &st, true))
		return published_refuse(published, d, name, e);
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode) && dir_sys(d)->unlinkat(at, name, AT_REMOVEDIR) == 0)
		return 0;
	if (S_ISDIR(st.st_mode) && errno == EBUSY)
		return fs_err_set(e, PTCP_EIO, EBUSY, d, name,
		    "a file system is mounted on the directory of this name (unmount it, or rename the source)");
	if (S_ISDIR(st.st_mode))
		return errno == ENOTEMPTY || errno == EEXIST ?
		    fs_err_set(e, PTCP_EIO, EISDIR, d, name, "a nonempty directory has this name (move it away)") :
		    fs_err_sys(e, errno, d, name, "cannot remove the empty directory that has this name");
	return fs_err_set(e, PTCP_EIO, EEXIST, d, name,
	    "a device, FIFO or socket has this name and is not replaced (move it away)");
}

/* The existing file in place of a directory to create. */
static int use_existing(struct dir *parent, int at, const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(parent);
	struct stat st;

	if (sys->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, parent, name, NULL);
	if (!S_ISDIR(st.st_mode))
		return fs_err_set(e, PTCP_EIO, EEXIST, parent, name, FILE_IN_WAY);
	if (dir_excludes(parent, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, parent, name, EXCLUDED_WHY);
	if ((st.st_mode & S_IRWXU) == S_IRWXU || st.st_uid != geteuid())
		return 0;
	if (sys->fchmodat(at, name, (st.st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, parent, name, "cannot make the directory writable");
	return 0;
}

int store_mkdir(struct dir *parent, const char *name, const struct meta *m, bool *made, struct ptcp_err *e)
{
	mode_t mode = m != NULL ? (m->mode & 0777) | S_IRWXU : 0777;
	bool was_there = false;
	int at, r = 0;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	if ((r = quota_take(dir_quota(parent), QUOTA_GRAIN, e)) == 0 && dir_sys(parent)->mkdirat(at, name, mode) != 0) {
		if ((was_there = errno == EEXIST))
			r = use_existing(parent, at, name, e);
		else
			r = fs_err_sys(e, errno, parent, name, "cannot create the directory");
		quota_give(dir_quota(parent), QUOTA_GRAIN);
	}
	dir_fd_done(parent);
	if (r == 0 && m != NULL)
		published_add_name(m->published, parent, name);
	if (r == 0)
		dir_changed(parent); /* an existing directory may be unsynced, too, after a killed run */
	if (r == 0 && made != NULL)
		*made = !was_there;
	return r;
}

/* Whether what `st` describes makes way for a directory. */
static int check_in_way(const struct stat *st, struct dir *parent, int at, const char *name,
    const struct store_rules *rules, struct published *published, struct ptcp_err *e)
{
	const struct rules_entry offered = { .type = RULES_DIR }, there = rules_entry_of(st);

	if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode))
		return fs_err_set(e, PTCP_EIO, EEXIST, parent, name,
		    "cannot create the directory: a device has this name (move it away)");
	if (rules_judge(rules, &offered, &there) != RULES_RECEIVE)
		return fs_err_set(e, PTCP_EIO, EEXIST, parent, name, FILE_IN_WAY);
	return published_has(published, parent, at, name, st, true) ? published_refuse(published, parent, name, e) : 0;
}

int store_make_way(struct dir *parent, const char *name, const struct store_rules *rules, const struct meta *m,
    struct ptcp_err *e)
{
	struct stat st;
	int at, r;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	if (dir_sys(parent)->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		r = fs_err_sys(e, errno, parent, name, NULL);
	else if ((r = check_in_way(&st, parent, at, name, rules, m->published, e)) == 0 &&
	    (r = backup_keep(m->backup, parent, at, name, m->published, e)) == 0)
		r = manage_clear(parent, name, e);
	dir_fd_done(parent);
	return r < 0 ? r : 0;
}

/* Who owns a file sets its attributes only with permission to write it. */
static int set_xattrs(const struct xattrs *x, const struct dir *d, const char *name, int fd, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct stat st;
	bool closed = sys->fstat(fd, &st) == 0 && (st.st_mode & S_IWUSR) == 0 &&
	    sys->fchmod(fd, (st.st_mode & 07777) | S_IWUSR) == 0;
	int r = xattrs_set(x, d, name, fd, XATTR_USER, e);

	if (closed)
		sys->fchmod(fd, st.st_mode & 07777);
	return r;
}

bool meta_has_owner(const struct meta *m, const struct stat *st)
{
	uint32_t uid, gid;

	if (m->owner == NULL)
		return true;
	owners_resolve(m->owners, m->owner, &uid, &gid);
	return (uid == ATTR_MAP_BY_NAME || uid == st->st_uid) && (gid == ATTR_MAP_BY_NAME || gid == st->st_gid);
}

/* The user or group that --chown names, and this host does not know. */
static int report_unknown(const struct meta *m, const struct dir *d, const char *name, bool user, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], text[TEXT_NAME_BYTES + 60];

	snprintf(text, sizeof text, user ? "owner not set: no user %s here (create it)" :
	    "owner not set: no group %s here (create it)",
	    text_escape(shown, sizeof shown, user ? m->owner->user : m->owner->group));
	fs_err_set(e, PTCP_EIO, 0, d, name, text);
	return 1;
}

/* Whoever gives a file away may no longer set user.* attributes, and a new owner costs a program its capabilities. */
int meta_set_owner(const struct meta *m, const struct dir *d, const char *name, int fd, bool is_dir, mode_t *mode,
    struct ptcp_err *e)
{
	int dropped = 0, r;
	uint32_t uid, gid;
	bool owner_ok = true;

	if (m->xattrs != NULL && (dropped = set_xattrs(m->xattrs, d, name, fd, e)) < 0)
		return dropped;
	if (m->owner != NULL) {
		owners_resolve(m->owners, m->owner, &uid, &gid);
		if ((r = owner_set(d, name, fd, uid, gid, e)) < 0)
			return r;
		owner_ok = r > 0;
		if (uid == ATTR_MAP_BY_NAME || gid == ATTR_MAP_BY_NAME)
			dropped += report_unknown(m, d, name, uid == ATTR_MAP_BY_NAME, dropped > 0 ? NULL : e);
	}
	if (m->xattrs != NULL && owner_ok) {
		if ((r = xattrs_set(m->xattrs, d, name, fd, XATTR_PRIVILEGED | XATTR_CAPABILITY,
		    dropped > 0 ? NULL : e)) < 0)
			return r;
		dropped += r;
	}
	*mode = owner_mode(m->mode, m->setid, owner_ok);
	if (m->set_mode && m->acls) {
		if ((r = acls_set(m->xattrs, &(struct acl_names){ m->owners, m->map }, d, name, fd, is_dir, mode,
		    dropped > 0 ? NULL : e)) < 0)
			return r;
		dropped += r;
	}
	return dropped > 0;
}

int meta_mode_failed(const struct dir *d, const char *name, int fd, mode_t wanted, struct ptcp_err *e)
{
	int sys = errno;
	char text[120];
	struct stat st;

	if (!fs_cannot(ABILITY_MODES, sys) || dir_sys(d)->fstat(fd, &st) != 0)
		return fs_err_sys(e, errno, d, name, "cannot set the mode");
	if ((st.st_mode & 07777) == wanted || file_system_known_lacks(d, ABILITY_MODES))
		return 0;
	snprintf(text, sizeof text, "the mode is %04o instead of %04o: %s", (unsigned)st.st_mode & 07777,
	    (unsigned)wanted, strerror(sys));
	fs_err_set(e, PTCP_EIO, sys, d, name, text);
	return 1;
}

int meta_time_failed(const struct dir *d, const char *name, struct ptcp_err *e)
{
	bool unsupported = fs_cannot(ABILITY_TIMES, errno);
	int r;

	if (unsupported && file_system_known_lacks(d, ABILITY_TIMES))
		return 0;
	r = fs_err_sys(e, errno, d, name, "cannot set the modification time");
	return unsupported ? 1 : r;
}

static int set_dir_mode(struct dir *d, int at, const struct meta *m, mode_t mode, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct stat st;

	if (sys->fstat(at, &st) != 0)
		return fs_err_sys(e, errno, d, NULL, NULL);
	/* Keep the receiver's own setgid and sticky bits, unless `setid`. */
	mode |= m->setid ? 0 : st.st_mode & 07000;
	if (mode != (st.st_mode & 07777) && sys->fchmodat(at, ".", mode, 0) != 0)
		return meta_mode_failed(d, NULL, at, mode, e);
	return 0;
}

/* Uses the name ".", which works with an O_PATH descriptor, too; sets the mode last, since it may forbid
 * looking up even ".". */
int store_dir_finish(struct dir *d, const struct meta *m, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(d);
	struct timespec ts[2] = { { .tv_nsec = UTIME_NOW }, m->mtime };
	int at, r, dropped, late = 0;
	struct stat st;
	mode_t mode;

	if ((at = dir_fd(d, e)) < 0)
		return at;
	r = dropped = meta_set_owner(m, d, NULL, at, true, &mode, e);
	if (r >= 0 && m->set_mtime) {
		if (sys->fstat(at, &st) == 0)
			ts[0] = st.st_atim;
		if (sys->utimensat(at, ".", ts, 0) != 0 && (late = meta_time_failed(d, NULL, e)) < 0)
			r = late;
	}
	if (r >= 0 && m->set_mode && (r = set_dir_mode(d, at, m, mode, e)) == 0)
		r = dropped > 0;
	if (r == 0)
		r = late;
	dir_fd_done(d);
	dir_changed(d);
	return r;
}

/* The target of a link: symbolic, to the path `to` (from -1), or hard, to the file `to` in the directory
 * `from`. */
struct link_target {
	int from;
	const char *to;
};

/* Creates a link under the temporary name, replacing an old link. A concurrent transfer of the same link may
 * remove ours, hence the tries. */
static int link_temp(struct dir *parent, int at, const char *temp, const char *name, struct link_target m,
    struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(parent);
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		if ((m.from < 0 ? sys->symlinkat(m.to, at, temp) : sys->linkat(m.from, m.to, at, temp, 0)) == 0)
			return 0;
		if (errno != EEXIST)
			return fs_err_sys(e, errno, parent, name, m.from < 0 ? "cannot create the symbolic link" :
			    "cannot create the hard link");
		if (sys->unlinkat(at, temp, 0) != 0 && errno != ENOENT)
			return fs_err_sys(e, errno, parent, name, "cannot remove an old part file");
	}
	return fs_err_set(e, PTCP_EIO, EEXIST, parent, name,
	    "another transfer is writing this link (wait until it has ended)");
}

static int find_inode(struct store_inode *out, const struct dir *parent, int at, const char *temp, const char *name,
    struct ptcp_err *e)
{
	struct stat st;

	if (out == NULL)
		return 0;
	if (dir_sys(parent)->fstatat(at, temp, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, parent, name, "cannot examine the symbolic link");
	*out = (struct store_inode){ st.st_dev, st.st_ino };
	return 0;
}

static int set_link_meta(const struct meta *m, struct dir *parent, int at, const char *temp, const char *name,
    struct ptcp_err *e)
{
	const struct timespec ts[2] = { { .tv_nsec = UTIME_NOW }, m->mtime };
	uint32_t uid, gid;
	int r;

	if (m->owner != NULL) {
		owners_resolve(m->owners, m->owner, &uid, &gid);
		if ((r = owner_set_at(parent, temp, at, uid, gid, e)) < 0)
			return r;
	}
	if (m->set_mtime && dir_sys(parent)->utimensat(at, temp, ts, AT_SYMLINK_NOFOLLOW) != 0 &&
	    !fs_cannot(ABILITY_TIMES, errno))
		return fs_err_sys(e, errno, parent, name, "cannot set the link's times");
	return 0;
}

static int rename_link(struct dir *parent, int at, const char *temp, const char *name, struct published *published,
    struct backup *backup, struct ptcp_err *e)
{
	uint64_t freed;
	int r;

	if ((r = backup_keep(backup, parent, at, name, published, e)) < 0)
		return r;
	quota_names_begin(dir_quota(parent), dir_sys(parent), at, name, &freed);
	if ((r = sink_make_way(e, at, parent, name, published)) == 0 &&
	    dir_sys(parent)->renameat(at, temp, at, name) != 0)
		r = fs_err_sys(e, errno, parent, name, "cannot rename the link to its final name");
	quota_names_end(dir_quota(parent), r == 0, freed);
	if (r == 0)
		dir_changed(parent);
	return r;
}

bool store_has_target(const struct dir *parent, int at, const char *name, const char *target, struct stat *st)
{
	char now[PATH_MAX + 1];
	ssize_t n;

	return dir_sys(parent)->fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st->st_mode) &&
	    (n = dir_sys(parent)->readlinkat(at, name, now, sizeof now)) >= 0 && (size_t)n == strlen(target) &&
	    memcmp(now, target, (size_t)n) == 0;
}

static int symlink_at(struct dir *parent, int at, const char *name, const char *target, const struct meta *m,
    struct store_inode *made, struct ptcp_err *e)
{
	struct stat st;
	struct backup *backup = m->backup == NULL || store_has_target(parent, at, name, target, &st) ? NULL : m->backup;
	struct ptcp_err why = { 0 };
	char temp[PART_NAME_BYTES];
	int r, tries;

	part_name(temp, name, PART_LINK_SUFFIX);
	for (tries = 0; tries <= TRIES; tries++) {
		if ((r = link_temp(parent, at, temp, name, (struct link_target){ -1, target }, &why)) != 0 ||
		    ((r = set_link_meta(m, parent, at, temp, name, &why)) == 0 &&
		    (r = find_inode(made, parent, at, temp, name, &why)) == 0 &&
		    (r = rename_link(parent, at, temp, name, m->published, backup, &why)) == 0))
			break;
		if (why.sys != ENOENT) { /* else another transfer of the link has renamed ours */
			dir_sys(parent)->unlinkat(at, temp, 0);
			break;
		}
	}
	if (r == 0)
		published_add_name(m->published, parent, name);
	if (r < 0 && e != NULL)
		*e = why;
	return r;
}

int store_symlink(struct dir *parent, const char *name, const char *target, const struct meta *m,
    struct store_inode *made, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(parent, e)) < 0)
		return at;
	if ((r = quota_take(dir_quota(parent), QUOTA_GRAIN, e)) == 0 &&
	    (r = symlink_at(parent, at, name, target, m, made, e)) < 0)
		quota_give(dir_quota(parent), QUOTA_GRAIN);
	dir_fd_done(parent);
	return r;
}

static bool needs_link_time(const struct meta *m, const struct stat *st)
{
	return m->set_mtime && (st->st_mtim.tv_sec != m->mtime.tv_sec || st->st_mtim.tv_nsec != m->mtime.tv_nsec);
}

bool store_symlink_same(struct dir *parent, const char *name, const char *target, const struct meta *m, bool refresh,
    struct store_inode *found)
{
	struct timespec ts[2] = { { 0 }, m->mtime };
	struct stat st;
	bool same;
	int at;

	if ((at = dir_fd(parent, NULL)) < 0)
		return false;
	same = store_has_target(parent, at, name, target, &st) && meta_matches_owner(m, parent, &st) &&
	    !(needs_link_time(m, &st) && references_share(m->references) && st.st_nlink > 1) &&
	    !published_has(m->published, parent, at, name, &st, false);
	if (same) {
		published_add(m->published, parent, at, name, st.st_dev, st.st_ino);
		*found = (struct store_inode){ st.st_dev, st.st_ino };
	}
	if (same && refresh && needs_link_time(m, &st)) {
		ts[0] = st.st_atim;
		dir_sys(parent)->utimensat(at, name, ts, AT_SYMLINK_NOFOLLOW);
	}
	dir_fd_done(parent);
	return same;
}

/* ---- Hard links ---- */

/* The directory of the file, and its name there. */
static struct dir *dir_of(const struct store_file *f, const char **name)
{
	struct dir *d = dir_ref(f->base), *child;
	char component[NAME_MAX + 1];
	const char *path = f->path, *end;
	size_t n;

	for (; (end = strchr(path, '/')) != NULL; path = end + 1) {
		n = (size_t)(end - path);
		memcpy(component, path, n);
		component[n] = '\0';
		child = dir_child(d, component);
		dir_unref(d);
		if ((d = child) == NULL)
			return NULL;
	}
	*name = path;
	return d;
}

/* Whether `name` in `at` is the received file; *only: it is its only name. */
static bool is_file(const struct store_file *f, const struct sys *sys, int at, const char *name, bool *only)
{
	struct stat st;

	if (sys->fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_dev != f->dev || st.st_ino != f->ino)
		return false;
	*only = st.st_nlink < 2;
	return true;
}

/* 0 if `name` in `at` is the received file. */
static int check_file(const struct store_file *f, int at, const char *file, const struct dir *d, const char *name,
    struct ptcp_err *e)
{
	struct stat st;

	if (dir_sys(d)->fstatat(at, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, d, name, "target of the hard link");
	if (st.st_dev != f->dev || st.st_ino != f->ino)
		return fs_err_set(e, PTCP_EIO, ESTALE, d, name,
		    "the file it is a hard link to was replaced meanwhile (run the same command again)");
	return 0;
}

/* The link is checked, too: the target may be replaced just before it is linked. */
static int link_and_name(const struct store_file *to, int from, const char *existing, struct dir *parent, int at,
    const char *name, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(parent);
	char temp[PART_NAME_BYTES];
	bool only = false, same;
	int r;

	if ((same = is_file(to, sys, at, name, &only)) && only)
		return published_refuse(to->published, parent, name, e);
	part_name(temp, name, PART_LINK_SUFFIX);
	if ((r = check_file(to, from, existing, parent, name, e)) != 0 ||
	    (r = link_temp(parent, at, temp, name, (struct link_target){ from, existing }, e)) != 0)
		return r;
	/* Renaming one of two names of a file to the other has no effect and leaves both. */
	if ((r = check_file(to, at, temp, parent, name, e)) == 0 && !same &&
	    (r = rename_link(parent, at, temp, name, to->published, to->backup, e)) == 0)
		return 0;
	sys->unlinkat(at, temp, 0);
	return r;
}

/* The file must not lose its other names between the decision about their space and this name. */
static int hardlink(const struct store_file *to, int from, const char *existing, struct dir *parent, int at,
    const char *name, struct ptcp_err *e)
{
	struct quota *q = dir_quota(parent);
	uint64_t ignored;
	int r;

	if ((r = quota_take(q, QUOTA_GRAIN, e)) < 0)
		return r;
	quota_names_begin(q, dir_sys(parent), at, name, &ignored);
	r = link_and_name(to, from, existing, parent, at, name, e);
	if (r == 0)
		published_add(to->published, parent, at, name, to->dev, to->ino);
	quota_names_end(q, false, ignored);
	if (r < 0)
		quota_give(q, QUOTA_GRAIN);
	return r;
}

int store_hardlink(const struct store_file *to, struct dir *parent, const char *name, struct ptcp_err *e)
{
	const char *existing;
	struct dir *in;
	int from, at, r;

	if ((in = dir_of(to, &existing)) == NULL)
		return err_nomem(e);
	if ((from = dir_fd(in, e)) < 0) {
		dir_unref(in);
		return from;
	}
	if ((at = dir_fd(parent, e)) < 0) {
		r = at;
	} else {
		r = hardlink(to, from, existing, parent, at, name, e);
		dir_fd_done(parent);
	}
	dir_fd_done(in);
	dir_unref(in);
	return r;
}

bool store_hardlink_same(const struct store_file *to, struct dir *parent, const char *name)
{
	bool only, same;
	int at;

	if ((at = dir_fd(parent, NULL)) < 0)
		return false;
	same = is_file(to, dir_sys(parent), at, name, &only) && !only;
	dir_fd_done(parent);
	return same;
}
