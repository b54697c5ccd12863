#include "engine/job_frames.h"

#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"

#define REQUEST_NS (10 * NS_PER_S)
#define LINGER_NS (2 * NS_PER_S)
#define QUERY_TIMEOUTS 12u
#define MAX_BPS 1e14 /* no link carries more */

void job_frames_await(struct job_frames *j, struct mono now)
{
	j->state = JOB_FRAMES_AWAIT_REQUEST;
	j->progressed = now;
}

void job_frames_requested(struct job_frames *j, enum job_frames_state state, struct mono now)
{
	j->state = state;
	j->requested = j->heard = j->progressed = now;
}

void job_frames_fini(struct job_frames *j)
{
	frame_reader_fini(&j->in);
	buf_fini(&j->request);
	buf_fini(&j->out.b);
}

void job_frames_close(struct job_frames *j)
{
	j->state = JOB_FRAMES_CLOSED;
}

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

/* A frame that changes no state. */
#define PASS(x) \
	static int on_##x(struct job_frames *j, const struct frame *in, struct ptcp_err *e) \
	{ \
		struct wire_##x f; \
		int r = wire_##x##_decode(&f, in->payload, e); \
\
		return r < 0 ? r : j->ops->x(j->arg, &f, e); \
	}
PASS(event)
PASS(state)
PASS(link)

static int on_started(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct wire_started f;
	int r = wire_started_decode(&f, in->payload, e);

	if (r < 0)
		return r;
	j->state = j->state == JOB_FRAMES_TIMING_REQUESTED ? JOB_FRAMES_TIMING_RUNNING : JOB_FRAMES_JOB_RUNNING;
	j->progressed = j->heard;
	return j->ops->started(j->arg, &f, e);
}

static bool differs(const struct ptcp_progress *a, const struct ptcp_progress *b)
{
	return a->bytes != b->bytes || a->total_bytes != b->total_bytes || a->files != b->files ||
	    a->total_files != b->total_files || a->others != b->others || a->wire_bytes != b->wire_bytes ||
	    a->failed != b->failed;
}

static int on_progress(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	bool timing = j->state == JOB_FRAMES_TIMING_REQUESTED || j->state == JOB_FRAMES_TIMING_RUNNING;
	struct ptcp_progress f;
	int r = wire_progress_decode(&f, in->payload, e);

	if (r < 0)
		return r;
	if (!timing && differs(&f, &j->progress))
		j->progressed = j->heard;
	j->progress = f;
	return j->ops->progress(j->arg, &f, e);
}

/* A delay longer than the time since the request, or a rate above that of any link, was not measured. */
static int on_sample(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	uint64_t waited_ns = mono_diff_ns(j->heard, j->requested);
	struct wire_sample f;
	int r;

	if ((r = wire_sample_decode(&f, in->payload, e)) < 0)
		return r;
	if (j->n_samples == j->messages)
		return unexpected(in->type, e);
	if (f.delay_ns > waited_ns - j->samples_ns || f.round_trip_ns > waited_ns ||
	    (double)f.bytes * 8e9 / (double)f.delay_ns > MAX_BPS)
		return err_set(e, PTCP_EPROTO, "implausible SAMPLE frame: %llu bytes in %.3g s (check that both hosts run the "
		    "same version of ptcp)", (unsigned long long)f.bytes, (double)f.delay_ns / 1e9);
	j->n_samples++;
	j->samples_ns += f.delay_ns;
	j->progressed = j->heard;
	return j->ops->sample(j->arg, &f, e);
}

static int on_end(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct wire_end f;
	int r = wire_end_decode(&f, in->payload, e);

	if (r < 0)
		return r;
	if (f.files != j->progress.files || f.failed != j->progress.failed)
		return unexpected(in->type, e);
	job_frames_close(j);
	return j->ops->end(j->arg, &f, e);
}

static int on_error(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct wire_error f;
	int r = wire_error_decode(&f, in->payload, e);

	if (r < 0)
		return r;
	job_frames_close(j);
	return j->ops->error(j->arg, &f, e);
}

/* ---- Requests of the client ---- */

static int trailing(struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "trailing bytes after the request");
}

/* The frame completes the request: no byte may follow. */
static int complete(struct job_frames *j, struct ptcp_err *e)
{
	if (frame_reader_rest(&j->in) > 0)
		return trailing(e);
	j->state = JOB_FRAMES_ANSWERING;
	return 0;
}

/* JOB or GRANT: checked, then retained until the request is complete. */
static int on_part(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct wire_grant grant;
	struct wire_job job;
	uint8_t *room;
	int r;

	if (in->type == WIRE_JOB)
		r = wire_job_decode(&job, in->payload, e);
	else
		r = wire_grant_decode(&grant, in->payload, e);
	if (r < 0)
		return r;
	if ((room = buf_reserve(&j->request, in->bytes.n)) == NULL)
		return err_nomem(e);
	memcpy(room, in->bytes.p, in->bytes.n);
	buf_added(&j->request, in->bytes.n);
	if (in->type == WIRE_JOB)
		j->job_bytes = in->bytes.n;
	j->state = in->type == WIRE_JOB ? JOB_FRAMES_AWAIT_GRANT : JOB_FRAMES_AWAIT_WORK;
	return 0;
}

