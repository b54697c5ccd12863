/* The table for a system without the calls of Linux: POSIX.1-2008 and flock(). make POSIX=1 builds with the table on
 * Linux, so that tests show what a port rests on. A call that is missing fails as on an old kernel or a plain file
 * system. */
#include <errno.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/fd.h"
#include "fs/sys_impl.h"

/* ---- Calls that the system has, in another form ---- */

static ssize_t posix_preadv2(int fd, const struct iovec *v, int n, off_t off, int flags)
{
	ssize_t done = 0, got;
	int i;

	if (flags != 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	for (i = 0; i < n; i++) {
		if ((got = pread(fd, v[i].iov_base, v[i].iov_len, off + done)) < 0)
			return done > 0 ? done : -1;
		done += got;
		if ((size_t)got < v[i].iov_len)
			break;
	}
	return done;
}

static int posix_fallocate_whole(int fd, int mode, off_t off, off_t n)
{
	errno = mode != 0 ? EOPNOTSUPP : posix_fallocate(fd, off, n);
	return errno == 0 ? 0 : -1;
}

/* The type of the file system is unknown. */
static int posix_fstatfs(int fd, struct statfs *st)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) != 0)
		return -1;
	*st = (struct statfs){ .f_bsize = (long)v.f_bsize, .f_frsize = (long)v.f_frsize, .f_blocks = v.f_blocks,
		.f_bfree = v.f_bfree, .f_bavail = v.f_bavail, .f_files = v.f_files, .f_ffree = v.f_ffree,
		.f_namelen = (long)v.f_namemax };
	return 0;
}

/* AT_EMPTY_PATH is of Linux. */
static int posix_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
	return flags & AT_EMPTY_PATH ? fchown(dirfd, uid, gid) : fchownat(dirfd, path, uid, gid, flags);
}

static int posix_renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (flags == 0)
		return renameat(fromfd, from, tofd, to);
	errno = EINVAL; /* as of a file system without RENAME_NOREPLACE */
	return -1;
}

/* As far as `to` takes the bytes. */
static ssize_t posix_sendfile(int to, int fd, off_t *off, size_t n)
{
	char buf[16 << 10];
	ssize_t got, put;

	if ((got = pread(fd, buf, n < sizeof buf ? n : sizeof buf, *off)) <= 0)
		return got;
	if ((put = write(to, buf, (size_t)got)) > 0)
		*off += put;
	return put;
}

/* ---- Calls that the system lacks ---- */

static int lacks(int as)
{
	errno = as;
	return -1;
}

static int no_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	(void)dirfd, (void)path, (void)how, (void)size;
	return lacks(ENOSYS);
}

static int no_cachestat(int fd, uint64_t off, uint64_t n, uint64_t *pages)
{
	(void)fd, (void)off, (void)n, (void)pages;
	return lacks(ENOSYS);
}

static int no_setdirect(int fd, bool on)
{
	(void)fd, (void)on;
	return lacks(EINVAL);
}

static int no_dioalign(int fd, uint32_t *memory, uint32_t *offset)
{
	(void)fd, (void)memory, (void)offset;
	return lacks(ENOSYS);
}

static int no_clonerange(int fd, int from, uint64_t off, uint64_t n)
{
	(void)fd, (void)from, (void)off, (void)n;
	return lacks(EOPNOTSUPP);
}

static int no_syncfs(int fd)
{
	(void)fd;
	return lacks(ENOSYS);
}

static ssize_t no_flistxattr(int fd, char *names, size_t n)
{
	(void)fd, (void)names, (void)n;
	return lacks(EOPNOTSUPP);
}

static ssize_t no_fgetxattr(int fd, const char *name, void *value, size_t n)
{
	(void)fd, (void)name, (void)value, (void)n;
	return lacks(EOPNOTSUPP);
}

static int no_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
	(void)fd, (void)name, (void)value, (void)n, (void)flags;
	return lacks(EOPNOTSUPP);
}

static int no_fremovexattr(int fd, const char *name)
{
	(void)fd, (void)name;
	return lacks(EOPNOTSUPP);
}

static ssize_t no_getxattrat(int dirfd, const char *path, const char *name, void *value, size_t n)
{
	(void)dirfd, (void)path, (void)name, (void)value, (void)n;
	return lacks(EOPNOTSUPP);
}

const struct sys sys_real = {
	SYS_COMMON,
	.openat2 = no_openat2,
	.fstatfs = posix_fstatfs,
	.preadv2 = posix_preadv2,
	.sendfile = posix_sendfile,
	.cachestat = no_cachestat,
	.setdirect = no_setdirect,
	.dioalign = no_dioalign,
	.clonerange = no_clonerange,
	.fallocate = posix_fallocate_whole,
	.syncfs = no_syncfs,
	.fchownat = posix_fchownat,
	.flistxattr = no_flistxattr,
	.fgetxattr = no_fgetxattr,
	.fsetxattr = no_fsetxattr,
	.fremovexattr = no_fremovexattr,
	.getxattrat = no_getxattrat,
	.renameat2 = posix_renameat2,
};
