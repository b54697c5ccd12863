#include "net/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fd.h"
#include "net/loop_uv.h"

#define BUF_BYTES (64u << 10)

enum { IN, OUT, SOCK, ENDS };

/* One direction. */
struct copier {
	size_t start, end;
	bool eof, broken;       /* the source has ended; the destination has failed */
	uint8_t buf[BUF_BYTES];
};

struct bridge {
	uv_poll_t poll[ENDS];
	int fd[ENDS], flags[ENDS], events[ENDS];
	unsigned n_open;
	bool ended_called;
	void (*ended)(void *arg);
	void *arg;
	struct copier inward, outward;
};

static bool again(void) { return errno == EAGAIN || errno == EINTR; }

/* Copies as far as possible without waiting. */
static void copy(struct copier *l, int from, int to)
{
	ssize_t n;

	while (!l->broken) {
		if (l->start == l->end) {
			if (l->eof)
				return;
			n = read(from, l->buf, sizeof l->buf);
			if (n < 0 && again())
				return;
			l->start = 0;
			l->end = n > 0 ? (size_t)n : 0;
			l->eof = n <= 0;
		} else {
			n = write(to, l->buf + l->start, l->end - l->start);
			if (n < 0 && again())
				return;
			l->broken = n < 0;
			l->start += n > 0 ? (size_t)n : 0;
		}
	}
}

static void on_poll(uv_poll_t *p, int status, int events);

static void watch(struct bridge *b, int i, int want)
{
	poll_events(&b->poll[i], &b->events[i], want, on_poll);
}

static bool wants_input(const struct copier *l) { return !l->eof && !l->broken && l->start == l->end; }
static bool wants_room(const struct copier *l) { return !l->broken && l->start < l->end; }

static void pump(struct bridge *b)
{
	bool over;

	copy(&b->inward, b->fd[IN], b->fd[SOCK]);
	copy(&b->outward, b->fd[SOCK], b->fd[OUT]);
	watch(b, IN, wants_input(&b->inward) ? UV_READABLE : 0);
	watch(b, OUT, wants_room(&b->outward) ? UV_WRITABLE : 0);
	watch(b, SOCK, (wants_input(&b->outward) ? UV_READABLE : 0) | (wants_room(&b->inward) ? UV_WRITABLE : 0));
	over = (b->inward.eof && b->inward.start == b->inward.end) || b->outward.broken;
	if (!over || b->ended_called)
		return;
	b->ended_called = true;
	shutdown(b->fd[SOCK], SHUT_WR);
	b->ended(b->arg);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	(void)status; /* read() or write() reports the error */
	(void)events;
	pump(p->data);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct bridge *b = h->data;

	if (--b->n_open == 0)
		free(b);
}

void bridge_free(struct bridge *b)
{
	unsigned i, n;

	if (b == NULL)
		return;
	copy(&b->outward, b->fd[SOCK], b->fd[OUT]); /* the last bytes */
	fcntl(b->fd[IN], F_SETFL, b->flags[IN]);
	fcntl(b->fd[OUT], F_SETFL, b->flags[OUT]);
	for (i = 0, n = b->n_open; i < n; i++)
		uv_close((uv_handle_t *)&b->poll[i], on_poll_closed);
	fd_close(&b->fd[SOCK]); /* libuv no longer polls the socket */
	if (n == 0)
		free(b);
}

int bridge_new(struct bridge **out, struct loop *l, int in, int out_fd, int *fd,
    void (*ended)(void *arg), void *arg, struct ptcp_err *e)
{
	struct bridge *b = calloc(1, sizeof *b);
	int pair[2], r = 0;
	unsigned i;

	if (b == NULL)
		return err_nomem(e);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		free(b);
		return err_sys(e, PTCP_EIO, "creating a socket pair");
	}
	b->fd[IN] = in;
	b->fd[OUT] = out_fd;
	b->fd[SOCK] = pair[0];
	b->ended = ended;
	b->arg = arg;
	for (i = 0; i < ENDS; i++)
		b->flags[i] = fcntl(b->fd[i], F_GETFL);
	for (i = 0; i < ENDS && r == 0; i++) {
		if ((r = uv_poll_init(loop_uv(l), &b->poll[i], b->fd[i])) == 0)
			b->n_open++;
		b->poll[i].data = b;
	}
	if (r < 0) {
		fd_close(&pair[1]);
		bridge_free(b);
		return err_set(e, PTCP_EUSAGE, "standard input and output: not pipes or sockets: %s (ptcp starts this "
		    "command itself, through ssh)", uv_strerror(r));
	}
	watch(b, IN, UV_READABLE);
	watch(b, SOCK, UV_READABLE);
	*fd = fd_take(&pair[1]);
	*out = b;
	return 0;
}