static int decode_work(struct job_request *q, const struct frame *in, struct ptcp_err *e)
{
	struct wire_probe f;
	int r;

	if (in->type == WIRE_OPEN)
		return wire_open_decode(&q->open, in->payload, e);
	if ((r = wire_probe_decode(&f, in->payload, e)) < 0)
		return r;
	q->open = (struct wire_open){ .role = WIRE_ACCEPTOR_DISCARDS, .flags = WIRE_OPEN_STEERED, .cipher = f.cipher,
		.streams = f.streams };
	q->messages = f.messages;
	return 0;
}

static struct span payload_of(struct span frame)
{
	return (struct span){ frame.p + WIRE_HEADER_BYTES, frame.n - WIRE_HEADER_BYTES };
}

static int on_work(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct span job = { buf_head(&j->request), j->job_bytes };
	struct job_request q = { .grant_frame = { job.p + job.n, buf_len(&j->request) - job.n } };
	int r;

	if ((r = wire_job_decode(&q.job, payload_of(job), e)) < 0 ||
	    (r = wire_grant_decode(&q.grant, payload_of(q.grant_frame), e)) < 0 ||
	    (r = decode_work(&q, in, e)) < 0 || (r = complete(j, e)) < 0)
		return r;
	return j->ops->request(j->arg, &q, e);
}

static int on_status(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	struct wire_status f;
	int r;

	if ((r = wire_status_decode(&f, in->payload, e)) < 0 || (r = complete(j, e)) < 0)
		return r;
	return j->ops->status(j->arg, &f, e);
}

static int on_links(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	int r;

	if ((r = wire_links_decode(in->payload, e)) < 0 || (r = complete(j, e)) < 0)
		return r;
	return j->ops->links(j->arg, e);
}

/* ---- Input ---- */

#define BIT(state) (1u << JOB_FRAMES_##state)
#define REQUESTED (BIT(JOB_REQUESTED) | BIT(TIMING_REQUESTED))
#define RUNNING (BIT(JOB_RUNNING) | BIT(TIMING_RUNNING))
#define QUERY (BIT(STATUS_REQUESTED) | BIT(LINKS_REQUESTED))

static const struct rule {
	enum wire_type type;
	unsigned states; /* in which the frame is allowed */
	int (*take)(struct job_frames *j, const struct frame *in, struct ptcp_err *e);
} rules[] = {
	{ WIRE_ERROR, REQUESTED | RUNNING | QUERY, on_error },
	{ WIRE_STARTED, REQUESTED, on_started },
	{ WIRE_PROGRESS, REQUESTED | RUNNING, on_progress },
	{ WIRE_EVENT, RUNNING, on_event },
	{ WIRE_SAMPLE, BIT(TIMING_RUNNING), on_sample },
	{ WIRE_END, RUNNING, on_end },
	{ WIRE_STATE, BIT(STATUS_REQUESTED), on_state },
	{ WIRE_LINK, BIT(LINKS_REQUESTED), on_link },
	{ WIRE_JOB, BIT(AWAIT_REQUEST), on_part },
	{ WIRE_GRANT, BIT(AWAIT_GRANT), on_part },
	{ WIRE_OPEN, BIT(AWAIT_WORK), on_work },
	{ WIRE_PROBE, BIT(AWAIT_WORK), on_work },
	{ WIRE_STATUS, BIT(AWAIT_REQUEST), on_status },
	{ WIRE_LINKS, BIT(AWAIT_REQUEST), on_links },
};

static int take(struct job_frames *j, const struct frame *in, struct ptcp_err *e)
{
	size_t i;

	for (i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].type == in->type && (rules[i].states & 1u << j->state) != 0)
			return rules[i].take(j, in, e);
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
	j->heard = now;
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
		return j->timeout_ns * QUERY_TIMEOUTS;
	case JOB_FRAMES_LINKS_REQUESTED:
		return j->timeout_ns;
	case JOB_FRAMES_CLOSED:
		return LINGER_NS;
	case JOB_FRAMES_ANSWERING:
		break;
	}
	return UINT64_MAX;
}

static bool is_unread(const struct job_frames *j)
{
	return j->out.failed || buf_len(&j->out.b) > OUTBOX_MAX_BYTES;
}

enum job_frames_fault job_frames_fault(const struct job_frames *j, struct mono now)
{
	if (is_unread(j))
		return JOB_FRAMES_UNREAD;
	if (is_client(j) && mono_diff_ns(now, j->heard) >= j->timeout_ns)
		return JOB_FRAMES_SILENT;
	return mono_diff_ns(now, j->progressed) >= job_frames_stall_ns(j) ? JOB_FRAMES_STALLED : JOB_FRAMES_ALIVE;
}

struct mono job_frames_deadline(const struct job_frames *j)
{
	struct mono stall = mono_add_ns(j->progressed, job_frames_stall_ns(j));

	if (is_unread(j))
		return (struct mono){ 0 };
	return is_client(j) ? mono_min(stall, mono_add_ns(j->heard, j->timeout_ns)) : stall;
}
