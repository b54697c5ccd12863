#include "fs/sys_impl.h"

#include <errno.h>

int sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat(dirfd, path, flags, mode);
}

int sys_dup(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

ssize_t sys_read_all(const struct sys *sys, int fd, void *buf, size_t n, uint64_t off)
{
	size_t done = 0;
	ssize_t got;

	while (done < n) {
		struct iovec v = { (char *)buf + done, n - done };

		if ((got = sys->preadv2(fd, &v, 1, (off_t)(off + done), 0)) == 0)
			break;
		if (got < 0 && errno != EINTR)
			return -1;
		done += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)done;
}

int sys_write_all(const struct sys *sys, int fd, const void *buf, size_t n, uint64_t off)
{
	size_t done = 0;
	ssize_t w;

	while (done < n) {
		if ((w = sys->pwrite(fd, (const char *)buf + done, n - done, (off_t)(off + done))) == 0)
			return EIO;
		if (w < 0 && errno != EINTR)
			return errno;
		done += w > 0 ? (size_t)w : 0;
	}
	return 0;
}
