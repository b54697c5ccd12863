#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "net/splice_impl.h"

#define PIPE_BYTES (512 << 10)
#define TURN_BYTES (2u << 20) /* moved in one direction per turn of the loop */

void splice_end(struct splice *s, const struct ptcp_err *why)
{
	if (s->over)
		return;
	s->over = true;
	uv_poll_stop(&s->poll[0]);
	uv_poll_stop(&s->poll[1]);
	timer_set(s->idle, MONO_NEVER);
	s->o.ended(s->o.arg, why);
}

static int cut(struct splice *s, int sys)
{
	struct ptcp_err why;

	errno = sys;
	err_sys(&why, PTCP_EPEER, "connection lost");
	splice_end(s, &why);
	return -1;
}

/* Up to n bytes without blocking; 0: end of input; -1 with errno. */
static ssize_t move(int from, int to, size_t n)
{
	ssize_t got;

	do
		got = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (got < 0 && errno == EINTR);
	return got;
}

/* From the pipe to the socket. Bytes; 0: the pipe is empty or the socket full; -1: the splice has ended. */
static ssize_t send_piped(struct lane *l)
{
	ssize_t n;

	if (l->in_pipe == 0)
		return 0;
	if ((n = move(l->pipe[0], l->to, l->in_pipe)) < 0)
		return errno == EAGAIN ? 0 : cut(l->splice, errno);
	l->in_pipe -= (size_t)n;
	l->disk_full = false;
	return n;
}

/* From the socket into the empty pipe. Bytes; 0: no input now, or its end; -1: the splice has ended. */
static ssize_t fill_pipe(struct lane *l)
{
	ssize_t n = move(l->from, l->pipe[1], PIPE_BYTES);

	if (n < 0)
		return errno == EAGAIN ? 0 : cut(l->splice, errno);
	l->in_pipe = (size_t)n;
	l->eof = n == 0;
	return n;
}

/* Moves bytes of one direction as far as possible; -1: the splice has ended. */
static int move_lane(struct splice *s, struct lane *l)
{
	ssize_t given, stored, taken;
	uint64_t moved = 0;
	bool dry = l->eof;

	do {
		given = stored = taken = 0;
		if ((!lane_has_spooled(l) && (given = send_piped(l)) < 0) ||
		    (given == 0 && (stored = lane_spool(l)) < 0) ||
		    (given == 0 && lane_has_spooled(l) && (given = lane_unspool(l)) < 0))
			return -1;
		if (l->in_pipe == 0 && !dry && moved < TURN_BYTES) {
			if ((taken = fill_pipe(l)) < 0)
				return -1;
			dry = taken == 0;
		}
		s->bytes += (size_t)given;
		moved += (size_t)given + (size_t)stored;
	} while (given + stored + taken > 0 && (moved < TURN_BYTES || l->in_pipe > 0)); /* leaves no pipe half full */
	if (l->eof && l->in_pipe == 0 && !l->shut && !lane_has_spooled(l)) {
		l->shut = true;
		shutdown(l->to, SHUT_WR);
	}
	return 0;
}

static void on_poll(uv_poll_t *p, int status, int events);

static void watch(struct splice *s, int i)
{
	const struct lane *in = &s->lane[i], *out = &s->lane[!i];
	bool can_write = lane_has_spooled(out) ? lane_can_unspool(out) : out->in_pipe > 0;
	int want = (in->eof || in->in_pipe > 0 ? 0 : UV_READABLE) | (can_write ? UV_WRITABLE : 0);

	poll_events(&s->poll[i], &s->events[i], want, on_poll);
}

