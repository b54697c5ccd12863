/* To be preloaded: a disk that takes a quarter of a second for a block. */
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define LARGE 65536

ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	if (n >= LARGE)
		usleep(250000);
	return syscall(SYS_pwrite64, fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	return pwrite(fd, p, n, at);
}
