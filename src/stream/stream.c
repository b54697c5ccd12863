#include "stream/stream_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/fd.h"
#include "net/sock.h"
#include "stream/balance.h"

/* ---- Worker thread, except for run_lost() and run_gone() ---- */

static void run_lost(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, lost);

	s->o.ops->lost(s->o.arg, s, &s->why);
	fd_close(&s->tcp.tap); /* a duplicate would keep the connection open */
}

static struct mtu_lost lost_conn(const struct stream *s)
{
	struct tcpinfo i;

	if (s->chan == NULL || tcpinfo_read(&i, chan_fd(s->chan)) < 0)
		return (struct mtu_lost){ 0 };
	return (struct mtu_lost){ i.acked_bytes + i.received_bytes, s->o.files != NULL ? i.no_data_s : i.silent_s };
}

void stream_fail(struct stream *s, const struct ptcp_err *why)
{
	if (s->lost_posted || s->stopping)
		return;
	s->lost_posted = true;
	s->lost_conn = lost_conn(s);
	s->why = *why;
	s->lost.run = run_lost;
	loop_post(s->o.context->control, &s->lost);
}

static void on_stream_closed(void *arg, const struct ptcp_err *why)
{
	struct stream *s = arg;
	struct ptcp_err closed;

	s->closed_at = mono_now();
	s->gen.complete = s->gen.from.ns > 0 && s->gen.left_bytes == 0;
	if (why == NULL) {
		err_set(&closed, PTCP_EPEER, "the peer closed the connection");
		why = &closed;
	}
	stream_fail(s, why);
}

/* The answer to JOIN; a refusal costs only the stream. False: another frame. */
static bool take_joined(struct stream *s)
{
	struct wire_header h;
	struct ptcp_err why;

	s->joined_got += chan_read(s->chan, s->joined + s->joined_got, sizeof s->joined - s->joined_got);
	if (s->joined_got < sizeof s->joined)
		return true;
	s->o.joining = false;
	if (wire_header_decode(&h, s->joined, &why) < 0)
		return false;
	if (h.type == WIRE_ERROR) {
		err_set(&why, PTCP_EREFUSED, "the peer refused the data connection");
		chan_pause(s->chan, true);
		stream_fail(s, &why);
		return true;
	}
	return h.type == WIRE_JOINED && h.length == 0;
}

/* The peer sends no data on this stream, except JOINED; reading detects the end of the connection. */
static void on_unexpected(void *arg)
{
	struct stream *s = arg;
	struct ptcp_err why;
	uint8_t byte;

	if (s->o.joining ? !take_joined(s) : !s->lost_posted && chan_read(s->chan, &byte, 1) > 0) {
		err_set(&why, PTCP_EPROTO, "unexpected data on a sending stream");
		chan_pause(s->chan, true);
		stream_fail(s, &why);
	}
}

static const struct chan_ops send_ops = {
	.readable = on_unexpected, .writable = stream_send_writable, .closed = on_stream_closed
};
static const struct chan_ops generate_ops = {
	.readable = on_unexpected, .writable = stream_generate_writable, .closed = on_stream_closed
};
static const struct chan_ops receive_ops = { .readable = stream_recv_readable, .closed = on_stream_closed };

static void on_start(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, start);
	struct ptcp_err why;
	struct tcpinfo i;

	if (s->o.packing != NULL && s->o.files == NULL)
		packing_begin(s->o.packing, tcpinfo_read(&i, chan_fd(s->chan)) == 0 ? i.min_rtt_s : 0);
	if (chan_attach(s->chan, s->loop, s->chan_ops, s, &why) < 0)
		stream_fail(s, &why);
}

/* A rate limit pauses a receiver only between two reads, never while a block is being written. */
static void on_paced(void *arg)
{
	struct stream *s = arg;

	s->pace.waits = false;
	if (s->stopping || s->lost_posted)
		return;
	if (s->o.files != NULL)
		chan_pause(s->chan, false);
	else
		s->chan_ops->writable(s);
}

size_t stream_allowance(struct stream *s, size_t want)
{
	struct ptcp_err why;
	struct pacer *p;
	struct mono at;
	unsigned i;

	for (i = 0; i < PACES; i++) {
		p = atomic_load_explicit(&s->pace.pacer[i], memory_order_relaxed);
		if (p == NULL || !pacer_limits(p))
			continue;
		if (s->pace.allowance[i] == 0 && (s->pace.allowance[i] = pacer_take(p, &s->pace.turn[i],
		    mono_now(), &at)) == 0) {
			if (s->pace.timer == NULL && timer_new(&s->pace.timer, s->loop, on_paced, s, &why) < 0)
				stream_fail(s, &why);
			else
				timer_set(s->pace.timer, at);
			s->pace.waits = true;
			return 0;
		}
		if (s->pace.allowance[i] < want)
			want = s->pace.allowance[i];
	}
	return want;
}

