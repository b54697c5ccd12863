#include "store/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int real_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat(dirfd, path, flags, mode);
}

/* glibc has no wrapper for it. */
static int real_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	return (int)syscall(SYS_openat2, dirfd, path, how, size);
}

static int real_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

const struct sys sys_real = {
	.openat = real_openat,
	.openat2 = real_openat2,
	.close = close,
	.dup = real_dup,
	.fstat = fstat,
	.fstatat = fstatat,
	.fstatfs = fstatfs,
	.fdopendir = fdopendir,
	.readdir = readdir,
	.closedir = closedir,
	.readlinkat = readlinkat,
	.preadv2 = preadv2,
	.lseek = lseek,
	.pwrite = pwrite,
	.ftruncate = ftruncate,
	.fallocate = fallocate,
	.fsync = fsync,
	.fdatasync = fdatasync,
	.syncfs = syncfs,
	.flock = flock,
	.fchmod = fchmod,
	.fchmodat = fchmodat,
	.futimens = futimens,
	.utimensat = utimensat,
	.fchownat = fchownat,
	.flistxattr = flistxattr,
	.fgetxattr = fgetxattr,
	.fsetxattr = fsetxattr,
	.mkdirat = mkdirat,
	.symlinkat = symlinkat,
	.linkat = linkat,
	.renameat = renameat,
	.unlinkat = unlinkat,
};

bool sys_cannot_sync(int sys)
{
	return sys == EINVAL || sys == EOPNOTSUPP || sys == ENOSYS;
}
