/* Frames of an errand: a transfer to or from a third host, or a measurement of the way there, carried out for the
 * one who asks for it, and what is told about it (PROTOCOL.md, section 13). As wire/frame.h. */
#ifndef WIRE_JOB_H
#define WIRE_JOB_H

#include <ptcp/progress.h>

#include "wire/frame.h"

#define WIRE_HOST_MAX 255

enum wire_job_flags {
	WIRE_JOB_DETACH = 1 << 0, /* it goes on without who has asked for it */
	WIRE_JOB_FILES = 1 << 1,  /* tell of each file, not only of those that failed */
	WIRE_JOB_RATE = 1 << 2,   /* rate_bps is there */
	WIRE_JOB_FLAGS = (1 << 3) - 1
};

/* Where to and how; GRANT follows, then OPEN or PROBE, which say what. */
struct wire_job {
	uint8_t flags, family;    /* 0, 4 or 6 */
	uint16_t port;
	uint32_t timeout_ms;
	struct span host;         /* 1 to WIRE_HOST_MAX printable ASCII bytes */
	struct span congestion;   /* likewise, or none: the system's */
	uint64_t rate_bps;        /* of the streams together, at least WIRE_JOB_MIN_BPS; 0 without the flag: no limit */
};
#define WIRE_JOB_MIN_BPS 10000
#define WIRE_JOB_MAX_BYTES (8 + 10 + WIRE_HOST_MAX + WIRE_CONGESTION_MAX + 8)
size_t wire_job_encode(uint8_t *out, const struct wire_job *f);
int wire_job_decode(struct wire_job *f, struct span in, struct ptcp_err *e);

/* So many messages are to be timed, over streams of that cipher that they are divided among. */
struct wire_probe {
	uint16_t streams;         /* not 0 */
	uint16_t messages;        /* 1 to WIRE_SAMPLES_MAX */
	uint8_t cipher;           /* an enum ptcp_cipher, as in OPEN */
};
#define WIRE_SAMPLES_MAX 1024
#define WIRE_PROBE_MAX_BYTES (8 + 5)
size_t wire_probe_encode(uint8_t *out, const struct wire_probe *f);
int wire_probe_decode(struct wire_probe *f, struct span in, struct ptcp_err *e);

/* One of them. */
struct wire_sample {
	uint64_t bytes;           /* not 0 */
	uint64_t delay_ns;        /* not 0; until all of it was known to be there */
	uint64_t round_trip_ns;   /* the least so far, of a packet; 0: not known */
};
#define WIRE_SAMPLE_MAX_BYTES (8 + 24)
size_t wire_sample_encode(uint8_t *out, const struct wire_sample *f);
int wire_sample_decode(struct wire_sample *f, struct span in, struct ptcp_err *e);

/* The session with the third host is agreed. */
struct wire_started {
	uint64_t id;              /* not 0: for STATUS */
	struct span peer;         /* its address and port, 1 to WIRE_HOST_MAX printable ASCII bytes */
};
#define WIRE_STARTED_MAX_BYTES (8 + 9 + WIRE_HOST_MAX)
size_t wire_started_encode(uint8_t *out, const struct wire_started *f);
int wire_started_decode(struct wire_started *f, struct span in, struct ptcp_err *e);

/* PROGRESS carries struct ptcp_progress, its streams as u16. */
#define WIRE_PROGRESS_FIELDS 78
#define WIRE_PROGRESS_MAX_BYTES (8 + WIRE_PROGRESS_FIELDS)
size_t wire_progress_encode(uint8_t *out, const struct ptcp_progress *f);
int wire_progress_decode(struct ptcp_progress *f, struct span in, struct ptcp_err *e);

enum wire_event_kind {
	WIRE_EVENT_DONE = 1,      /* a file: path */
	WIRE_EVENT_SKIPPED = 2,   /* path, perhaps text */
	WIRE_EVENT_FAILED = 3,    /* path, code, text */
	WIRE_EVENT_WARNING = 4,   /* text, perhaps path */
	WIRE_EVENT_STREAMS = 5    /* from, to, text */
};

struct wire_event {
	uint8_t kind;
	uint16_t code, from, to;
	struct span path;         /* of any bytes but NUL, at most WIRE_PATH_MAX */
	struct span text;
};
#define WIRE_EVENT_MAX_BYTES (8 + 11 + WIRE_PATH_MAX + WIRE_TEXT_MAX)
size_t wire_event_encode(uint8_t *out, const struct wire_event *f);
int wire_event_decode(struct wire_event *f, struct span in, struct ptcp_err *e);

/* How is that errand of mine doing? A STATE for each, then the end of the connection. */
struct wire_status {
	uint64_t id;              /* 0: all of them */
	uint8_t cancel;           /* 1: end it first; with an id only */
};
#define WIRE_STATUS_MAX_BYTES (8 + 9)
size_t wire_status_encode(uint8_t *out, const struct wire_status *f);
int wire_status_decode(struct wire_status *f, struct span in, struct ptcp_err *e);

enum wire_state_kind { WIRE_STATE_RUNNING = 1, WIRE_STATE_OVER = 2 };

struct wire_state {
	uint64_t id;
	uint8_t kind, mode;       /* an enum wire_grant_mode: of its GRANT */
	uint16_t code;            /* of what it came to, as in ERROR; 0: well, or not yet */
	uint16_t port;
	uint64_t age_ms, took_ms; /* since it was asked for; of which it ran */
	struct ptcp_progress progress;
	struct span host, from, to; /* the third; the first source's path, and the destination's */
	struct span text;         /* that goes with the code */
};
#define WIRE_STATE_MAX_BYTES (8 + 37 + WIRE_PROGRESS_FIELDS + WIRE_HOST_MAX + 2 * WIRE_PATH_MAX + WIRE_TEXT_MAX)
size_t wire_state_encode(uint8_t *out, const struct wire_state *f);
int wire_state_decode(struct wire_state *f, struct span in, struct ptcp_err *e);

#endif
