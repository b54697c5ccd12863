/* To be preloaded: a sendfile() that sends at most 50,000 bytes at a time, and fails every seventh time as on a file
 * system without it. The first call creates the file SENDFILE_CALLED. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST 50000

ssize_t sendfile(int to, int from, off_t *at, size_t n);
ssize_t sendfile64(int to, int from, off_t *at, size_t n);

ssize_t sendfile(int to, int from, off_t *at, size_t n)
{
	static atomic_uint calls;
	unsigned call = atomic_fetch_add(&calls, 1);

	if (call == 0 && getenv("SENDFILE_CALLED") != NULL)
		close(open(getenv("SENDFILE_CALLED"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (call % 7 == 6) {
		errno = EINVAL;
		return -1;
	}
	return syscall(SYS_sendfile, to, from, at, n < MOST ? n : MOST);
}

ssize_t sendfile64(int to, int from, off_t *at, size_t n)
{
	return sendfile(to, from, at, n);
}