void splice_pump(struct splice *s)
{
	if (move_lane(s, &s->lane[0]) < 0 || move_lane(s, &s->lane[1]) < 0)
		return;
	if (s->bytes + s->total_spooled_bytes != s->progress_bytes) {
		s->progress_bytes = s->bytes + s->total_spooled_bytes;
		s->moved = mono_now();
	}
	if (s->lane[0].shut && s->lane[1].shut) {
		splice_end(s, NULL);
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
	if (status < 0) { /* an error that libuv does not name; it has stopped polling */
		s->events[i] = 0;
		getsockopt(s->fd[i], SOL_SOCKET, SO_ERROR, &sys, &n);
		cut(s, sys != 0 ? sys : ECONNRESET);
	} else {
		splice_pump(s);
	}
}

/* Checks every o.idle_ns at least, since the limit changes with the spool. */
static void on_idle(void *arg)
{
	struct splice *s = arg;
	uint64_t max_ns = splice_spooled_bytes(s) > 0 ? s->o.spool->idle_ns : s->o.idle_ns;
	struct mono now = mono_now(), due = mono_add_ns(s->moved, max_ns), next = mono_add_ns(now, s->o.idle_ns);
	struct ptcp_err why;

	if (due.ns > now.ns) {
		timer_set(s->idle, due.ns < next.ns ? due : next);
		return;
	}
	err_set(&why, PTCP_ETIMEOUT, "no byte moved for %.3g s", (double)max_ns / 1e9);
	splice_end(s, &why);
}

/* ---- Lifetime ---- */

void splice_release(struct splice *s)
{
	if (s->n_open > 0 || s->n_submitted > 0)
		return;
	lane_close(&s->lane[0]);
	lane_close(&s->lane[1]);
	if (s->gone != NULL)
		s->gone(s->gone_arg);
	free(s);
}

static void on_poll_closed(uv_handle_t *h)
{
	struct splice *s = h->data;

	s->n_open--;
	splice_release(s);
}

void splice_free(struct splice *s, void (*gone)(void *arg), void *arg)
{
	unsigned i;

	if (s == NULL) {
		if (gone != NULL)
			gone(arg);
		return;
	}
	s->over = s->freed = true;
	s->gone = gone;
	s->gone_arg = arg;
	timer_free(s->idle);
	for (i = 0; i < s->n_open; i++)
		uv_close((uv_handle_t *)&s->poll[i], on_poll_closed);
	fd_close(&s->fd[0]); /* libuv no longer polls them */
	fd_close(&s->fd[1]);
	splice_release(s);
}

static int open_lane(struct splice *s, struct lane *l, int from, int to, struct ptcp_err *e)
{
	*l = (struct lane){ .splice = s, .from = from, .to = to, .pipe = { -1, -1 }, .write.lane = l, .read.lane = l };
	if (pipe2(l->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
		l->pipe[0] = l->pipe[1] = -1;
		return err_sys(e, PTCP_EIO, "creating a pipe");
	}
	fcntl(l->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* may exceed the user's limit; a smaller pipe works, too */
	return 0;
}

int splice_new(struct splice **out, struct loop *l, int fd[2], const struct splice_opts *o, struct ptcp_err *e)
{
	struct splice *s = calloc(1, sizeof *s);
	int i, r = 0;

	if (s == NULL) {
		fd_close(&fd[0]);
		fd_close(&fd[1]);
		return err_nomem(e);
	}
	*s = (struct splice){ .o = *o, .loop = l, .fd = { fd_take(&fd[0]), fd_take(&fd[1]) }, .moved = mono_now(),
		.lane = { { .pipe = { -1, -1 } }, { .pipe = { -1, -1 } } } };
	for (i = 0; i < 2 && r == 0; i++) {
		if ((r = open_lane(s, &s->lane[i], s->fd[i], s->fd[!i], e)) < 0)
			break;
		if (uv_poll_init(loop_uv(l), &s->poll[i], s->fd[i]) < 0)
			r = err_set(e, PTCP_EIO, "polling a socket failed");
		else
			s->n_open++;
		s->poll[i].data = s;
	}
	if (r < 0 || (r = timer_new(&s->idle, l, on_idle, s, e)) < 0) {
		splice_free(s, NULL, NULL);
		return r;
	}
	timer_set(s->idle, mono_add_ns(s->moved, o->idle_ns));
	watch(s, 0);
	watch(s, 1);
	*out = s;
	return 0;
}

uint64_t splice_bytes(const struct splice *s) { return s->bytes; }
uint64_t splice_total_spooled_bytes(const struct splice *s) { return s->total_spooled_bytes; }

uint64_t splice_spooled_bytes(const struct splice *s)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < 2; i++)
		n += s->lane[i].out_n + (s->lane[i].spool != NULL ? spool_bytes(s->lane[i].spool) : 0);
	return n;
}
