#include "engine/job_frames.h"

#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"

#define REQUEST_NS (10 * NS_PER_S)
#define LINGER_NS (2 * NS_PER_S)
#define QUERY_TIMEOUTS 12u
#define PAUSE_NS (120 * NS_PER_S)
#define MAX_BPS 1e14 /* no link carries more */

void job_frames_await(struct job_frames *j, struct mono now)
{
	j->in.in.memory = j->request.memory = j->out.b.memory = j->memory;
	j->state = JOB_FRAMES_AWAIT_REQUEST;
	j->progressed = now;
}

void job_frames_requested(struct job_frames *j, enum job_frames_state state, struct mono now)
{
	j->state = state;
	j->requested = j->last_input = j->progressed = now;
}

void job_frames_fini(struct job_frames *j)
{
	frame_reader_fini(&j->in);
	buf_fini(&j->request);
	buf_fini(&j->out.b);
}

void job_frames_close(struct job_frames *j) { j->state = JOB_FRAMES_CLOSED; }

void job_frames_end(struct job_frames *j, const struct ptcp_err *why, const struct wire_end *end, struct mono now)
{
	if (why != NULL)
		outbox_put_error(&j->out, why);
	else if (end != NULL)
		OUTBOX_PUT(&j->out, end, END, end);
	job_frames_close(j);
	j->progressed = now;
}

static int unexpected(unsigned type, struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "unexpected %s frame", wire_type_name(type));
}

/* ---- Frames from the server ---- */

static bool differs(const struct ptcp_progress *a, const struct ptcp_progress *b)
{
	return a->bytes != b->bytes || a->total_bytes != b->total_bytes || a->files != b->files ||
	    a->total_files != b->total_files || a->others != b->others || a->wire_bytes != b->wire_bytes ||
	    a->failed != b->failed;
}

static int on_started(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	(void)in, (void)f, (void)e;
	j->state = j->state == JOB_FRAMES_TIMING_REQUESTED ? JOB_FRAMES_TIMING_RUNNING : JOB_FRAMES_JOB_RUNNING;
	j->progressed = j->last_input;
	return 0;
}

static int on_progress(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	bool timing = j->state == JOB_FRAMES_TIMING_REQUESTED || j->state == JOB_FRAMES_TIMING_RUNNING;

	(void)in, (void)e;
	if (!timing && differs(&f->progress, &j->progress))
		j->progressed = j->last_input;
	j->progress = f->progress;
	return 0;
}

static int on_waiting(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	(void)in, (void)f, (void)e;
	j->progressed = j->last_input;
	return 0;
}

/* A delay longer than the time since the request, or a rate above that of any link, was not measured. */
static int on_sample(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	uint64_t waited_ns = mono_diff_ns(j->last_input, j->requested);
	const struct wire_sample *s = &f->sample;

	if (j->n_samples == j->messages)
		return unexpected(in->type, e);
	if (s->delay_ns > waited_ns - j->samples_ns || s->round_trip_ns > waited_ns ||
	    (double)s->bytes * 8e9 / (double)s->delay_ns > MAX_BPS)
		return err_set(e, PTCP_EPROTO, "implausible SAMPLE frame: %llu bytes in %.3g s (check that both hosts run the "
		    "same version of ptcp)", (unsigned long long)s->bytes, (double)s->delay_ns / 1e9);
	j->n_samples++;
	j->samples_ns += s->delay_ns;
	j->progressed = j->last_input;
	return 0;
}

/* LEFTOVER or LISTED. */
static int on_listed(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	unsigned max = in->type == WIRE_LISTED ? WIRE_LISTED_FRAMES_MAX : WIRE_LEFTOVERS_MAX;

	(void)f;
	if (j->n_listed == max)
		return err_set(e, PTCP_EPROTO, "more than %u %s frames", max, wire_type_name(in->type));
	j->n_listed++;
	j->progressed = j->last_input;
	return 0;
}

/* Totals, which include the listed. */
static int check_totals(struct job_frames *j, const struct frame *in, uint64_t done, uint64_t failed, bool final,
    struct ptcp_err *e)
{
	if (done > UINT64_MAX - failed || done + failed < j->n_listed)
		return unexpected(in->type, e);
	j->progressed = j->last_input;
	if (final)
		job_frames_close(j);
	return 0;
}

static int on_cleaned(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	return check_totals(j, in, f->cleaned.files, f->cleaned.failed, f->cleaned.final, e);
}

