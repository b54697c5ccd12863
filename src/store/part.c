#include "store/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "fs/fs_err.h"
#include "fs/quota.h"
#include "store/hash.h"

/* The part can change hands between two of our calls only when another transfer of the same file ends just
 * then. */
#define TRIES 16

/* Results of created() and found() besides 0 and PTCP_E*: try again; no part to take over. */
#define RETRY 1
#define NOTHING 2

struct opening {
	struct dir *d;
	const struct sys *sys;
	int at; /* d's descriptor */
	const char *name;
	char part[PART_NAME_BYTES];
	enum part_take take;
	struct part *out;
};

const char *part_name(char out[PART_NAME_BYTES], const char *name, const char *suffix)
{
	snprintf(out, PART_NAME_BYTES, ".ptcp-%016" PRIx64 "%s", hash_content(name, strlen(name)), suffix);
	return out;
}

bool part_is_own_name(const char *name)
{
	static const char *const suffixes[] = { PART_SUFFIX, PART_LINK_SUFFIX, PART_JOURNAL_SUFFIX,
		PART_DIR_SUFFIX };
	size_t i;

	if (strncmp(name, ".ptcp-", 6) != 0 || strspn(name + 6, "0123456789abcdef") != 16)
		return false;
	for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (strcmp(name + 6 + 16, suffixes[i]) == 0)
			return true;
	return false;
}

static int not_a_part(const struct opening *o, struct ptcp_err *e)
{
	char why[PART_NAME_BYTES + 80];

	snprintf(why, sizeof why, "%s in the same directory is not a part file (remove it)", o->part);
	return fs_err_set(e, PTCP_EIO, EEXIST, o->d, o->name, why);
}

static int stat_failed(const struct opening *o, int sys, struct ptcp_err *e)
{
	return fs_err_sys(e, sys, o->d, o->name, "part file");
}

static void set_id(const struct opening *o, const struct stat *st)
{
	o->out->dev = (uint64_t)st->st_dev;
	o->out->ino = (uint64_t)st->st_ino;
}

/* Continues without a lock where the file system has none. */
static int lock(const struct opening *o, int fd, struct ptcp_err *e)
{
	struct stat st;
	int sys;

	if (o->sys->flock(fd, LOCK_EX | LOCK_NB) == 0 || fs_cannot(ABILITY_LOCKS, errno))
		return 0;
	if ((sys = errno) != EWOULDBLOCK)
		return fs_err_sys(e, sys, o->d, o->name, "cannot lock the part file");
	if (o->sys->fstat(fd, &st) == 0)
		set_id(o, &st);
	return fs_err_set(e, PTCP_EIO, sys, o->d, o->name,
	    "another transfer is writing this file (wait until it has ended)");
}

/* created() and found() return 0 only if fd is ours.
 *
 * We created fd. Before we locked it, another transfer may have taken the file over, and even renamed it to
 * its final name. Then the file has data or, if discarded, no name: since transfers without data take over no
 * part, one fstat() is enough. */
static int created(const struct opening *o, int fd, struct ptcp_err *e)
{
	struct stat st;
	int r, sys;

	if ((r = lock(o, fd, e)) != 0)
		return r;
	if (o->sys->fstat(fd, &st) != 0) {
		sys = errno;
		o->sys->unlinkat(o->at, o->part, 0);
		return stat_failed(o, sys, e);
	}
	set_id(o, &st);
	return S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_size == 0 ? 0 : RETRY;
}

/* Opens an existing part, for writing if permitted (*writable). */
static int open_existing(const struct opening *o, bool *writable)
{
	const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = o->sys->openat(o->at, o->part, flags | O_RDWR, 0);

	*writable = fd >= 0;
	if (fd < 0 && errno == EACCES) /* the final mode was already set */
		fd = o->sys->openat(o->at, o->part, flags | O_RDONLY, 0);
	return fd;
}

/* Makes a part private again: an interrupted run may have set the final mode. */
static int keep(const struct opening *o, int fd, const struct stat *st, bool writable)
{
	if (st->st_nlink != 1 || st->st_uid != geteuid())
		return NOTHING;
	o->out->disk_bytes = (uint64_t)st->st_blocks * 512;
	if ((st->st_mode & 07777) == 0600 || o->sys->fchmod(fd, 0600) == 0)
		return writable ? 0 : RETRY;
	return writable ? 0 : NOTHING;
}

/* An empty part may have been created by another transfer just now, which accounts for it. */
static void add_freed(const struct opening *o, const struct stat *st)
{
	if (st->st_nlink == 1 && st->st_blocks > 0)
		o->out->freed_bytes += usage_of_entry(st->st_mode, (uint64_t)st->st_blocks * 512, 1);
}

/* fd is locked and still has the part's name. */
static int take_over(const struct opening *o, int fd, const struct stat *st, bool writable,
    struct ptcp_err *e)
{
	if (o->take == PART_RESUME)
		return keep(o, fd, st, writable);
	if (o->take == PART_NEW || !writable || st->st_nlink != 1 || st->st_uid != geteuid()) {
		if (o->sys->unlinkat(o->at, o->part, 0) != 0)
			return fs_err_sys(e, errno, o->d, o->name, "cannot remove the old part file");
		add_freed(o, st);
		return RETRY;
	}
	if (st->st_size > 0 && o->sys->ftruncate(fd, 0) != 0)
		return fs_err_sys(e, errno, o->d, o->name, "cannot empty the old part file");
	add_freed(o, st);
	return 0;
}

