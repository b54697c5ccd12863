#include "session/stream_impl.h"

#include <stdlib.h>

#include "core/err.h"
#include "net/sock.h"

/* ---- On the control thread ---- */

static void tell_lost(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lost);

	s->o.ops->lost(s->o.arg, s, &s->why);
}

static void tell_gone(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, gone);

	s->o.ops->gone(s->o.arg, s);
}

/* ---- On the worker's ---- */

void stream_fail(struct stream *s, const struct ptcp_err *why)
{
	if (s->told_lost || s->stopping)
		return;
	s->told_lost = true;
	s->why = *why;
	s->lost.run = tell_lost;
	loop_post(s->o.host->control, &s->lost);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct stream *s = arg;
	struct ptcp_err closed;

	s->closed = mono_now();
	if (why == NULL) {
		err_set(&closed, PTCP_EPEER, "the peer closed the connection");
		why = &closed;
	}
	stream_fail(s, why);
}

/* A sending stream hears nothing from its peer, but reads so as to notice the end. */
static void on_unwanted(void *arg)
{
	struct stream *s = arg;
	struct ptcp_err why;
	uint8_t byte;

	if (chan_read(s->chan, &byte, 1) > 0) {
		err_set(&why, PTCP_EPROTO, "unexpected data on a sending stream");
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	}
}

static const struct chan_ops send_ops = {
	.readable = on_unwanted, .writable = stream_send_writable, .closed = on_closed
};
static const struct chan_ops flooding_ops = {
	.readable = on_unwanted, .writable = stream_flood_writable, .closed = stream_flood_closed
};
static const struct chan_ops receive_ops = { .readable = stream_recv_readable, .closed = on_closed };

static void on_start(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, start);
	const struct chan_ops *ops = s->o.intake != NULL ? &receive_ops :
	    s->o.flood_data != NULL ? &flooding_ops : &send_ops;
	struct ptcp_err why;

	if (chan_attach(s->chan, s->loop, ops, s, &why) < 0)
		stream_fail(s, &why);
}

/* ---- The rate ---- */

static void on_paced(void *arg)
{
	struct stream *s = arg;

	if (s->stopping || s->told_lost)
		return;
	if (s->o.intake != NULL)
		stream_recv_go_on(s);
	else if (s->o.flood_data != NULL)
		stream_flood_writable(s);
	else
		stream_send_writable(s);
}

static void come_back(struct stream *s, struct mono at)
{
	struct ptcp_err why;

	if (s->pacing == NULL && timer_new(&s->pacing, s->loop, on_paced, s, &why) < 0)
		stream_fail(s, &why);
	else
		timer_set(s->pacing, at);
}

size_t stream_leave(struct stream *s, size_t want)
{
	struct pacer *p;
	struct mono at;
	unsigned i;

	for (i = 0; i < PACES; i++) {
		p = atomic_load_explicit(&s->pacer[i], memory_order_relaxed);
		if (p == NULL || !pacer_limits(p))
			continue;
		if (s->leave[i] == 0 && (s->leave[i] = pacer_take(p, mono_now(), &at)) == 0) {
			come_back(s, at);
			return 0;
		}
		if (s->leave[i] < want)
			want = s->leave[i];
	}
	return want;
}

void stream_took(struct stream *s, size_t n)
{
	unsigned i;

	for (i = 0; i < PACES; i++)
		s->leave[i] -= n < s->leave[i] ? n : s->leave[i];
	atomic_fetch_add_explicit(&s->moved, n, memory_order_relaxed);
}

/* ---- Its end ---- */

void stream_try_gone(struct stream *s)
{
	if (!s->stopping || s->n_io > 0 || s->flood.posted || s->told_gone)
		return;
	s->told_gone = true;
	s->gone.run = tell_gone;
	loop_post(s->o.host->control, &s->gone);
}

static void look(struct stream *s)
{
	struct tcpinfo i;

	if (s->chan != NULL && tcpinfo_read(&i, chan_fd(s->chan)) == 0)
		atomic_store(&s->retransmits, i.retransmits);
}

static void on_look(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, look);

	look(s);
	atomic_store(&s->looking, false);
}

static void on_stop(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, stop);

	s->stopping = true;
	look(s);
	chan_free(s->chan);
	s->chan = NULL;
	timer_free(s->waiting);
	timer_free(s->pacing);
	s->waiting = s->pacing = NULL;
	stream_try_gone(s);
}

