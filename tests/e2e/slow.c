/* To be preloaded: a disk that takes a quarter of a second to write a block; with SLOW_FIRST_S only for the first
 * block, but so many seconds; with SLOW_UNTIL each block until a file of that name exists; with SLOW_MS each read and
 * write of a block takes so many milliseconds, and nothing is cached; with SLOW_EVERY only one operation in so many;
 * with SLOW_UNLINK_MS each removal of a name, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define LARGE 65536

ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);
int unlinkat(int at, const char *name, int flags);

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? (unsigned)atoi(text) : otherwise;
}

/* Whether this operation is slow. */
static bool its_turn(void)
{
	static atomic_uint count;

	return atomic_fetch_add(&count, 1) % number("SLOW_EVERY", 1) == 0;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	static atomic_bool begun;
	unsigned first_s = number("SLOW_FIRST_S", 0);
	const char *gate = getenv("SLOW_UNTIL");

	while (n >= LARGE && gate != NULL && access(gate, F_OK) < 0)
		usleep(10000);
	if (gate == NULL && n >= LARGE && first_s == 0 && its_turn())
		usleep(number("SLOW_MS", 250) * 1000);
	else if (n >= LARGE && first_s > 0 && !atomic_exchange(&begun, true))
		sleep(first_s);
	return syscall(SYS_pwrite64, fd, p, n, at);
}

int unlinkat(int at, const char *name, int flags)
{
	usleep(number("SLOW_UNLINK_MS", 0) * 1000);
	return (int)syscall(SYS_unlinkat, at, name, flags);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	return pwrite(fd, p, n, at);
}

ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	unsigned ms = number("SLOW_MS", 0);

	if (ms > 0 && n == 1 && v->iov_len >= LARGE) {
		if ((flags & RWF_NOWAIT) != 0) {
			errno = EAGAIN;
			return -1;
		}
		if (its_turn())
			usleep(ms * 1000);
	}
	return syscall(SYS_preadv2, fd, v, n, (unsigned long)at, 0ul, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return preadv2(fd, v, n, at, flags);
}