static int on_managed(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	return check_totals(j, in, f->managed.entries, f->managed.failed, f->managed.final, e);
}

/* END or ERROR. */
static int on_last(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	if (in->type == WIRE_END && (f->end.files != j->progress.files || f->end.failed != j->progress.failed))
		return unexpected(in->type, e);
	job_frames_close(j);
	return 0;
}

/* ---- Requests of the client ---- */

static int trailing(struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "trailing bytes after the request");
}

/* JOB or GRANT: retained until the request is complete. 1: not for the owner yet. */
static int on_part(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	uint8_t *room = buf_reserve(&j->request, in->bytes.n);

	(void)f;
	if (room == NULL)
		return err_nomem(e);
	memcpy(room, in->bytes.p, in->bytes.n);
	buf_added(&j->request, in->bytes.n);
	if (in->type == WIRE_JOB)
		j->job_bytes = in->bytes.n;
	j->state = in->type == WIRE_JOB ? JOB_FRAMES_AWAIT_GRANT : JOB_FRAMES_AWAIT_WORK;
	return 1;
}

/* STATUS, LINKS, CLEAN or MANAGE: the whole request. */
static int on_query(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	(void)in, (void)f;
	if (frame_reader_rest(&j->in) > 0)
		return trailing(e);
	j->state = JOB_FRAMES_ANSWERING;
	return 0;
}

static struct span payload_of(struct span frame)
{
	return (struct span){ frame.p + WIRE_HEADER_BYTES, frame.n - WIRE_HEADER_BYTES };
}

/* OPEN or PROBE completes a request. */
static int on_work(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e)
{
	struct span job = { buf_head(&j->request), j->job_bytes };
	struct job_request q = { .grant_frame = { job.p + job.n, buf_len(&j->request) - job.n } };
	int r;

	if (in->type == WIRE_OPEN) {
		q.open = f->open;
	} else {
		q.open = (struct wire_open){ .role = WIRE_ACCEPTOR_DISCARDS, .congestion = WIRE_CC_SYSTEM, .cipher = f->probe.cipher,
			.streams = f->probe.streams, .wait_ms = f->probe.wait_ms };
		q.messages = f->probe.messages;
	}
	if ((r = wire_job_decode(&q.job, payload_of(job), e)) < 0 ||
	    (r = wire_grant_decode(&q.grant, payload_of(q.grant_frame), e)) < 0)
		return r;
	f->request = q;
	return on_query(j, in, f, e);
}

/* ---- Input ---- */

#define BIT(state) (1u << JOB_FRAMES_##state)
#define REQUESTED (BIT(JOB_REQUESTED) | BIT(TIMING_REQUESTED))
#define RUNNING (BIT(JOB_RUNNING) | BIT(TIMING_RUNNING))
#define QUERY (BIT(STATUS_REQUESTED) | BIT(LINKS_REQUESTED) | BIT(CLEAN_REQUESTED) | BIT(MANAGE_REQUESTED))

static const struct rule {
	enum wire_type type;
	unsigned states; /* that allow the frame */
	/* Changes the state, and `f` where the owner gets it otherwise; NULL: neither. */
	int (*accept)(struct job_frames *j, const struct frame *in, union job_frame *f, struct ptcp_err *e);
} rules[] = {
	{ WIRE_ERROR, REQUESTED | RUNNING | QUERY, on_last },
	{ WIRE_STARTED, REQUESTED, on_started },
	{ WIRE_WAITING, REQUESTED, on_waiting },
	{ WIRE_PROGRESS, REQUESTED | RUNNING, on_progress },
	{ WIRE_EVENT, RUNNING, NULL },
	{ WIRE_SAMPLE, BIT(TIMING_RUNNING), on_sample },
	{ WIRE_END, RUNNING, on_last },
	{ WIRE_STATE, BIT(STATUS_REQUESTED), NULL },
	{ WIRE_LINK, BIT(LINKS_REQUESTED), NULL },
	{ WIRE_LEFTOVER, BIT(CLEAN_REQUESTED), on_listed },
	{ WIRE_CLEANED, BIT(CLEAN_REQUESTED), on_cleaned },
	{ WIRE_LISTED, BIT(MANAGE_REQUESTED), on_listed },
	{ WIRE_MANAGED, BIT(MANAGE_REQUESTED), on_managed },
	{ WIRE_JOB, BIT(AWAIT_REQUEST), on_part },
	{ WIRE_GRANT, BIT(AWAIT_GRANT), on_part },
	{ WIRE_OPEN, BIT(AWAIT_WORK), on_work },
	{ WIRE_PROBE, BIT(AWAIT_WORK), on_work },
	{ WIRE_STATUS, BIT(AWAIT_REQUEST), on_query },
	{ WIRE_LINKS, BIT(AWAIT_REQUEST), on_query },
	{ WIRE_CLEAN, BIT(AWAIT_REQUEST), on_query },
	{ WIRE_MANAGE, BIT(AWAIT_REQUEST), on_query },
};

