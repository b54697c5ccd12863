#include "engine/job_frames.h"

#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"

#define REQUEST_NS (10 * NS_PER_S)
#define NEXT_NS (60 * NS_PER_S)
#define LINGER_NS (2 * NS_PER_S)
#define QUERY_TIMEOUTS 12u
#define PAUSE_NS (120 * NS_PER_S)
#define MAX_BPS 1e14 /* no link carries more */

static const struct frame_table table;

void job_frames_await(struct job_frames *j, struct mono now)
{
	frame_conn_init(&j->conn, &table, j, j->memory, now);
	j->request.memory = j->memory;
	j->state = JOB_FRAMES_AWAIT_REQUEST;
}

void job_frames_requested(struct job_frames *j, enum job_frames_state state, struct mono now)
{
	frame_conn_init(&j->conn, &table, j, j->memory, now);
	j->state = state;
	j->requested = now;
	j->n_listed = 0;
}

void job_frames_await_next(struct job_frames *j, struct mono now)
{
	j->state = JOB_FRAMES_AWAIT_NEXT;
	j->conn.last_progress = now;
}

void job_frames_fini(struct job_frames *j)
{
	frame_conn_fini(&j->conn);
	buf_fini(&j->request);
}

void job_frames_close(struct job_frames *j) { j->state = JOB_FRAMES_CLOSED; }

void job_frames_end(struct job_frames *j, const struct ptcp_err *why, const struct wire_end *end, struct mono now)
{
	if (why != NULL)
		outbox_put_error(&j->conn.out, why);
	else if (end != NULL)
		OUTBOX_PUT(&j->conn.out, end, END, end);
	job_frames_close(j);
	j->conn.last_progress = now;
}

/* ---- Frames from the server ---- */

static bool differs(const struct ptcp_progress *a, const struct ptcp_progress *b)
{
	return a->bytes != b->bytes || a->total_bytes != b->total_bytes || a->files != b->files ||
	    a->total_files != b->total_files || a->others != b->others || a->wire_bytes != b->wire_bytes ||
	    a->failed != b->failed;
}

/* A frame that the owner gets as received. */
static int on_frame(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;

	return j->frame(j->arg, type, f, e);
}

static int on_started(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;

	j->state = j->state == JOB_FRAMES_TIMING_REQUESTED ? JOB_FRAMES_TIMING_RUNNING : JOB_FRAMES_JOB_RUNNING;
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, f, e);
}

static int on_progress(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	const struct ptcp_progress *now = f;
	bool timing = j->state == JOB_FRAMES_TIMING_REQUESTED || j->state == JOB_FRAMES_TIMING_RUNNING;

	if (!timing && differs(now, &j->progress))
		j->conn.last_progress = j->conn.last_input;
	j->progress = *now;
	return on_frame(j, type, f, e);
}

static int on_waiting(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;

	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, f, e);
}

/* A delay longer than the time since the request, or a rate above that of any link, was not measured. */
static int on_sample(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	const struct wire_sample *s = f;
	uint64_t waited_ns = mono_diff_ns(j->conn.last_input, j->requested);

	if (j->n_samples == j->messages)
		return frame_conn_unexpected(&j->conn, type, e);
	if (s->delay_ns > waited_ns - j->samples_ns || s->round_trip_ns > waited_ns ||
	    (double)s->bytes * 8e9 / (double)s->delay_ns > MAX_BPS)
		return err_set(e, PTCP_EPROTO, "implausible SAMPLE frame: %llu bytes in %.3g s (check that both hosts "
		    "run the same version of ptcp)", (unsigned long long)s->bytes, (double)s->delay_ns / 1e9);
	j->n_samples++;
	j->samples_ns += s->delay_ns;
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, f, e);
}

/* LEFTOVER or LISTED. */
static int on_listed(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	unsigned max = type == WIRE_LISTED ? WIRE_LISTED_FRAMES_MAX : WIRE_LEFTOVERS_MAX;

	if (j->n_listed == max)
		return err_set(e, PTCP_EPROTO, "more than %u %s frames", max, wire_type_name(type));
	j->n_listed++;
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, f, e);
}

