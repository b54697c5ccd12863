/* Files, links and directories completed together: store_complete(). */
#include <assert.h>
#include <errno.h>
#include <stdio.h> /* RENAME_NOREPLACE */
#include <sys/utsname.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "store/named_acl.h"
#include "store/sink_impl.h"

/* Up to FEW files or directories are synced individually, more by a single syncfs(2), which is faster from
 * two files on (ext4: 8 files 1.3 ms or 0.4 ms, 500 files 95 ms or 9 ms), but also waits for the dirty data
 * of all programs. */
#define FEW 8

/* As of cp's copies: an existing file keeps its mode, a new one has the source's. The ACL of the existing file is lost,
 * and the mask, its group bits, must not become permissions of the group. */
static mode_t default_mode(struct sink *s)
{
	int at = dir_fd(s->dir, NULL);
	bool exists = false;
	struct stat st;

	if (at >= 0) {
		exists = dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
		dir_fd_done(s->dir);
	}
	return exists ? acls_narrowed(s->dir, s->name, st.st_mode & 0777) : dir_new_mode(s->dir, s->meta.mode);
}

/* 1: the mode, the time or an extended attribute of our own file was refused, by a file system that is not known to
 * lack them. */
static int set_meta(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	const struct timespec ts[2] = { { .tv_nsec = UTIME_NOW }, s->meta.mtime };
	mode_t mode;
	int fd = s->part.fd, dropped, refused = 0, late = 0;

	if ((late = sink_cut_rest(s, e)) < 0)
		return late;
	/* A new length costs a program its capabilities. */
	if ((s->end_bytes != s->final_bytes || sink_wants_direct(s)) && sys->ftruncate(fd, (off_t)s->final_bytes) != 0)
		return fs_err_sys(e, errno, s->dir, s->name, "cannot set the length");
	if ((dropped = meta_set_owner(&s->meta, s->dir, s->name, fd, false, &mode, e)) < 0)
		return dropped;
	if (!s->meta.set_mode)
		mode = default_mode(s);
	if ((s->meta.set_mode || !s->in_place) && sys->fchmod(fd, mode) != 0 &&
	    (refused = meta_mode_failed(s->dir, s->name, fd, mode, e)) < 0)
		return refused;
	sink_mark_owner(s);
	/* A power cut must not leave the time of the source on other data. */
	if (s->in_place && sys->fdatasync(fd) != 0 && !fs_cannot(ABILITY_SYNC, errno))
		return sink_fail_sync(s, errno, e);
	if (s->meta.set_mtime && sys->futimens(fd, ts) != 0 &&
	    (late = meta_time_failed(s->dir, s->name, refused > 0 ? NULL : e)) < 0)
		return late;
	return dropped | refused | late;
}

/* Of file systems that are not local we do not know when they report a failed write. */
static bool may_fail_at_close(const struct sink *s)
{
	const struct file_system *f = file_system_of(s->dir);

	return f == NULL || !f->local;
}

/* A network file system may report a failed write only when a descriptor is closed. Ours must stay open until
 * the rename, for its lock; so a duplicate is closed. */
static int flush(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd, sys_error;

	if (!may_fail_at_close(s))
		return 0;
	if ((fd = sys->dup(s->part.fd)) < 0)
		return fs_err_sys(e, errno, s->dir, s->name, "cannot duplicate a descriptor");
	sys_error = sys->close(&fd);
	return sys_error != 0 ? sink_fail_sync(s, sys_error, e) : 0;
}

/* For a file without written blocks. */
static int open_late(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	r = sink_open_part(s, at, s->final_bytes == 0, e);
	dir_fd_done(s->dir);
	return r;
}

/* ---- The steps of one file ---- */