/* fd is an existing file with the part's name, not locked. Takes it over or removes it. */
static int found(const struct opening *o, int fd, bool writable, struct ptcp_err *e)
{
	struct stat st, named = { 0 };
	int r;

	o->out->existed = true;
	if (o->sys->fstat(fd, &st) != 0)
		return stat_failed(o, errno, e);
	if (!S_ISREG(st.st_mode) || dir_excludes(o->d, st.st_dev, st.st_ino))
		return not_a_part(o, e);
	if ((r = lock(o, fd, e)) != 0)
		return r;
	/* With the lock held no other transfer may rename the part: the comparison is final. */
	if (o->sys->fstat(fd, &st) != 0 ||
	    (o->sys->fstatat(o->at, o->part, &named, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT))
		return stat_failed(o, errno, e);
	if (st.st_nlink == 0 || st.st_dev != named.st_dev || st.st_ino != named.st_ino)
		return RETRY;
	set_id(o, &st);
	return take_over(o, fd, &st, writable, e);
}

/* One try; sets o->out->fd if the part is ours. */
static int open_once(const struct opening *o, struct ptcp_err *e)
{
	bool writable;
	int fd = -1, r;

	errno = EEXIST;
	if (o->take != PART_RESUME)
		fd = o->sys->openat(o->at, o->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		r = created(o, fd, e);
	} else if (errno != EEXIST) {
		return fs_err_sys(e, errno, o->d, o->name, "cannot create a file");
	} else if ((fd = open_existing(o, &writable)) >= 0) {
		r = found(o, fd, writable, e);
	} else if (errno == ENOENT) {
		return o->take == PART_RESUME ? NOTHING : RETRY;
	} else if (errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == ENODEV) {
		return not_a_part(o, e);
	} else {
		return fs_err_sys(e, errno, o->d, o->name, "cannot open the part file");
	}
	if (r != 0)
		o->sys->close(&fd);
	else
		o->out->fd = fd;
	return r;
}

int part_open(struct part *out, struct dir *d, int at, const char *name, const char *key, enum part_take take,
    struct ptcp_err *e)
{
	struct opening o = { .d = d, .sys = dir_sys(d), .at = at, .name = name, .take = take,
		.out = out };
	int r, tries;

	*out = (struct part){ .fd = -1 };
	part_name(o.part, key, PART_SUFFIX);
	for (tries = 0; tries < TRIES; tries++)
		if ((r = open_once(&o, e)) != RETRY)
			return r == NOTHING ? 0 : r;
	return fs_err_set(e, PTCP_EIO, EWOULDBLOCK, d, name,
	    "other transfers of this file keep replacing the part file (wait until they have ended)");
}

/* ---- In place ---- */

static int take_target(const struct opening *o, int fd, bool empty, struct ptcp_err *e)
{
	struct stat st;
	int r;

	if (o->sys->fstat(fd, &st) != 0)
		return fs_err_sys(e, errno, o->d, o->name, NULL);
	if (!S_ISREG(st.st_mode) || dir_excludes(o->d, st.st_dev, st.st_ino))
		return fs_err_set(e, PTCP_EREFUSED, EACCES, o->d, o->name,
		    "not written to, as another entry has the name (run the same command again)");
	if ((r = lock(o, fd, e)) != 0)
		return r;
	if (o->sys->fstat(fd, &st) != 0)
		return fs_err_sys(e, errno, o->d, o->name, NULL);
	set_id(o, &st);
	o->out->size_bytes = (uint64_t)st.st_size;
	o->out->disk_bytes = (uint64_t)st.st_blocks * 512;
	if (!empty)
		return 0;
	if (st.st_size > 0 && o->sys->ftruncate(fd, 0) != 0)
		return fs_err_sys(e, errno, o->d, o->name, "cannot empty the file");
	o->out->freed_bytes = usage_of_entry(st.st_mode, o->out->disk_bytes, 1);
	o->out->size_bytes = 0;
	return 0;
}

#define TARGET_FLAGS (O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Our own file may deny us to write: for the moment of opening, the permission is added. */
static int open_target(const struct opening *o)
{
	int fd = o->sys->openat(o->at, o->name, TARGET_FLAGS, 0), error;
	struct stat st;

	if (fd >= 0 || errno != EACCES || o->sys->fstatat(o->at, o->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return fd;
	errno = EACCES;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    o->sys->fchmodat(o->at, o->name, (st.st_mode & 07777) | S_IRUSR | S_IWUSR, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	fd = o->sys->openat(o->at, o->name, TARGET_FLAGS, 0);
	error = errno;
	if (fd >= 0)
		o->sys->fchmod(fd, st.st_mode & 07777);
	else
		o->sys->fchmodat(o->at, o->name, st.st_mode & 07777, AT_SYMLINK_NOFOLLOW);
	errno = error;
	return fd;
}

int part_open_target(struct part *out, struct dir *d, int at, const char *name, bool empty, struct ptcp_err *e)
{
	const struct opening o = { .d = d, .sys = dir_sys(d), .at = at, .name = name, .out = out };
	int fd, r;

	*out = (struct part){ .fd = -1 };
	if ((fd = open_target(&o)) < 0)
		return fs_err_sys(e, errno, d, name, "cannot write into the file");
	if ((r = take_target(&o, fd, empty, e)) != 0)
		o.sys->close(&fd);
	else
		out->fd = fd;
	return r;
}
