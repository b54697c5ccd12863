#include "store/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/fail.h"
#include "store/hash.h"

/* The part can change hands between two of our calls only if other transfers of
 * the same file end just then. */
#define TRIES 16

#define RETRY 1 /* of created() and found(), beside 0 and PTCP_E*: try again */

struct opening {
	struct dir *d;
	const struct sys *sys;
	int at; /* d's descriptor */
	const char *name;
	char part[PART_NAME_BYTES];
	bool reuse;
};

const char *part_name(char out[PART_NAME_BYTES], const char *name, const char *suffix)
{
	snprintf(out, PART_NAME_BYTES, ".ptcp-%016" PRIx64 "%s", hash_content(name, strlen(name)),
	    suffix);
	return out;
}

static int in_the_way(const struct opening *o, struct ptcp_err *e)
{
	char why[PART_NAME_BYTES + 80];

	snprintf(why, sizeof why, "%s beside it is in the way and not a part file (remove it)",
	    o->part);
	return fail_why(e, PTCP_EIO, EEXIST, o->d, o->name, why);
}

/* Locks fd, or closes it. Where a file system has no locks we go on without. */
static int lock(const struct opening *o, int fd, struct ptcp_err *e)
{
	int sys;

	if (o->sys->flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == ENOSYS ||
	    errno == EOPNOTSUPP)
		return 0;
	sys = errno;
	o->sys->close(fd);
	if (sys == EWOULDBLOCK)
		return fail_why(e, PTCP_EIO, sys, o->d, o->name,
		    "another transfer is writing this file (wait until it has ended)");
	return fail_sys(e, sys, o->d, o->name, "cannot lock its part file");
}

/* These two close fd unless they return 0.
 *
 * We created fd. Between that and our lock another transfer may have taken it
 * over, and it may even have renamed it to its final name. Then it has data or,
 * if it was discarded, no name: as those who write no data take nothing over,
 * one fstat() tells. */
static int created(const struct opening *o, int fd, struct ptcp_err *e)
{
	struct stat st;
	int r, sys;

	if ((r = lock(o, fd, e)) != 0)
		return r;
	if (o->sys->fstat(fd, &st) != 0) {
		sys = errno;
		o->sys->unlinkat(o->at, o->part, 0);
		o->sys->close(fd);
		return fail_sys(e, sys, o->d, o->name, "cannot examine its part file");
	}
	if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_size == 0)
		return 0;
	o->sys->close(fd);
	return RETRY;
}

/* Opens what is there; *writable if for writing too. */
static int open_there(const struct opening *o, bool *writable)
{
	const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = o->sys->openat(o->at, o->part, flags | O_RDWR, 0);

	*writable = fd >= 0;
	if (fd < 0 && errno == EACCES) /* it had got its final mode already */
		fd = o->sys->openat(o->at, o->part, flags | O_RDONLY, 0);
	return fd;
}

/* fd is what lies there, not locked yet. Keeps it, emptied, or removes it. */
static int found(const struct opening *o, int fd, bool writable, struct ptcp_err *e)
{
	struct stat st, named = { 0 };
	int r, sys;

	if (o->sys->fstat(fd, &st) != 0) {
		sys = errno;
		o->sys->close(fd);
		return fail_sys(e, sys, o->d, o->name, "cannot examine its part file");
	}
	if (!S_ISREG(st.st_mode)) {
		o->sys->close(fd);
		return in_the_way(o, e);
	}
	if ((r = lock(o, fd, e)) != 0)
		return r;
	/* Only now it is certain that the name stays with it, if it has it. */
	if (o->sys->fstat(fd, &st) != 0 ||
	    (o->sys->fstatat(o->at, o->part, &named, AT_SYMLINK_NOFOLLOW) != 0 &&
		errno != ENOENT)) {
		sys = errno;
		r = fail_sys(e, sys, o->d, o->name, "cannot examine its part file");
	} else if (st.st_nlink == 0 || st.st_dev != named.st_dev || st.st_ino != named.st_ino) {
		r = RETRY;
	} else if (!o->reuse || !writable || st.st_nlink != 1 || st.st_uid != geteuid()) {
		r = RETRY;
		if (o->sys->unlinkat(o->at, o->part, 0) != 0)
			r = fail_sys(e, errno, o->d, o->name, "cannot remove its old part file");
	} else if (st.st_size > 0 && o->sys->ftruncate(fd, 0) != 0) {
		r = fail_sys(e, errno, o->d, o->name, "cannot empty its old part file");
	}
	if (r != 0)
		o->sys->close(fd);
	return r;
}

int part_open(struct dir *d, int at, const char *name, bool reuse, struct ptcp_err *e)
{
	struct opening o = { .d = d, .sys = dir_sys(d), .at = at, .name = name, .reuse = reuse };
	bool writable;
	int fd, r, tries;

	part_name(o.part, name, PART_SUFFIX);
	for (tries = 0; tries < TRIES; tries++) {
		fd = o.sys->openat(at, o.part,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0) {
			r = created(&o, fd, e);
		} else if (errno != EEXIST) {
			return fail_sys(e, errno, d, name, "cannot create its part file");
		} else if ((fd = open_there(&o, &writable)) >= 0) {
			r = found(&o, fd, writable, e);
		} else if (errno == ENOENT) {
			r = RETRY;
		} else if (errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == ENODEV) {
			return in_the_way(&o, e);
		} else {
			return fail_sys(e, errno, d, name, "cannot open its part file");
		}
		if (r != RETRY)
			return r == 0 ? fd : r;
	}
	return fail_why(e, PTCP_EIO, EWOULDBLOCK, d, name,
	    "other transfers keep taking its part file (wait until they have ended)");
}
