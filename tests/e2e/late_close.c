/* To be preloaded: close() returns late, up to LATE_CLOSE_US microseconds after the kernel has freed the number:
 * another thread gets the number meanwhile, and a second close() of the same descriptor hits what that thread has
 * opened. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int fd)
{
	static atomic_uint count;
	const char *most = getenv("LATE_CLOSE_US");
	unsigned us = most != NULL ? (unsigned)atoi(most) : 0;
	int r = (int)syscall(SYS_close, fd), saved = errno;

	if (us > 0)
		usleep(atomic_fetch_add(&count, 7919) % us);
	errno = saved;
	return r;
}