void stream_charge(struct stream *s, size_t n)
{
	unsigned i;

	for (i = 0; i < PACES; i++)
		s->pace.allowance[i] -= n < s->pace.allowance[i] ? n : s->pace.allowance[i];
	atomic_fetch_add_explicit(&s->moved, n, memory_order_relaxed);
}

static void on_arrive(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, worker.arrive);
	struct ptcp_err why;

	atomic_store(&s->worker.moving, false);
	if (chan_attach(s->chan, s->loop, s->chan_ops, s, &why) < 0)
		stream_fail(s, &why);
	else if (s->pace.waits)
		on_paced(s);
}

/* Between two callbacks only the channel and the timers belong to a loop; buffers may return to another loop. */
static void on_move(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, worker.move);

	if (s->stopping || s->lost_posted || s->lock.write != NULL) {
		atomic_store(&s->worker.moving, false);
		return;
	}
	chan_detach(s->chan);
	timer_free(s->pace.timer);
	timer_free(s->lock.timer);
	s->pace.timer = s->lock.timer = NULL;
	s->loop = s->o.context->worker[s->worker.to];
	atomic_store(&s->worker.number, s->worker.to);
	s->worker.arrive.run = on_arrive;
	mailbox_move(s->box, s->loop, &s->worker.arrive);
}

static void run_gone(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, gone);

	s->o.ops->gone(s->o.arg, s);
}

void stream_try_gone(struct stream *s)
{
	if (!s->stopping || s->n_io > 0 || s->gen.turn_posted || s->gone_posted || !stream_memory_fini(s))
		return;
	s->gone_posted = true;
	loop_buffers_trim(s->loop);
	s->gone.run = run_gone;
	loop_post(s->o.context->control, &s->gone);
}

void stream_io_begin(struct stream *s)
{
	if (s->n_io++ == 0)
		atomic_store(&s->waits.since_ns, mono_now().ns);
	atomic_fetch_add(&s->waits.on_disk, 1);
}

void stream_io_done(struct stream *s)
{
	if (--s->n_io == 0)
		atomic_fetch_add(&s->waits.sum_ns, mono_now().ns - atomic_exchange(&s->waits.since_ns, 0));
	atomic_fetch_sub(&s->waits.on_disk, 1);
	stream_try_gone(s);
}

static void sample_retransmits(struct stream *s)
{
	struct tcpinfo i;

	if (s->chan != NULL && tcpinfo_read(&i, chan_fd(s->chan)) == 0)
		atomic_store(&s->retransmits, i.retransmits);
}

static void on_sample(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, sample);

	sample_retransmits(s);
	atomic_store(&s->sampling, false);
}

static void on_check(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, check.msg);
	struct ptcp_err why;
	struct tcpinfo i;

	if (s->chan != NULL && tcpinfo_read(&i, chan_fd(s->chan)) == 0 && (i.unacked || !s->check.unacked) &&
	    i.silent_s - 3 * i.rtt_s >= (double)s->check.silent_ns / 1e9) {
		sock_reset_on_close(chan_fd(s->chan));
		err_set(&why, PTCP_ETIMEOUT, "no answer from the peer's host on this connection");
		stream_fail(s, &why);
	}
	atomic_store(&s->check.posted, false);
}

static void on_stop(struct msg *m)
{
	struct stream *s = CONTAINER_OF(m, struct stream, stop);

	s->stopping = true;
	sample_retransmits(s);
	if (s->resets && s->chan != NULL)
		sock_reset_on_close(chan_fd(s->chan));
	chan_free(s->chan);
	s->chan = NULL;
	timer_free(s->lock.timer);
	timer_free(s->pace.timer);
	s->lock.timer = s->pace.timer = NULL;
	stream_memory_stop(s);
	stream_try_gone(s);
}

/* ---- Control thread ---- */

