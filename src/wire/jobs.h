/* Frames of a delegated job: a transfer to or from a third host, or a measurement of the path to the third host, that
 * a server carries out for a client, and the reports to the client; of queries; and of work on the server's files
 * (PROTOCOL.md, section 13). */
#ifndef WIRE_JOBS_H
#define WIRE_JOBS_H

#include <ptcp/progress.h>

#include "wire/frame.h"

enum wire_job_flags {
	WIRE_JOB_DETACH = 1 << 0, /* the job continues after the end of the client's connection */
	WIRE_JOB_FILES = 1 << 1,  /* report every file, not only failed files */
	WIRE_JOB_FLAGS = (1 << 2) - 1
};

/* The third host and the way to connect; GRANT follows, then OPEN or PROBE. */
struct wire_job {
	uint8_t flags, family;  /* family 0, 4 or 6 */
	uint16_t port;
	uint32_t timeout_ms, linger_ms; /* values of HELLO in the session with the third host */
	struct span host;       /* 1 to WIRE_HOST_MAX printable ASCII bytes */
	struct span congestion; /* congestion control of a PROBE, printable ASCII; "system": the
	                           system's; empty: as FAIR */
	uint64_t rate_bps;      /* rate of all streams together, at least WIRE_JOB_MIN_BPS; 0: no limit */
};
#define WIRE_JOB_MIN_BPS 10000
WIRE_CODEC(JOB, job, wire_job)

/* Time messages, each divided among the streams. */
struct wire_probe {
	uint16_t streams;  /* not 0 */
	uint16_t messages; /* 1 to WIRE_SAMPLES_MAX */
	uint8_t cipher;    /* an enum ptcp_cipher, as in OPEN */
	uint32_t wait_ms;  /* as in OPEN */
};
#define WIRE_SAMPLES_MAX 1024
WIRE_CODEC(PROBE, probe, wire_probe)

/* One timed message. */
struct wire_sample {
	uint64_t bytes;         /* not 0 */
	uint64_t delay_ns;      /* time until the whole message was known to have arrived; not 0 */
	uint64_t round_trip_ns; /* minimum RTT of a packet so far; 0: unknown */
};
WIRE_CODEC(SAMPLE, sample, wire_sample)

/* The session with the third host is running. */
struct wire_started {
	uint64_t id;      /* id of the job, for STATUS; not 0 */
	struct span peer; /* address and port of the third host */
};
WIRE_CODEC(STARTED, started, wire_started)

/* Progress of the job. */
WIRE_CODEC(PROGRESS, progress, ptcp_progress)

enum wire_event_kind {
	WIRE_EVENT_DONE = 1,    /* a file: path */
	WIRE_EVENT_SKIPPED = 2, /* path, perhaps why.text */
	WIRE_EVENT_FAILED = 3,  /* path, why */
	WIRE_EVENT_WARNING = 4, /* why.text, perhaps path */
	WIRE_EVENT_STREAMS = 5  /* from, to, why.text */
};

struct wire_event {
	uint8_t kind;
	uint16_t from, to;
	struct span path; /* without NUL */
	struct wire_why why;
};
WIRE_CODEC(EVENT, event, wire_event)

/* Requests the state of the client's jobs: one STATE per job, then the end of the connection. */
struct wire_status {
	uint64_t id;    /* 0: all jobs */
	uint8_t cancel; /* 1: cancel the job first; not with id 0 */
};
WIRE_CODEC(STATUS, status, wire_status)

enum wire_state_kind { WIRE_STATE_RUNNING = 1, WIRE_STATE_OVER = 2 };

struct wire_state {
	uint64_t id;
	uint8_t kind, mode;         /* mode: an enum wire_grant_mode, of the job's GRANT */
	uint16_t port;
	uint64_t age_ms, took_ms;   /* time since the request; run time */
	struct ptcp_progress progress;
	struct span host, from, to; /* third host; path of the first source; path of the destination */
	struct wire_why why;        /* code 0: no error */
};
WIRE_CODEC(STATE, state, wire_state)

/* ---- Link estimates that a server publishes ---- */

#define WIRE_LINKS_MAX 1024 /* max number in one reply */

/* Requests the link estimates: one LINK each, then the end of the connection. */
WIRE_CODEC_EMPTY(LINKS, links)

#define WIRE_LINK_BPS_MAX UINT64_C(1000000000000000) /* max rate, and max error of a rate */
#define WIRE_LINK_NS_MAX UINT64_C(3600000000000)     /* max delay, and max error of a delay */
#define WIRE_LINK_NOT_KNOWN UINT64_MAX               /* stands for an unknown error */

