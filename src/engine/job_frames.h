/* A job connection (PROTOCOL.md, section 13), either end of it: decodes the received frames that the state allows,
 * hands them to their handlers, buffers the frames to be sent, and limits silence, stalls and unread output. No sockets
 * and no clock: bytes and `now` come in, bytes and a deadline come out.
 *
 * client: JOB_REQUESTED > JOB_RUNNING (STARTED), TIMING_REQUESTED > TIMING_RUNNING (STARTED), STATUS_REQUESTED or
 *         LINKS_REQUESTED; each > CLOSED (END, ERROR)
 * server: AWAIT_REQUEST > AWAIT_GRANT (JOB) > AWAIT_WORK (GRANT) > ANSWERING (OPEN, PROBE), or
 *         AWAIT_REQUEST > ANSWERING (STATUS, LINKS); each > CLOSED */
#ifndef ENGINE_JOB_FRAMES_H
#define ENGINE_JOB_FRAMES_H

#include "core/clock.h"
#include "engine/frame_reader.h"
#include "wire/grant.h"
#include "wire/job.h"
#include "wire/outbox.h"

enum job_frames_state {
	JOB_FRAMES_AWAIT_REQUEST, JOB_FRAMES_AWAIT_GRANT, JOB_FRAMES_AWAIT_WORK, JOB_FRAMES_ANSWERING,
	JOB_FRAMES_JOB_REQUESTED, JOB_FRAMES_JOB_RUNNING, JOB_FRAMES_TIMING_REQUESTED, JOB_FRAMES_TIMING_RUNNING,
	JOB_FRAMES_STATUS_REQUESTED, JOB_FRAMES_LINKS_REQUESTED,
	JOB_FRAMES_CLOSED
};

/* A complete request of a client; spans are valid during the call. */
struct job_request {
	struct wire_job job;
	struct wire_grant grant;
	struct span grant_frame;
	struct wire_open open; /* the client in place of the third host; of a measurement with role ACCEPTOR_DISCARDS */
	unsigned messages;     /* to be timed by a measurement; 0: a transfer */
};

/* Each returns 0 or an error, which job_frames_input() passes on. A client has the first group, a server the second. */
struct job_frames_ops {
	int (*started)(void *arg, const struct wire_started *f, struct ptcp_err *e);
	int (*progress)(void *arg, const struct ptcp_progress *f, struct ptcp_err *e);
	int (*event)(void *arg, const struct wire_event *f, struct ptcp_err *e);
	int (*sample)(void *arg, const struct wire_sample *f, struct ptcp_err *e);
	int (*state)(void *arg, const struct wire_state *f, struct ptcp_err *e);
	int (*link)(void *arg, const struct wire_link *f, struct ptcp_err *e);
	int (*end)(void *arg, const struct wire_end *f, struct ptcp_err *e);
	int (*error)(void *arg, const struct wire_error *f, struct ptcp_err *e);

	int (*request)(void *arg, const struct job_request *q, struct ptcp_err *e);
	int (*status)(void *arg, const struct wire_status *f, struct ptcp_err *e);
	int (*links)(void *arg, struct ptcp_err *e);
};

/* The owner fills in the first group; the rest starts as zeros. */
struct job_frames {
	const struct job_frames_ops *ops;
	void *arg;
	uint64_t timeout_ns;           /* client: maximum silence of the server */
	unsigned messages;             /* client: that were requested of a measurement */

	enum job_frames_state state;
	struct frame_reader in;
	struct buf request;            /* server: the JOB and GRANT frames received so far */
	size_t job_bytes;
	struct outbox out;             /* frames to be sent */
	struct ptcp_progress progress; /* client: the last one received */
	struct mono requested, heard, progressed;
	unsigned n_samples;
	uint64_t samples_ns;           /* sum of their delays */
};

/* A server begins to wait for a request. */
void job_frames_await(struct job_frames *j, struct mono now);
/* A client has put the frames of its request into `out`; `state` is one of ..._REQUESTED. */
void job_frames_requested(struct job_frames *j, enum job_frames_state state, struct mono now);
void job_frames_fini(struct job_frames *j);

/* Calls handlers for the complete frames among the bytes received. The error of a handler, PTCP_ENOMEM, or PTCP_EPROTO
 * for a violation; the owner then ends the connection. CLOSED: ignores them. */
int job_frames_input(struct job_frames *j, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e);
/* Ignores further bytes; a handler may call it. */
void job_frames_close(struct job_frames *j);
/* Server: puts the last frame, ERROR with `why` or END with `end`, if any. */
void job_frames_end(struct job_frames *j, const struct ptcp_err *why, const struct wire_end *end, struct mono now);

enum job_frames_fault {
	JOB_FRAMES_ALIVE,
	JOB_FRAMES_SILENT,  /* client: no byte for timeout_ns */
	JOB_FRAMES_STALLED, /* no progress for job_frames_stall_ns() */
	JOB_FRAMES_UNREAD   /* the peer does not read: more than OUTBOX_MAX_BYTES are buffered; or no memory for them */
};
enum job_frames_fault job_frames_fault(const struct job_frames *j, struct mono now);
/* When job_frames_fault() is due; MONO_NEVER: no limit applies. */
struct mono job_frames_deadline(const struct job_frames *j);
/* Maximum time without progress in this state: a client's job 120 timeouts, or 2,880 while the server verifies; a
 * measurement 12 without a SAMPLE, a status query 12, a link query 1; a server's peer 10 s for its request, and 2 s to
 * close the connection after the last frame. */
uint64_t job_frames_stall_ns(const struct job_frames *j);

#endif
