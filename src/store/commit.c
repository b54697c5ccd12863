/* Files, links and directories completed together: store_complete(). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "store/sink_impl.h"
#include "store/store_err.h"

/* Up to so many files or directories are synced one by one, more of them by one syncfs(2). That is
 * sooner done from two files on (ext4: 8 files 1.3 ms or 0.4 ms, 500 files 95 ms or 9 ms), but it
 * waits for what everybody else has dirty on that file system too: not for a few files' sake. */
#define FEW 8

/* The owner of a file may change its mode and times unless the file system has
 * none (vfat, some network shares): then there is nothing to set. */
static bool cannot_hold(int sys)
{
	return sys == EPERM || sys == EOPNOTSUPP || sys == ENOSYS;
}

/* 1: something is lacking that only deserves a warning. */
static int set_meta(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, s->meta.mtime };
	mode_t mode = 0666 & ~dir_umask(s->dir);
	int fd = s->part.fd, lacking;
	bool as_asked;

	if ((lacking = meta_set_owner(&s->meta, s->dir, s->name, fd, &as_asked, e)) < 0)
		return lacking;
	if (s->meta.set_mode)
		mode = owner_mode(s->meta.mode, s->meta.setid, as_asked);
	if (s->end_bytes != s->size_bytes && sys->ftruncate(fd, (off_t)s->size_bytes) != 0)
		return store_err_sys(e, errno, s->dir, s->name, "cannot set its length");
	if (sys->fchmod(fd, mode) != 0 && !cannot_hold(errno))
		return store_err_sys(e, errno, s->dir, s->name, "cannot set its mode");
	if (s->meta.set_mtime && sys->futimens(fd, ts) != 0 && !cannot_hold(errno))
		return store_err_sys(e, errno, s->dir, s->name, "cannot set its times");
	return lacking;
}

/* A network file system may report a failed write only when a descriptor is
 * closed, and ours has to stay open, for its lock, until the file is renamed. */
static int flush(struct sink *s, struct ptcp_err *e)
{
	const struct sys *sys = dir_sys(s->dir);
	int fd = sys->dup(s->part.fd);

	if (fd < 0)
		return store_err_sys(e, errno, s->dir, s->name, "cannot finish writing");
	if (sys->close(fd) != 0)
		return sink_sicken(s, errno, e);
	return 0;
}

/* A file without a block written. */
static int open_late(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) < 0)
		return at;
	r = sink_open_part(s, at, s->size_bytes == 0, e);
	dir_fd_done(s->dir);
	return r;
}

/* ---- The steps of one file ---- */

