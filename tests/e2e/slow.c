/* To be preloaded: a disk that takes a quarter of a second for a block; with SLOW_FIRST_S only for the first block, but so
 * many seconds. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define LARGE 65536

ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	static atomic_bool begun;
	const char *first_s = getenv("SLOW_FIRST_S");

	if (n >= LARGE && first_s == NULL)
		usleep(250000);
	else if (n >= LARGE && !atomic_exchange(&begun, true))
		sleep((unsigned)atoi(first_s));
	return syscall(SYS_pwrite64, fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	return pwrite(fd, p, n, at);
}