int stream_new(struct stream **out, const struct stream_opts *o, struct ptcp_err *e)
{
	struct stream *s = NULL;
	unsigned i;
	int r;

	if ((r = memory_charge(o->memory, STREAM_BYTES, e)) == 0 && (s = calloc(1, sizeof *s)) != NULL)
		s->o = *o;
	if (s == NULL || (o->kind == NULL && balance_join(s) < 0)) {
		if (r == 0)
			memory_release(o->memory, STREAM_BYTES);
		free(s);
		chan_free(o->chan);
		return r < 0 ? r : err_nomem(e);
	}
	s->chan = o->chan;
	s->chan_ops = o->files != NULL ? &receive_ops : o->generate_data != NULL ? &generate_ops : &send_ops;
	atomic_init(&s->pace.pacer[PACE_HOST], o->files != NULL ? &o->context->pacing.in : &o->context->pacing.out);
	atomic_init(&s->pace.pacer[PACE_SESSION], o->pacer);
	atomic_init(&s->pace.pacer[PACE_SHARED], NULL);
	s->last = &s->first;
	s->tcp.tap = o->tapped ? fcntl(chan_fd(s->chan), F_DUPFD_CLOEXEC, 0) : -1;
	if (o->kind == NULL)
		stream_memory_init(s);
	atomic_init(&s->waits.on_disk, 0);
	atomic_init(&s->waits.since_ns, 0);
	atomic_init(&s->waits.sum_ns, 0);
	atomic_init(&s->waits.writing_since_ns, 0);
	atomic_init(&s->retransmits, 0);
	atomic_init(&s->sampling, false);
	atomic_init(&s->check.posted, false);
	atomic_init(&s->moved, 0);
	for (i = 0; i < STREAM_JOBS; i++) {
		s->jobs[i].stream = s;
		s->jobs[i].next = s->free_jobs;
		s->free_jobs = &s->jobs[i];
	}
	*out = s;
	if (o->kind != NULL)
		return 0;
	chan_detach(s->chan);
	s->worker.move.run = on_move;
	s->start.run = on_start;
	mailbox_post(s->box, &s->start);
	return 0;
}

unsigned stream_number(const struct stream *s) { return s->o.number; }
unsigned stream_path(const struct stream *s) { return s->o.path; }
int stream_tap(const struct stream *s) { return s->tcp.tap; }

/* A write on the worker counts once it takes longer than any other work there: a disk wakes up, a server of files
 * hangs. */
bool stream_on_disk(const struct stream *s)
{
	uint64_t since = atomic_load_explicit(&s->waits.writing_since_ns, memory_order_relaxed);

	return atomic_load(&s->waits.on_disk) > 0 || (since != 0 && mono_now().ns - since > NS_PER_S / 4);
}

uint64_t stream_waited_ns(const struct stream *s)
{
	uint64_t since = atomic_load(&s->waits.since_ns), now = mono_now().ns;

	return atomic_load(&s->waits.sum_ns) + (since != 0 && since < now ? now - since : 0);
}

uint64_t stream_moved(const struct stream *s) { return atomic_load_explicit(&s->moved, memory_order_relaxed); }

uint64_t stream_retransmits(struct stream *s)
{
	if (s->o.kind == NULL && !s->stop_posted && !atomic_exchange(&s->sampling, true)) {
		s->sample.run = on_sample;
		mailbox_post(s->box, &s->sample);
	}
	return atomic_load(&s->retransmits);
}

const struct mtu_lost *stream_lost(const struct stream *s) { return &s->lost_conn; }

void stream_check(struct stream *s, uint64_t silent_ns, bool unacked)
{
	if (s->stop_posted || (s->o.kind == NULL && atomic_exchange(&s->check.posted, true)))
		return;
	if (s->o.kind != NULL) {
		s->o.kind->check(s, silent_ns, unacked);
		return;
	}
	s->check.silent_ns = silent_ns;
	s->check.unacked = unacked;
	s->check.msg.run = on_check;
	mailbox_post(s->box, &s->check.msg);
}

void stream_share(struct stream *s, struct pacer *p)
{
	atomic_store_explicit(&s->pace.pacer[PACE_SHARED], p, memory_order_relaxed);
}

static void job_clear(struct stream_job *job)
{
	unsigned i;

	for (i = 0; i < job->job.n; i++) {
		source_unref(job->source[i]);
		free(job->why[i]);
		job->why[i] = NULL;
	}
	job->job.n = 0;
}

void stream_job_sent(struct msg *m)
{
	struct stream_job *job = CONTAINER_OF(m, struct stream_job, msg);
	struct stream *s = job->stream;

	s->o.ops->sent(s->o.arg, s, job);
	job_clear(job);
	job->next = s->free_jobs;
	s->free_jobs = job;
	s->o.ops->idle(s->o.arg, s);
}