static int prepare(struct sink *s, struct ptcp_err *e)
{
	int r = 0, dropped;

	pthread_mutex_lock(&s->lock);
	assert(s->state != SINK_DONE);
	sink_stop_writers(s, SINK_DONE);
	if (s->sync_errno != 0)
		r = sink_fail_sync(s, s->sync_errno, e);
	else if (s->part.fd < 0)
		r = open_late(s, e);
	if (r == 0 && (r = dropped = set_meta(s, e)) >= 0 && (r = flush(s, e)) == 0)
		r = dropped;
	if (r >= 0 && s->opts.status != NULL && dir_sys(s->dir)->fstat(s->part.fd, s->opts.status) != 0)
		r = fs_err_sys(e, errno, s->dir, s->name, "part file");
	if (r < 0)
		s->state = s->sync_errno != 0 ? SINK_FAILED : SINK_OPEN;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int sync_file(struct sink *s, struct ptcp_err *e)
{
	int r, sys;

	if (dir_sys(s->dir)->fsync(s->part.fd) == 0 || fs_cannot(ABILITY_SYNC, errno))
		return 0;
	sys = errno;
	pthread_mutex_lock(&s->lock);
	r = sink_fail_sync(s, sys, e);
	s->state = SINK_FAILED;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The name is given unless it exists. */
static bool creates(const struct sink *s) { return s->owner != NULL || (s->opts.rules.flags & RULE_EXCLUSIVE) != 0; }

/* renameat() takes a name, which must still be the name of the file that we wrote. */
static int rename_part(struct sink *s, int at, const char *name, struct ptcp_err *e)
{
	char part[PART_NAME_BYTES];
	int r;

	part_name(part, s->key, PART_SUFFIX);
	if ((r = sink_owns_part_name(s, at)) == 0)
		return fs_err_set(e, PTCP_EIO, ESTALE, s->dir, s->name,
		    "the part file was removed or replaced meanwhile (run the same command again)");
	if (r < 0)
		return fs_err_sys(e, errno, s->dir, s->name, "part file");
	if (creates(s))
		return sink_name_new(s, at, part, name, e);
	published_examine(s->meta.published, s->dir, at, part, s->part.dev);
	/* Most names are new: one call, where the file system can. */
	if (dir_sys(s->dir)->renameat2(at, part, at, name, RENAME_NOREPLACE) == 0)
		return 0;
	if ((r = sink_make_way(e, at, s->dir, name, s->meta.published)) != 0)
		return r;
	if (dir_sys(s->dir)->renameat(at, part, at, name) != 0)
		return fs_err_sys(e, errno, s->dir, name, "cannot rename the part file to its final name");
	return 0;
}

/* Of a file in place: no other file has the name. */
static int check_name(struct sink *s, int at, struct ptcp_err *e)
{
	struct stat st;

	if (dir_sys(s->dir)->fstatat(at, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    (uint64_t)st.st_dev != s->part.dev || (uint64_t)st.st_ino != s->part.ino)
		return fs_err_set(e, PTCP_EIO, ESTALE, s->dir, s->name,
		    "the file was removed or replaced meanwhile (run the same command again)");
	published_add(s->meta.published, s->dir, at, s->name, s->part.dev, s->part.ino);
	return 0;
}

static int rename_checked(struct sink *s, int at, const char *name, struct ptcp_err *e)
{
	uint64_t freed;
	int r;

	if (s->in_place)
		return check_name(s, at, e);
	if ((r = sink_check_match(s, at, name, e)) < 0) /* before the backup has the name */
		return r;
	/* First: a file with a backup frees no space. */
	if (!creates(s) && (r = backup_keep(s->meta.backup, s->dir, at, name, s->meta.published, e)) < 0)
		return r;
	quota_names_begin(s->hold.q, dir_sys(s->dir), at, name, &freed);
	if ((r = rename_part(s, at, name, e)) == 0)
		published_add(s->meta.published, s->dir, at, name, s->part.dev, s->part.ino);
	quota_names_end(s->hold.q, r == 0, freed);
	return r;
}

/* The lock of the common part protects the comparison of a version until the rename; a transfer with a private part
 * lacks the lock. */
static pthread_mutex_t one_name = PTHREAD_MUTEX_INITIALIZER;

int sink_rename_part(struct sink *s, int at, const char *name, struct ptcp_err *e)
{
	bool one = s->own != NULL || s->opts.match.set;
	int r;

	if (one)
		pthread_mutex_lock(&one_name);
	r = rename_checked(s, at, name, e);
	if (one)
		pthread_mutex_unlock(&one_name);
	return r;
}

static int give_name(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) >= 0) {
		r = sink_rename_part(s, at, s->name, e);
		dir_fd_done(s->dir);
	} else {
		r = at;
	}
	pthread_mutex_lock(&s->lock);
	if (r == 0) {
		s->named = true;
		quota_complete(&s->hold, s->final_bytes);
	} else {
		s->state = SINK_OPEN;
	}
	pthread_mutex_unlock(&s->lock);
	if (r == 0)
		dir_changed(s->dir);
	return r;
}

/* Keeps the journal unless the final name is durable. */
static void finish(struct sink *s, bool durable)
{
	int at;

	pthread_mutex_lock(&s->lock);
	if (durable && s->journal.fd >= 0 && (at = dir_fd(s->dir, NULL)) >= 0) {
		sink_remove_journal(s, at);
		dir_fd_done(s->dir);
	}
	sink_close(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- The steps of a group ---- */

static bool pending(const struct store_item *t) { return t->result == 0 && !t->synced; }

bool sink_syncfs_reports(void)
{
	unsigned major, minor;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 5 || (major == 5 && minor >= 8));
}

static uint64_t dev_of(const struct store_item *t)
{
	return t->sink != NULL ? t->sink->part.dev : dir_dev(t->dir);
}

static struct dir *dir_of(const struct store_item *t)
{
	return t->sink != NULL ? t->sink->dir : t->dir;
}

/* Syncs the pending items on one file system by one syncfs(). The call uses the part that was opened first: a
 * descriptor reports failures since its opening, hence all failures of these files. False: unavailable or
 * failed; the caller then syncs each item, to fail only items with lost data. */
static bool sync_all(struct store_item *of, unsigned n, uint64_t dev)
{
	const struct sink *first = NULL;
	unsigned i;

	for (i = 0; i < n; i++)
		if (pending(&of[i]) && of[i].sink != NULL && dev_of(&of[i]) == dev &&
		    (first == NULL || of[i].sink->part_number < first->part_number))
			first = of[i].sink;
	if (first == NULL || !sink_syncfs_reports() || dir_sys(first->dir)->syncfs(first->part.fd) != 0)
		return false;
	for (i = 0; i < n; i++)
		if (pending(&of[i]) && dev_of(&of[i]) == dev)
			of[i].synced = true;
	return true;
}

static void sync_data(struct store_item *of, unsigned n)
{
	unsigned i, j, files;
	uint64_t dev;

	for (i = 0; i < n; i++) {
		if (!pending(&of[i]) || of[i].sink == NULL)
			continue;
		dev = dev_of(&of[i]);
		for (files = 0, j = i; j < n; j++)
			files += pending(&of[j]) && of[j].sink != NULL && dev_of(&of[j]) == dev;
		if (files > FEW && sync_all(of, n, dev))
			continue;
		for (j = i; j < n; j++) {
			if (!pending(&of[j]) || of[j].sink == NULL || dev_of(&of[j]) != dev)
				continue;
			of[j].result = sync_file(of[j].sink, of[j].why);
			of[j].synced = true;
		}
	}
}

/* Whether more than FEW directories must be synced. Items are mostly sorted by directory, so only changes
 * between neighbors count. */
static bool many_dirs(const struct store_item *of, unsigned n, uint64_t dev)
{
	const struct dir *last = NULL;
	unsigned i, dirs = 0;

	for (i = 0; i < n; i++) {
		if (!pending(&of[i]) || dev_of(&of[i]) != dev || dir_of(&of[i]) == last)
			continue;
		last = dir_of(&of[i]);
		dirs += dir_unsynced(last);
	}
	return dirs > FEW;
}

/* The kernel reports a failed directory write only once, and later items may be below that directory: so the
 * first failure fails all following items. */
static void sync_each_dir(struct store_item *of, unsigned n, uint64_t dev)
{
	struct ptcp_err e;
	unsigned i;
	int r = 0;

	for (i = 0; i < n; i++) {
		if (!pending(&of[i]) || dev_of(&of[i]) != dev)
			continue;
		if (r == 0)
			r = dir_sync(dir_of(&of[i]), &e);
		of[i].synced = true;
		of[i].result = r;
		if (r != 0 && of[i].why != NULL)
			*of[i].why = e;
	}
}

static void sync_dirs(struct store_item *of, unsigned n)
{
	uint64_t dev;
	unsigned i;

	for (i = 0; i < n; i++)
		of[i].synced = false;
	for (i = 0; i < n; i++) {
		if (!pending(&of[i]))
			continue;
		dev = dev_of(&of[i]);
		if (!many_dirs(of, n, dev) || !sync_all(of, n, dev))
			sync_each_dir(of, n, dev);
	}
}

/* Fails items whose directory has been moved away meanwhile: they are complete, but not where they were requested.
 * The directories above a finished one are looked at when they are finished themselves: a tree of n levels ends in n
 * groups. */
static void check_places(struct store_item *of, unsigned n)
{
	uint64_t check = n > 0 ? dir_check_new(dir_of(&of[0])) : 0;
	const struct dir *last = NULL;
	struct ptcp_err e;
	unsigned i;
	int r = 0;

	for (i = 0; i < n; i++) {
		if (of[i].result != 0)
			continue;
		if (of[i].finished)
			r = dir_has_name(of[i].dir, &e);
		else if (dir_of(&of[i]) != last)
			r = dir_in_place(dir_of(&of[i]), check, &e);
		last = of[i].finished ? NULL : dir_of(&of[i]);
		of[i].result = r;
		if (r != 0 && of[i].why != NULL)
			*of[i].why = e;
	}
}

static void complete(struct store_item *of, unsigned n, bool sync)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		of[i].synced = false;
		of[i].result = of[i].sink != NULL ? prepare(of[i].sink, of[i].why) : 0;
		if ((of[i].attr_dropped = of[i].result > 0))
			of[i].result = 0;
	}
	if (sync)
		sync_data(of, n);
	for (i = 0; i < n; i++)
		if (of[i].sink != NULL && of[i].result == 0)
			of[i].result = give_name(of[i].sink, of[i].why);
	if (sync)
		sync_dirs(of, n);
	for (i = 0; i < n; i++)
		if (of[i].sink != NULL && of[i].sink->named)
			finish(of[i].sink, of[i].result == 0);
	check_places(of, n); /* last: a complete file needs no journal, wherever it is */
}

void store_complete(struct store_item *of, unsigned n, enum store_sync sync)
{
	unsigned i;

	if (sync != STORE_SYNC_FILE) {
		complete(of, n, sync == STORE_SYNC_GROUP);
		return;
	}
	for (i = 0; i < n; i++)
		complete(&of[i], 1, true);
}
