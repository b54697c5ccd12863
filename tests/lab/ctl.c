#include "ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/err.h"

/* On the wire: each word ends with a newline, the request with an empty word; the
 * answer ends with the connection. */

static int address(struct sockaddr_un *a, const char *path, struct ptcp_err *e)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof a->sun_path)
		return err_set(e, PTCP_EUSAGE, "the path %s is too long for a socket", path);
	memcpy(a->sun_path, path, strlen(path));
	return 0;
}

int ctl_listen(const char *path, struct ptcp_err *e)
{
	struct sockaddr_un a;
	int r = address(&a, path, e), fd;

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 16) == 0)
		return fd;
	err_sys(e, PTCP_EIO, "cannot listen on %s", path);
	if (fd >= 0)
		close(fd);
	return PTCP_EIO;
}

static int watch(struct ctl *c, int op, int fd, unsigned events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	return epoll_ctl(c->epoll_fd, op, fd, &ev);
}

int ctl_init(struct ctl *c, int listen_fd, int epoll_fd,
    char *(*answer)(void *, int, char **), void *arg)
{
	memset(c, 0, sizeof *c);
	c->listen_fd = listen_fd;
	c->fd = -1;
	c->epoll_fd = epoll_fd;
	c->answer = answer;
	c->arg = arg;
	return watch(c, EPOLL_CTL_ADD, listen_fd, EPOLLIN);
}

static void hang_up(struct ctl *c)
{
	close(c->fd);
	free(c->out);
	c->fd = -1;
	c->out = NULL;
	c->in_bytes = 0;
	watch(c, EPOLL_CTL_MOD, c->listen_fd, EPOLLIN);
}

static void write_more(struct ctl *c)
{
	ssize_t n = send(c->fd, c->out + c->out_done, c->out_bytes - c->out_done,
	    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		c->out_done += (size_t)n;
	else if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || c->out_done == c->out_bytes)
		hang_up(c);
}

static void answer(struct ctl *c)
{
	char *words[CTL_MAX_WORDS], *p = c->in;
	int n = 0;

	while (*p != '\n' && n < CTL_MAX_WORDS) {
		words[n++] = p;
		p = strchr(p, '\n');
		*p++ = '\0';
	}
	c->out = *p == '\n' ? c->answer(c->arg, n, words) : NULL;
	if (c->out == NULL) {
		hang_up(c);
		return;
	}
	c->out_bytes = strlen(c->out);
	c->out_done = 0;
	watch(c, EPOLL_CTL_MOD, c->fd, EPOLLOUT);
}

static void read_more(struct ctl *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_bytes, sizeof c->in - 1 - c->in_bytes,
	    MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->in_bytes += (size_t)n;
	c->in[c->in_bytes] = '\0';
	if (strlen(c->in) == c->in_bytes && (c->in[0] == '\n' || strstr(c->in, "\n\n")))
		answer(c);
	else if (c->in_bytes == sizeof c->in - 1)
		hang_up(c);
}

void ctl_event(struct ctl *c, int fd)
{
	if (fd == c->listen_fd && c->fd < 0) {
		c->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (c->fd >= 0) {
			watch(c, EPOLL_CTL_MOD, fd, 0); /* the next one waits */
			watch(c, EPOLL_CTL_ADD, c->fd, EPOLLIN);
		}
	} else if (fd == c->fd && c->out) {
		write_more(c);
	} else if (fd == c->fd) {
		read_more(c);
	}
}

/* ---------------------------------------------------------------- client */

static int read_all(int fd, char **text)
{
	size_t bytes = 0, room = 4096;
	char *buf = malloc(room + 1);
	ssize_t n = -1;

	while (buf && (n = read(fd, buf + bytes, room - bytes)) > 0) {
		bytes += (size_t)n;
		if (bytes == room) {
			char *more = realloc(buf, 2 * room + 1);

			if (more == NULL) {
				n = -1;
				break;
			}
			buf = more;
			room *= 2;
		}
	}
	if (n < 0) {
		free(buf);
		return -1;
	}
	buf[bytes] = '\0';
	*text = buf;
	return 0;
}

int ctl_ask(const char *path, int n, char *const *words, char **text, struct ptcp_err *e)
{
	struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_un a;
	char request[4096];
	size_t bytes = 0;
	int r = address(&a, path, e), fd;

	if (r < 0)
		return r;
	for (int i = 0; i < n; i++) {
		size_t len = strlen(words[i]);

		if (len == 0 || strchr(words[i], '\n') || n > CTL_MAX_WORDS ||
		    bytes + len + 2 > sizeof request)
			return err_set(e, PTCP_EUSAGE, "empty, too many or too long words");
		memcpy(request + bytes, words[i], len);
		bytes += len;
		request[bytes++] = '\n';
	}
	request[bytes++] = '\n';
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    send(fd, request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes || read_all(fd, text) < 0)
		r = err_sys(e, PTCP_ECONNECT, "cannot talk to the emulator at %s", path);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return r;
	if (strncmp(*text, "ok\n", 3) == 0) {
		memmove(*text, *text + 3, strlen(*text + 3) + 1);
		return 0;
	}
	(*text)[strcspn(*text, "\n")] = '\0';
	r = err_set(e, PTCP_EREFUSED, "%s", strncmp(*text, "error: ", 7) == 0 ? *text + 7 :
	    "the emulator hung up");
	free(*text);
	return r;
}