struct stream_job *stream_free_job(struct stream *s) { return s->stop_posted ? NULL : s->free_jobs; }

void stream_send(struct stream *s)
{
	struct stream_job *job = s->free_jobs;

	s->free_jobs = job->next;
	if (s->o.kind != NULL) {
		memset(job->failed, 0, sizeof job->failed);
		job->next = NULL;
		*s->last = job;
		s->last = &job->next;
		s->o.kind->send(s, job);
		return;
	}
	job->msg.run = stream_send_queue;
	mailbox_post(s->box, &job->msg);
}

void stream_generate(struct stream *s, uint64_t bytes)
{
	s->gen.left_bytes = bytes; /* the worker reads it from the start on */
	s->gen.start.run = stream_generate_start;
	mailbox_post(s->box, &s->gen.start);
}

bool stream_generated(const struct stream *s, struct mono *from, struct mono *until)
{
	*from = s->gen.from;
	*until = s->closed_at;
	return s->gen.complete;
}

uint64_t stream_received(const struct stream *s, struct mono *from, struct mono *until)
{
	*from = s->first_at;
	*until = s->closed_at;
	return s->received_bytes;
}

void stream_stop(struct stream *s, bool reset)
{
	if (s->stop_posted)
		return;
	s->resets = reset;
	s->stop_posted = true;
	fd_close(&s->tcp.tap);
	if (s->o.kind != NULL) {
		s->o.kind->stop(s, reset);
		return;
	}
	s->stop.run = on_stop;
	mailbox_post(s->box, &s->stop);
}

void stream_free(struct stream *s)
{
	unsigned i;

	if (s == NULL)
		return;
	if (s->o.kind != NULL)
		s->o.kind->forget(s);
	for (i = 0; i < STREAM_JOBS; i++) {
		job_clear(&s->jobs[i]);
		free(s->jobs[i].buf);
	}
	stream_recv_fini(s);
	if (s->o.kind == NULL)
		balance_leave(s);
	memory_release(s->o.memory, STREAM_BYTES);
	free(s);
}

/* ---- Streams on other hosts ---- */

void *stream_remote(const struct stream *s) { return s->o.remote; }
struct stream_job *stream_oldest_job(struct stream *s) { return s->first; }

void stream_job_done(struct stream *s)
{
	struct stream_job *job = s->first;

	if ((s->first = job->next) == NULL)
		s->last = &s->first;
	stream_job_sent(&job->msg);
}

const struct stream_kind *stream_kind_of(const struct stream *s) { return s->o.kind; }

void stream_deliver(struct stream *s, struct stream_results *results) { s->o.ops->received(s->o.arg, s, results); }

void stream_observe(struct stream *s, uint64_t moved, bool on_disk, const struct tcpinfo *tcp)
{
	struct mono now = mono_now();

	atomic_store(&s->moved, moved);
	atomic_store(&s->waits.on_disk, on_disk);
	atomic_store(&s->retransmits, tcp->retransmits);
	s->tcp.before = s->tcp.known ? s->tcp.last : *tcp;
	s->tcp.before_at = s->tcp.known ? s->tcp.at : now;
	s->tcp.last = *tcp;
	s->tcp.at = now;
	s->tcp.known = true;
}

/* One report late, so that samples between reports have their part of the increase: a sample without a report, and one
 * with two, would look like a pause and a burst. */
bool stream_tcpinfo(const struct stream *s, struct tcpinfo *out)
{
	double since_ns, whole_ns;

	if (s->tcp.tap >= 0)
		return tcpinfo_read(out, s->tcp.tap) == 0;
	if (!s->tcp.known)
		return false;
	since_ns = (double)mono_diff_ns(mono_now(), s->tcp.at);
	whole_ns = (double)mono_diff_ns(s->tcp.at, s->tcp.before_at);
	tcpinfo_between(out, &s->tcp.before, &s->tcp.last, since_ns < whole_ns ? since_ns / whole_ns : 1);
	return true;
}

void stream_end(struct stream *s, const struct ptcp_err *why, const struct mtu_lost *conn)
{
	s->why = *why;
	s->lost_conn = *conn;
	s->o.ops->lost(s->o.arg, s, &s->why);
}

void stream_gone(struct stream *s) { s->o.ops->gone(s->o.arg, s); }