enum wire_link_flags {
	WIRE_LINK_ROUND_TRIP = 1 << 0, /* the delay is half of the minimum RTT */
	WIRE_LINK_FLAGS = (1 << 1) - 1
};

/* The link from the server to another host. A link without an estimate has zeros in all fields but host, port and
 * text. */
struct wire_link {
	uint64_t rate_bps, rate_error_bps; /* goodput and its standard error */
	uint64_t delay_ns, delay_error_ns; /* one-way delay and its standard error */
	uint64_t age_ms;                   /* time since the last measurement */
	uint32_t messages;                 /* behind the estimate; not 0 */
	uint16_t streams;                  /* number of streams that shared each message; not 0 */
	uint16_t port;                     /* port of the other host; not 0 */
	uint8_t flags;
	struct span host;                  /* printable ASCII */
	struct span text;                  /* why the last measurement failed; empty: it succeeded */
};
WIRE_CODEC(LINK, link, wire_link)

/* ---- Leftovers of interrupted transfers ---- */

#define WIRE_LEFTOVERS_MAX 10000 /* max number in one reply; CLEANED counts all */

/* Requests the removal of the leftovers beneath a directory. */
struct wire_clean {
	uint64_t older_ms; /* min age */
	uint8_t dry_run;   /* 1: remove nothing */
	struct span path;  /* path of the directory, as in OPEN; without NUL */
};
WIRE_CODEC(CLEAN, clean, wire_clean)

/* A removed file, or with a code a file that cannot be removed. */
struct wire_leftover {
	uint64_t bytes, age_ms;
	struct span path;  /* below the directory; without NUL */
	struct wire_why why; /* why the file remains; code 0: removed, or would be in a dry run */
};
WIRE_CODEC(LEFTOVER, leftover, wire_leftover)

/* Totals so far, regularly; the last frame has `final`. */
struct wire_cleaned {
	uint64_t files, bytes;   /* removed */
	uint64_t in_use, recent; /* retained */
	uint64_t failed;
	uint8_t final;
};
WIRE_CODEC(CLEANED, cleaned, wire_cleaned)

/* ---- Files and directories of a server: ls, mkdir, rm, mv, du ---- */

enum wire_manage_op {
	WIRE_SUM_OP = 0,        /* the frame SUM, which is no op of MANAGE */
	WIRE_MANAGE_LIST = 1,   /* each path, or the content of each directory */
	WIRE_MANAGE_COUNT = 2,  /* the size of each path with all content */
	WIRE_MANAGE_MKDIR = 3,
	WIRE_MANAGE_REMOVE = 4,
	WIRE_MANAGE_RENAME = 5, /* two paths: from, to */
	WIRE_MANAGE_RMDIR = 6,  /* empty directories */
	WIRE_MANAGE_TOUCH = 7   /* the time becomes the present; a missing file is made, empty */
};

enum wire_manage_flags {
	WIRE_MANAGE_RECURSIVE = 1 << 0, /* LIST: the whole tree; REMOVE: directories with all content */
	WIRE_MANAGE_HIDDEN = 1 << 1,    /* LIST: names that begin with a dot as well */
	WIRE_MANAGE_ITSELF = 1 << 2,    /* LIST: a directory instead of its content */
	WIRE_MANAGE_PARENTS = 1 << 3,   /* MKDIR: missing parents as well; an existing directory is no failure */
	WIRE_MANAGE_REPLACE = 1 << 4,   /* RENAME: replace an existing file */
	WIRE_MANAGE_LITERAL = 1 << 5,   /* LIST, COUNT, REMOVE: a pattern is a name like any other */
	WIRE_MANAGE_FLAGS = (1 << 6) - 1
};

/* Requests work on the paths, coded as in OPEN, without path flags. LIST, COUNT and REMOVE expand patterns, unless
 * they are LITERAL. */
struct wire_manage {
	uint8_t op, flags;
	uint16_t n_paths;  /* not 0; RENAME: 2 */
	struct span paths;
};
WIRE_CODEC(MANAGE, manage, wire_manage)

enum wire_listed_type {
	WIRE_LISTED_UNKNOWN, /* type of a failure, which has a code */
	WIRE_LISTED_FILE, WIRE_LISTED_DIR, WIRE_LISTED_SYMLINK, WIRE_LISTED_FIFO, WIRE_LISTED_SOCKET,
	WIRE_LISTED_CHAR_DEVICE, WIRE_LISTED_BLOCK_DEVICE
};

