#include "net/line_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "net/loop_uv.h"

struct line_reader {
	uv_poll_t poll;
	const struct line_reader_ops *ops;
	void *arg;
	int fd;
	bool gone, over;
	const char *out;         /* text of line_reader_send_all(), n_out bytes are left */
	size_t n_out;
	size_t n;
	char buf[LINE_READER_BYTES];
};

static void on_poll_closed(uv_handle_t *h) { free(h->data); }

static void end(struct line_reader *ls, bool broken)
{
	ls->over = true;
	uv_poll_stop(&ls->poll);
	ls->ops->closed(ls->arg, broken);
}

/* Passes the first line of the buffer to the callback; false without a complete line, or if the reader was
 * freed. */
static bool deliver(struct line_reader *ls)
{
	char line[LINE_READER_BYTES], *lf = memchr(ls->buf, '\n', ls->n);
	size_t n;

	if (ls->gone || lf == NULL)
		return false;
	n = (size_t)(lf - ls->buf);
	memcpy(line, ls->buf, n);
	line[n > 0 && line[n - 1] == '\r' ? n - 1 : n] = '\0';
	ls->n -= n + 1;
	memmove(ls->buf, lf + 1, ls->n);
	ls->ops->line(ls->arg, line);
	return true;
}

/* Passes the rest of the buffer to the callback, or with too long a line the buffer. */
static void deliver_rest(struct line_reader *ls)
{
	char line[LINE_READER_BYTES + 1];
	size_t n = ls->n;

	if (ls->gone || n == 0)
		return;
	memcpy(line, ls->buf, n);
	line[n] = '\0';
	ls->n = 0;
	ls->ops->line(ls->arg, line);
}

/* If the peer of a socket pair closed with unread input, recv() first fails with ECONNRESET, once, and then
 * returns the bytes that the peer had written. */
static ssize_t receive(struct line_reader *ls)
{
	bool was_reset = false;
	ssize_t n;

	do
		n = recv(ls->fd, ls->buf + ls->n, sizeof ls->buf - ls->n, 0);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !was_reset && (was_reset = true))));
	return n;
}

static void on_poll(uv_poll_t *p, int status, int events);

static void poll_for(struct line_reader *ls)
{
	uv_poll_start(&ls->poll, UV_READABLE | (ls->n_out > 0 ? UV_WRITABLE : 0), on_poll);
}

static void send_more(struct line_reader *ls)
{
	ssize_t n = send(ls->fd, ls->out, ls->n_out, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	ls->n_out = n > 0 ? ls->n_out - (size_t)n : 0; /* the end of a peer that has closed is read */
	ls->out += n > 0 ? n : 0;
	if (ls->n_out == 0)
		poll_for(ls);
	if (n > 0 && ls->ops->sent != NULL)
		ls->ops->sent(ls->arg, ls->n_out);
}

/* True: more may have arrived. `failed`: libuv has detected an error, and has stopped polling. */
static bool read_lines(struct line_reader *ls, bool failed)
{
	ssize_t n = receive(ls);

	if (n < 0 && errno == EAGAIN && !failed)
		return false;
	if (n > 0)
		ls->n += (size_t)n;
	while (deliver(ls))
		; /* the callback may free the reader; its memory stays valid until the loop's next turn */
	if (ls->ops->text && (n <= 0 || ls->n == sizeof ls->buf))
		deliver_rest(ls);
	if (!ls->gone && (n <= 0 || ls->n == sizeof ls->buf))
		end(ls, n > 0);
	return !ls->gone && !ls->over;
}

void line_reader_drain(struct line_reader *ls)
{
	while (read_lines(ls, false))
		;
	deliver_rest(ls);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct line_reader *ls = p->data;

	if ((events & UV_WRITABLE) != 0 && ls->n_out > 0)
		send_more(ls);
	if (ls->gone || (status >= 0 && (events & UV_READABLE) == 0))
		return;
	while (read_lines(ls, status < 0) && status < 0)
		;
}

int line_reader_new(struct line_reader **out, struct loop *l, int *fd, const struct line_reader_ops *ops, void *arg,
    struct ptcp_err *e)
{
	struct line_reader *ls = calloc(1, sizeof *ls);
	int r;

	if (ls == NULL) {
		fd_close(fd);
		return err_nomem(e);
	}
	if ((r = uv_poll_init(loop_uv(l), &ls->poll, *fd)) < 0) {
		fd_close(fd);
		free(ls);
		return err_set(e, PTCP_EIO, "polling a socket: %s", uv_strerror(r));
	}
	ls->poll.data = ls;
	ls->fd = fd_take(fd);
	ls->ops = ops;
	ls->arg = arg;
	poll_for(ls);
	*out = ls;
	return 0;
}

bool line_reader_send(struct line_reader *ls, const char *fmt, ...)
{
	char line[LINE_READER_BYTES];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof line - 1)
		return false;
	line[n++] = '\n';
	return send(ls->fd, line, (size_t)n, MSG_NOSIGNAL) == n;
}

void line_reader_send_all(struct line_reader *ls, const void *data, size_t n)
{
	ls->out = data;
	ls->n_out = n;
	poll_for(ls);
}

int line_reader_take_fd(struct line_reader *ls)
{
	ls->gone = true;
	uv_poll_stop(&ls->poll);
	uv_close((uv_handle_t *)&ls->poll, on_poll_closed);
	return fd_take(&ls->fd);
}

void line_reader_free(struct line_reader *ls)
{
	int fd;

	if (ls == NULL)
		return;
	fd = line_reader_take_fd(ls);
	fd_close(&fd);
}