/* CLEANED or MANAGED: totals, which include the listed. */
static int on_totals(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	const struct wire_cleaned *c = f;
	const struct wire_managed *m = f;
	uint64_t done = type == WIRE_CLEANED ? c->files : m->entries,
	    failed = type == WIRE_CLEANED ? c->failed : m->failed;

	if (done > UINT64_MAX - failed || done + failed < j->n_listed)
		return frame_conn_unexpected(&j->conn, type, e);
	j->conn.last_progress = j->conn.last_input;
	if (type == WIRE_CLEANED ? c->final : m->final)
		job_frames_close(j);
	return on_frame(j, type, f, e);
}

/* The BLOCK that was received, with its data as it is. */
static int decode_piece(struct job_piece *p, struct span bytes, struct ptcp_err *e)
{
	int r;

	if (bytes.n < WIRE_BLOCK_HEAD_BYTES)
		return err_set(e, PTCP_EPROTO, "malformed BLOCK frame");
	if ((r = wire_block_decode(&p->block, bytes.p, e)) < 0)
		return r;
	if (p->block.packed_bytes > 0)
		return err_set(e, PTCP_EPROTO, "malformed BLOCK frame");
	p->fields = bytes.p + WIRE_HEADER_BYTES;
	p->data = (struct span){ bytes.p + WIRE_BLOCK_HEAD_BYTES, p->block.length_bytes };
	return wire_block_end_decode(&p->end, p->data.p + p->data.n, e);
}

/* BLOCK: a piece of a range. */
static int on_piece(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	union job_frame q;
	int r;

	(void)f;
	if ((r = decode_piece(&q.piece, frame_conn_bytes(&j->conn), e)) < 0)
		return r;
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, &q, e);
}

static int on_error(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	job_frames_close(owner);
	return on_frame(owner, type, f, e);
}

static int on_end(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	const struct wire_end *end = f;

	if (end->files != j->progress.files || end->failed != j->progress.failed)
		return frame_conn_unexpected(&j->conn, type, e);
	return on_error(j, type, f, e);
}

/* ---- Requests of the client ---- */

static int trailing(struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "trailing bytes after the request");
}

/* JOB or GRANT: retained until the request is complete. */
static int on_part(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	struct span bytes = frame_conn_bytes(&j->conn);
	uint8_t *room = buf_reserve(&j->request, bytes.n, e);

	(void)f;
	if (room == NULL)
		return PTCP_ENOMEM;
	memcpy(room, bytes.p, bytes.n);
	buf_added(&j->request, bytes.n);
	if (type == WIRE_JOB)
		j->job_bytes = bytes.n;
	j->state = type == WIRE_JOB ? JOB_FRAMES_AWAIT_GRANT : JOB_FRAMES_AWAIT_WORK;
	return 0;
}

/* STATUS, LINKS, CLEAN, MANAGE, READ or SUM: the whole request; or the end of WRITE. */
static int on_query(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;

	if (frame_conn_rest(&j->conn) > 0)
		return trailing(e);
	j->state = JOB_FRAMES_ANSWERING;
	return on_frame(j, type, f, e);
}

/* WRITE: its BLOCKs follow. */
static int on_write(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;

	j->written = 0;
	j->to_write = ((const struct wire_write *)f)->size_bytes;
	if (j->to_write == 0)
		return on_query(j, type, f, e);
	j->state = JOB_FRAMES_AWAIT_DATA;
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, f, e);
}

/* BLOCK: the next piece of the file to be written. */
static int on_data(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	uint32_t left = j->to_write - j->written, n = left < WIRE_PIECE_BYTES ? left : WIRE_PIECE_BYTES;
	union job_frame q;
	int r;

	(void)f;
	if ((r = decode_piece(&q.piece, frame_conn_bytes(&j->conn), e)) < 0)
		return r;
	if (q.piece.block.id != wire_range_id(0) || q.piece.block.offset != j->written || q.piece.data.n != n)
		return err_set(e, PTCP_EPROTO, "unexpected BLOCK frame behind WRITE");
	j->written += n;
	if (j->written == j->to_write)
		return on_query(j, type, &q, e);
	j->conn.last_progress = j->conn.last_input;
	return on_frame(j, type, &q, e);
}

