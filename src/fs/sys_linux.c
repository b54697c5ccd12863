#include "fs/sys_impl.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/fd.h"

/* glibc has no wrapper. */
static int real_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	return (int)syscall(SYS_openat2, dirfd, path, how, size);
}

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* on all architectures but alpha */
#endif

/* Neither glibc nor older kernel headers know the call. */
static int real_cachestat(int fd, uint64_t off, uint64_t n, uint64_t *pages)
{
	uint64_t range[2] = { off, n }, stat[5]; /* cached, dirty, under writeback, evicted, recently evicted */
	int r = (int)syscall(SYS_cachestat, fd, range, stat, 0);

	if (r == 0)
		*pages = stat[0];
	return r;
}

static int real_setdirect(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* Older kernel headers lack the two fields at the end. */
static int real_dioalign(int fd, uint32_t *memory, uint32_t *offset)
{
	const uint32_t wanted = 0x2000; /* STATX_DIOALIGN */
	uint32_t of[256 / sizeof(uint32_t)] = { 0 }; /* struct statx, which begins with its mask */

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, wanted, of) != 0)
		return -1;
	*memory = of[152 / sizeof of[0]]; /* stx_dio_mem_align */
	*offset = of[156 / sizeof of[0]]; /* stx_dio_offset_align */
	errno = ENOSYS;
	return (of[0] & wanted) != 0 ? 0 : -1;
}

/* musl has no wrapper. */
#ifdef __GLIBC__
#define real_renameat2 renameat2
#else
static int real_renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, fromfd, from, tofd, to, flags);
}
#endif

static int real_clonerange(int fd, int from, uint64_t off, uint64_t n)
{
	struct file_clone_range range = { .src_fd = from, .src_offset = off, .src_length = n, .dest_offset = off };

	return ioctl(fd, FICLONERANGE, &range);
}

enum { GETXATTRAT = 464 }; /* the number of the call on all architectures but alpha */

/* The system call is of Linux 6.13; without it, a path through /proc costs four times as much. A filter of system calls
 * may report EPERM instead of ENOSYS. */
static ssize_t real_getxattrat(int dirfd, const char *path, const char *name, void *value, size_t n)
{
	static atomic_bool missing;
	struct {
		uint64_t value;
		uint32_t n, flags;
	} into = { (uint64_t)(uintptr_t)value, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX, 0 };
	char at[sizeof "/proc/self/fd/-2147483648/" + PATH_MAX];
	ssize_t got;

	if (!atomic_load_explicit(&missing, memory_order_relaxed)) {
		got = syscall(GETXATTRAT, dirfd, path, AT_SYMLINK_NOFOLLOW, name, &into, sizeof into);
		if (got >= 0 || (errno != ENOSYS && errno != EPERM))
			return got;
		atomic_store_explicit(&missing, true, memory_order_relaxed);
	}
	if (snprintf(at, sizeof at, "/proc/self/fd/%d/%s", dirfd, path) < (int)sizeof at)
		return lgetxattr(at, name, value, n);
	errno = ENAMETOOLONG;
	return -1;
}

const struct sys sys_real = {
	SYS_COMMON,
	.openat2 = real_openat2,
	.fstatfs = fstatfs,
	.preadv2 = fd_preadv2,
	.sendfile = sendfile,
	.cachestat = real_cachestat,
	.setdirect = real_setdirect,
	.dioalign = real_dioalign,
	.clonerange = real_clonerange,
	.fallocate = fallocate,
	.syncfs = syncfs,
	.fchownat = fchownat,
	.flistxattr = flistxattr,
	.fgetxattr = fgetxattr,
	.fsetxattr = fsetxattr,
	.fremovexattr = fremovexattr,
	.getxattrat = real_getxattrat,
	.renameat2 = real_renameat2,
};
