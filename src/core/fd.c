#include "core/fd.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOCK_PAUSE_MS = 5 }; /* between attempts */

int fd_close(int *fd)
{
	int saved = errno, error = 0;

	if (*fd >= 0 && close(*fd) < 0)
		error = errno;
	*fd = -1;
	assert(error != EBADF);
	errno = saved;
	return error == EINTR ? 0 : error; /* Linux has closed the descriptor by then */
}

bool fd_lock(int fd, int ms)
{
	int r;

	while ((r = flock(fd, ms < 0 ? LOCK_EX : LOCK_EX | LOCK_NB)) < 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || ms <= 0))
			return false;
		if (errno == EWOULDBLOCK) {
			poll(NULL, 0, LOCK_PAUSE_MS);
			ms = ms > LOCK_PAUSE_MS ? ms - LOCK_PAUSE_MS : 0;
		}
	}
	return true;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

FILE *fd_file(int *fd, const char *mode)
{
	FILE *f = fdopen(*fd, mode);

	if (f != NULL)
		*fd = -1;
	fd_close(fd);
	return f;
}

DIR *fd_dir(int *fd)
{
	DIR *d = fdopendir(*fd);

	if (d != NULL)
		*fd = -1;
	fd_close(fd);
	return d;
}

ssize_t fd_preadv2(int fd, const struct iovec *v, int n, off_t off, int flags)
{
#ifdef __GLIBC__
	return preadv2(fd, v, n, off, flags);
#else
	return syscall(SYS_preadv2, fd, v, n, (long)off, (long)((uint64_t)off >> 32), flags);
#endif
}