static int take(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	union job_frame f;
	size_t i;
	int r;

	for (i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (rules[i].type != in->type || (rules[i].states & 1u << j->state) == 0)
			continue;
		if ((r = wire_decode(&f, in->type, in->payload, e)) == 0 && rules[i].accept != NULL)
			r = rules[i].accept(j, in, &f, e);
		return r != 0 ? r : j->frame(j->arg, in->type, &f, e);
	}
	return unexpected(in->type, e);
}

int job_frames_input(struct job_frames *j, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e)
{
	struct frame f;
	int r;

	if (j->state == JOB_FRAMES_CLOSED)
		return 0;
	if (j->state == JOB_FRAMES_ANSWERING)
		return trailing(e);
	j->last_input = now;
	r = frame_reader_add(&j->in, p, n, e);
	while (r >= 0 && j->state != JOB_FRAMES_CLOSED && (r = frame_reader_next(&j->in, &f, e)) > 0)
		r = take(j, &f, e);
	return r;
}

/* ---- Time ---- */

static bool is_client(const struct job_frames *j) { return (1u << j->state & (REQUESTED | RUNNING | QUERY)) != 0; }

uint64_t job_frames_stall_ns(const struct job_frames *j)
{
	switch (j->state) {
	case JOB_FRAMES_AWAIT_REQUEST:
	case JOB_FRAMES_AWAIT_GRANT:
	case JOB_FRAMES_AWAIT_WORK:
		return REQUEST_NS;
	case JOB_FRAMES_JOB_REQUESTED:
	case JOB_FRAMES_JOB_RUNNING:
		return j->timeout_ns *
		    (j->progress.activity == PTCP_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS : ENGINE_BUSY_TIMEOUTS);
	case JOB_FRAMES_TIMING_REQUESTED:
	case JOB_FRAMES_TIMING_RUNNING:
	case JOB_FRAMES_STATUS_REQUESTED:
	case JOB_FRAMES_CLEAN_REQUESTED:
	case JOB_FRAMES_MANAGE_REQUESTED:
		return j->timeout_ns * QUERY_TIMEOUTS;
	case JOB_FRAMES_LINKS_REQUESTED:
		return j->timeout_ns;
	case JOB_FRAMES_CLOSED:
		return LINGER_NS;
	case JOB_FRAMES_ANSWERING:
		return j->paused ? PAUSE_NS : UINT64_MAX;
	}
	return UINT64_MAX;
}

void job_frames_pause(struct job_frames *j, struct mono now)
{
	j->paused = true;
	j->progressed = now;
}

void job_frames_wrote(struct job_frames *j, struct mono now)
{
	if (j->paused)
		j->progressed = now;
}

bool job_frames_resume(struct job_frames *j)
{
	if (!j->paused || buf_len(&j->out.b) > JOB_FRAMES_PAUSE_BYTES / 2)
		return false;
	j->paused = false;
	return true;
}

static bool is_unread(const struct job_frames *j)
{
	return j->out.failed || buf_len(&j->out.b) > OUTBOX_MAX_BYTES;
}

enum job_frames_fault job_frames_fault(const struct job_frames *j, struct mono now)
{
	if (is_unread(j))
		return JOB_FRAMES_UNREAD;
	if (is_client(j) && mono_diff_ns(now, j->last_input) >= j->timeout_ns)
		return JOB_FRAMES_SILENT;
	return mono_diff_ns(now, j->progressed) >= job_frames_stall_ns(j) ? JOB_FRAMES_STALLED : JOB_FRAMES_ALIVE;
}

struct mono job_frames_deadline(const struct job_frames *j)
{
	struct mono stall = mono_add_ns(j->progressed, job_frames_stall_ns(j));

	if (is_unread(j))
		return (struct mono){ 0 };
	return is_client(j) ? mono_min(stall, mono_add_ns(j->last_input, j->timeout_ns)) : stall;
}