/* An entry of LIST, the sum of a path of COUNT, or a failure of any request. */
struct wire_listed {
	uint8_t type;
	uint16_t mode;      /* 07777 */
	uint64_t bytes, disk_bytes;
	uint64_t entries;   /* COUNT: files and directories; else 0 */
	int64_t mtime_s;
	uint32_t mtime_ns;
	struct span path;   /* as in the request, with the names below; without NUL */
	struct span target; /* target of a symbolic link; SUM: the digests, in hexadecimal digits */
	struct wire_why why; /* code 0: no failure */
};
#define WIRE_LISTED_FRAMES_MAX 10000000 /* max number in one reply */
WIRE_CODEC(LISTED, listed, wire_listed)

/* Totals so far, regularly; the last frame has `final`. */
struct wire_managed {
	uint64_t entries;           /* listed, counted, made, removed or renamed */
	uint64_t bytes, disk_bytes; /* LIST and COUNT: of the entries */
	uint64_t failed;
	uint64_t quota_used_bytes;  /* COUNT: space used beneath the client's directory */
	uint64_t quota_bytes;       /* COUNT: the client's quota; 0: none */
	uint8_t final;
};
WIRE_CODEC(MANAGED, managed, wire_managed)

/* ---- Parts of a file ---- */

/* Requests ranges of a file, coded by wire_range_encode(). LISTED with the file, as opened, comes first, then a BLOCK
 * for each piece of each range, in order, and MANAGED. */
struct wire_read {
	uint16_t n_ranges;  /* 1 to WIRE_RANGES_MAX */
	struct span path;   /* as in OPEN; without NUL */
	struct span ranges;
};
WIRE_CODEC(READ, read, wire_read)

/* From `start` up to `end`, as far as the file has these bytes; a negative number counts from the end of the file.
 * WIRE_RANGE_REST as the end: the end of the file. */
struct wire_range {
	int64_t start, end;
};
#define WIRE_RANGE_REST INT64_MAX
#define WIRE_RANGE_BYTES 16
size_t wire_range_encode(uint8_t *out, const struct wire_range *r);
/* Takes the first range off. */
struct wire_range wire_range_next(struct span *ranges);
/* The bytes of a file of this size, at most WIRE_FILE_MAX, in the range: their number, and the first one in *from. */
uint64_t wire_range_clip(struct wire_range r, uint64_t size_bytes, uint64_t *from);

/* ---- Digests ---- */

#define X(NAME, name, bit, bytes) | 1u << (bit)
enum { WIRE_DIGESTS = 0 PTCP_DIGESTS(X) };
#undef X
#define WIRE_SUM_FLAGS WIRE_MANAGE_RECURSIVE

/* Requests digests of files, or of a range of each: LISTED for each file, and MANAGED. Patterns are expanded. */
struct wire_sum {
	uint8_t flags;      /* WIRE_MANAGE_RECURSIVE: the files of directories as well */
	uint16_t digests;   /* at least one bit of WIRE_DIGESTS */
	int64_t start, end; /* as in struct wire_range */
	uint16_t n_paths;   /* not 0 */
	struct span paths;  /* as in MANAGE */
};
WIRE_CODEC(SUM, sum, wire_sum)

#define WIRE_PIECE_BYTES (60u << 10) /* max data of a BLOCK that answers READ, or follows WRITE */
/* The id of a BLOCK with bytes of a range; the first range is 0. */
static inline uint64_t wire_range_id(unsigned range) { return (uint64_t)(range + 1) << 16; }

/* ---- Small files that a client writes ---- */

enum { WIRE_WRITE_MAX = 1 << 20 }; /* bytes */

enum wire_write_flags {
	WIRE_WRITE_EXCLUSIVE = 1 << 0, /* a name that exists is refused */
	WIRE_WRITE_MKPATH = 1 << 1,    /* missing directories are made */
	WIRE_WRITE_MODE = 1 << 2,      /* the file gets `mode`; else as of cp */
	WIRE_WRITE_FLAGS = (1 << 3) - 1
};

/* Requests that a file be written: BLOCKs with the data follow, each with WIRE_PIECE_BYTES of it, the last with the
 * rest. LISTED with the new file, or the failure, and MANAGED answer. */
struct wire_write {
	uint8_t flags;
	uint8_t fsync;      /* enum wire_fsync */
	uint16_t mode;      /* 0777; 0 without WIRE_WRITE_MODE */
	uint32_t size_bytes; /* at most WIRE_WRITE_MAX */
	int64_t mtime_s;    /* time of change, unless mtime_ns is WIRE_WRITE_NOW: the time of writing; then 0 */
	uint32_t mtime_ns;
	struct span path;   /* as in OPEN; without NUL */
	struct span if_match; /* store_match_parse(); empty: no condition */
};
#define WIRE_WRITE_NOW UINT32_MAX
WIRE_CODEC(WRITE, write, wire_write)

#endif
