#include "core/local_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"

static int address_of(struct sockaddr_un *sa, const char *path, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (path[0] == '\0' || strlen(path) >= sizeof sa->sun_path)
		return err_set(e, PTCP_ECONFIG, "the socket %s: its path must have 1 to %zu bytes",
		    text_escape(shown, sizeof shown, path), sizeof sa->sun_path - 1);
	strcpy(sa->sun_path, path);
	return 0;
}

/* Takes the descriptor. */
static int failed(struct ptcp_err *e, int code, const char *path, int *fd)
{
	char shown[TEXT_NAME_BYTES];

	err_sys(e, code, "the socket %s", text_escape(shown, sizeof shown, path));
	fd_close(fd);
	return code;
}

static bool remove_stale(const struct sockaddr_un *sa)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(sa->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    (fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)sa, sizeof *sa) < 0 && errno == ECONNREFUSED;
	fd_close(&fd);
	return stale && unlink(sa->sun_path) == 0;
}

bool local_sock_remove_stale(const char *path)
{
	struct sockaddr_un sa;

	return address_of(&sa, path, NULL) == 0 && remove_stale(&sa);
}

int local_sock_listen(int *out, const char *path, mode_t mode, struct ptcp_err *e)
{
	struct sockaddr_un sa;
	int fd, r;

	if ((r = address_of(&sa, path, e)) < 0)
		return r;
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) < 0)
		return failed(e, PTCP_ECONFIG, path, &fd);
	r = bind(fd, (struct sockaddr *)&sa, sizeof sa);
	if (r < 0 && errno == EADDRINUSE) {
		r = remove_stale(&sa) ? bind(fd, (struct sockaddr *)&sa, sizeof sa) : -1;
		if (r < 0)
			errno = EADDRINUSE;
	}
	/* whatever the umask is */
	if (r < 0 || chmod(path, mode) < 0 || listen(fd, 1024) < 0)
		return failed(e, PTCP_ECONFIG, path, &fd);
	*out = fd;
	return 0;
}

int local_sock_accept(int fd)
{
	return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int local_sock_connect(int *out, const char *path, unsigned wait_ms, struct ptcp_err *e)
{
	struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
	struct sockaddr_un sa;
	int fd, r;

	if ((r = address_of(&sa, path, e)) < 0)
		return r;
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait_ms == 0 ? SOCK_NONBLOCK : 0), 0)) < 0 ||
	    (wait_ms > 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0) ||
	    connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return failed(e, PTCP_ECONNECT, path, &fd);
	*out = fd;
	return 0;
}

bool local_sock_peer(int fd, uid_t *user, pid_t *process)
{
	struct ucred c;
	socklen_t n = sizeof c;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0 || n != sizeof c)
		return false;
	*user = c.uid;
	*process = c.pid;
	return true;
}

bool local_sock_send(int fd, const char *text, int passed)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof passed)];
	} control;
	struct iovec io = { (void *)(uintptr_t)text, strlen(text) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	ssize_t n;

	if (passed >= 0) {
		memset(&control, 0, sizeof control);
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof passed), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.h), &passed, sizeof passed);
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

/* The kernel closes further descriptors, for lack of room. */
static void take_passed(struct msghdr *m, int *passed)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len == CMSG_LEN(sizeof *passed))
			memcpy(passed, CMSG_DATA(c), sizeof *passed);
}

int local_sock_receive(int fd, char *text, size_t cap, int *passed)
{
	union {
		struct cmsghdr h;
		char room[CMSG_LEN(sizeof *passed)];
	} control;
	struct iovec io = { text, cap - 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof *passed) };
	ssize_t n;

	*passed = -1;
	do
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -1 : 0;
	take_passed(&m, passed);
	if ((m.msg_flags & MSG_TRUNC) != 0 || memchr(text, '\0', (size_t)n) != NULL)
		text[0] = '\0'; /* a cut message must not pass for a shorter one */
	text[n] = '\0';
	if (n == 0)
		fd_close(passed);
	return n > 0;
}

bool local_sock_drained(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) < 0 || bytes == 0;
}
