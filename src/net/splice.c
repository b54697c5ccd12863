#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop_uv.h"

#define PIPE_BYTES (512 << 10)
#define TURN_BYTES (2u << 20) /* of one direction, before others have their turn */

/* One direction; a pipe holds what has been taken and not given on. */
struct lane {
	int from, to;
	int pipe[2];
	size_t held;
	bool eof, shut;         /* nothing more comes; the end has been carried on */
};

struct splice {
	uv_poll_t poll[2];
	int fd[2], events[2];
	unsigned n_open;
	struct lane lane[2];    /* from fd[i] to the other */
	struct timer *idle;
	uint64_t idle_ns, bytes;
	struct mono moved;
	bool over;
	void (*ended)(void *arg, const struct ptcp_err *why);
	void *arg;
};

static void end(struct splice *s, const struct ptcp_err *why)
{
	if (s->over)
		return;
	s->over = true;
	uv_poll_stop(&s->poll[0]);
	uv_poll_stop(&s->poll[1]);
	timer_set(s->idle, MONO_NEVER);
	s->ended(s->arg, why);
}

/* As much as can be had, which is 0 at the end of it; -1: nothing now, or errno says why. */
static ssize_t move(int from, int to, size_t n)
{
	ssize_t got;

	do
		got = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Moves what can be moved; 0, or an errno. */
static int carry(struct splice *s, struct lane *l)
{
	uint64_t until = s->bytes + TURN_BYTES;
	ssize_t n;

	while (l->held > 0 || (!l->eof && s->bytes < until)) {
		n = l->held > 0 ? move(l->pipe[0], l->to, l->held) : move(l->from, l->pipe[1], PIPE_BYTES);
		if (n < 0)
			return errno == EAGAIN ? 0 : errno;
		if (l->held > 0) {
			l->held -= (size_t)n;
			s->bytes += (size_t)n;
		} else {
			l->held = (size_t)n;
			l->eof = n == 0;
		}
	}
	if (l->eof && !l->shut) {
		l->shut = true;
		shutdown(l->to, SHUT_WR);
	}
	return 0;
}

static void on_poll(uv_poll_t *p, int status, int events);

static void watch(struct splice *s, int i)
{
	const struct lane *in = &s->lane[i], *out = &s->lane[!i];
	int want = (in->eof || in->held > 0 ? 0 : UV_READABLE) | (out->held > 0 ? UV_WRITABLE : 0);

	if (want == s->events[i])
		return;
	s->events[i] = want;
	if (want == 0)
		uv_poll_stop(&s->poll[i]);
	else
		uv_poll_start(&s->poll[i], want, on_poll);
}

static void fail(struct splice *s, int sys)
{
	struct ptcp_err why;

	errno = sys;
	err_sys(&why, PTCP_EPEER, "a connection was cut");
	end(s, &why);
}

static void pump(struct splice *s)
{
	uint64_t before = s->bytes;
	int i, sys;

	for (i = 0; i < 2; i++)
		if ((sys = carry(s, &s->lane[i])) != 0) {
			fail(s, sys);
			return;
		}
	if (s->bytes != before)
		s->moved = mono_now();
	if (s->lane[0].shut && s->lane[1].shut) {
		end(s, NULL);
		return;
	}
	watch(s, 0);
	watch(s, 1);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct splice *s = p->data;
	socklen_t n = sizeof(int);
	int i = p == &s->poll[1], sys = 0;

	(void)events;
	if (s->over)
		return;
	if (status < 0) { /* an error, libuv does not know which, and has stopped watching */
		s->events[i] = 0;
		getsockopt(s->fd[i], SOL_SOCKET, SO_ERROR, &sys, &n);
		fail(s, sys != 0 ? sys : ECONNRESET);
	} else {
		pump(s);
	}
}

static void on_idle(void *arg)
{
	struct splice *s = arg;
	struct mono due = mono_add_ns(s->moved, s->idle_ns);
	struct ptcp_err why;

	if (due.ns > mono_now().ns) {
		timer_set(s->idle, due);
		return;
	}
	err_set(&why, PTCP_ETIMEOUT, "nothing moved for %.3g s", (double)s->idle_ns / 1e9);
	end(s, &why);
}

/* ---- Making and freeing ---- */

static void on_poll_closed(uv_handle_t *h)
{
	struct splice *s = h->data;

	if (--s->n_open == 0)
		free(s);
}

static void close_fds(struct splice *s)
{
	int i, k;

	for (i = 0; i < 2; i++) {
		close(s->fd[i]);
		for (k = 0; k < 2; k++)
			if (s->lane[i].pipe[k] >= 0)
				close(s->lane[i].pipe[k]);
	}
}

void splice_free(struct splice *s)
{
	unsigned i, n;

	if (s == NULL)
		return;
	s->over = true;
	timer_free(s->idle);
	for (i = 0, n = s->n_open; i < n; i++)
		uv_close((uv_handle_t *)&s->poll[i], on_poll_closed);
	close_fds(s); /* libuv has forgotten them by now */
	if (n == 0)
		free(s);
}

static int open_lane(struct lane *l, struct ptcp_err *e)
{
	if (pipe2(l->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
		l->pipe[0] = l->pipe[1] = -1;
		return err_sys(e, PTCP_EIO, "making a pipe");
	}
	fcntl(l->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* where users may have so much; it works with less */
	return 0;
}

int splice_new(struct splice **out, struct loop *l, int a, int b, uint64_t idle_ns,
    void (*ended)(void *arg, const struct ptcp_err *why), void *arg, struct ptcp_err *e)
{
	struct splice *s = calloc(1, sizeof *s);
	int i, r = 0;

	if (s == NULL) {
		close(a);
		close(b);
		return err_nomem(e);
	}
	*s = (struct splice){ .fd = { a, b }, .idle_ns = idle_ns, .moved = mono_now(), .ended = ended, .arg = arg,
		.lane = { { a, b, { -1, -1 }, 0, false, false }, { b, a, { -1, -1 }, 0, false, false } } };
	for (i = 0; i < 2 && r == 0; i++) {
		if ((r = open_lane(&s->lane[i], e)) < 0)
			break;
		if (uv_poll_init(loop_uv(l), &s->poll[i], s->fd[i]) < 0)
			r = err_set(e, PTCP_EIO, "watching a socket");
		else
			s->n_open++;
		s->poll[i].data = s;
	}
	if (r < 0 || (r = timer_new(&s->idle, l, on_idle, s, e)) < 0) {
		splice_free(s);
		return r;
	}
	timer_set(s->idle, mono_add_ns(s->moved, idle_ns));
	watch(s, 0);
	watch(s, 1);
	*out = s;
	return 0;
}

uint64_t splice_bytes(const struct splice *s) { return s->bytes; }
