#include "fs/pipe_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"

/* To open the master of a pseudoterminal is to create another pseudoterminal. */
static bool is_master(int fd)
{
	unsigned number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

/* A descriptor of our own of the same pipe or terminal. -1: none, for example without /proc. */
static int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int pipe_io_init(struct pipe_io *p, int fd, bool writes, struct ptcp_err *e)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) != 0)
		return err_sys(e, PTCP_EUSAGE, "descriptor %d", fd);
	if ((flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY))
		return err_set(e, PTCP_EUSAGE, "descriptor %d: not open for %s", fd, writes ? "writing" : "reading");
	if (S_ISDIR(st.st_mode))
		return err_because(e, PTCP_EUSAGE, EISDIR, "descriptor %d: Is a directory (name the directory as a "
		    "source)", fd);
	*p = (struct pipe_io){ .fd = fd, .own = -1, .socket = S_ISSOCK(st.st_mode) };
	if ((p->wake = eventfd(0, EFD_CLOEXEC)) < 0)
		return err_sys(e, PTCP_ENOMEM, "cannot create an eventfd");
	if (writes && (S_ISFIFO(st.st_mode) || (isatty(fd) && !is_master(fd))))
		p->own = reopen(fd);
	p->blocks = writes && p->own < 0 && !S_ISREG(st.st_mode);
	return 0;
}

void pipe_io_fini(struct pipe_io *p)
{
	fd_close(&p->own);
	fd_close(&p->wake);
}

void pipe_io_stop(struct pipe_io *p)
{
	const uint64_t one = 1;
	ssize_t n = write(p->wake, &one, sizeof one);

	(void)n; /* cannot fail: the counter is far below its maximum */
}

/* Waits until the descriptor is ready; false, with errno, after pipe_io_stop(). */
static bool wait_for(struct pipe_io *p, int fd, short events)
{
	struct pollfd of[2] = { { .fd = fd, .events = events }, { .fd = p->wake, .events = POLLIN } };

	while (poll(of, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	errno = ECANCELED;
	return of[1].revents == 0;
}

static bool again(void) { return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK; }

ssize_t pipe_io_read(struct pipe_io *p, void *buf, size_t n)
{
	ssize_t got = -1;

	do {
		if (!wait_for(p, p->fd, POLLIN))
			return -1;
		got = read(p->fd, buf, n);
	} while (got < 0 && again());
	return got;
}

static ssize_t write_some(struct pipe_io *p, int fd, const void *buf, size_t n)
{
	if (p->socket)
		return send(fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(fd, buf, p->blocks && n > PIPE_BUF ? PIPE_BUF : n);
}

int pipe_io_write(struct pipe_io *p, const void *buf, size_t n)
{
	int fd = p->own >= 0 ? p->own : p->fd;
	const char *at = buf;
	ssize_t done;

	while (n > 0) {
		if (!wait_for(p, fd, POLLOUT))
			return errno;
		if ((done = write_some(p, fd, at, n)) < 0 && !again())
			return errno;
		if (done > 0) {
			at += done;
			n -= (size_t)done;
		}
	}
	return 0;
}
