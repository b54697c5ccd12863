/* To be preloaded: no file system has direct I/O. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuse(int fd, int cmd, long arg)
{
	if (cmd == F_SETFL && (arg & O_DIRECT) != 0) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

#define FCNTL(name) \
	int name(int fd, int cmd, ...); \
	int name(int fd, int cmd, ...) \
	{ \
		va_list ap; \
		long arg; \
		va_start(ap, cmd); \
		arg = va_arg(ap, long); \
		va_end(ap); \
		return refuse(fd, cmd, arg); \
	}

#undef fcntl
FCNTL(fcntl)
FCNTL(fcntl64)
