/* Bytes that the next hop does not take are written to a file: from the loop, normally into the page cache;
 * after a slow write, for a while on another thread. They are read back from the loop if the page cache has
 * them (with preadv2(RWF_NOWAIT), hence copied: splice(2) has no such flag), else on another thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/list.h"
#include "core/units.h"
#include "net/splice_impl.h"

#define SLOW_WRITE_NS (50 * NS_PER_MS)
#define SLOW_FOR_NS (5 * NS_PER_S)

static void write_file(struct file_io *c)
{
	loff_t at = c->at;

	do
		c->result = splice(c->lane->pipe[0], NULL, spool_fd(c->lane->spool), &at, c->n, SPLICE_F_MOVE);
	while (c->result < 0 && errno == EINTR);
	c->sys = errno;
}

static void read_file(struct file_io *c, int flags)
{
	struct iovec v = { c->lane->out, c->n };

	do
		c->result = fd_preadv2(spool_fd(c->lane->spool), &v, 1, c->at, flags);
	while (c->result < 0 && errno == EINTR);
	c->sys = errno;
}

static int fail(struct lane *l, int code, const char *what, int sys)
{
	struct ptcp_err why;

	errno = sys;
	err_sys(&why, code, "%s", what);
	splice_end(l->splice, &why);
	return -1;
}

/* ---- Completion, on the loop ---- */

/* Bytes written; 0: the disk is full: the senders must wait. */
static ssize_t write_done(struct lane *l)
{
	const struct file_io *c = &l->write;

	if (c->result < 0 && (l->disk_full = c->sys == ENOSPC || c->sys == EDQUOT))
		return 0;
	if (c->result < 0)
		return fail(l, PTCP_EIO, "writing the spool", c->sys);
	l->in_pipe -= (size_t)c->result;
	l->splice->total_spooled_bytes += (size_t)c->result;
	spool_wrote(l->spool, (size_t)c->result);
	return c->result;
}

static ssize_t read_done(struct lane *l)
{
	const struct file_io *c = &l->read;

	if (c->result <= 0)
		return fail(l, PTCP_EIO, "reading the spool", c->result < 0 ? c->sys : EIO);
	l->out_at = 0;
	l->out_n = (size_t)c->result;
	if (spool_read(l->spool, l->out_n) < 0)
		return fail(l, PTCP_EIO, "releasing disk space of the spool", errno);
	return c->result;
}

static void complete(struct file_io *c, ssize_t (*finish)(struct lane *l))
{
	struct splice *s = c->lane->splice;

	c->submitted = false;
	s->n_submitted--;
	if (s->freed)
		splice_release(s);
	else if (!s->over && finish(c->lane) >= 0)
		splice_pump(s);
}

static void on_written(struct msg *m) { complete(CONTAINER_OF(m, struct file_io, done), write_done); }
static void on_read(struct msg *m) { complete(CONTAINER_OF(m, struct file_io, done), read_done); }

/* ---- I/O on another thread ---- */

static void run_write(struct splice_job *job)
{
	struct file_io *c = CONTAINER_OF(job, struct file_io, job);

	write_file(c);
	loop_post(c->lane->splice->loop, &c->done);
}

static void run_read(struct splice_job *job)
{
	struct file_io *c = CONTAINER_OF(job, struct file_io, job);

	read_file(c, 0);
	loop_post(c->lane->splice->loop, &c->done);
}

static void submit(struct file_io *c, void (*run)(struct splice_job *job), void (*done)(struct msg *m))
{
	struct splice *s = c->lane->splice;

	c->submitted = true;
	c->job.run = run;
	c->done.run = done;
	s->n_submitted++;
	s->o.spool->submit(s->o.spool->arg, &c->job);
}

/* ---- A lane ---- */

bool lane_has_spooled(const struct lane *l)
{
	return l->out_n > 0 || l->write.submitted || l->read.submitted ||
	    (l->spool != NULL && spool_bytes(l->spool) > 0);
}

bool lane_can_unspool(const struct lane *l)
{
	return l->out_n > 0 || (!l->read.submitted && l->spool != NULL && spool_bytes(l->spool) > 0);
}

static int open_spool(struct lane *l)
{
	const struct splice_spool *h = l->splice->o.spool;
	struct ptcp_err why;

	if (l->spool != NULL || spool_new(&l->spool, h->dir, h->quota->max_bytes, h->quota, &why) == 0)
		return 0;
	splice_end(l->splice, &why);
	return -1;
}

ssize_t lane_spool(struct lane *l)
{
	struct splice *s = l->splice;
	struct file_io *c = &l->write;
	struct mono start = mono_now(), end;
	size_t room;

	if (s->o.spool == NULL || l->in_pipe == 0 || l->disk_full || c->submitted)
		return 0;
	if (open_spool(l) < 0)
		return -1;
	if ((room = spool_room(l->spool, &c->at)) == 0)
		return 0;
	c->n = l->in_pipe < room ? l->in_pipe : room;
	if (start.ns < s->slow_until.ns) {
		submit(c, run_write, on_written);
		return 0;
	}
	write_file(c);
	end = mono_now();
	if (mono_diff_ns(end, start) > SLOW_WRITE_NS)
		s->slow_until = mono_add_ns(end, SLOW_FOR_NS);
	return write_done(l);
}

/* Reads the oldest spooled bytes into `out`. 1: done, 0: later, -1: the splice has ended. */
static int fetch(struct lane *l)
{
	struct file_io *c = &l->read;

	if (c->submitted || (c->n = spool_oldest(l->spool, &c->at)) == 0)
		return 0;
	if (c->n > SPLICE_SPOOL_OUT_BYTES)
		c->n = SPLICE_SPOOL_OUT_BYTES;
	if (l->out == NULL && (l->out = malloc(SPLICE_SPOOL_OUT_BYTES)) == NULL)
		return fail(l, PTCP_ENOMEM, "reading the spool", ENOMEM);
	read_file(c, RWF_NOWAIT);
	if (c->result < 0 && (c->sys == EAGAIN || c->sys == EOPNOTSUPP)) {
		submit(c, run_read, on_read);
		return 0;
	}
	return read_done(l) < 0 ? -1 : 1;
}

/* Once all spooled bytes were sent, bytes bypass the file again. */
static int end_spooling(struct lane *l)
{
	if (lane_has_spooled(l))
		return 0;
	free(l->out);
	l->out = NULL;
	return spool_reset(l->spool) < 0 ? fail(l, PTCP_EIO, "releasing disk space of the spool", errno) : 0;
}

ssize_t lane_unspool(struct lane *l)
{
	ssize_t n;
	int r;

	if (l->out_n == 0 && (r = fetch(l)) <= 0)
		return r;
	do
		n = send(l->to, l->out + l->out_at, l->out_n, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return fail(l, PTCP_EPEER, "connection lost", errno);
	l->disk_full = false;
	l->out_at += (size_t)n;
	l->out_n -= (size_t)n;
	return end_spooling(l) < 0 ? -1 : n;
}

void lane_close(struct lane *l)
{
	int i;

	for (i = 0; i < 2; i++)
		fd_close(&l->pipe[i]);
	spool_free(l->spool);
	free(l->out);
}
