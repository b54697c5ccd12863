/* Either end of a job connection (PROTOCOL.md, section 13): decodes the received frames that the state allows, passes
 * them to the owner, buffers the frames to be sent, and limits silence, stalls and unread output. No sockets and no
 * clock: inputs are bytes and `now`, outputs are bytes and a deadline.
 *
 * client: JOB_REQUESTED > JOB_RUNNING (STARTED), TIMING_REQUESTED > TIMING_RUNNING (STARTED), STATUS_REQUESTED,
 *         LINKS_REQUESTED, CLEAN_REQUESTED, MANAGE_REQUESTED, READ_REQUESTED or WRITE_REQUESTED; each > CLOSED (END,
 *         ERROR, the last CLEANED or MANAGED), from which the next request on files may follow
 * server: AWAIT_REQUEST > AWAIT_GRANT (JOB) > AWAIT_WORK (GRANT) > ANSWERING (OPEN, PROBE), or
 *         AWAIT_REQUEST > ANSWERING (STATUS, LINKS, CLEAN, MANAGE, READ, SUM); each > CLOSED. After work on files:
 *         ANSWERING > AWAIT_NEXT > ANSWERING (CLEAN, MANAGE, READ, SUM). Instead of one of these: > AWAIT_DATA
 *         (WRITE) > ANSWERING (the last BLOCK), or of an empty file > ANSWERING (WRITE). A client waits for the
 *         answer to SUM in MANAGE_REQUESTED */
#ifndef ENGINE_JOB_FRAMES_H
#define ENGINE_JOB_FRAMES_H

#include "engine/frame_conn.h"
#include "wire/block.h"
#include "wire/grant.h"
#include "wire/jobs.h"

#define JOB_FRAMES_STATES(X) \
	X(AWAIT_REQUEST) X(AWAIT_GRANT) X(AWAIT_WORK) X(AWAIT_NEXT) X(AWAIT_DATA) X(ANSWERING) \
	X(JOB_REQUESTED) X(JOB_RUNNING) X(TIMING_REQUESTED) X(TIMING_RUNNING) \
	X(STATUS_REQUESTED) X(LINKS_REQUESTED) X(CLEAN_REQUESTED) X(MANAGE_REQUESTED) X(READ_REQUESTED) \
	X(WRITE_REQUESTED) \
	X(CLOSED)

enum job_frames_state {
#define X(name) JOB_FRAMES_##name,
	JOB_FRAMES_STATES(X)
#undef X
};

/* A complete request of a client; spans are valid during the call. */
struct job_request {
	struct wire_job job;
	struct wire_grant grant;
	struct span grant_frame;
	struct wire_open open; /* the client in place of the third host; of a measurement with role ACCEPTOR_DISCARDS */
	unsigned messages;     /* messages that a measurement times; 0: a transfer */
};

/* Bytes of a range: not yet verified. */
struct job_piece {
	struct wire_block block;
	const uint8_t *fields;   /* the WIRE_BLOCK_FIELDS bytes of `block` */
	struct span data;        /* as many as block.length_bytes */
	struct wire_block_end end;
};

/* A frame as passed to the owner. */
union job_frame {
	struct wire_waiting waiting;
	struct wire_started started;
	struct ptcp_progress progress;
	struct wire_event event;
	struct wire_sample sample;
	struct wire_state state;
	struct wire_link link;
	struct wire_end end;
	struct wire_error error;
	struct wire_status status;
	struct wire_clean clean;
	struct wire_leftover leftover;
	struct wire_cleaned cleaned;
	struct wire_manage manage;
	struct wire_listed listed;
	struct wire_managed managed;
	struct wire_read read;
	struct wire_sum sum;
	struct wire_write write;
	struct job_piece piece; /* BLOCK */
	struct wire_job job;
	struct wire_grant grant;
	struct wire_open open;
	struct wire_probe probe;
	struct job_request request; /* JOB, GRANT, and OPEN or PROBE, in place of the last of these */
};

/* The owner fills in the first group; the rest starts as zeros. */
struct job_frames {
	/* A frame that the state allows; a server gets JOB and GRANT with the frame that completes the request. 0 or an
	 * error, which job_frames_input() returns. */
	int (*frame)(void *arg, unsigned type, const union job_frame *f, struct ptcp_err *e);
	void *arg;
	uint64_t timeout_ns;           /* client: maximum silence of the server */
	unsigned messages;             /* client: number of messages requested of a measurement */
	struct memory_account *memory; /* server: outlives the frames; NULL: no limit */

	enum job_frames_state state;
	struct frame_conn conn;        /* its `out` holds the frames to be sent */
	struct buf request;            /* server: the JOB and GRANT frames received so far */
	size_t job_bytes;
	struct ptcp_progress progress; /* client: the last one received */
	struct mono requested;
	bool paused;                   /* server: the answer continues when the client has read, see
	                                  job_frames_pause() */
	unsigned n_samples;
	unsigned n_listed;             /* LEFTOVER or LISTED frames */
	uint64_t samples_ns;           /* sum of their delays */
	uint32_t written, to_write;    /* server: data of BLOCKs so far, and size of the file of WRITE */
};

/* A server begins to wait for a request. */
void job_frames_await(struct job_frames *j, struct mono now);
/* Work on files is done, and its last frame put: waits for another request on files, for a minute. */
void job_frames_await_next(struct job_frames *j, struct mono now);
/* A client has put the frames of its request into conn.out; `state` is one of ..._REQUESTED. After a complete answer to
 * work on files, one of CLEAN_, MANAGE_, READ_ and WRITE_REQUESTED may follow on the same connection. */
void job_frames_requested(struct job_frames *j, enum job_frames_state state, struct mono now);
void job_frames_fini(struct job_frames *j);

/* Passes the complete frames among the bytes received to the owner. The owner's error, PTCP_ENOMEM, or PTCP_EPROTO
 * for a violation, after which the owner ends the connection. CLOSED: ignores the bytes. */
int job_frames_input(struct job_frames *j, const uint8_t *p, size_t n, struct mono now, struct ptcp_err *e);
/* Ignores further bytes; frame() may call it. */
void job_frames_close(struct job_frames *j);
/* Server: puts the last frame, ERROR with `why` or END with `end`, if any. */
void job_frames_end(struct job_frames *j, const struct ptcp_err *why, const struct wire_end *end, struct mono now);

/* Server: a long answer waits until the client reads: from now on, a client that reads nothing for two minutes has
 * stalled. job_frames_wrote() reports reading. */
#define JOB_FRAMES_PAUSE_BYTES (256u << 10) /* reading pauses while conn.out holds so much */
void job_frames_pause(struct job_frames *j, struct mono now);
void job_frames_wrote(struct job_frames *j, struct mono now);
/* Whether the client has read enough for the answer to continue; ends the pause. */
bool job_frames_resume(struct job_frames *j);

/* Maximum time without progress in this state: a client's job 120 timeouts, or 2,880 while the server verifies; a
 * measurement 12 without a SAMPLE, a status query, a cleaning or work on files 12, a link query 1; a server's peer
 * 10 s for its request and for each BLOCK of WRITE, a minute for the next request, and 2 s to close the connection
 * after the last frame. */
uint64_t job_frames_stall_ns(const struct job_frames *j);

#endif
