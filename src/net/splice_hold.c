/* What the next hop does not take goes to a file, into the page cache as a rule, from the loop; when that takes long the
 * disk pushes back, and for a while it is done on another thread. It is read back in the same way: from here if it is in
 * memory, which splice(2) cannot be asked for, so that it is copied. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/err.h"
#include "core/list.h"
#include "core/units.h"
#include "net/splice_impl.h"

#define OUT_BYTES (256u << 10)
#define SLOW_WRITE_NS (50 * NS_PER_MS)
#define SLOW_FOR_NS (5 * NS_PER_S)

static void write_file(struct chore *c)
{
	loff_t at = c->at;

	do
		c->result = splice(c->lane->pipe[0], NULL, spool_fd(c->lane->spool), &at, c->n, SPLICE_F_MOVE);
	while (c->result < 0 && errno == EINTR);
	c->sys = errno;
}

static void read_file(struct chore *c, int flags)
{
	struct iovec v = { c->lane->out, c->n };

	do
		c->result = preadv2(spool_fd(c->lane->spool), &v, 1, c->at, flags);
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

/* ---- Chores come back ---- */

/* Bytes written; 0: the disk is full, which is for those before to mend. */
static ssize_t wrote(struct lane *l)
{
	const struct chore *c = &l->write;

	if (c->result < 0 && (l->full = c->sys == ENOSPC || c->sys == EDQUOT))
		return 0;
	if (c->result < 0)
		return fail(l, PTCP_EIO, "holding what is to be passed on", c->sys);
	l->held -= (size_t)c->result;
	l->splice->stored_bytes += (size_t)c->result;
	spool_wrote(l->spool, (size_t)c->result);
	return c->result;
}

static ssize_t was_read(struct lane *l)
{
	const struct chore *c = &l->read;

	if (c->result <= 0)
		return fail(l, PTCP_EIO, "reading what is held", c->result < 0 ? c->sys : EIO);
	l->out_at = 0;
	l->out_n = (size_t)c->result;
	if (spool_read(l->spool, l->out_n) < 0)
		return fail(l, PTCP_EIO, "giving back the space of what was held", errno);
	return c->result;
}

/* On the loop. */
static void back(struct chore *c, ssize_t (*settle)(struct lane *l))
{
	struct splice *s = c->lane->splice;

	c->away = false;
	s->n_away--;
	if (s->freed)
		splice_let_go(s);
	else if (!s->over && settle(c->lane) >= 0)
		splice_pump(s);
}

static void on_written(struct msg *m) { back(CONTAINER_OF(m, struct chore, done), wrote); }
static void on_read(struct msg *m) { back(CONTAINER_OF(m, struct chore, done), was_read); }

/* ---- Chores elsewhere ---- */

static void write_elsewhere(struct splice_job *job)
{
	struct chore *c = CONTAINER_OF(job, struct chore, job);

	write_file(c);
	loop_post(c->lane->splice->loop, &c->done);
}

static void read_elsewhere(struct splice_job *job)
{
	struct chore *c = CONTAINER_OF(job, struct chore, job);

	read_file(c, 0);
	loop_post(c->lane->splice->loop, &c->done);
}

static void send_away(struct chore *c, void (*run)(struct splice_job *job), void (*done)(struct msg *m))
{
	struct splice *s = c->lane->splice;

	c->away = true;
	c->job.run = run;
	c->done.run = done;
	s->n_away++;
	s->o.hold->elsewhere(s->o.hold->arg, &c->job);
}

/* ---- A lane ---- */

bool lane_holds(const struct lane *l)
{
	return l->out_n > 0 || l->write.away || l->read.away || (l->spool != NULL && spool_bytes(l->spool) > 0);
}

bool lane_can_give(const struct lane *l)
{
	return l->out_n > 0 || (!l->read.away && l->spool != NULL && spool_bytes(l->spool) > 0);
}

static int open_spool(struct lane *l)
{
	const struct splice_hold *h = l->splice->o.hold;
	struct ptcp_err why;

	if (l->spool != NULL || spool_new(&l->spool, h->dir, h->room->most_bytes, h->room, &why) == 0)
		return 0;
	splice_end(l->splice, &why);
	return -1;
}

ssize_t lane_store(struct lane *l)
{
	struct splice *s = l->splice;
	struct chore *c = &l->write;
	struct mono start = mono_now(), end;
	size_t room;

	if (s->o.hold == NULL || l->held == 0 || l->full || c->away)
		return 0;
	if (open_spool(l) < 0)
		return -1;
	if ((room = spool_room(l->spool, &c->at)) == 0)
		return 0;
	c->n = l->held < room ? l->held : room;
	if (start.ns < s->slow_until.ns) {
		send_away(c, write_elsewhere, on_written);
		return 0;
	}
	write_file(c);
	end = mono_now();
	if (mono_diff_ns(end, start) > SLOW_WRITE_NS)
		s->slow_until = mono_add_ns(end, SLOW_FOR_NS);
	return wrote(l);
}

/* 1: it is in `out`, 0: it will be, -1: it has failed. */
static int fetch(struct lane *l)
{
	struct chore *c = &l->read;

	if (c->away || (c->n = spool_oldest(l->spool, &c->at)) == 0)
		return 0;
	if (c->n > OUT_BYTES)
		c->n = OUT_BYTES;
	if (l->out == NULL && (l->out = malloc(OUT_BYTES)) == NULL)
		return fail(l, PTCP_ENOMEM, "reading what is held", ENOMEM);
	read_file(c, RWF_NOWAIT);
	if (c->result < 0 && (c->sys == EAGAIN || c->sys == EOPNOTSUPP)) {
		send_away(c, read_elsewhere, on_read);
		return 0;
	}
	return was_read(l) < 0 ? -1 : 1;
}

/* All has been given on: from now on past the file again. */
static int rest(struct lane *l)
{
	if (lane_holds(l))
		return 0;
	free(l->out);
	l->out = NULL;
	return spool_rest(l->spool) < 0 ? fail(l, PTCP_EIO, "giving back the space of what was held", errno) : 0;
}

ssize_t lane_give(struct lane *l)
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
		return fail(l, PTCP_EPEER, "a connection was cut", errno);
	l->full = false;
	l->out_at += (size_t)n;
	l->out_n -= (size_t)n;
	return rest(l) < 0 ? -1 : n;
}

void lane_close(struct lane *l)
{
	int i;

	for (i = 0; i < 2; i++)
		if (l->pipe[i] >= 0)
			close(l->pipe[i]);
	spool_free(l->spool);
	free(l->out);
}