static struct span payload_of(struct span frame)
{
	return (struct span){ frame.p + WIRE_HEADER_BYTES, frame.n - WIRE_HEADER_BYTES };
}

/* OPEN or PROBE completes a request. */
static int on_work(void *owner, unsigned type, const void *f, struct ptcp_err *e)
{
	struct job_frames *j = owner;
	const struct wire_probe *probe = f;
	struct span job = { buf_head(&j->request), j->job_bytes };
	union job_frame q = { .request = { .grant_frame = { job.p + job.n, buf_len(&j->request) - job.n } } };
	int r;

	if (type == WIRE_OPEN) {
		q.request.open = *(const struct wire_open *)f;
	} else {
		q.request.open = (struct wire_open){ .role = WIRE_ACCEPTOR_DISCARDS, .cipher = probe->cipher,
		    .streams = probe->streams,
			.wait_ms = probe->wait_ms };
		q.request.messages = probe->messages;
	}
	if ((r = wire_job_decode(&q.request.job, payload_of(job), e)) < 0 ||
	    (r = wire_grant_decode(&q.request.grant, payload_of(q.request.grant_frame), e)) < 0)
		return r;
	if (type == WIRE_PROBE) /* a name is set on the sockets */
		q.request.open.congestion = q.request.job.congestion.n > 0 ? WIRE_CC_SYSTEM : WIRE_CC_FAIR;
	return on_query(j, type, &q, e);
}

/* ---- Input ---- */

#define BIT(state) (1u << JOB_FRAMES_##state)
#define REQUESTED (BIT(JOB_REQUESTED) | BIT(TIMING_REQUESTED))
#define RUNNING (BIT(JOB_RUNNING) | BIT(TIMING_RUNNING))
#define QUERY (BIT(STATUS_REQUESTED) | BIT(LINKS_REQUESTED) | BIT(CLEAN_REQUESTED) | BIT(MANAGE_REQUESTED) | \
	BIT(READ_REQUESTED) | BIT(WRITE_REQUESTED))
#define ON_FILES (BIT(MANAGE_REQUESTED) | BIT(READ_REQUESTED) | BIT(WRITE_REQUESTED))
#define WORK_AWAITED (BIT(AWAIT_REQUEST) | BIT(AWAIT_NEXT))

/* A handler changes the state, and passes the frame to the owner of the job connection. */
static const struct frame_rule rules[] = {
	{ .type = WIRE_ERROR, .states = REQUESTED | RUNNING | QUERY, .take = on_error },
	{ .type = WIRE_STARTED, .states = REQUESTED, .take = on_started },
	{ .type = WIRE_WAITING, .states = REQUESTED, .take = on_waiting },
	{ .type = WIRE_PROGRESS, .states = REQUESTED | RUNNING, .take = on_progress },
	{ .type = WIRE_EVENT, .states = RUNNING, .take = on_frame },
	{ .type = WIRE_SAMPLE, .states = BIT(TIMING_RUNNING), .take = on_sample },
	{ .type = WIRE_END, .states = RUNNING, .take = on_end },
	{ .type = WIRE_STATE, .states = BIT(STATUS_REQUESTED), .take = on_frame },
	{ .type = WIRE_LINK, .states = BIT(LINKS_REQUESTED), .take = on_frame },
	{ .type = WIRE_LEFTOVER, .states = BIT(CLEAN_REQUESTED), .take = on_listed },
	{ .type = WIRE_CLEANED, .states = BIT(CLEAN_REQUESTED), .take = on_totals },
	{ .type = WIRE_LISTED, .states = ON_FILES, .take = on_listed },
	{ .type = WIRE_BLOCK, .states = BIT(READ_REQUESTED), .take = on_piece, .undecoded = true },
	{ .type = WIRE_MANAGED, .states = ON_FILES, .take = on_totals },
	{ .type = WIRE_JOB, .states = BIT(AWAIT_REQUEST), .take = on_part },
	{ .type = WIRE_GRANT, .states = BIT(AWAIT_GRANT), .take = on_part },
	{ .type = WIRE_OPEN, .states = BIT(AWAIT_WORK), .take = on_work },
	{ .type = WIRE_PROBE, .states = BIT(AWAIT_WORK), .take = on_work },
	{ .type = WIRE_STATUS, .states = BIT(AWAIT_REQUEST), .take = on_query },
	{ .type = WIRE_LINKS, .states = BIT(AWAIT_REQUEST), .take = on_query },
	{ .type = WIRE_CLEAN, .states = WORK_AWAITED, .take = on_query },
	{ .type = WIRE_MANAGE, .states = WORK_AWAITED, .take = on_query },
	{ .type = WIRE_READ, .states = WORK_AWAITED, .take = on_query },
	{ .type = WIRE_SUM, .states = WORK_AWAITED, .take = on_query },
	{ .type = WIRE_WRITE, .states = WORK_AWAITED, .take = on_write },
	{ .type = WIRE_BLOCK, .states = BIT(AWAIT_DATA), .take = on_data, .undecoded = true },
};

