/* A file that is up to date gets the attributes of the source: sink_refresh(). */
#include <errno.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/named_acl.h"
#include "store/sink_impl.h"

void sink_set_id(struct sink *s, const struct stat *st)
{
	atomic_store(&s->part_dev, st->st_dev);
	atomic_store(&s->part_ino, st->st_ino);
}

enum rules_answer sink_judge(const struct sink *s, const struct rules_entry *there)
{
	const struct file_system *f = file_system_known(s->dir);
	const struct rules_entry offered = { .type = RULES_FILE, .size_bytes = s->size_bytes, .mtime = s->meta.mtime,
		.timeless = f != NULL && f->tried && !file_system_stores(f, s->meta.mtime) };

	return rules_judge(&s->opts.rules, &offered, there);
}

static bool needs_time(const struct sink *s, const struct stat *st)
{
	const struct file_system *f = file_system_known(s->dir);

	return s->meta.set_mtime && !rules_same_time(&s->opts.rules, st->st_mtim, s->meta.mtime) &&
	    (f == NULL || !file_system_stores_as(f, s->meta.mtime, st->st_mtim));
}

/* 1: not permitted. */
static int set_time(const struct sink *s, int fd, const struct stat *st, struct ptcp_err *e)
{
	const struct timespec times[2] = { st->st_atim, s->meta.mtime };

	return dir_sys(s->dir)->futimens(fd, times) == 0 ? 0 : meta_time_failed(s->dir, s->name, e);
}

/* Older copies may share the file: no attribute is set again, and none in excess stays. */
static bool matches(const struct sink *s, int at, const struct stat *st)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd = s->meta.xattr_kinds != 0 ? sys->openat(at, s->name, SYS_READ_FLAGS, 0) : -1;
	bool same = meta_matches(&s->meta, s->dir, at, s->name, fd, st);

	sys->close(&fd);
	return same;
}

static bool refreshed(const struct sink *s, int at, const struct stat *st)
{
	const struct meta *m = &s->meta;

	if (sink_is_shared(s, st))
		return !needs_time(s, st) && matches(s, at, st);
	if (needs_time(s, st) || m->xattrs != NULL ||
	    (m->set_mode && (st->st_mode & 07777) != owner_mode(m->mode, m->setid, true)))
		return false;
	if (m->acls && acls_exist(s->dir, at, s->name))
		return false;
	return meta_has_owner(m, st);
}

static int refresh_file(const struct sink *s, int fd, struct ptcp_err *e)
{
	const struct meta *m = &s->meta;
	mode_t mode;
	int r = meta_set_owner(m, s->dir, s->name, fd, false, &mode, e), refused = 0;

	if (r < 0 || !m->set_mode)
		return r;
	if (dir_sys(s->dir)->fchmod(fd, mode) != 0)
		refused = meta_mode_failed(s->dir, s->name, fd, mode, e);
	return refused < 0 ? refused : r | refused;
}

/* Not replaced since it was compared. */
static bool is_still_same(const struct sink *s, const struct stat *st)
{
	const struct rules_entry there = rules_entry_of(st);
	enum rules_answer answer = sink_judge(s, &there);

	return answer == RULES_COMPARE || answer == RULES_UNCHANGED;
}

/* To set attributes. Our own file may deny us to read: then the permission is there for the moment of opening. */
static int open_found(struct sink *s, int at, const struct stat *st)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0), error;

	if (fd >= 0 || errno != EACCES || st->st_uid != geteuid())
		return fd;
	if (sys->fchmodat(at, s->name, (st->st_mode & 07777) | S_IRUSR, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0);
	error = errno;
	if (fd >= 0)
		sys->fchmod(fd, st->st_mode & 07777);
	else
		sys->fchmodat(at, s->name, st->st_mode & 07777, AT_SYMLINK_NOFOLLOW);
	errno = error;
	return fd;
}

/* The name gets a copy of the file, with the attributes. SINK_REFRESHED_COPY: store_complete() is to follow. */
static int copy_found(struct sink *s, int at, struct stat *st, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd = sys->openat(at, s->name, SYS_READ_FLAGS, 0), r;

	if (fd < 0 || sys->fstat(fd, st) != 0)
		r = fs_err_sys(e, errno, s->dir, s->name, NULL);
	else if (dir_excludes(s->dir, st->st_dev, st->st_ino))
		r = fs_err_set(e, PTCP_EREFUSED, EACCES, s->dir, s->name, EXCLUDED_WHY);
	else
		r = is_still_same(s, st) ? sink_copy_in(s, at, fd, e) : fs_err_set(e, PTCP_ECHANGED, ESTALE, s->dir,
		    s->name, "the file was replaced meanwhile (run the same command again)");
	sys->close(&fd);
	return r < 0 ? r : SINK_REFRESHED_COPY;
}

/* `st` is of the target: a regular file that no other source has. */
int sink_refresh_found(struct sink *s, int at, struct stat *st, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	const bool is_fresh = refreshed(s, at, st);
	int fd, r = 0, late;

	if (!is_fresh && sink_has_others(s, st))
		return copy_found(s, at, st, e);
	published_add(s->meta.published, s->dir, at, s->name, st->st_dev, st->st_ino);
	sink_set_id(s, st);
	if (is_fresh)
		return 0;
	if ((fd = open_found(s, at, st)) < 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (sys->fstat(fd, st) != 0)
		r = fs_err_sys(e, errno, s->dir, s->name, NULL);
	else if (dir_excludes(s->dir, st->st_dev, st->st_ino))
		r = fs_err_set(e, PTCP_EREFUSED, EACCES, s->dir, s->name, EXCLUDED_WHY);
	else if (is_still_same(s, st)) {
		late = needs_time(s, st) ? set_time(s, fd, st, e) : 0;
		if ((s->opts.rules.flags & RULE_CHECKSUM) == 0) /* the time was the same, as far as
		                                                   a file system may store it */
			late = 0;
		r = late < 0 ? late : refresh_file(s, fd, e);
		r = r < 0 ? r : r | late;
	}
	sys->close(&fd);
	return r;
}

static int refresh_at(struct sink *s, int at, struct ptcp_err *e)
{
	struct stat st;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, NULL);
	if (published_has(s->meta.published, s->dir, at, s->name, &st, false))
		return published_refuse(s->meta.published, s->dir, s->name, e);
	return sink_refresh_found(s, at, &st, e);
}

int sink_refresh(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	pthread_mutex_lock(&s->lock);
	r = refresh_at(s, at, e);
	pthread_mutex_unlock(&s->lock);
	dir_fd_done(s->dir);
	return r;
}