static int prepare(struct sink *s, struct ptcp_err *e)
{
	int r = 0, lacking;

	pthread_mutex_lock(&s->lock);
	assert(s->state != SINK_DONE);
	sink_stop_writers(s, SINK_DONE);
	if (s->sick != 0)
		r = sink_sicken(s, s->sick, e);
	else if (s->part.fd < 0)
		r = open_late(s, e);
	if (r == 0 && (r = lacking = set_meta(s, e)) >= 0 && (r = flush(s, e)) == 0)
		r = lacking;
	if (r < 0)
		s->state = s->sick != 0 ? SINK_SICK : SINK_OPEN;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int sync_file(struct sink *s, struct ptcp_err *e)
{
	int r, sys;

	if (dir_sys(s->dir)->fsync(s->part.fd) == 0 || sys_cannot_sync(errno))
		return 0;
	sys = errno;
	pthread_mutex_lock(&s->lock);
	r = sink_sicken(s, sys, e);
	s->state = SINK_SICK;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* What is renamed goes by its name: it must be what we wrote. */
static int fail_unless_ours(const struct sink *s, int at, struct ptcp_err *e)
{
	int has = sink_has_name(s, at);

	if (has < 0)
		return store_err_sys(e, errno, s->dir, s->name, "cannot examine its part file");
	return has == 1 ? 0 : store_err_why(e, PTCP_EIO, ESTALE, s->dir, s->name,
	    "its part file was removed or replaced meanwhile (run the same command again)");
}

static int rename_part(struct sink *s, int at, struct ptcp_err *e)
{
	char part[PART_NAME_BYTES];
	int r;

	part_name(part, s->name, PART_SUFFIX);
	if ((r = store_err_unless_replaceable(e, at, s->dir, s->name)) == 0 &&
	    (r = fail_unless_ours(s, at, e)) == 0 &&
	    dir_sys(s->dir)->renameat(at, part, at, s->name) != 0)
		r = store_err_sys(e, errno, s->dir, s->name, "cannot give the file its final name");
	return r;
}

static int give_name(struct sink *s, struct ptcp_err *e)
{
	int at, r;

	if ((at = dir_fd(s->dir, e)) >= 0) {
		r = rename_part(s, at, e);
		dir_fd_done(s->dir);
	} else {
		r = at;
	}
	pthread_mutex_lock(&s->lock);
	if (r == 0)
		s->named = true;
	else
		s->state = SINK_OPEN;
	pthread_mutex_unlock(&s->lock);
	if (r == 0)
		dir_changed(s->dir);
	return r;
}

/* A journal is of use as long as the name may be lost. */
static void finish(struct sink *s, bool durable)
{
	int at;

	pthread_mutex_lock(&s->lock);
	if (durable && s->journal.fd >= 0 && (at = dir_fd(s->dir, NULL)) >= 0) {
		sink_forget_journal(s, at);
		dir_fd_done(s->dir);
	}
	sink_close(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- The steps of a group ---- */

static bool pending(const struct store_end *t)
{
	return t->result == 0 && !t->synced;
}

/* Older kernels keep to themselves that something could not be written. */
static bool syncfs_tells(void)
{
	unsigned major, minor;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 5 || (major == 5 && minor >= 8));
}

static uint64_t dev_of(const struct store_end *t)
{
	return t->sink != NULL ? t->sink->part.dev : dir_dev(t->dir);
}

static struct dir *dir_of(const struct store_end *t)
{
	return t->sink != NULL ? t->sink->dir : t->dir;
}

/* What is pending on that file system, by one call on the part that was opened first: a
 * descriptor is told of what failed since it was opened, which is before anything was written to any of
 * these files. True if that worked: else each is asked, and only those fail that lost something. */
static bool sync_all(struct store_end *of, unsigned n, uint64_t dev)
{
	const struct sink *first = NULL;
	unsigned i;

	for (i = 0; i < n; i++)
		if (pending(&of[i]) && of[i].sink != NULL && dev_of(&of[i]) == dev &&
		    (first == NULL || of[i].sink->opened < first->opened))
			first = of[i].sink;
	if (first == NULL || !syncfs_tells() || dir_sys(first->dir)->syncfs(first->part.fd) != 0)
		return false;
	for (i = 0; i < n; i++)
		if (pending(&of[i]) && dev_of(&of[i]) == dev)
			of[i].synced = true;
	return true;
}

static void sync_data(struct store_end *of, unsigned n)
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

/* Entries come by directory, mostly: one that differs from its neighbour counts. */
static bool many_dirs(const struct store_end *of, unsigned n, uint64_t dev)
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

/* The kernel tells once that a directory was not written, and others may hang below it: so the first
 * failure is that of all that follow. */
static void sync_each_dir(struct store_end *of, unsigned n, uint64_t dev)
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

static void sync_dirs(struct store_end *of, unsigned n)
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

static void complete(struct store_end *of, unsigned n, bool sync)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		of[i].synced = false;
		of[i].result = of[i].sink != NULL ? prepare(of[i].sink, of[i].why) : 0;
		if ((of[i].lacking = of[i].result > 0))
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
}

void store_complete(struct store_end *of, unsigned n, enum store_sync sync)
{
	unsigned i;

	if (sync != STORE_SYNC_FILE) {
		complete(of, n, sync == STORE_SYNC_GROUP);
		return;
	}
	for (i = 0; i < n; i++)
		complete(&of[i], 1, true);
}