int job_frames_input(struct job_frames *j, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e)
{
	return j->state == JOB_FRAMES_ANSWERING ? trailing(e) : frame_conn_input(&j->conn, p, n, now, e);
}

/* ---- Time ---- */

static bool is_client(const struct job_frames *j) { return (1u << j->state & (REQUESTED | RUNNING | QUERY)) != 0; }

uint64_t job_frames_stall_ns(const struct job_frames *j)
{
	switch (j->state) {
	case JOB_FRAMES_AWAIT_REQUEST:
	case JOB_FRAMES_AWAIT_GRANT:
	case JOB_FRAMES_AWAIT_WORK:
	case JOB_FRAMES_AWAIT_DATA:
		return REQUEST_NS;
	case JOB_FRAMES_AWAIT_NEXT:
		return NEXT_NS;
	case JOB_FRAMES_JOB_REQUESTED:
	case JOB_FRAMES_JOB_RUNNING:
		return j->timeout_ns *
		    (j->progress.activity == PTCP_VERIFYING ? ENGINE_VERIFYING_TIMEOUTS : ENGINE_BUSY_TIMEOUTS);
	case JOB_FRAMES_TIMING_REQUESTED:
	case JOB_FRAMES_TIMING_RUNNING:
	case JOB_FRAMES_STATUS_REQUESTED:
	case JOB_FRAMES_CLEAN_REQUESTED:
	case JOB_FRAMES_MANAGE_REQUESTED:
	case JOB_FRAMES_READ_REQUESTED:
	case JOB_FRAMES_WRITE_REQUESTED:
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
	j->conn.last_progress = now;
}

void job_frames_wrote(struct job_frames *j, struct mono now)
{
	if (j->paused)
		j->conn.last_progress = now;
}

bool job_frames_resume(struct job_frames *j)
{
	if (!j->paused || buf_len(&j->conn.out.b) > JOB_FRAMES_PAUSE_BYTES / 2)
		return false;
	j->paused = false;
	return true;
}

static unsigned state_of(const void *owner) { return ((const struct job_frames *)owner)->state; }

static struct frame_limits limits_of(const void *owner)
{
	const struct job_frames *j = owner;

	return (struct frame_limits){ .silence_ns = is_client(j) ? j->timeout_ns : UINT64_MAX,
		.stall_ns = job_frames_stall_ns(j), .outage_ns = UINT64_MAX, .ping_ns = UINT64_MAX };
}

static const char *const state_names[] = {
#define X(name) #name,
	JOB_FRAMES_STATES(X)
#undef X
};

static const struct frame_table table = { FRAME_TABLE_RULES(rules), .state_names = state_names, .deaf = BIT(CLOSED),
	.state = state_of, .limits = limits_of };