void stream_io_done(struct stream *s)
{
	s->n_io--;
	atomic_fetch_sub(&s->on_disk, 1);
	stream_try_gone(s);
}

/* ---- On the control thread ---- */

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e)
{
	struct stream *s = calloc(1, sizeof *s);
	unsigned i;

	if (s == NULL) {
		chan_free(o->chan);
		return err_nomem(e);
	}
	s->o = *o;
	s->chan = o->chan;
	s->loop = o->host->worker[o->worker % o->host->n_workers];
	atomic_init(&s->pacer[PACE_HOST], o->intake != NULL ? &o->host->pacing.in : &o->host->pacing.out);
	atomic_init(&s->pacer[PACE_SESSION], o->pacer);
	atomic_init(&s->pacer[PACE_SHARED], NULL);
	s->last = &s->first;
	atomic_init(&s->on_disk, 0);
	atomic_init(&s->retransmits, 0);
	atomic_init(&s->looking, false);
	atomic_init(&s->moved, 0);
	for (i = 0; i < STREAM_JOBS; i++) {
		s->jobs[i].stream = s;
		s->jobs[i].next = s->free_jobs;
		s->free_jobs = &s->jobs[i];
	}
	chan_detach(s->chan);
	s->start.run = on_start;
	loop_post(s->loop, &s->start);
	*out = s;
	return 0;
}

unsigned stream_number(const struct stream *s)
{
	return s->o.number;
}

unsigned stream_path(const struct stream *s) { return s->o.path; }

uint64_t stream_retransmits(struct stream *s)
{
	if (!s->stop_sent && !atomic_exchange(&s->looking, true)) {
		s->look.run = on_look;
		loop_post(s->loop, &s->look);
	}
	return atomic_load(&s->retransmits);
}

void stream_share(struct stream *s, struct pacer *p)
{
	atomic_store_explicit(&s->pacer[PACE_SHARED], p, memory_order_relaxed);
}

bool stream_on_disk(const struct stream *s)
{
	return atomic_load(&s->on_disk) > 0;
}

uint64_t stream_moved(const struct stream *s)
{
	return atomic_load_explicit(&s->moved, memory_order_relaxed);
}

void stream_job_sent(struct msg *m)
{
	struct stream_job *job = CONTAINER_OF(m, struct stream_job, msg);
	struct stream *s = job->stream;
	unsigned i;

	s->o.ops->sent(s->o.arg, s, job);
	for (i = 0; i < job->job.n; i++) {
		source_unref(job->source[i]);
		free(job->why[i]);
		job->why[i] = NULL;
	}
	job->job.n = 0;
	job->next = s->free_jobs;
	s->free_jobs = job;
	s->o.ops->idle(s->o.arg, s);
}

struct stream_job *stream_free_job(struct stream *s)
{
	struct stream_job *job = s->stop_sent ? NULL : s->free_jobs;

	if (job != NULL)
		s->free_jobs = job->next;
	return job;
}

void stream_send(struct stream *s, struct stream_job *job)
{
	if (job->job.n == 0) { /* not needed after all */
		job->next = s->free_jobs;
		s->free_jobs = job;
		return;
	}
	job->msg.run = stream_send_queue;
	loop_post(s->loop, &job->msg);
}

void stream_flood(struct stream *s, uint64_t bytes)
{
	(void)atomic_load(&s->flood.taken); /* the peer has what was taken before: it is ours again */
	s->flood.more = bytes;
	s->flood.start.run = stream_flood_start;
	loop_post(s->loop, &s->flood.start);
}

bool stream_flooded(const struct stream *s, struct mono *from, struct mono *until)
{
	*from = s->flood.from;
	*until = s->flood.until;
	return s->flood.whole;
}

uint64_t stream_taken(const struct stream *s, struct mono *from, struct mono *until)
{
	*from = s->began;
	*until = s->closed;
	return s->taken;
}

void stream_stop(struct stream *s)
{
	if (s->stop_sent)
		return;
	s->stop_sent = true;
	s->stop.run = on_stop;
	loop_post(s->loop, &s->stop);
}

void stream_free(struct stream *s)
{
	unsigned i, k;

	if (s == NULL)
		return;
	for (i = 0; i < STREAM_JOBS; i++) {
		for (k = 0; k < s->jobs[i].job.n; k++) {
			source_unref(s->jobs[i].source[k]);
			free(s->jobs[i].why[k]);
		}
		free(s->jobs[i].buf);
	}
	stream_recv_fini(s);
	free(s);
}
